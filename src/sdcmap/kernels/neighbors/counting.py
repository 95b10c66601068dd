"""Neighbors of released records in an archive: exact counts, the exact critical distance, and which records are safe.

No n x n matrix is kept in memory; box_tree.py counts the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
class Pairs:
    """All pairs of a released record y_i and an archive record x_j; x[link_i] is the original of y_i.

    unit : the number by which the distances of each y_i are divided. threads : how many to use; the result does not
    depend on it.
    """

    y: Array
    x: Array
    unit: Array
    link: Array
    tree: Tree
    threads: int = 1

    @staticmethod
    def of(y: Array, x: Array, unit: Array, link: Array, threads: int | None = 1) -> Pairs:
        y = np.ascontiguousarray(y, dtype=np.float64)
        return Pairs(y, x, unit, link, Tree.of(x), threads or cores())

    @property
    def nonlinks(self) -> int:
        """The number of pairs that are not a link."""
        return len(self.y) * (len(self.x) - 1)

    def link_lengths(self) -> Array:
        """Return ||y_i - x_i||: how far masking moved each record."""
        total = np.zeros(len(self.y))
        for step in (self.y - self.x[self.link]).T:
            total += step * step
        return np.sqrt(total)

    def link_distances(self) -> Array:
        """Return z of each record and its original."""
        return self.link_lengths() / self.unit

    def count(self, bound: float | Array, most: int | None = None) -> Array:
        """Return N_i = #{j: z_ij < bound_i}, or `most` if it is larger.  Seri (2005), eq. 4"""
        near = np.broadcast_to(np.asarray(bound, dtype=np.float64), len(self.y))
        counts = count_between(self, near, near, most)[0]
        return counts if most is None else np.minimum(counts, most)

    def has_nearer_than_link(self) -> Array:
        """Return whether some other record is nearer to y_i than its original."""
        return self.count(self.link_distances(), most=1) > 0

    def ties(self, rows: Array) -> Array:
        """Return, for these rows i, how many other records are exactly as far from y_i as its original."""
        part = self._subset(rows)
        own = part.link_distances()
        return count_between(part, own, np.nextafter(own, np.inf))[1] - 1

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

    def distances(self, near: float = 0.0, far: float = np.inf, rows: Array | None = None) -> Array:
        """Return the distances of all nonlinks in [near, far); only of `rows`, if given."""
        part = self if rows is None else self._subset(rows)
        own = part.link_distances()
        counts = count_between(part, np.full(len(own), near), np.full(len(own), far))[1]
        offset = np.concatenate([[0], np.cumsum(counts - ((near <= own) & (own < far)))])
        out = np.empty(offset[-1])
        part.run(lambda visit: write_between(part.y, part.unit, visit, part.tree, part.link, near, far, offset, out))
        return out

    def nonlinks_below(self, bounds: Array) -> Array:
        """Return #{i != j: z_ij < b} for each b of `bounds`."""
        own = self.link_distances()
        return np.array([int(self.count(float(b)).sum() - (own < b).sum()) for b in bounds], dtype=np.int64)

    def _nonlinks_below(self, near: float, far: float) -> tuple[int, int]:
        own = self.link_distances()
        inner, outer = count_between(self, np.full(len(own), near), np.full(len(own), far))
        first = int(inner.sum() - (own < near).sum())
        return first, first + int(outer.sum() - ((near <= own) & (own < far)).sum())

    def _sample_distances(self, near: float, far: float, pairs: int) -> Array:
        """Return sorted distances in [near, far) of evenly spaced rows; at first to evenly spaced archive records only."""
        if far == np.inf:
            rows = np.unique(np.linspace(0, len(self.y) - 1, 1500).astype(np.int64))
            columns = np.unique(np.linspace(0, len(self.x) - 1, 1500).astype(np.int64))
            steps = self.y[rows, np.newaxis] - self.x[columns]
            distances = np.sort((np.sqrt((steps**2).sum(axis=2)) / self.unit[rows, np.newaxis]).ravel())
            distances = distances[distances >= near]
            if len(distances) > 100:
                return distances
        count = int(min(len(self.y), max(100, 1e6 * len(self.y) / pairs)))
        rows = np.unique(np.linspace(0, len(self.y) - 1, count).astype(np.int64))
        distances = np.sort(self.distances(near, far, rows))
        return distances if len(distances) else np.array([near + (min(far, 3 * near + 1) - near) / 2])

    def _subset(self, rows: Array) -> Pairs:
        return Pairs(self.y[rows], self.x, self.unit[rows], self.link[rows], self.tree, self.threads)

    def run(self, task: Callable[[Array], None]) -> None:
        """Run `task` on parts of the rows, over the threads; rows that are close in the tree are in the same part."""
        order = np.argsort(np.argsort(self.tree.rows)[self.link], kind="stable")
        run_parts(task, np.array_split(order, max(1, len(order) // ROWS_PER_TASK)), self.threads)


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


def likeliest_region(pairs: Pairs, rank: int) -> list[tuple[float, float]]:
    """Return the intervals [from, to) with the largest m(z) / u(z) that hold rank - 1 nonlinks.

    They are the acceptance region of the most powerful test at that error. m and u are histograms over n^(1/3) bins (at
    most 20) with equally many links. Bins are taken in descending order of the ratio; the last one only up to the rank.
    If the ratio falls with z, the region is [0, delta).  Fellegi, Sunter (1969); Seri, eq. 3
    """
    own = np.sort(pairs.link_distances())
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
