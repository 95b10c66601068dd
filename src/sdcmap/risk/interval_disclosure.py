"""Interval disclosure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array

PERCENTS = np.arange(1, 11)  # the width is 1, 2, ... 10 %


def rank_widths(x: Array, z: Array) -> Array:
    """For how many of the widths p = 1..10 % the value x lies between the masked values whose ranks are p n from z's."""
    n = len(z)
    place = np.sort(z)
    twice = np.searchsorted(place, z, side="left") + np.searchsorted(place, z, side="right") - 1  # equal ones: mid-rank
    inside = np.zeros(n)
    for reach in (-(-PERCENTS * n // 100)).tolist():  # rounded up
        low = place[np.maximum(-(-twice // 2) - reach, 0)]
        high = place[np.minimum(twice // 2 + reach, n - 1)]
        inside += (low <= x) & (x <= high)
    return inside


def spread_widths(x: Array, z: Array, spread: float) -> Array:
    """For how many of the widths p = 1..10 % of the standard deviation |x - z| <= p s; NaN where one is missing."""
    apart = np.abs(x - z)
    if not spread > 0:
        return np.where(np.isnan(apart), np.nan, np.where(apart == 0, float(len(PERCENTS)), 0.0))
    apart *= 100 / spread
    np.ceil(apart, out=apart)  # the first percent that reaches
    np.maximum(apart, 1, out=apart)
    np.subtract(len(PERCENTS) + 1, apart, out=apart)
    inside: Array = np.maximum(apart, 0, out=apart)
    return inside


def _spread(data: Microdata, name: str) -> float:
    x = data.numbers(name)
    return float(np.nanstd(x, ddof=1)) if (~np.isnan(x)).sum() > 1 else 0.0


@dataclass(frozen=True)
class IntervalDisclosure(Measure):
    """The share of values that lie in a narrow interval around their masked value.

    The snooper has the right record and asks how well the masked value tells the true one. He takes an interval around
    the masked value, and succeeds when the true value is in it; the mean over intervals of 1 % to 10 % is reported.

    Parameters
    ----------
    kind : "rank", between the masked values whose ranks are p % of the records away; "sd", within p % of the original
        variable's standard deviation.
    on : the variables he wants to know; by default the numeric variables.

    Formula: mean over p = 1..10, records and variables of [z_(r - pn/100) <= x <= z_(r + pn/100)], r the rank of the
    masked value z among the masked values (equal ones: the middle) and pn/100 rounded up; or of [|x - z| <= p/100 s].
    Missing: values that are missing before or after are left out. Weights and households are not used.
    It has no level for releasing nothing: the snooper has no interval then.
    Reference: Mateo-Sanz, Sebe, Domingo-Ferrer (2004); Yancey, Winkler, Creecy (2002), section 4.

    Examples
    --------
    >>> IntervalDisclosure("sd").text
    "IntervalDisclosure(kind='sd')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of values"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "values missing before or after are left out"

    kind: Literal["rank", "sd"] = "rank"
    on: tuple[str, ...] = field(default=(), kw_only=True)

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        inside = self._inside(original, masked, names)
        count = {name: len(column) - int(np.isnan(column).sum()) for name, column in zip(names, inside, strict=True)}
        if not any(count.values()):
            raise Undefined("no value is there before and after masking.")
        total = {name: float(np.nansum(column)) for name, column in zip(names, inside, strict=True)}
        each = {name: total[name] / count[name] / len(PERCENTS) for name in names if count[name]}
        return Estimate(value=sum(total.values()) / sum(count.values()) / len(PERCENTS), parts=each)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The share of the record's values, over the ten widths, that lie in their interval; NaN where it has none."""
        inside = np.column_stack(self._inside(original, masked, self.checked(original)))
        count = (~np.isnan(inside)).sum(axis=1)
        share = np.nansum(inside, axis=1) / np.maximum(count, 1) / len(PERCENTS)
        return np.where(count > 0, share, np.nan)

    def _inside(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[Array]:
        """For each variable, at how many of the ten widths each value is disclosed; NaN: missing before or after."""
        if masked.origin is None and len(masked) != len(original):
            raise Undefined("the masked file does not say which record each of its rows was.")
        columns = []
        for name in names:
            raw, z = original.numbers(name), masked.numbers(name)
            x = raw if masked.origin is None else raw[masked.origin]
            if self.kind == "sd":
                columns.append(spread_widths(x, z, original.view(_spread, name)))
                continue
            both = ~(np.isnan(x) | np.isnan(z))
            column = np.full(len(z), np.nan)
            column[both] = rank_widths(x[both], z[both])
            columns.append(column)
        return columns
