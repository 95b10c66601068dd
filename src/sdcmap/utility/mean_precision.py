"""How well the released file still tells a mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Estimate, Generator, Measure, Microdata, Undefined
from sdcmap.kernels.statistics.moments import mean_and_variance


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

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    unit: ClassVar[str] = "1/(variable's unit)^2"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    at_nothing: ClassVar[float | None] = 0.0
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "left out, in each file on its own"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: str
    weighted: bool = False

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.weighted and data.weight is None:
            yield "MeanPrecision.weighted needs a file with a weight."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        xbar, _ = original.remember(("mean", self), lambda: self._mean(original))
        ybar, variance = self._mean(masked)
        bias = ybar - xbar
        mse = variance + bias**2
        return Estimate(value=1 / mse if mse else float("inf"), parts={"variance": variance, "bias": bias})

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        variance = np.array([e.parts["variance"] for e in estimates])
        bias = np.array([e.parts["bias"] for e in estimates])
        mse = float(variance.mean() + bias.mean() ** 2)
        parts = {"variance": float(variance.mean()), "bias": float(bias.mean())}
        if len(estimates) == 1:
            return estimates[0]
        if mse == 0:
            return Estimate(value=float("inf"), parts=parts)
        influence = variance + 2 * bias.mean() * bias  # delta method around the pooled parts
        return Estimate(value=1 / mse, se=float(influence.std(ddof=1) / np.sqrt(len(estimates)) / mse**2), parts=parts)

    def _mean(self, data: Microdata) -> tuple[float, float]:
        y = data.numbers(self.on)
        known = ~np.isnan(y)
        if not known.all():
            y = y[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values, so its mean has no variance.")
        mean, variance, count = mean_and_variance(y, data.weights[known] if self.weighted else None)
        if np.isnan(variance):
            raise Undefined(
                f"{self.on!r} is known in one record of weight above 0 at most, so its mean has no variance."
            )
        return mean, variance / count
