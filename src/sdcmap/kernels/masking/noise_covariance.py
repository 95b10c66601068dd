"""Additive noise on a numeric matrix: roots of a covariance, and what is done to the noisy values afterwards."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array, with_fixed_signs

DRAWN = 4096  # records whose numbers are drawn at once, so that they are still in the cache when they are laid out
ZERO_PIVOT = 1e-12  # share of a variable's variance below which the earlier variables determine it
ZERO_EIGENVALUE = 1e-10  # of a correlation matrix
ZERO_SHARE = 16 * float(np.finfo(float).eps)  # of the largest eigenvalue, for each variable: below it is rounding


def covariance_root(covariance: Array, kind: str = "eigen") -> Array:
    """L with L L' = covariance; eigenvalues of a singular matrix that are 0 but for rounding count as 0.

    eigen: L = V sqrt(Lambda), the largest entry of each column of V positive. symmetric: L = V sqrt(Lambda) V'.
    cholesky: lower triangular, in the order of the variables; a variable that the earlier ones determine has a column of
    zeros. Each is one matrix on every machine, up to rounding, while no two eigenvalues are equal.
    """
    if kind == "cholesky":
        return _triangular_root(covariance)
    values, vectors = np.linalg.eigh(covariance)
    vectors = with_fixed_signs(vectors)
    rounding = ZERO_SHARE * len(values) * values.max(initial=0.0)
    root: Array = vectors * np.sqrt(np.where(values > rounding, values, 0.0))
    return root @ vectors.T if kind == "symmetric" else root


def _triangular_root(covariance: Array) -> Array:
    root = np.zeros_like(covariance, dtype=float)
    for j in range(len(covariance)):
        left = covariance[j:, j] - root[j:, :j] @ root[j, :j]
        if left[0] > ZERO_PIVOT * covariance[j, j]:
            root[j:, j] = left / np.sqrt(left[0])
    return root


def spreads(x: Array) -> Array:
    """The standard deviation of each column, missing values left out."""
    return np.asarray(np.nanstd(x, axis=0, ddof=1))


def complete_covariance(x: Array) -> Array:
    """The covariance matrix over the rows without missing values."""
    return np.atleast_2d(np.cov(x[~np.isnan(x).any(axis=1)], rowvar=False))


def complete_covariance_root(x: Array, kind: str = "eigen") -> Array:
    """The root of the covariance matrix over the rows without missing values."""
    return covariance_root(complete_covariance(x), kind)


def whitening(covariance: Array) -> Array:
    """T with T C T' = I on the directions in which C is not null; found on the correlation scale, so units are alike."""
    sd = np.sqrt(np.diag(covariance))
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    live = values > ZERO_EIGENVALUE
    return np.asarray((vectors[:, live] / np.sqrt(values[live])).T / sd)


def unmixing(root: Array) -> tuple[Array, Array]:
    """T and the columns `live` of L for which T (L w) = w[live]; columns that are null to rounding are left out.

    Of a singular symmetric root no single w can be told from the noise: no column is live.
    """
    size = (root**2).sum(axis=0)
    live = np.flatnonzero(size > ZERO_SHARE * len(root) * size.max(initial=0.0))
    scale = np.sqrt((root**2).sum(axis=1))
    scaled = root[:, live] / np.where(scale > 0, scale, 1.0)[:, np.newaxis]
    if len(live) == 0 or np.linalg.matrix_rank(scaled) < len(live):
        return np.empty((0, len(root))), np.empty(0, dtype=np.intp)
    return np.linalg.pinv(scaled) / np.where(scale > 0, scale, 1.0), live


def shrinkage(variance: float) -> float:
    """c = 1/sqrt(1 + d), which takes Cov(X + e) = (1 + d) Cov X back to Cov X.  YWC (2002), eq. (1)"""
    return float(1 / np.sqrt(1 + variance))


def rescaled(y: Array, variance: float) -> Array:
    """c y + (1 - c) mu, mu the means of the masked data.  YWC (2002), eq. (1) with the sign of their appendix"""
    c = shrinkage(variance)
    present = ~np.isnan(y)
    mean = np.where(present, y, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.asarray(c * y + (1 - c) * mean)


def normals(rng: Generator, n: int, m: int) -> Array:
    """m x n standard normal numbers, drawn record by record, a block of records at a time."""
    noise = np.empty((m, n))
    for start in range(0, n, DRAWN):
        part = rng.standard_normal((min(DRAWN, n - start), m))
        noise[:, start : start + len(part)] = part.T
    return noise


def finished(x: Array, y: Array, keep_zeros: bool, integers: bool, lower: float | None, upper: float | None) -> Array:
    """The noisy values y of x as they are released: rounded, then cut at the bounds, then zeros put back.

    Y = max(lower, min(upper, x + e)): Duncan et al. (2001), section 4. Among whole numbers a bound is the nearest whole
    number inside it.
    """
    if integers:
        y = np.rint(y)
        lower, upper = whole_bounds(lower, upper)
    y = y if lower is None else np.maximum(y, lower)
    y = y if upper is None else np.minimum(y, upper)
    return np.where(x == 0, 0.0, y) if keep_zeros else y


def whole_bounds(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    """The outermost whole numbers inside the bounds."""
    return None if lower is None else float(np.ceil(lower)), None if upper is None else float(np.floor(upper))
