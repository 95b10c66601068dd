"""Label positions for a web page that draws the map itself, computed as for the chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from sdcmap.charts.label_placement import FONT_SIZE
from sdcmap.charts.map_contents import unlabeled_info
from sdcmap.charts.map_labels import place_labels
from sdcmap.charts.map_tables import MapInfo
from sdcmap.map import RUMap

PAGE_FONT_SIZE = 11  # pixels of a label on the page
PIXELS = PAGE_FONT_SIZE / FONT_SIZE  # of the page for each pixel of the placement


@dataclass(frozen=True)
class PageLabel:
    """A text beside a point of the map.

    text, kind : the text, and what it labels: "name", or "line", "floor" for a text on a line.
    utility, risk : its point, in the units of the axes.
    across, down : from the point to the text, in pixels.
    align : "left", "center" or "right": which part of the text stands there.
    leader : from the point to the end of the line that joins them, in pixels; None where there is no such line.
    """

    text: str
    kind: str
    utility: float
    risk: float
    across: float
    down: float
    align: str
    leader: tuple[float, float] | None


def page_labels(
    ru: RUMap, by: str | None, width: int, height: int, part: tuple[Sequence[float], Sequence[float]] | None = None
) -> list[PageLabel]:
    """Place the labels of a map of this size.

    width, height : of the frame that the axes enclose, in pixels.
    part : (low, high) of the utility axis and of the risk axis that are shown; by default all of both.
    """
    info = unlabeled_info(ru, by=by)
    if part is not None:
        info = _zoom(info, *part)
    frame = round(width / PIXELS), round(height / PIXELS)
    labels = []
    for text, kind, spot in place_labels(info, "", names=True, width=frame[0], height=frame[1]):
        across, down = spot.point
        end = (_pixels(spot.end[0] - across), _pixels(spot.end[1] - down)) if spot.leader else None
        point = info.x.at(across / frame[0]), info.y.at(1 - down / frame[1])
        labels.append(PageLabel(text, kind, *point, _pixels(spot.x - across), _pixels(spot.y - down), spot.align, end))
    return labels


def _pixels(length: float) -> float:
    return round(PIXELS * length, 1)


def _zoom(info: MapInfo, across: Sequence[float], up: Sequence[float]) -> MapInfo:
    """Return the visible part of a map within these ends of its axes."""
    x, y = (replace(axis, low=ends[0], high=ends[1]) for axis, ends in ((info.x, across), (info.y, up)))

    def within(table: pl.DataFrame) -> pl.DataFrame:
        if not len(table):
            return table
        visible = table.filter(pl.col("y").is_between(y.low, y.high))
        if "edge" in visible.columns:
            visible = visible.filter(pl.col("edge") == "")
        if "x2" in visible.columns:  # lines are cut at the edge
            return visible.with_columns(pl.col("x", "x2").clip(x.low, x.high), pl.col("y2").clip(y.low, y.high))
        return visible.filter(pl.col("x").is_between(x.low, x.high))

    return replace(
        info, x=x, y=y, points=within(info.points), means=within(info.means), anchors=within(info.anchors),
        frontier=within(info.frontier), lines=within(info.lines), bands=within(info.bands),
    )  # fmt: skip
