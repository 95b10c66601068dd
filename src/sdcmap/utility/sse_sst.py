"""Sum of squared errors over the total sum of squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
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

    paired: ClassVar[bool] = True
    unit: ClassVar[str] = "share of variation"
    at_nothing: ClassVar[float | None] = 1.0
    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        rows = slice(None) if masked.origin is None else masked.origin
        weights = self.weights_of(original)[rows]
        shares, sizes = {}, []
        for name in names:
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
