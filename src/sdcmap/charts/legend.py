"""The legend of a chart: one entry for each kind of item that is drawn, in its own style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from sdcmap.charts.guides import NOTHING, UNMASKED
from sdcmap.charts.label_placement import CHARACTER_WIDTH, FONT_SIZE
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.style import GRAY, INK
from sdcmap.core.chart import Spec

ROW_HEIGHT, SYMBOL_WIDTH = 18, 26  # pixels

ANCHOR_SHAPES = {UNMASKED: "circle", NOTHING: "square"}
STYLES: dict[str, Spec] = {
    "frontier": {"color": INK, "strokeWidth": 1.3},
    "subsamples": {"color": "#7B5EA7", "strokeWidth": 1.3, "strokeDash": [3, 3]},
    "floor": {"color": "#555555", "strokeWidth": 1.0, "strokeDash": [2, 3]},
    "limit": {"color": "#B22222", "strokeWidth": 1.2, "strokeDash": [6, 4]},
    "tangent": {"color": "#B22222", "strokeWidth": 1.2},
    "spread": {"color": GRAY, "strokeWidth": 0.7},
    "error": {"color": "#8a8a8a", "strokeWidth": 2.0},
    "margin": {"color": "#5a5a5a", "strokeWidth": 1.2},
    "curve error": {"color": GRAY, "strokeWidth": 1.2},
    "anchor": {"filled": False, "color": INK, "fill": "white", "size": 80, "strokeWidth": 1.4, "opacity": 1.0},
    "chosen": {"filled": False, "color": INK, "size": 190, "strokeWidth": 2.0, "opacity": 1.0},
    "draw": {"filled": True, "color": INK, "size": 30, "opacity": 1.0},
    "worse": {"shape": "cross", "filled": True, "color": GRAY, "size": 40, "opacity": 0.9},
}
CURVE: Spec = {"strokeWidth": 1.6}  # with the color and the dash of its group
POINT: Spec = {"filled": True, "size": 50, "opacity": 1.0}
MEAN = "mean of a method's releases"
WORDS = {
    "frontier": "frontier: undominated",
    "subsamples": "original, records thrown away",
    "spread": "2.5 to 97.5 % of {draws} releases",
    "error": "mean ± 1.96 standard errors",
    "margin": "up to what is compared with the limit",
    "chosen": "chosen",
    "draw": "the chosen draw",
    "limit": "limit",
    "floor": "risk without any release",
    "tangent": "line of equal risk + slope × loss",
}


class Entry(NamedTuple):
    """One entry: a "point", a "rule" or a "curve" (both) in its style, or no mark; and what it stands for."""

    mark: str
    style: Spec
    words: str


def legend_entries(info: MapInfo) -> Iterator[Entry]:
    """Yield the entries of the legend of a map."""
    for group, style in info.styles.items():
        yield Entry("curve" if "strokeDash" in style else "point", style, group)
    if info.styles:
        yield Entry("", {}, f"each point: {'one release' if info.by == 'release' else MEAN}")
    if info.parameter:
        yield Entry("", {}, f"numbers at points: {info.parameter}")
    tables = {"frontier": info.frontier, "subsamples": info.subsamples}
    kinds = {name for name, table in tables.items() if len(table)}
    visible = info.lines.filter(pl.col("edge") == "") if len(info.lines) else info.lines
    kinds |= {kind for table in (info.bands, info.marks, visible) if len(table) for kind in table["kind"]}
    circle: dict[str, Spec] = {"chosen": {"shape": "circle", "size": 110}, "draw": {"shape": "circle"}}
    for kind, words in WORDS.items():
        if kind in kinds:
            mark = "point" if kind in circle else "rule"
            style = STYLES["curve error" if kind == "error" and info.by == "curve" else kind]
            yield Entry(mark, {**style, **circle.get(kind, {})}, words.format(draws=info.draws))
    drawn = info.means if info.by == "mean" else info.points
    if "worse" in drawn.columns and drawn["worse"].any():
        yield Entry("point", {**STYLES["worse"], "size": 50}, "worse than not masking")
    for name, shape in ANCHOR_SHAPES.items():
        if len(info.anchors) and len(info.anchors.filter(pl.col("name") == name, pl.col("edge") == "")):
            yield Entry("point", {**STYLES["anchor"], "shape": shape, "size": 60}, name)
    edges = [table["edge"] for table in (info.points, info.means, info.anchors) if "edge" in table.columns]
    if any((edge != "").any() for edge in edges):
        yield Entry("point", {**STYLES["anchor"], "shape": "triangle-up", "size": 55}, "beyond the picture")


def legend_view(entries: Iterable[Entry]) -> Spec:
    """Return a legend as a small view."""
    layers: list[Spec] = []
    longest = rows = 0
    for rows, (kind, style, words) in enumerate(entries, 1):
        y, longest = {"value": rows * ROW_HEIGHT - ROW_HEIGHT / 2}, max(longest, len(words))
        line = {"x": {"value": 3}, "x2": {"value": SYMBOL_WIDTH - 3}}
        ends = line if kind == "rule" else {"x": {"value": SYMBOL_WIDTH / 2}}
        if kind == "curve":
            layers.append({"mark": {"type": "rule", **CURVE, **style}, "encoding": {**line, "y": y}})
        if kind:
            mark = {"type": kind, **style} if kind == "rule" else {"type": "point", **POINT, **style, "strokeDash": []}
            layers.append({"mark": mark, "encoding": {**ends, "y": y}})
        text = {"type": "text", "text": words, "align": "left", "baseline": "middle", "fontSize": FONT_SIZE}
        layers.append({"mark": {**text, "color": INK}, "encoding": {"x": {"value": SYMBOL_WIDTH + 6}, "y": y}})
    return {
        "width": SYMBOL_WIDTH + CHARACTER_WIDTH * longest, "height": ROW_HEIGHT * max(1, rows), "data": {"values": [{}]},
        "layer": layers or [{"mark": "point", "encoding": {"x": {"value": -99}, "y": {"value": -99}}}],
    }  # fmt: skip
