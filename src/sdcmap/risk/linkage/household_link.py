"""Households found by who lives in them."""

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
from sdcmap.risk.linkage.assignment import finish
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.cost_models import CostModel, certain_fields, hits
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.nearest_record import NearestRecord

# What two households cost as a pair: their members, one to one, in the pairing that costs least.


TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal


@jit
def household_costs(cost: Array, released: Array, known: Array) -> Array:
    """The costs of released households (rows) and known ones (columns); infinite where a pair cannot be the cheapest.

    cost : of each released person (rows) and each known one (columns), household by household, finite.
    released, known : where each household begins, and the end of the last; a known one has as many members or more, and
        those who are left over cost nothing.
    """
    total = np.full((len(released) - 1, len(known) - 1), np.inf)
    for h in range(len(released) - 1):
        rows = cost[released[h] : released[h + 1]]
        cheapest = np.inf
        for g in range(len(known) - 1):
            members = rows[:, known[g] : known[g + 1]]
            bound = _each_to_its_nearest(members, cheapest * (1 + TIE) + TINY)
            if np.isfinite(bound):
                total[h, g] = bound if len(rows) == 1 else _one_to_one(members)
                cheapest = min(cheapest, total[h, g])
    return total


@inner_jit
def _each_to_its_nearest(cost: Array, limit: float) -> float:
    """The sum of each row's least cost, which no pairing undercuts; infinite where it is above the limit."""
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
def _one_to_one(cost: Array) -> float:
    """The cost of the cheapest pairing of all rows."""
    n, m = cost.shape
    partner, taken_by = np.full(n, -1), np.full(m, -1)
    finish(-cost, partner, taken_by, np.zeros(m))
    total = 0.0
    for i in range(n):
        total += cost[i, partner[i]]
    return total


PAIRS = 1 << 22  # of persons, whose costs are held at once
DEAREST = 1e9  # what a pair of persons costs that cannot be


class Homes(NamedTuple):
    """Persons household by household, the small ones first: their places, where each household begins (and the end), and
    the household of each place."""

    order: Array
    begin: Array
    of: Array

    @staticmethod
    def by(number: Array) -> Homes:
        code, size = compress([number])
        small_first = np.argsort(size, kind="stable")
        of = np.argsort(small_first)[code]
        return Homes(np.argsort(of, kind="stable"), np.append(0, np.cumsum(size[small_first])), of)

    @property
    def size(self) -> Array:
        """The members of each household."""
        return np.diff(self.begin)

    def members(self, values: Array) -> list[tuple[float, ...]]:
        """The values of each household's members, sorted."""
        ordered = values[np.lexsort([values, self.of])].tolist()
        return [tuple(ordered[i:j]) for i, j in zip(self.begin[:-1].tolist(), self.begin[1:].tolist(), strict=True)]


@dataclass(frozen=True)
class HouseholdLink(RiskMeasure):
    """The share of persons whose household is found by a snooper who compares households as wholes.

    The snooper knows families: how many they are, their ages and sexes, what they do. A person alone may have many
    doubles; the family has none. The released file says who lives together, so he compares each released household with
    every family that he knows, member by member, takes the one that fits best, and succeeds when it is the right one.

    Parameters
    ----------
    attack : how he compares two persons, and what he knows of each: an attack that adds up costs, such as NearestRecord,
        Linkage, Informed, Calibrated; it holds the original records, not an archive. Its `inclusion` is the probability
        that the household is in the file. Whether the attack is one-to-one makes no difference.
    method : how the file was made, for the snooper who has read the note; a sweep and a release fill it in.

    Formula: two households cost what their members cost in the pairing, one to one, that costs least. A released household
    is linked to the cheapest known one; of t that tie, each is taken with probability 1/t. The value is the share of
    released persons whose own household is taken, times `inclusion`. Where every released household has all its members,
    only those of equal size are compared; where persons were sampled, a known one may have more members, who cost nothing.
    Who has read the note asks first, as in WorstLinkage, that columns which were not touched are equal. `parts`:
    "prosecutor", the share without `inclusion`; "equal composition", the share found by the households whose members are
    all as they were, and no others; "persons one by one", what the same attack finds without the households.
    Missing values as the attack says. Weights are not used. Households: the file needs a variable of this role; persons
    whose number is missing are one-person households. Releasing nothing leaves a guess: 1 / number of households.
    Reference: SDC Practice Guide, household risk and household size; the comparison as wholes is ours.

    Examples
    --------
    >>> HouseholdLink(NearestRecord("gower", on=["age", "sex"])).text
    "HouseholdLink(attack=NearestRecord(on=['age', 'sex'], metric='gower'))"
    """

    label: ClassVar[str] = "Households re-identified as a whole"
    description: ClassVar[str] = "Share of people whose household is re-identified by comparing whole households."

    revision: ClassVar[int] = 2  # 2: what a chain or a release rounds after a deterministic step
    missing: ClassVar[str] = "as the attack says"
    households: ClassVar[str] = "used: the file needs a variable of this role"
    growth: ClassVar[float] = 2.0

    attack: Attack = NearestRecord("gower")  # noqa: RUF009 - a frozen value
    method: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.attack.archive:
            yield ".attack may have no archive: households are compared with those of the original records."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.attack.variables(data)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from self.attack.incompatibilities(data)
        if data.household is None:
            yield "HouseholdLink needs a file with a household variable: state its role."

    def for_informed_attacker(self, method: Method) -> Measure:
        attack = self.attack.for_informed_attacker(method)
        return replace(self, method=method, attack=attack if isinstance(attack, Attack) else self.attack)

    def baseline(self, original: Microdata) -> float | None:
        if original.household is None or not len(original):
            return None
        return self.attack.inclusion / len(np.unique(original.view(household_numbers, original.household)))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pair, known, released = self._households(original, masked)
        courses = self._courses(pair)
        rate = _rate(found_as_wholes(pair, known, released, courses))
        parts = {
            "prosecutor": rate,
            "equal composition": _rate(found_by_equal(pair, known, released)),
            "persons one by one": hits(pair, courses, np.arange(len(pair.released))).rate,
        }
        return Estimate(value=self.attack.inclusion * rate, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance that the household of each person is found."""
        pair, known, released = self._households(original, masked)
        each = np.empty(len(masked))
        each[pair.released_rows] = self.attack.inclusion * found_as_wholes(pair, known, released, self._courses(pair))
        return each

    def _households(self, original: Microdata, masked: Microdata) -> tuple[Pair, Homes, Homes]:
        """Both files laid out, and the households of each."""
        pair = self.attack.pair(original, masked, self.check_variables(original))
        return pair, *homes_of(pair, original, masked)

    def _courses(self, pair: Pair) -> list[CostModel]:
        """What pairs of persons cost; equality of certain columns is asked for first."""
        certain = certain_fields(pair, self.method).values()
        return [course._replace(costs=[*course.costs, *certain]) for course in self.attack.courses(pair)]


def homes_of(pair: Pair, original: Microdata, masked: Microdata) -> tuple[Homes, Homes]:
    """The households of the known and of the released persons."""
    if original.household is None or masked.household is None:
        raise Undefined("the released file does not say who lives together.")
    known = original.view(household_numbers, original.household)
    released = masked.view(household_numbers, masked.household)
    return Homes.by(known[pair.known_rows]), Homes.by(released[pair.released_rows])


def found_as_wholes(pair: Pair, known: Homes, released: Homes, courses: Sequence[CostModel]) -> Array:
    """The chance that the household of the released person at each place is taken for what it is."""
    own = known.of[pair.truth]
    whole = bool((released.size[released.of] == known.size[own]).all())
    found = np.zeros(len(own))
    for size in np.unique(released.size).tolist():
        low, high = np.searchsorted(known.size, [size, (size if whole else known.size[-1]) + 1])
        begin = known.begin[low : high + 1]
        people = known.order[begin[0] : begin[-1]]
        first, last = np.searchsorted(released.size, [size, size + 1])
        parts = min(last - first, 1 + (last - first) * size * len(people) // PAIRS)
        for homes in np.array_split(np.arange(first, last), parts):
            places = released.order[released.begin[homes[0]] : released.begin[homes[-1] + 1]]
            starts = np.arange(0, len(places) + 1, size)
            costs = household_costs(_costs(courses, people, places), starts, begin - begin[0])
            found[places] = _taken(costs, np.repeat(np.arange(len(homes)), size), own[places] - low)
    return found


def _taken(costs: Array, home: Array, own: Array) -> Array:
    """The chance that the cheapest known household of each person's released one (home) is his own; of t that tie, one."""
    if costs.shape[1] == 0:
        return np.zeros(len(own))
    tied = (costs <= costs.min(axis=1, keepdims=True) * (1 + TIE) + TINY) & np.isfinite(costs)
    among = (own >= 0) & (own < costs.shape[1])
    return np.asarray((among & tied[home, np.where(among, own, 0)]) / np.maximum(tied.sum(axis=1), 1)[home])


def _costs(courses: Sequence[CostModel], known: Array, released: Array) -> Array:
    """The costs of these released persons (rows) and these known ones (columns)."""
    cost = np.empty((len(released), len(known)))
    for course in courses:
        mine = np.flatnonzero(np.isin(released, course.places))
        cost[mine] = course.block(known, released[mine]).T
    return np.minimum(cost, DEAREST)


def found_by_equal(pair: Pair, known: Homes, released: Homes) -> Array:
    """The chance that a household is found by who looks for one with equal members; of t such, one is taken."""
    both = np.concatenate([pair.known, pair.released])
    code = compress([np.unique(column, return_inverse=True)[1] for column in both.T])[0]
    theirs, ours = known.members(code[: len(pair.known)]), released.members(code[len(pair.known) :])
    count = Counter(theirs)
    mates = zip(released.of.tolist(), known.of[pair.truth].tolist(), strict=True)
    return np.array([1 / count[ours[home]] if theirs[own] == ours[home] else 0.0 for home, own in mates])


def _rate(found: Array) -> float:
    return math.fsum(found) / len(found)
