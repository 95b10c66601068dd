"""The range of an axis, and where values beyond it are drawn."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

MAX_BAND_STRETCH = 3.0  # times the range of the points: how far ends of bands may widen the axis
MAX_GUIDE_STRETCH = 1.5  # times the range by then: how far anchors and limits may widen it
PADDING = 0.045  # of the range, on both sides
INSET = 0.012  # of the range, from the edge to a mark whose value lies beyond it


@dataclass(frozen=True)
class Axis:
    """An axis: its title, which direction is better, and its range in data units."""

    title: str
    better: str
    low: float
    high: float

    def locate(self, value: float) -> tuple[float, str]:
        """Return where a value is drawn, and the side beyond which it lies: "low", "high" or ""."""
        inset = INSET * (self.high - self.low)
        if value > self.high:
            return self.high - inset, "high"
        if value < self.low:
            return self.low + inset, "low"
        return value, ""

    def clip(self, value: float) -> float:
        """Return the value, or the end of the axis beyond which it lies."""
        return min(max(value, self.low), self.high)

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """Return the value at a position from 0 to 1."""
        return self.low + share * (self.high - self.low)

    def lines(self, characters: int) -> list[str]:
        """Return the title in lines of at most so many characters."""
        whole = f"{self.title}, {self.better}"
        return [whole] if len(whole) <= characters else [*textwrap.wrap(self.title, characters), self.better]

    @property
    def exponents(self) -> bool:
        """Whether numbers are written as 2e-7."""
        largest = max(abs(self.low), abs(self.high))
        return largest < 1e-3 or largest >= 1e6


def axis(
    title: str, better: str, points: Iterable[float], bands: Iterable[float] = (), guides: Iterable[float] = ()
) -> Axis:
    """Return an axis that shows every finite point.

    Ends of bands are included, nearest first, while the range grows to at most 3 times that of the points; then anchors and
    limits (`guides`), while it grows to at most 1.5 times that range. What is left out is drawn at the edge with an arrow
    and its value, so that a distant anchor never squeezes the points.

    >>> axis("", "", [1.0, 2.0], guides=[2.2, 100.0]).high < 3
    True
    """
    low, high = _extend_range(*_extend_range(*_ends(points), bands, MAX_BAND_STRETCH), guides, MAX_GUIDE_STRETCH)
    if math.isinf(low):
        low, high = 0.0, 1.0
    if low == high:
        # A single value gets a range around it, so that it is drawn in the middle.
        half = abs(low) / 10 or 0.5
        low, high = low - half, high + half
    padding = PADDING * (high - low)
    return Axis(title, better, low - padding, high + padding)


def _ends(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return min(finite, default=math.inf), max(finite, default=-math.inf)


def _extend_range(low: float, high: float, values: Iterable[float], stretch: float) -> tuple[float, float]:
    """Return the range with the values included, nearest first, while it stays within `stretch` times its width."""
    finite = [value for value in values if math.isfinite(value)]
    if high <= low:  # at most one point: nothing can be squeezed
        return _ends([*finite, low])
    most = stretch * (high - low)
    for value in sorted(finite, key=lambda value: max(low - value, value - high)):
        if max(high, value) - min(low, value) <= most:
            low, high = min(low, value), max(high, value)
    return low, high
