"""The range of an axis, and what happens to values beyond it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

BANDS_MAY_STRETCH = 3.0
GUESTS_MAY_STRETCH = 1.5
PADDING = 0.045
INSET = 0.012  # how far from the edge a mark stands that lies beyond it


@dataclass(frozen=True)
class Axis:
    """What an axis shows, which way is better, and its range in data units."""

    title: str
    better: str
    low: float
    high: float

    def drawn(self, value: float) -> tuple[float, str]:
        """Where a value is drawn, and the side it lies beyond: "low", "high" or ""."""
        inset = INSET * (self.high - self.low)
        if value > self.high:
            return self.high - inset, "high"
        if value < self.low:
            return self.low + inset, "low"
        return value, ""

    def clipped(self, value: float) -> float:
        """The value, or the end of the axis it lies beyond."""
        return min(max(value, self.low), self.high)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        return self.low + share * (self.high - self.low)

    def lines(self, characters: int) -> list[str]:
        """The title in lines of at most so many characters."""
        whole = f"{self.title}, {self.better}"
        return [whole] if len(whole) <= characters else [*textwrap.wrap(self.title, characters), self.better]

    @property
    def exponents(self) -> bool:
        """Whether numbers are written as 2e-7."""
        largest = max(abs(self.low), abs(self.high))
        return largest < 1e-3 or largest >= 1e6


def axis(
    title: str, better: str, points: Iterable[float], bands: Iterable[float] = (), guests: Iterable[float] = ()
) -> Axis:
    """An axis that shows every finite point.

    Ends of bands are taken in, nearest first, while the range grows to at most 3 times that of the points; anchors and
    limits (`guests`) while it grows to at most 1.5 times what there is by then. What is left out is drawn at the edge
    with an arrow and its value in words, so that a far anchor never squeezes the points.

    >>> axis("", "", [1.0, 2.0], guests=[2.2, 100.0]).high < 3
    True
    """
    low, high = _grown(*_grown(*_ends(points), bands, BANDS_MAY_STRETCH), guests, GUESTS_MAY_STRETCH)
    if math.isinf(low):
        low, high = 0.0, 1.0
    if low == high:
        half = abs(low) / 10 or 0.5
        low, high = low - half, high + half
    padding = PADDING * (high - low)
    return Axis(title, better, low - padding, high + padding)


def _ends(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return min(finite, default=math.inf), max(finite, default=-math.inf)


def _grown(low: float, high: float, values: Iterable[float], stretch: float) -> tuple[float, float]:
    """The range with the values taken in, nearest first, while it stays within `stretch` times its width."""
    finite = [value for value in values if math.isfinite(value)]
    if high <= low:  # no point, or one: nothing is there to be squeezed
        return _ends([*finite, low])
    most = stretch * (high - low)
    for value in sorted(finite, key=lambda value: max(low - value, value - high)):
        if max(high, value) - min(low, value) <= most:
            low, high = min(low, value), max(high, value)
    return low, high
