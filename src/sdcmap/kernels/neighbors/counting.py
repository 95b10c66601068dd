"""Neighbors of released records in an archive: exact counts, the exact critical distance, and which records are safe.

No n x n matrix is kept in memory; box_tree.py counts the pairs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import run_parts
from sdcmap.kernels.machine import cores
from sdcmap.kernels.neighbors.box_tree import Tree, count_within, write_between

MAX_LISTED_DISTANCES = 1 << 23  # distances that are listed at the same time
ROWS_PER_TASK = 4096  # rows that a thread takes at a time
MAX_BINS = 20  # bins of the links' distances, for the ratio m(z) / u(z)


def is_safe(neighbors: Array, perturbation: Array, k: float, r: float, q: float) -> Array:
    """Return N >= k, or p >= r, or (N/k)^q + (p/r)^q >= 1.  Seri (2005), figure 2; q = 1 is the line of figure 3"""
    enough: Array = (neighbors >= k) | (perturbation >= r)
    return enough | ((neighbors / k) ** q + (perturbation / r) ** q >= 1)


@dataclass(frozen=True, eq=False, repr=False)
class PairDistances(ABC):
    """The compared pairs of a released record y_i and a unit x_j of the archive; x[link_i] is the original of y_i.

    unit : the number by which the distances of each y_i are divided. link : -1 where y_i is not compared with its
    original.
    """

    y: Array
    x: Array
    unit: Array
    link: Array

    @abstractmethod
    def count_between(self, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
        """Return #{j: z_ij < near_i} and #{j: near_i <= z_ij < far_i} for each record.

        Counting may stop once both together reach `most`.
        """

    @abstractmethod
    def distances(self, near: float = 0.0, far: float = np.inf, rows: Array | None = None) -> Array:
        """Return the distances of all nonlinks in [near, far), in any order; only of `rows`, if given."""

    @abstractmethod
    def subset(self, rows: Array) -> PairDistances:
        """Return the pairs of these released records."""

    @abstractmethod
    def units_of(self, row: int) -> Array:
        """Return the units that a released record is compared with, as rows of x."""

    @property
    @abstractmethod
    def pair_count(self) -> int:
        """The number of compared pairs."""

    @abstractmethod
    def first_sample(self, near: float) -> Array:
        """Return sorted distances of at least `near` between some records and some units; possibly few."""

    @property
    def linked(self) -> Array:
        """Whether each record is compared with its original."""
        return self.link >= 0

    @property
    def nonlinks(self) -> int:
        """The number of compared pairs that are not a link."""
        return self.pair_count - int(self.linked.sum())

    def link_distances(self) -> Array:
        """Return z of each record and its original; infinite where they are not compared."""
        total = np.zeros(len(self.y))
        for step in (self.y - self.x[self.link]).T:
            total += step * step
        return np.where(self.linked, np.sqrt(total) / self.unit, np.inf)

    def count(self, bound: float | Array, most: int | None = None) -> Array:
        """Return N_i = #{j: z_ij < bound_i}, or `most` if it is larger.  Seri (2005), eq. 4"""
        near = np.broadcast_to(np.asarray(bound, dtype=np.float64), len(self.y))
        counts = self.count_between(near, near, most)[0]
        return counts if most is None else np.minimum(counts, most)

    def link_is_nearest(self) -> Array:
        """Return whether no other unit is nearer to y_i than its original."""
        return self.linked & ~(self.count(self.link_distances(), most=1) > 0)

    def ties(self, rows: Array) -> Array:
        """Return, for these rows i with a link, how many other units are exactly as far from y_i as its original."""
        part = self.subset(rows)
        own = part.link_distances()
        return part.count_between(own, np.nextafter(own, np.inf))[1] - 1

    def critical_distance(self, rank: int) -> float:
        """Return the exact distance of the nonlink with this rank (1 is the nearest), without listing all distances.

        A bracket around it is narrowed, with exact counts at its ends, until it holds few enough pairs to list them. The
        new ends are quantiles of the distances of a sample of rows.
        """
        near, far = 0.0, np.inf  # the distance with this rank is in [near, far)
        below, above = 0, self.nonlinks  # nonlinks below the bracket, and below its end
        inside = 2 * above + 1
        while above - below > MAX_LISTED_DISTANCES:
            sample = self._sample_distances(near, far, above - below)
            share = (rank - below) / (above - below)
            halved, inside = above - below <= inside // 2, above - below
            # Distances of one row depend on each other: 25 of them carry about as much information as one. Where ties
            # keep the bracket from shrinking by half, a single pivot moves it.
            spread = 2 * math.sqrt(25 * (share * (1 - share) + 1 / len(sample)) / len(sample)) if halved else 0.0
            ends = [share - min(spread, 0.25), share + min(spread, 0.25)]
            first, last = (sample[min(max(int(end * len(sample)), 0), len(sample) - 1)] for end in ends)
            beyond = float(np.nextafter(last, np.inf))
            before_first, before_beyond = self._nonlinks_below(float(first), beyond)
            # Exact counts at both pivots decide on which sides of them the rank lies.
            if before_first < rank <= before_beyond and first == last:
                return float(first)
            if before_first < rank:
                near, below = float(first), before_first
            else:
                far, above = float(first), before_first
            if before_beyond >= rank and beyond < far:
                far, above = beyond, before_beyond
            elif before_beyond < rank:
                near, below = beyond, before_beyond
        return float(np.partition(self.distances(near, far), rank - below - 1)[rank - below - 1])

    def nonlinks_below(self, bounds: Array) -> Array:
        """Return #{i != j: z_ij < b} for each b of `bounds`."""
        own = self.link_distances()
        return np.array([int(self.count(float(b)).sum() - (own < b).sum()) for b in bounds], dtype=np.int64)

    def _nonlinks_below(self, near: float, far: float) -> tuple[int, int]:
        own = self.link_distances()
        inner, outer = self.count_between(np.full(len(own), near), np.full(len(own), far))
        first = int(inner.sum() - (own < near).sum())
        return first, first + int(outer.sum() - ((near <= own) & (own < far)).sum())

    def _sample_distances(self, near: float, far: float, pairs: int) -> Array:
        """Return sorted distances in [near, far) of evenly spaced rows; at first to evenly spaced units only."""
        if far == np.inf and len(distances := self.first_sample(near)) > 100:
            return distances
        count = int(min(len(self.y), max(100, 1e6 * len(self.y) / pairs)))
        rows = np.unique(np.linspace(0, len(self.y) - 1, count).astype(np.int64))
        distances = np.sort(self.distances(near, far, rows))
        return distances if len(distances) else np.array([near + (min(far, 3 * near + 1) - near) / 2])


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(PairDistances):
    """All pairs of a released record and a unit of the archive.

    threads : how many to use; the result does not depend on it.
    """

    tree: Tree
    threads: int = 1

    @staticmethod
    def of(y: Array, x: Array, unit: Array, link: Array, threads: int | None = 1) -> Pairs:
        y = np.ascontiguousarray(y, dtype=np.float64)
        return Pairs(y, x, unit, link, Tree.of(x), threads or cores())

    @property
    def pair_count(self) -> int:
        return len(self.y) * len(self.x)

    def count_between(self, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
        return count_between(self, near, far, most)

    def distances(self, near: float = 0.0, far: float = np.inf, rows: Array | None = None) -> Array:
        part = self if rows is None else self.subset(rows)
        own = part.link_distances()
        counts = count_between(part, np.full(len(own), near), np.full(len(own), far))[1]
        offset = np.concatenate([[0], np.cumsum(counts - ((near <= own) & (own < far)))])
        out = np.empty(offset[-1])
        part.run(lambda visit: write_between(part.y, part.unit, visit, part.tree, part.link, near, far, offset, out))
        return out

    def units_of(self, row: int) -> Array:
        return np.arange(len(self.x))

    def first_sample(self, near: float) -> Array:
        rows = np.unique(np.linspace(0, len(self.y) - 1, 1500).astype(np.int64))
        columns = np.unique(np.linspace(0, len(self.x) - 1, 1500).astype(np.int64))
        steps = self.y[rows, np.newaxis] - self.x[columns]
        distances = np.sort((np.sqrt((steps**2).sum(axis=2)) / self.unit[rows, np.newaxis]).ravel())
        return distances[distances >= near]

    def subset(self, rows: Array) -> Pairs:
        return Pairs(self.y[rows], self.x, self.unit[rows], self.link[rows], self.tree, self.threads)

    def run(self, task: Callable[[Array], None]) -> None:
        """Run `task` on parts of the rows, over the threads; rows that are close in the tree are in the same part."""
        order = np.argsort(np.argsort(self.tree.rows)[self.link], kind="stable")
        run_parts(task, np.array_split(order, max(1, len(order) // ROWS_PER_TASK)), self.threads)


class Group(NamedTuple):
    """Released records that are compared with the same units: rows of y, and of x in ascending order."""

    rows: Array
    units: Array
    pairs: Pairs | None  # None: there are no such units


@dataclass(frozen=True, eq=False, repr=False)
class GroupedPairs(PairDistances):
    """The pairs of each released record with the units of its group, such as those with the same economic activity."""

    groups: tuple[Group, ...]

    @staticmethod
    def of(
        y: Array, x: Array, unit: Array, link: Array, groups: Iterable[tuple[Array, Array]], threads: int | None = 1
    ) -> GroupedPairs:
        y = np.ascontiguousarray(y, dtype=np.float64)
        compared = np.full(len(y), -1)
        parts = []
        for rows, units in groups:
            # The original of a record may be in another group, because masking changed its category.
            index = np.searchsorted(units, link[rows])
            is_inside = np.isin(link[rows], units)
            compared[rows] = np.where(is_inside, link[rows], -1)
            own = np.where(is_inside, index, -1)
            pairs = Pairs.of(y[rows], x[units], unit[rows], own, threads) if len(units) else None
            parts.append(Group(rows, units, pairs))
        return GroupedPairs(y, x, unit, compared, tuple(parts))

    @property
    def pair_count(self) -> int:
        return sum(len(group.rows) * len(group.units) for group in self.groups)

    def count_between(self, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
        below, between = np.zeros((2, len(self.y)), dtype=np.int64)
        for rows, _, pairs in self.groups:
            if pairs is not None:
                below[rows], between[rows] = pairs.count_between(near[rows], far[rows], most)
        return below, between

    def distances(self, near: float = 0.0, far: float = np.inf, rows: Array | None = None) -> Array:
        part = self if rows is None else self.subset(rows)
        listed = [group.pairs.distances(near, far) for group in part.groups if group.pairs is not None]
        return np.concatenate([np.empty(0), *listed])

    def units_of(self, row: int) -> Array:
        return next(group.units for group in self.groups if row in group.rows)

    def first_sample(self, near: float) -> Array:
        return np.empty(0)  # a grid of records and units would mix groups

    def subset(self, rows: Array) -> GroupedPairs:
        position = np.full(len(self.y), -1)
        position[rows] = np.arange(len(rows))
        parts = []
        for group in self.groups:
            inside = np.flatnonzero(position[group.rows] >= 0)
            if len(inside):
                pairs = None if group.pairs is None else group.pairs.subset(inside)
                parts.append(Group(position[group.rows[inside]], group.units, pairs))
        return GroupedPairs(self.y[rows], self.x, self.unit[rows], self.link[rows], tuple(parts))


@on_device
def count_between(pairs: Pairs, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
    """Return #{j: z_ij < near_i} and #{j: near_i <= z_ij < far_i} for each record.

    Counting may stop once both together reach `most`.
    """
    below, between = np.zeros((2, len(pairs.y)), dtype=np.int64)
    # One array type, so that the kernel is compiled once.
    near, far = np.array(near, dtype=np.float64), np.array(far, dtype=np.float64)
    limit = np.iinfo(np.int64).max if most is None else most
    pairs.run(lambda visit: count_within(pairs.y, pairs.unit, visit, pairs.tree, near, far, limit, below, between))
    return below, between


def likeliest_region(pairs: PairDistances, rank: int) -> list[tuple[float, float]]:
    """Return the intervals [from, to) with the largest m(z) / u(z) that hold rank - 1 nonlinks.

    They are the acceptance region of the most powerful test at that error. m and u are histograms over n^(1/3) bins (at
    most 20) with equally many links. Bins are taken in descending order of the ratio; the last one only up to the rank.
    If the ratio falls with z, the region is [0, delta).  Fellegi, Sunter (1969); Seri, eq. 3
    """
    own = np.sort(pairs.link_distances()[pairs.linked])
    bins = min(MAX_BINS, round(len(own) ** (1 / 3)))
    inner = own[np.unique(np.arange(1, bins) * len(own) // bins)]
    edges = np.unique(np.concatenate([[0.0], inner, [np.nextafter(own[-1], np.inf)]]))
    links = np.histogram(own, edges)[0]
    before = pairs.nonlinks_below(edges)
    nonlinks = np.diff(before)
    region: list[tuple[float, float]] = []
    left = rank - 1
    for b in np.argsort(-links / np.maximum(nonlinks, 0.5), kind="stable"):
        start, stop = float(edges[b]), float(edges[b + 1])
        if nonlinks[b] > left:
            region.append((start, pairs.critical_distance(int(before[b]) + left + 1)))
            break
        region.append((start, stop))
        left -= int(nonlinks[b])
    joined: list[tuple[float, float]] = []  # adjacent bins become one interval
    for start, stop in sorted(region):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        elif stop > start:
            joined.append((start, stop))
    return joined
