"""Targeted record swapping of households."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np

from sdcmap.core import (
    Array,
    Generator,
    Infeasible,
    Method,
    Microdata,
    Range,
    Roles,
    Trials,
    format_percent,
    format_strength,
)
from sdcmap.core.method import Origin
from sdcmap.data.schema import KINDS
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.swap import Households, household_problems, households_of

Pairs = tuple[Array, Array]  # the first and the second household of each pair
# Possible cells of a table (plus four per record) up to which counting is faster than sorting; it also bounds memory.
MAX_COUNTED_CELLS = 1 << 20


def compress_by_counting(codes: list[Array]) -> tuple[Array, Array]:
    """Number the cells as `compress` does, but by counting.

    Cells that do not occur are dropped after each variable, so the table of nested areas stays small.
    """
    cell, count = np.zeros(len(codes[0]), dtype=np.int64), np.array([len(codes[0])])
    for code in codes:
        size = int(code.max()) + 1
        if len(count) * size > MAX_COUNTED_CELLS + 4 * len(cell):
            cell, count = compress([cell, code])
        else:
            count = _cross_cells(cell, code, size, len(count))
    return cell, count


@jit
def _cross_cells(cell: Array, code: Array, size: int, space: int) -> Array:
    """Cross the cells with one more variable and number those that occur. Return their counts."""
    count = np.zeros(space * size, dtype=np.int64)
    for i in range(len(cell)):
        cell[i] = cell[i] * size + code[i]
        count[cell[i]] += 1
    observed = np.flatnonzero(count)
    sizes = count[observed]
    for number in range(len(observed)):
        count[observed[number]] = number
    for i in range(len(cell)):
        cell[i] = count[cell[i]]
    return sizes


def draw_moving_pairs(visit: Array, alike: list[Array], area: Array, used: Array, wanted: int, rng: Generator) -> Pairs:
    """Draw up to `wanted` pairs of households in different areas, and mark them in `used`.

    Households are visited in the order `visit`. Each one that is still unused takes a partner, drawn uniformly among
    all admissible unused households; without an admissible partner it stays unused.

    alike : codes of each household; the two households of a pair agree in all of them. area : the code of each
    household's area; the two differ. used : True for households that already have a partner.
    """
    free = np.flatnonzero(~used)
    if len(free) == 0 or len(visit) == 0 or wanted == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    kind = compress_by_counting([codes[free] for codes in alike])[0] if alike else np.zeros(len(free), dtype=np.int64)
    part, size = compress_by_counting([kind, area[free]])  # households of one kind in one area, sorted by kind
    members, start = _collect_members(part, size)
    part_kind = kind[members[start]]
    begins = np.searchsorted(part_kind, np.arange(int(part_kind[-1]) + 2))  # the first part of each kind
    position, free_index = np.empty(len(free), dtype=np.int64), np.full(len(used), -1, dtype=np.int64)
    position[members] = free_index[free] = np.arange(len(free))
    draws, left = rng.random(len(visit)), size.copy()
    pairs = _take_partners(free_index[visit], draws, part, part_kind, begins, start, left, members, position, wanted)
    first, second = free[pairs]
    used[first] = used[second] = True
    return first, second


@jit
def _collect_members(part: Array, size: Array) -> tuple[Array, Array]:
    """Return the members sorted by part, and the index at which each part begins."""
    start = np.cumsum(size) - size
    filled = start.copy()
    members = np.empty(len(part), dtype=np.int64)
    for i in range(len(part)):
        members[filled[part[i]]] = i
        filled[part[i]] += 1
    return members, start


@jit
def _take_partners(
    visit: Array,
    draws: Array,
    part: Array,
    part_kind: Array,
    begins: Array,
    start: Array,
    left: Array,
    members: Array,
    position: Array,
    wanted: int,
) -> Array:
    """Pair each unused household of `visit` with a random partner of the same kind in another area.

    The unused members of part p are the first left[p] entries of its range in `members`.
    """
    pairs = np.empty((2, min(wanted, len(visit))), dtype=np.int64)
    paired = 0
    for turn in range(len(visit)):
        household = visit[turn]
        if paired == pairs.shape[1]:
            break
        if household < 0 or position[household] >= start[part[household]] + left[part[household]]:
            continue
        mine, total = part[household], 0
        kind = part_kind[mine]
        for p in range(begins[kind], begins[kind + 1]):
            total += left[p] if p != mine else 0
        if total == 0:
            continue
        # Number all candidates of the other areas 0 to total - 1, and find the one whose number was drawn.
        ticket = min(int(draws[turn] * total), total - 1)
        theirs = begins[kind]
        while theirs == mine or ticket >= left[theirs]:
            ticket -= left[theirs] if theirs != mine else 0
            theirs += 1
        partner = members[start[theirs] + ticket]
        pairs[0, paired], pairs[1, paired] = household, partner
        paired += 1
        # Swap both households to the end of the unused range of their part, which then shrinks by one.
        for taken in (household, partner):
            p = part[taken]
            left[p] -= 1
            end, at = start[p] + left[p], position[taken]
            moved = members[end]
            members[end], members[at] = taken, moved
            position[taken], position[moved] = end, at
    return pairs[:, :paired]


def household_counts(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return for each household the smallest cell count of its members. A view.

    names : the household variable, then the variables of the table.
    """
    units = data.view(households_of, names[0])
    cell, count = compress_by_counting([data.codes(name) for name in names[1:]])
    return units.fewest(count[cell])


def household_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the cell of each household in a table of variables that are constant within households. A view.

    names : the household variable, then the variables of the table.
    """
    units = data.view(households_of, names[0])
    heads = units.members[units.start[:-1]]
    return compress_by_counting([data.codes(name)[heads] for name in names[1:]])[0]


@dataclass(frozen=True)
class HouseholdSwap(Method):
    """Exchange the locations of pairs of similar households in different areas, households at risk first.

    Parameters
    ----------
    on : the geography, from the coarsest variable to the finest (region, district, ward); these values are exchanged.
    rate : share of the households that move, in [0, 1]: round(rate * households / 2) pairs, or more if more households
        are at risk.
    similar : profiles, that is, lists of variables in which the two households must agree, in order of preference: the
        second is tried if the first has no partner. Empty: any household can be a partner.
    k : a household is at risk at a level of the geography if fewer than k persons of its area, the member included,
        share the values of `risk_on` with one of its members. It must then move to another area of that level.
        0: no household is at risk.
    risk_on : the variables of that table; by default the keys of the file that are not exchanged.
    carry : further variables, constant within households, that are exchanged too (a postcode, a coordinate).
    same_size : pair only households with the same number of persons, so that the number of persons per area is preserved.
    partial : if a household at risk has no partner, or there are too few pairs for the rate, swap the pairs that exist;
        by default the candidate is infeasible.

    Formula: from the coarsest level to the finest, each unused household at risk, in random order, takes a partner in
    another area of that level, if possible within the same area of the level above. Unused households then follow up to
    the rate, at the finest level, in a random order in which each comes next with probability proportional to 1/(smallest
    cell count of its members). Partners are drawn uniformly among admissible unused households.
    Missing is a category like any other. Weights are not used: each record keeps its own. Households are moved whole; all
    variables named here, except `risk_on`, must be constant within households.
    Reference: ONS and ESSnet census methods, targeted record swapping; counts as in sdcMicro's recordSwap.

    Examples
    --------
    >>> HouseholdSwap(on=["region", "district"], rate=0.1, similar=[["hsize", "tenure"], ["hsize"]]).text
    "HouseholdSwap(on=['region', 'district'], rate=0.1, similar=[['hsize', 'tenure'], 'hsize'])"
    """

    label: ClassVar[str] = "Household swapping between areas"
    description: ClassVar[str] = (
        "Similar households in different areas exchange their locations, beginning with those at risk."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used to draw pairs; each record keeps its own weight"
    households: ClassVar[str] = "moved as a whole"
    at_zero: ClassVar[Mapping[str, Any] | None] = {"rate": 0.0, "k": 0}
    value_origin: ClassVar[Origin] = "permuted"
    kept: ClassVar[str] = (
        "the number of households per area (and of persons, with `same_size`); all variables that are not exchanged"
    )
    distorted: ClassVar[str] = (
        "relations between the geography and variables in which the swapped households may differ"
    )

    on: tuple[str, ...]
    rate: Annotated[float, Range(0, 1)] = 0.05
    similar: tuple[tuple[str, ...], ...] = ()
    k: Annotated[int, Range(0)] = 3
    risk_on: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    same_size: bool = True
    partial: bool = False

    @property
    def action(self) -> str:
        return f"swapped between {format_percent(self.rate)} of the households"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Try it on the strata of the survey, the only geography that the roles of a file contain."""
        geography = roles.data.schema.of_role("stratum")
        rates = (0.05, 0.2) if roles.data.household is not None and geography else ()
        return {f"{cls.__name__} {format_strength(rate)}": cls(geography, rate, k=0, partial=True) for rate in rates}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if len(set(self.masked_names)) < len(self.masked_names):
            yield ".on and .carry must name each variable once."
        for field, named in {"risk_on": self.risk_on, "similar": self._profile_names}.items():
            if both := sorted(set(self.masked_names) & set(named)):
                yield f".{field} must not name an exchanged variable: {', '.join(both)}."

    @property
    def masked_names(self) -> tuple[str, ...]:
        return (*self.on, *self.carry)

    @property
    def _profile_names(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self.similar))

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.risk_on, *self._profile_names)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.k and not self._risk_table(data):
            yield "HouseholdSwap.k needs a table of keys: give the file keys, name variables in `risk_on`, or set k = 0."
        constant = dict.fromkeys((*self.masked_names, *self._profile_names, *self.within))
        yield from household_problems(data, "HouseholdSwap", constant)

    def _risk_table(self, data: Microdata) -> tuple[str, ...]:
        return self.risk_on or tuple(name for name in data.keys if name not in self.masked_names)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        household = str(data.household)
        units = data.view(households_of, household)
        first, second = self._pairs(data, household, units, rng)
        moved, partners = np.concatenate([first, second]), np.concatenate([second, first])
        source = np.repeat(units.members[units.start[partners]], units.start[moved + 1] - units.start[moved])
        locations = {name: data.column(name).values.take(source) for name in self.masked_names}
        return data.change(units.rows(moved), locations)

    def _pairs(self, data: Microdata, household: str, units: Households, rng: Generator) -> tuple[Array, Array]:
        count = len(units.start) - 1
        wanted = int(np.floor(self.rate * count / 2 + 0.5))
        if self.rate and wanted == 0:
            raise Infeasible(f"a rate of {self.rate:g} is less than one pair of the {count} households.")
        used, unpaired = np.zeros((2, count), dtype=np.bool_)
        no_household = np.empty(0, dtype=np.int64)
        pairs = [(no_household, no_household)]
        # First the households at risk, at every level of the geography, whatever the rate.
        for level in range(len(self.on) if self.k else 0):
            fewest = data.view(household_counts, (household, *self.on[: level + 1], *self._risk_table(data)))
            visit = rng.permutation(np.flatnonzero((fewest < self.k) & ~used))
            pairs += self._pairs_at_level(data, level, units, visit, len(visit), used, rng)
            unpaired[visit] |= ~used[visit]
        missing = wanted - sum(len(pair[0]) for pair in pairs)
        # Then fill up to the rate. Exponential times with rate 1/count put households with rare members first on average.
        if missing > 0:
            table = (household, *self.on, *self._risk_table(data))
            visit = np.argsort(rng.standard_exponential(count) * data.view(household_counts, table))
            pairs += self._pairs_at_level(data, len(self.on) - 1, units, visit[~used[visit]], missing, used, rng)
            missing = wanted - sum(len(pair[0]) for pair in pairs)
        if unpaired.any() and not self.partial:
            count_at_risk = f"{int(unpaired.sum())} households at risk have no partner in another area"
            raise Infeasible(f"{count_at_risk}; relax `similar`, or set partial = true.")
        if missing > 0 and not self.partial:
            available = f"only {wanted - missing} of the {wanted} pairs that the rate requires exist"
            raise Infeasible(f"{available}; lower the rate, or set partial = true.")
        return np.concatenate([first for first, _ in pairs]), np.concatenate([second for _, second in pairs])

    def _pairs_at_level(
        self, data: Microdata, level: int, units: Households, visit: Array, wanted: int, used: Array, rng: Generator
    ) -> list[Pairs]:
        """Return pairs across areas of one level, by profile; partners within the same larger area are tried first."""
        household = str(data.household)
        area = data.view(household_codes, (household, *self.on[: level + 1]))
        pairs: list[Pairs] = []
        for profile in self.similar or ((),):
            alike = [np.diff(units.start)] if self.same_size else []
            alike += [data.view(household_codes, (household, *profile))] if profile else []
            near = [[data.view(household_codes, (household, *self.on[:level]))]] if level else []
            for scope in [*near, []]:
                left = wanted - sum(len(pair[0]) for pair in pairs)
                visit = visit[~used[visit]]
                pairs.append(draw_moving_pairs(visit, [*alike, *scope], area, used, left, rng))
        return pairs
