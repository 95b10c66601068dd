"""Additive noise on a numeric matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

Array = npt.NDArray[Any]


def covariance_root(covariance: Array) -> Array:
    """L = V sqrt(Lambda), so that L L' = covariance; small negative eigenvalues of a singular matrix count as 0."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.clip(values, 0, None))
    return root


def independent_noise(x: Array, variance: float, rng: Generator) -> Array:
    """e ~ N(0, variance * s_j^2) for each column j of x, s_j^2 its own variance (NaN left out).  Duncan et al., sec. 2"""
    spread = np.nanstd(x, axis=0, ddof=1)
    noise: Array = np.sqrt(variance) * spread * rng.standard_normal(x.shape)
    return noise


def correlated_noise(x: Array, variance: float, rng: Generator) -> Array:
    """e ~ N(0, variance * Cov x), the covariance taken over complete rows.  Kim (1986); YWC appendix"""
    complete = x[~np.isnan(x).any(axis=1)]
    root = covariance_root(np.atleast_2d(np.cov(complete, rowvar=False)))
    noise: Array = np.sqrt(variance) * rng.standard_normal(x.shape) @ root.T
    return noise
