"""Record linkage of whole households: a household is re-identified by its composition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, RiskMeasure, Undefined
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.individual_risk import household_numbers
from sdcmap.risk.linkage.assignment import complete_assignment
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.cost_models import CostModel, attack_targets, find_certain_fields
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.nearest_record import NearestRecord

RELATIVE_TIE, ABSOLUTE_TIE = 1e-9, 1e-12  # costs that differ by less are equal


@jit
def household_costs(cost: Array, released: Array, known: Array) -> Array:
    """Return the costs of released households (rows) against known ones (columns).

    Two households cost what their members cost in the cheapest one-to-one pairing. The cost is infinite where a pair
    cannot be the cheapest of its row.

    Parameters
    ----------
    cost : costs of released persons (rows) against known persons (columns), sorted by household, finite
    released, known : where each household begins, and the end of the last; a known household has at least as many
        members, and members left over cost nothing
    """
    total = np.full((len(released) - 1, len(known) - 1), np.inf)
    for h in range(len(released) - 1):
        rows = cost[released[h] : released[h + 1]]
        cheapest = np.inf
        for g in range(len(known) - 1):
            members = rows[:, known[g] : known[g + 1]]
            # A lower bound above the cheapest so far rules the household out, without the costly pairing.
            bound = _lower_bound(members, cheapest * (1 + RELATIVE_TIE) + ABSOLUTE_TIE)
            if np.isfinite(bound):
                total[h, g] = bound if len(rows) == 1 else _cheapest_pairing(members)
                cheapest = min(cheapest, total[h, g])
    return total


@inner_jit
def _lower_bound(cost: Array, limit: float) -> float:
    """Return the sum of each row's least cost, a lower bound for any pairing; infinite if it exceeds the limit."""
    total = 0.0
    for i in range(len(cost)):
        least = cost[i, 0]
        for j in range(1, cost.shape[1]):
            least = min(least, cost[i, j])
        total += least
        if total > limit:
            return np.inf
    return total


@jit
def _cheapest_pairing(cost: Array) -> float:
    """Return the cost of the cheapest one-to-one pairing of all rows."""
    n, m = cost.shape
    partner, owner = np.full(n, -1), np.full(m, -1)
    complete_assignment(-cost, partner, owner, np.zeros(m))
    total = 0.0
    for i in range(n):
        total += cost[i, partner[i]]
    return total


MAX_PERSON_PAIRS = 1 << 22  # pairs of persons whose costs are in memory at the same time (32 MB)
MAX_PAIR_COST = 1e9  # replaces infinite costs of impossible pairs, because the assignment needs finite ones


class Households(NamedTuple):
    """Persons sorted by household, small households first."""

    order: Array  # the position of each person in the file
    begin: Array  # where each household begins in `order`, and the end of the last
    of: Array  # the household of the person at each position

    @staticmethod
    def from_numbers(number: Array) -> Households:
        """Group persons by their household numbers."""
        code, size = compress([number])
        by_size = np.argsort(size, kind="stable")
        of = np.argsort(by_size)[code]
        return Households(np.argsort(of, kind="stable"), np.append(0, np.cumsum(size[by_size])), of)

    @property
    def size(self) -> Array:
        """Return the number of members of each household."""
        return np.diff(self.begin)

    def members(self, values: Array) -> list[tuple[float, ...]]:
        """Return the sorted values of each household's members."""
        ordered = values[np.lexsort([values, self.of])].tolist()
        return [tuple(ordered[i:j]) for i, j in zip(self.begin[:-1].tolist(), self.begin[1:].tolist(), strict=True)]


@dataclass(frozen=True)
class HouseholdLink(RiskMeasure):
    """The share of persons whose household is re-identified by an attacker who compares whole households.

    The attacker knows families: the number of members, their ages, sexes and occupations. A person may have many
    doubles where the family has none. The released file shows who lives together, so the attacker compares each
    released household with every family they know, member by member, and links it to the best match. They succeed when
    it is the right one.

    Parameters
    ----------
    attack : how the attacker compares two persons, and what they know of each: an attack that adds up costs, such as
        NearestRecord, Linkage, Informed or Calibrated. It holds the original records, not an archive. Its `inclusion`
        is the probability that the household is in the file. Whether it is one-to-one makes no difference.
    method : how the file was made, for an attacker who has read the method note; a sweep and a release fill it in.

    Formula: two households cost what their members cost in the cheapest one-to-one pairing. A released household is
    linked to the cheapest known one; of t that tie, each is taken with probability 1/t. The value is the share of
    released persons whose own household is taken, times `inclusion`. If every released household is complete, only
    households of equal size are compared; if persons were sampled, a known household may have more members, who cost
    nothing. As in WorstLinkage, an attacker who has read the method note requires untouched columns to be equal.
    `parts`: "prosecutor", the share without `inclusion`; "equal composition", the share re-identified by households
    whose members are all unchanged; "persons one by one", the share that the same attack re-identifies without
    households.
    Missing values: as in the attack. Weights are not used. Households: the file needs a variable of this role; persons
    whose number is missing are one-person households. Releasing nothing leaves a guess: 1 / number of households.
    Reference: SDC Practice Guide, household risk and household size; the comparison of whole households is ours.

    Examples
    --------
    >>> HouseholdLink(NearestRecord("gower", on=["age", "sex"])).text
    "HouseholdLink(attack=NearestRecord(on=['age', 'sex'], metric='gower'))"
    """

    label: ClassVar[str] = "Households re-identified as a whole"
    description: ClassVar[str] = "Share of people whose household is re-identified by comparing whole households."

    revision: ClassVar[int] = 2  # 2: rounding by a chain or a release after a deterministic step
    missing: ClassVar[str] = "as in the attack"
    households: ClassVar[str] = "used: the file needs a variable of this role"
    growth: ClassVar[float] = 2.0

    attack: Attack = NearestRecord("gower")  # noqa: RUF009 - a frozen value
    method: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.attack.archive:
            yield ".attack must not have an archive: households are compared with those of the original records."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.attack.variables(data)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from self.attack.incompatibilities(data)
        if data.household is None:
            yield "HouseholdLink needs a household variable. State the role of the column with the household number."

    def for_informed_attacker(self, method: Method) -> Measure:
        attack = self.attack.for_informed_attacker(method)
        return replace(self, method=method, attack=attack if isinstance(attack, Attack) else self.attack)

    def baseline(self, original: Microdata) -> float | None:
        if original.household is None or not len(original):
            return None
        return self.attack.inclusion / len(np.unique(original.view(household_numbers, original.household)))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pair, known, released = self._households(original, masked)
        models = self._cost_models(pair)
        rate = _rate(match_whole_households(pair, known, released, models))
        parts = {
            "prosecutor": rate,
            "equal composition": _rate(match_equal_households(pair, known, released)),
            "persons one by one": attack_targets(pair, models, np.arange(len(pair.released))).rate,
        }
        return Estimate(value=self.attack.inclusion * rate, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the probability that the household of each person is re-identified."""
        pair, known, released = self._households(original, masked)
        each = np.empty(len(masked))
        each[pair.released_rows] = self.attack.inclusion * match_whole_households(
            pair, known, released, self._cost_models(pair)
        )
        return each

    def _households(self, original: Microdata, masked: Microdata) -> tuple[Pair, Households, Households]:
        """Return both files as laid out for linking, and their households."""
        pair = self.attack.pair(original, masked, self.check_variables(original))
        return pair, *find_households(pair, original, masked)

    def _cost_models(self, pair: Pair) -> list[CostModel]:
        """Return the costs of pairs of persons, with equality required on certain columns."""
        certain = find_certain_fields(pair, self.method).values()
        return [model._replace(costs=[*model.costs, *certain]) for model in self.attack.cost_models(pair)]


def find_households(pair: Pair, original: Microdata, masked: Microdata) -> tuple[Households, Households]:
    """Return the households of the known and of the released persons."""
    if original.household is None or masked.household is None:
        raise Undefined("the released file has no household number.")
    known = original.view(household_numbers, original.household)
    released = masked.view(household_numbers, masked.household)
    return Households.from_numbers(known[pair.known_rows]), Households.from_numbers(released[pair.released_rows])


def match_whole_households(
    pair: Pair, known: Households, released: Households, models: Sequence[CostModel], targets: Array | None = None
) -> Array:
    """Return the probability that the household of each released person is linked to the right one.

    targets : with these persons, only their households are linked; 0 for all others.
    """
    own = known.of[pair.truth]
    wanted = np.ones(len(released.size), dtype=bool)
    if targets is not None:
        wanted[:] = False
        wanted[released.of[targets]] = True
    complete = bool((released.size[released.of] == known.size[own]).all())
    probability = np.zeros(len(own))
    # Households of one size at a time, because their costs form a regular array.
    for size in np.unique(released.size).tolist():
        low, high = np.searchsorted(known.size, [size, (size if complete else known.size[-1]) + 1])
        begin = known.begin[low : high + 1]
        people = known.order[begin[0] : begin[-1]]
        first, last = np.searchsorted(released.size, [size, size + 1])
        linked = first + np.flatnonzero(wanted[first:last])
        if len(linked) == 0:
            continue
        # Split the released households so that the costs of all pairs of persons fit into memory.
        parts = min(len(linked), 1 + len(linked) * size * len(people) // MAX_PERSON_PAIRS)
        for part in np.array_split(linked, parts):
            positions = released.order[(released.begin[part][:, np.newaxis] + np.arange(size)).ravel()]
            starts = np.arange(0, len(positions) + 1, size)
            costs = household_costs(_costs(models, people, positions), starts, begin - begin[0])
            probability[positions] = _hit_probability(
                costs, np.repeat(np.arange(len(part)), size), own[positions] - low
            )
    return probability


def _hit_probability(costs: Array, household: Array, own: Array) -> Array:
    """Return the probability that each person's released household is linked to their own.

    household : the row of `costs` of each person's released household
    own : the column of `costs` of each person's own household
    """
    if costs.shape[1] == 0:
        return np.zeros(len(own))
    tied = (costs <= costs.min(axis=1, keepdims=True) * (1 + RELATIVE_TIE) + ABSOLUTE_TIE) & np.isfinite(costs)
    is_listed = (own >= 0) & (own < costs.shape[1])
    own_ties = is_listed & tied[household, np.where(is_listed, own, 0)]
    return np.asarray(own_ties / np.maximum(tied.sum(axis=1), 1)[household])


def _costs(models: Sequence[CostModel], known: Array, released: Array) -> Array:
    """Return the costs of these released persons (rows) against these known persons (columns)."""
    cost = np.empty((len(released), len(known)))
    for model in models:
        selected = np.flatnonzero(np.isin(released, model.positions))
        cost[selected] = model.block(known, released[selected]).T
    return np.minimum(cost, MAX_PAIR_COST)


def match_equal_households(pair: Pair, known: Households, released: Households) -> Array:
    """Return the probability that a household is re-identified by looking for one with equal members.

    If t known households have equal members, each is taken with probability 1/t.
    """
    both = np.concatenate([pair.known, pair.released])
    code = compress([np.unique(column, return_inverse=True)[1] for column in both.T])[0]
    known_members, released_members = known.members(code[: len(pair.known)]), released.members(code[len(pair.known) :])
    count = Counter(known_members)
    households = zip(released.of.tolist(), known.of[pair.truth].tolist(), strict=True)
    return np.array(
        [
            1 / count[released_members[household]] if known_members[own] == released_members[household] else 0.0
            for household, own in households
        ]
    )


def _rate(probability: Array) -> float:
    return math.fsum(probability) / len(probability)
