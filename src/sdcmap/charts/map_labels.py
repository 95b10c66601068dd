"""The labels of the map: anchors, lines and the chosen point first, then the frontier where there is room."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import polars as pl

from sdcmap.charts.label_placement import (
    LABEL_DISTANCES,
    NEAREST_DISTANCE,
    Dot,
    LabelPosition,
    LabelRequest,
    position_labels,
)
from sdcmap.charts.map_tables import MapInfo
from sdcmap.core.chart import Row

POINT, RING, LINE_WEIGHT = 4.0, 1.5, 0.8  # ink that a label avoids: of a point, of a ring, of a dot along a line
RADIUS = 4.0  # pixels of a point on the frontier
ALONG = (0.98, 0.02, 0.85, 0.15, 0.7, 0.3, 0.5)  # positions of a text along its line, in order of preference
_STEP = 4.0  # pixels between dots along a line
Pixel = tuple[float, float]


def label_rows(info: MapInfo, panel: str, *, names: bool | str, width: int, height: int) -> list[Row]:
    """Return the labels of one panel in the units of its axes; parameters as for `place_labels`."""
    placed = place_labels(info, panel, names=names, width=width, height=height)
    return [_label(label, info, panel, width, height) for label in placed]


class PlacedLabel(NamedTuple):
    """A text, what it names ("name", or "line", "floor", "subsamples"), and its position in pixels of the picture."""

    text: str
    kind: str
    spot: LabelPosition


def place_labels(info: MapInfo, panel: str, *, names: bool | str, width: int, height: int) -> list[PlacedLabel]:
    """Place the labels of one panel; anchors and limits are named in the first panel alone.

    names : write the names of the chosen and the undominated methods; "all": of every method.
    """

    def pixel(row: Row, x: str = "x", y: str = "y") -> Pixel:
        return width * info.x.share(row[x]), height * (1 - info.y.share(row[y]))

    drawn = ("anchors", "lines", "marks", "frontier", "bands", "subsamples", "curves")
    here = {name: _rows(getattr(info, name), panel) for name in drawn}
    points = _rows(info.dots, panel)
    first = panel == info.panels[0]
    # Labels are placed in this order, so those that must be shown come first.
    requests = [LabelRequest(row["text"], (pixel(row),), True) for row in here["anchors"] if first]
    requests += [LabelRequest(row["text"], (pixel(row),), True) for row in here["marks"] if names and row["text"]]
    for row in here["lines"]:
        if row["text"] and (first or row["kind"] == "tangent"):
            line = pixel(row), pixel(row, "x2", "y2")
            points_on_line = tuple(_between(*line, share) for share in ALONG)
            requests.append(LabelRequest(row["text"], points_on_line, True, NEAREST_DISTANCE))
    if names:
        named = {row["short"] for row in here["marks"]}
        spots: dict[tuple[bool, str, str, str], list[Pixel]] = {}
        for row in points:
            if (row["frontier"] or names == "all") and row["short"] not in named:
                key = not row["frontier"], row["method"], row["group"] if info.by == "curve" else "", row["short"]
                spots.setdefault(key, []).append(pixel(row))
        order = sorted(spots.items(), key=lambda item: (item[0][0], item[1]))  # names on the frontier are placed first
        # A number beside a curve belongs to the nearest point, so it has no leader line.
        lines = {row["group"] for row in here["curves"]}
        for (_, _, group, short), near in order:
            requests.append(
                LabelRequest(short, tuple(near), False, NEAREST_DISTANCE if group in lines else LABEL_DISTANCES)
            )
    inside = [row for row in here["subsamples"] if row["inside"]]
    requests += [LabelRequest(row["text"], (pixel(row),)) for row in inside if first]
    # Everything that is drawn is represented by dots of ink, which labels avoid.
    dots: list[Dot] = [(*pixel(row), POINT) for row in (*points, *here["anchors"])]
    for row in points:
        if row["frontier"]:  # drawn large: labels must not cover its rim either
            x, y = pixel(row)
            dots += [(x, y - RADIUS, POINT / 2), (x, y + RADIUS, POINT / 2)]
    for row in here["marks"]:
        x, y = pixel(row)
        dots += [(x + 8 * math.cos(t), y + 8 * math.sin(t), RING) for t in range(6)]
    dots += _along([pixel(row) for row in here["frontier"]], info.stepped)
    for group in {row["group"]: None for row in here["curves"]}:
        dots += _along([pixel(row) for row in here["curves"] if row["group"] == group], "linear")
    dots += _along([pixel(row) for row in inside], "linear")
    for row in (*here["lines"], *here["bands"]):
        dots += _along([pixel(row), pixel(row, "x2", "y2")], "linear")
    kinds = {row["text"]: "floor" if row["kind"] == "floor" else "line" for row in here["lines"]}
    kinds |= {row["text"]: "subsamples" for row in inside}
    texts = ((requests[spot.request].text, spot) for spot in position_labels(requests, dots, width, height))
    return [PlacedLabel(text, kinds.get(text, "name"), spot) for text, spot in texts]


def _between(start: Pixel, end: Pixel, share: float) -> Pixel:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _label(label: PlacedLabel, info: MapInfo, panel: str, width: int, height: int) -> Row:
    def back(across: float, down: float) -> tuple[float, float]:
        return info.x.at(across / width), info.y.at(1 - down / height)

    spot = label.spot
    x, y = back(spot.x, spot.y)
    ends = (*back(*spot.point), *back(*spot.end)) if spot.leader else (None,) * 4
    leader = dict(zip(("from_x", "from_y", "to_x", "to_y"), ends, strict=True))
    return {"panel": panel, "kind": label.kind, "text": label.text, "x": x, "y": y, "align": spot.align, **leader}


def _along(path: list[Pixel], how: str) -> list[Dot]:
    """Return dots every few pixels along a path, so that labels avoid it."""
    dots = []
    for here, there in itertools.pairwise(path):
        corner = {"step-after": [(there[0], here[1])], "step-before": [(here[0], there[1])]}.get(how, [])
        for start, end in zip([here, *corner], [*corner, there], strict=True):
            count = int(math.dist(start, end) / _STEP) + 1
            dots += [(*_between(start, end, step / count), LINE_WEIGHT) for step in range(count)]
    return dots


def _rows(table: pl.DataFrame, panel: str) -> list[Row]:
    return table.filter(pl.col("panel") == panel).to_dicts() if len(table) else []
