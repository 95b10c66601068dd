"""How precisely an estimate is known: normal and Wilson intervals, and precision as the inverse of a mean squared error."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array

NORMAL_95 = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations of its mean


def wilson(hits: int, count: int) -> tuple[float, float, float]:
    """The share hits/count and its 95 % interval.  Wilson (1927)

    >>> [round(end, 4) for end in wilson(3, 10)]
    [0.3, 0.1078, 0.6032]
    """
    z, share = NORMAL_95, hits / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return share, max(0.0, centre - half), min(1.0, centre + half)


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
