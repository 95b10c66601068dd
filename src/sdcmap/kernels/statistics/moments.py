"""Means, variances, covariances and correlations of numbers with missing values and weights.

Weights are survey weights: sums of squares are divided by sum w (1 - 1/n'), where n' = (sum w)^2 / sum w^2 is the effective
number of records (Kish). Without weights the divisor is n - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

TINY = 1e-12  # a spread or mean below this share of the variable's mean absolute value is rounding and counts as 0
MIN_EXTRA_RECORDS = 1e-9  # a variance needs more than 1 + this many effective records


class Spread(NamedTuple):
    """Mean and variance of one variable, and the effective number of its records."""

    mean: float
    variance: float
    records: float


def mean_and_variance(y: Array, weights: Array | None = None) -> Spread:
    """Return mean and variance of numbers without missing values; the variance is NaN if there are too few.

    The mean of a constant is exactly its value.
    """
    w = np.ones(len(y)) if weights is None else weights
    total = float(w.sum())
    count = total**2 / float((w**2).sum()) if total > 0 else 0.0
    if count == 0:
        return Spread(np.nan, np.nan, 0.0)
    mean = float(y[0] if y.min() == y.max() else w @ y / total)
    variance = float(w @ (y - mean) ** 2) / total * count / (count - 1) if count > 1 + MIN_EXTRA_RECORDS else np.nan
    return Spread(mean, variance, count)


def mean_and_variance_of_rows(y: Array) -> tuple[list[float], list[float]]:
    """Return the means and variances of each row without missing values: `mean_and_variance` of it, bit by bit."""
    n = y.shape[1]
    w, total = np.ones(n), float(n)
    # one scalar product per row, because a product with the whole matrix adds up in another order
    mean = np.array([w @ row for row in y]) / total
    mean = np.where(y.min(axis=1) == y.max(axis=1), y[:, 0], mean)
    squares = np.array([w @ row for row in (y - mean[:, None]) ** 2])
    variance = squares / total * total / (total - 1) if n > 1 else np.full(len(y), np.nan)
    return mean.tolist(), variance.tolist()


@dataclass(frozen=True)
class Moments:
    """Means (m), covariances (m x m) and correlations (m x m); NaN where there are too few values.

    size : the mean absolute value of each variable, the scale for telling rounding from a change.
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
    """Return the moments of the columns of x: means over the values present, covariances over the complete pairs."""
    known = ~np.isnan(x)
    w = np.ones(len(x)) if weights is None else weights
    with np.errstate(invalid="ignore", divide="ignore"):
        if known.all():
            return _complete(x, w)
        weight = known * w[:, None]
        mean = np.where(known, x, 0.0).T @ w / weight.sum(axis=0)
        size = np.abs(np.where(known, x, 0.0)).T @ w / weight.sum(axis=0)
        # Sums over the complete pairs of each two columns, as matrix products with the indicators of known values.
        centered = np.where(known, x - mean, 0.0)
        total = known.T @ weight  # sum of weights of the complete pairs
        first = (centered * w[:, None]).T @ known  # sum of w x_j over the pairs of j and k
        second = (centered**2 * w[:, None]).T @ known
        divisor = total - (known.T @ (known * w[:, None] ** 2)) / total
        product = (centered * w[:, None]).T @ centered - first * first.T / total
        spread = np.sqrt(np.clip(second - first**2 / total, 0, None) / divisor)
        enough = divisor > MIN_EXTRA_RECORDS * total
        return _finish_moments(mean, size, np.where(enough, product / divisor, np.nan), spread)


def _complete(x: Array, w: Array) -> Moments:
    total = w.sum()
    mean = w @ x / total
    centered = x - mean
    divisor = total - (w**2).sum() / total
    product = (centered * w[:, None]).T @ centered
    covariance = product / divisor if divisor > MIN_EXTRA_RECORDS * total else np.full(product.shape, np.nan)
    spread = np.broadcast_to(np.sqrt(np.diagonal(covariance))[:, None], covariance.shape)
    return _finish_moments(mean, w @ np.abs(x) / total, covariance, spread)


def _finish_moments(mean: Array, size: Array, covariance: Array, spread: Array) -> Moments:
    """Return the moments, with covariance 0 for constants; spread[j, k] is the deviation of j over its pairs with k."""
    constant = spread <= TINY * size[:, None]
    either = constant | constant.T
    covariance = np.where(either, covariance * 0.0, covariance)
    correlation = np.where(either, covariance, np.clip(covariance / (spread * spread.T), -1.0, 1.0))
    np.fill_diagonal(correlation, np.where(np.isnan(np.diagonal(covariance)), np.nan, 1.0))
    return Moments(mean, covariance, correlation, size)


def correlation_of(covariance: Array) -> Array:
    """Return the correlations of a covariance matrix; NaN where a variance is negative, 0 where it is 0."""
    variance = np.diagonal(covariance)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(variance)
        correlation = covariance / np.outer(spread, spread)
    correlation[(variance == 0)[:, None] | (variance == 0)] = 0.0
    np.fill_diagonal(correlation, np.where(variance < 0, np.nan, 1.0))
    return correlation
