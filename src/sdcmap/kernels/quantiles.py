"""Ranks and indices of quantiles, the minimum and the maximum among n sorted values."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

# Shares are read as fractions with denominators up to this: 0.07 of 100 is 7, not 7.000000000000001.
LARGEST_DENOMINATOR = 10**12


@lru_cache(maxsize=4096)
def quantile_rank(share: float, n: int) -> int:
    """Return k = ceil(n p), the rank of the p-quantile by the inverted distribution function; at least 1.

    >>> quantile_rank(0.99, 200), quantile_rank(0.07, 100), quantile_rank(0.05, 157 * 156), quantile_rank(1e-9, 100)
    (198, 7, 1225, 1)
    """
    return max(1, math.ceil(Fraction(float(share)).limit_denominator(LARGEST_DENOMINATOR) * n))


def quantile_index(target: str | float, n: int) -> int:
    """Return the index (from 0) of "minimum", "maximum" or a quantile among n sorted values.

    >>> quantile_index(0.99, 200), quantile_index("maximum", 200)
    (197, 199)
    """
    if isinstance(target, str):
        return 0 if target == "minimum" else n - 1
    return quantile_rank(target, n) - 1
