"""Positions in a sorted sample."""

from __future__ import annotations

import math


def rank_of(target: str | float, n: int) -> int:
    """The 0-based rank that a target names among n values: "minimum", "maximum", or the share p as rank ceil(n p) - 1.

    >>> rank_of(0.99, 200), rank_of("maximum", 200)
    (197, 199)
    """
    if isinstance(target, str):
        return 0 if target == "minimum" else n - 1
    return max(1, math.ceil(n * target - 1e-9)) - 1  # n p may miss a whole number by rounding
