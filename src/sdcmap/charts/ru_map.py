"""The R-U map drawn: utility across, risk up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.charts.labels import CHARACTER, FONT_SIZE
from sdcmap.charts.legend import ANCHOR_SHAPES, STYLES, map_legend
from sdcmap.charts.map_contents import map_info
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.style import CONFIG, GREY, INK, SCHEMA, colour_of, shape_of
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap

TITLE = "R-U confidentiality map"
COLUMNS = 3  # panels side by side
LEAST_APART = 0.06  # of the width, between labels of the scale of subsamples


def draw_map(
    ru: RUMap,
    *,
    mark: Choice | None = None,
    by: str | None = None,
    facet: str | Mapping[str, str] | None = None,
    colour: str | Mapping[str, str] = "method",
    label: bool | str = True,
    names: Mapping[str, str] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str = "",
    links: Mapping[str, str] | None = None,
    subsamples: pl.DataFrame | None = None,
) -> Chart:
    """The R-U confidentiality map, ready to save or to look at.

    Parameters
    ----------
    mark : a choice; its point is marked, and its rule drawn: the limit of a `Threshold`, the tangent of a `Linear`.
    by : "release" draws every candidate, "mean" each method's pooled value with two bands: the spread of its single
        releases (thin) and the error of the mean (thick), on a map of more than 40 methods for the undominated alone.
        Default: releases, or means where a measure is an expectation.
    facet : small multiples by "method" (its class), by a parameter such as "rate", or by a mapping from method text to the
        title of its panel; each panel has its own frontier.
    colour : what colours and shapes tell apart, in the same words; what a mapping leaves out are "others".
    label : write the names of the chosen and the undominated methods where they find room; "all": of every method.
    names : what to call a method instead, by its text: such as the letters of its variables.
    width, height : of one panel, in pixels.
    title : above the picture, and of its HTML page.
    links : candidate id -> the page that a click on its point opens, such as its confidentiality plot.
    subsamples : `ru.subsamples(data)`: random subsamples of the original, drawn as a curve, and above the picture as a
        scale of what a release costs: as much as throwing this share of the records away.

    Anchors that would stretch an axis beyond 1.5 times the range of the points, and infinite values, are drawn at the
    edge with an arrow; their values are written out.
    """
    width, height = width or (290 if facet else 620), height or (250 if facet else 430)
    info = map_info(
        ru, mark=mark, by=by, facet=facet, colour=colour, label=label, names=names, width=width, height=height,
        subsamples=subsamples,
    )  # fmt: skip
    if links:
        info = replace(info, points=info.points.with_columns(href=pl.col("id").replace_strict(links, default=None)))
    return Chart(map_spec(info, width, height, title), title or TITLE)


def map_spec(info: MapInfo, width: int, height: int, title: str = "") -> Spec:
    """The Vega-Lite spec of the map."""
    columns = min(COLUMNS, len(info.panels))
    panels = [_panel(info, number, columns, width, height) for number in range(len(info.panels))]
    picture = panels[0] if len(panels) == 1 else {"concat": panels, "columns": columns, "spacing": 20}
    head = {"text": title, "anchor": "start", "fontSize": 13, "offset": 12}
    return {
        "$schema": SCHEMA,
        "hconcat": [picture, map_legend(info)],
        "spacing": 18,
        "background": "white",
        "padding": 12,
        "config": CONFIG,
        **({"title": head} if title else {}),
    }


def _panel(info: MapInfo, number: int, columns: int, width: int, height: int) -> Spec:
    panel = info.panels[number]

    def here(table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("panel") == panel)

    dots = here(info.means if info.by == "mean" else info.points)
    layers = [
        *_lines(here(info.lines)),
        *_subsamples(here(info.subsamples)),
        *(_thrown_scale(here(info.subsamples), info.x) if not panel else ()),
        *_dots(info, dots, frontier=False),
        *_bands(here(info.bands)),
        *_frontier(here(info.frontier), info.stepped),
        *_dots(info, dots, frontier=True),
        *_anchors(here(info.anchors)),
        *_marks(here(info.marks)),
        *_labels(here(info.labels)),
    ]
    head = {"text": panel, "anchor": "start", "fontWeight": "bold", "fontSize": 11, "offset": 6}
    return {
        "width": width,
        "height": height,
        "layer": layers or [_layer([], {"type": "point"})],
        "encoding": {
            "x": {"field": "x", **_axis(info.x, width, titled=number + columns >= len(info.panels))},
            "y": {"field": "y", **_axis(info.y, height, titled=number % columns == 0)},
        },
        **({"title": head} if panel else {}),
    }


def _axis(axis: Axis, length: int, *, titled: bool) -> Spec:
    look: Spec = {"tickCount": max(3, length // 90), "title": axis.lines(int(length / CHARACTER)) if titled else None}
    if axis.exponents:
        look["labelExpr"] = "datum.value === 0 ? '0' : format(datum.value, '~e')"
    scale = {"domain": [axis.low, axis.high], "nice": False, "zero": False}
    return {"type": "quantitative", "scale": scale, "axis": look}


def _layer(rows: list[Row], mark: Spec, encoding: Spec | None = None) -> Spec:
    return {"data": {"values": rows}, "mark": mark, **({"encoding": encoding} if encoding else {})}


def _segments(table: pl.DataFrame, mark: Spec) -> Spec:
    rows = table.select("x", "y", "x2", "y2").to_dicts()
    return _layer(rows, {"type": "rule", **mark}, {"x2": {"field": "x2"}, "y2": {"field": "y2"}})


def _lines(table: pl.DataFrame) -> Iterator[Spec]:
    for kind in ("floor", "limit", "tangent"):
        part = table.filter(pl.col("kind") == kind, pl.col("edge") == "") if len(table) else table
        if len(part):
            yield _segments(part, STYLES[kind])


def _subsamples(table: pl.DataFrame) -> Iterator[Spec]:
    """A path through subsamples, cut at the edge of the picture, and a dot for each in it."""
    if not len(table):
        return
    path = {"type": "line", "clip": True, **STYLES["subsamples"]}
    order = {"order": {"field": "place", "type": "quantitative"}}
    rows = table.with_row_index("place").select("x", "y", "place").to_dicts()
    yield _layer(rows, path, order)
    dots = {
        "type": "point",
        "clip": True,
        "filled": True,
        "size": 14,
        "opacity": 1,
        "color": STYLES["subsamples"]["color"],
    }
    tip = {"tooltip": [{"field": "text", "title": "of the original"}]}
    yield _layer(table.filter(pl.col("inside") > 0).select("x", "y", "text").to_dicts(), dots, tip)


def _thrown_scale(table: pl.DataFrame, x: Axis) -> Iterator[Spec]:
    """A second scale above the picture: which share of the records thrown away costs as much."""
    if not len(table):
        return
    ticks = [row for row in table.select("x", "name").to_dicts() if not x.drawn(row["x"])[1]]
    if not ticks:
        return
    colour = STYLES["subsamples"]["color"]
    yield _layer(ticks, {"type": "rule", "color": colour}, {"y": {"value": -2}, "y2": {"value": -8}})
    said = [ticks[0]]
    for row in ticks[1:]:
        said += [row] if abs(x.share(row["x"]) - x.share(said[-1]["x"])) > LEAST_APART else []
    look = {"type": "text", "color": colour, "fontSize": FONT_SIZE, "baseline": "bottom"}
    yield _layer(said, look, {"y": {"value": -9}, "text": {"field": "name"}})
    head = {**look, "align": "left", "text": "costs as much as throwing away this share of the records"}
    yield _layer([{"x": x.low}], head, {"y": {"value": -24}})


def _bands(table: pl.DataFrame) -> Iterator[Spec]:
    for kind in ("spread", "error"):
        part = table.filter(pl.col("kind") == kind) if len(table) else table
        if len(part):
            yield _segments(part, STYLES[kind])


def _frontier(table: pl.DataFrame, stepped: str) -> Iterator[Spec]:
    if len(table):
        yield _layer(table.select("x", "y").to_dicts(), {"type": "line", "interpolate": stepped, **STYLES["frontier"]})


def _dots(info: MapInfo, table: pl.DataFrame, *, frontier: bool) -> Iterator[Spec]:
    """One layer for each group, and one for each way in which points lie beyond the picture."""
    if not len(table):
        return
    for (group, edge), part in table.filter(pl.col("frontier") == frontier).group_by(
        "group", "edge", maintain_order=True
    ):
        shape = f"triangle-{edge}" if edge else shape_of(info.groups, str(group))
        fill = {"color": colour_of(info.groups, str(group)), "shape": shape, "filled": True, "opacity": 1}
        open_page = {"href": {"field": "href"}} if "href" in part.columns else {}
        encoding = {"tooltip": _tooltip(part), **open_page}
        yield _layer(_rows(part), {"type": "point", **fill, **_size(info, frontier)}, encoding)


def _size(info: MapInfo, frontier: bool) -> Spec:
    small = len(info.panels) > 1
    if info.by == "mean":
        size = 32 if small else 55
        return {"size": size} if frontier else {"size": 0.6 * size, "fillOpacity": 0.55}
    many = small or len(info.points) > 1500
    if frontier:
        return {"size": 26 if small else 42 if many else 55, "stroke": "white", "strokeWidth": 0.6}
    return {"size": 12 if many else 24, "fillOpacity": 0.3 if many else 0.5, "strokeWidth": 0}


def _rows(table: pl.DataFrame) -> list[Row]:
    """What the spec holds of a point: its names and numbers, nothing of the data; infinity as a word."""
    columns = [
        name for name in ("id", "name", "draw", "count", "membership", "x", "y", "href") if name in table.columns
    ]
    rows = table.select(columns)
    if any(table["edge"] != ""):
        words = {name: [_word(value) for value in table[name]] for name in ("risk", "utility")}
        rows = rows.with_columns(**{name: pl.Series(said) for name, said in words.items()})
    return rows.to_dicts()


def _tooltip(table: pl.DataFrame) -> list[Spec]:
    beyond = any(table["edge"] != "")
    fields: list[Spec] = [{"field": "name", "title": "method"}]
    fields += [{"field": "draw", "title": "draw"}, {"field": "id", "title": "id"}] if "id" in table.columns else []
    for name, drawn in (("risk", "y"), ("utility", "x")):
        number = {"field": drawn, "type": "quantitative", "format": ".4~g", "title": name}
        fields.append({"field": name, "title": name} if beyond else number)
    if "count" in table.columns:
        fields.append({"field": "count", "title": "releases"})
        fields.append({"field": "membership", "title": "on the frontier in", "type": "quantitative", "format": ".0%"})
    return fields


def _anchors(table: pl.DataFrame) -> Iterator[Spec]:
    for row in table.to_dicts():
        shape = f"triangle-{row['edge']}" if row["edge"] else ANCHOR_SHAPES[row["name"]]
        numbers = {"risk": _word(row["risk"]), "utility": _word(row["utility"])}
        place = {"what": row["name"], **numbers, "x": row["x"], "y": row["y"]}
        tips = [{"field": name, "title": name} for name in ("what", "risk", "utility")]
        yield _layer([place], {"type": "point", "shape": shape, **STYLES["anchor"]}, {"tooltip": tips})


def _marks(table: pl.DataFrame) -> Iterator[Spec]:
    """A ring around the chosen point; by mean, a dot for the chosen draw and a line to its mean."""
    rows = table.to_dicts()
    if len(rows) == 2:
        both = [{name: row[name] for name in ("x", "y")} for row in rows]
        yield _layer(both, {"type": "line", "color": INK, "strokeWidth": 0.8})
    for row in rows:
        yield _layer([{"x": row["x"], "y": row["y"]}], {"type": "point", "shape": "circle", **STYLES[row["kind"]]})


def _labels(table: pl.DataFrame) -> Iterator[Spec]:
    """Leader lines, then each text on a white halo."""
    if not len(table):
        return
    leaders = table.drop_nulls("from_x").select(x="from_x", y="from_y", x2="to_x", y2="to_y")
    if len(leaders):
        yield _segments(leaders, {"color": GREY, "strokeWidth": 0.6})
    for (align, kind), part in table.group_by("align", "kind", maintain_order=True):
        rows = part.select("x", "y", "text").to_dicts()
        drawn_like = {"line": "limit", "floor": "floor", "subsamples": "subsamples"}.get(kind)
        colour = STYLES[drawn_like]["color"] if drawn_like else INK
        look = {"type": "text", "align": align, "baseline": "middle", "fontSize": FONT_SIZE, "color": colour}
        halo = {**look, "color": "white", "stroke": "white", "strokeWidth": 3, "strokeJoin": "round"}
        yield _layer(rows, halo, {"text": {"field": "text"}})
        yield _layer(rows, look, {"text": {"field": "text"}})


def _word(value: float) -> str:
    return "infinite" if value == float("inf") else f"{value:.4g}"
