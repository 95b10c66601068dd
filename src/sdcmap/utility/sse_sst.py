"""Squared errors over the total sum of squares, and the precision of means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, Undefined
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.utility._numeric import NumericMeasure, numbers_of


def sums_of_squares(x: Array, z: Array, weights: Array) -> tuple[float, float, float]:
    """Of one variable: the sum of squared errors, the sum of squares about the mean, and the weight of what is known in x.

    Where only z is missing, the mean of x stands in its place.
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
    """The share of the variables' total variation that the errors of masking amount to.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: SSE/SST = sum (x_ij - z_ij)^2 / sum (x_ij - xbar_j)^2 over records i and variables j, each variable divided by
    its standard deviation, as microaggregation is judged. 0: nothing changed; 1: as if every value were the mean.
    Missing: a value missing in the original is left out; a suppressed one counts as if the user put the mean in its place.
    Weights: used when `weighted`, in all sums, means and standard deviations. Households are not used. Of a sample, the
    released records are compared with their originals. Undefined for synthetic files, where numbers were recoded into
    categories, and where a constant variable was changed.
    Reference: Domingo-Ferrer, Mateo-Sanz (2002), section 2.

    Examples
    --------
    >>> SseSst(on=["income", "tax"]).text
    "SseSst(on=['income', 'tax'])"
    """

    label: ClassVar[str] = "Masking error in total variation"
    description: ClassVar[str] = "Share of the total variation of the variables that masking errors amount to."

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


# How well the released file still tells a mean.


@dataclass(frozen=True)
class MeanPrecision(Measure):
    """Utility of the file for a user who estimates a population mean: U = 1/MSE of the mean.

    Parameters
    ----------
    on : the numeric variable.
    weighted : use survey weights for the mean and for its effective sample size; needs a weight.

    Formula: U = 1/{ mean over replicates of s_m^2/n + (mean over replicates of Ybar_m - xbar)^2 }, eq. 13 and 14 with the
    reciprocal that the paper forgot; n/(sigma^2 + lambda^2) for additive noise. From one file the second term holds that
    file's own noise. `parts`: "variance" s^2/n, and "bias" Ybar - xbar.
    Missing: left out, in each file on its own. Weights: used when `weighted`. Households are not used.
    Releasing nothing gives U = 0. Infinite for a constant variable that masking left alone.
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
    missing: ClassVar[str] = "left out, in each file on its own"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: str
    weighted: bool = False

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.weighted and data.weight is None:
            yield "MeanPrecision.weighted needs a file with a weight."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        xbar, _ = original.remember(("mean", self), lambda: self._mean(original))
        ybar, variance = self._mean(masked)
        bias = ybar - xbar
        mse = variance + bias**2
        return Estimate(value=1 / mse if mse else float("inf"), parts={"variance": variance, "bias": bias})

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        if len(estimates) == 1:
            return estimates[0]
        variance, bias = (np.array([e.parts[name] for e in estimates]) for name in ("variance", "bias"))
        mse = float(variance.mean() + bias.mean() ** 2)
        parts = {"variance": float(variance.mean()), "bias": float(bias.mean())}
        if mse == 0:
            return Estimate(value=float("inf"), parts=parts)
        influence = variance + 2 * bias.mean() * bias  # delta method around the pooled parts
        return Estimate(value=1 / mse, se=float(influence.std(ddof=1) / np.sqrt(len(estimates)) / mse**2), parts=parts)

    def _mean(self, data: Microdata) -> tuple[float, float]:
        y = data.numbers(self.on)
        known = ~np.isnan(y)
        y = y if known.all() else y[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values, so its mean has no variance.")
        mean, variance, count = mean_and_variance(y, data.weights[known] if self.weighted else None)
        if np.isnan(variance):
            one = "is known in one record of weight above 0 at most"
            raise Undefined(f"{self.on!r} {one}, so its mean has no variance.")
        return mean, variance / count
