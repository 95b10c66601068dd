"""One-to-one linkage: assign each known record at most one released record so that the sum of scores is largest.

Small files are assigned exactly from the full score matrix. Large files are assigned from the best candidates of each
record; the result comes with a gap, an upper bound on how far the optimum lies above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.risk.linkage.graph import Graph, best_profit
from sdcmap.risk.linkage.link_search import Links
from sdcmap.risk.linkage.matching import Matching, find_heaviest_matching

PAIR_TOLERANCE = 1e-13  # relative; a pair this close to the row's best profit counts as optimal


@jit
def complete_assignment(score: Array, partner: Array, owner: Array, price: Array) -> None:
    """Complete an assignment of a score matrix, starting from prices and partners that are nearly right.

    Updates `partner`, `owner` and `price` in place. The total is that of scipy's `linear_sum_assignment`, which starts
    without prices. In a square matrix any start prices are valid, because every column is assigned in the end
    (Jonker & Volgenant 1987). With no partners and prices of 0, the matrix may have more columns than rows.
    """
    n, m = score.shape
    # Dissolve pairs that violate complementary slackness: the row would gain more at another column.
    for i in range(n):
        if partner[i] >= 0:
            best = -np.inf
            for j in range(m):
                best = max(best, score[i, j] - price[j])
            score_here = score[i, partner[i]]
            if score_here - price[partner[i]] < best - PAIR_TOLERANCE * (abs(score_here) + price[partner[i]]):
                owner[partner[i]] = -1
                partner[i] = -1
    # Assign the remaining rows one by one; the scratch arrays are shared by all of them.
    distance, parent = np.empty(m), np.empty(m, dtype=np.int64)
    columns = np.empty(m, dtype=np.int64)
    for i in range(n):
        if partner[i] < 0:
            _augment(score, partner, owner, price, i, distance, parent, columns)


@inner_jit
def _augment(
    score: Array, partner: Array, owner: Array, price: Array, root: int, distance: Array, parent: Array, columns: Array
) -> None:
    """Assign the row `root` along the augmenting path of least loss (Dijkstra over columns), and raise prices on it."""
    m = score.shape[1]
    # The distance of a column is what the root row loses by taking it at its current price.
    for j in range(m):
        columns[j] = j
        distance[j] = price[j] - score[root, j]
        parent[j] = root
    # `columns` is partitioned: [0, scanned) are done, [scanned, ready) lie at distance `level`, the rest are farther.
    ready, scanned, level, end = 0, 0, 0.0, -1
    while end < 0:
        if scanned == ready:
            # All columns at the last distance are done: collect those at the next smallest distance.
            level = distance[columns[ready]]
            for k in range(ready, m):
                j = columns[k]
                if distance[j] <= level:
                    if distance[j] < level:
                        ready, level = scanned, distance[j]
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
            # A free column at the smallest distance ends the path.
            for k in range(scanned, ready):
                if owner[columns[k]] < 0:
                    end = columns[k]
                    break
            if end >= 0:
                break
        # Otherwise continue the path through the row that owns the column, which would have to move elsewhere.
        column = columns[scanned]
        scanned += 1
        i = owner[column]
        base = level - (price[column] - score[i, column])
        row = score[i]
        for k in range(ready, m):
            j = columns[k]
            candidate = base + price[j] - row[j]
            if candidate < distance[j]:
                distance[j], parent[j] = candidate, i
                if candidate <= level:
                    if owner[j] < 0:
                        end = j
                        break
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
        if end >= 0:
            break
    # Raise the prices of the scanned columns, so that all pairs stay optimal for their rows (dual feasibility).
    for k in range(scanned):
        j = columns[k]
        price[j] += level - distance[j]
    # Walk back along the path and hand each column to the row before it.
    while True:
        i = parent[end]
        after = partner[i]
        partner[i], owner[end] = end, i
        if i == root:
            break
        end = after


GAP_TOLERANCE = 1e-9  # relative; a smaller gap is floating-point rounding and counts as proof of the optimum
FIRST_CANDIDATES = 50  # candidates per record; a sparse assignment on them gives start prices for the full matrix
TIE_BITS = 24  # leading binary digits in which two scores must agree to tie (about seven decimal digits)


def assign_all_pairs(score: Array) -> Array:
    """Return the best full assignment of an n x m matrix of float64 scores: the column of each row (-1: none).

    Every record of the shorter side is linked. Scores are rounded in place, so that scores that differ only by
    floating-point rounding tie. Otherwise the processor would decide which of many equally good assignments is returned.
    """
    from scipy.optimize import linear_sum_assignment

    round_to_tie(score)
    n, m = score.shape
    if n == m > 4 * FIRST_CANDIDATES and np.isfinite(score).all():
        # Large square matrix: solve a sparse problem first and complete it from its prices, which is much faster.
        # The candidates are sorted by column because numpy orders equal scores differently on different processors.
        index = np.sort(np.argpartition(score, m - FIRST_CANDIDATES, axis=1)[:, m - FIRST_CANDIDATES :], axis=1)
        near = np.take_along_axis(score, index, axis=1)
        # A record stays unlinked at first if linking it would cost more than its worst candidate is worth.
        start = find_heaviest_matching(_CandidateLists(Links(index, near)).graph(near.min(axis=1)), m)
        complete_assignment(score, start.partner, start.owner, start.price)
        return start.partner
    row, column = linear_sum_assignment(score, maximize=True)
    partner = np.full(n, -1)
    partner[row] = column
    return partner


def round_to_tie(score: Array) -> None:
    """Round each score, in place, to its first `TIE_BITS` binary digits."""
    bits = score.view(np.int64)
    unit = 1 << (52 - TIE_BITS)
    bits += unit >> 1
    bits &= -unit


class Assignment(NamedTuple):
    """A one-to-one assignment of least cost, and the prices that prove it."""

    link: Array  # int32, one per record: its target; -1: none
    prices: Array  # float64, one per target, at least 0; start prices for the next, similar problem
    total: float  # the sum of the costs of all links
    gap: float  # certificate: the optimum costs at most this much less; 0: proved optimal


def assign(
    candidates: Array,
    costs: Array,
    n_targets: int,
    *,
    prices: Array | None = None,
    widen: Callable[[Array, int], tuple[Array, Array]] | None = None,
    limit: int = 10_000_000,
) -> Assignment:
    """Link each record to at most one target: as many links as possible, and among these the least sum of costs.

    It runs on the device of the block that calls it (`kernels.device.use_device`). Every device and every number of
    threads gives the same total. Which of several assignments of that total is returned may differ.

    Parameters
    ----------
    candidates : n x k, the targets that each record may be linked to, cheapest first; -1: none
    costs : n x k, ascending in each row; infinite where there is no candidate
    n_targets : number of targets
    prices : start prices of the targets, such as those of a similar problem; they change the time, not the total
    widen : widen(records, k) returns candidates and costs of the k cheapest targets of these records. With it the
        optimum is over all pairs: records that may need other targets get longer lists. Without it, it is over the lists.
    limit : maximum number of candidates in memory; beyond it lists are not widened, and the gap says what may be lost
    """
    find = None if widen is None else lambda rows, k: _links_of(*widen(rows, k))
    matching, gap = _assign_lists(_CandidateLists(_links_of(candidates, costs)), find, n_targets, limit, prices)
    link = matching.partner.astype(np.int32)
    return Assignment(link, matching.price, -matching.total, gap)


def _links_of(candidates: Array, costs: Array) -> Links:
    """Return candidates and costs as links, whose scores are minus the costs."""
    return Links(candidates, np.where(candidates >= 0, -costs.astype(float), -np.inf))


def assign_from_candidates(
    links: Links, find_candidates: Callable[[Array, int], Links], m: int, limit: int = 10_000_000
) -> tuple[Array, float]:
    """Return the best one-to-one linkage over all pairs, found from the best candidates of each record.

    Parameters
    ----------
    links : the candidates to start with, one row for each known record
    find_candidates : find_candidates(rows, k) returns the k best links of these known records
    m : number of released records
    limit : maximum number of candidates in memory

    Returns
    -------
    The released row of each known record (-1: unlinked), and the gap: an upper bound on how far the optimum lies above
    the total (0: proved optimal).
    """
    solution, gap = _assign_lists(_CandidateLists(links), find_candidates, m, limit)
    return solution.partner, gap


class _Solution(NamedTuple):
    """Partner of each record (-1: none), prices of the targets, and the sum of the scores of all links."""

    partner: Array
    price: Array
    total: float


def _assign_lists(
    lists: _CandidateLists,
    find_candidates: Callable[[Array, int], Links] | None,
    m: int,
    limit: int,
    prices: Array | None = None,
) -> tuple[_Solution, float]:
    """Return the best one-to-one linkage and its gap; without `find_candidates`, among the pairs of the lists only.

    A pair outside the candidates of record i scores at most W_i, the score of its worst candidate. It cannot improve the
    linkage if W_i - (least price) <= profit of i. Records for which this fails, and unlinked records while a partner is
    free, get four times as many candidates. This repeats until no record fails, or the candidates would exceed `limit`.
    """
    matching: Matching | None = None if prices is None else Matching.from_prices(lists.n, prices)
    while True:
        # Unlinked records get a value so low that the solver links as many records as it can.
        unlinked_value, last = lists.unlinked_value(), lists.worst_scores(m)
        graph = lists.graph(np.full(lists.n, unlinked_value))
        matching, gap, weight = _solve(graph, m, matching)
        unlinked = matching.partner < 0
        solution = _Solution(matching.partner, matching.price, weight + unlinked_value * int((~unlinked).sum()))
        if find_candidates is None:
            return solution, gap
        # Test optimality: could a pair outside the candidates beat the profit of its record at the cheapest price?
        missing = np.maximum(0.0, last - unlinked_value - matching.price.min(initial=np.inf) - matching.profit)
        missing[missing <= GAP_TOLERANCE * abs(unlinked_value)] = 0.0
        # An unlinked record may still find a partner among pairs that are not listed yet.
        seeking = unlinked & (last > -np.inf) & bool((matching.owner < 0).any())
        failing = np.flatnonzero((missing > 0) | seeking)
        width = min(m, 4 * lists.width)
        # Stop when the optimum is proved, or when more candidates would not fit into memory.
        if len(failing) == 0 or lists.count_except(failing) + len(failing) * width > limit:
            break
        lists.replace(failing, find_candidates(failing, width))
    gap += float(missing.sum())
    if len(failing):
        # The optimum may link more records than this result; the gap compares totals of linked pairs only.
        excess = int(unlinked.sum()) - max(0, lists.n - m)
        gap = max(0.0, gap + max(0, excess) * max(0.0, unlinked_value))
    return solution, gap


class _CandidateLists:
    """Candidates of each record, with longer lists for some records than for others."""

    def __init__(self, links: Links) -> None:
        self.parts = [(np.arange(len(links.index)), links)]
        self.width = links.index.shape[1]  # of the longest list

    def replace(self, rows: Array, links: Links) -> None:
        """Replace the candidates of these records."""
        unchanged = []
        for of, old in self.parts:
            stay = ~np.isin(of, rows)
            unchanged.append((of[stay], Links(old.index[stay], old.score[stay])))
        self.parts = [*(part for part in unchanged if len(part[0])), (rows, links)]
        self.width = max(self.width, links.index.shape[1])

    @property
    def n(self) -> int:
        return sum(len(rows) for rows, _ in self.parts)

    def count_except(self, without: Array) -> int:
        """Return the number of candidates, not counting those of the records `without`."""
        return sum((~np.isin(rows, without)).sum() * links.index.shape[1] for rows, links in self.parts)

    def worst_scores(self, m: int) -> Array:
        """Return the score of each record's worst candidate (-inf where all pairs are listed).

        No unlisted pair of the record scores higher.
        """
        score = np.full(self.n, -np.inf)
        for rows, links in self.parts:
            if 0 < links.index.shape[1] < m:
                score[rows] = np.where(links.index[:, -1] < 0, -np.inf, links.score[:, -1])
        return score

    def unlinked_value(self) -> float:
        """Return the value of staying unlinked, low enough that no gain elsewhere can make up for losing a link."""
        scores = np.concatenate([links.score[links.index >= 0] for _, links in self.parts])
        return float(2 * scores.min() - scores.max() - 1) if len(scores) else -1.0

    def graph(self, unlinked_value: Array) -> Graph:
        """Return the graph of all candidates that are better than staying unlinked."""
        better = [(links.index >= 0) & (links.score > unlinked_value[rows, None]) for rows, links in self.parts]
        count = np.zeros(self.n, dtype=np.int64)
        for (rows, _), good in zip(self.parts, better, strict=True):
            count[rows] = good.sum(axis=1)
        start = np.concatenate([[0], np.cumsum(count)])
        other, weight = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
        for (rows, links), good in zip(self.parts, better, strict=True):
            slot = (start[rows, None] + np.cumsum(good, axis=1) - 1)[good]
            other[slot], weight[slot] = links.index[good], (links.score - unlinked_value[rows, None])[good]
        return Graph(start, other, weight)


def _solve(graph: Graph, m: int, before: Matching | None = None) -> tuple[Matching, float, float]:
    """Return the heaviest matching, the gap between its weight and the dual bound (0 if only rounding), and its weight."""
    matching = find_heaviest_matching(graph, m, before)
    row = np.repeat(np.arange(len(matching.partner)), np.diff(graph.start))
    weight = float(graph.weight[graph.other == matching.partner[row]].sum())
    # Profits and prices form a feasible dual solution, so their sum bounds the weight of every matching.
    bound = float(best_profit(graph, matching.price).sum() + matching.price.sum())
    return matching, 0.0 if bound - weight <= GAP_TOLERANCE * bound else bound - weight, weight
