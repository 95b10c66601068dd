"""Business data: the largest units, and contributors whose value others can estimate (p %)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Floats, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import common_codes, recode_to_released_categories
from sdcmap.kernels.tables.coding import compress

ROUNDING = 1e-12  # of a distance, relative


class Ranks(NamedTuple):
    """Where each record stands in its group, the largest first: how many are larger, and how many are as large."""

    above: Array
    ties: Array


def descending_ranks(group: Array, size: Array) -> Ranks:
    """The rank of each size in its group; a missing one is below all others, and nobody's equal."""
    order = np.lexsort([-size, group])
    place = np.arange(len(order))
    new_group = np.append(True, np.diff(group[order]) != 0)[: len(order)]
    new_size = new_group | np.append(True, size[order][1:] != size[order][:-1])[: len(order)]  # NaN equals nothing
    begin = place[new_group][np.cumsum(new_group) - 1]
    first = np.flatnonzero(new_size)
    run = np.cumsum(new_size) - 1
    ranks = np.empty((2, len(order)), dtype=np.int64)
    ranks[:, order] = first[run] - begin, np.diff(np.append(first, len(order)))[run]
    return Ranks(*ranks)


def same_rank(ours: Ranks, theirs: Ranks) -> Array:
    """The chance that two records have the same rank, ties of each being ordered at random."""
    end = np.minimum(ours.above + ours.ties, theirs.above + theirs.ties)
    return np.asarray(np.maximum(0, end - np.maximum(ours.above, theirs.above)) / (ours.ties * theirs.ties))


def nearest_size(size: Array, released: Array) -> tuple[Array, Array]:
    """How far the nearest of the released sizes is from each size, and how many are as near."""
    met, count = np.unique(released, return_counts=True)
    right = np.searchsorted(met, size)
    sides = np.stack([np.maximum(right - 1, 0), np.minimum(right, len(met) - 1)])
    away = np.abs(met[sides] - size)
    reach = away.min(axis=0) * (1 + ROUNDING)
    near = (away <= reach) & np.stack([np.ones(len(size), dtype=np.bool_), sides[0] != sides[1]])
    return reach, (near * count[sides]).sum(axis=0)


@dataclass(frozen=True)
class LargestUnits(RiskMeasure):
    """The share of the largest units that a snooper finds who knows how large they are.

    The snooper reads the business press: a ranking of the firms of a trade, an annual report with the turnover. He takes
    the r-th largest released record for the r-th largest firm, or the record whose size is nearest to the published one,
    and succeeds when it is that firm's. A few units dominate business data, and noise that hides the many small ones
    leaves the largest where they were.

    Parameters
    ----------
    on : the numeric variable that says how large a unit is: turnover, employees, hectares.
    largest : how many units the ranking names, in each group, at least 1; those as large as the last are among them.
    share : in place of `largest`, the share of the units of each group, in (0, 1].
    within : the variables that make the groups, such as trade and region; by default one group, the whole file.

    Formula: the larger of "by rank" and "by value", in `parts`, each the expected share of the largest units that is found.
    By rank, ties of either file are ordered at random; by value, of t nearest records his is taken with probability 1/t.
    He looks among the released records of the unit's own group, in the categories of the release. Also in `parts`:
    "units", how many; "the very largest", the share found of the first of each group; and where no size is negative
    "share of the total", what these units hold of the sum of all (what an (n, k) dominance rule looks at).
    Missing sizes have no rank and are no targets. Units that were not released are not found. Weights and households are
    not used: a ranking counts units. Releasing nothing leaves a guess: 1/n.
    Reference: Hundepool et al. (2012), Statistical Disclosure Control, for dominance; the two attacks are ours.

    Examples
    --------
    >>> LargestUnits(on="turnover", largest=5, within="trade").text
    "LargestUnits(on='turnover', largest=5, within='trade')"
    """

    label: ClassVar[str] = "Largest units re-identified"
    description: ClassVar[str] = "Share of the largest units, such as firms, that an attacker recognizes by their size."

    unit: ClassVar[str] = "share of the largest units"
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a missing size has no rank; in `within` missing is a category of its own"

    on: str
    largest: Annotated[int, Range(1)] = 10
    share: Annotated[float | None, Range(0, 1, "(]")] = None
    within: tuple[str, ...] = ()

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return self.unknown_columns(data, self.within)

    def baseline(self, original: Microdata) -> float | None:
        return 1 / len(original) if len(original) else None

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        target, ranks, rows, chances = self._hunt(original, masked)
        size, units = original.numbers(self.on), int(target.sum())
        rates = {name: math.fsum(found) / units for name, found in chances.items()}
        first, best = target & (ranks.above == 0), max(chances.values(), key=math.fsum)
        parts = rates | {"units": float(units), "the very largest": math.fsum(best[first[rows]]) / int(first.sum())}
        total = float(np.nansum(size))
        if total > 0 and not (size < 0).any():
            parts["share of the total"] = float(size[target].sum()) / total
        return Estimate(value=max(rates.values()), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance that each of the largest units is found, by the better attack; NaN: it is none of these."""
        target, _, rows, chances = self._hunt(original, masked)
        return np.where(target[rows], max(chances.values(), key=math.fsum), np.nan)

    def _hunt(self, original: Microdata, masked: Microdata) -> tuple[Array, Ranks, Array, dict[str, Array]]:
        """Both attacks on every released record: which original records are wanted and how they rank, the original of
        each released record, and the chance that the attacks, by name, find it."""
        self.check_variables(original)
        size, released = original.numbers(self.on), masked.numbers(self.on)
        group, released_group = self._groups(original, masked)
        ranks = descending_ranks(group, size)
        present = ~np.isnan(size)
        if not present.any():
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        count = np.bincount(group[present], minlength=int(group.max()) + 1)
        target = present & (ranks.above < (self.largest if self.share is None else np.ceil(self.share * count[group])))
        rows = np.arange(len(masked)) if masked.origin is None else masked.origin
        there = np.flatnonzero(target[rows] & (group[rows] == released_group) & ~np.isnan(released))
        theirs = descending_ranks(released_group, released)
        by_rank, is_value_map = np.zeros(len(masked)), np.zeros(len(masked))
        by_rank[there] = same_rank(Ranks(*(r[rows[there]] for r in ranks)), Ranks(*(r[there] for r in theirs)))
        for g in np.unique(released_group[there]).tolist():
            here = there[released_group[there] == g]
            reach, ties = nearest_size(size[rows[here]], released[(released_group == g) & ~np.isnan(released)])
            is_value_map[here] = (np.abs(released[here] - size[rows[here]]) <= reach) / ties
        return target, ranks, rows, {"by rank": by_rank, "by value": is_value_map}

    def _groups(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """The group of each original and of each released record."""
        if not self.within:
            return np.zeros(len(original), dtype=np.int64), np.zeros(len(masked), dtype=np.int64)
        check_released(masked, self.within)
        known = recode_to_released_categories(original, masked, self.within)
        code = compress([common_codes(known, masked, name) for name in self.within])[0]
        return code[: len(original)], code[len(original) :]


def check_released(masked: Microdata, names: Sequence[str]) -> None:
    """Undefined where the release does not have one of these columns."""
    lacking = [name for name in names if name not in masked.names]
    if lacking:
        raise Undefined(f"the released file has no column {', '.join(map(repr, lacking))}.")


# The p % rule on totals of a released file.


def two_largest(cell: Array, size: Floats, cells: int) -> tuple[Floats, Floats]:
    """The largest and the second largest contribution to each cell; 0 where there is none.

    cell : 0, 1, ... `cells` - 1 of each contribution; sizes are not negative.
    """
    order = np.lexsort([-size, cell])
    begins = np.append(True, np.diff(cell[order]) != 0)[: len(order)]
    follows = np.append(False, begins[:-1])[: len(order)] & ~begins
    first, second = np.zeros(cells), np.zeros(cells)
    first[cell[order][begins]] = size[order][begins]
    second[cell[order][follows]] = size[order][follows]
    return first, second


@dataclass(frozen=True)
class PPercent(RiskMeasure):
    """The share of totals from which the second largest unit learns the largest within p %.

    The snooper is a competitor. He adds up the released records of a trade or a region, takes off what he contributes
    himself, and has a bound for the largest unit: where the others are small it is that unit's own number. A release fails
    in a cell where he comes within p % of the truth.

    Parameters
    ----------
    on : the numeric variable that is added up: turnover, employees, hectares; never negative.
    by : the variables whose categories are the cells, each by itself; by default the keys of the file.
    p : how near is too near, in percent of the largest unit, above 0.

    Formula: the share of the cells with |T - x2 - x1| <= p/100 x1, x1 and x2 the two largest of the cell in the original, T
    the total of the cell in the release, by its weights. In an unmasked census it is the p % rule: the others together,
    X - x1 - x2, are less than p % of x1. A cell without a unit above 0 is none; one whose category the release does not
    have tells nothing. `parts`: "cells", how many; "failing", how many fail; "failing in the original", by the rule.
    Missing numbers count as nothing; missing is a category of its own. Weights: totals are weighted where there are some.
    Households are not used. Works for sampled and synthetic files. Releasing nothing tells no total: 0.
    Reference: Cox (1981); Federal Committee on Statistical Methodology (2005), Statistical Policy Working Paper 22;
    Hundepool et al. (2012), Statistical Disclosure Control, chapter 4.

    Examples
    --------
    >>> PPercent(on="turnover", by="trade", p=15).text
    "PPercent(on='turnover', by='trade', p=15.0)"
    """

    label: ClassVar[str] = "Totals that disclose the largest unit"
    description: ClassVar[str] = (
        "Share of totals from which the second largest unit can estimate the largest within p percent."
    )

    unit: ClassVar[str] = "share of totals"
    paired: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a missing number counts as nothing; in `by` missing is a category of its own"
    weights: ClassVar[str] = "used: totals are weighted"

    on: str
    by: tuple[str, ...] = ()
    p: Annotated[float, Range(0, None, "()")] = 10.0

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if not self._columns(data):
            yield "PPercent needs cells: state keys, or name columns in `by`."
        yield from self.unknown_columns(data, self.by)
        if self.on in data.schema and data.schema[self.on].kind == "numeric" and (data.numbers(self.on) < 0).any():
            yield f"PPercent: {self.on!r} has negative numbers, of which totals have no largest part."

    def _columns(self, data: Microdata) -> tuple[str, ...]:
        return self.by or tuple(name for name in data.keys if name != self.on)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        names = self._columns(original)
        check_released(masked, names)
        if masked.column(self.on).levels is not None:
            raise Undefined(f"{self.on!r} was recoded into categories, which have no total.")
        cells, failing, before = np.sum([self._counts(original, masked, name) for name in names], axis=0).tolist()
        if not cells:
            raise Undefined(f"no cell has a unit with {self.on!r} above 0.")
        parts = {"cells": cells, "failing": failing, "failing in the original": before}
        return Estimate(value=failing / cells, parts=parts)

    def _counts(self, original: Microdata, masked: Microdata, name: str) -> Floats:
        """Cells of one column, those that fail, and those that fail in the original."""
        known = recode_to_released_categories(original, masked, (name,))
        code = common_codes(known, masked, name).astype(np.int64)
        ours, theirs, cells = code[: len(known)], code[len(known) :], int(code.max(initial=0)) + 1
        own, released = np.nan_to_num(original.numbers(self.on)), np.nan_to_num(masked.numbers(self.on))
        first, second = two_largest(ours, own, cells)
        totals = np.bincount(theirs, masked.weights * released, cells), np.bincount(ours, own, cells)
        after, before = ((np.abs(t - second - first) <= self.p / 100 * first) & (first > 0) for t in totals)
        there = np.bincount(theirs, minlength=cells) > 0
        return np.array([(first > 0).sum(), (after & there).sum(), before.sum()], dtype=np.float64)
