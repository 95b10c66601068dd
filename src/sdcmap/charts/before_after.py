"""The risk of a file before and after masking, measure by measure, beside what may be tolerated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sdcmap.charts.style import COLOURS, CONFIG, GREY, INK, SCHEMA
from sdcmap.core.chart import Chart, Row, Spec

FLOOR = 0.01  # of a limit: what lies below is drawn there
BEFORE, AFTER, LINE = COLOURS[6], COLOURS[0], COLOURS[1]


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
    """Each measure as a line from the original (grey) to the release (blue), on a logarithmic axis of multiples of its
    limit; the dashed line is the limit. Values under a hundredth of the limit are drawn at its left end,
    infinite ones at its right."""
    known = [value for fall in falls for value in (fall.before, fall.after) if math.isfinite(value)]
    top = 1.3 * max([1.5, *known])
    rows: list[Row] = [
        {"name": fall.name, **{field: min(max(value, FLOOR), top) for field, value in fall.ends.items()},
         **{f"true {field}": f"{value:.3g}" for field, value in fall.ends.items()}}
        for fall in falls
    ]  # fmt: skip
    scale = {"type": "log", "domain": [FLOOR, top], "nice": False}
    axis = {"title": "times its limit (logarithmic)", "format": "~g", "tickCount": 5}
    x = {"type": "quantitative", "scale": scale, "axis": axis}
    names = {"field": "name", "type": "nominal", "sort": None, "title": None,
             "axis": {"labelLimit": 360, "ticks": False, "domain": False, "labelPadding": 8}}  # fmt: skip
    told = {field: [{"field": "name", "title": "measure"}, {"field": f"true {field}", "title": f"{field}, times its limit"}]
            for field in ("before", "after")}  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "rule", "color": GREY, "strokeWidth": 1.5},
         "encoding": {"y": names, "x": {**x, "field": "before"}, "x2": {"field": "after"}}},
        *(
            {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colour, "shape": shape},
             "encoding": {"y": names, "x": {**x, "field": field},
                          "tooltip": told[field]}}
            for field, colour, shape in (("before", BEFORE, "circle"), ("after", AFTER, "diamond"))
        ),
        {"data": {"values": [{"limit": 1.0}]}, "mark": {"type": "rule", "color": LINE, "strokeDash": [6, 4]},
         "encoding": {"x": {**x, "field": "limit"}}},
        *_words(rows[0] if rows else None, x, names),
    ]  # fmt: skip
    spec: Spec = {"$schema": SCHEMA, "data": {"values": rows}, "width": 420, "height": {"step": 30}, "layer": layers,
                  "background": "white", "padding": {"left": 44, "right": 28, "top": 12, "bottom": 12}, "config": CONFIG,
                  "title": {"text": title, "anchor": "start", "frame": "group", "fontSize": 13, "offset": 24}}  # fmt: skip
    return Chart(spec, title)


def _words(first: Row | None, x: Spec, names: Spec) -> list[Spec]:
    """What the marks mean, written beside those of the first measure and at the limit."""
    if first is None:
        return []
    told = [("before", "original", BEFORE), ("after", "this release", AFTER)]
    same = abs(first["before"] / first["after"] - 1) < 0.5
    layers: list[Spec] = []
    for field, words, colour in told[1:] if same else told:
        side = {"align": "right", "dx": 4} if field == "after" else {"align": "left", "dx": -22}
        mark = {"type": "text", "dy": -11, "fontSize": 10, "color": INK if field == "before" else colour, **side}
        place = {"y": names, "x": {**x, "field": field}, "text": {"value": words}}
        layers.append({"data": {"values": [first]}, "mark": mark, "encoding": place})
    limit = {"type": "text", "dy": -8, "fontSize": 10, "color": LINE, "baseline": "bottom"}
    at_limit = {"x": {**x, "field": "limit"}, "y": {"value": 0}, "text": {"value": "limit"}}
    return [*layers, {"data": {"values": [{"limit": 1.0}]}, "mark": limit, "encoding": at_limit}]
