"""The legend of a chart: one entry for each kind of thing that is drawn, in its own style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from sdcmap.charts.guides import EVERYTHING, NOTHING
from sdcmap.charts.labels import CHARACTER, FONT_SIZE
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.style import GREY, INK, colour_of, shape_of
from sdcmap.core.chart import Spec

ROW, SAMPLE = 18, 26  # pixels

ANCHOR_SHAPES = {EVERYTHING: "circle", NOTHING: "square"}
STYLES: dict[str, Spec] = {
    "frontier": {"color": INK, "strokeWidth": 1.3},
    "subsamples": {"color": "#7B5EA7", "strokeWidth": 1.3, "strokeDash": [3, 3]},
    "floor": {"color": "#555555", "strokeWidth": 1.0, "strokeDash": [2, 3]},
    "limit": {"color": "#B22222", "strokeWidth": 1.2, "strokeDash": [6, 4]},
    "tangent": {"color": "#B22222", "strokeWidth": 1.2},
    "spread": {"color": GREY, "strokeWidth": 0.7},
    "error": {"color": INK, "strokeWidth": 2.6},
    "anchor": {"filled": False, "color": INK, "fill": "white", "size": 80, "strokeWidth": 1.4, "opacity": 1.0},
    "chosen": {"filled": False, "color": INK, "size": 190, "strokeWidth": 2.0, "opacity": 1.0},
    "draw": {"filled": True, "color": INK, "size": 30, "opacity": 1.0},
}
_BEYOND = "triangle-up"


class Entry(NamedTuple):
    """One entry: a "point" or "rule" in its style, or no mark at all, and what it stands for."""

    mark: str
    style: Spec
    words: str


def legend_entries(info: MapInfo) -> list[Entry]:
    """What the legend of a map says."""
    what = "mean of a method's releases" if info.by == "mean" else "one release"
    entries: list[Entry] = []
    for group in info.groups:
        style = {"filled": True, "color": colour_of(info.groups, group), "size": 50, "opacity": 1.0}
        entries.append(Entry("point", {**style, "shape": shape_of(info.groups, group)}, group))
    if info.groups:
        entries.append(Entry("", {}, f"each point: {what}"))
    if len(info.frontier):
        entries.append(Entry("rule", STYLES["frontier"], "frontier: undominated"))
    if len(info.subsamples):
        entries.append(Entry("rule", STYLES["subsamples"], "original, records thrown away"))
    kinds = set(info.bands["kind"]) if len(info.bands) else set()
    if "spread" in kinds:
        entries.append(Entry("rule", STYLES["spread"], f"2.5 to 97.5 % of {info.draws} releases"))
    if "error" in kinds:
        entries.append(Entry("rule", STYLES["error"], "mean ± 1.96 standard errors"))
    marks = set(info.marks["kind"]) if len(info.marks) else set()
    if "chosen" in marks:
        entries.append(Entry("point", {**STYLES["chosen"], "shape": "circle", "size": 110}, "chosen"))
    if "draw" in marks:
        entries.append(Entry("point", {**STYLES["draw"], "shape": "circle"}, "the chosen draw"))
    lines = set(info.lines.filter(pl.col("edge") == "")["kind"]) if len(info.lines) else set()
    entries += [Entry("rule", STYLES["limit"], "limit of the rule")] * ("limit" in lines)
    entries += [Entry("rule", STYLES["floor"], "risk without any release")] * ("floor" in lines)
    entries += [Entry("rule", STYLES["tangent"], "line of equal risk + slope × loss")] * ("tangent" in lines)
    for name, shape in ANCHOR_SHAPES.items():
        if len(info.anchors.filter(pl.col("name") == name, pl.col("edge") == "") if len(info.anchors) else ()):
            entries.append(Entry("point", {**STYLES["anchor"], "shape": shape, "size": 60}, name))
    edges = [table["edge"] for table in (info.points, info.means, info.anchors) if "edge" in table.columns]
    if any((edge != "").any() for edge in edges):
        entries.append(Entry("point", {**STYLES["anchor"], "shape": _BEYOND, "size": 55}, "beyond the picture"))
    return entries


def map_legend(info: MapInfo) -> Spec:
    """The legend of the map as a small view beside the picture."""
    return legend_view(legend_entries(info))


def legend_view(entries: Sequence[Entry]) -> Spec:
    """A legend as a small view."""
    layers: list[Spec] = []
    for number, (kind, style, words) in enumerate(entries):
        y = {"value": number * ROW + ROW / 2}
        if kind == "point":
            layers.append({"mark": {"type": "point", **style}, "encoding": {"x": {"value": SAMPLE / 2}, "y": y}})
        if kind == "rule":
            ends = {"x": {"value": 3}, "x2": {"value": SAMPLE - 3}, "y": y}
            layers.append({"mark": {"type": "rule", **style}, "encoding": ends})
        text = {"type": "text", "text": words, "align": "left", "baseline": "middle", "fontSize": FONT_SIZE}
        layers.append({"mark": {**text, "color": INK}, "encoding": {"x": {"value": SAMPLE + 6}, "y": y}})
    return {
        "width": SAMPLE + CHARACTER * max((len(words) for _, _, words in entries), default=0),
        "height": ROW * max(1, len(entries)),
        "data": {"values": [{}]},
        "layer": layers or [{"mark": "point", "encoding": {"x": {"value": -99}, "y": {"value": -99}}}],
    }
