"""One-to-one links: each released record is linked once at most, and the sum of scores is the largest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.risk.linkage.link_search import Links
from sdcmap.risk.linkage.matching import Graph, Matching, best_profit, heaviest

# The best full assignment of a square score matrix, finished from prices that are nearly right.
#
# The total is that of scipy's `linear_sum_assignment`, which starts from nothing. Any prices will do as a start,
# because in a square matrix every column is taken in the end (Jonker & Volgenant 1987).


DENSE_ROUNDING = 1e-13  # of a score and a price: a pair this near to its best is there


@jit
def finish(score: Array, partner: Array, taken_by: Array, price: Array) -> None:
    """Part the pairs that are not at their best, and bring every lone row in.

    From no partners and prices of 0 it may have more columns than rows.
    """
    n, m = score.shape
    for i in range(n):
        if partner[i] >= 0:
            best = -np.inf
            for j in range(m):
                best = max(best, score[i, j] - price[j])
            own = score[i, partner[i]]
            if own - price[partner[i]] < best - DENSE_ROUNDING * (abs(own) + price[partner[i]]):
                taken_by[partner[i]] = -1
                partner[i] = -1
    far, parent = np.empty(m), np.empty(m, dtype=np.int64)
    columns = np.empty(m, dtype=np.int64)
    for i in range(n):
        if partner[i] < 0:
            _augment(score, partner, taken_by, price, i, far, parent, columns)


@inner_jit
def _augment(
    score: Array, partner: Array, taken_by: Array, price: Array, root: int, far: Array, parent: Array, columns: Array
) -> None:
    """Bring `root` in along the path that loses least (Dijkstra over columns), and raise the prices on it."""
    m = score.shape[1]
    for j in range(m):
        columns[j] = j
        far[j] = price[j] - score[root, j]
        parent[j] = root
    ready, scanned, level, end = 0, 0, 0.0, -1  # columns: scanned, then those at `level`, then the others
    while end < 0:
        if scanned == ready:
            level = far[columns[ready]]
            for k in range(ready, m):
                j = columns[k]
                if far[j] <= level:
                    if far[j] < level:
                        ready, level = scanned, far[j]
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
            for k in range(scanned, ready):
                if taken_by[columns[k]] < 0:
                    end = columns[k]
                    break
            if end >= 0:
                break
        column = columns[scanned]
        scanned += 1
        i = taken_by[column]
        base = level - (price[column] - score[i, column])
        row = score[i]
        for k in range(ready, m):
            j = columns[k]
            there = base + price[j] - row[j]
            if there < far[j]:
                far[j], parent[j] = there, i
                if there <= level:
                    if taken_by[j] < 0:
                        end = j
                        break
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
        if end >= 0:
            break
    for k in range(scanned):
        j = columns[k]
        price[j] += level - far[j]
    while True:
        i = parent[end]
        after = partner[i]
        partner[i], taken_by[end] = end, i
        if i == root:
            break
        end = after


ROUNDING = 1e-9  # a gap this small beside the scores it is made of is rounding
FIRST = 50  # best candidates of each record on which a square matrix is first assigned
TIE_BITS = 24  # binary digits to which scores must agree to tie


def dense(score: Array) -> Array:
    """Return the best full assignment of an n x m matrix of float64 scores, the column of each row (-1: none): every record
    of the shorter side is linked.

    Scores are rounded in place: those that are equal but for rounding must tie, or the processor would decide which of
    many assignments with the same total is found.
    """
    from scipy.optimize import linear_sum_assignment

    round_to_tie(score)
    n, m = score.shape
    if n == m > 4 * FIRST and np.isfinite(score).all():
        # Sorted by column: numpy returns equal scores in an order that depends on the processor.
        index = np.sort(np.argpartition(score, m - FIRST, axis=1)[:, m - FIRST :], axis=1)
        near = np.take_along_axis(score, index, axis=1)  # who would pay more than its last candidate is worth waits
        start = heaviest(_Lists(Links(index, near)).graph(near.min(axis=1)), m)
        finish(score, start.partner, start.taken_by, start.price)
        return start.partner
    row, column = linear_sum_assignment(score, maximize=True)
    partner = np.full(n, -1)
    partner[row] = column
    return partner


def round_to_tie(score: Array) -> None:
    """Round each score, in place, to its first `TIE_BITS` binary digits (about seven decimal ones)."""
    bits = score.view(np.int64)
    unit = 1 << (52 - TIE_BITS)
    bits += unit >> 1
    bits &= -unit


def one_to_one(
    links: Links, more: Callable[[Array, int], Links], m: int, limit: int = 10_000_000
) -> tuple[Array, float]:
    """The best one-to-one linkage over all pairs, from the best candidates of each record: the released row of each known
    one (-1: unlinked), and the gap, an upper bound on how far the optimum lies above (0: proved optimal).

    more(rows, k): the k best links of these known records. A record is linked wherever it can be: alone it counts the
    worst score of all candidates less their range, and one more. A pair that is not among the candidates of i scores at
    most the last of them, W_i, and cannot improve the linkage if W_i - least price <= profit of i. Records for which this
    fails, or which found no partner while one is free, get four times as many candidates, until there are none or more
    than `limit` candidates would be held in all; the gap then says how much could be missing.
    """
    lists, width = _Lists(links), links.index.shape[1]
    matching: Matching | None = None
    while True:
        alone, last = lists.alone(), lists.last(m)
        matching, gap = _solve(lists.graph(np.full(lists.n, alone)), m, matching)
        missing = np.maximum(0.0, last - alone - matching.price.min(initial=np.inf) - matching.profit)
        missing[missing <= ROUNDING * abs(alone)] = 0.0
        unlinked = matching.partner < 0
        seeking = unlinked & (last > -np.inf) & bool((matching.taken_by < 0).any())
        failing = np.flatnonzero((missing > 0) | seeking)
        width = min(m, 4 * width)
        if len(failing) == 0 or lists.held(failing) + len(failing) * width > limit:
            break
        lists.replace(failing, more(failing, width))
    gap += float(missing.sum())
    if len(failing):  # the optimum may link more, and is compared with the total of what is linked
        excess = int(unlinked.sum()) - max(0, lists.n - m)
        gap = max(0.0, gap + max(0, excess) * max(0.0, alone))
    return matching.partner, gap


class _Lists:
    """Candidates of each record, more for some than for others."""

    def __init__(self, links: Links) -> None:
        self.parts = [(np.arange(len(links.index)), links)]

    def replace(self, rows: Array, links: Links) -> None:
        """Give these records other candidates."""
        kept = []
        for of, old in self.parts:
            stay = ~np.isin(of, rows)
            kept.append((of[stay], Links(old.index[stay], old.score[stay])))
        self.parts = [*(part for part in kept if len(part[0])), (rows, links)]

    @property
    def n(self) -> int:
        return sum(len(rows) for rows, _ in self.parts)

    def held(self, without: Array) -> int:
        """Candidates in all, but for those of the records `without`."""
        return sum((~np.isin(rows, without)).sum() * links.index.shape[1] for rows, links in self.parts)

    def last(self, m: int) -> Array:
        """The worst candidate's score, which no other pair of the record passes; -inf where all pairs are listed."""
        score = np.full(self.n, -np.inf)
        for rows, links in self.parts:
            if 0 < links.index.shape[1] < m:
                score[rows] = np.where(links.index[:, -1] < 0, -np.inf, links.score[:, -1])
        return score

    def alone(self) -> float:
        """What a record counts when it is not linked: less than any link can make up for."""
        scores = np.concatenate([links.score[links.index >= 0] for _, links in self.parts])
        return float(2 * scores.min() - scores.max() - 1) if len(scores) else -1.0

    def graph(self, alone: Array) -> Graph:
        """The candidates that are better than staying alone."""
        better = [(links.index >= 0) & (links.score > alone[rows, None]) for rows, links in self.parts]
        count = np.zeros(self.n, dtype=np.int64)
        for (rows, _), good in zip(self.parts, better, strict=True):
            count[rows] = good.sum(axis=1)
        start = np.concatenate([[0], np.cumsum(count)])
        other, weight = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
        for (rows, links), good in zip(self.parts, better, strict=True):
            place = (start[rows, None] + np.cumsum(good, axis=1) - 1)[good]
            other[place], weight[place] = links.index[good], (links.score - alone[rows, None])[good]
        return Graph(start, other, weight)


def _solve(graph: Graph, m: int, before: Matching | None = None) -> tuple[Matching, float]:
    """The heaviest matching, and the prices' sum less its weight (0 where that is rounding)."""
    matching = heaviest(graph, m, before)
    row = np.repeat(np.arange(len(matching.partner)), np.diff(graph.start))
    weight = float(graph.weight[graph.other == matching.partner[row]].sum())
    bound = float(best_profit(graph, matching.price).sum() + matching.price.sum())
    return matching, 0.0 if bound - weight <= ROUNDING * bound else bound - weight
