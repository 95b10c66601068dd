"""Business data: re-identification of the largest units, and totals that disclose the largest contributor (p % rule)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Floats, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import common_codes, recode_to_released_categories
from sdcmap.kernels.tables.coding import compress

DISTANCE_TOLERANCE = 1e-12  # relative difference up to which two distances are tied


class Ranks(NamedTuple):
    """The rank of each record in its group, largest first: how many records are larger, and how many are equally large."""

    above: Array
    ties: Array


def descending_ranks(group: Array, size: Array) -> Ranks:
    """Return the rank of each size in its group; missing sizes come last and are not tied."""
    order = np.lexsort([-size, group])
    new_group = np.append(True, np.diff(group[order]) != 0)[: len(order)]
    new_size = new_group | np.append(True, size[order][1:] != size[order][:-1])[: len(order)]  # NaN equals nothing
    begin = np.flatnonzero(new_group)[np.cumsum(new_group) - 1]
    first = np.flatnonzero(new_size)
    run = np.cumsum(new_size) - 1
    ranks = np.empty((2, len(order)), dtype=np.int64)
    ranks[:, order] = first[run] - begin, np.diff(np.append(first, len(order)))[run]
    return Ranks(*ranks)


def same_rank(ours: Ranks, theirs: Ranks) -> Array:
    """Return the probability that two records have the same rank if the ties of each are ordered at random."""
    end = np.minimum(ours.above + ours.ties, theirs.above + theirs.ties)
    return np.asarray(np.maximum(0, end - np.maximum(ours.above, theirs.above)) / (ours.ties * theirs.ties))


def nearest_size(size: Array, released: Array) -> tuple[Array, Array]:
    """Return the distance from each size to the nearest released size, and how many released sizes are as near."""
    # the nearest value is one of the two neighbors in the sorted values; both count if they are tied
    values, count = np.unique(released, return_counts=True)
    right = np.searchsorted(values, size)
    sides = np.stack([np.maximum(right - 1, 0), np.minimum(right, len(values) - 1)])
    away = np.abs(values[sides] - size)
    reach = away.min(axis=0) * (1 + DISTANCE_TOLERANCE)
    near = (away <= reach) & np.stack([np.ones(len(size), dtype=np.bool_), sides[0] != sides[1]])
    return reach, (near * count[sides]).sum(axis=0)


@dataclass(frozen=True)
class LargestUnits(RiskMeasure):
    """Share of the largest units that an attacker re-identifies by their size.

    The attacker reads the business press: a ranking of the firms of an industry, or an annual report with the turnover.
    They take the r-th largest released record for the r-th largest firm, or the record whose size is nearest to the
    published one. A few units dominate business data, and noise that hides many small units leaves the largest
    recognizable.

    Parameters
    ----------
    on : the numeric variable that measures size: turnover, employees, hectares.
    largest : how many units of each group the ranking names, at least 1; ties with the last one are included.
    share : instead of `largest`, the share of the units of each group, in (0, 1].
    within : the variables that define the groups, such as industry and region; by default one group, the whole file.

    Formula: the larger of "by rank" and "by value", both in `parts`, each the expected share of the largest units that
        is re-identified. By rank, ties in either file are ordered at random; by value, one of t nearest records is
        chosen with probability 1/t. The attacker searches the released records of the unit's own group, in the released
        categories.
    `parts` also contains "units", their number; "largest unit", the success rate for the first unit of each group; and,
    if no size is negative, "share of the total", which the (n, k) dominance rule uses.
    Missing sizes have no rank and are no targets. Units that were not released are not re-identified. Weights and
    households are not used: a ranking counts units. Releasing nothing leaves a guess: 1/n.
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
        target, ranks, rows, chances = self._attack(original, masked)
        size, units = original.numbers(self.on), int(target.sum())
        rates = {name: math.fsum(chance) / units for name, chance in chances.items()}
        first, best = target & (ranks.above == 0), max(chances.values(), key=math.fsum)
        parts = rates | {"units": float(units), "largest unit": math.fsum(best[first[rows]]) / int(first.sum())}
        total = float(np.nansum(size))
        if total > 0 and not (size < 0).any():
            parts["share of the total"] = float(size[target].sum()) / total
        return Estimate(value=max(rates.values()), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the probability that each of the largest units is re-identified by the better attack; NaN for others."""
        target, _, rows, chances = self._attack(original, masked)
        return np.where(target[rows], max(chances.values(), key=math.fsum), np.nan)

    def _attack(self, original: Microdata, masked: Microdata) -> tuple[Array, Ranks, Array, dict[str, Array]]:
        """Run both attacks on every released record.

        Returns which original records are targets, their ranks, the original of each released record, and the success
        probability of each attack by name.
        """
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
        # a target can be re-identified only if it was released with a size, in its own group
        candidates = np.flatnonzero(target[rows] & (group[rows] == released_group) & ~np.isnan(released))
        released_ranks = descending_ranks(released_group, released)
        by_rank, by_value = np.zeros(len(masked)), np.zeros(len(masked))
        true_ranks = Ranks(*(r[rows[candidates]] for r in ranks))
        by_rank[candidates] = same_rank(true_ranks, Ranks(*(r[candidates] for r in released_ranks)))
        for g in np.unique(released_group[candidates]).tolist():
            in_group = candidates[released_group[candidates] == g]
            reach, ties = nearest_size(size[rows[in_group]], released[(released_group == g) & ~np.isnan(released)])
            by_value[in_group] = (np.abs(released[in_group] - size[rows[in_group]]) <= reach) / ties
        return target, ranks, rows, {"by rank": by_rank, "by value": by_value}

    def _groups(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Return the group of each original and of each released record."""
        if not self.within:
            return np.zeros(len(original), dtype=np.int64), np.zeros(len(masked), dtype=np.int64)
        require_released_columns(masked, self.within)
        known = recode_to_released_categories(original, masked, self.within)
        code = compress([common_codes(known, masked, name) for name in self.within])[0]
        return code[: len(original)], code[len(original) :]


def require_released_columns(masked: Microdata, names: Sequence[str]) -> None:
    """Raise `Undefined` if the release lacks one of these columns."""
    lacking = [name for name in names if name not in masked.names]
    if lacking:
        raise Undefined(f"the released file has no column {', '.join(map(repr, lacking))}.")


# The p % rule for totals of a released file.


def two_largest(cell: Array, size: Floats, cells: int) -> tuple[Floats, Floats]:
    """Return the largest and the second largest contribution to each cell; 0 if there is none.

    cell : 0, 1, ... `cells` - 1 of each contribution; sizes are not negative
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
    """Share of totals from which the second largest unit can estimate the largest within p %.

    The attacker is a competitor. They sum the released records of an industry or region and subtract their own
    contribution, which bounds the largest unit; if the others are small, the bound is close to its value. A cell fails
    if the attacker comes within p % of the truth.

    Parameters
    ----------
    on : the numeric variable that is summed: turnover, employees, hectares; never negative.
    by : the variables whose categories are the cells, one variable at a time; by default the keys of the file.
    p : how close is too close, in percent of the largest unit, above 0.

    Formula: the share of the cells with |T - x2 - x1| <= p/100 x1, x1 and x2 the two largest of the cell in the
        original, T the weighted total of the cell in the release. In an unmasked census this is the p % rule: the
        others together, X - x1 - x2, are less than p % of x1. Cells without a unit above 0 are not counted; a category
        that is not in the release discloses nothing.
    `parts`: "cells", how many; "failing", how many fail; "failing in the original", by the rule.
    Missing numbers count as 0; in `by`, missing is a category. Weights: totals are weighted if there are weights.
    Households are not used. Sampled and synthetic files can be measured. Releasing nothing discloses no total: 0.
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
    missing: ClassVar[str] = "a missing number counts as 0; in `by` missing is a category of its own"
    weights: ClassVar[str] = "used: totals are weighted"

    on: str
    by: tuple[str, ...] = ()
    p: Annotated[float, Range(0, None, "()")] = 10.0

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if not self._columns(data):
            yield "PPercent needs cells: give columns the role key, or name columns in `by`."
        yield from self.unknown_columns(data, self.by)
        if self.on in data.schema and data.schema[self.on].kind == "numeric" and (data.numbers(self.on) < 0).any():
            yield f"PPercent: {self.on!r} has negative numbers; contributions to a total must not be negative."

    def _columns(self, data: Microdata) -> tuple[str, ...]:
        return self.by or tuple(name for name in data.keys if name != self.on)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        names = self._columns(original)
        require_released_columns(masked, names)
        if masked.column(self.on).levels is not None:
            raise Undefined(f"{self.on!r} was recoded into categories, which have no total.")
        cells, failing, before = np.sum([self._counts(original, masked, name) for name in names], axis=0).tolist()
        if not cells:
            raise Undefined(f"no cell has a unit with {self.on!r} above 0.")
        parts = {"cells": cells, "failing": failing, "failing in the original": before}
        return Estimate(value=failing / cells, parts=parts)

    def _counts(self, original: Microdata, masked: Microdata, name: str) -> Floats:
        """Return the number of cells of one column, of those that fail, and of those that fail in the original."""
        known = recode_to_released_categories(original, masked, (name,))
        code = common_codes(known, masked, name).astype(np.int64)
        ours, theirs, cells = code[: len(known)], code[len(known) :], int(code.max(initial=0)) + 1
        own, released = np.nan_to_num(original.numbers(self.on)), np.nan_to_num(masked.numbers(self.on))
        first, second = two_largest(ours, own, cells)
        totals = np.bincount(theirs, masked.weights * released, cells), np.bincount(ours, own, cells)
        after, before = ((np.abs(t - second - first) <= self.p / 100 * first) & (first > 0) for t in totals)
        is_released = np.bincount(theirs, minlength=cells) > 0
        return np.array([(first > 0).sum(), (after & is_released).sum(), before.sum()], dtype=np.float64)
