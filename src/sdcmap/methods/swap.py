"""Categorical data swapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import (
    Array,
    Field,
    Fields,
    Generator,
    Infeasible,
    Method,
    Microdata,
    Range,
    Roles,
    Trials,
    format_percent,
)
from sdcmap.core.method import Origin
from sdcmap.core.roles import Strengths, format_strength
from sdcmap.data.cells import cells, common_codes
from sdcmap.kernels.scratch_memory import empty
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods._swap_pairs import greedy_pairs, matching_pairs, pairs_in_turn

NO_CONSTRAINT = np.empty(0, dtype=np.int32)


def stack_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the codes of `names` as a matrix with one row per record. A view."""
    codes = [data.codes(name) for name in names]
    stacked = empty((len(data), len(codes)), np.result_type(np.uint8, *codes))
    for j, code in enumerate(codes):
        stacked[:, j] = code
    return stacked


@dataclass(frozen=True)
class Households:
    """The rows of the file sorted by household (`members`), and the index at which each household begins, then the end."""

    members: Array
    start: Array

    def rows(self, chosen: Array) -> Array:
        """Return the rows of these households, one household after the other."""
        sizes = self.start[chosen + 1] - self.start[chosen]
        skipped = np.repeat(self.start[chosen] - np.cumsum(sizes) + sizes, sizes)
        return self.members[skipped + np.arange(len(skipped))]

    def fewest(self, counts: Array) -> Array:
        """Return the smallest of the counts of each household's members."""
        return np.asarray(np.minimum.reduceat(counts[self.members], self.start[:-1]))


def households_of(data: Microdata, name: str) -> Households:
    """Return the households of the file. A view."""
    code = data.codes(name)
    members = np.argsort(code, kind="stable")
    breaks = np.flatnonzero(code[members[1:]] != code[members[:-1]]) + 1
    return Households(members, np.concatenate([[0], breaks, [len(members)]]))


def varies_within(data: Microdata, names: tuple[str, ...]) -> bool:
    """Return whether the second variable varies within households, the first variable. A view."""
    units = data.view(households_of, names[0])
    code = data.codes(names[1])[units.members]
    return bool((code != np.repeat(code[units.start[:-1]], np.diff(units.start))).any())


def household_problems(data: Microdata, label: str, constant: Iterable[str]) -> Iterator[str]:
    """Yield why households cannot be moved or drawn whole. constant : variables that must not vary within them."""
    household = data.household
    if household is None:
        yield f"{label} needs a file with a household column."
        return
    if lost := int(data.missing(household).sum()):
        yield f"{label}: {household!r} is missing in {lost} records."
    for name in constant:
        if name in data.schema and data.view(varies_within, (household, name)):
            yield f"{label}: {name!r} is not constant within households."


def visiting_order(cell_count: Array, target: str, n: int, rng: Generator) -> Array:
    """Return a random order of the records with risky ones early. cell_count : the size of each record's cell."""
    if target == "risk":
        # Sorting exponential times with rate 1/count gives the required order (Efraimidis, Spirakis 2006).
        return np.argsort(rng.standard_exponential(len(cell_count)) * cell_count)
    visit = rng.permutation(len(cell_count))
    small = cell_count[visit] < n
    return np.concatenate([visit[small], visit[~small]])


def joint_codes(known: Microdata, released: Microdata, names: tuple[str, ...]) -> Array:
    """Return the cell of each record in the table of `names`: first the known file, then the released one.

    Without names, all records are in one cell.
    """
    if not names:
        return np.zeros(len(known) + len(released), dtype=np.int64)
    return compress([common_codes(known, released, name) for name in names])[0]


def partner_counts(table: Array, count: Array) -> Array:
    """Count for each cell the records of its group (first column of `table`) that differ in every other column.

    By inclusion and exclusion: the sum over sets of columns S of (-1)^|S| (number of records that agree in S).
    """
    partners = np.zeros(len(table))
    columns = range(1, table.shape[1])
    for size in range(table.shape[1]):
        for chosen in combinations(columns, size):
            agreeing, _ = compress([table[:, 0], *(table[:, column] for column in chosen)])
            partners += (-1) ** size * np.bincount(agreeing, weights=count)[agreeing]
    return partners


@dataclass(frozen=True, eq=False)
class SwapDensity:
    """Log probability that a record keeps its cell or gets the values of a partner that differs in all swapped variables.

    table : the group of each cell, within which records are swapped, and its swapped variables. moved : the share of
    swapped records. count : the number of records in each cell. partners : the number of possible partners of a record.
    """

    table: Array
    moved: float
    count: Array
    partners: Array

    def __call__(self, known: Array, released: Array) -> Array:
        own, seen = known.astype(np.intp), released.astype(np.intp)
        differs = self.table[own, 0] == self.table[seen, 0]
        for column in range(1, self.table.shape[1]):
            differs = differs & (self.table[own, column] != self.table[seen, column])
        chance = self.moved * self.count[seen] / np.maximum(self.partners[own], 1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(own == seen, 1 - self.moved, np.where(differs, chance, 0.0))))


@dataclass(frozen=True)
class Swap(Method):
    """Exchange the values of some variables between random pairs of records that differ in all of them.

    Parameters
    ----------
    on : categorical variables to swap, all together.
    rate : number of pairs as a share of the records, in (0, 0.5]: round(rate * records) pairs, so twice as many records
        change. With `whole_households`, a share of the households.
    same : variables, not swapped, in which the two records must agree.
    differ : variables, not swapped, in which they must differ.
    pairing : "matching": draw one random perfect matching of the records and take its first admissible pairs, as in the
        paper; "greedy": match the unused records again, until there are enough pairs or no admissible pair is left.
    target : which records are swapped first. "none": all records are treated alike. "small cells": records in cells
        with fewer than `n` records of the table of `risk_on`, in random order, then all others. "risk": a random order
        in which each record comes next with probability proportional to 1/(records in its cell). Each record in turn,
        if unused, takes a partner drawn uniformly among its admissible unused partners. Needs greedy pairing.
    n : with "small cells": a cell with fewer than n records is small; at least 2.
    risk_on : with a target: the variables of the table; by default the keys of the file.
    whole_households : swap households instead of persons: two households of equal size are a pair, and all members take
        the values of the other household. All variables in `on`, `same`, `differ` and `within` must be constant within
        households. With a target, a household counts as in the smallest cell of its members.

    Formula: one random perfect matching of the records; its first round(rate * records) admissible pairs exchange values.
    Every swapped record changes in every swapped variable ("true swap"). If there are too few admissible pairs, the
    candidate is infeasible. With an odd number of records one is left out of the matching.
    Missing is a category like any other. Weights are not used: each record keeps its own. Unweighted counts of the swapped
    variables together, and of the unswapped ones, are preserved exactly; weighted ones are not. Households are swapped
    whole with `whole_households`; otherwise persons are swapped one by one.

    Likelihood: a record keeps its values with probability 1 - 2 pairs/records. Otherwise it has those of a partner, in
    proportion to the records that differ in every swapped variable and agree in `same` and `within`. `differ`, targets
    and household sizes are ignored.
    Reference: Gomatam, Karr, Sanil (2003), section 3; targets and households as in census swapping.

    Examples
    --------
    >>> Swap(on=["Age", "Sex"], rate=0.05).text
    "Swap(on=['Age', 'Sex'], rate=0.05)"
    """

    label: ClassVar[str] = "Data swapping"
    description: ClassVar[str] = "Random pairs of records exchange the values of some variables."

    kinds: ClassVar[tuple[str, ...]] = ("ordinal", "nominal")
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used to draw pairs; each record keeps its own weight"
    households: ClassVar[str] = (
        "swapped as a whole if `whole_households` is set; otherwise persons are swapped one by one"
    )
    value_origin: ClassVar[Origin] = "permuted"
    kept: ClassVar[str] = (
        "unweighted counts of each variable, and of all tables of only swapped or only unswapped variables"
    )
    distorted: ClassVar[str] = (
        "relations between swapped and unswapped variables; weighted counts of the swapped variables"
    )
    searched: ClassVar[Strengths | None] = Strengths("rate", 0.02, 0.5)

    on: tuple[str, ...]
    rate: Annotated[float, Range(0, 0.5, "(]")] = 0.01
    same: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    pairing: Literal["matching", "greedy"] = "matching"
    target: Literal["none", "small cells", "risk"] = "none"
    n: Annotated[int, Range(2)] = 3
    risk_on: tuple[str, ...] = ()
    whole_households: bool = False

    @property
    def action(self) -> str:
        first = {"none": "", "small cells": ", small cells first", "risk": ", risky records first"}[self.target]
        return f"swapped {format_percent(self.rate)}{first}{' in whole households' if self.whole_households else ''}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        rates = (0.05, 0.25) if roles.keys else ()
        return {f"{cls.__name__} {format_strength(rate)}": cls(roles.most_diverse_keys, rate) for rate in rates}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        for constraint in ("same", "differ"):
            if both := sorted(set(self.on) & set(getattr(self, constraint))):
                yield f".{constraint} must not name a swapped variable: {', '.join(both)}."
        if both := sorted(set(self.same) & set(self.differ)):
            yield f".same and .differ must not name the same variable: {', '.join(both)}."
        if self.target != "none" and self.pairing != "greedy":
            yield f".target = {self.target!r} needs pairing = 'greedy'."

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.same, *self.differ, *self.risk_on)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.target != "none" and not (self.risk_on or data.keys):
            yield "Swap.target needs a table of keys: give the file keys, or name variables in `risk_on`."
        if self.whole_households:
            constant = (*self.on, *self.same, *self.differ, *self.within)
            yield from household_problems(data, "Swap.whole_households", constant)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        for name in self.on:
            if data.level_count(name) < 2:
                raise Infeasible(
                    f"{name!r} has only one category, so no two records differ in it. Remove it from `on`."
                )
        households = data.view(households_of, data.household) if self.whole_households and data.household else None
        first, second = self._pairs(data, households, rng)
        if households is not None:
            first, second = households.rows(first), households.rows(second)
        rows, partners = np.concatenate([first, second]), np.concatenate([second, first])
        return data.change(rows, {name: data.codes(name).take(partners) for name in self.on})

    def _pairs(self, data: Microdata, households: Households | None, rng: Generator) -> tuple[Array, Array]:
        """Return the pairs of records or households that the rate requires, or raise Infeasible."""
        must_differ = data.view(stack_codes, (*self.on, *self.differ))
        must_agree = data.view(cells, self.same).code if self.same else NO_CONSTRAINT
        if households is not None:
            heads, sizes = households.members[households.start[:-1]], np.diff(households.start)
            must_differ = must_differ[heads]
            must_agree = compress([must_agree[heads], sizes])[0] if self.same else sizes
        units, noun = len(must_differ), "records" if households is None else "households"
        if (wanted := self._pair_count(units)) == 0:
            raise Infeasible(f"a rate of {self.rate:g} is less than one pair of the {units} {noun}.")
        if self.target != "none":
            visit = visiting_order(self._cell_counts(data, households), self.target, self.n, rng)
            first, second = pairs_in_turn(wanted, visit, must_differ, must_agree, rng)
        else:
            draw = matching_pairs if self.pairing == "matching" else greedy_pairs
            first, second = draw(wanted, must_differ, must_agree, rng)
        if len(first) < wanted:
            available = f"only {len(first)} of the {wanted} pairs that the rate requires are admissible"
            if self.pairing == "matching":
                raise Infeasible(f"{available}; lower the rate, or use greedy pairing.")
            raise Infeasible(f"{available}: no two of the {units - 2 * len(first)} {noun} left can be swapped.")
        return first, second

    def _pair_count(self, units: int) -> int:
        """Return the number of pairs that the rate requires."""
        return int(np.floor(self.rate * units + 0.5))

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        split, names = len(known), self.known_names(known)
        if not names:
            return ()
        codes = [common_codes(known, released, name) for name in names]
        group = joint_codes(known, released, (*self.same, *self.within))
        cell, _ = compress([group, *codes])
        _, first = np.unique(cell, return_index=True)
        strata = np.bincount(joint_codes(known, released, self.within)[split:])
        moved = 2 * sum(self._pair_count(int(records)) for records in strata) / max(len(released), 1)
        table = np.column_stack([group, *codes])[first].astype(np.int64)
        count = np.bincount(cell[split:], minlength=len(first))
        density = SwapDensity(table, min(moved, 1.0), count, partner_counts(table, count))
        return (Field(cell[:split].astype(float), cell[split:].astype(float), density),)

    def _cell_counts(self, data: Microdata, households: Households | None) -> Array:
        table = data.view(cells, self.risk_on or data.keys)
        counts = table.count[table.code]
        return counts if households is None else households.fewest(counts)
