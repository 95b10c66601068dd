"""Distances between the distributions of single variables before and after masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.kernels.jit import jit
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.utility._numeric import NumericMeasure, numbers_of, over_variables, sound_weights

# Distances between two distributions of one number, each a sample with weights.


def in_order(x: Array, weights: Array | None) -> tuple[Array, Array]:
    """The numbers rising, with the weight of each; without weights, ones."""
    if weights is None:
        return np.sort(x), np.ones(len(x))
    order = np.argsort(x, kind="stable")
    return x[order], weights[order]


@jit
def distribution_distances(x: Array, w: Array, y: Array, v: Array) -> tuple[float, float]:
    """Of two samples in order with weights w and v: sup |F - G| (Kolmogorov-Smirnov) and the integral of |F - G|, which
    is the Wasserstein distance of order 1.  Vallender (1974)"""
    total_x, total_y = w.sum(), v.sum()
    i, j = 0, 0
    f, g, gap = 0.0, 0.0, 0.0
    largest, area = 0.0, 0.0
    here = 0.0
    while i < len(x) or j < len(y):
        at = x[i] if j == len(y) or (i < len(x) and x[i] <= y[j]) else y[j]
        area += gap * (at - here) if gap > 0 else 0.0
        here = at
        while i < len(x) and x[i] == at:
            f += w[i]
            i += 1
        while j < len(y) and y[j] == at:
            g += v[j]
            j += 1
        gap = abs(f / total_x - g / total_y)
        if i == len(x) and j == len(y):
            gap = 0.0
        largest = max(largest, gap)
    return largest, area


def rising(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The known numbers of one variable, rising, and ones; as a view."""
    x = numbers_of(data, names[0])
    return in_order(x[~np.isnan(x)], None)


def rising_with_weights(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The same with the weights, whose column is named second; a record of weight 0 is left out."""
    x, weights = numbers_of(data, names[0]), sound_weights(data)
    known = ~np.isnan(x) & (weights > 0)
    return in_order(x[known], weights[known])


@dataclass(frozen=True)
class _DistributionDistance(NumericMeasure):
    """A loss of utility that is read off the distributions of single numeric variables.

    Parameters
    ----------
    summary : the value is the "mean" or the "worst" over the variables; both, and each variable's own, are in
        `parts`.
    """

    summary: Literal["mean", "worst"] = "mean"

    def margin(self, data: Microdata, name: str) -> tuple[Array, Array]:
        """The known numbers, rising, with the weight of each."""
        return data.view(rising_with_weights if self.weighted else rising, self.with_weight(data, name))

    def distances(self, original: Microdata, masked: Microdata, name: str) -> tuple[float, float] | None:
        """Kolmogorov-Smirnov's and Wasserstein's distance; None where the released file has no value."""
        before, after = self.margin(original, name), self.margin(masked, name)
        if len(before[0]) == 0:
            raise Undefined(f"no value of {name!r} is known in the original.")
        if len(after[0]) == 0:
            return None
        return (0.0, 0.0) if after is before else distribution_distances(*before, *after)

    def spread(self, original: Microdata, name: str) -> float:
        """The standard deviation in the original."""
        x, weights = self.margin(original, name)
        return 0.0 if x[0] == x[-1] else float(np.sqrt(mean_and_variance(x, weights).variance))


@dataclass(frozen=True)
class KolmogorovSmirnov(_DistributionDistance):
    """The largest difference between the distribution functions of a variable before and after masking.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: KS = sup over t of |F(t) - G(t)|, F and G the distribution functions before and after.
    Missing values are left out, in each file on its own; a variable all of whose values were suppressed has distance 1.
    Weights: used when `weighted`. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories. A shuffle or rank swap of whole columns leaves it 0: relations need other measures.
    Reference: Kolmogorov (1933); Smirnov (1948).

    Examples
    --------
    >>> KolmogorovSmirnov(on="income", weighted=True).text
    "KolmogorovSmirnov(on='income', weighted=True)"
    """

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        distances = {name: self.distances(original, masked, name) for name in self.checked(original)}
        return over_variables({n: 1.0 if both is None else both[0] for n, both in distances.items()}, self.summary)


@dataclass(frozen=True)
class Wasserstein(_DistributionDistance):
    """The least mean distance that values must move to turn the original distribution into the released one.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: W = 1/S times the integral of |F(t) - G(t)| dt, S the standard deviation of the original.
    Missing values are left out, in each file on its own; undefined where all of a variable were suppressed. Weights: used
    when `weighted`, in S too. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories, and where a constant variable was changed. Releasing nothing has no value.
    Reference: Vallender (1974).

    Examples
    --------
    >>> Wasserstein(on="income").text
    "Wasserstein(on='income')"
    """

    unit: ClassVar[str] = "standard deviations"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        distances = {name: self._distance(original, masked, name) for name in self.checked(original)}
        return over_variables(distances, self.summary)

    def _distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        both = self.distances(original, masked, name)
        if both is None:
            raise Undefined(f"every value of {name!r} was suppressed, so that it has no distance from the original.")
        distance, spread = both[1], self.spread(original, name)
        if distance == 0:
            return 0.0
        if spread == 0:
            raise Undefined(f"{name!r} is constant in the original and was changed, so its distance has no scale.")
        return distance / spread
