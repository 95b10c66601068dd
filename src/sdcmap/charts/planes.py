"""The two planes of the global criterion: global risk with its limits and regions, and global utility with distances.

Trottini (2001), figures 1 and 2. At 0 the target is known exactly.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from sdcmap.charts.label_placement import FONT_SIZE, LABEL_DISTANCES, Box, Dot, LabelRequest, position_labels
from sdcmap.charts.legend import STYLES, Entry, legend_view
from sdcmap.charts.plane_axis import PlaneAxis, plane_axis
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
PANELS_PER_LINE = 3  # planes side by side, where there are several intruders or users
LETTER_SIZE = 13  # pixels, of the letters A to D
MAX_NAMES = 12  # candidates with a label; more do not fit
MAX_NAME_LENGTH = 26  # characters of a label; if a name is longer, points are numbered and the legend has the names
LEGEND_CHARACTERS = 44  # of a line of the legend
RING_LABEL_DISTANCES = (13.0, *LABEL_DISTANCES[1:])  # pixels from a point with a ring to its label
Pair = tuple[float, float]


class Plane(NamedTuple):
    """One plane: the columns across and up, their axes, limits and prior (None: not drawn), and its size in pixels.

    Limits and prior are values; `pixel` and `place` say where values are drawn.
    """

    columns: tuple[str, str]
    x: PlaneAxis
    y: PlaneAxis
    limits: Pair | None
    prior: Pair | None
    width: int
    height: int

    def place(self, pair: Pair) -> Pair:
        return self.x.coordinate(pair[0]), self.y.coordinate(pair[1])

    def pixel(self, pair: Pair) -> Pair:
        x, y = self.place(pair)
        return self.width * self.x.axis.share(x), self.height * (1 - self.y.axis.share(y))

    def back(self, pixel: Pair) -> Pair:
        """Return the coordinates of a pixel."""
        return self.x.axis.at(pixel[0] / self.width), self.y.axis.at(1 - pixel[1] / self.height)

    def is_beyond(self, pair: Pair) -> bool:
        return self.x.is_beyond(pair[0]) or self.y.is_beyond(pair[1])


class Panel(NamedTuple):
    """What one plane shows: its heading, and the columns across and up."""

    heading: str
    columns: tuple[str, str]


RISK, UTILITY = Panel("Global risk", ("iek", "rdh")), Panel("Global utility", ("sek", "dus"))


def draw_criterion(
    ru: RUMap, choice: Choice, *, unit: str | None = None, names: Mapping[str, str] | None = None, utility: bool = True
) -> Chart:
    """Draw both planes for a choice by `GlobalCriterion`, one for each intruder and each user.

    unit : at the axes; by default "of prior uncertainty" where all measures are shares of it. names : names of methods, by
    their text. utility : draw the planes of utility too.
    """
    rule = choice.rule
    if not isinstance(rule, GlobalCriterion):
        raise PlanError("the planes of global risk and utility belong to a choice by GlobalCriterion.")
    if unit is None:
        scales = {getattr(ru.scores.values.get(name), "scale", "") for name in rule.measures}
        unit = "of prior uncertainty" if scales == {"prior"} else ""
    table = rule.table(ru)
    labels = [(names or {}).get(method) or ru.scores.name_of(method) for method in table["method"]]
    by_release = "id" in table.columns
    chosen = table["id"] == (choice.candidate or "") if by_release else table["method"] == choice.method
    return draw_planes(
        table.with_columns(pl.Series("name", labels, pl.String), chosen=chosen), agency_limit=rule.agency_limit,
        intruder_limit=rule.intruder_limit, prior=rule.prior(ru), units=(unit, unit), utility=utility,
        risks=_panels(ru, RISK, rule.iek), utilities=_panels(ru, UTILITY, rule.sek),
    )  # fmt: skip


def _panels(ru: RUMap, single: Panel, measures: Sequence[str]) -> list[Panel]:
    """Return one panel for each intruder or user, named by what they want to know."""
    if len(measures) == 1:
        return [single]
    who = "intruder" if single is RISK else "user"
    subjects = [getattr(ru.scores.values.get(name), "on", "") for name in measures]
    across, up = single.columns
    return [
        Panel(f"{single.heading}, {who} {i}: {subject or 'identity'}", (f"{across} {i}", f"{up} {i}"))
        for i, subject in enumerate(subjects, 1)
    ]


def draw_planes(
    rows: pl.DataFrame, *, agency_limit: float, intruder_limit: float, prior: Mapping[str, float] | None = None,
    units: tuple[str, str] = ("", ""), utility: bool = True, width: int = 330, height: int = 300, title: str = "",
    risks: Sequence[Panel] = (RISK,), utilities: Sequence[Panel] = (UTILITY,),
) -> Chart:  # fmt: skip
    """Draw global risk with limits and regions A to D and, beside it, global utility with the distance to (0, 0).

    rows : columns name, iek, rdh, sek, dus, region, and chosen (whether it is the one to release); infinite ones are left
        out. prior : iek, rdh (and sek, dus) before any release. units : of the agency's estimates, and of own knowledge.
    utility : draw the second plane too. risks, utilities : the planes of several intruders and users; then each row of the
        chart has those of one kind.
    """
    columns = {column for panel in (*risks, *utilities) for column in panel.columns}
    shown = _label(rows.filter(*(pl.col(name).is_finite() for name in (*TITLES, *sorted(columns)))))
    size = width, height
    # The planes have different scales: risk compares the intruder's knowledge, utility that of society.
    limits = agency_limit, intruder_limit
    first = [_plane(shown, panel, limits, prior, units, size) for panel in risks]
    second = [_plane(shown, panel, None, prior, units, size) for panel in utilities] if utility else []
    legend = legend_view(_legend(shown, prior))
    separate = {"resolve": {"scale": {"x": "independent", "y": "independent"}}}
    if len(first) == 1 and len(second) <= 1:
        picture: Spec = {"hconcat": [*first, *second, legend], "spacing": 28, **separate}
    else:
        lines = [{"hconcat": line, "spacing": 28, **separate} for line in _lines([*first], [*second, legend])]
        picture = {"vconcat": lines, "spacing": 24, **separate}
    return Chart(page(title, **picture), title or "Global risk and global utility")


def _lines(*groups: list[Spec]) -> Iterator[list[Spec]]:
    """Yield the panels of each group, at most so many side by side."""
    for group in groups:
        yield from (group[start : start + PANELS_PER_LINE] for start in range(0, len(group), PANELS_PER_LINE))


def _label(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in order of preference with a `label`: the name, or a number if a name is too long for the plane.

    The chosen one comes first, then safe ones by distance.
    """
    if "distance" not in rows.columns:
        distance = distances(rows["sek"].to_numpy(), rows["dus"].to_numpy())
        rows = rows.with_columns(distance=pl.Series(distance, dtype=pl.Float64))
    rows = rows.sort(~pl.col("chosen"), pl.col("region") != "D", "distance", maintain_order=True)
    is_long = len(rows) > 0 and rows["name"].str.len_chars().max() > MAX_NAME_LENGTH  # type: ignore[operator]
    labels = [str(i) for i in range(1, len(rows) + 1)] if is_long else rows["name"].to_list()
    return rows.with_columns(pl.Series("label", labels, pl.String))


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
    numbered = rows.filter(pl.col("label") != pl.col("name"))
    for label, name in numbered.select("label", "name").head(MAX_NAMES).rows():
        lines = textwrap.wrap(name, LEGEND_CHARACTERS)
        yield Entry("", {}, f"{label}:  {lines[0]}")
        yield from (Entry("", {}, f"      {line}") for line in lines[1:])


def _plane(
    rows: pl.DataFrame, panel: Panel, limits: Pair | None, prior: Mapping[str, float] | None, units: tuple[str, str],
    size: tuple[int, int],
) -> Spec:  # fmt: skip
    columns = panel.columns
    before = None if prior is None or columns[0] not in prior else (prior[columns[0]], prior[columns[1]])
    axes = []
    for number_of_axis, column in enumerate(columns):
        better = "lower is safer" if limits else "higher is better"
        guides = () if before is None else (before[number_of_axis],)
        limit = limits[number_of_axis] if limits else None
        axes.append(plane_axis(TITLES[column.split()[0]], better, rows[column], guides, limit))
    plane = Plane(columns, axes[0], axes[1], limits, before, *size)
    layers = [*(_regions(plane, limits) if limits else _goal(rows, plane)), *_points(rows, plane), *_names(rows, plane)]
    head = {"text": panel.heading, "anchor": "start", "frame": "group"}
    return {
        "width": plane.width, "height": plane.height, "layer": layers,
        "title": {**head, "fontWeight": "bold", "fontSize": 11, "offset": 8},
        "encoding": {"x": plane.x.channel("x", units[0]), "y": plane.y.channel("y", units[1])},
    }  # fmt: skip


def _regions(plane: Plane, limits: Pair) -> Iterator[Spec]:
    """Yield four tinted rectangles, and the two limits as dashed lines."""
    x, y = plane.x.axis, plane.y.axis
    across, up = plane.place(limits)
    for tint, _, (right, top) in REGIONS.values():
        box = {"x": across if right else x.low, "x2": x.high if right else across,
               "y": up if top else y.low, "y2": y.high if top else up}  # fmt: skip
        yield layer([box], {"type": "rect", "color": tint}, **FROM_TO)
    lines = [{"x": across, "x2": across, "y": y.low, "y2": y.high},
             {"x": x.low, "x2": x.high, "y": up, "y2": up}]  # fmt: skip
    yield layer(lines, {"type": "rule", **STYLES["limit"]}, **FROM_TO)


def _goal(rows: pl.DataFrame, plane: Plane) -> Iterator[Spec]:
    """Yield the point of most utility, and the line from it to the chosen candidate."""
    x, y = plane.place((0.0, 0.0))
    ends = [plane.place(pair) for pair in rows.filter("chosen").select(plane.columns).rows()]
    line = [{"x": x, "y": y, "x2": end[0], "y2": end[1]} for end in ends]
    yield layer(line, {"type": "rule", "color": INK, "strokeWidth": 1}, **FROM_TO)
    look = {"type": "point", "shape": "cross", "filled": True, "color": INK, "size": 55, "opacity": 1}
    yield layer([{"x": x, "y": y}], look)


def _points(rows: pl.DataFrame, plane: Plane) -> Iterator[Spec]:
    """Yield safe and unsafe candidates by color and shape, a ring around the chosen one, then the prior."""
    tips = [{"field": "name", "title": "candidate"}, {"field": "region", "title": "region"}]
    tips += [number(name, title=name.upper(), format=".4~g") for name in TITLES]

    def located(part: pl.DataFrame) -> list[dict[str, Any]]:
        places = [plane.place(pair) for pair in part.select(plane.columns).rows()]
        facts = part.select("name", "region", *TITLES).to_dicts()
        return [{**fact, "x": x, "y": y} for fact, (x, y) in zip(facts, places, strict=True)]

    for safe, (color, shape) in ((False, UNSAFE), (True, SAFE)):
        shown = located(rows.filter((pl.col("region") == "D") == safe))
        look = {"type": "point", "shape": shape, "color": color, "filled": True, "size": 55, "opacity": 0.85}
        yield layer(shown, look, tooltip=tips)
    yield layer(located(rows.filter("chosen")), {"type": "point", "shape": "circle", **STYLES["chosen"]})
    if plane.prior is not None:
        look = {"type": "point", "shape": "square", **STYLES["anchor"]}
        x, y = plane.place(plane.prior)
        yield layer([{"x": x, "y": y}], look)


def _names(rows: pl.DataFrame, plane: Plane) -> Iterator[Spec]:
    """Yield the names of points and limits, where there is room: the chosen one first, then safe ones by distance."""
    limits, prior, pixel = plane.limits, plane.prior, plane.pixel
    corners = list(_corners(plane, limits)) if limits else []
    requests: list[LabelRequest] = []
    dots: list[Dot] = []
    limit_labels: set[int] = set()  # positions in `requests`
    for row in rows.to_dicts():
        pair = row[plane.columns[0]], row[plane.columns[1]]
        at = pixel(pair)
        dots.append((*at, 4.0))
        how_far = f", {math.hypot(*pair):.3g} away" if row["chosen"] and limits is None else ""
        reach = RING_LABEL_DISTANCES if row["chosen"] else LABEL_DISTANCES
        words = f"{row['label']}{how_far}"
        requests.append(_request_label(words, (at,), required=bool(row["chosen"]), distances=reach))
    requests = requests[:MAX_NAMES]
    goals = {} if prior is None else {f"prior{_beyond(plane, prior)}": prior}
    if limits is None:
        goals["toward (0, 0): most utility" if plane.is_beyond((0.0, 0.0)) else "(0, 0): most utility"] = (0.0, 0.0)
    for words, goal in goals.items():
        dots.append((*pixel(goal), 4.0))
        requests.append(_request_label(words, (pixel(goal),), required=True))
    if limits is None:
        for end in rows.filter("chosen").select(plane.columns).rows():  # labels avoid the line from (0, 0)
            (x1, y1), (x2, y2) = pixel((0.0, 0.0)), pixel(end)
            dots += [(x1 + share / 50 * (x2 - x1), y1 + share / 50 * (y2 - y1), 1.0) for share in range(51)]
    else:
        for share in range(0, 101, 2):  # labels avoid the lines of the limits
            dots.append((pixel(limits)[0], plane.height * share / 100, 0.5))
            dots.append((plane.width * share / 100, pixel(limits)[1], 0.5))
        across, up = pixel(limits)
        spots = [[(across, plane.height * (1 - share)) for share in (0.6, 0.75, 0.45, 0.3)]]
        spots.append([(plane.width * share, up) for share in (0.5, 0.35, 0.65, 0.2)])
        for name, limit, near in zip((column.split()[0] for column in plane.columns), limits, spots, strict=True):
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


def _beyond(plane: Plane, pair: Pair) -> str:
    """Return the numbers of a point that lies outside the plane and is drawn at its edge; "" for any other."""
    return f" ({pair[0]:.3g}, {pair[1]:.3g}), outside" if plane.is_beyond(pair) else ""


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
    across, up = plane.pixel(limits)[0], height - plane.pixel(limits)[1]
    for letter, (_, _, (right, top)) in REGIONS.items():
        if min(width - across if right else across, height - up if top else up) > 2 * LETTER_SIZE:
            left = width - 1.5 * LETTER_SIZE if right else LETTER_SIZE / 2
            upper = LETTER_SIZE / 2 if top else height - 1.5 * LETTER_SIZE
            yield letter, (left, upper, left + LETTER_SIZE, upper + LETTER_SIZE)
