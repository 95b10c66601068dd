"""The range of an axis, and where values beyond it are drawn."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

MAX_BAND_STRETCH = 3.0  # times the range of the points: how far ends of bands may widen the axis
MAX_GUIDE_STRETCH = 1.5  # times the range by then: how far anchors and limits may widen it
PADDING = 0.045  # of the range, on both sides
MAX_LINEAR_RATIO = 20.0  # of the largest to the smallest risk; beyond it the axis is logarithmic
MAX_ERROR_RATIO = 20.0  # of the largest to the smallest typical error that is labeled on a linear axis
MIN_TICK_GAP = 0.07  # of the axis, between labeled ticks
MAX_STEPPED_RATIO = 3.0  # of the ends of labels in equal steps
INSET = 0.012  # of the range, from the edge to a mark whose value lies beyond it


@dataclass(frozen=True)
class Axis:
    """An axis: its title, which direction is better, and its range in data units.

    is_log : the axis is logarithmic. ticks : the values that are labeled, by `label`, a Vega expression of datum.value;
    none: Vega chooses them and writes the values themselves.
    """

    title: str
    better: str
    low: float
    high: float
    is_log: bool = False
    ticks: tuple[float, ...] = ()
    label: str = ""

    def locate(self, value: float) -> tuple[float, str]:
        """Return where a value is drawn, and the side beyond which it lies: "low", "high" or ""."""
        if value > self.high:
            return self.at(1 - INSET), "high"
        if value < self.low:
            return self.at(INSET), "low"
        return value, ""

    def clip(self, value: float) -> float:
        """Return the value, or the end of the axis beyond which it lies."""
        return min(max(value, self.low), self.high)

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """Return the value at a position from 0 to 1."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def label_errors(self) -> Axis:
        """Return the axis of a precision 1/MSE labeled by typical errors 1/sqrt(value), in the unit of the variable."""
        low = max(self.low, self.high / MAX_ERROR_RATIO**2)
        errors = [*round_numbers(1 / math.sqrt(self.high), 1 / math.sqrt(low))]
        return self._with_ticks(
            self.title, [1 / error**2 for error in errors], "format(1 / sqrt(datum.value), ',.3~r')"
        )

    def label_shares(self, whole: float) -> Axis:
        """Return the axis of a precision 1/MSE with labels relative to that of the unmasked file."""
        shares = round_numbers(max(self.low, 0.0) / whole, self.high / whole)
        title = f"{self.title}, relative to the unmasked file"
        return self._with_ticks(title, [share * whole for share in shares], f"format(datum.value / {whole!r}, '.3~%')")

    def _with_ticks(self, title: str, values: Iterable[float], label: str) -> Axis:
        """Return the axis with these ticks, without those that would stand too close to an earlier one."""
        ticks: list[float] = []
        for value in (value for value in values if self.low <= value <= self.high):
            if all(abs(self.share(value) - self.share(other)) >= MIN_TICK_GAP for other in ticks):
                ticks.append(value)
        return replace(self, title=title, ticks=tuple(sorted(ticks)), label=label)

    def lines(self, characters: int) -> list[str]:
        """Return the title in lines of at most so many characters."""
        whole = f"{self.title}, {self.better}"
        return [whole] if len(whole) <= characters else [*textwrap.wrap(self.title, characters), self.better]

    @property
    def exponents(self) -> bool:
        """Whether numbers are written as 2e-7."""
        largest = max(abs(self.low), abs(self.high))
        return largest < 1e-3 or largest >= 1e6


def spans_widely(values: Iterable[float]) -> bool:
    """Return whether finite values, all above 0, span more than a factor of 20; their axis is then logarithmic.

    >>> spans_widely([1.0, 19.0]), spans_widely([1.0, 21.0, math.inf]), spans_widely([0.0, 21.0])
    (False, True, False)
    """
    low, high = _ends(values)
    return low > 0 and high > MAX_LINEAR_RATIO * low


def axis(
    title: str, better: str, points: Iterable[float], bands: Iterable[float] = (), guides: Iterable[float] = (), *,
    is_log: bool = False,
) -> Axis:  # fmt: skip
    """Return an axis that shows every finite point.

    Ends of bands are included, nearest first, while the range grows to at most 3 times that of the points; then anchors and
    limits (`guides`), while it grows to at most 1.5 times that range. What is left out is drawn at the edge with an arrow
    and its value, so that a distant anchor never squeezes the points.

    >>> axis("", "", [1.0, 2.0], guides=[2.2, 100.0]).high < 3
    True
    """
    if is_log:
        logs = axis(title, better, *(_logs(values) for values in (points, bands, guides)))
        own = replace(logs, low=10**logs.low, high=10**logs.high, is_log=True)
        form = "~e" if own.exponents else "~g"
        return own._with_ticks(title, round_numbers(own.low, own.high), f"format(datum.value, '{form}')")
    low, high = _extend_range(*_extend_range(*_ends(points), bands, MAX_BAND_STRETCH), guides, MAX_GUIDE_STRETCH)
    if math.isinf(low):
        low, high = 0.0, 1.0
    if low == high:
        # A single value gets a range around it, so that it is drawn in the middle.
        half = abs(low) / 10 or 0.5
        low, high = low - half, high + half
    padding = PADDING * (high - low)
    return Axis(title, better, low - padding, high + padding)


def round_numbers(low: float, high: float) -> Iterator[float]:
    """Yield round numbers between two ends, those in equal steps first if the ends are close, else the roundest first.

    >>> [*round_numbers(0.42, 1.04)][:4], [*round_numbers(4800.0, 96000.0)][:5]
    ([0.5, 0.6, 0.7, 0.8], [5000.0, 10000.0, 20000.0, 50000.0, 7000.0])
    """
    if not 0 <= low < high < math.inf:
        return
    step = 10.0 ** math.floor(math.log10(high - low))
    numbers = [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]
    if low > 0 and high > MAX_STEPPED_RATIO * low:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        leads = (1, 2, 5), (3, 7), (4,), (1.5, 6, 8)
        numbers = [times * 10.0**power for group in leads for power in powers for times in group]
    elif len([number for number in numbers if low <= number <= high]) < 4:
        numbers += [number + step / 2 for number in numbers]
    yield from (float(f"{number:.12g}") for number in numbers if low <= number <= high)


def _logs(values: Iterable[float]) -> list[float]:
    """Return the decimal logarithms of the positive finite values."""
    return [math.log10(value) for value in values if 0 < value < math.inf]


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
