"""Information loss of single values, and of means and covariances.  Yancey, Winkler, Creecy (2002), section 3.5

Each gives 0 where nothing changed, 0/0 included; infinity where something changed and its scale is 0, or a moment of the
original can no longer be told; NaN where the original is missing.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.moments import TINY, Moments


# ---- one variable, value by value -----------------------------------------------------------------------------
def _filled(x: Array, z: Array) -> Array:
    """z, with the mean of x where masking made a value missing: what a user would put there."""
    gone = np.isnan(z) & ~np.isnan(x)
    return np.where(gone, np.nanmean(x), z) if gone.any() else z


def _over(change: Array, scale: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0, 0.0, change / scale)


def relative_losses(x: Array, z: Array, constant: float | None = None) -> Array:
    """|x - z| / |x|; with a constant, that in place of |x| where x = 0. NaN where x is missing."""
    scale = np.abs(x)
    if constant is not None:
        scale[scale == 0] = constant
    return _over(np.abs(x - _filled(x, z)), scale)


def il1_losses(x: Array, z: Array) -> Array:
    """|x - z| / (0.5 (|x| + |z|)). NaN where x is missing."""
    z = _filled(x, z)
    return _over(np.abs(x - z), 0.5 * (np.abs(x) + np.abs(z)))


def il1s_losses(x: Array, z: Array) -> Array:
    """|x - z| / (sqrt(2) S), S the standard deviation of x. NaN where x is missing."""
    known = ~np.isnan(x)
    spread = np.std(x[known], ddof=1) if known.sum() > 1 else 0.0
    loss: Array = np.abs(x - _filled(x, z))
    if spread > 0:
        loss /= np.sqrt(2) * spread
    else:
        loss[loss > 0] = np.inf
    return loss


# ---- a matrix, moment by moment -------------------------------------------------------------------------------
def _relative(change: Array, level: Array, scale: Array) -> Array:
    """change/level; what is below `scale` times rounding counts as 0."""
    rounding = TINY * scale
    change, level = np.where(change <= rounding, 0.0, change), np.where(level <= rounding, 0.0, level)
    return _known(level, _over(change, level))


def _known(level: Array, loss: Array) -> Array:
    """A moment that the masked file no longer tells is lost without bound; one the original lacks is left out."""
    return np.where(np.isnan(level), np.nan, np.where(np.isnan(loss), np.inf, loss))


def il2_losses(before: Moments, after: Moments) -> Array:
    """|mean x_j - mean z_j| / |mean x_j| of each variable."""
    return _relative(np.abs(before.mean - after.mean), np.abs(before.mean), before.size)


def il3_losses(before: Moments, after: Moments) -> Array:
    """|Cov X - Cov Z| / |Cov X| of each pair j >= k."""
    below = np.tril_indices(len(before.mean))
    spread = np.sqrt(before.variance)
    change = np.abs(before.covariance - after.covariance)
    return _relative(change, np.abs(before.covariance), np.outer(spread, spread))[below]


def il4_losses(before: Moments, after: Moments) -> Array:
    """|Var x_j - Var z_j| / Var x_j of each variable."""
    return _relative(np.abs(before.variance - after.variance), before.variance, before.variance)


def il5_losses(before: Moments, after: Moments) -> Array:
    """|Cor X - Cor Z| of each pair j > k."""
    below = np.tril_indices(len(before.mean), -1)
    return _known(before.correlation, np.abs(before.correlation - after.correlation))[below]
