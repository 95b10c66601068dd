"""The p % rule on totals of a released file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined, did_you_mean
from sdcmap.kernels.arrays import Array, Floats


class Tops(NamedTuple):
    """The largest and the second largest contribution to each cell; 0 where there is none."""

    first: Floats
    second: Floats


def two_largest(cell: Array, size: Floats, cells: int) -> Tops:
    """cell : 0, 1, ... `cells` - 1 of each contribution; sizes are not negative."""
    order = np.lexsort([-size, cell])
    begins = np.append(True, np.diff(cell[order]) != 0)[: len(order)]
    follows = np.append(False, begins[:-1])[: len(order)] & ~begins
    first, second = np.zeros(cells), np.zeros(cells)
    first[cell[order][begins]] = size[order][begins]
    second[cell[order][follows]] = size[order][follows]
    return Tops(first, second)


@dataclass(frozen=True)
class PPercent(Measure):
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

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of totals"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    paired: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a missing number counts as nothing; in `by` missing is a category of its own"
    weights: ClassVar[str] = "used: totals are weighted"

    on: str
    by: tuple[str, ...] = ()
    p: Annotated[float, Range(0, None, "()")] = 10.0

    @property
    def told(self) -> str:
        return f"totals that tell the largest {self.on} within {self.p:g} %"

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if not self._columns(data):
            yield "PPercent needs cells: state keys, or name columns in `by`."
        for name in self.by:
            if name not in data.schema:
                yield f"PPercent: no column {name!r}.{did_you_mean(name, data.names)}"
        if self.on in data.schema and data.schema[self.on].kind == "numeric" and (data.numbers(self.on) < 0).any():
            yield f"PPercent: {self.on!r} has negative numbers, of which totals have no largest part."

    def _columns(self, data: Microdata) -> tuple[str, ...]:
        return self.by or tuple(name for name in data.keys if name != self.on)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        names = self._columns(original)
        lacking = [name for name in names if name not in masked.names]
        if lacking:
            raise Undefined(f"the released file has no column {', '.join(map(repr, lacking))}.")
        if masked.column(self.on).levels is not None:
            raise Undefined(f"{self.on!r} was recoded into categories, which have no total.")
        counts = np.sum([self._counts(original, masked, name) for name in names], axis=0)
        cells, failing, before = counts.tolist()
        if not cells:
            raise Undefined(f"no cell has a unit with {self.on!r} above 0.")
        parts = {"cells": cells, "failing": failing, "failing in the original": before}
        return Estimate(value=failing / cells, parts=parts)

    def _counts(self, original: Microdata, masked: Microdata, name: str) -> Floats:
        """Cells of one column, those that fail, and those that fail in the original."""
        known = in_released_categories(original, masked, (name,))
        code = common_codes(known, masked, name).astype(np.int64)
        ours, theirs, cells = code[: len(known)], code[len(known) :], int(code.max(initial=0)) + 1
        own = np.nan_to_num(original.numbers(self.on))
        top = two_largest(ours, own, cells)
        reach = self.p / 100 * top.first
        told = [
            np.bincount(codes, weights * np.nan_to_num(sizes), cells) - top.second - top.first
            for codes, weights, sizes in (
                (theirs, masked.weights, masked.numbers(self.on)),
                (ours, np.ones(len(own)), own),
            )
        ]
        there = np.bincount(theirs, minlength=cells) > 0
        failing = [(np.abs(error) <= reach) & (top.first > 0) for error in told]
        return np.array([(top.first > 0).sum(), (failing[0] & there).sum(), failing[1].sum()], dtype=np.float64)
