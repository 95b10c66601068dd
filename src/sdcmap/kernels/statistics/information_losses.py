"""Information loss of single values, and of means and covariances.  Yancey, Winkler, Creecy (2002), section 3.5

A loss is 0 where nothing changed, even on a scale of 0. It is infinite where something changed on a scale of 0, or where a
moment of the original cannot be computed from the masked file. It is NaN where the original is missing.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.moments import TINY, Moments


# ---- one variable, value by value -----------------------------------------------------------------------------
def _impute_suppressed(x: Array, z: Array) -> Array:
    """Return z with the mean of x where masking made a value missing, as a user would impute it."""
    gone = np.isnan(z) & ~np.isnan(x)
    return np.where(gone, np.nanmean(x), z) if gone.any() else z


def _ratio(change: Array, scale: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0, 0.0, change / scale)


def relative_losses(x: Array, z: Array, constant: float | None = None) -> Array:
    """Return |x - z| / |x|, with `constant` in place of |x| where x = 0; NaN where x is missing."""
    scale = np.abs(x)
    if constant is not None:
        scale[scale == 0] = constant
    return _ratio(np.abs(x - _impute_suppressed(x, z)), scale)


def il1_losses(x: Array, z: Array) -> Array:
    """Return |x - z| / (0.5 (|x| + |z|)); NaN where x is missing."""
    z = _impute_suppressed(x, z)
    return _ratio(np.abs(x - z), 0.5 * (np.abs(x) + np.abs(z)))


def il1s_losses(x: Array, z: Array) -> Array:
    """Return |x - z| / (sqrt(2) S), where S is the standard deviation of x; NaN where x is missing."""
    known = ~np.isnan(x)
    spread = np.std(x[known], ddof=1) if known.sum() > 1 else 0.0
    loss: Array = np.abs(x - _impute_suppressed(x, z))
    if spread > 0:
        loss /= np.sqrt(2) * spread
    else:
        loss[loss > 0] = np.inf
    return loss


# ---- a matrix, moment by moment -------------------------------------------------------------------------------
def _relative(change: Array, level: Array, scale: Array) -> Array:
    """Return change/level; both count as 0 below the rounding error of `scale`."""
    rounding = TINY * scale
    change, level = np.where(change <= rounding, 0.0, change), np.where(level <= rounding, 0.0, level)
    return _mark_undefined(level, _ratio(change, level))


def _mark_undefined(level: Array, loss: Array) -> Array:
    """Return infinity where only the masked file lacks a moment, and NaN where the original lacks it."""
    return np.where(np.isnan(level), np.nan, np.where(np.isnan(loss), np.inf, loss))


def il2_losses(before: Moments, after: Moments) -> Array:
    """Return |mean x_j - mean z_j| / |mean x_j| of each variable."""
    return _relative(np.abs(before.mean - after.mean), np.abs(before.mean), before.size)


def il3_losses(before: Moments, after: Moments) -> Array:
    """Return |Cov X - Cov Z| / |Cov X| of each pair j >= k."""
    below = np.tril_indices(len(before.mean))
    spread = np.sqrt(before.variance)
    change = np.abs(before.covariance - after.covariance)
    return _relative(change, np.abs(before.covariance), np.outer(spread, spread))[below]


def il4_losses(before: Moments, after: Moments) -> Array:
    """Return |Var x_j - Var z_j| / Var x_j of each variable."""
    return _relative(np.abs(before.variance - after.variance), before.variance, before.variance)


def il5_losses(before: Moments, after: Moments) -> Array:
    """Return |Cor X - Cor Z| of each pair j > k."""
    below = np.tril_indices(len(before.mean), -1)
    return _mark_undefined(before.correlation, np.abs(before.correlation - after.correlation))[below]
