"""The two planes of decision theory: global risk with its limits and regions, global utility with its distances.

Trottini (2001), figures 1 and 2. Both axes of both planes end at 0, where the target is known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.charts.labels import FAR, FONT_SIZE, Box, Dot, Wish, place
from sdcmap.charts.legend import STYLES, Entry, legend_view
from sdcmap.charts.style import COLOURS, CONFIG, GREY, INK, SCHEMA
from sdcmap.choose import GlobalCriterion
from sdcmap.core import Choice, PlanError
from sdcmap.core.chart import Chart, Row, Spec
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
SAFE, UNSAFE = (COLOURS[0], "circle"), (COLOURS[1], "diamond")
ROOM_BELOW, ROOM_ABOVE = 0.16, 0.09  # of the range, so that words at the corners stand clear of points
LETTER = 13  # pixels
MOST_NAMES = 12
RINGED = (13.0, *FAR[1:])  # from a ringed point to its label


def draw_criterion(ru: RUMap, choice: Choice, *, unit: str = "", names: Mapping[str, str] | None = None) -> Chart:
    """Both planes of a map's candidates, for a choice that `GlobalCriterion` made; names : what to call a method."""
    rule = choice.rule
    if not isinstance(rule, GlobalCriterion):
        raise PlanError("the planes of global risk and utility belong to a choice by GlobalCriterion.")
    table = rule.table(ru)
    called = [(names or {}).get(method, method) for method in table["method"]]
    by_release = "id" in table.columns
    chosen = table["id"] == (choice.candidate or "") if by_release else table["method"] == choice.method
    return draw_planes(
        table.with_columns(pl.Series("name", called, pl.String), chosen=chosen), agency_limit=rule.agency_limit,
        intruder_limit=rule.intruder_limit, prior=rule.prior(ru), units=(unit, unit),
    )  # fmt: skip


def draw_planes(
    rows: pl.DataFrame, *, agency_limit: float, intruder_limit: float, prior: Mapping[str, float] | None = None,
    units: tuple[str, str] = ("", ""), utility: bool = True, width: int = 330, height: int = 300, title: str = "",
) -> Chart:  # fmt: skip
    """Global risk with limits and regions A to D and, beside it, global utility with the way to (0, 0).

    rows : columns name, iek, rdh, sek, dus, region, and chosen (whether it is the one to release); infinite ones are left
        out. prior : iek, rdh (and sek, dus) before any release. units : of the agency's estimates, and of own knowledge.
    utility : draw the second plane too.
    """
    shown = rows.filter(*(pl.col(name).is_finite() for name in TITLES))
    panels = [_plane(shown, "iek", "rdh", (agency_limit, intruder_limit), prior, units, width, height)]
    if utility:
        panels.append(_plane(shown, "sek", "dus", None, prior, units, width, height))
    panels.append(legend_view(_legend(shown, prior)))
    spec: Spec = {
        "$schema": SCHEMA, "config": CONFIG, "background": "white",
        "padding": 12, "hconcat": panels, "spacing": 28, "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }  # fmt: skip
    if title:
        spec["title"] = {"text": title, "anchor": "start", "fontSize": 13, "offset": 12}
    return Chart(spec, title or "Global risk and global utility")


def _legend(rows: pl.DataFrame, prior: Mapping[str, float] | None) -> list[Entry]:
    entries: list[Entry] = []
    for safe, (colour, shape), words in ((True, SAFE, "safe"), (False, UNSAFE, "not safe")):
        if len(rows.filter((pl.col("region") == "D") == safe)):
            entries.append(
                Entry("point", {"filled": True, "color": colour, "shape": shape, "size": 55, "opacity": 1.0}, words)
            )
    if rows["chosen"].any():
        entries.append(Entry("point", {**STYLES["chosen"], "shape": "circle", "size": 110}, "to be released"))
    if prior is not None:
        entries.append(Entry("point", {**STYLES["anchor"], "shape": "square", "size": 60}, "prior: before the release"))
    for letter, (tint, words, _) in REGIONS.items():
        style = {"filled": True, "color": tint, "stroke": GREY, "strokeWidth": 0.5, "shape": "square", "size": 130}
        entries.append(Entry("point", {**style, "opacity": 1.0}, f"{letter}: {words}"))
    return entries


def _plane(
    rows: pl.DataFrame, x: str, y: str, limits: tuple[float, float] | None, prior: Mapping[str, float] | None,
    units: tuple[str, str], width: int, height: int,
) -> Spec:  # fmt: skip
    before = None if prior is None or x not in prior else (prior[x], prior[y])
    guests = [pair for pair in (limits, before) if pair is not None]
    across = _axis(
        TITLES[x], [*rows[x], *(pair[0] for pair in guests)], "lower is safer" if limits else "higher is better"
    )
    up = _axis(TITLES[y], [*rows[y], *(pair[1] for pair in guests)], "lower is safer" if limits else "higher is better")
    layers = [
        *(_regions(across, up, limits) if limits else _goal(rows, across, up)),
        *_points(rows, x, y),
        *_prior(before),
        *_names(rows, x, y, across, up, limits, before, width, height),
    ]
    head = "Global risk" if limits else "Global utility"
    return {
        "width": width, "height": height, "layer": layers,
        "title": {"text": head, "anchor": "start", "frame": "group", "fontWeight": "bold", "fontSize": 11, "offset": 8},
        "encoding": {
            "x": {"field": "x", **_scale(across, units[0])},
            "y": {"field": "y", **_scale(up, units[1])},
        },
    }  # fmt: skip


def _axis(title: str, values: list[float], better: str) -> Axis:
    low = min(values, default=-1.0) or -1.0
    return Axis(title, better, low * (1 + ROOM_BELOW), -low * ROOM_ABOVE)


def _scale(axis: Axis, unit: str) -> Spec:
    title = [f"{axis.title} ({unit})" if unit else axis.title, axis.better]
    ticks = {"title": title, "tickCount": 5, "labelExpr": "datum.value > 0 ? '' : datum.label"}
    return {
        "type": "quantitative", "axis": ticks, "scale": {"domain": [axis.low, axis.high], "nice": False, "zero": False},
    }  # fmt: skip


def _layer(rows: list[Row], mark: Spec, encoding: Spec | None = None) -> Spec:
    return {"data": {"values": rows}, "mark": mark, **({"encoding": encoding} if encoding else {})}


def _regions(x: Axis, y: Axis, limits: tuple[float, float]) -> Iterator[Spec]:
    """Four tinted rectangles, and the two limits as dashed lines."""
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    for tint, _, (right, top) in REGIONS.values():
        box = {"x": limits[0] if right else x.low, "x2": x.high if right else limits[0],
               "y": limits[1] if top else y.low, "y2": y.high if top else limits[1]}  # fmt: skip
        yield _layer([box], {"type": "rect", "color": tint}, ends)
    lines = [{"x": limits[0], "x2": limits[0], "y": y.low, "y2": y.high},
             {"x": x.low, "x2": x.high, "y": limits[1], "y2": limits[1]}]  # fmt: skip
    yield _layer(lines, {"type": "rule", **STYLES["limit"]}, ends)


def _goal(rows: pl.DataFrame, x: Axis, y: Axis) -> Iterator[Spec]:
    """The point of most utility, and the way from it to the chosen one."""
    way = [{"x": 0.0, "y": 0.0, "x2": row["sek"], "y2": row["dus"]} for row in rows.filter("chosen").to_dicts()]
    yield _layer(way, {"type": "rule", "color": INK, "strokeWidth": 1}, {"x2": {"field": "x2"}, "y2": {"field": "y2"}})
    look = {"type": "point", "shape": "cross", "filled": True, "color": INK, "size": 55, "opacity": 1}
    yield _layer([{"x": 0.0, "y": 0.0}], look)


def _points(rows: pl.DataFrame, x: str, y: str) -> Iterator[Spec]:
    """Safe candidates and others by colour and shape, a ring around the chosen one."""
    tips = [{"field": "name", "title": "candidate"}, {"field": "region", "title": "region"}]
    tips += [{"field": name, "title": name.upper(), "type": "quantitative", "format": ".4~g"} for name in TITLES]
    for safe, (colour, shape) in ((False, UNSAFE), (True, SAFE)):
        part = rows.filter((pl.col("region") == "D") == safe)
        held = part.select("name", "region", *TITLES, x=pl.col(x), y=pl.col(y)).to_dicts()
        look = {"type": "point", "shape": shape, "color": colour, "filled": True, "size": 55, "opacity": 0.85}
        yield _layer(held, look, {"tooltip": tips})
    ring = rows.filter("chosen").select(x=pl.col(x), y=pl.col(y)).to_dicts()
    yield _layer(ring, {"type": "point", "shape": "circle", **STYLES["chosen"]})


def _prior(before: tuple[float, float] | None) -> Iterator[Spec]:
    if before is not None:
        look = {"type": "point", "shape": "square", **STYLES["anchor"]}
        yield _layer([{"x": before[0], "y": before[1]}], look)


def _names(
    rows: pl.DataFrame, x: str, y: str, across: Axis, up: Axis, limits: tuple[float, float] | None,
    before: tuple[float, float] | None, width: int, height: int,
) -> Iterator[Spec]:  # fmt: skip
    """What points and limits are called, where there is room: the chosen one first, then the safe by their distance."""

    def pixel(pair: tuple[float, float]) -> tuple[float, float]:
        return width * across.share(pair[0]), height * (1 - up.share(pair[1]))

    corners = list(_corners(limits, across, up, width, height)) if limits else []
    wishes, dots = [], list(_ink(limits, across, up, width, height))
    limit_labels: set[int] = set()  # positions in `wishes`
    rows = rows.with_columns(distance=pl.Series(distances(rows["sek"].to_numpy(), rows["dus"].to_numpy())))
    for row in rows.sort(~pl.col("chosen"), pl.col("region") != "D", "distance", maintain_order=True).to_dicts():
        at = pixel((row[x], row[y]))
        dots.append((*at, 4.0))
        how_far = f", {row['distance']:.3g} away" if row["chosen"] and limits is None else ""
        reach = RINGED if row["chosen"] else FAR
        wishes.append(_wish(f"{row['name']}{how_far}", (at,), must=bool(row["chosen"]), distances=reach))
    wishes = wishes[:MOST_NAMES]
    if before is not None:
        dots.append((*pixel(before), 4.0))
        wishes.append(_wish("prior", (pixel(before),), must=True))
    if limits is None:
        dots.append((*pixel((0.0, 0.0)), 4.0))
        wishes.append(_wish("(0, 0): most utility", (pixel((0.0, 0.0)),), must=True))
        for end in rows.filter("chosen").select(x, y).rows():  # the line between the two
            dots += [(*pixel((share / 50 * end[0], share / 50 * end[1])), 1.0) for share in range(51)]
    else:
        spots = [[pixel((limits[0], up.at(share))) for share in (0.6, 0.75, 0.45, 0.3)]]
        spots.append([pixel((across.at(share), limits[1])) for share in (0.5, 0.35, 0.65, 0.2)])
        for name, limit, near in zip((x, y), limits, spots, strict=True):
            limit_labels.add(len(wishes))
            wishes.append(_wish(f"limit of {name.upper()}: {limit:g}", tuple(near), must=True, distances=(9.0,)))
    granted = place(wishes, dots, width, height, [box for _, box in corners])
    for letter, (left, upper, right, lower) in corners:
        yield _text(letter, "center", (left + right) / 2, (upper + lower) / 2, GREY, fontSize=LETTER, fontWeight="bold")
    leaders = [
        {"x": across.at(spot.point[0] / width), "y": up.at(1 - spot.point[1] / height),
         "x2": across.at(spot.end[0] / width), "y2": up.at(1 - spot.end[1] / height)}
        for spot in granted if math.dist(spot.point, spot.end) > 20
    ]  # fmt: skip
    yield _layer(
        leaders, {"type": "rule", "color": GREY, "strokeWidth": 0.6}, {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    )
    for spot in granted:
        colour = STYLES["limit"]["color"] if spot.wish in limit_labels else INK
        yield _text(wishes[spot.wish].text, spot.align, spot.x, spot.y, colour)


def _wish(text: str, near: tuple[tuple[float, float], ...], must: bool, distances: tuple[float, ...] = FAR) -> Wish:
    """A label, with minus signs as they are printed."""
    return Wish(text.replace("-", "−"), near, must, distances)


def _text(text: str, align: str, x: float, y: float, colour: str, **font: object) -> Spec:
    look = {
        "type": "text",
        "align": align,
        "baseline": "middle",
        "fontSize": FONT_SIZE,
        "text": text,
        "color": colour,
        **font,
    }
    return _layer([{}], look, {"x": {"value": x}, "y": {"value": y}})


def _ink(limits: tuple[float, float] | None, x: Axis, y: Axis, width: int, height: int) -> Iterator[Dot]:
    """What is drawn on the plane before any name: the limits."""
    if limits is None:
        return
    for share in range(0, 101, 2):
        yield width * x.share(limits[0]), height * share / 100, 0.5
        yield width * share / 100, height * (1 - y.share(limits[1])), 0.5


def _corners(limits: tuple[float, float], x: Axis, y: Axis, width: int, height: int) -> Iterator[tuple[str, Box]]:
    """The letter of each region that has room for it, and its box in the corner; the key says what it means."""
    across, up = width * x.share(limits[0]), height * y.share(limits[1])
    for letter, (_, _, (right, top)) in REGIONS.items():
        wide, high = (width - across if right else across), (height - up if top else up)
        if min(wide, high) > 2 * LETTER:
            left, upper = (
                (width - 1.5 * LETTER if right else LETTER / 2),
                (LETTER / 2 if top else height - 1.5 * LETTER),
            )
            yield letter, (left, upper, left + LETTER, upper + LETTER)
