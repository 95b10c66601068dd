"""How precisely an estimate is known: normal and Wilson intervals, and precision as the inverse of a mean squared error."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array

NORMAL_95 = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations of its mean


def wilson_interval(share: float, trials: float, z: float = NORMAL_95) -> tuple[float, float]:
    """Return the ends of the interval of a share that was observed in so many trials.  Wilson (1927)

    z : the normal quantile of the level, by default for 95 %.

    >>> [round(end, 4) for end in wilson_interval(3 / 10, 10)]
    [0.1078, 0.6032]
    """
    spread = z * z / trials
    center = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt((share * (1 - share) + spread / 4) / trials) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def inverse_of_mean(squared_errors: Array) -> tuple[float, float | None]:
    """R = 1/mean(e^2) and its delta-method standard error R^2 sd(e^2)/sqrt(count); infinite where all errors are 0.

    Duncan et al. (2001). The mean of 1/e^2 would be wrong: with true R = 4 the mean of 200 such values has median 1,552.
    """
    count = len(squared_errors)
    mean = float(np.mean(squared_errors))
    if mean == 0:
        return float("inf"), None
    if count < 2:
        return 1 / mean, None
    return 1 / mean, float(np.std(squared_errors, ddof=1) / np.sqrt(count) / mean**2)
