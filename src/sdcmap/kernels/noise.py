"""Additive noise on a numeric matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def covariance_root(covariance: Array) -> Array:
    """L = V sqrt(Lambda), so that L L' = covariance; small negative eigenvalues of a singular matrix count as 0."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.clip(values, 0, None))
    return root


def spreads(x: Array) -> Array:
    """The standard deviation of each column, missing values left out."""
    spread: Array = np.nanstd(x, axis=0, ddof=1)
    return spread


def complete_covariance_root(x: Array) -> Array:
    """The root of the covariance matrix over the rows without missing values."""
    complete = x[~np.isnan(x).any(axis=1)]
    return covariance_root(np.atleast_2d(np.cov(complete, rowvar=False)))
