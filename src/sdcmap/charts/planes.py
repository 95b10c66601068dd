"""The two planes of the global criterion: global risk with its limits and regions, and global utility with distances.

Trottini (2001), figures 1 and 2. All axes end at 0, where the target is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.charts.label_placement import FONT_SIZE, LABEL_DISTANCES, Box, Dot, LabelRequest, position_labels
from sdcmap.charts.legend import STYLES, Entry, legend_view
from sdcmap.charts.style import COLORS, FROM_TO, GRAY, INK, layer, number, page
from sdcmap.choose import GlobalCriterion
from sdcmap.core import Choice, PlanError
from sdcmap.core.chart import Chart, Spec
from sdcmap.kernels.decision.global_criterion import distances
from sdcmap.map import RUMap

TITLES = {
    "iek": "Intruder's estimated knowledge, IEK", "rdh": "Risk of discredit harm, RDH",
    "sek": "Society's estimated knowledge, SEK", "dus": "Data utility for society, DUS",
}  # fmt: skip
REGIONS = {  # tint, words, corner (right, top)
    "A": ("#FCF3E1", "discredit harm alone", (0, 1)), "B": ("#F8E1D6", "both harms", (1, 1)),
    "C": ("#FCF3E1", "disclosure harm alone", (1, 0)), "D": ("#E3F1EB", "neither, safe", (0, 0)),
}  # fmt: skip
SAFE, UNSAFE = (COLORS[0], "circle"), (COLORS[1], "diamond")
PADDING_BELOW, PADDING_ABOVE = 0.16, 0.09  # of the range, so that letters in the corners do not cover points
LETTER_SIZE = 13  # pixels, of the letters A to D
MAX_NAMES = 12  # candidates with a label; more do not fit
RING_LABEL_DISTANCES = (13.0, *LABEL_DISTANCES[1:])  # pixels from a point with a ring to its label
Pair = tuple[float, float]


class Plane(NamedTuple):
    """One plane: the columns across and up, their axes, limits and prior (None: not drawn), and its size in pixels."""

    columns: tuple[str, str]
    x: Axis
    y: Axis
    limits: Pair | None
    prior: Pair | None
    width: int
    height: int

    def pixel(self, pair: Pair) -> Pair:
        return self.width * self.x.share(pair[0]), self.height * (1 - self.y.share(pair[1]))

    def back(self, pixel: Pair) -> Pair:
        return self.x.at(pixel[0] / self.width), self.y.at(1 - pixel[1] / self.height)


def draw_criterion(ru: RUMap, choice: Choice, *, unit: str = "", names: Mapping[str, str] | None = None) -> Chart:
    """Draw both planes for a choice by `GlobalCriterion`; names : names of methods, by their text."""
    rule = choice.rule
    if not isinstance(rule, GlobalCriterion):
        raise PlanError("the planes of global risk and utility belong to a choice by GlobalCriterion.")
    table = rule.table(ru)
    labels = [(names or {}).get(method, method) for method in table["method"]]
    by_release = "id" in table.columns
    chosen = table["id"] == (choice.candidate or "") if by_release else table["method"] == choice.method
    return draw_planes(
        table.with_columns(pl.Series("name", labels, pl.String), chosen=chosen), agency_limit=rule.agency_limit,
        intruder_limit=rule.intruder_limit, prior=rule.prior(ru), units=(unit, unit),
    )  # fmt: skip


def draw_planes(
    rows: pl.DataFrame, *, agency_limit: float, intruder_limit: float, prior: Mapping[str, float] | None = None,
    units: tuple[str, str] = ("", ""), utility: bool = True, width: int = 330, height: int = 300, title: str = "",
) -> Chart:  # fmt: skip
    """Draw global risk with limits and regions A to D and, beside it, global utility with the distance to (0, 0).

    rows : columns name, iek, rdh, sek, dus, region, and chosen (whether it is the one to release); infinite ones are left
        out. prior : iek, rdh (and sek, dus) before any release. units : of the agency's estimates, and of own knowledge.
    utility : draw the second plane too.
    """
    shown = rows.filter(*(pl.col(name).is_finite() for name in TITLES))
    size = width, height
    # The planes have different scales: risk compares the intruder's knowledge, utility that of society.
    panels = [_plane(shown, ("iek", "rdh"), (agency_limit, intruder_limit), prior, units, size)]
    if utility:
        panels.append(_plane(shown, ("sek", "dus"), None, prior, units, size))
    panels.append(legend_view(_legend(shown, prior)))
    spec = page(title, hconcat=panels, spacing=28, resolve={"scale": {"x": "independent", "y": "independent"}})
    return Chart(spec, title or "Global risk and global utility")


def _legend(rows: pl.DataFrame, prior: Mapping[str, float] | None) -> Iterator[Entry]:
    for safe, (color, shape), words in ((True, SAFE, "safe"), (False, UNSAFE, "not safe")):
        if len(rows.filter((pl.col("region") == "D") == safe)):
            style = {"filled": True, "color": color, "shape": shape, "size": 55, "opacity": 1.0}
            yield Entry("point", style, words)
    if rows["chosen"].any():
        yield Entry("point", {**STYLES["chosen"], "shape": "circle", "size": 110}, "to be released")
    if prior is not None:
        yield Entry("point", {**STYLES["anchor"], "shape": "square", "size": 60}, "prior: before the release")
    for letter, (tint, words, _) in REGIONS.items():
        style = {"filled": True, "color": tint, "stroke": GRAY, "strokeWidth": 0.5, "shape": "square", "size": 130}
        yield Entry("point", {**style, "opacity": 1.0}, f"{letter}: {words}")


def _plane(
    rows: pl.DataFrame, columns: tuple[str, str], limits: Pair | None, prior: Mapping[str, float] | None,
    units: tuple[str, str], size: tuple[int, int],
) -> Spec:  # fmt: skip
    before = None if prior is None or columns[0] not in prior else (prior[columns[0]], prior[columns[1]])
    guides = [pair for pair in (limits, before) if pair is not None]
    axes = []
    for number_of_axis, column in enumerate(columns):
        # All values are at most 0, so the axis runs from the smallest value to a little above 0.
        low = min([*rows[column], *(pair[number_of_axis] for pair in guides)], default=-1.0) or -1.0
        better = "lower is safer" if limits else "higher is better"
        axes.append(Axis(TITLES[column], better, low * (1 + PADDING_BELOW), -low * PADDING_ABOVE))
    plane = Plane(columns, axes[0], axes[1], limits, before, *size)
    layers = [*(_regions(plane, limits) if limits else _goal(rows)), *_points(rows, plane), *_names(rows, plane)]
    head = {"text": "Global risk" if limits else "Global utility", "anchor": "start", "frame": "group"}
    return {
        "width": plane.width, "height": plane.height, "layer": layers,
        "title": {**head, "fontWeight": "bold", "fontSize": 11, "offset": 8},
        "encoding": {"x": _scale("x", plane.x, units[0]), "y": _scale("y", plane.y, units[1])},
    }  # fmt: skip


def _scale(field: str, axis: Axis, unit: str) -> Spec:
    title = [f"{axis.title} ({unit})" if unit else axis.title, axis.better]
    ticks = {"title": title, "tickCount": 5, "labelExpr": "datum.value > 0 ? '' : datum.label"}
    return number(field, axis=ticks, scale={"domain": [axis.low, axis.high], "nice": False, "zero": False})


def _regions(plane: Plane, limits: Pair) -> Iterator[Spec]:
    """Yield four tinted rectangles, and the two limits as dashed lines."""
    x, y = plane.x, plane.y
    for tint, _, (right, top) in REGIONS.values():
        box = {"x": limits[0] if right else x.low, "x2": x.high if right else limits[0],
               "y": limits[1] if top else y.low, "y2": y.high if top else limits[1]}  # fmt: skip
        yield layer([box], {"type": "rect", "color": tint}, **FROM_TO)
    lines = [{"x": limits[0], "x2": limits[0], "y": y.low, "y2": y.high},
             {"x": x.low, "x2": x.high, "y": limits[1], "y2": limits[1]}]  # fmt: skip
    yield layer(lines, {"type": "rule", **STYLES["limit"]}, **FROM_TO)


def _goal(rows: pl.DataFrame) -> Iterator[Spec]:
    """Yield the point of most utility, and the line from it to the chosen candidate."""
    line = [{"x": 0.0, "y": 0.0, "x2": row["sek"], "y2": row["dus"]} for row in rows.filter("chosen").to_dicts()]
    yield layer(line, {"type": "rule", "color": INK, "strokeWidth": 1}, **FROM_TO)
    look = {"type": "point", "shape": "cross", "filled": True, "color": INK, "size": 55, "opacity": 1}
    yield layer([{"x": 0.0, "y": 0.0}], look)


def _points(rows: pl.DataFrame, plane: Plane) -> Iterator[Spec]:
    """Yield safe and unsafe candidates by color and shape, a ring around the chosen one, then the prior."""
    tips = [{"field": "name", "title": "candidate"}, {"field": "region", "title": "region"}]
    tips += [number(name, title=name.upper(), format=".4~g") for name in TITLES]
    columns = {axis: pl.col(column) for axis, column in zip(("x", "y"), plane.columns, strict=True)}
    for safe, (color, shape) in ((False, UNSAFE), (True, SAFE)):
        shown = rows.filter((pl.col("region") == "D") == safe).select("name", "region", *TITLES, **columns).to_dicts()
        look = {"type": "point", "shape": shape, "color": color, "filled": True, "size": 55, "opacity": 0.85}
        yield layer(shown, look, tooltip=tips)
    ring = rows.filter("chosen").select(**columns).to_dicts()
    yield layer(ring, {"type": "point", "shape": "circle", **STYLES["chosen"]})
    if plane.prior is not None:
        look = {"type": "point", "shape": "square", **STYLES["anchor"]}
        yield layer([{"x": plane.prior[0], "y": plane.prior[1]}], look)


def _names(rows: pl.DataFrame, plane: Plane) -> Iterator[Spec]:
    """Yield the names of points and limits, where there is room: the chosen one first, then safe ones by distance."""
    limits, prior, pixel = plane.limits, plane.prior, plane.pixel
    corners = list(_corners(plane, limits)) if limits else []
    requests: list[LabelRequest] = []
    dots: list[Dot] = []
    limit_labels: set[int] = set()  # positions in `requests`
    rows = rows.with_columns(distance=pl.Series(distances(rows["sek"].to_numpy(), rows["dus"].to_numpy())))
    for row in rows.sort(~pl.col("chosen"), pl.col("region") != "D", "distance", maintain_order=True).to_dicts():
        at = pixel((row[plane.columns[0]], row[plane.columns[1]]))
        dots.append((*at, 4.0))
        how_far = f", {row['distance']:.3g} away" if row["chosen"] and limits is None else ""
        reach = RING_LABEL_DISTANCES if row["chosen"] else LABEL_DISTANCES
        requests.append(_request_label(f"{row['name']}{how_far}", (at,), required=bool(row["chosen"]), distances=reach))
    requests = requests[:MAX_NAMES]
    goals = {} if prior is None else {"prior": prior}
    goals |= {"(0, 0): most utility": (0.0, 0.0)} if limits is None else {}
    for words, goal in goals.items():
        dots.append((*pixel(goal), 4.0))
        requests.append(_request_label(words, (pixel(goal),), required=True))
    if limits is None:
        for end in rows.filter("chosen").select(plane.columns).rows():  # labels avoid the line from (0, 0)
            dots += [(*pixel((share / 50 * end[0], share / 50 * end[1])), 1.0) for share in range(51)]
    else:
        for share in range(0, 101, 2):  # labels avoid the lines of the limits
            dots.append((pixel(limits)[0], plane.height * share / 100, 0.5))
            dots.append((plane.width * share / 100, pixel(limits)[1], 0.5))
        spots = [[pixel((limits[0], plane.y.at(share))) for share in (0.6, 0.75, 0.45, 0.3)]]
        spots.append([pixel((plane.x.at(share), limits[1])) for share in (0.5, 0.35, 0.65, 0.2)])
        for name, limit, near in zip(plane.columns, limits, spots, strict=True):
            limit_labels.add(len(requests))
            requests.append(
                _request_label(f"limit of {name.upper()}: {limit:g}", tuple(near), required=True, distances=(9.0,))
            )
    positions = position_labels(requests, dots, plane.width, plane.height, [box for _, box in corners])
    for letter, (left, upper, right, lower) in corners:
        yield _text(
            letter, "center", (left + right) / 2, (upper + lower) / 2, GRAY, fontSize=LETTER_SIZE, fontWeight="bold"
        )
    leaders = [
        dict(zip(("x", "y", "x2", "y2"), (*plane.back(spot.point), *plane.back(spot.end)), strict=True))
        for spot in positions
        if math.dist(spot.point, spot.end) > 20
    ]
    yield layer(leaders, {"type": "rule", "color": GRAY, "strokeWidth": 0.6}, **FROM_TO)
    for spot in positions:
        color = STYLES["limit"]["color"] if spot.request in limit_labels else INK
        yield _text(requests[spot.request].text, spot.align, spot.x, spot.y, color)


def _request_label(
    text: str, near: tuple[Pair, ...], required: bool, distances: tuple[float, ...] = LABEL_DISTANCES
) -> LabelRequest:
    """Return the request for a label, with typographic minus signs."""
    return LabelRequest(text.replace("-", "−"), near, required, distances)


def _text(text: str, align: str, x: float, y: float, color: str, **font: object) -> Spec:
    look = {"type": "text", "align": align, "baseline": "middle", "fontSize": FONT_SIZE, "text": text, "color": color}
    return layer([{}], {**look, **font}, x={"value": x}, y={"value": y})


def _corners(plane: Plane, limits: Pair) -> Iterator[tuple[str, Box]]:
    """Yield the letter of each region with enough room, and its box in the corner; the legend explains it."""
    width, height = plane.width, plane.height
    across, up = width * plane.x.share(limits[0]), height * plane.y.share(limits[1])
    for letter, (_, _, (right, top)) in REGIONS.items():
        if min(width - across if right else across, height - up if top else up) > 2 * LETTER_SIZE:
            left = width - 1.5 * LETTER_SIZE if right else LETTER_SIZE / 2
            upper = LETTER_SIZE / 2 if top else height - 1.5 * LETTER_SIZE
            yield letter, (left, upper, left + LETTER_SIZE, upper + LETTER_SIZE)
