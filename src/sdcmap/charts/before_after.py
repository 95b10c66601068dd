"""The risk of a file before and after masking, measure by measure, beside what may be tolerated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdcmap.charts.style import COLORS, GRAY, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec

FLOOR = 0.01  # of a limit: what lies below is drawn there
BEFORE, AFTER, LINE = COLORS[6], COLORS[0], COLORS[1]
LIMIT: list[Row] = [{"limit": 1.0}]


@dataclass(frozen=True)
class Fall:
    """One risk measure: its value of the original and of the release, each as a multiple of its limit."""

    name: str
    before: float
    after: float

    @property
    def ends(self) -> dict[str, float]:
        return {"before": self.before, "after": self.after}


def draw_before_after(falls: Sequence[Fall], *, title: str = "Risk before and after masking") -> Chart:
    """Each measure as a line from the original (gray) to the release (blue), on a logarithmic axis of multiples of its
    limit; the dashed line is the limit. Values under a hundredth of the limit are drawn at its left end,
    infinite ones at its right."""
    known = [value for fall in falls for value in fall.ends.values() if math.isfinite(value)]
    top = 1.3 * max([1.5, *known])
    rows: list[Row] = [
        {"name": fall.name, **{field: min(max(value, FLOOR), top) for field, value in fall.ends.items()},
         **{f"true {field}": f"{value:.3g}" for field, value in fall.ends.items()}}
        for fall in falls
    ]  # fmt: skip
    axis = {"title": "times its limit (logarithmic)", "format": "~g", "tickCount": 5}
    x = {"scale": {"type": "log", "domain": [FLOOR, top], "nice": False}, "axis": axis}
    names = {"field": "name", "type": "nominal", "sort": None, "title": None,
             "axis": {"labelLimit": 360, "ticks": False, "domain": False, "labelPadding": 8}}  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "rule", "color": GRAY, "strokeWidth": 1.5},
         "encoding": {"y": names, "x": number("before", **x), "x2": {"field": "after"}}},
    ]  # fmt: skip
    for field, color, shape in (("before", BEFORE, "circle"), ("after", AFTER, "diamond")):
        tips = [{"field": "name", "title": "measure"}, {"field": f"true {field}", "title": f"{field}, times its limit"}]
        mark = {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": color, "shape": shape}
        layers.append({"mark": mark, "encoding": {"y": names, "x": number(field, **x), "tooltip": tips}})
    layers.append(layer(LIMIT, {"type": "rule", "color": LINE, "strokeDash": [6, 4]}, x=number("limit", **x)))
    spec = page(
        title, head={"frame": "group", "offset": 24}, data={"values": rows}, width=420, height={"step": 30},
        layer=[*layers, *_words(rows[:1], x, names)], padding={"left": 44, "right": 28, "top": 12, "bottom": 12},
    )  # fmt: skip
    return Chart(spec, title)


def _words(first: list[Row], x: Spec, names: Spec) -> Iterator[Spec]:
    """What the marks mean, written beside those of the first measure and at the limit."""
    if not first:
        return
    look = {"type": "text", "fontSize": 10}
    if abs(first[0]["before"] / first[0]["after"] - 1) >= 0.5:  # apart: both have room for their words
        mark = {**look, "dy": -11, "color": INK, "align": "left", "dx": -22}
        yield layer(first, mark, y=names, x=number("before", **x), text={"value": "original"})
    mark = {**look, "dy": -11, "color": AFTER, "align": "right", "dx": 4}
    yield layer(first, mark, y=names, x=number("after", **x), text={"value": "this release"})
    mark = {**look, "dy": -8, "color": LINE, "baseline": "bottom"}
    yield layer(LIMIT, mark, x=number("limit", **x), y={"value": 0}, text={"value": "limit"})
