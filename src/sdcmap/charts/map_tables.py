"""Everything that is drawn on the R-U map, as plain tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.core.chart import Spec


@dataclass(frozen=True)
class MapInfo:
    """Everything on the map. `x` and `y` are where an item is drawn, `edge` is the side beyond which its value lies.

    points : panel, group, id, method, short, draw, risk, utility, x, y, edge, frontier; empty where means are drawn.
    means : panel, group, method, short, count, risk, utility, membership, x, y, edge, frontier; else empty.
    curves : panel, group, x, y along each line of a parameter, smallest value first; empty unless curves are drawn.
    frontier : panel, x, y of the undominated points of the drawn layer, from left to right.
    anchors : panel, name, risk, utility, x, y, edge, text.
    bands : panel, group, method, axis, kind ("spread" of single releases, "error" of the mean, "margin" of a risk), x, y,
        x2, y2.
    marks : the chosen point: panel, kind ("chosen"; "draw" beside a chosen mean), x, y, edge, short, text.
    lines : panel, kind ("limit" or "tangent"), x, y, x2, y2, edge, text.
    subsamples : panel, x, y, inside (1: in the picture), name (of the share thrown away), text; the smallest last.
    labels : panel, kind ("name", or "line" on a line), text, x, y, align, and a leader line from_x, from_y, to_x, to_y.
    """

    by: str
    panels: tuple[str, ...]
    styles: Mapping[str, Spec]  # color and shape of each group, and the dash of each line
    parameter: str  # what the numbers at the points of curves are
    x: Axis
    y: Axis
    stepped: str  # how the frontier goes from point to point: "step-after" or "step-before"
    draws: int  # most releases of one method
    points: pl.DataFrame
    means: pl.DataFrame
    curves: pl.DataFrame
    frontier: pl.DataFrame
    anchors: pl.DataFrame
    bands: pl.DataFrame
    marks: pl.DataFrame
    lines: pl.DataFrame
    subsamples: pl.DataFrame
    labels: pl.DataFrame

    @property
    def dots(self) -> pl.DataFrame:
        """The points that are drawn: single releases, or means of methods."""
        return self.points if self.by == "release" else self.means
