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
from sdcmap.core.roles import Strengths, format_strength
from sdcmap.data.cells import cells, common_codes
from sdcmap.kernels.scratch_memory import empty
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods._swap_pairs import greedy_pairs, matching_pairs, pairs_in_turn

NO_CONSTRAINT = np.empty(0, dtype=np.int32)


def stack_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """The codes of `names` side by side, one row a record: what a pair must differ in."""
    codes = [data.codes(name) for name in names]
    stacked = empty((len(data), len(codes)), np.result_type(np.uint8, *codes))
    for place, code in enumerate(codes):
        stacked[:, place] = code
    return stacked


@dataclass(frozen=True)
class Households:
    """The rows of the file, household by household, and where each household begins (one more: the end)."""

    members: Array
    start: Array

    def rows(self, chosen: Array) -> Array:
        """The rows of these households, one household after the other."""
        sizes = self.start[chosen + 1] - self.start[chosen]
        skipped = np.repeat(self.start[chosen] - np.cumsum(sizes) + sizes, sizes)
        return self.members[skipped + np.arange(len(skipped))]

    def fewest(self, counts: Array) -> Array:
        """The least of the counts of each household's members."""
        return np.asarray(np.minimum.reduceat(counts[self.members], self.start[:-1]))


def households_of(data: Microdata, name: str) -> Households:
    """The households of the file, as a view."""
    code = data.codes(name)
    members = np.argsort(code, kind="stable")
    breaks = np.flatnonzero(code[members[1:]] != code[members[:-1]]) + 1
    return Households(members, np.concatenate([[0], breaks, [len(members)]]))


def varies_within(data: Microdata, names: tuple[str, ...]) -> bool:
    """Whether the second variable differs within a household, the first."""
    units = data.view(households_of, names[0])
    code = data.codes(names[1])[units.members]
    return bool((code != np.repeat(code[units.start[:-1]], np.diff(units.start))).any())


def household_problems(data: Microdata, label: str, constant: Iterable[str]) -> Iterator[str]:
    """Why households cannot be moved or drawn whole, a sentence each; `constant`: what must not vary within them."""
    household = data.household
    if household is None:
        yield f"{label} needs a file with a household."
        return
    if lost := int(data.missing(household).sum()):
        yield f"{label}: {lost} records have no household in {household!r}."
    for name in constant:
        if name in data.schema and data.view(varies_within, (household, name)):
            yield f"{label}: {name!r} is not constant within households."


def visiting_order(cell_count: Array, target: str, n: int, rng: Generator) -> Array:
    """A random order of the records in which risky ones come early; `cell_count`: the records in the cell of each."""
    if target == "risk":  # the order of exponential times with rate 1/count  (Efraimidis, Spirakis 2006)
        return np.argsort(rng.standard_exponential(len(cell_count)) * cell_count)
    visit = rng.permutation(len(cell_count))
    small = cell_count[visit] < n
    return np.concatenate([visit[small], visit[~small]])


def joint_codes(known: Microdata, released: Microdata, names: tuple[str, ...]) -> Array:
    """The cell of each record of both files, the known ones first, in the table of `names`; one cell without names."""
    if not names:
        return np.zeros(len(known) + len(released), dtype=np.int64)
    return compress([common_codes(known, released, name) for name in names])[0]


def partner_counts(table: Array, count: Array) -> Array:
    """For each cell, the records of its group (first column of `table`) that differ from it in every other column.

    Inclusion and exclusion over the sets of columns S: sum over S of (-1)^|S| (records that agree with it in S).
    """
    partners = np.zeros(len(table))
    columns = range(1, table.shape[1])
    for size in range(table.shape[1]):
        for chosen in combinations(columns, size):
            place, _ = compress([table[:, 0], *(table[:, column] for column in chosen)])
            partners += (-1) ** size * np.bincount(place, weights=count)[place]
    return partners


@dataclass(frozen=True, eq=False)
class SwapDensity:
    """A record keeps its cell, or has the values of a partner that differs in every swapped variable.

    table : the group of each cell, which nobody leaves, and its swapped variables. moved : the share of records with a
    partner. count : the records in each cell. partners : those a record of this cell could be swapped with.
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
    on : categorical variables to swap, all at once.
    rate : number of pairs as a share of the records, in (0, 0.5]: round(rate * records) pairs, twice as many records.
        With `whole_households`, a share of the households.
    same : variables, not swapped, in which the two records must agree.
    differ : variables, not swapped, in which they must differ.
    pairing : "matching" draws one random perfect matching of the records and takes its first admissible pairs (the
        paper's); "greedy" matches the records still unused again, until there are enough pairs or no two unused records
        make an admissible pair.
    target : who is swapped first. "none": all alike. "small cells": the records in cells with fewer than `n` records of
        the table of `risk_on`, in random order, then all others. "risk": records in a random order in which each comes
        next with probability proportional to 1/(records in its cell). Each in its turn, if still unused, takes a
        partner drawn uniformly among all unused records that make an admissible pair with it. Needs greedy pairing.
    n : with "small cells": a cell with fewer than n records is small; at least 2.
    risk_on : with a target: the variables that make the table; by default the keys of the file.
    whole_households : swap households and not persons: two households with equally many persons are a pair, and all
        members take the values of the other household. All variables named in `on`, `same`, `differ` and `within` must
        be constant within households. With a target, a household stands in the smallest cell of its members.

    Formula: one random perfect matching of the records; its first round(rate * records) admissible pairs exchange values.
    Every swapped record changes in every swapped variable ("true swap"). A request that the pairing cannot fill is
    infeasible, with the counts; it is never partly done. With an odd number of records one stays out.
    Missing is a category like any other, in all of these variables. Weights are not used: unweighted margins, the joint
    distribution of the swapped and that of the unswapped variables are kept exactly, weighted ones are not; each record
    keeps its own weight. Households are swapped whole with `whole_households`, else persons are swapped one by one.

    Likelihood: a record keeps its values with the probability 1 - 2 pairs/records, else it has those of a partner, in
    proportion to the records that differ in every swapped variable and agree in `same` and `within`. What `differ`, a
    target and household sizes say about partners is left out.
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
    households: ClassVar[str] = "swapped whole with `whole_households`, else persons are swapped one by one"
    kept: ClassVar[str] = "unweighted counts of each variable, of the swapped and of the unswapped variables together"
    distorted: ClassVar[str] = "relations between swapped and unswapped variables; weighted counts"
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
            yield f".same and .differ must not name one variable: {', '.join(both)}."
        if self.target != "none" and self.pairing != "greedy":
            yield f".target = {self.target!r} needs pairing = 'greedy'."

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.same, *self.differ, *self.risk_on)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.target != "none" and not (self.risk_on or data.keys):
            yield "Swap.target needs a table: state keys, or name variables in `risk_on`."
        if self.whole_households:
            constant = (*self.on, *self.same, *self.differ, *self.within)
            yield from household_problems(data, "Swap.whole_households", constant)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        for name in self.on:
            if data.level_count(name) < 2:
                raise Infeasible(f"{name!r} has one category, so no two records differ in it.")
        households = data.view(households_of, data.household) if self.whole_households and data.household else None
        first, second = self._pairs(data, households, rng)
        if households is not None:
            first, second = households.rows(first), households.rows(second)
        rows, partners = np.concatenate([first, second]), np.concatenate([second, first])
        return data.change(rows, {name: data.codes(name).take(partners) for name in self.on})

    def _pairs(self, data: Microdata, households: Households | None, rng: Generator) -> tuple[Array, Array]:
        """As many pairs of records, or of households, as the rate asks for, or Infeasible with the counts."""
        must_differ = data.view(stack_codes, (*self.on, *self.differ))
        must_agree = data.view(cells, self.same).code if self.same else NO_CONSTRAINT
        if households is not None:
            heads, sizes = households.members[households.start[:-1]], np.diff(households.start)
            must_differ = must_differ[heads]
            must_agree = compress([must_agree[heads], sizes])[0] if self.same else sizes
        units, noun = len(must_differ), "records" if households is None else "households"
        if (wanted := self._pair_count(units)) == 0:
            raise Infeasible(f"a rate of {self.rate:g} of {units} {noun} is no pair at all.")
        if self.target != "none":
            visit = visiting_order(self._cell_counts(data, households), self.target, self.n, rng)
            first, second = pairs_in_turn(wanted, visit, must_differ, must_agree, rng)
        else:
            draw = matching_pairs if self.pairing == "matching" else greedy_pairs
            first, second = draw(wanted, must_differ, must_agree, rng)
        if len(first) < wanted:
            asked = f"{len(first)} admissible pairs of the {wanted} that the rate asks for"
            if self.pairing == "matching":
                raise Infeasible(f"the matching has {asked}.")
            left = f"no two of the {units - 2 * len(first)} {noun} left can be swapped"
            raise Infeasible(f"greedy pairing found {asked}: {left}.")
        return first, second

    def _pair_count(self, units: int) -> int:
        """The number of pairs that the rate asks for."""
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
