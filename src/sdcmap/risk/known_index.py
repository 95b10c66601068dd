"""A snooper who knows which record is his target's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.precision import inverse_of_mean


@dataclass(frozen=True)
class KnownIndex(Measure):
    """How precisely a snooper who knows the record number learns his target's value: R = 1/MSE.

    The snooper has linked his target to a record of the released file beyond doubt, and takes the masked value there
    for the true one. He succeeds the better, the smaller his squared error is.

    Parameters
    ----------
    on : the numeric variable he wants to know.

    Formula: R = 1/E(Y - x)^2 (eq. 4; 1/lambda^2 for additive noise). From one file R = 1/mean over records of (y - x)^2;
    the smallest single squared error stands beside it in `parts` as "worst". Replicates are pooled as 1/mean of the mean
    squared errors. Infinite where no value changed.
    Missing: records whose value is missing before or after are left out. Weights and households are not used.
    Releasing nothing leaves the snooper the mean of the file: R = 1/variance.
    Reference: Duncan, Keller-McNulty, Stokes (2001), eq. 4.

    Examples
    --------
    >>> KnownIndex(on="income").text
    "KnownIndex(on='income')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "1/(variable's unit)^2"
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "records with a missing value before or after are left out"

    on: str

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        errors = self._squared_errors(original, masked)
        errors = errors[~np.isnan(errors)]
        if len(errors) == 0:
            raise Undefined(f"{self.on!r} has no record with a value before and after masking.")
        value, se = inverse_of_mean(errors)
        return Estimate(value, se, {"mse": float(errors.mean()), "worst": float(errors.min())})

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        if len(estimates) == 1:
            return estimates[0]
        value, se = inverse_of_mean(np.array([e.parts["mse"] for e in estimates]))
        return Estimate(value, se)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1/(y - x)^2 of each record; infinite where the value did not change."""
        with np.errstate(divide="ignore"):
            return 1 / self._squared_errors(original, masked)

    def nothing(self, original: Microdata) -> float | None:
        x = original.numbers(self.on)
        spread = float(np.nanvar(x, ddof=1)) if (~np.isnan(x)).sum() > 1 else 0.0
        return 1 / spread if spread > 0 else None

    def _squared_errors(self, original: Microdata, masked: Microdata) -> Array:
        self.checked(original)
        x = original.numbers(self.on)
        squared: Array = (masked.numbers(self.on) - (x if masked.origin is None else x[masked.origin])) ** 2
        return squared
