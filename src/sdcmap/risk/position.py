"""An attacker who knows the target's position in the sample, or which record is the target's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.kernels.quantiles import place_of
from sdcmap.kernels.statistics.precision import inverse_of_mean


def sorted_numbers(data: Microdata, name: str) -> Array:
    """The values of a variable that are not missing, in rising order, as a view."""
    x = data.numbers(name)
    return np.sort(x[~np.isnan(x)])


class PrecisionMeasure(RiskMeasure):
    """What the measures share whose value is 1 over a mean squared error."""

    unit: ClassVar[str] = "1/(variable's unit)^2"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    at_nothing: ClassVar[float | None] = None
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    error_part: ClassVar[str] = "squared_error"  # of an estimate's `parts`

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        if len(estimates) == 1:
            return estimates[0]
        value, se = inverse_of_mean(np.array([e.parts[self.error_part] for e in estimates]))
        return Estimate(value=value, se=se)


@dataclass(frozen=True)
class Position(PrecisionMeasure):
    """How precisely a snooper who knows his target's rank learns its value: R = 1/MSE.

    The snooper knows that somebody has the largest, the smallest, or the p-th percentile value of the sample. He sorts
    the released file and takes the value at that rank for the true one, whoever's record it is.

    Parameters
    ----------
    on : the numeric variable he wants to know.
    target : "maximum", "minimum", or a share p in (0, 1): the value of rank ceil(n p).

    Formula: R = 1/E(Y_(k) - x_(k))^2 over replicates (eq. 12, k fixed by the original); one file alone gives 1/e^2, which
    says little. `parts`: "squared_error". Infinite where the value at that rank did not move in any replicate.
    Missing values are left out, in each file on its own. Weights and households are not used. Ties need no rule here:
    the value of rank k is the same whichever tied record holds it.
    Releasing nothing leaves the snooper the mean of the file: R = 1/(xbar - x_(k))^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, position knowledge.

    Examples
    --------
    >>> Position(on="income", target=0.99).text
    "Position(on='income', target=0.99)"
    """

    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "left out, in each file on its own"

    on: str
    target: Literal["maximum", "minimum"] | Annotated[float, Range(0, 1, "()")] = "maximum"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        squared = self.squared_error(original, masked)
        return Estimate(value=1 / squared if squared else float("inf"), parts={"squared_error": squared})

    def nothing(self, original: Microdata) -> float | None:
        if np.isnan(original.numbers(self.on)).all():
            return None
        error = float(np.nanmean(original.numbers(self.on))) - self.value(original)
        return 1 / error**2 if error else None

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """(Y_(k) - x_(k))^2 of one masked file."""
        return (self._at_rank(masked) - self.value(original)) ** 2

    def value(self, original: Microdata) -> float:
        """The true value of the target."""
        return original.remember(("target", self.on, self.target), lambda: self._at_rank(original))

    def _at_rank(self, data: Microdata) -> float:
        values = data.view(sorted_numbers, self.on)
        if len(values) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        return float(values[place_of(self.target, len(values))])


# A snooper who knows which record his target's is, for one target.


@dataclass(frozen=True)
class Index(Position):
    """How precisely a snooper who has found his target's record learns its value: R = 1/MSE for that target.

    The snooper knows which record of the released file belongs to the person with the largest, the smallest or the p-th
    percentile value, and takes the masked value there for the true one.

    Parameters
    ----------
    target : "maximum", "minimum", or a share p in (0, 1): the record whose value has rank ceil(n p).

    Formula: R = 1/E(Y_t - x_t)^2 over replicates (eq. 12, t the target's record). `parts`: "squared_error".
    Ties at the target: the expected value over the tied records, that is the mean of their squared errors.
    Missing: a target that masking made missing tells the snooper nothing, and the measure is undefined. Weights and
    households are not used.
    Releasing nothing leaves the snooper the mean of the file: R = 1/(xbar - x_t)^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, index knowledge.

    Examples
    --------
    >>> Index(on="income", target="minimum").text
    "Index(on='income', target='minimum')"
    """

    paired: ClassVar[bool] = True
    missing: ClassVar[str] = "left out in the original; undefined where masking made the target missing"

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """(Y_t - x_t)^2 of one masked file, in the mean over the records tied at the target."""
        value = self.value(original)
        rows = original.remember(("at", self.on, value), lambda: np.flatnonzero(original.numbers(self.on) == value))
        if masked.origin is not None:
            rows = np.flatnonzero(np.isin(masked.origin, rows))
        errors: list[float] = [y - value for y in masked.numbers(self.on)[rows].tolist() if y == y]  # NaN left out
        if not errors:
            raise Undefined(f"the target's value of {self.on!r} is not in the masked file.")
        return sum(error**2 for error in errors) / len(errors)


# A snooper who knows which record is his target's.


@dataclass(frozen=True)
class KnownIndex(PrecisionMeasure):
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

    error_part: ClassVar[str] = "mse"
    missing: ClassVar[str] = "records with a missing value before or after are left out"

    on: str

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        errors = self._squared_errors(original, masked)
        errors = errors[~np.isnan(errors)]
        if len(errors) == 0:
            raise Undefined(f"{self.on!r} has no record with a value before and after masking.")
        value, se = inverse_of_mean(errors)
        return Estimate(value=value, se=se, parts={"mse": float(errors.mean()), "worst": float(errors.min())})

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
        return np.asarray((masked.numbers(self.on) - (x if masked.origin is None else x[masked.origin])) ** 2)
