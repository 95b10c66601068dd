"""The confidentiality plot: each record by its neighbours and its perturbation, with the unsafe zone.  Seri (2005)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
import polars as pl

from sdcmap.charts.legend import Entry, legend_view
from sdcmap.charts.record_axes import RecordAxis, heat
from sdcmap.charts.record_bins import draw_bins
from sdcmap.charts.ru_map import draw_map
from sdcmap.charts.style import CONFIG, GREY, INK, SCHEMA
from sdcmap.core.audience import Audience
from sdcmap.core.chart import Chart, Spec
from sdcmap.core.map_options import MapLook
from sdcmap.kernels.arrays import Array
from sdcmap.map import RUMap

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

TITLE = "Confidentiality plot"
MANY = 5000  # above this a density stands for the records
MOST_MARKS = 20_000  # unsafe records drawn over a density
SAFE, UNSAFE, ZONE, LINE = "#0072B2", "#D55E00", "#FBE9E1", "#B22222"
CROSS = "M-1,-1L1,1M-1,1L1,-1"
STYLES: dict[str, Spec] = {
    "record": {"shape": "circle", "filled": True, "size": 22, "opacity": 0.8},
    "link": {"shape": CROSS, "filled": False, "size": 32, "strokeWidth": 1.3, "opacity": 1},
    "nearest": {"shape": "square", "filled": False, "size": 95, "strokeWidth": 1.4, "opacity": 1},
    "largest": {"shape": "square", "filled": True, "size": 95, "opacity": 1},
}
WORDS = {
    "link": "own original in the neighbourhood", "nearest": "own original is the nearest unit",
    "largest": "largest unit",
}  # fmt: skip
LINES: dict[float, Spec] = {1.0: {"strokeWidth": 1.5}, 0.5: {"strokeWidth": 1.3, "strokeDash": [6, 4]}}


@dataclass(frozen=True)
class PlotInfo:
    """What the plot shows. marks : row, x, y, kind, safe. density : x, x2, y, y2, records. lines : by q, a path each."""

    x: RecordAxis
    y: RecordAxis
    marks: pl.DataFrame
    density: pl.DataFrame
    lines: dict[float, pl.DataFrame]
    zone: pl.DataFrame
    legend: list[Entry]
    subtitle: list[str]


def draw_confidentiality(
    table: RecordTable, *, audience: str = "internal", title: str = "", width: int = 560, height: int = 400
) -> Chart:
    """The plot of one table; an external reader gets binned counts alone."""
    to = Audience(audience, len(table))
    if to.external:
        return Chart(_page([draw_bins(table, to)], title or TITLE), title or TITLE)
    info = plot_info(table)
    views = [_plot(info, width, height), legend_view(info.legend)]
    return Chart(_page(views, title or TITLE, info.subtitle), title or TITLE)


def draw_side_by_side(tables: Mapping[str, RecordTable], *, audience: str = "internal") -> Chart:
    """The plots of several attacks on one file, a panel each."""
    panels: list[Spec] = []
    for name, table in tables.items():
        to = Audience(audience, len(table))
        head = {"text": name, "anchor": "start", "fontSize": 11, "offset": 6}
        if to.external:
            panels.append({**draw_bins(table, to), "title": head})
            continue
        info = plot_info(table)
        view = _plot(info, 320, 260)
        panels.append(
            {**view, "title": {**head, "subtitle": info.subtitle[:2], "subtitleColor": GREY, "subtitleFontSize": 10}}
        )
    return Chart(_page([{"concat": panels, "columns": 2, "spacing": 24}], TITLE), TITLE)


def _page(views: list[Spec], title: str, subtitle: list[str] | None = None) -> Spec:
    head = {"text": title, "anchor": "start", "fontSize": 13, "offset": 12}
    if subtitle:
        head |= {"subtitle": subtitle, "subtitleColor": GREY, "subtitleFontSize": 10.5, "subtitlePadding": 5}
    return {
        "$schema": SCHEMA, "hconcat": views, "spacing": 18, "background": "white", "padding": 12, "config": CONFIG,
        "title": head,
    }  # fmt: skip


# ---- what is shown --------------------------------------------------------------------------------------------
def plot_info(table: RecordTable) -> PlotInfo:
    """All thinking of the plot: axes, marks, density, lines, zone, key and words."""
    rule, social = table.rule, table.social
    x = RecordAxis.of(table.neighbours, float(rule.k), _x_title(table), counts=True)
    threshold, room = (1.0, 1.0) if social else (rule.r, 1.15)
    y = RecordAxis.of(table.perturbation, threshold, _y_title(table), counts=False, room=room)
    many = len(table) > MANY
    shapes = [1.0, 0.5] if rule.q in (1.0, 0.5) else [1.0, 0.5, rule.q]
    lines = {} if social else {q: safety_line(rule.k, rule.r, q) for q in shapes}
    zone = lines[rule.q] if not social else pl.DataFrame({"x": [0.0, float(rule.k)], "y": [y.high, y.high]})
    marks = _marks(table, many)
    density = heat(table.neighbours, table.perturbation, x, y) if many else pl.DataFrame()
    return PlotInfo(
        x, y, marks, density, lines, zone, _legend(table, lines, marks, many), _subtitle(table, marks, many)
    )


def safety_line(k: float, r: float, q: float) -> pl.DataFrame:
    """The points where (N/k)^q + (p/r)^q = 1."""
    share = np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 8), np.linspace(0.012, 1, 90)])
    return pl.DataFrame({"x": k * share, "y": r * np.maximum(0.0, 1 - share**q) ** (1 / q)})


def _marks(table: RecordTable, many: bool) -> pl.DataFrame:
    """A row for each mark: a record is drawn as a point or, where its link is in the neighbourhood, as a cross."""
    judged = table.assessment
    columns = {"row": judged.rows, "x": table.neighbours.astype(float), "y": table.perturbation, "safe": judged.safe}
    everyone = pl.DataFrame(columns)
    largest = judged.rows == table.largest
    nearest, linked = judged.nearest & ~largest, judged.link_in & ~largest

    def some(which: Array, kind: str) -> pl.DataFrame:
        return everyone.filter(pl.Series(which)).with_columns(kind=pl.lit(kind))

    drawn = ~judged.safe if many else np.ones(len(table), dtype=bool)
    shown = np.flatnonzero(drawn)
    if len(shown) > MOST_MARKS:
        drawn = np.zeros(len(table), dtype=bool)
        drawn[shown[np.linspace(0, len(shown) - 1, MOST_MARKS).astype(np.int64)]] = True
    plain = drawn & ~linked & ~largest
    return pl.concat(
        [
            some(plain, "record"),
            some(drawn & linked, "link"),
            some(drawn & nearest, "nearest"),
            some(largest, "largest"),
        ]
    )


def _x_title(table: RecordTable) -> str:
    if table.social:
        where = "the population" if table.rule.frequency == "population" else "the file"
        return f"Records of {where} with the same combination"
    stopped = table.assessment.counted_to
    return "Number of neighbours" + (f", counted to {stopped}" if stopped else "")


def _y_title(table: RecordTable) -> str:
    if table.social:
        return "Information loss of the record"
    unit = {
        ("raw", "relative"): "share of the record's size", ("log", "relative"): "share of the record's size, log scale",
        ("raw", "absolute"): "root mean square, in the variables' unit",
        ("log", "absolute"): "root mean square log-difference",
        ("standardised", "absolute"): "root mean square, in standard deviations",
    }[table.rule.scale, table.rule.distance or "relative"]  # fmt: skip
    return f"Perturbation ({unit})"


def _legend(table: RecordTable, lines: Mapping[float, pl.DataFrame], marks: pl.DataFrame, many: bool) -> list[Entry]:
    unsafe = len(table.unsafe)
    plain, k = STYLES["record"], table.rule.k
    entries: list[Entry] = []
    if many:
        entries.append(
            Entry(
                "point", {"shape": "square", "filled": True, "color": "#9ecae1", "size": 120}, "density of all records"
            )
        )
    else:
        entries.append(Entry("point", {**plain, "size": 40, "color": SAFE}, f"safe record ({len(table) - unsafe:,})"))
    entries.append(Entry("point", {**plain, "size": 40, "color": UNSAFE}, f"unsafe record ({unsafe:,})"))
    counts = {"link": table.links_in_reach, "nearest": table.nearest_links}
    kinds = set(marks["kind"])
    for kind, words in WORDS.items():
        if kind in kinds:
            count = f" ({counts[kind]:,})" if kind in counts else f", by {table.rule.on[0]}"
            drawn = ", unsafe ones drawn" if many and kind in counts else ""
            entries.append(
                Entry(
                    "point",
                    {**STYLES[kind], "size": min(STYLES[kind]["size"], 70), "color": INK},
                    words + count + drawn,
                )
            )
    for q in lines:
        words = {1.0: "straight safety line", 0.5: "curved safety line"}.get(q, "safety line")
        entries.append(
            Entry(
                "rule",
                {"color": LINE, **LINES.get(q, {"strokeDash": [2, 2]})},
                f"{words}, q = {q:g} ({table.unsafe_at(q):,} unsafe)",
            )
        )
    if table.social:
        entries.append(Entry("rule", {"color": LINE, "strokeWidth": 1.5}, f"k = {k}"))
    words = f"unsafe zone (q = {table.rule.q:g})" if not table.social else f"unsafe zone: fewer than {k}"
    entries.append(Entry("point", {"shape": "square", "filled": True, "color": ZONE, "size": 160, "opacity": 1}, words))
    return entries


def _subtitle(table: RecordTable, marks: pl.DataFrame, many: bool) -> list[str]:
    rule = table.rule
    first = f"{len(table):,} records on {', '.join(rule.on)}"
    if len(table.left_out):
        first += f"; {len(table.left_out):,} left out"
    second = f"safe from k = {rule.k}"
    if not table.social:
        how = "" if rule.delta is not None else f" (α = {rule.alpha:g})"
        second = f"δ = {table.delta:.4g}{how}; safe from k = {rule.k} neighbours or perturbation r = {rule.r:g}"
        second += f"; {table.empty:,} without a neighbour"
    lines = [first, second]
    if rule.neighbourhood == "fellegi-sunter":
        lines.append("neighbourhood where m(z)/u(z) is largest (Fellegi-Sunter)")
    unsafe = len(table.unsafe)
    if many and unsafe > MOST_MARKS:
        lines.append(f"{MOST_MARKS:,} of {unsafe:,} unsafe records are drawn, evenly spaced in the file")
    if table.ties:
        own = "1 record has" if table.ties == 1 else f"{table.ties:,} records have"
        lines.append(f"{own} other units exactly as near as the own original")
    return lines


# ---- the drawing ----------------------------------------------------------------------------------------------
def _plot(info: PlotInfo, width: int, height: int) -> Spec:
    lines = [_line(path, q) for q, path in info.lines.items()] or [_threshold(info, height)]
    many = len(info.density) > 0
    layers = [_zone(info), *([_density(info.density)] if many else lines), *_points(info), *(lines if many else [])]
    encoding = {"x": {"field": "x", **info.x.spec(width)}, "y": {"field": "y", **info.y.spec(height)}}
    return {"width": width, "height": height, "layer": layers, "encoding": encoding}


def _threshold(info: PlotInfo, height: int) -> Spec:
    """The vertical line at k."""
    k = float(info.zone["x"].max())  # type: ignore[arg-type]
    ends = {"y": {"value": 0}, "y2": {"value": height}}
    return {
        "data": {"values": [{"x": k}]},
        "mark": {"type": "rule", "color": LINE, "strokeWidth": 1.5},
        "encoding": ends,
    }


def _zone(info: PlotInfo) -> Spec:
    rows = [{**row, "floor": 0.0} for row in info.zone.to_dicts()]
    return {
        "data": {"values": rows},
        "mark": {"type": "area", "color": ZONE, "opacity": 1, "clip": True},
        "encoding": {"y2": {"field": "floor"}},
    }


def _line(path: pl.DataFrame, q: float) -> Spec:
    style = LINES.get(q, {"strokeDash": [2, 2]})
    return {"data": {"values": path.to_dicts()}, "mark": {"type": "line", "color": LINE, "clip": True, **style}}


def _density(table: pl.DataFrame) -> Spec:
    top = float(table["records"].max())  # type: ignore[arg-type]
    legend = {"title": "records", "orient": "bottom", "direction": "horizontal", "gradientLength": 160, "format": ",d",
              "gradientThickness": 9, "titleFontSize": 10, "titleFontWeight": "normal", "offset": 6}  # fmt: skip
    colour = {"field": "records", "type": "quantitative", "legend": legend,
              "scale": {"type": "log", "domain": [1, max(10.0, top)], "range": ["#dbe9f4", "#08306b"]}}  # fmt: skip
    return {
        "data": {"values": table.to_dicts()},
        "mark": {"type": "rect", "clip": True, "strokeWidth": 0},
        "encoding": {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "color": colour},
    }


def _points(info: PlotInfo) -> Iterator[Spec]:
    """Safe ones below unsafe ones, points below links in reach below nearest links, the largest unit on top."""
    tips = [
        {"field": "row", "title": "row of the masked file"},
        {"field": "x", "type": "quantitative", "title": info.x.title, "format": ",.6~g"},
        {"field": "y", "type": "quantitative", "title": info.y.title, "format": ".4~g"},
    ]
    small = info.marks.filter(pl.col("kind") != "largest").height > 1000
    for kind, style in STYLES.items():
        for safe in (True, False):
            part = info.marks.filter(pl.col("kind") == kind, pl.col("safe") == safe)
            if not len(part):
                continue
            size = style["size"] * (0.4 if small and kind != "largest" else 1)
            colour = INK if kind == "largest" else SAFE if safe else UNSAFE
            rows = part.select("row", "x", "y").to_dicts()
            yield {
                "data": {"values": rows},
                "mark": {"type": "point", **style, "size": size, "color": colour},
                "encoding": {"tooltip": tips},
            }


# The R-U map linked to the confidentiality plots of its points.


def draw_linked(ru: RUMap, tables: Mapping[str, RecordTable], **options: Unpack[MapLook]) -> dict[str, Chart]:
    """Charts by file name: `map.html`, in which a click on a point opens its confidentiality plot `records-<id>.html`.

    tables : candidate id -> its record table. options : of `draw_map`.
    """
    methods = dict(ru.points.select("id", "method").iter_rows())
    links = {name: f"records-{name}.html" for name in tables}
    plots = {
        links[name]: draw_confidentiality(table, title=f"Confidentiality plot: {methods.get(name, name)}")
        for name, table in tables.items()
    }
    return {"map.html": draw_map(ru, by="release", links=links, **options), **plots}
