"""Cost models: what a pair of records costs, and the links with the least cost.

An attack states its costs in `Attack.cost_models`. The functions here link each released record to its cheapest known
record, or all records one to one. The share of true links needs no links at all: it is enough to know whether some known
record costs less than the true one, which is decided for most targets after a few known records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Method
from sdcmap.risk.linkage import file_pair
from sdcmap.risk.linkage.assignment import assign_all_pairs, assign_from_candidates
from sdcmap.risk.linkage.field_costs import BELOW, SAME, Cost, block_costs, mean_costs, mean_of_pairs
from sdcmap.risk.linkage.file_pair import CANDIDATES_PER_RECORD, LinkTable, Pair, link_nearest
from sdcmap.risk.linkage.link_search import Links, best_links
from sdcmap.risk.linkage.pair_search import ABSOLUTE_TIE, RELATIVE_TIE, CheapestSearch, RivalSearch
from sdcmap.risk.linkage.stated_columns import find_certain_columns

TARGET_PARTS = 16  # parts in which targets are attacked; after each part an attack that cannot lead is stopped
MIN_TARGETS_PER_PART = 64  # so that the overhead of a part stays small
MAX_MATRIX_PAIRS = 2_000_000  # pairs; larger files are assigned from candidates, to bound memory
IMPOSSIBLE_COST = 1e6  # of a value that cannot belong to the record; more than all other fields together


class CostModel(NamedTuple):
    """The costs of pairs for some of the released records: all of them, or those of a fold."""

    positions: Array  # of the released records to which the costs apply
    costs: list[Cost]
    mean: bool = False  # take the mean over the fields present in both records instead of the sum

    def block(self, known: Array | slice, released: Array) -> Array:
        """Return the costs of these known records (rows) against these released records (columns)."""
        return (mean_costs if self.mean else block_costs)(self.costs, known, released)


def build_cost_model(pair: Pair, costs: Sequence[Cost], *, mean: bool = False) -> CostModel:
    """Return a cost model for all released records; without any field, every pair costs 0."""
    zeros = np.zeros(len(pair.known)), np.zeros(len(pair.released))
    return CostModel(np.arange(len(pair.released)), list(costs) or [Cost(SAME, *zeros)], mean)


class Hits(NamedTuple):
    """The result of an attack for each target; targets that were not attacked count as re-identified."""

    correct: Array  # the probability that the attacker takes the true record: 1/t if it ties with t - 1 others
    is_cheapest: Array  # whether the true record is among the cheapest, so that one-to-one links could find it
    complete: bool = True  # False: the attack was stopped when it could no longer lead; its shares are upper bounds

    @property
    def rate(self) -> float:
        """Return the share of targets that are re-identified."""
        return math.fsum(self.correct) / len(self.correct)

    @property
    def potential(self) -> float:
        """Return the share of targets whose true record is among the cheapest."""
        return float(self.is_cheapest.mean())


class BestSoFar(NamedTuple):
    """The best shares of all attacks so far, which an attack must reach to be continued."""

    rate: float
    potential: float


NO_RESULT = BestSoFar(0.0, 0.0)


def find_certain_fields(pair: Pair, method: Method | None) -> dict[int, Cost]:
    """Return a cost, by column index, for columns that must be equal for an attacker without errors."""
    columns = find_certain_columns(pair, method)
    return {index: _equality_cost(known, released) for index, (known, released) in columns.items()}


def find_open_fields(pair: Pair) -> dict[int, Cost]:
    """Return a cost, by column index, for columns that were released unchanged for all records and are not constant.

    An attacker who holds the original records, and has read which columns these are, requires them to be equal. Empty
    for an attacker with their own archive, which may contain errors.
    """
    with_truth = np.flatnonzero(pair.truth >= 0)
    fields = {}
    for index, known in enumerate(pair.known_columns if pair.holds_originals and len(with_truth) else ()):
        known_values, released_values = known[pair.truth[with_truth]], pair.released[with_truth, index]
        is_constant = ((known == known[0]) | (np.isnan(known) & np.isnan(known[0]))).all()
        unchanged = (known_values == released_values) | (np.isnan(known_values) & np.isnan(released_values))
        if not is_constant and unchanged.all():
            fields[index] = _equality_cost(known, pair.released[:, index])
    return fields


def find_missing_fields(pair: Pair) -> dict[int, Cost]:
    """Return a cost, by column index, of which values are missing, for an attacker who holds the original records.

    The method note says whether missing values were added, imputed or left alone. So a pair is ruled out where a value is
    missing in one record only, if no true pair differs so: in both directions, or in one of them.
    """
    with_truth = np.flatnonzero(pair.truth >= 0)
    fields = {}
    for index, known in enumerate(pair.known_columns if pair.holds_originals and len(with_truth) else ()):
        known_missing, released_missing = np.isnan(known), np.isnan(pair.released[:, index])
        if not known_missing.any() and not released_missing.any():
            continue
        a, b = known_missing[pair.truth[with_truth]], released_missing[with_truth]
        is_added, is_imputed = bool((b & ~a).any()), bool((a & ~b).any())
        # BELOW rules out a released 1 for a known 0: an added missing value, or with the sign changed an imputed one
        sign = 1.0 if is_imputed else -1.0
        kind = SAME if not is_added and not is_imputed else BELOW
        if not (is_added and is_imputed):
            fields[index] = Cost(kind, sign * known_missing, sign * released_missing, scale=0.5, cap=IMPOSSIBLE_COST)
    return fields


def _equality_cost(known: Array, released: Array) -> Cost:
    """Return a cost that rules out pairs with different values; missing is a value of its own."""
    if np.isnan(known).any() or np.isnan(released).any():
        # As codes, because a mean over the fields leaves out those with a missing value.
        code = np.unique(np.concatenate([known, released]), return_inverse=True)[1].astype(float)
        known, released = code[: len(known)], code[len(known) :]
    return Cost(SAME, known, released, cap=IMPOSSIBLE_COST)


def require_equality(
    models: Sequence[CostModel], certain: Mapping[int, Cost], *, has_column_costs: bool
) -> list[CostModel]:
    """Return the cost models with equality required on the certain columns (by column index).

    has_column_costs : the models have one cost for each column, which the equality replaces; otherwise it is added
    """
    if not has_column_costs:
        return [model._replace(costs=[*model.costs, *certain.values()]) for model in models]
    return [c._replace(costs=[certain.get(index, cost) for index, cost in enumerate(c.costs)]) for c in models]


def attack_targets(pair: Pair, models: Sequence[CostModel], targets: Array, best_so_far: BestSoFar = NO_RESULT) -> Hits:
    """Link each target (position of a released record) to its cheapest known record, and return the hits.

    The targets are attacked in parts. The attack stops as soon as it cannot reach `best_so_far` any more, whatever the
    remaining targets bring.
    """
    searches = [(model.positions, RivalSearch(model.costs, pair.truth, mean=model.mean)) for model in models]
    # Targets not attacked yet count as hits, so that the rate of an unfinished attack is an upper bound.
    correct, is_cheapest = np.ones(len(targets)), np.ones(len(targets), dtype=np.bool_)
    parts = min(TARGET_PARTS, max(1, len(targets) // MIN_TARGETS_PER_PART))
    for part in np.array_split(np.arange(len(targets)), parts):
        for positions, search in searches:
            selected = part[np.isin(targets[part], positions)]
            beaten, ties = search(targets[selected])
            correct[selected], is_cheapest[selected] = np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1)), ~beaten
        result = Hits(correct, is_cheapest, complete=False)
        if part[-1] + 1 < len(targets) and result.rate < best_so_far.rate and result.potential < best_so_far.potential:
            return result
    return Hits(correct, is_cheapest)


def attack_persons(pair: Pair, models: Sequence[CostModel], targets: Array) -> Hits:
    """Name the cheapest released record for the person of each target, and return the hits.

    It is the attack of somebody with an archive. They know few people and many released records, so they look for each
    person in the release. Linking each record to the nearest of 20 people would be right for one target in 20 by chance.
    """
    correct, is_cheapest = np.zeros(len(targets)), np.zeros(len(targets), dtype=np.bool_)
    cost = np.empty((max(1, MAX_MATRIX_PAIRS // len(pair.released)), len(pair.released)))
    for start in range(0, len(targets), len(cost)):
        part = targets[start : start + len(cost)]
        block = cost[: len(part)]
        for model in models:
            block[:, model.positions] = model.block(pair.truth[part], model.positions)
        least = block.min(axis=1, keepdims=True)
        ties = block <= least * (1 + RELATIVE_TIE) + ABSOLUTE_TIE
        own = ties[np.arange(len(part)), part]
        selected = slice(start, start + len(part))
        correct[selected], is_cheapest[selected] = own / ties.sum(axis=1), own
    return Hits(correct, is_cheapest)


def link_to_cheapest(
    pair: Pair, models: Sequence[CostModel], positions: Array | None = None, keep: int = CANDIDATES_PER_RECORD
) -> LinkTable:
    """Link each released record, or those at these positions, to its cheapest known record; `keep` as in `link_nearest`."""
    rows = np.arange(len(pair.released)) if positions is None else positions
    return link_nearest(pair, lambda known, count: _cheapest_search(models, known)(rows, count), rows, keep=keep)


def link_to_known(pair: Pair, models: Sequence[CostModel], known_positions: Array) -> LinkTable:
    """Return the links of `link_to_cheapest` to the known records at these positions.

    Their probabilities are calibrated among themselves. This avoids linking every record of a large file: a released
    record is linked to one of them only if no other known record costs less than the cheapest of them.
    """
    groups = np.unique(pair.known_group[known_positions])
    first_of_group = np.unique(pair.known_group, return_index=True)[1][groups]
    is_reached = np.zeros(len(pair.released), dtype=np.bool_)
    for model in models:
        # Take the cheapest wanted record as if it were the true one; a rival that costs less rules the link out.
        candidate = np.full(len(pair.released), -1)
        candidate[model.positions] = first_of_group[_search_among(model, first_of_group)(model.positions, 1)[0][:, 0]]
        is_reached[model.positions] = ~RivalSearch(model.costs, candidate, mean=model.mean)(model.positions)[0]
    rows = np.flatnonzero(is_reached)
    return link_nearest(pair, lambda known, keep: _cheapest_search(models, known)(rows, keep), rows, groups)


def link_one_to_one_by_cost(pair: Pair, models: Sequence[CostModel], *, widen: bool = True) -> LinkTable:
    """Link each known record to at most one released record, so that the sum of costs is least.

    Records with equal values are exchanged at random, as in `link_one_to_one`.

    widen : in large files, add candidates until no other pair can improve the links; otherwise the sum is the least
        among the best candidates of each record, which takes a fraction of the time
    """
    n, m = len(pair.known), len(pair.released)
    file_pair.check_sizes(n, m)
    if n * m <= MAX_MATRIX_PAIRS:
        score = np.empty((m, n))
        for model in models:
            score[model.positions] = -model.block(slice(None), model.positions).T
        partner, gap, links = assign_all_pairs(score), 0.0, best_links(score, 2)
    else:
        best = _cheapest_search(models)
        links = best(np.arange(m), CANDIDATES_PER_RECORD)
        partner, gap = assign_from_candidates(links, best, n, limit=file_pair.MAX_CANDIDATES if widen else 0)
    released = np.flatnonzero(partner >= 0)
    known = partner[released]
    weight = score[released, known] if n * m <= MAX_MATRIX_PAIRS else _pair_scores(models, known, released)
    # The margin compares the link with the best other candidate; with a single known record there is none.
    other = weight
    if links.index.shape[1] > 1:
        is_first = links.index[released, 0] == known
        other = np.where(is_first, links.score[released, 1], links.score[released, 0])
    return file_pair.one_to_one_table(pair, released, known, weight, other, gap)


def _pair_scores(models: Sequence[CostModel], known: Array, released: Array) -> Array:
    """Return the scores (minus the costs) of these pairs."""
    weight = np.empty(len(known))
    for model in models:
        selected = np.flatnonzero(np.isin(released, model.positions))
        pairs = known[selected], released[selected]
        each = (field.pairs(*pairs) for field in model.costs)
        weight[selected] = -(mean_of_pairs(model.costs, *pairs) if model.mean else sum(each, np.zeros(len(selected))))
    return weight


def _cheapest_search(models: Sequence[CostModel], known: Array | slice = slice(None)) -> Callable[[Array, int], Links]:
    """Return a function that finds the cheapest of these known records for released records."""
    searches = [_search_among(model, known) for model in models]

    def best(rows: Array, keep: int) -> Links:
        count = min(keep, len(models[0].costs[0].known[known]))
        links = Links(np.full((len(rows), count), -1, dtype=np.int32), np.full((len(rows), count), -np.inf))
        for model, search in zip(models, searches, strict=True):
            selected = np.flatnonzero(np.isin(rows, model.positions))
            links.index[selected], links.score[selected] = search(rows[selected], count)
        return links

    return best


def _search_among(model: CostModel, known: Array | slice) -> CheapestSearch:
    """Return the search among these known records."""
    return CheapestSearch([cost._replace(known=cost.known[known]) for cost in model.costs], mean=model.mean)
