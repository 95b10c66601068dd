"""Breaks of a number line into intervals, and which interval a number falls in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sdcmap.kernels.arrays import Array

WHOLE = 2.0**53  # beyond this a float64 no longer tells neighbouring whole numbers apart


def equal_width(x: Array, bins: int) -> Array:
    """The bins - 1 breaks between the smallest and the largest value at equal distances."""
    breaks: Array = np.linspace(x.min(), x.max(), bins + 1)[1:-1]
    return breaks


def log_width(x: Array, bins: int) -> Array:
    """The same at equal ratios; all values are positive."""
    breaks: Array = np.exp(equal_width(np.log(x), bins))
    return breaks


def quantiles(x: Array, bins: int) -> Array:
    """The breaks with equally many values between them; where many values are equal, there are fewer.  R's type 7"""
    return np.unique(np.quantile(x, np.arange(1, bins) / bins))


def whole_steps(x: Array, width: float, start: float) -> Array:
    """Breaks at start + i width that enclose all values."""
    low, high = np.floor((x.min() - start) / width) - 1, np.ceil((x.max() - start) / width) + 1
    breaks: Array = start + width * np.arange(low, high + 1)
    return breaks


def short(breaks: Array) -> Array:
    """The breaks as they are written, to six digits, so that a label says exactly where its interval ends."""
    return np.unique([float(f"{end:.6g}") for end in breaks])


def interval_of(x: Array, breaks: Array, closed: str) -> Array:
    """The interval of each value, 0 below the first break, len(breaks) above the last; `closed` is the closed side."""
    intervals: Array = np.searchsorted(breaks, x, side="left" if closed == "right" else "right")
    return intervals


def interval_labels(breaks: Sequence[float], closed: str) -> list[str]:
    """Words for each interval.

    >>> interval_labels([10, 20], "right")
    ['<= 10', '(10, 20]', '> 20']
    >>> interval_labels([10, 20], "left")
    ['< 10', '[10, 20)', '>= 20']
    """
    ends = [f"{end:.15g}" for end in breaks]
    if closed == "right":
        inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
        return [f"<= {ends[0]}", *inner, f"> {ends[-1]}"]
    inner = [f"[{low}, {high})" for low, high in pairwise(ends)]
    return [f"< {ends[0]}", *inner, f">= {ends[-1]}"]


def rounded(x: Array, base: float) -> Array:
    """The nearest multiple of base; halves go up. Numbers too large to tell their multiples apart stay."""
    steps, whole = _steps(x, base)
    return np.where(whole, x, base * np.floor(steps + 0.5))


def randomly_rounded(x: Array, base: float, chance: Array) -> Array:
    """One of the two nearest multiples of base, the nearer the likelier, so that the mean is x.  Nargundkar, Saveland 1972

    `chance`: a uniform number in [0, 1) each.
    """
    steps, whole = _steps(x, base)
    below = np.floor(steps)
    return np.where(whole, x, base * (below + (chance < steps - below)))


def _steps(x: Array, base: float) -> tuple[Array, Array]:
    """x/base, and where that is beyond the whole numbers a float64 can tell apart."""
    whole = np.abs(x) >= WHOLE * base
    return np.divide(x, base, out=np.zeros(len(x)), where=~whole), whole
