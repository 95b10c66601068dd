"""Additive noise on a numeric matrix: roots of a covariance, and corrections of the noisy values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array, with_fixed_signs

DRAW_BLOCK = 4096  # records drawn at a time, so that their numbers are still in the cache when they are transposed
ZERO_PIVOT = 1e-12  # residual share of a variable's variance below which the earlier variables determine it
ZERO_EIGENVALUE = 1e-10  # eigenvalues of a correlation matrix below this count as 0
ZERO_SHARE = 16 * float(np.finfo(float).eps)  # share of the largest eigenvalue, per variable, that is rounding


def covariance_root(covariance: Array, kind: str = "eigen") -> Array:
    """Return L with L L' = covariance; eigenvalues that are 0 up to rounding count as 0.

    eigen: L = V sqrt(Lambda), the largest entry of each column of V positive. symmetric: L = V sqrt(Lambda) V'.
    cholesky: lower triangular, in the order of the variables; a variable that the earlier ones determine has a column of
    zeros. The result is the same on every machine, up to rounding, unless two eigenvalues are equal.
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
        # Cholesky column by column; a pivot of 0 leaves its column at 0.
        left = covariance[j:, j] - root[j:, :j] @ root[j, :j]
        if left[0] > ZERO_PIVOT * covariance[j, j]:
            root[j:, j] = left / np.sqrt(left[0])
    return root


def column_spreads(x: Array) -> Array:
    """Return the standard deviation of each column, ignoring missing values."""
    return np.asarray(np.nanstd(x, axis=0, ddof=1))


def complete_covariance(x: Array) -> Array:
    """Return the covariance matrix of the rows without missing values."""
    return np.atleast_2d(np.cov(x[~np.isnan(x).any(axis=1)], rowvar=False))


def complete_covariance_root(x: Array, kind: str = "eigen") -> Array:
    """Return the root of the covariance matrix of the rows without missing values."""
    return covariance_root(complete_covariance(x), kind)


def whitening_matrix(covariance: Array) -> Array:
    """Return T with T C T' = I on the directions in which C is not null.

    The eigenvalues are those of the correlation matrix, so that the units of the variables do not matter.
    """
    sd = np.sqrt(np.diag(covariance))
    sd = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    live = values > ZERO_EIGENVALUE
    return np.asarray((vectors[:, live] / np.sqrt(values[live])).T / sd)


def unmixing_matrix(root: Array) -> tuple[Array, Array]:
    """Return T and the columns `live` of L for which T (L w) = w[live]; columns that are 0 up to rounding are left out.

    A singular symmetric root has no live column, because no single w can be recovered from the noise.
    """
    size = (root**2).sum(axis=0)
    live = np.flatnonzero(size > ZERO_SHARE * len(root) * size.max(initial=0.0))
    # Rows are scaled to length 1, so that the rank does not depend on the units of the variables.
    scale = np.sqrt((root**2).sum(axis=1))
    scaled = root[:, live] / np.where(scale > 0, scale, 1.0)[:, np.newaxis]
    if len(live) == 0 or np.linalg.matrix_rank(scaled) < len(live):
        return np.empty((0, len(root))), np.empty(0, dtype=np.intp)
    return np.linalg.pinv(scaled) / np.where(scale > 0, scale, 1.0), live


def shrinkage(variance: float) -> float:
    """Return c = 1/sqrt(1 + d), which takes Cov(X + e) = (1 + d) Cov X back to Cov X.  YWC (2002), eq. (1)"""
    return float(1 / np.sqrt(1 + variance))


def restore_covariance(y: Array, variance: float) -> Array:
    """Return c y + (1 - c) mu, which has the covariance of the original; mu are the means of the masked data.

    YWC (2002), eq. (1) with the sign of their appendix
    """
    c = shrinkage(variance)
    present = ~np.isnan(y)
    mean = np.where(present, y, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.asarray(c * y + (1 - c) * mean)


def draw_normals(rng: Generator, n: int, m: int) -> Array:
    """Draw m x n standard normal numbers, record by record."""
    noise = np.empty((m, n))
    for start in range(0, n, DRAW_BLOCK):
        part = rng.standard_normal((min(DRAW_BLOCK, n - start), m))
        noise[:, start : start + len(part)] = part.T
    return noise


def draw_normal_batch(rngs: Sequence[Generator], n: int, m: int) -> Array:
    """Draw m x len(rngs) x n standard normal numbers: [:, i] are those of `draw_normals` from generator i."""
    noise = np.empty((m, len(rngs), n))
    for index, rng in enumerate(rngs):
        if m == 1:
            rng.standard_normal(out=noise[0, index])  # record by record is one by one
        else:
            noise[:, index] = draw_normals(rng, n, m)
    return noise


def prepare_release_values(
    x: Array, y: Array, keep_zeros: bool, integers: bool, lower: float | None, upper: float | None
) -> Array:
    """Return the noisy values y of x as they are released: rounded, then cut at the bounds, with zeros restored.

    Y = max(lower, min(upper, x + e)): Duncan et al. (2001), section 4. For integers, a bound is moved to the nearest
    whole number inside it.
    """
    # Bounds come after rounding, so that no rounded value exceeds them; zeros come last, as they may lie outside.
    if integers:
        y = np.rint(y)
        lower, upper = whole_bounds(lower, upper)
    y = y if lower is None else np.maximum(y, lower)
    y = y if upper is None else np.minimum(y, upper)
    return np.where(x == 0, 0.0, y) if keep_zeros else y


def whole_bounds(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    """Return the outermost whole numbers inside the bounds."""
    return None if lower is None else float(np.ceil(lower)), None if upper is None else float(np.floor(upper))
