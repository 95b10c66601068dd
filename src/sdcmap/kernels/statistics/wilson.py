"""Intervals of shares."""

from __future__ import annotations

import math

NORMAL = 1.959963984540054  # the quantile of .975


def wilson(successes: float, trials: int, z: float = NORMAL) -> tuple[float, float]:
    """The ends of the interval of a share.  Wilson (1927)

    >>> low, high = wilson(850, 1000)
    >>> round((low + high) / 2, 3), round((high - low) / 2, 3)
    (0.849, 0.022)
    """
    share, spread = successes / trials, z**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / trials / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)
