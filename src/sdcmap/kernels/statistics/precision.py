"""Precision of estimates: normal and Wilson intervals, and the inverse of a mean squared error."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array

NORMAL_95 = 1.959963984540054  # standard deviations around the mean that hold 95 % of a normal distribution


def wilson_interval(share: float, trials: float, z: float = NORMAL_95) -> tuple[float, float]:
    """Return the ends of the confidence interval of a share observed in `trials` trials.  Wilson (1927)

    z : the normal quantile of the level, by default for 95 %.

    >>> [round(end, 4) for end in wilson_interval(3 / 10, 10)]
    [0.1078, 0.6032]
    """
    spread = z * z / trials
    center = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt((share * (1 - share) + spread / 4) / trials) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def precision_of_errors(squared_errors: Array) -> tuple[float, float | None]:
    """Return R = 1/mean(e^2) and its delta-method standard error R^2 sd(e^2)/sqrt(count).

    R is infinite if all errors are 0.  Duncan et al. (2001)
    The mean of 1/e^2 would be wrong: with a true R of 4, the mean of 200 such values has median 1,552.
    """
    count = len(squared_errors)
    mean = float(np.mean(squared_errors))
    if mean == 0:
        return float("inf"), None
    if count < 2:
        return 1 / mean, None
    return 1 / mean, float(np.std(squared_errors, ddof=1) / np.sqrt(count) / mean**2)
