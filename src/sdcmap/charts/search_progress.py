"""How a search came along: the share of the area against evaluations, beside random search."""

from __future__ import annotations

import polars as pl

from sdcmap.charts.style import COLOURS, CONFIG, GREY, INK, SCHEMA
from sdcmap.core.chart import Chart, Spec

TITLE = "What the search gained"
OURS, RANDOM = "this search", "random search, replayed from stored scores"


def draw_progress(own: pl.DataFrame, replayed: pl.DataFrame, *, title: str = TITLE) -> Chart:
    """own : evaluations, area. replayed : evaluations, area, low, high; none where there is too little to replay."""
    layers: list[Spec] = []
    if len(replayed):
        rows = replayed.with_columns(series=pl.lit(RANDOM)).to_dicts()
        band = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
        layers.append(
            {"data": {"values": rows}, "mark": {"type": "area", "color": GREY, "opacity": 0.18}, "encoding": band}
        )
        layers.append(_line(rows, {"strokeDash": [5, 3]}))
    layers.append(_line(own.with_columns(series=pl.lit(OURS)).to_dicts(), {}))
    x = {"field": "evaluations", "type": "quantitative", "title": "Full evaluations of new methods"}
    head = {"text": title, "anchor": "start", "fontSize": 13, "color": INK}
    spec = {"$schema": SCHEMA, "config": CONFIG, "background": "white", "padding": 12, "title": head,
            "width": 520, "height": 300, "layer": layers, "encoding": {"x": x}}  # fmt: skip
    return Chart(spec, title)


def _line(rows: list[dict[str, object]], look: Spec) -> Spec:
    series = {"domain": [OURS, RANDOM], "range": [COLOURS[0], GREY]}
    title = "Share of the area (log risk, loss)"
    encoding = {
        "y": {"field": "area", "type": "quantitative", "title": title, "scale": {"zero": False}},
        "color": {"field": "series", "type": "nominal", "scale": series,
                  "legend": {"title": None, "orient": "bottom", "labelLimit": 400}},
        "tooltip": [{"field": "evaluations"}, {"field": "area", "type": "quantitative", "format": ".4f"}],
    }  # fmt: skip
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 22, "filled": True}, **look}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}
