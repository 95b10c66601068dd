"""Means, covariances and correlations of numbers with weights and missing values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Moments(NamedTuple):
    """Means of the columns; covariances and correlations of each pair of them, NaN where there is none."""

    mean: Array
    covariance: Array
    correlation: Array


def pairwise_moments(x: Array, weights: Array) -> Moments:
    """The moments of each pair of columns over the rows that know both: weighted sums over the weights' sum, times
    n/(n - 1), n = (sum w)^2 / sum w^2 (Kish). A constant column has correlation 0 with the others.
    """
    known = ~np.isnan(x)
    share = known * weights[:, np.newaxis]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, x, 0.0).T @ weights / share.sum(axis=0)
        d = np.where(known, x - mean, 0.0)
        there = known.astype(np.float64)
        weighted = d * weights[:, np.newaxis]
        total = share.T @ there
        count = total**2 / (share.T @ share)
        shift = weighted.T @ there / total  # the mean of column j over the rows that know k, from its own mean
        product = weighted.T @ d / total - shift * shift.T
        square = np.maximum((weighted * d).T @ there / total - shift**2, 0.0)  # variance of j where k is known
        spread = np.sqrt(square * square.T)
        constant = square <= 1e-24 * (np.abs(mean)[:, np.newaxis] + np.sqrt(square)) ** 2
        flat = constant | constant.T
        covariance = np.where(flat, 0.0, product * count / (count - 1))
        correlation = np.where(flat, 0.0, product / np.where(flat, 1.0, spread))
    correlation = np.where(count > 1, np.clip(correlation, -1.0, 1.0), np.nan)
    covariance = np.where(count > 1, covariance, np.nan)
    return Moments(mean, covariance, correlation)
