"""Curves on an R-U map: one line a knowledge state or a masking, as the noise grows."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sdcmap.charts.style import COLOURS, CONFIG, INK, SCHEMA, SHAPES
from sdcmap.core.chart import Chart, Spec

LIMIT = "#b3261e"


def draw_curves(
    rows: pl.DataFrame, *, x: str, y: str, threshold: float | None = None, title: str = "", width: int = 520,
    height: int = 360, log: bool = True,
) -> Chart:  # fmt: skip
    """A line through the points of each `series` in the order of the rows; y is logarithmic unless `log` is False.

    rows : columns series, x, y, others for the tooltip, and `se`, the standard error of y, where it has one (drawn as
        y +- 1.96 se); infinite and missing values are left out. x, y : axis titles.
    threshold : the largest tolerable risk, drawn as a dashed line with its value.
    """
    shown = rows.filter(pl.col("x").is_finite() & pl.col("y").is_finite() & (pl.col("y") > 0 if log else True))
    series = rows["series"].unique(maintain_order=True).to_list()
    tooltip = [
        {"field": name, "type": "nominal" if name in ("series", "tooltip") else "quantitative"} for name in rows.columns
    ]
    encoding: Spec = {
        "x": {"field": "x", "type": "quantitative", "title": x, "scale": {"zero": False, "nice": True}},
        "y": {"field": "y", "type": "quantitative", "title": y, "scale": {"type": "log"} if log else {"zero": True},
              "axis": {"format": "~g" if max(shown["y"].to_list(), default=1.0) > 1e-3 else ".0e", "tickCount": 6}},
        "color": _by(series, COLOURS, "range"),
        "shape": _by(series, SHAPES, "range"),
        "order": {"field": "order", "type": "quantitative"},
    }  # fmt: skip
    points = {**encoding, "tooltip": tooltip}
    points.pop("order")
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": {k: v for k, v in encoding.items() if k != "shape"}},
        {"mark": {"type": "point", "filled": True, "size": 32, "opacity": 1}, "encoding": points},
    ]
    if "se" in rows.columns:
        layers.insert(0, _errors(encoding))
    if threshold is not None:
        layers += _limit(threshold)
    data = shown.with_row_index("order").to_dicts()
    spec = {
        "$schema": SCHEMA, "config": CONFIG, "width": width, "height": height,
        "data": {"values": data}, "layer": layers,
    }  # fmt: skip
    if title:
        spec["title"] = {"text": title, "anchor": "start", "fontSize": 12, "color": INK}
    return Chart(spec, title or "sdcmap")


def _errors(encoding: Spec) -> Spec:
    signs = (("-", "low"), ("+", "high"))  # a log axis ends somewhere, so the lower end is cut at y / 10
    ends = [{"calculate": f"max(datum.y {sign} 1.96 * datum.se, datum.y / 10)", "as": name} for sign, name in signs]
    place = {
        "x": encoding["x"],
        "y": {**encoding["y"], "field": "low"},
        "y2": {"field": "high"},
        "color": encoding["color"],
    }
    return {"transform": ends, "mark": {"type": "rule", "opacity": 0.6}, "encoding": place}


def _by(series: Sequence[str], values: Sequence[str], kind: str) -> Spec:
    used = [values[i % len(values)] for i in range(len(series))]
    scale = {"domain": list(series), kind: used}
    legend = {"title": None, "labelLimit": 320, "symbolOpacity": 1}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend, "sort": list(series)}


def _limit(threshold: float) -> list[Spec]:
    place = {"y": {"datum": threshold, "type": "quantitative"}}
    once: Spec = {"values": [{}]}
    return [
        {"data": once, "mark": {"type": "rule", "color": LIMIT, "strokeDash": [6, 4]}, "encoding": place},
        {
            "data": once,
            "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "color": LIMIT,
                     "text": f"limit: risk ≤ {threshold:g}"},
            "encoding": {**place, "x": {"value": 0}},
        },
    ]  # fmt: skip
