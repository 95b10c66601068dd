"""Attacks that add up what a pair of records costs, field by field: who is found, and the links.

An attack states its costs (`Attack.courses`); here each released record is linked to the cheapest known one, or all to one
another one to one. A rate alone needs no links: the true record is outrun or it is not, and most targets are decided after
a few known records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Method
from sdcmap.risk.linkage import file_pair
from sdcmap.risk.linkage.assignment import dense, one_to_one
from sdcmap.risk.linkage.field_costs import SAME, Cost, block_costs, mean_costs, mean_of_pairs
from sdcmap.risk.linkage.file_pair import KEEP, LinkTable, Pair, link_nearest
from sdcmap.risk.linkage.link_search import Links, best_links
from sdcmap.risk.linkage.pair_search import Race, Search
from sdcmap.risk.linkage.stated_columns import certain_columns

PARTS, LEAST_PART = 16, 64  # in which targets are attacked, and how many a part has at least
MATRIX_PAIRS = 2_000_000  # up to so many pairs one-to-one links are made from every cost at once
CERTAIN = 1e6  # what a value costs that cannot be


class CostModel(NamedTuple):
    """What pairs cost, for some of the released records (places): all of them, or those of a fold."""

    places: Array
    costs: list[Cost]
    mean: bool = False  # over the fields that both have, in place of the sum

    def block(self, known: Array | slice, released: Array) -> Array:
        """The costs of these known records (rows) against these released ones (columns)."""
        return (mean_costs if self.mean else block_costs)(self.costs, known, released)


def cost_model_of(pair: Pair, costs: Sequence[Cost], *, mean: bool = False) -> CostModel:
    """The course of all released records; without a field, every pair costs nothing."""
    zeros = np.zeros(len(pair.known)), np.zeros(len(pair.released))
    return CostModel(np.arange(len(pair.released)), list(costs) or [Cost(SAME, *zeros)], mean)


class Hits(NamedTuple):
    """How targets fared, one after the other; those that were left out count as found."""

    found: Array  # the probability that the snooper takes the true record: of t that tie, one
    possible: Array  # whether the true record is among the cheapest: what one-to-one links could find of it
    complete: bool = True  # False: the attack was left as soon as it could not lead; its shares are upper bounds

    @property
    def rate(self) -> float:
        return math.fsum(self.found) / len(self.found)

    @property
    def potential(self) -> float:
        return float(self.possible.mean())


class BestSoFar(NamedTuple):
    """The best shares so far: found, and with the true record among the cheapest."""

    rate: float
    potential: float


NOBODY = BestSoFar(0.0, 0.0)


def certain_fields(pair: Pair, method: Method | None) -> dict[int, Cost]:
    """The columns, by their place, that a snooper without errors asks to be equal."""
    columns = certain_columns(pair, method).items()
    return {place: Cost(SAME, *sides, cap=CERTAIN, one=CERTAIN) for place, sides in columns}


def open_fields(pair: Pair) -> dict[int, Cost]:
    """The columns, by their place, that were released as they were, of everybody, and are not the same for all: a snooper
    without errors who has read which these are asks them to be equal. None, where he holds a file of his own."""
    held = np.flatnonzero(pair.truth >= 0)
    fields = {}
    for place, known in enumerate(pair.known_columns if pair.originals and len(held) else ()):
        ours, theirs = known[pair.truth[held]], pair.released[held, place]
        alike = (known == known[0]) | (np.isnan(known) & np.isnan(known[0]))
        if not alike.all() and ((ours == theirs) | (np.isnan(ours) & np.isnan(theirs))).all():
            fields[place] = Cost(SAME, known, pair.released[:, place], cap=CERTAIN, one=CERTAIN)
    return fields


def asking_first(courses: Sequence[CostModel], certain: Mapping[int, Cost], *, by_column: bool) -> list[CostModel]:
    """The attack that asks for equality first, on the columns (by their place) whose values are certain; by_column: it has
    one cost for each column, in whose place the question comes."""
    if not by_column:
        return [course._replace(costs=[*course.costs, *certain.values()]) for course in courses]
    return [c._replace(costs=[certain.get(place, cost) for place, cost in enumerate(c.costs)]) for c in courses]


def hits(pair: Pair, courses: Sequence[CostModel], targets: Array, lead: BestSoFar = NOBODY) -> Hits:
    """Who is found among the released records at these places, each by the cheapest known record.

    The targets are attacked in parts; the attack is left as soon as it cannot reach the lead, whatever the rest bring.
    """
    races = [(course.places, Race(course.costs, pair.truth, mean=course.mean)) for course in courses]
    found, possible = np.ones(len(targets)), np.ones(len(targets), dtype=np.bool_)
    for part in np.array_split(np.arange(len(targets)), min(PARTS, max(1, len(targets) // LEAST_PART))):
        for places, race in races:
            mine = part[np.isin(targets[part], places)]
            beaten, ties = race(targets[mine])
            found[mine], possible[mine] = np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1)), ~beaten
        sofar = Hits(found, possible, complete=False)
        if part[-1] + 1 < len(targets) and sofar.rate < lead.rate and sofar.potential < lead.potential:
            return sofar
    return Hits(found, possible)


def links_of_cheapest(pair: Pair, courses: Sequence[CostModel]) -> LinkTable:
    """Each released record linked to its cheapest known record."""
    every = np.arange(len(pair.released))
    return link_nearest(pair, lambda known, keep: _best(courses, known)(every, keep))


def links_to(pair: Pair, courses: Sequence[CostModel], wanted: Array) -> LinkTable:
    """The links of `links_of_cheapest` to the known records at these places, and no others; calibrated among themselves.

    A released record is linked to one of them where the cheapest of them is outrun by nobody: for most that is soon known.
    """
    groups = np.unique(pair.known_group[wanted])
    heads = np.unique(pair.known_group, return_index=True)[1][groups]
    reach = np.zeros(len(pair.released), dtype=np.bool_)
    for course in courses:
        guess = np.full(len(pair.released), -1)
        guess[course.places] = heads[_among(course, heads)(course.places, 1)[0][:, 0]]
        reach[course.places] = ~Race(course.costs, guess, mean=course.mean)(course.places)[0]
    rows = np.flatnonzero(reach)
    return link_nearest(pair, lambda known, keep: _best(courses, known)(rows, keep), rows, groups)


def links_one_to_one(pair: Pair, courses: Sequence[CostModel]) -> LinkTable:
    """Each known record takes one released record at most, and the costs in sum are the least.

    Records with equal values are exchanged at random, as in `link_one_to_one`.
    """
    n, m = len(pair.known), len(pair.released)
    file_pair.check_sizes(n, m)
    if n * m <= MATRIX_PAIRS:
        score = np.empty((m, n))
        for course in courses:
            score[course.places] = -course.block(slice(None), course.places).T
        partner, gap, links = dense(score), 0.0, best_links(score, 2)
    else:
        best = _best(courses)
        links = best(np.arange(m), KEEP)
        partner, gap = one_to_one(links, best, n, limit=file_pair.CANDIDATES)
    taken = np.flatnonzero(partner >= 0)
    known = partner[taken]
    weight = score[taken, known] if n * m <= MATRIX_PAIRS else _weights(courses, known, taken)
    second = links.index.shape[1] > 1
    other = np.where(links.index[taken, 0] == known, links.score[taken, 1], links.score[taken, 0]) if second else weight
    return file_pair.one_to_one_table(pair, taken, known, weight, other, gap)


def _weights(courses: Sequence[CostModel], known: Array, released: Array) -> Array:
    """Minus the costs of pairs, one by one."""
    weight = np.empty(len(known))
    for course in courses:
        mine = np.flatnonzero(np.isin(released, course.places))
        pairs = known[mine], released[mine]
        each = (field.pairs(*pairs) for field in course.costs)
        weight[mine] = -(mean_of_pairs(course.costs, *pairs) if course.mean else sum(each, np.zeros(len(mine))))
    return weight


def _best(courses: Sequence[CostModel], known: Array | slice = slice(None)) -> Callable[[Array, int], Links]:
    """The cheapest known records, of those at some places, of released ones."""
    searches = [_among(course, known) for course in courses]

    def best(rows: Array, keep: int) -> Links:
        count = min(keep, len(courses[0].costs[0].known[known]))
        links = Links(np.full((len(rows), count), -1, dtype=np.int32), np.full((len(rows), count), -np.inf))
        for course, search in zip(courses, searches, strict=True):
            here = np.flatnonzero(np.isin(rows, course.places))
            links.index[here], links.score[here] = search(rows[here], count)
        return links

    return best


def _among(course: CostModel, known: Array | slice) -> Search:
    """The search among the known records at these places."""
    return Search([cost._replace(known=cost.known[known]) for cost in course.costs], mean=course.mean)
