"""The confidentiality plot: each record by its neighbors and its perturbation, with the unsafe zone. Seri (2005)."""

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
from sdcmap.charts.style import FROM_TO, GRAY, INK, layer, number, page
from sdcmap.core.audience import Audience
from sdcmap.core.chart import Chart, Spec
from sdcmap.core.map_options import MapLook
from sdcmap.map import RUMap

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

TITLE = "Confidentiality plot"
MAX_RECORDS_AS_POINTS = 5000  # more records are drawn as a density
MAX_UNSAFE_MARKS = 20_000  # unsafe records that are drawn over a density
SAFE, UNSAFE, ZONE, LIMIT_COLOR = "#0072B2", "#D55E00", "#FBE9E1", "#B22222"
CROSS = "M-1,-1L1,1M-1,1L1,-1"
STYLES: dict[str, Spec] = {
    "record": {"shape": "circle", "filled": True, "size": 22, "opacity": 0.8},
    "link": {"shape": CROSS, "filled": False, "size": 32, "strokeWidth": 1.3, "opacity": 1},
    "nearest": {"shape": "square", "filled": False, "size": 95, "strokeWidth": 1.4, "opacity": 1},
    "largest": {"shape": "square", "filled": True, "size": 95, "opacity": 1},
}
WORDS = {
    "link": "own original in the neighborhood", "nearest": "own original is the nearest unit",
    "largest": "largest unit",
}  # fmt: skip
LINES: dict[float, Spec] = {1.0: {"strokeWidth": 1.5}, 0.5: {"strokeWidth": 1.3, "strokeDash": [6, 4]}}
OTHER_LINE: Spec = {"strokeDash": [2, 2]}  # of another q


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
    """Draw the plot of one table; external readers get only binned counts."""
    to, title = Audience(audience, len(table)), title or TITLE
    if to.is_external:
        return Chart(page(title, hconcat=[draw_bins(table, to)], spacing=18), title)
    info = plot_info(table)
    head = {"subtitle": info.subtitle, "subtitleColor": GRAY, "subtitleFontSize": 10.5, "subtitlePadding": 5}
    views = [_plot(info, width, height), legend_view(info.legend)]
    return Chart(page(title, head=head, hconcat=views, spacing=18), title)


def draw_side_by_side(tables: Mapping[str, RecordTable], *, audience: str = "internal") -> Chart:
    """Draw the plots of several attacks on one file, a panel for each."""
    panels: list[Spec] = []
    for name, table in tables.items():
        to = Audience(audience, len(table))
        head: Spec = {"text": name, "anchor": "start", "fontSize": 11, "offset": 6}
        if to.is_external:
            view = draw_bins(table, to)
        else:
            info = plot_info(table)
            view = _plot(info, 320, 260)
            head |= {"subtitle": info.subtitle[:2], "subtitleColor": GRAY, "subtitleFontSize": 10}
        panels.append({**view, "title": head})
    return Chart(page(TITLE, hconcat=[{"concat": panels, "columns": 2, "spacing": 24}], spacing=18), TITLE)


# ---- contents -------------------------------------------------------------------------------------------------
def plot_info(table: RecordTable) -> PlotInfo:
    """Return everything on the plot: axes, marks, density, lines, zone, legend and subtitle."""
    rule, social = table.rule, table.uses_frequencies
    x = RecordAxis.of(table.neighbors, float(rule.k), _x_title(table), counts=True)
    threshold, room = (1.0, 1.0) if social else (rule.r, 1.15)
    y = RecordAxis.of(table.perturbation, threshold, _y_title(table), counts=False, room=room)
    # Points of many records would cover each other, so a density is drawn and only unsafe records are points.
    many = len(table) > MAX_RECORDS_AS_POINTS
    shapes = [1.0, 0.5] if rule.q in (1.0, 0.5) else [1.0, 0.5, rule.q]
    lines = {} if social else {q: safety_line(rule.k, rule.r, q) for q in shapes}
    zone = lines[rule.q] if not social else pl.DataFrame({"x": [0.0, float(rule.k)], "y": [y.high, y.high]})
    marks = _marks(table, many)
    density = heat(table.neighbors, table.perturbation, x, y) if many else pl.DataFrame()
    legend = _legend(table, lines, set(marks["kind"]), many)
    return PlotInfo(x, y, marks, density, lines, zone, legend, list(_subtitle(table, many)))


def safety_line(k: float, r: float, q: float) -> pl.DataFrame:
    """Return the points where (N/k)^q + (p/r)^q = 1."""
    share = np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 8), np.linspace(0.012, 1, 90)])
    return pl.DataFrame({"x": k * share, "y": r * np.maximum(0.0, 1 - share**q) ** (1 / q)})


def _marks(table: RecordTable, many: bool) -> pl.DataFrame:
    """Return a row for each mark: a point for each record, or a cross where its link is in the neighborhood."""
    judged = table
    largest = judged.rows == table.largest
    shown = np.flatnonzero(~judged.safe) if many else np.arange(len(table))
    # Evenly spaced rows stand for all unsafe records; a random sample would change from one drawing to the next.
    if len(shown) > MAX_UNSAFE_MARKS:
        shown = shown[np.linspace(0, len(shown) - 1, MAX_UNSAFE_MARKS).astype(np.int64)]
    drawn = np.isin(np.arange(len(table)), shown) & ~largest
    kinds = {"record": drawn & ~judged.link_in, "link": drawn & judged.link_in, "nearest": drawn & judged.nearest}
    columns = {"row": judged.rows, "x": table.neighbors.astype(float), "y": table.perturbation, "safe": judged.safe}
    everyone = pl.DataFrame(columns)
    return pl.concat(
        everyone.filter(pl.Series(which)).with_columns(kind=pl.lit(kind))
        for kind, which in {**kinds, "largest": largest}.items()
    )


def _x_title(table: RecordTable) -> str:
    if table.uses_frequencies:
        where = "the population" if table.rule.frequency == "population" else "the file"
        return f"Records of {where} with the same combination"
    stopped = table.counted_to
    return "Number of neighbors" + (f", counted to {stopped}" if stopped else "")


def _y_title(table: RecordTable) -> str:
    if table.uses_frequencies:
        return "Information loss of the record"
    unit = {
        ("raw", "relative"): "share of the record's size", ("log", "relative"): "share of the record's size, log scale",
        ("raw", "absolute"): "root mean square, in the variables' unit",
        ("log", "absolute"): "root mean square log-difference",
        ("standardized", "absolute"): "root mean square, in standard deviations",
    }[table.rule.scale, table.rule.distance or "relative"]  # fmt: skip
    return f"Perturbation ({unit})"


def _legend(table: RecordTable, lines: Mapping[float, pl.DataFrame], kinds: set[str], many: bool) -> list[Entry]:
    def point(style: Spec, words: str) -> Entry:
        return Entry("point", style, words)

    unsafe, k, q = len(table.unsafe), table.rule.k, table.rule.q
    plain, box = {**STYLES["record"], "size": 40}, {"shape": "square", "filled": True}
    if many:
        entries = [point({**box, "color": "#9ecae1", "size": 120}, "density of all records")]
    else:
        entries = [point({**plain, "color": SAFE}, f"safe record ({len(table) - unsafe:,})")]
    entries.append(point({**plain, "color": UNSAFE}, f"unsafe record ({unsafe:,})"))
    more = ", unsafe ones drawn" if many else ""
    counts = {
        "link": f" ({table.links_in_reach:,}){more}", "nearest": f" ({table.nearest_links:,}){more}",
        "largest": f", by {table.size}",
    }  # fmt: skip
    for kind, words in WORDS.items():
        if kind in kinds:
            style = {**STYLES[kind], "size": min(STYLES[kind]["size"], 70), "color": INK}
            entries.append(point(style, words + counts[kind]))
    for shape in lines:
        words = {1.0: "straight safety line", 0.5: "curved safety line"}.get(shape, "safety line")
        words += f", q = {shape:g} ({table.unsafe_at(shape):,} unsafe)"
        entries.append(Entry("rule", {"color": LIMIT_COLOR, **LINES.get(shape, OTHER_LINE)}, words))
    zone = f"unsafe zone (q = {q:g})"
    if table.uses_frequencies:
        entries.append(Entry("rule", {"color": LIMIT_COLOR, **LINES[1.0]}, f"k = {k}"))
        zone = f"unsafe zone: fewer than {k}"
    return [*entries, point({**box, "color": ZONE, "size": 160, "opacity": 1}, zone)]


def _subtitle(table: RecordTable, many: bool) -> Iterator[str]:
    rule, unsafe = table.rule, len(table.unsafe)
    left_out = f"; {len(table.left_out):,} left out" if len(table.left_out) else ""
    within = f" within {', '.join(rule.within)}" if rule.within else ""
    yield f"{len(table):,} records on {', '.join(rule.on)}{within}{left_out}"
    if table.uses_frequencies:
        yield f"safe from k = {rule.k}"
    else:
        how = "" if rule.delta is not None else f" (α = {rule.alpha:g})"
        safe = f"safe from k = {rule.k} neighbors or perturbation r = {rule.r:g}"
        yield f"δ = {table.delta:.4g}{how}; {safe}; {table.empty:,} without a neighbor"
    if table.linked < len(table):
        yield f"{table.linked:,} records are compared with their own original"
    if rule.neighborhood == "fellegi-sunter":
        yield "neighborhood where m(z)/u(z) is largest (Fellegi-Sunter)"
    if many and unsafe > MAX_UNSAFE_MARKS:
        yield f"{MAX_UNSAFE_MARKS:,} of {unsafe:,} unsafe records are drawn, evenly spaced in the file"
    if table.ties:
        own = "1 record has" if table.ties == 1 else f"{table.ties:,} records have"
        yield f"{own} other units exactly as near as the own original"


# ---- the drawing ----------------------------------------------------------------------------------------------
def _plot(info: PlotInfo, width: int, height: int) -> Spec:
    many = len(info.density) > 0
    lines = [
        layer(path.to_dicts(), {"type": "line", "color": LIMIT_COLOR, "clip": True, **LINES.get(q, OTHER_LINE)})
        for q, path in info.lines.items()
    ]
    if not lines:  # the vertical line at k
        k = [{"x": float(info.zone["x"].max())}]  # type: ignore[arg-type]
        lines = [layer(k, {"type": "rule", "color": LIMIT_COLOR, **LINES[1.0]}, y={"value": 0}, y2={"value": height})]
    zone = [{**row, "floor": 0.0} for row in info.zone.to_dicts()]
    layers = [
        layer(zone, {"type": "area", "color": ZONE, "opacity": 1, "clip": True}, y2={"field": "floor"}),
        *([_density(info.density)] if many else lines),
        *_points(info),
        *(lines if many else []),
    ]
    encoding = {"x": {"field": "x", **info.x.spec(width)}, "y": {"field": "y", **info.y.spec(height)}}
    return {"width": width, "height": height, "layer": layers, "encoding": encoding}


def _density(table: pl.DataFrame) -> Spec:
    top = float(table["records"].max())  # type: ignore[arg-type]
    legend = {"title": "records", "orient": "bottom", "direction": "horizontal", "gradientLength": 160, "format": ",d",
              "gradientThickness": 9, "titleFontSize": 10, "titleFontWeight": "normal", "offset": 6}  # fmt: skip
    scale = {"type": "log", "domain": [1, max(10.0, top)], "range": ["#dbe9f4", "#08306b"]}
    color = number("records", legend=legend, scale=scale)
    return layer(table.to_dicts(), {"type": "rect", "clip": True, "strokeWidth": 0}, **FROM_TO, color=color)


def _points(info: PlotInfo) -> Iterator[Spec]:
    """Yield the marks from bottom to top: safe before unsafe, points, links in reach, nearest links, the largest unit."""
    tips = [{"field": "row", "title": "row of the masked file"},
            number("x", title=info.x.title, format=",.6~g"), number("y", title=info.y.title, format=".4~g")]  # fmt: skip
    small = info.marks.filter(pl.col("kind") != "largest").height > 1000
    for kind, style in STYLES.items():
        for safe in (True, False):
            part = info.marks.filter(pl.col("kind") == kind, pl.col("safe") == safe)
            size = style["size"] * (0.4 if small and kind != "largest" else 1)
            color = INK if kind == "largest" else SAFE if safe else UNSAFE
            mark = {"type": "point", **style, "size": size, "color": color}
            if len(part):
                yield layer(part.select("row", "x", "y").to_dicts(), mark, tooltip=tips)


# ---- the R-U map linked to the confidentiality plots of its points --------------------------------------------------
def draw_linked(ru: RUMap, tables: Mapping[str, RecordTable], **options: Unpack[MapLook]) -> dict[str, Chart]:
    """Return charts by file name: in `map.html`, a click on a point opens its confidentiality plot `records-<id>.html`.

    tables : candidate id -> its record table. options : of `draw_map`.
    """
    methods = dict(ru.points.select("id", "method").iter_rows())
    links = {name: f"records-{name}.html" for name in tables}
    plots = {
        links[name]: draw_confidentiality(table, title=f"Confidentiality plot: {methods.get(name, name)}")
        for name, table in tables.items()
    }
    return {"map.html": draw_map(ru, by="release", links=links, **options), **plots}
