"""Which of n values in order a share or a name speaks of."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

FINEST = 10**12  # shares are read as fractions with denominators up to this: 0.07 of 100 is 7, not 7.000000000000001


@lru_cache(maxsize=4096)
def rank_of(share: float, n: int) -> int:
    """k = ceil(n p), the rank of the p-quantile by the inverted distribution function; at least 1.

    >>> rank_of(0.99, 200), rank_of(0.07, 100), rank_of(0.05, 157 * 156), rank_of(1e-9, 100)
    (198, 7, 1225, 1)
    """
    return max(1, math.ceil(Fraction(float(share)).limit_denominator(FINEST) * n))


def place_of(target: str | float, n: int) -> int:
    """The place, counted from 0, of "minimum", "maximum" or a share among n values in order.

    >>> place_of(0.99, 200), place_of("maximum", 200)
    (197, 199)
    """
    if isinstance(target, str):
        return 0 if target == "minimum" else n - 1
    return rank_of(target, n) - 1
