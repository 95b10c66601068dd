"""How sure a link is: the share of true links among links of such a score, and among all links above it."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array


def calibrated(score: Array, success: Array) -> Array:
    """P(success | score), rising in the score: the least-squares fit of pool-adjacent-violators; equal scores count as one.

    Its mean is the mean of `success`. Barlow et al. (1972); Zadrozny and Elkan (2002).
    """
    from scipy.optimize import isotonic_regression

    level, place, count = np.unique(score, return_inverse=True, return_counts=True)
    mean = np.bincount(place, success, minlength=len(level)) / count
    fitted: Array = isotonic_regression(mean, weights=count).x[place] if len(level) else mean
    return fitted


def running_precision(score: Array, success: Array) -> tuple[Array, Array]:
    """The order of the links, best score first, and the share of successes down to each; equal scores share a number."""
    order = np.argsort(-score, kind="stable")
    ranked = -score[order]
    last = np.searchsorted(ranked, ranked, side="right")  # how many stand at or above each score
    precision: Array = np.cumsum(success[order])[last - 1] / last if len(order) else ranked
    return order, precision
