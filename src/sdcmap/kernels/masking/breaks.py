"""Breaks of a number line into intervals, and which interval a number falls in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sdcmap.kernels.arrays import Array

ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)  # times a power of ten: widths
WHOLE = 2.0**53  # beyond this a float64 no longer tells neighboring whole numbers apart


def equal_width(x: Array, bins: int) -> Array:
    """Breaks at all multiples of a round width between the smallest and the largest value: at most one more than bins - 1.

    Breaks at (max - min) i / bins would tell both ends to the last digit, which are somebody's values.

    >>> equal_width(np.array([3.0, 88.0]), 4)
    array([25., 50., 75.])
    """
    low, high = float(x.min()), float(x.max())
    width = round_up((high - low) / bins)
    if width == 0:
        return np.array([low])
    breaks = width * np.arange(math.floor(low / width) + 1, math.ceil(high / width))
    return breaks if len(breaks) else np.array([width * round((low + high) / 2 / width)])


def round_up(width: float) -> float:
    """The next of a few round numbers.

    >>> round_up(21.25), round_up(0.31)
    (25.0, 0.4)
    """
    if width <= 0:
        return 0.0
    k = math.floor(math.log10(width))
    return next(float(f"{times}e{k}") for times in ROUND if float(f"{times}e{k}") >= width * (1 - 1e-9))


def log_width(x: Array, bins: int) -> Array:
    """Breaks at equal ratios, to one digit; all values are positive. Where ratios are small, there are fewer."""
    ends = np.exp(np.linspace(np.log(x.min()), np.log(x.max()), bins + 1)[1:-1])
    return np.unique([float(f"{end:.0e}") for end in ends])


def quantiles(x: Array, bins: int) -> Array:
    """The breaks with equally many values between them; where many values are equal, there are fewer.  R's type 7

    Each is rounded to a power of ten that is at most a fifth of the distance to those beside it: a quantile may be a value
    that one person has.
    """
    ends = np.unique(np.quantile(x, np.arange(1, bins) / bins))
    beside = np.diff(np.concatenate([[x.min()], ends, [x.max()]]))
    nearest = np.minimum(*(np.where(gaps > 0, gaps, np.inf) for gaps in (beside[:-1], beside[1:])))
    return np.unique([_rounded_to_a_fifth(end, gap) for end, gap in zip(ends.tolist(), nearest.tolist(), strict=True)])


def _rounded_to_a_fifth(end: float, gap: float) -> float:
    return round(end, -math.floor(math.log10(gap / 5))) if 0 < gap < math.inf else end


def whole_steps(x: Array, width: float, start: float) -> Array:
    """Breaks at start + i width that enclose all values."""
    low, high = np.floor((x.min() - start) / width) - 1, np.ceil((x.max() - start) / width) + 1
    return start + width * np.arange(low, high + 1)


def short(breaks: Array) -> Array:
    """The breaks as they are written, to six digits, so that a label says exactly where its interval ends."""
    return np.unique([float(f"{end:.6g}") for end in breaks])


def interval_of(x: Array, breaks: Array, closed: str) -> Array:
    """The interval of each value, 0 below the first break, len(breaks) above the last; `closed` is the closed side."""
    return np.searchsorted(breaks, x, side="left" if closed == "right" else "right")


def interval_labels(breaks: Sequence[float], closed: str) -> list[str]:
    """Words for each interval.

    >>> interval_labels([10, 20], "right")
    ['<= 10', '(10, 20]', '> 20']
    >>> interval_labels([10, 20], "left")
    ['< 10', '[10, 20)', '>= 20']
    """
    ends = [f"{end:.15g}" for end in breaks]
    first, inner, last = ("<= {}", "({}, {}]", "> {}") if closed == "right" else ("< {}", "[{}, {})", ">= {}")
    return [first.format(ends[0]), *(inner.format(*pair) for pair in pairwise(ends)), last.format(ends[-1])]


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
