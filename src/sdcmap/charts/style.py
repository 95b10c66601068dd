"""The style of all charts: colors that color-blind readers can distinguish, shapes to match, plain axes."""

from __future__ import annotations

from collections.abc import Sequence

from sdcmap.core.chart import Row, Spec

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK, GRAY = "#222222", "#6b6b6b"
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")  # Okabe and Ito, without yellow
SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
)  # 7 colors and 5 shapes: no pair repeats before 35 groups

AXIS: Spec = {
    "grid": False, "domainColor": GRAY, "tickColor": GRAY, "tickSize": 4, "labelColor": INK, "labelFontSize": 10,
    "titleColor": INK, "titleFontSize": 11, "titleFontWeight": "normal", "titlePadding": 10, "titleLineHeight": 14,
}  # fmt: skip
CONFIG: Spec = {
    "font": FONT, "aria": False, "view": {"stroke": None}, "axis": AXIS, "title": {"color": INK, "font": FONT},
}  # fmt: skip
FROM_TO: Spec = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}  # the far end of a line or box


def page(title: str = "", *, head: Spec | None = None, **picture: object) -> Spec:
    """Return the spec of a picture on white; a title, if any, stands above it, styled by `head`."""
    title_above = {"text": title, "anchor": "start", "fontSize": 13, "offset": 12, **(head or {})}
    above = {"title": title_above} if title else {}
    return {"$schema": SCHEMA, "background": "white", "padding": 12, "config": CONFIG, **above, **picture}


def layer(rows: Sequence[Row], mark: Spec | str, **encoding: object) -> Spec:
    """Return a layer that draws a mark for each row; channels as in Vega-Lite."""
    return {"data": {"values": rows}, "mark": mark, **({"encoding": encoding} if encoding else {})}


def number(field: str, **look: object) -> Spec:
    """Return a channel or tooltip of a numeric field."""
    return {"field": field, "type": "quantitative", **look}


def by_group(field: str, groups: Sequence[str], values: Sequence[str], **legend: object) -> Spec:
    """Return a channel of colors or shapes by group, with its legend; values repeat if there are more groups."""
    scale = {"domain": list(groups), "range": [values[index % len(values)] for index in range(len(groups))]}
    look = {"title": None, "labelLimit": 320, "symbolOpacity": 1, **legend}
    return {"field": field, "type": "nominal", "sort": list(groups), "legend": look, "scale": scale}


def group_styles(groups: Sequence[str]) -> dict[str, Spec]:
    """Return the color and the shape of each group."""
    numbered = enumerate(groups)
    return {name: {"color": COLORS[i % len(COLORS)], "shape": SHAPES[i % len(SHAPES)]} for i, name in numbered}
