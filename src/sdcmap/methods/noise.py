"""Additive noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.errors import Infeasible
from sdcmap.kernels.noise import complete_covariance_root, spreads
from sdcmap.method import Method
from sdcmap.microdata import Array, Microdata
from sdcmap.value import Range


def bounded(y: Array, lower: float | None, upper: float | None) -> Array:
    """Y = max(lower, min(upper, x + e)).  Duncan et al. (2001), section 4: Y = max(0, x + e)"""
    y = y if lower is None else np.maximum(y, lower)
    return y if upper is None else np.minimum(y, upper)


def _noise_spread(data: Microdata, names: tuple[str, ...]) -> Array:
    x = data.matrix(names)
    if ((~np.isnan(x)).sum(axis=0) < 2).any():
        raise Infeasible(TOO_FEW)
    return spreads(x)


def _noise_shape(data: Microdata, names: tuple[str, ...]) -> Array:
    x = data.matrix(names)
    if (~np.isnan(x).any(axis=1)).sum() < 2:
        raise Infeasible(TOO_FEW)
    return complete_covariance_root(x)


TOO_FEW = "noise needs at least 2 records without missing values to know a variance."


@dataclass(frozen=True)
class Noise(Method):
    """Additive normal noise, Y = X + e, with a variance stated as a share of each variable's own.

    Parameters
    ----------
    on : numeric variables to mask.
    variance : Var e as a share of the variable's variance, at least 0 (0 is the identity).
    correlated : draw e with the covariance shape of X, so that correlations are kept in expectation.
    lower, upper : bounds, in the variable's unit; a masked value beyond is set to the bound, as in Y = max(0, x + e).
        Bounds bias the mean.
    above, variance_above : above the value `above` (variable's unit) the share is `variance_above` instead.

    Formula: e ~ N(0, variance s^2), or e ~ N(0, variance Cov X) when correlated.
    Missing values stay missing; variances and covariances leave them out. Weights are not used: every record counts
    once. Households are not used: persons are masked one by one.
    Reference: Duncan, Keller-McNulty, Stokes (2001), sections 2 and 4; Kim (1986).

    Examples
    --------
    >>> Noise(on="income", variance=0.1).text
    "Noise(on='income')"
    """

    at_zero: ClassVar[Mapping[str, Any] | None] = {
        "variance": 0.0, "lower": None, "upper": None, "above": None, "variance_above": None,
    }  # fmt: skip
    kept: ClassVar[str] = "the mean in expectation, unless bounds are set; with correlated noise, correlations"
    distorted: ClassVar[str] = "every value; variances grow by the noise share"

    on: tuple[str, ...]
    variance: Annotated[float, Range(0)] = 0.1
    correlated: bool = False
    lower: float | None = None
    upper: float | None = None
    above: float | None = None
    variance_above: Annotated[float | None, Range(0)] = None

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            yield ".lower must be below .upper."
        if (self.above is None) != (self.variance_above is None):
            yield ".above and .variance_above go together."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        x = data.matrix(self.on)
        shape = data.view(_noise_shape if self.correlated else _noise_spread, self.on)
        e = rng.standard_normal(x.shape)
        e = e @ shape.T if self.correlated else e * shape  # e ~ N(0, Cov X), or N(0, s_j^2) in each column j
        e *= np.sqrt(self._shares(x))
        e += x
        y = np.ascontiguousarray(bounded(e, self.lower, self.upper).T)
        return data.change(None, dict(zip(self.on, y, strict=True)))

    def _shares(self, x: Array) -> Array | float:
        """The noise variance of each value, as a share of its variable's."""
        if self.above is None or self.variance_above is None:
            return self.variance
        return np.where(x > self.above, self.variance_above, self.variance)
