"""The key of the map: one row for each kind of thing that is drawn, in its own style."""

from __future__ import annotations

from typing import Any

import polars as pl

from sdcmap.charts.guides import EVERYTHING, NOTHING
from sdcmap.charts.labels import CHARACTER, FONT_SIZE
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.style import GREY, INK, colour_of, shape_of

ROW, SAMPLE = 18, 26  # pixels

ANCHOR_SHAPES = {EVERYTHING: "circle", NOTHING: "square"}
STYLES: dict[str, dict[str, Any]] = {
    "frontier": {"color": INK, "strokeWidth": 1.3},
    "limit": {"color": "#B22222", "strokeWidth": 1.2, "strokeDash": [6, 4]},
    "tangent": {"color": "#B22222", "strokeWidth": 1.2},
    "spread": {"color": GREY, "strokeWidth": 0.7},
    "error": {"color": INK, "strokeWidth": 2.6},
    "anchor": {"filled": False, "color": INK, "fill": "white", "size": 80, "strokeWidth": 1.4, "opacity": 1.0},
    "chosen": {"filled": False, "color": INK, "size": 190, "strokeWidth": 2.0, "opacity": 1.0},
    "draw": {"filled": True, "color": INK, "size": 30, "opacity": 1.0},
}
_BEYOND = "triangle-up"


def key_rows(info: MapInfo) -> list[tuple[str, dict[str, Any], str]]:
    """What the key says: (symbol or line, style, words) each."""
    what = "mean of a method's releases" if info.by == "mean" else "one release"
    rows: list[tuple[str, dict[str, Any], str]] = []
    for group in info.groups:
        style = {"filled": True, "color": colour_of(info.groups, group), "size": 50, "opacity": 1.0}
        rows.append(("point", {**style, "shape": shape_of(info.groups, group)}, group))
    if info.groups:
        rows.append(("", {}, f"each point: {what}"))
    if len(info.frontier):
        rows.append(("rule", STYLES["frontier"], "frontier: undominated"))
    kinds = set(info.bands["kind"]) if len(info.bands) else set()
    if "spread" in kinds:
        rows.append(("rule", STYLES["spread"], f"2.5 to 97.5 % of {info.draws} releases"))
    if "error" in kinds:
        rows.append(("rule", STYLES["error"], "mean ± 1.96 standard errors"))
    marks = set(info.marks["kind"]) if len(info.marks) else set()
    if "chosen" in marks:
        rows.append(("point", {**STYLES["chosen"], "shape": "circle", "size": 110}, "chosen"))
    if "draw" in marks:
        rows.append(("point", {**STYLES["draw"], "shape": "circle"}, "the chosen draw"))
    lines = set(info.lines.filter(pl.col("edge") == "")["kind"]) if len(info.lines) else set()
    rows += [("rule", STYLES["limit"], "limit of the rule")] * ("limit" in lines)
    rows += [("rule", STYLES["tangent"], "line of equal risk + slope × loss")] * ("tangent" in lines)
    for name, shape in ANCHOR_SHAPES.items():
        if len(info.anchors.filter(pl.col("name") == name, pl.col("edge") == "") if len(info.anchors) else ()):
            rows.append(("point", {**STYLES["anchor"], "shape": shape, "size": 60}, name))
    edges = [table["edge"] for table in (info.points, info.means, info.anchors) if "edge" in table.columns]
    if any((edge != "").any() for edge in edges):
        rows.append(("point", {**STYLES["anchor"], "shape": _BEYOND, "size": 55}, "beyond the picture"))
    return rows


def key(info: MapInfo) -> dict[str, Any]:
    """The key of the map as a small view beside the picture."""
    return key_view(key_rows(info))


def key_view(rows: list[tuple[str, dict[str, Any], str]]) -> dict[str, Any]:
    """A key as a small view: (symbol or line, style, words) each."""
    layers: list[dict[str, Any]] = []
    for number, (kind, style, words) in enumerate(rows):
        y = {"value": number * ROW + ROW / 2}
        if kind == "point":
            layers.append({"mark": {"type": "point", **style}, "encoding": {"x": {"value": SAMPLE / 2}, "y": y}})
        if kind == "rule":
            ends = {"x": {"value": 3}, "x2": {"value": SAMPLE - 3}, "y": y}
            layers.append({"mark": {"type": "rule", **style}, "encoding": ends})
        text = {"type": "text", "text": words, "align": "left", "baseline": "middle", "fontSize": FONT_SIZE}
        layers.append({"mark": {**text, "color": INK}, "encoding": {"x": {"value": SAMPLE + 6}, "y": y}})
    return {
        "width": SAMPLE + CHARACTER * max((len(words) for _, _, words in rows), default=0),
        "height": ROW * max(1, len(rows)),
        "data": {"values": [{}]},
        "layer": layers or [{"mark": "point", "encoding": {"x": {"value": -99}, "y": {"value": -99}}}],
    }
