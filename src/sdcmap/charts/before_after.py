"""The risk of a file before and after masking, measure by measure, compared with its limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdcmap.charts.style import COLORS, GRAY, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec

MIN_SHARE_DRAWN = 0.01  # of a limit; smaller values are drawn here
BEFORE, AFTER, LIMIT_COLOR = COLORS[6], COLORS[0], COLORS[1]
LIMIT: list[Row] = [{"limit": 1.0}]


@dataclass(frozen=True)
class RiskChange:
    """One risk measure of the original and of the release, each as a multiple of its limit.

    interval : of a value of the release that is pooled over draws.
    """

    name: str
    before: float
    after: float
    interval: tuple[float, float] | None = None

    @property
    def ends(self) -> dict[str, float]:
        """Both values, by name."""
        return {"before": self.before, "after": self.after}


def draw_before_after(changes: Sequence[RiskChange], *, title: str = "Risk before and after masking") -> Chart:
    """Draw each measure as a line from the original (gray) to the release (blue).

    A bar is the confidence interval of a pooled value of the release. The axis is logarithmic and shows multiples of the
    limit, which is the dashed line. Values below a hundredth of the
    limit are drawn at the left end, infinite ones at the right end.
    """
    ends = [value for change in changes for value in (*change.ends.values(), *(change.interval or ()))]
    top = 1.3 * max([1.5, *filter(math.isfinite, ends)])
    rows: list[Row] = [
        {"name": change.name, **{field: min(max(value, MIN_SHARE_DRAWN), top) for field, value in change.ends.items()},
         **{f"true {field}": f"{value:.3g}" for field, value in change.ends.items()}}
        for change in changes
    ]  # fmt: skip
    axis = {"title": "times its limit (logarithmic)", "format": "~g", "tickCount": 5}
    x = {"scale": {"type": "log", "domain": [MIN_SHARE_DRAWN, top], "nice": False}, "axis": axis}
    names = {"field": "name", "type": "nominal", "sort": None, "title": None,
             "axis": {"labelLimit": 360, "ticks": False, "domain": False, "labelPadding": 8}}  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "rule", "color": GRAY, "strokeWidth": 1.5},
         "encoding": {"y": names, "x": number("before", **x), "x2": {"field": "after"}}},
    ]  # fmt: skip
    intervals: list[Row] = [
        {"name": change.name, "low": max(change.interval[0], MIN_SHARE_DRAWN), "high": min(change.interval[1], top)}
        for change in changes
        if change.interval is not None
    ]
    if intervals:
        bar = {"type": "rule", "color": AFTER, "strokeWidth": 5, "opacity": 0.35}
        layers.append(layer(intervals, bar, y=names, x=number("low", **x), x2={"field": "high"}))
    for field, color, shape in (("before", BEFORE, "circle"), ("after", AFTER, "diamond")):
        tips = [{"field": "name", "title": "measure"}, {"field": f"true {field}", "title": f"{field}, times its limit"}]
        mark = {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": color, "shape": shape}
        layers.append({"mark": mark, "encoding": {"y": names, "x": number(field, **x), "tooltip": tips}})
    layers.append(layer(LIMIT, {"type": "rule", "color": LIMIT_COLOR, "strokeDash": [6, 4]}, x=number("limit", **x)))
    spec = page(
        title, head={"frame": "group", "offset": 24}, data={"values": rows}, width=420, height={"step": 30},
        layer=[*layers, *_words(rows[:1], x, names)], padding={"left": 44, "right": 28, "top": 12, "bottom": 12},
    )  # fmt: skip
    return Chart(spec, title)


def _words(first: list[Row], x: Spec, names: Spec) -> Iterator[Spec]:
    """Yield labels for the marks of the first measure and for the limit."""
    if not first:
        return
    look = {"type": "text", "fontSize": 10}
    if abs(first[0]["before"] / first[0]["after"] - 1) >= 0.5:  # far enough apart for two labels
        mark = {**look, "dy": -11, "color": INK, "align": "left", "dx": -22}
        yield layer(first, mark, y=names, x=number("before", **x), text={"value": "original"})
    mark = {**look, "dy": -11, "color": AFTER, "align": "right", "dx": 4}
    yield layer(first, mark, y=names, x=number("after", **x), text={"value": "this release"})
    mark = {**look, "dy": -8, "color": LIMIT_COLOR, "baseline": "bottom"}
    yield layer(LIMIT, mark, x=number("limit", **x), y={"value": 0}, text={"value": "limit"})
