"""Attackers who know the target's rank in the sample, or which record is the target's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.core.estimate import EstimateColumns, quantile
from sdcmap.core.measure import degrees_of_freedom
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.kernels.quantiles import quantile_index
from sdcmap.kernels.statistics.precision import precision_of_errors


def sort_numbers(data: Microdata, name: str) -> Array:
    """Return the values of a variable that are not missing, in rising order, as a view."""
    x = data.numbers(name)
    return np.sort(x[~np.isnan(x)])


def sort_rows(values: Array) -> Array:
    """Return each row in rising order, as a view of a batch."""
    return np.sort(values, axis=1)


MAX_LIMIT_RATIO = 2.0  # the upper confidence limit of R is at most about so many times R with the draws that are needed


def describe_target(target: str | float) -> str:
    """Return the target of an attacker in words: "maximum", or "percentile 99"."""
    return target if isinstance(target, str) else f"percentile {100 * target:g}"


class PrecisionMeasure(RiskMeasure):
    """Base of the measures whose value is 1 over a mean squared error."""

    unit: ClassVar[str] = "1/(variable's unit)^2"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    baseline_value: ClassVar[float | None] = None
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    knowledge: ClassVar[str] = ""  # what the attacker knows, for the report: "the rank of the target"
    error_part: ClassVar[str] = "squared_error"  # the name in `parts` of the error that replicates are pooled by

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        count = len(estimates)
        if count == 1:
            return estimates[0]
        value, se = precision_of_errors(np.array([e.parts[self.error_part] for e in estimates]))
        return Estimate(value=value, se=se, df=degrees_of_freedom(count), reciprocal=True)

    @property
    def error_variable(self) -> str:
        return str(self.on)  # type: ignore[attr-defined]


class OneErrorPerDraw(PrecisionMeasure):
    """Base of the measures with one squared error in each draw, so that R has a relative error of about sqrt(2/M)."""

    def draws_needed(self, level: float) -> int:
        # With M draws the upper limit of R is R/(1 - z sqrt(2/M)).
        room = 1 - 1 / MAX_LIMIT_RATIO
        return max(super().draws_needed(level), math.ceil(2 * (quantile(level) / room) ** 2))


@dataclass(frozen=True)
class Position(OneErrorPerDraw):
    """How precisely an attacker who knows the target's rank learns its value: R = 1/MSE.

    The attacker knows that a person has the largest, the smallest, or the p-th percentile value of the sample. They
    sort the released file and take the value at that rank for the true one, no matter whose record it is.

    Parameters
    ----------
    on : the numeric variable the attacker wants to know.
    target : "maximum", "minimum", or a share p in (0, 1): the value of rank ceil(n p).

    Formula: R = 1/E(Y_(k) - x_(k))^2 over replicates (eq. 12, k fixed by the original); a single file gives 1/e^2,
        which is very imprecise. `parts`: "squared_error". Infinite if the value at that rank changed in no replicate.
        A limit is compared with 1 over the lower confidence limit of the MSE; this needs 72 draws at 3 standard errors.
    Missing values are left out, in each file separately. Weights and households are not used. Ties need no rule: the
    value of rank k is the same for all tied records.
    Releasing nothing leaves the attacker the mean of the file: R = 1/(xbar - x_(k))^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, position knowledge.

    Examples
    --------
    >>> Position(on="income", target=0.99).text
    "Position(on='income', target=0.99)"
    """

    label: ClassVar[str] = "Position risk"
    description: ClassVar[str] = (
        "How precisely the largest (or another stated) released value reveals the true value of that rank."
    )
    knowledge: ClassVar[str] = "the rank of the target"

    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "left out, in each file separately"
    texts_in_title: ClassVar[tuple[str, ...]] = ("on", "target")

    on: str
    target: Literal["maximum", "minimum"] | Annotated[float, Range(0, 1, "()")] = "maximum"

    @property
    def title(self) -> str:
        """Return the label, the variable and the target in words.

        >>> Position(on="income").title, Position(on="income", target=0.99).title
        ('Position risk: income, maximum', 'Position risk: income, percentile 99')
        """
        return f"{self.label}: {self.on}, {describe_target(self.target)}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        squared = self.squared_error(original, masked)
        return Estimate(value=1 / squared if squared else math.inf, parts={"squared_error": squared})

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        self.check_variables(original)
        ranked = masked.view(sort_rows, self.on)
        if ranked is None:
            return None
        released, value = ranked[:, quantile_index(self.target, ranked.shape[1])], self.value(original)
        return precision_columns([(y - value) ** 2 for y in released.tolist()])

    def baseline(self, original: Microdata) -> float | None:
        if np.isnan(original.numbers(self.on)).all():
            return None
        error = float(np.nanmean(original.numbers(self.on))) - self.value(original)
        return 1 / error**2 if error else None

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """Return (Y_(k) - x_(k))^2 of one masked file."""
        return (self._at_rank(masked) - self.value(original)) ** 2

    def value(self, original: Microdata) -> float:
        """Return the true value of the target."""
        return original.remember(("target", self.on, self.target), lambda: self._at_rank(original))

    def _at_rank(self, data: Microdata) -> float:
        """Return the value of a file at the rank of the target."""
        values = data.view(sort_numbers, self.on)
        if len(values) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        return float(values[quantile_index(self.target, len(values))])


def precision_columns(squared_errors: list[float]) -> EstimateColumns:
    """Return R = 1/e^2 of each of several files, infinite where the error is 0, with e^2 as a part."""
    values = [1 / squared if squared else math.inf for squared in squared_errors]
    return EstimateColumns(values=values, parts={"squared_error": squared_errors})


# Index knowledge: the attacker knows the record of one target.


@dataclass(frozen=True)
class Index(Position):
    """How precisely an attacker who knows the target's record learns its value: R = 1/MSE for that target.

    The attacker knows which released record belongs to the person with the largest, the smallest or the p-th percentile
    value, and takes the masked value there for the true one.

    Parameters
    ----------
    target : "maximum", "minimum", or a share p in (0, 1): the record whose value has rank ceil(n p).

    Formula: R = 1/E(Y_t - x_t)^2 over replicates (eq. 12, t the target's record). `parts`: "squared_error". If records
        are tied at the target: the mean of their squared errors.
    Missing: undefined if masking made the target missing. Weights and households are not used.
    Releasing nothing leaves the attacker the mean of the file: R = 1/(xbar - x_t)^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, index knowledge.

    Examples
    --------
    >>> Index(on="income", target="minimum").text
    "Index(on='income', target='minimum')"
    """

    label: ClassVar[str] = "Index risk"
    description: ClassVar[str] = (
        "How precisely the masked value of the person with the largest (or another stated) value reveals it."
    )
    knowledge: ClassVar[str] = "the record of the target"

    paired: ClassVar[bool] = True
    missing: ClassVar[str] = "left out in the original; undefined where masking made the target missing"

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """Return (Y_t - x_t)^2 of one masked file, as a mean over the records tied at the target."""
        value, rows = self.value(original), self._target_rows(original)
        if masked.origin is not None:
            rows = np.flatnonzero(np.isin(masked.origin, rows))
        released: list[float] = [y for y in masked.numbers(self.on)[rows].tolist() if y == y]  # NaN left out
        if not released:
            raise Undefined(f"the target's value of {self.on!r} is not in the masked file.")
        return mean_squared_error(released, value)

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        self.check_variables(original)
        values = masked.numbers(self.on)
        if values is None:
            return None
        value, released = self.value(original), values[:, self._target_rows(original)]
        return precision_columns([mean_squared_error(row, value) for row in released.tolist()])

    def _target_rows(self, original: Microdata) -> Array:
        """Return the records that have the target's value."""
        value = self.value(original)
        return original.remember(("at", self.on, value), lambda: np.flatnonzero(original.numbers(self.on) == value))


def mean_squared_error(released: Sequence[float], value: float) -> float:
    """Return the mean of (y - value)^2."""
    if len(released) == 1:
        return (released[0] - value) ** 2
    return sum((y - value) ** 2 for y in released) / len(released)


# The attacker knows the record of every target.


@dataclass(frozen=True)
class KnownIndex(PrecisionMeasure):
    """How precisely an attacker who knows the record number learns any target's value: R = 1/MSE.

    The attacker has linked the target to a released record with certainty, and takes the masked value there for the
    true one. The smaller the squared error, the larger the risk.

    Parameters
    ----------
    on : the numeric variable the attacker wants to know.

    Formula: R = 1/E(Y - x)^2 (eq. 4; 1/lambda^2 for additive noise). From one file R = 1/mean over records of (y -
        x)^2. Replicates are pooled as 1/mean of the mean squared errors. Infinite if no value changed. `parts`: "mse"
        and "smallest squared error" of a record.
    Missing: records with a missing value before or after masking are left out. Weights and households are not used.
    Releasing nothing leaves the attacker the mean of the file: R = 1/variance.
    Reference: Duncan, Keller-McNulty, Stokes (2001), eq. 4.

    Examples
    --------
    >>> KnownIndex(on="income").text
    "KnownIndex(on='income')"
    """

    label: ClassVar[str] = "Known-index risk"
    description: ClassVar[str] = (
        "How precisely a masked value reveals the true value of a record that the attacker has already found."
    )
    knowledge: ClassVar[str] = "the record of the target"

    error_part: ClassVar[str] = "mse"
    missing: ClassVar[str] = "records with a missing value before or after are left out"

    on: str

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        errors = self._squared_errors(original, masked)
        errors = errors[~np.isnan(errors)]
        if len(errors) == 0:
            raise Undefined(f"{self.on!r} has no record with a value before and after masking.")
        value, se = precision_of_errors(errors)
        return Estimate(
            value=value, se=se, parts={"mse": float(errors.mean()), "smallest squared error": float(errors.min())}
        )

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1/(y - x)^2 of each record; infinite if the value did not change."""
        with np.errstate(divide="ignore"):
            return 1 / self._squared_errors(original, masked)

    def baseline(self, original: Microdata) -> float | None:
        x = original.numbers(self.on)
        spread = float(np.nanvar(x, ddof=1)) if (~np.isnan(x)).sum() > 1 else 0.0
        return 1 / spread if spread > 0 else None

    def _squared_errors(self, original: Microdata, masked: Microdata) -> Array:
        """Return (y - x)^2 of each released record; NaN if a value is missing."""
        self.check_variables(original)
        x = original.numbers(self.on)
        return np.asarray((masked.numbers(self.on) - (x if masked.origin is None else x[masked.origin])) ** 2)
