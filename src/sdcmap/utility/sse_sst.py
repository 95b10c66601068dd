"""Squared errors relative to the total sum of squares, and the precision of means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, Undefined
from sdcmap.core.estimate import EstimateColumns
from sdcmap.core.measure import degrees_of_freedom
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.kernels.statistics.moments import mean_and_variance, mean_and_variance_of_rows
from sdcmap.utility._numeric import NumericMeasure, numbers_of


def sums_of_squares(x: Array, z: Array, weights: Array) -> tuple[float, float, float]:
    """Return the sum of squared errors, the sum of squares about the mean, and the weight of the known values of x.

    Where only z is missing, the mean of x replaces it.
    """
    known = ~np.isnan(x) & (weights > 0)
    x, z, weights = x[known], z[known], weights[known]
    total = float(weights.sum())
    if total == 0:
        return 0.0, 0.0, 0.0
    mean = x[0] if x.min() == x.max() else weights @ x / total
    error = x - np.where(np.isnan(z), mean, z)
    return float(weights @ error**2), float(weights @ (x - mean) ** 2), total


@dataclass(frozen=True)
class SseSst(NumericMeasure):
    """Masking error as a share of the variables' total variation.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: SSE/SST = sum (x_ij - z_ij)^2 / sum (x_ij - xbar_j)^2 over records i and variables j, each variable divided
        by its standard deviation, as usual for microaggregation. 0: nothing changed; 1: as if every value were the
        mean.
    Missing: a value missing in the original is left out; a suppressed one counts as if the user replaced it by the
    mean. Weights: used when `weighted`, in all sums, means and standard deviations. Households are not used. For a
    sample, the released records are compared with their originals. Undefined for synthetic files, if numbers were
    recoded into categories, and if a constant variable was changed.
    Reference: Domingo-Ferrer, Mateo-Sanz (2002), section 2.

    Examples
    --------
    >>> SseSst(on=["income", "tax"]).text
    "SseSst(on=['income', 'tax'])"
    """

    label: ClassVar[str] = "Masking error, share of variation"
    description: ClassVar[str] = "Squared changes of the values as a share of the variables' total variation."

    paired: ClassVar[bool] = True
    unit: ClassVar[str] = "share of variation"
    baseline_value: ClassVar[float | None] = 1.0
    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = slice(None) if masked.origin is None else masked.origin
        weights = self.weights_of(original)[rows]
        shares, sizes = {}, []
        for name in self.check_variables(original):
            sse, sst, size = sums_of_squares(numbers_of(original, name)[rows], numbers_of(masked, name), weights)
            if sst == 0 and sse > 0:
                raise Undefined(f"{name!r} is constant in the original and was changed, so its loss has no scale.")
            if sst > 0:
                shares[name] = sse / sst
                sizes.append(size)
        if not shares:
            raise Undefined("no measured variable varies in the original.")
        parts = {f"on {name}": loss for name, loss in shares.items()} if len(shares) > 1 else {}
        return Estimate(value=float(np.average(list(shares.values()), weights=sizes)), parts=parts)


# How precisely a mean can be estimated from the released file.


@dataclass(frozen=True)
class MeanPrecision(Measure):
    """Utility of the file for a user who estimates a population mean: U = 1/MSE of the mean.

    Parameters
    ----------
    on : the numeric variable.
    weighted : use survey weights for the mean and for its effective sample size; needs a weight.

    Formula: U = 1/{ mean over replicates of s_m^2/n + (mean over replicates of Ybar_m - xbar)^2 }, eq. 13 and 14 with
        the reciprocal that is missing in the paper; n/(sigma^2 + lambda^2) for additive noise. From one file the second
        term includes the noise of that file. `parts`: "variance" s^2/n, and "bias" Ybar - xbar.
    Missing: left out, in each file separately. Weights: used when `weighted`. Households are not used.
    Releasing nothing gives U = 0. Infinite for a constant variable that masking did not change.
    Reference: Duncan, Keller-McNulty, Stokes (2001), sections 2 and 4.

    Examples
    --------
    >>> MeanPrecision(on="income").text
    "MeanPrecision(on='income')"
    """

    label: ClassVar[str] = "Precision of the mean"
    description: ClassVar[str] = "Precision (1 / mean squared error) with which users can estimate a population mean."

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    unit: ClassVar[str] = "1/(variable's unit)^2"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    baseline_value: ClassVar[float | None] = 0.0
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "left out, in each file separately"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: str
    weighted: bool = False

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.weighted and data.weight is None:
            yield "MeanPrecision.weighted needs a file with a weight."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        ybar, variance = self._mean(masked)
        bias = ybar - self._original_mean(original)
        return Estimate(value=_precision(variance, bias), parts={"variance": variance, "bias": bias})

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        self.check_variables(original)
        values = masked.numbers(self.on)
        if self.weighted or values is None or values.shape[1] < 2:
            return None
        xbar, count = self._original_mean(original), float(values.shape[1])
        means, variances = mean_and_variance_of_rows(values)
        parts = {"variance": [spread / count for spread in variances], "bias": [mean - xbar for mean in means]}
        return EstimateColumns(values=[*map(_precision, parts["variance"], parts["bias"])], parts=parts)

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        if len(estimates) == 1:
            return estimates[0]
        variance, bias = (np.array([e.parts[name] for e in estimates]) for name in ("variance", "bias"))
        mse = float(variance.mean() + bias.mean() ** 2)
        parts = {"variance": float(variance.mean()), "bias": float(bias.mean())}
        if mse == 0:
            return Estimate(value=float("inf"), parts=parts)
        influence = variance + 2 * bias.mean() * bias  # delta method around the pooled parts
        se = float(influence.std(ddof=1) / np.sqrt(len(estimates)) / mse**2)
        return Estimate(value=1 / mse, se=se, df=degrees_of_freedom(len(estimates)), reciprocal=True, parts=parts)

    @property
    def error_variable(self) -> str:
        return self.on

    def _original_mean(self, original: Microdata) -> float:
        return original.remember(("mean", self), lambda: self._mean(original))[0]

    def _mean(self, data: Microdata) -> tuple[float, float]:
        """Return the mean of the variable and its variance."""
        y = data.numbers(self.on)
        known = ~np.isnan(y)
        y = y if known.all() else y[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values, so its mean has no variance.")
        mean, variance, count = mean_and_variance(y, data.weights[known] if self.weighted else None)
        if np.isnan(variance):
            raise Undefined(f"{self.on!r} is known in at most one record with a weight, so its mean has no variance.")
        return mean, variance / count


def _precision(variance: float, bias: float) -> float:
    """Return U = 1/MSE of a mean with this variance and bias; infinite where the error is 0."""
    mse = variance + bias**2
    return 1 / mse if mse else float("inf")
