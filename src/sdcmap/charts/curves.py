"""Curves on an R-U map: one line for each state of knowledge or masking, as the noise grows."""

from __future__ import annotations

import polars as pl

from sdcmap.charts.style import COLORS, CONFIG, INK, SCHEMA, SHAPES, by_group, layer, number
from sdcmap.core.chart import Chart, Spec

LIMIT = "#b3261e"


def draw_curves(
    rows: pl.DataFrame, *, x: str, y: str, threshold: float | None = None, title: str = "", width: int = 520,
    height: int = 360, log: bool = True,
) -> Chart:  # fmt: skip
    """Draw a line through the points of each `series` in the order of the rows; y is logarithmic unless `log` is False.

    rows : columns series, x, y, others for the tooltip, and `se`, the standard error of y, where it has one (drawn as
        y +- 1.96 se); infinite and missing values are left out. x, y : axis titles.
    threshold : the largest acceptable risk, drawn as a dashed line with its value.
    """
    shown = rows.filter(pl.col("x").is_finite() & pl.col("y").is_finite() & (pl.col("y") > 0 if log else True))
    series = rows["series"].unique(maintain_order=True).to_list()
    texts = ("series", "tooltip")
    tips = [{"field": name, "type": "nominal" if name in texts else "quantitative"} for name in rows.columns]
    form = "~g" if max(shown["y"].to_list(), default=1.0) > 1e-3 else ".0e"
    up = {"title": y, "scale": {"type": "log"} if log else {"zero": True}, "axis": {"format": form, "tickCount": 6}}
    position = {"x": number("x", title=x, scale={"zero": False, "nice": True}), "y": number("y", **up)}
    position["color"] = by_group("series", series, COLORS)
    shape = by_group("series", series, SHAPES)
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": {**position, "order": number("order")}},
        {"mark": {"type": "point", "filled": True, "size": 32, "opacity": 1},
         "encoding": {**position, "shape": shape, "tooltip": tips}},
    ]  # fmt: skip
    if "se" in rows.columns:  # a log axis has no 0, so the lower end is cut at y / 10
        ends = [
            {"calculate": f"max(datum.y {sign} 1.96 * datum.se, datum.y / 10)", "as": name}
            for sign, name in (("-", "low"), ("+", "high"))
        ]
        error = {**position, "y": number("low", **up), "y2": {"field": "high"}}
        layers.insert(0, {"transform": ends, "mark": {"type": "rule", "opacity": 0.6}, "encoding": error})
    if threshold is not None:
        at = {"datum": threshold, "type": "quantitative"}
        words = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "color": LIMIT}
        layers.append(layer([{}], {"type": "rule", "color": LIMIT, "strokeDash": [6, 4]}, y=at))
        layers.append(layer([{}], {**words, "text": f"limit: risk ≤ {threshold:g}"}, y=at, x={"value": 0}))
    data = {"values": shown.with_row_index("order").to_dicts()}
    spec = {"$schema": SCHEMA, "config": CONFIG, "width": width, "height": height, "data": data, "layer": layers}
    if title:
        spec["title"] = {"text": title, "anchor": "start", "fontSize": 12, "color": INK}
    return Chart(spec, title or "sdcmap")
