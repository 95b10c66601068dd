"""Records all of whose values are near their masked values: sdcMicro's dRisk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Positive
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array


@dataclass(frozen=True)
class DRisk(Measure):
    """The share of records whose every value lies in an interval of one width around its masked value.

    The snooper has the right record and takes intervals around its masked values. He succeeds when the true values are
    in all of them. IntervalDisclosure looks at values one by one, and at ten widths.

    Parameters
    ----------
    k : the half width of the interval, in standard deviations; above 0.
    scale : the standard deviation is that of the "released" file, as sdcMicro's, or of the "original", which masking cannot
        move.
    on : the variables he wants to know; by default the numeric variables.

    Formula: #{i: |x_ij - z_ij| <= k s_j for every variable j} / n; `parts`: the share of each variable.
    Missing: a value that is missing before or after is left out; a record without any is not counted. Weights and
    households are not used. It has no level for releasing nothing: the snooper has no interval then.
    Reference: Templ, Kowarik, Meindl (2015), section 3.5; Mateo-Sanz, Sebe, Domingo-Ferrer (2004).

    Examples
    --------
    >>> DRisk(k=0.01).text
    'DRisk(k=0.01)'
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "values missing before or after are left out"

    k: Positive = 0.05
    scale: Literal["released", "original"] = "released"
    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        inside = self._inside(original, masked, names)
        each = _all_of(inside)
        if np.isnan(each).all():
            raise Undefined("no value is there before and after masking.")
        parts = {n: float(np.nanmean(x)) for n, x in zip(names, inside.T, strict=True) if not np.isnan(x).all()}
        return Estimate(float(np.nanmean(each)), None, parts if len(names) > 1 else {})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where every value of the record is in its interval, 0 elsewhere; NaN where it has none."""
        return _all_of(self._inside(original, masked, self.checked(original)))

    def _inside(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Array:
        """1 where a value is in its interval, 0 where not, NaN where it is missing before or after."""
        if any(masked.column(name).levels is not None for name in names):
            raise Undefined("a measured variable was recoded into categories, so that it has no interval.")
        x, z = original.matrix(names), masked.matrix(names)
        x = x if masked.origin is None else x[masked.origin]
        like = z if self.scale == "released" else original.matrix(names)
        apart = np.abs(x - z)
        return np.where(np.isnan(apart), np.nan, apart <= self.k * _spreads(like))


def _spreads(x: Array) -> Array:
    """The standard deviation of each column, n - 1 in the denominator; 0 where it has fewer than 2 values."""
    return np.array([np.std(c[~np.isnan(c)], ddof=1) if (~np.isnan(c)).sum() > 1 else 0.0 for c in x.T])


def _all_of(inside: Array) -> Array:
    known = ~np.isnan(inside)
    every = (np.nan_to_num(inside, nan=1.0) == 1).all(axis=1).astype(float)
    return np.where(known.any(axis=1), every, np.nan)
