"""Information loss of single values, scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.errors import Undefined
from sdcmap.measure import Estimate, Measure
from sdcmap.microdata import Array, Microdata


def il1s_losses(x: Array, z: Array) -> Array:
    """|x - z| / (sqrt(2) S) of each value of one variable, S the standard deviation of x.  YWC (2002), section 5

    NaN where x is missing; where only z is missing, the user is thought to put the mean of x in its place.
    """
    known = ~np.isnan(x)
    spread = np.std(x[known], ddof=1) if known.sum() > 1 else 0.0
    filled = np.where(np.isnan(z) & known, x[known].mean() if known.any() else np.nan, z)
    loss: Array = np.abs(x - filled)
    if spread > 0:
        loss /= np.sqrt(2) * spread
    else:
        loss[loss > 0] = np.inf
    return loss


@dataclass(frozen=True)
class IL1s(Measure):
    """The mean change of a value, in units of sqrt(2) standard deviations of its variable.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.

    Formula: IL1s = mean over records i and variables j of |x_ij - z_ij| / (sqrt(2) S_j), S_j of the original.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. A constant variable that masking left alone adds 0; one that it changed leaves the
    measure undefined. Weights and households are not used: every record counts once.
    Releasing nothing has no value here. sdcMicro's IL1s is the sum, not the mean.
    Reference: Yancey, Winkler, Creecy (2002), section 5.

    Examples
    --------
    >>> IL1s(on=["income", "tax"]).text
    "IL1s(on=['income', 'tax'])"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "standard deviations / sqrt(2)"
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        losses = self._losses(original, masked)
        if np.isinf(losses).any():
            raise Undefined("a variable that is constant in the original was changed, so its loss has no scale.")
        known = ~np.isnan(losses)
        if not known.any():
            raise Undefined("no measured value is known in the original.")
        return Estimate(float(losses[known].mean()))

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        losses = self._losses(original, masked)
        known = ~np.isnan(losses)
        total = np.where(known, losses, 0.0).sum(axis=1)
        count = known.sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def _losses(self, original: Microdata, masked: Microdata) -> Array:
        names = self.checked(original)
        rows = slice(None) if masked.origin is None else masked.origin
        return np.column_stack([il1s_losses(original.numbers(n)[rows], masked.numbers(n)) for n in names])
