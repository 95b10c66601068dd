"""Means, covariances and correlations of a numeric matrix with missing values and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TINY = 1e-12  # a spread or mean below this share of the variable's mean absolute value is rounding, and counts as 0


@dataclass(frozen=True)
class Moments:
    """Means (m), covariances (m x m) and correlations (m x m); NaN where there are too few values.

    size : the mean absolute value of each variable, against which rounding is told from a change.
    A correlation with a constant variable is 0.
    """

    mean: Array
    covariance: Array
    correlation: Array
    size: Array

    @property
    def variance(self) -> Array:
        return np.diagonal(self.covariance)


def moments(x: Array, weights: Array | None = None) -> Moments:
    """The moments of the columns of x: means over the values present, covariances over the complete pairs.

    Weighted, the sums of squares are divided by sum w (1 - 1/n'), n' = (sum w)^2 / sum w^2; without weights that is n - 1.
    """
    known = ~np.isnan(x)
    w = np.ones(len(x)) if weights is None else weights
    with np.errstate(invalid="ignore", divide="ignore"):
        if known.all():
            return _complete(x, w)
        weight = known * w[:, None]
        mean = np.where(known, x, 0.0).T @ w / weight.sum(axis=0)
        size = np.abs(np.where(known, x, 0.0)).T @ w / weight.sum(axis=0)
        centred = np.where(known, x - mean, 0.0)
        total = known.T @ weight  # sum of weights of the complete pairs
        first = (centred * w[:, None]).T @ known  # sum of w x_j over the pairs of j and k
        second = (centred**2 * w[:, None]).T @ known
        divisor = total - (known.T @ (known * w[:, None] ** 2)) / total
        product = (centred * w[:, None]).T @ centred - first * first.T / total
        spread = np.sqrt(np.clip(second - first**2 / total, 0, None) / divisor)
        too_few = known.T.astype(float) @ known < 2
        return _settled(mean, size, np.where(too_few, np.nan, product / divisor), spread)


def _complete(x: Array, w: Array) -> Moments:
    total = w.sum()
    mean = w @ x / total
    centred = x - mean
    product = (centred * w[:, None]).T @ centred
    covariance = product / (total - (w**2).sum() / total) if len(x) > 1 else np.full(product.shape, np.nan)
    spread = np.broadcast_to(np.sqrt(np.diagonal(covariance))[:, None], covariance.shape)
    return _settled(mean, w @ np.abs(x) / total, covariance, spread)


def _settled(mean: Array, size: Array, covariance: Array, spread: Array) -> Moments:
    """`spread[j, k]`: the standard deviation of j over the pairs of j and k."""
    constant = spread <= TINY * size[:, None]
    either = constant | constant.T
    covariance = np.where(either, covariance * 0.0, covariance)
    correlation = np.where(either, covariance, covariance / (spread * spread.T))
    np.fill_diagonal(correlation, np.where(np.isnan(np.diagonal(covariance)), np.nan, 1.0))
    return Moments(mean, covariance, correlation, size)


def correlation_of(covariance: Array) -> Array:
    """The correlations that belong to a covariance matrix; NaN where a variance is negative, 0 where it is 0."""
    variance = np.diagonal(covariance)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(variance)
        found = covariance / np.outer(spread, spread)
    found[(variance == 0)[:, None] | (variance == 0)] = 0.0
    np.fill_diagonal(found, np.where(variance < 0, np.nan, 1.0))
    return found
