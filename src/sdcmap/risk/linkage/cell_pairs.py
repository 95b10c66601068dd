"""Attacks within cells: all pairs of records that agree on the columns an attacker is certain about.

An attacker who requires equality of some columns compares a released record only with the known records of its cell.
Cells are small, so their pairs are listed once for all attacks. Each attack then only adds up its costs over this list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit, run_parts
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.linkage.assignment import GAP_TOLERANCE, round_to_tie
from sdcmap.risk.linkage.cost_models import CostModel, Hits
from sdcmap.risk.linkage.field_costs import Cost, cost_of_values, mean_of_pairs
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.graph import Graph, best_profit
from sdcmap.risk.linkage.matching import Matching, find_heaviest_matching
from sdcmap.risk.linkage.pair_search import ABSOLUTE_TIE, RELATIVE_TIE

PAIRS_PER_PART = 50_000  # pairs whose costs one thread adds up at a time
MAX_CELL_PAIRS = 2_000_000  # pairs within cells; beyond, the searches that skip blocks of records need less memory


class CellPairs(NamedTuple):
    """The pairs of records within cells, grouped by released record."""

    start: Array  # the pairs of the released record at position j are start[j] to start[j + 1] - 1
    known: Array  # position of the known record of each pair
    released: Array
    own: Array  # the true pair of each released record; -1: none


class OneToOneLinks(NamedTuple):
    """One-to-one links of an attack: positions, the score of each link and of the best other candidate, and prices."""

    known: Array
    released: Array
    score: Array
    other: Array
    gap: float
    matching: Matching


def find_cell_pairs(pair: Pair, certain: Mapping[int, Cost], positions: Array) -> CellPairs | None:
    """List the pairs of the released records at these positions with known records that agree on the certain columns.

    Return None without certain columns, if the true record of a released one lies in another cell, or if there are
    more than `MAX_CELL_PAIRS` pairs.
    """
    if not certain:
        return None
    n, m = len(pair.known), len(pair.released)
    codes = [np.unique(np.concatenate([c.known, c.released]), return_inverse=True)[1] for c in certain.values()]
    cell, _ = compress([code.astype(np.int32) for code in codes])
    known_cell, released_cell = cell[:n], cell[n:]
    targets = pair.targets
    size = np.bincount(known_cell, minlength=int(cell.max()) + 1)
    candidates = np.zeros(m, dtype=np.int64)
    candidates[positions] = size[released_cell[positions]]
    if (known_cell[pair.truth[targets]] != released_cell[targets]).any() or candidates.sum() > MAX_CELL_PAIRS:
        return None
    start = np.concatenate([[0], np.cumsum(candidates)])
    by_cell = np.argsort(known_cell, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(size)])[released_cell]
    released = np.repeat(np.arange(m, dtype=np.int32), candidates)
    known = by_cell[np.arange(start[-1]) - (start[:-1] - first)[released]]
    own = np.full(m, -1)
    true = np.flatnonzero(known == pair.truth[released])
    own[released[true]] = true
    return CellPairs(start, known, released, own)


def cell_costs(cells: CellPairs, models: Sequence[CostModel], certain: Mapping[int, Cost]) -> Array:
    """Return the cost of each pair; equality of the certain columns costs nothing within a cell."""
    equalities = {id(cost) for cost in certain.values()}
    total = np.empty(len(cells.known))
    for model in models:
        if len(model.positions) == len(cells.own):
            selected: Array | slice = slice(None)
        else:
            is_attacked = np.zeros(len(cells.own), dtype=np.bool_)
            is_attacked[model.positions] = True
            selected = np.flatnonzero(is_attacked[cells.released])
        known, released = cells.known[selected], cells.released[selected]
        if model.mean:
            total[selected] = mean_of_pairs(model.costs, known, released)
        else:
            total[selected] = _sum_costs([c for c in model.costs if id(c) not in equalities], known, released)
    return total


def _sum_costs(costs: Sequence[Cost], known: Array, released: Array) -> Array:
    """Return the sum of these costs for each pair; parts of the pairs run on several threads."""
    total = np.zeros(len(known))

    def run(start: int) -> None:
        part = slice(start, start + PAIRS_PER_PART)
        for cost in costs:
            numbers = cost.kind, cost.scale, cost.cap, cost.both, cost.one
            _add_costs(total[part], known[part], released[part], cost.known, cost.released, *numbers, cost.table)

    run_parts(run, range(0, len(known), PAIRS_PER_PART))
    return total


@jit
def _add_costs(
    total: Array,
    known: Array,
    released: Array,
    a: Array,
    b: Array,
    kind: int,
    scale: float,
    cap: float,
    both: float,
    one: float,
    table: Array,
) -> None:
    for k in range(len(total)):
        total[k] += cost_of_values(a[known[k]], b[released[k]], kind, scale, cap, both, one, table)


def attack_cells(cells: CellPairs, cost: Array, targets: Array) -> Hits:
    """Link each target to the cheapest known record of its cell, and return the hits."""
    beaten, ties = np.zeros(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)
    _find_rivals(cells.start, cost, cells.own[targets], targets, beaten, ties)
    return Hits(np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1)), ~beaten)


@jit
def _find_rivals(start: Array, cost: Array, own: Array, targets: Array, beaten: Array, ties: Array) -> None:
    """Find out whether a pair costs less than the true one, and how many cost the same."""
    for t in range(len(targets)):
        if own[t] < 0:
            beaten[t] = True
            continue
        own_cost = cost[own[t]]
        slack = RELATIVE_TIE * own_cost + ABSOLUTE_TIE
        for k in range(start[targets[t]], start[targets[t] + 1]):
            beaten[t] |= cost[k] < own_cost - slack
            ties[t] += cost[k] <= own_cost + slack


def link_cells_one_to_one(
    cells: CellPairs, cost: Array, known_count: int, start_from: Matching | None = None
) -> OneToOneLinks:
    """Link each known record to at most one released record of its cell, so that the sum of costs is least.

    start_from : the matching of another attack; its prices are a good start where the two attacks agree
    """
    # Rounded, so that costs that differ only by floating-point error tie on every machine.
    score = -cost
    round_to_tie(score)
    lowest, highest = (float(score.min()), float(score.max())) if len(score) else (0.0, 0.0)
    # Scores are put on one scale from 0 to 1, so that the prices of one attack suit the next. A link is worth more than
    # all that a cell could gain without it, so that as many records as possible are linked.
    unit = highest - lowest or 1.0
    worth = 1.0 + float(np.diff(cells.start).max(initial=0))
    graph = Graph(cells.start, cells.known, (score - lowest) / unit + worth)
    matching = find_heaviest_matching(graph, known_count, start_from)
    chosen, other = _read_matching(cells.start, cells.known, score, matching.partner)
    released = np.flatnonzero(chosen >= 0)
    chosen = chosen[released]
    # Profits and prices form a feasible dual solution, so their sum bounds the weight of every matching.
    bound = float(best_profit(graph, matching.price).sum() + matching.price.sum())
    gap = bound - float(graph.weight[chosen].sum())
    gap = 0.0 if gap <= GAP_TOLERANCE * bound else gap * unit
    return OneToOneLinks(cells.known[chosen], released, score[chosen], other[released], gap, matching)


@jit
def _read_matching(start: Array, known: Array, score: Array, partner: Array) -> tuple[Array, Array]:
    """Return the pair that links each released record (-1: none), and the best score of its other pairs."""
    chosen, other = np.full(len(partner), -1), np.full(len(partner), -np.inf)
    for j in range(len(partner)):
        for k in range(start[j], start[j + 1]):
            if known[k] == partner[j]:
                chosen[j] = k
            else:
                other[j] = max(other[j], score[k])
    return chosen, other
