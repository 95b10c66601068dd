"""Axes of the planes of global risk and utility: all values are at most 0, where the target is known exactly.

An axis is chosen so that candidates can be told apart. It is linear and shows the candidates and the limit; 0 and the prior
only if they do not squeeze the candidates. If values differ by more than a factor of 20, it is logarithmic in minus the
value, and ends at "0".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sdcmap.charts.axis import Axis
from sdcmap.charts.style import number
from sdcmap.core.chart import Spec

PADDING_BELOW, PADDING_ABOVE = 0.16, 0.09  # of the range, so that letters in the corners do not cover points
MAX_SQUEEZE = 4.0  # times the range of the candidates: how far 0 and the prior may widen a linear axis
MAX_SQUEEZE_WITH_LIMIT = 8.0  # the same with a limit, whose four regions should be seen
LOG_FACTOR = 20.0  # between the largest value and the smallest (or the limit): above, the axis is logarithmic
MAX_DECADES = 4.0  # of a logarithmic axis; smaller values are drawn at "0"
SPLIT_BELOW_DECADES = 2.0  # shorter logarithmic axes also have ticks at 2 and 5


@dataclass(frozen=True)
class PlaneAxis:
    """An axis from its lowest value to 0 or near it; `floor` above 0: logarithmic, and values above -floor count as 0."""

    title: str
    better: str
    ends: tuple[float, float]  # in coordinates, with padding
    floor: float = 0.0

    def coordinate(self, value: float) -> float:
        """Return where a value is drawn, or the end beyond which it lies."""
        return min(max(self._place(value), self.ends[0]), self.ends[1])

    def is_beyond(self, value: float) -> bool:
        """Return whether a value lies outside the axis and is drawn at its end."""
        return not self.ends[0] <= self._place(value) <= self.ends[1]

    def _place(self, value: float) -> float:
        return _log_place(value, self.floor) if self.floor else value

    @property
    def axis(self) -> Axis:
        """The axis in coordinates, for positions of labels."""
        return Axis(self.title, self.better, *self.ends)

    def channel(self, field: str, unit: str) -> Spec:
        """Return the channel of a coordinate, with ticks that show values."""
        notes = ", ".join([unit] * bool(unit) + ["log scale"] * bool(self.floor))
        title = [f"{self.title} ({notes})" if notes else self.title, self.better]
        domain = {"domain": list(self.ends), "nice": False, "zero": False}
        if not self.floor:
            ticks: Spec = {"title": title, "tickCount": 5, "labelExpr": "datum.value > 0 ? '' : datum.label"}
            return number(field, axis=ticks, scale=domain)
        end = -math.log10(self.floor)
        shown = f"abs(datum.value - {end:.9g}) < 1e-6 ? '0' : '\\u2212' + format(pow(10, -datum.value), '.2~g')"
        return number(
            field, axis={"title": title, "values": [*self._log_ticks(), end], "labelExpr": shown}, scale=domain
        )

    def _log_ticks(self) -> list[float]:
        """Return the coordinates of round values, largest magnitude first."""
        low, high = self.ends[0], -math.log10(self.floor)
        steps = (1, 2, 5) if high - low < SPLIT_BELOW_DECADES else (1,)
        places = [-math.log10(step) - power for power in range(-12, 13) for step in steps]
        return sorted(place for place in places if low <= place < high - 0.15)


def _log_place(value: float, floor: float) -> float:
    return -math.log10(max(-value, floor))


def plane_axis(
    title: str, better: str, points: Iterable[float], guides: Sequence[float] = (), limit: float | None = None
) -> PlaneAxis:
    """Return the axis of some candidates.

    guides : the prior, which is included if it does not squeeze the candidates. limit : is always on the axis.

    >>> plane_axis("", "", [-0.0031, -0.0033], guides=[-1.0]).ends[1] < -0.003
    True
    >>> plane_axis("", "", [-0.003, -0.9]).floor > 0
    True
    """
    shown = [value for value in points if math.isfinite(value)] + ([] if limit is None else [limit])
    sizes = sorted(-value for value in shown if value < 0)
    if not sizes:
        return PlaneAxis(title, better, (-1.0 - PADDING_BELOW, PADDING_ABOVE))
    smallest = -limit if limit else sizes[0]
    if sizes[-1] > LOG_FACTOR * smallest:
        floor = max(sizes[0], sizes[-1] / 10**MAX_DECADES)
        low = _log_place(min([-sizes[-1], *(guide for guide in guides if -guide <= 3 * sizes[-1])]), floor)
        high = _log_place(0.0, floor) + 0.3  # 0 has a place of its own, beyond the smallest value
        span = high - low
        return PlaneAxis(title, better, (low - PADDING_BELOW * span, high + PADDING_ABOVE * span), 10**-high)
    low, high = min(shown), max(shown)
    most = (MAX_SQUEEZE if limit is None else MAX_SQUEEZE_WITH_LIMIT) * (high - low)
    for guide in sorted([0.0, *guides], key=lambda value: max(low - value, value - high)):
        if most == 0 or max(high, guide) - min(low, guide) <= most:
            low, high = min(low, guide), max(high, guide)
    span = high - low or abs(low) or 1.0
    return PlaneAxis(title, better, (low - PADDING_BELOW * span, high + PADDING_ABOVE * span))
