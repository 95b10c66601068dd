"""Model what lies beyond the k-th largest and the k-th smallest unit, so that no released extreme belongs to one unit.

The largest value of a release must not tell the largest value of the file. So the values beyond a cut are replaced by draws
from a tail that is fitted with a bounded influence of each unit, and of the largest units in particular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import common_step, snap_to_grid

MIN_UNITS_BEYOND = 10  # units at or beyond a cut
FIT_UNITS_PER_CUT_UNIT = 10  # the tail is fitted to so many times the units beyond the cut ...
MAX_FIT_SHARE = 0.25  # ... but at most to this share of all units
MAX_CENSORED_UNITS = 8  # of the largest units, at most half, the fit uses only that they are larger than the next one
MAX_GRID_EXCLUDED_UNITS = 3  # at each end, that do not determine the grid
MIN_MODELED_UNITS = 5  # with fewer units beyond the cut nothing can be fitted: they get the value of the cut
MIN_UNITS_FOR_SHAPE = 20  # with fewer uncensored excesses the tail is exponential
SHAPES = np.arange(-12, 13) * 0.04
SHAPE_PRIOR = 3.0  # both parameters of the beta distribution of the shape on (-1/2, 1/2): mean 0, sd 0.19
BISECTIONS = 30  # of the logarithm of the scale, to a relative precision of 2e-8


class Tail(NamedTuple):
    """What lies above a cut: cut + excess, the excess generalized Pareto with this scale and shape, below `limit`."""

    cut: float
    scale: float = 0.0  # 0: every value beyond the cut becomes the cut
    shape: float = 0.0
    limit: float = np.inf  # of the excess: values keep their sign

    def excess(self, p: Array) -> Array:
        """Return the quantiles p of the excess, of the generalized Pareto distribution below the limit.

        F(e) = 1 - (1 + shape e / scale)^(-1/shape), or 1 - exp(-e / scale) if the shape is 0.
        """
        if self.scale <= 0:
            return np.zeros(len(p))
        scaled_limit = self.limit / self.scale
        if self.shape == 0:
            return np.asarray(-self.scale * np.log1p(p * np.expm1(-scaled_limit)))
        survival = max(1 + self.shape * scaled_limit, 0.0) ** (-1 / self.shape) if np.isfinite(scaled_limit) else 0.0
        return np.asarray(self.scale * np.expm1(-self.shape * np.log1p(-p * (1 - survival))) / self.shape)


class Tails(NamedTuple):
    """Both tails of a column. The low tail is that of the negative values."""

    low: Tail
    high: Tail
    grid: Array  # values of the column on whose grid the draws lie
    step: float  # of that grid; 0 without one

    def inside(self, x: Array) -> Array:
        """Return True for the values that are beyond neither cut, False for NaN."""
        return np.asarray((x >= -self.low.cut) & (x <= self.high.cut))


def fit_tails(x: Array, units: Array | None, k: int) -> Tails | None:
    """Cut x at the k-th smallest and k-th largest unit, and fit a tail to each side. None if there is no value.

    units : the person or household of each value, which counts once, by its largest or smallest value; None: each value
        is a unit.
    With fewer than 2 k units the cuts are at the median.
    """
    known = np.isfinite(x)
    if not known.any():
        return None
    values, units = x[known], None if units is None else units[known]
    upper, lower = _values_of_units(values, units), -_values_of_units(-values, units)
    rank = max(min(k, len(upper) // 2), 1)
    # The few units at each end do not change the grid either.
    end = min(MAX_GRID_EXCLUDED_UNITS, rank - 1)
    grid = np.unique(values[(values >= lower[end]) & (values <= upper[end])])
    step = common_step(grid)
    return Tails(_fit_upper_tail(-lower, rank, step), _fit_upper_tail(upper, rank, step), grid, step)


def _values_of_units(values: Array, units: Array | None) -> Array:
    """Return the largest value of each unit, in descending order."""
    order = np.argsort(-values, kind="stable")
    if units is None:
        return np.asarray(values[order])
    first = np.unique(units[order], return_index=True)[1]
    return np.asarray(values[order][np.sort(first)])


def _fit_upper_tail(values: Array, rank: int, step: float) -> Tail:
    """Return the tail above the value of this rank. values : of the units, in descending order. step : of the grid."""
    cut = float(values[rank - 1])
    # A column that is positive up to this cut has no value of the other sign beyond it, and no 0.
    limit = -cut if cut < 0 else np.inf
    if np.count_nonzero(values > cut) < MIN_MODELED_UNITS:
        return Tail(cut, limit=limit)
    # Fit to more units than are replaced: the excess over a lower threshold has the same shape.
    fitted = max(rank, min(FIT_UNITS_PER_CUT_UNIT * rank, int(MAX_FIT_SHARE * len(values))))
    threshold = float(values[fitted - 1])
    # On a grid, the excess is a multiple of the step, rounded up.
    excess = np.maximum(values[values > threshold] - threshold - step / 2, step / 2)
    scale, shape = fit_excess(excess)
    # Above a higher threshold the shape is the same, and the scale is larger by shape times the difference.
    return Tail(cut, max(scale + shape * (cut - threshold), 0.0), shape, limit)


def fit_excess(excess: Array) -> tuple[float, float]:
    """Return scale and shape of the generalized Pareto distribution of excesses, given in descending order.

    Maximum likelihood with the largest eight (at most half) censored at the next, so that they count, but not how large
    they are, and with a beta prior that shrinks the shape to 0. With few excesses the distribution is exponential.
    Censored: Epstein, Sobel (1953); prior on (-1/2, 1/2): Martins, Stedinger (2000, 2001)

    >>> fit_excess(np.array([9000.0, 800.0, 70.0, 6.0, 4.0, 2.0]))
    (10.0, 0.0)
    """
    censored = min(MAX_CENSORED_UNITS, len(excess) // 2)
    e = np.minimum(excess, excess[censored])
    exact = len(e) - censored
    exponential = float(e.sum() / exact)
    if exact < MIN_UNITS_FOR_SHAPE:
        return exponential, 0.0
    # For each shape, the score equation of the scale is monotone: bisect the logarithm of the scale.
    shape = SHAPES[:, np.newaxis]
    weight = np.where(np.arange(len(e)) < censored, 1.0, 1 + shape)
    low = np.log(np.maximum(-SHAPES * e[0] * (1 + 1e-9), 1e-6 * exponential))
    high = np.full(len(SHAPES), np.log(1e3 * exponential))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        z = e / np.exp(middle)[:, np.newaxis]
        too_small = (weight * z / (1 + shape * z)).sum(axis=1) > exact
        low, high = np.where(too_small, middle, low), np.where(too_small, high, middle)
    scale = np.exp(high)
    # log-likelihood: -exact log(scale) - sum_i w_i/shape log(1 + shape z_i), whose limit at shape 0 is -sum_i z_i.
    z = e / scale[:, np.newaxis]
    growth = np.where(shape == 0, z, np.log1p(shape * z) / np.where(shape == 0, 1.0, shape))
    fit = -exact * np.log(scale) - (weight * growth).sum(axis=1)
    best = int(np.argmax(fit + (SHAPE_PRIOR - 1) * np.log(0.25 - SHAPES**2)))
    return float(scale[best]), float(SHAPES[best])


def replace_tails(x: Array, tails: Tails, rng: Generator | None) -> Array:
    """Replace the values beyond each cut by values of its tail, in their order.

    Equal values beyond a cut get different ones, in random order. Without `rng` the r values beyond a cut become the
    quantiles (i - 1/2)/r of the tail. NaN stays.

    >>> tails = Tails(Tail(0.0), Tail(10.0, scale=1.0), np.array([0.0, 0.01]), 0.01)
    >>> replace_tails(np.array([5.0, 900.0, 11.0, -3.0]), tails, None).round(2).tolist()
    [5.0, 11.39, 10.29, 0.0]
    """
    replaced = x.copy()
    for tail, sign in ((tails.low, -1.0), (tails.high, 1.0)):
        rows = np.flatnonzero(sign * x > tail.cut)
        if len(rows) == 0:
            continue
        if rng is None:
            order, p = np.argsort(sign * x[rows], kind="stable"), (np.arange(len(rows)) + 0.5) / len(rows)
        else:
            order, p = np.lexsort((rng.random(len(rows)), sign * x[rows])), np.sort(rng.random(len(rows)))
        beyond = sign * (tail.cut + _whole_steps(tail.excess(p), tail.limit, tails.step))
        replaced[rows[order]] = snap_to_grid(beyond, tails.grid)
    return replaced


def _whole_steps(excess: Array, limit: float, step: float) -> Array:
    """Round excesses up to multiples of the step, below the limit. A value beyond the cut stays beyond it."""
    if step <= 0:
        return excess
    most = np.ceil(limit / step) - 1
    return np.asarray(step * np.minimum(np.ceil(excess / step), most))
