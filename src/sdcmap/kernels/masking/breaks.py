"""Breaks that divide numbers into intervals, the interval of each number, and rounding to multiples of a base."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sdcmap.kernels.arrays import Array

ROUND_WIDTHS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)  # times a power of ten
LARGEST_WHOLE = 2.0**53  # beyond this, float64 cannot represent every whole number


def equal_width(x: Array, bins: int) -> Array:
    """Return breaks at the multiples of a round width between the smallest and the largest value; at most `bins` of them.

    Breaks at (max - min) i / bins would reveal the smallest and the largest value exactly, and each may be the value of one
    person.

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
    """Return the next larger round width.

    >>> round_up(21.25), round_up(0.31)
    (25.0, 0.4)
    """
    if width <= 0:
        return 0.0
    k = math.floor(math.log10(width))
    return next(float(f"{times}e{k}") for times in ROUND_WIDTHS if float(f"{times}e{k}") >= width * (1 - 1e-9))


def log_width(x: Array, bins: int) -> Array:
    """Return breaks at equal ratios, rounded to one digit; all values must be positive.

    There are fewer breaks than asked for where rounding makes some of them equal.
    """
    ends = np.exp(np.linspace(np.log(x.min()), np.log(x.max()), bins + 1)[1:-1])
    return np.unique([float(f"{end:.0e}") for end in ends])


def quantiles(x: Array, bins: int) -> Array:
    """Return breaks with equally many values between them (R's type 7); fewer where many values are equal.

    A quantile may be the value of one person. Each break is therefore rounded to a power of ten that is at most a fifth of
    the distance to the next break.
    """
    ends = np.unique(np.quantile(x, np.arange(1, bins) / bins))
    beside = np.diff(np.concatenate([[x.min()], ends, [x.max()]]))
    nearest = np.minimum(*(np.where(gaps > 0, gaps, np.inf) for gaps in (beside[:-1], beside[1:])))
    return np.unique([_round_to_fifth(end, gap) for end, gap in zip(ends.tolist(), nearest.tolist(), strict=True)])


def _round_to_fifth(end: float, gap: float) -> float:
    return round(end, -math.floor(math.log10(gap / 5))) if 0 < gap < math.inf else end


def whole_steps(x: Array, width: float, start: float) -> Array:
    """Return the breaks start + i width that enclose all values."""
    low, high = np.floor((x.min() - start) / width) - 1, np.ceil((x.max() - start) / width) + 1
    return start + width * np.arange(low, high + 1)


def round_breaks(breaks: Array) -> Array:
    """Round the breaks to six digits, as labels print them, so that a label states exactly where its interval ends."""
    return np.unique([float(f"{end:.6g}") for end in breaks])


def interval_of(x: Array, breaks: Array, closed: str) -> Array:
    """Return the interval of each value: 0 below the first break, len(breaks) above the last.

    closed : the side on which an interval includes its end, "left" or "right".
    """
    return np.searchsorted(breaks, x, side="left" if closed == "right" else "right")


def interval_labels(breaks: Sequence[float], closed: str) -> list[str]:
    """Return a label for each interval.

    >>> interval_labels([10, 20], "right")
    ['<= 10', '(10, 20]', '> 20']
    >>> interval_labels([10, 20], "left")
    ['< 10', '[10, 20)', '>= 20']
    """
    ends = [f"{end:.15g}" for end in breaks]
    first, inner, last = ("<= {}", "({}, {}]", "> {}") if closed == "right" else ("< {}", "[{}, {})", ">= {}")
    return [first.format(ends[0]), *(inner.format(*pair) for pair in pairwise(ends)), last.format(ends[-1])]


def round_to_multiple(x: Array, base: float) -> Array:
    """Round to the nearest multiple of `base`, halves up; numbers too large to have distinct multiples stay."""
    steps, too_large = _steps(x, base)
    return np.where(too_large, x, base * np.floor(steps + 0.5))


def round_at_random(x: Array, base: float, chance: Array) -> Array:
    """Round to one of the two nearest multiples of `base`, the nearer more often, so that the mean is x.

    chance : a uniform number in [0, 1) per value.  Nargundkar, Saveland (1972)
    """
    steps, too_large = _steps(x, base)
    below = np.floor(steps)
    return np.where(too_large, x, base * (below + (chance < steps - below)))


def _steps(x: Array, base: float) -> tuple[Array, Array]:
    """Return x/base, and where it is too large for float64 to represent every whole number."""
    too_large = np.abs(x) >= LARGEST_WHOLE * base
    return np.divide(x, base, out=np.zeros(len(x)), where=~too_large), too_large
