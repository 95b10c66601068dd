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
from sdcmap.data.schema import KINDS
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.swap import Households, household_problems, households_of

# Households and areas: cells by counting, and partners for households that must move.


Pairs = tuple[Array, Array]  # the first and the second household of each pair
MAX_COUNTED_CELLS = 1 << 20  # so many possible cells, and some for each record, are counted rather than sorted


def compress_by_counting(codes: list[Array]) -> tuple[Array, Array]:
    """As `compress`, by counting: variable by variable only the cells that occur are kept, so nested areas stay few."""
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
    """Cross the cells with one more variable, and number those that occur; returns their counts."""
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
    """Visit households in the order `visit`; each still unused takes a partner in another area, while `wanted` last.

    alike : codes of each household; the two of a pair agree in all. area : code of each household's area; they differ.
    The partner is drawn uniformly among all unused households that may be one; where there is none the household stays
    unused. `used` marks the households that are taken, now and before.
    """
    free = np.flatnonzero(~used)
    if len(free) == 0 or len(visit) == 0 or wanted == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    kind = compress_by_counting([codes[free] for codes in alike])[0] if alike else np.zeros(len(free), dtype=np.int64)
    part, size = compress_by_counting(
        [kind, area[free]]
    )  # households of one kind in one area; parts of one kind stand together
    members, start = _collect_members(part, size)
    part_kind = kind[members[start]]
    begins = np.searchsorted(part_kind, np.arange(int(part_kind[-1]) + 2))  # where the parts of each kind begin
    position, here = np.empty(len(free), dtype=np.int64), np.full(len(used), -1, dtype=np.int64)
    position[members] = here[free] = np.arange(len(free))
    draws, left = rng.random(len(visit)), size.copy()
    pairs = _take_partners(here[visit], draws, part, part_kind, begins, start, left, members, position, wanted)
    first, second = free[pairs]
    used[first] = used[second] = True
    return first, second


@jit
def _collect_members(part: Array, size: Array) -> tuple[Array, Array]:
    """The members part by part, in their order, and where each part begins."""
    start = np.cumsum(size) - size
    filled = start.copy()
    members = np.empty(len(part), dtype=np.int64)
    for i in range(len(part)):
        members[filled[part[i]]] = i
        filled[part[i]] += 1
    return members, start


@jit
def _take_partners(
    visit: Array, draws: Array, part: Array, part_kind: Array, begins: Array, start: Array, left: Array, members: Array,
    position: Array, wanted: int,
) -> Array:  # fmt: skip
    """The unused members of part p are the first left[p] of its stretch of `members`."""
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
        ticket = min(int(draws[turn] * total), total - 1)
        theirs = begins[kind]
        while theirs == mine or ticket >= left[theirs]:
            ticket -= left[theirs] if theirs != mine else 0
            theirs += 1
        partner = members[start[theirs] + ticket]
        pairs[0, paired], pairs[1, paired] = household, partner
        paired += 1
        for gone in (household, partner):
            p = part[gone]
            left[p] -= 1
            end, at = start[p] + left[p], position[gone]
            moved = members[end]
            members[end], members[at] = gone, moved
            position[gone], position[moved] = end, at
    return pairs[:, :paired]


def household_counts(data: Microdata, names: tuple[str, ...]) -> Array:
    """The fewest records in the cell of a member of each household; names: the household, then the table. A view."""
    units = data.view(households_of, names[0])
    cell, count = compress_by_counting([data.codes(name) for name in names[1:]])
    return units.fewest(count[cell])


def household_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """The cell of each household in the table of some variables that are constant within it; names as above. A view."""
    units = data.view(households_of, names[0])
    heads = units.members[units.start[:-1]]
    return compress_by_counting([data.codes(name)[heads] for name in names[1:]])[0]


@dataclass(frozen=True)
class HouseholdSwap(Method):
    """Exchange the places of pairs of similar households in different areas, those that stand out in their area first.

    Parameters
    ----------
    on : the geography, from the coarsest variable to the finest (region, district, ward); these values are exchanged.
    rate : share of the households that move, in [0, 1]: round(rate * households / 2) pairs, and more where more
        households are at risk.
    similar : profiles, lists of variables in which the two households must agree, in order of preference: the second is
        tried where the first finds no partner. Empty: any household will do.
    k : a household is at risk at a level of the geography if a member shares the variables `risk_on` with fewer than k
        persons of its area, itself included; it must then move to another area of that level. 0: none is at risk.
    risk_on : the variables of that table; by default the keys of the file that are not exchanged.
    carry : further variables, constant within households, that are exchanged along (a postcode, a coordinate).
    same_size : the two households have equally many persons, so that counts of persons per area are kept too.
    partial : where a household at risk has no partner, or the rate cannot be filled, swap those that can be; by default
        this is infeasible.

    Formula: level by level, from the coarsest: all unused households at risk there, in random order, each take a partner
    in another area of that level; where possible in the same area of the level above. Then, up to the rate, unused
    households in a random order in which each comes next with probability proportional to 1/(fewest persons in the cell
    of a member), at the finest level. Partners are drawn uniformly among the unused households that may be one.
    Missing is a category like any other. Weights are not used: each record keeps its own. Households are moved whole;
    variables named here, but for `risk_on`, must be constant within them.
    Reference: ONS and ESSnet census methods, targeted record swapping; counts as in sdcMicro's recordSwap.

    Examples
    --------
    >>> HouseholdSwap(on=["region", "district"], rate=0.1, similar=[["hsize", "tenure"], ["hsize"]]).text
    "HouseholdSwap(on=['region', 'district'], rate=0.1, similar=[['hsize', 'tenure'], 'hsize'])"
    """

    label: ClassVar[str] = "Household swapping between areas"
    description: ClassVar[str] = (
        "Similar households in different areas exchange their locations, beginning with those that stand out."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used to draw pairs; each record keeps its own weight"
    households: ClassVar[str] = "moved whole"
    at_zero: ClassVar[Mapping[str, Any] | None] = {"rate": 0.0, "k": 0}
    kept: ClassVar[str] = "households per area, and persons with equal sizes; all variables but the exchanged ones"
    distorted: ClassVar[str] = "relations between the geography and variables that are not in the profiles"

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
        """Over the strata of the survey, the one geography that roles tell."""
        places = roles.data.schema.of_role("stratum")
        rates = (0.05, 0.2) if roles.data.household is not None and places else ()
        return {f"{cls.__name__} {format_strength(rate)}": cls(places, rate, k=0, partial=True) for rate in rates}

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
            yield "HouseholdSwap.k needs a table: state keys, name variables in `risk_on`, or set k = 0."
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
        places = {name: data.column(name).values.take(source) for name in self.masked_names}
        return data.change(units.rows(moved), places)

    def _pairs(self, data: Microdata, household: str, units: Households, rng: Generator) -> tuple[Array, Array]:
        count = len(units.start) - 1
        wanted = int(np.floor(self.rate * count / 2 + 0.5))
        if self.rate and wanted == 0:
            raise Infeasible(f"a rate of {self.rate:g} of {count} households is no pair at all.")
        used, unpaired = np.zeros((2, count), dtype=np.bool_)
        no_household = np.empty(0, dtype=np.int64)
        pairs = [(no_household, no_household)]
        for level in range(len(self.on) if self.k else 0):
            fewest = data.view(household_counts, (household, *self.on[: level + 1], *self._risk_table(data)))
            visit = rng.permutation(np.flatnonzero((fewest < self.k) & ~used))
            pairs += self._pairs_at_level(data, level, units, visit, len(visit), used, rng)
            unpaired[visit] |= ~used[visit]
        missing = wanted - sum(len(pair[0]) for pair in pairs)
        if missing > 0:
            table = (household, *self.on, *self._risk_table(data))
            visit = np.argsort(rng.standard_exponential(count) * data.view(household_counts, table))
            pairs += self._pairs_at_level(data, len(self.on) - 1, units, visit[~used[visit]], missing, used, rng)
            missing = wanted - sum(len(pair[0]) for pair in pairs)
        if unpaired.any() and not self.partial:
            alone = f"{int(unpaired.sum())} households at risk have no partner in another area"
            raise Infeasible(f"{alone}; widen `similar`, or set partial = true.")
        if missing > 0 and not self.partial:
            raise Infeasible(f"{wanted - missing} pairs of the {wanted} that the rate asks for can be made.")
        return np.concatenate([first for first, _ in pairs]), np.concatenate([second for _, second in pairs])

    def _pairs_at_level(
        self, data: Microdata, level: int, units: Households, visit: Array, wanted: int, used: Array, rng: Generator
    ) -> list[Pairs]:
        """Pairs across the areas of one level: profile after profile, near partners before far ones."""
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
