"""Neighbors of released records in an archive: exact counts, the exact critical distance, and who is safe.

No n x n matrix is ever held: see box_tree.py for how pairs are counted.
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

ENUMERATED = 1 << 23  # so many distances are written out at once
BLOCK = 4096  # rows of one thread's piece of work
MOST_BINS = 20  # of the links' distances, for the ratio m(z) / u(z)


def is_safe(neighbors: Array, perturbation: Array, k: float, r: float, q: float) -> Array:
    """N >= k, or p >= r, or (N/k)^q + (p/r)^q >= 1.  Seri (2005), figure 2; q = 1 is the straight line of figure 3"""
    enough: Array = (neighbors >= k) | (perturbation >= r)
    return enough | ((neighbors / k) ** q + (perturbation / r) ** q >= 1)


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Every pair of a released record y_i and an archive record x_j, and the link of each: x[link_i] is y_i's own.

    unit : what the distances of each y_i are divided by. threads : how many work at once (the result does not depend
    on it).
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
        """Number of pairs that are no link."""
        return len(self.y) * (len(self.x) - 1)

    def link_lengths(self) -> Array:
        """||y_i - x_i||: how far each record was moved."""
        total = np.zeros(len(self.y))
        for step in (self.y - self.x[self.link]).T:
            total += step * step
        return np.sqrt(total)

    def link_distances(self) -> Array:
        """z of each record and its own original."""
        return self.link_lengths() / self.unit

    def count(self, bound: float | Array, most: int | None = None) -> Array:
        """N_i = #{j: z_ij < bound_i}, or `most` where there are at least so many.  Seri (2005), eq. 4"""
        near = np.broadcast_to(np.asarray(bound, dtype=np.float64), len(self.y))
        counts = count_between(self, near, near, most)[0]
        return counts if most is None else np.minimum(counts, most)

    def nearer_than_link(self) -> Array:
        """Whether another record is nearer to y_i than its own."""
        return self.count(self.link_distances(), most=1) > 0

    def ties(self, rows: Array) -> Array:
        """How many other records lie exactly as far from y_i as its own, for these rows i."""
        part = self._only(rows)
        own = part.link_distances()
        return count_between(part, own, np.nextafter(own, np.inf))[1] - 1

    def critical_distance(self, rank: int) -> float:
        """The distance of the nonlink with this rank, 1 the nearest: exact, without all distances at once.

        A bracket around it is narrowed at distances met in a sample of rows, with exact counts at its ends, until it
        holds few enough pairs to write them out.
        """
        near, far = 0.0, np.inf  # the distance sought is in [near, far)
        below, above = 0, self.nonlinks  # nonlinks before the bracket, and before its end
        held = 2 * above + 1
        while above - below > ENUMERATED:
            sample = self._sampled(near, far, above - below)
            place = (rank - below) / (above - below)
            halved, held = above - below <= held // 2, above - below
            # rows differ, so 25 values tell as much as one; where ties stop the bracket, one pivot moves it
            spread = 2 * math.sqrt(25 * (place * (1 - place) + 1 / len(sample)) / len(sample)) if halved else 0.0
            ends = [place - min(spread, 0.25), place + min(spread, 0.25)]
            first, last = (sample[min(max(int(end * len(sample)), 0), len(sample) - 1)] for end in ends)
            beyond = float(np.nextafter(last, np.inf))
            before_first, before_beyond = self._nonlinks_below(float(first), beyond)
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
        """The distances of all nonlinks in [near, far), of these rows alone where `rows` are given."""
        part = self if rows is None else self._only(rows)
        own = part.link_distances()
        counts = count_between(part, np.full(len(own), near), np.full(len(own), far))[1]
        place = np.concatenate([[0], np.cumsum(counts - ((near <= own) & (own < far)))])
        out = np.empty(place[-1])
        part.work(lambda visit: write_between(part.y, part.unit, visit, part.tree, part.link, near, far, place, out))
        return out

    def nonlinks_below(self, bounds: Array) -> Array:
        """#{i != j: z_ij < b} for each b of `bounds`."""
        own = self.link_distances()
        return np.array([int(self.count(float(b)).sum() - (own < b).sum()) for b in bounds], dtype=np.int64)

    def _nonlinks_below(self, near: float, far: float) -> tuple[int, int]:
        own = self.link_distances()
        inner, outer = count_between(self, np.full(len(own), near), np.full(len(own), far))
        first = int(inner.sum() - (own < near).sum())
        return first, first + int(outer.sum() - ((near <= own) & (own < far)).sum())

    def _sampled(self, near: float, far: float, pairs: int) -> Array:
        """Distances in [near, far) of evenly spaced rows, rising; at first against evenly spaced archive records."""
        if far == np.inf:
            rows = np.unique(np.linspace(0, len(self.y) - 1, 1500).astype(np.int64))
            columns = np.unique(np.linspace(0, len(self.x) - 1, 1500).astype(np.int64))
            steps = self.y[rows, np.newaxis] - self.x[columns]
            distances = np.sort((np.sqrt((steps**2).sum(axis=2)) / self.unit[rows, np.newaxis]).ravel())
            distances = distances[distances >= near]
            if len(distances) > 100:
                return distances
        wanted = int(min(len(self.y), max(100, 1e6 * len(self.y) / pairs)))
        rows = np.unique(np.linspace(0, len(self.y) - 1, wanted).astype(np.int64))
        distances = np.sort(self.distances(near, far, rows))
        return distances if len(distances) else np.array([near + (min(far, 3 * near + 1) - near) / 2])

    def _only(self, rows: Array) -> Pairs:
        return Pairs(self.y[rows], self.x, self.unit[rows], self.link[rows], self.tree, self.threads)

    def work(self, run: Callable[[Array], None]) -> None:
        """All rows, those near each other in the tree one after the other, in pieces over the threads."""
        order = np.argsort(np.argsort(self.tree.rows)[self.link], kind="stable")
        run_parts(run, np.array_split(order, max(1, len(order) // BLOCK)), self.threads)


@on_device
def count_between(pairs: Pairs, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
    """#{j: z_ij < near_i} and #{j: near_i <= z_ij < far_i} of each record; counting may stop where both reach `most`."""
    below, between = np.zeros((2, len(pairs.y)), dtype=np.int64)
    near, far = np.array(near, dtype=np.float64), np.array(far, dtype=np.float64)  # one kind of array: compiled once
    limit = np.iinfo(np.int64).max if most is None else most
    pairs.work(lambda visit: count_within(pairs.y, pairs.unit, visit, pairs.tree, near, far, limit, below, between))
    return below, between


def likeliest_region(pairs: Pairs, rank: int) -> list[tuple[float, float]]:
    """Where m(z) / u(z) is largest, as intervals [from, to) that hold rank - 1 nonlinks: the best test at that error.

    m and u are histograms on n^(1/3) bins, at most 20, with equally many links; whole bins are taken by falling ratio,
    and of the last one its lower part. With a falling ratio this is [0, delta).  Fellegi, Sunter (1969); Seri, eq. 3
    """
    own = np.sort(pairs.link_distances())
    bins = min(MOST_BINS, round(len(own) ** (1 / 3)))
    inner = own[np.unique(np.arange(1, bins) * len(own) // bins)]
    edges = np.unique(np.concatenate([[0.0], inner, [np.nextafter(own[-1], np.inf)]]))
    links = np.histogram(own, edges)[0]
    before = pairs.nonlinks_below(edges)
    nonlinks = np.diff(before)
    taken: list[tuple[float, float]] = []
    left = rank - 1
    for place in np.argsort(-links / np.maximum(nonlinks, 0.5), kind="stable"):
        start, stop = float(edges[place]), float(edges[place + 1])
        if nonlinks[place] > left:
            taken.append((start, pairs.critical_distance(int(before[place]) + left + 1)))
            break
        taken.append((start, stop))
        left -= int(nonlinks[place])
    joined: list[tuple[float, float]] = []
    for start, stop in sorted(taken):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        elif stop > start:
            joined.append((start, stop))
    return joined
