"""Draw the R-U map: utility across, risk up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Unpack

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.charts.label_placement import CHARACTER_WIDTH, FONT_SIZE
from sdcmap.charts.legend import ANCHOR_SHAPES, CURVE, STYLES, legend_entries, legend_view
from sdcmap.charts.map_contents import map_info
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.style import FROM_TO, GRAY, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.core.map_options import MapContents
from sdcmap.map import RUMap

TITLE = "R-U confidentiality map"
COLUMNS = 3  # panels side by side
MIN_LABEL_GAP = 0.06  # of the width, between labels on the scale of subsamples


def draw_map(
    ru: RUMap, *, by: str | None = None, label: bool | str = True, width: int | None = None, height: int | None = None,
    title: str = "", links: Mapping[str, str] | None = None, subsamples: pl.DataFrame | None = None,
    **contents: Unpack[MapContents],
) -> Chart:  # fmt: skip
    """Draw the R-U confidentiality map.

    Parameters
    ----------
    mark : a choice; its point is marked, and its rule drawn: the limit of a `Threshold`, the tangent of a `Linear`.
    by : "release" draws every candidate; "mean" draws the pooled value of each method with the spread of its single
        releases (thin) and the error of the mean (thick); with more than 12 methods only undominated ones have these bands;
        "curve" draws a line through the pooled values of methods that differ in one number, as that number grows, with the
        number at each point and the error of the mean. Of several risk measures each has its own line.
        Default: curves where most methods belong to families of three or more values, and none is a swap; otherwise
        releases, or means where a measure is an expectation. With a `Threshold`, a thin line leads from the risk of a
        release to its risk with the margins that are compared with the limit.
    curve : the parameter that curves trace, such as "variance", or several; implies by="curve".
    facet : small multiples by "method" (its class), by a parameter such as "rate", or by a mapping from method text to the
        title of its panel; each panel has its own frontier.
    color : what colors and shapes stand for, stated as in `facet`; methods that a mapping omits are "others".
    label : show the names of the chosen and the undominated methods where there is room; "all": of every method.
    names : other names for methods, by their text, such as the letters of their variables.
    width, height : of one panel, in pixels.
    title : above the picture, and of its HTML page.
    links : candidate id -> the page that a click on its point opens, such as its confidentiality plot.
    units : "readable" labels the axis of a precision 1/MSE by the typical error in the unit of the variable or, for the
        utility, relative to the unmasked file; "own" writes the values themselves.
    subsamples : `ru.subsamples(data)`: random subsamples of the original, drawn as a curve, and above the picture as a
        scale: a release costs as much utility as throwing away this share of the records.

    A risk axis whose values span more than a factor of 20 is logarithmic, unless a value is 0 or below. Candidates that
    are worse than not masking are drawn as crosses, off the frontier. Anchors that would stretch an axis beyond 1.5 times
    the range of the points, and infinite values, are drawn at the edge with an arrow and their values.
    """
    facet = contents.get("facet")
    width, height = width or (290 if facet else 620), height or (250 if facet else 430)
    info = map_info(ru, by=by, label=label, width=width, height=height, subsamples=subsamples, **contents)
    if links:
        info = replace(info, points=info.points.with_columns(href=pl.col("id").replace_strict(links, default=None)))
    return Chart(map_spec(info, width, height, title), title or TITLE)


def map_spec(info: MapInfo, width: int, height: int, title: str = "") -> Spec:
    """Return the Vega-Lite spec of the map."""
    columns = min(COLUMNS, len(info.panels))
    panels = [draw_panel(info, number, columns, width, height) for number in range(len(info.panels))]
    picture = panels[0] if len(panels) == 1 else {"concat": panels, "columns": columns, "spacing": 20}
    return page(title, hconcat=[picture, legend_view(legend_entries(info))], spacing=18)


def draw_panel(info: MapInfo, index: int, columns: int, width: int, height: int) -> Spec:
    """Return the spec of one panel; only panels at the left and at the bottom have axis titles."""
    panel = info.panels[index]

    def here(table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("panel") == panel)

    dots = here(info.dots)
    # From bottom to top: lines, then points, then what must stay visible.
    layers = [
        *_segments(here(info.lines), "floor", "limit", "tangent"),
        *_subsamples(here(info.subsamples), info.x, scale=not panel),
        *_bands(info, here(info.bands)),
        *_dots(info, dots, frontier=False),
        *_curves(info, here(info.curves)),
        *_frontier(here(info.frontier), info.stepped),
        *_dots(info, dots, frontier=True),
        *_anchors(here(info.anchors)),
        *_marks(here(info.marks)),
        *_labels(here(info.labels)),
    ]
    head = {"text": panel, "anchor": "start", "fontWeight": "bold", "fontSize": 11, "offset": 6}
    return {
        "width": width, "height": height, "layer": layers or [layer([], {"type": "point"})],
        "encoding": {
            "x": _axis("x", info.x, width, titled=index + columns >= len(info.panels)),
            "y": _axis("y", info.y, height, titled=index % columns == 0),
        },
        **({"title": head} if panel else {}),
    }  # fmt: skip


def _axis(field: str, axis: Axis, length: int, *, titled: bool) -> Spec:
    look: Spec = {
        "tickCount": max(3, length // 90),
        "title": axis.lines(int(length / CHARACTER_WIDTH)) if titled else None,
    }
    if axis.ticks:
        # with a count, Vega would leave out some of the stated ticks of a logarithmic axis
        look = {"title": look["title"], "values": list(axis.ticks), "labelExpr": axis.label, "labelOverlap": False}
    elif axis.exponents:
        look["labelExpr"] = "datum.value === 0 ? '0' : format(datum.value, '~e')"
    scale = {"type": "log"} if axis.is_log else {"zero": False}
    return number(field, scale={**scale, "domain": [axis.low, axis.high], "nice": False}, axis=look)


def _segments(table: pl.DataFrame, *kinds: str) -> Iterator[Spec]:
    """Yield the lines in the picture, a layer for each kind."""
    rows = [row for row in table.to_dicts() if not row.get("edge")]
    for kind in kinds:
        if ends := [{name: row[name] for name in ("x", "y", "x2", "y2")} for row in rows if row["kind"] == kind]:
            yield layer(ends, {"type": "rule", **STYLES[kind]}, **FROM_TO)


def _bands(info: MapInfo, table: pl.DataFrame) -> Iterator[Spec]:
    """Yield the intervals of means; beside curves, thin and in the color of their line."""
    if info.by != "curve":
        yield from _segments(table, "spread", "error", "margin")
        if ends := [{"x": row["x"], "y": row["y2"]} for row in table.to_dicts() if row["kind"] == "margin"]:
            yield layer(ends, {"type": "tick", "orient": "horizontal", "size": 9, "color": STYLES["margin"]["color"]})
        return
    for (group,), band in table.group_by("group", maintain_order=True) if len(table) else ():
        style = {**STYLES["curve error"], "color": info.styles[str(group)]["color"]}
        yield layer(
            band.filter(kind="error").select("x", "y", "x2", "y2").to_dicts(), {"type": "rule", **style}, **FROM_TO
        )


def _subsamples(table: pl.DataFrame, x: Axis, *, scale: bool) -> Iterator[Spec]:
    """Yield a path through subsamples with a dot for each and, if asked for, a scale above the picture.

    The scale shows which share of the records could be thrown away for the same loss of utility.
    """
    if not len(table):
        return
    color = {"color": STYLES["subsamples"]["color"]}
    path = table.with_row_index("order").select("x", "y", "order").to_dicts()
    yield layer(path, {"type": "line", "clip": True, **STYLES["subsamples"]}, order=number("order"))
    dots = table.filter(pl.col("inside") > 0).select("x", "y", "text").to_dicts()
    mark = {"type": "point", "clip": True, "filled": True, "size": 14, "opacity": 1, **color}
    yield layer(dots, mark, tooltip=[{"field": "text", "title": "of the original"}])
    ticks = [row for row in table.select("x", "name").to_dicts() if not x.locate(row["x"])[1]]
    if not scale or not ticks:
        return
    yield layer(ticks, {"type": "rule", **color}, y={"value": -2}, y2={"value": -8})
    # Labels that would overlap are left out; every tick stays.
    labeled = [ticks[0]]
    for row in ticks[1:]:
        labeled += [row] if abs(x.share(row["x"]) - x.share(labeled[-1]["x"])) > MIN_LABEL_GAP else []
    look = {"type": "text", **color, "fontSize": FONT_SIZE, "baseline": "bottom"}
    yield layer(labeled, look, y={"value": -9}, text={"field": "name"})
    head = {**look, "align": "left", "text": "costs as much as throwing away this share of the records"}
    yield layer([{"x": x.low}], head, y={"value": -24})


def _frontier(table: pl.DataFrame, stepped: str) -> Iterator[Spec]:
    if len(table):
        yield layer(table.select("x", "y").to_dicts(), {"type": "line", "interpolate": stepped, **STYLES["frontier"]})


def _curves(info: MapInfo, table: pl.DataFrame) -> Iterator[Spec]:
    """Yield a line for each family and attacker, in the order of the parameter."""
    for (group,), line in table.group_by("group", maintain_order=True):
        style = {name: info.styles[str(group)][name] for name in ("color", "strokeDash")}
        path = line.with_row_index("order").select("x", "y", "order").to_dicts()
        yield layer(path, {"type": "line", **CURVE, **style}, order=number("order"))


def _dots(info: MapInfo, table: pl.DataFrame, *, frontier: bool) -> Iterator[Spec]:
    """Yield a layer for each group, and for each side beyond which its points lie."""
    if not len(table):
        return
    drawn = table.filter(pl.col("frontier") == frontier)
    click = {"href": {"field": "href"}} if "href" in table.columns else {}
    worse = drawn.filter(pl.col("worse"), pl.col("edge") == "")
    if len(worse):
        yield layer(_rows(worse), {"type": "point", **STYLES["worse"]}, tooltip=_tooltip(worse), **click)
        drawn = drawn.filter(~(pl.col("worse") & (pl.col("edge") == "")))
    for (group, edge), part in drawn.group_by("group", "edge", maintain_order=True):
        style = info.styles[str(group)]
        shape = f"triangle-{edge}" if edge else style["shape"]
        fill = {"color": style["color"], "shape": shape, "filled": True, "opacity": 1}
        yield layer(_rows(part), {"type": "point", **fill, **_size(info, frontier)}, tooltip=_tooltip(part), **click)


def _size(info: MapInfo, frontier: bool) -> Spec:
    small = len(info.panels) > 1
    if info.by != "release":
        size = 32 if small else 55
        return {"size": size} if frontier else {"size": 0.6 * size, "fillOpacity": 0.55}
    many = small or len(info.points) > 1500
    if frontier:
        return {"size": 26 if small else 42 if many else 55, "stroke": "white", "strokeWidth": 0.6}
    return {"size": 12 if many else 24, "fillOpacity": 0.3 if many else 0.5, "strokeWidth": 0}


def _rows(table: pl.DataFrame) -> list[Row]:
    """Return what the spec contains about each point: names and numbers, never data; infinity as a word."""
    columns = ("id", "name", "attacker", "draw", "count", "membership", "x", "y", "href")
    rows = table.select(name for name in columns if name in table.columns)
    if any(table["edge"] != ""):
        rows = rows.with_columns(pl.Series(name, map(_word, table[name])) for name in ("risk", "utility"))
    return rows.to_dicts()


def _tooltip(table: pl.DataFrame) -> list[Spec]:
    beyond = any(table["edge"] != "")
    fields: list[Spec] = [{"field": "name", "title": "method"}]
    fields += [{"field": "attacker", "title": "attacker"}] if "attacker" in table.columns else []
    fields += [{"field": "draw", "title": "draw"}, {"field": "id", "title": "id"}] if "id" in table.columns else []
    for name, drawn in (("risk", "y"), ("utility", "x")):
        fields.append({"field": name, "title": name} if beyond else number(drawn, format=".4~g", title=name))
    if "count" in table.columns:
        fields.append({"field": "count", "title": "releases"})
    if "membership" in table.columns:
        fields.append(number("membership", title="on the frontier in", format=".0%"))
    return fields


def _anchors(table: pl.DataFrame) -> Iterator[Spec]:
    for row in table.to_dicts():
        shape = f"triangle-{row['edge']}" if row["edge"] else ANCHOR_SHAPES[row["name"]]
        point = {"what": row["name"], "x": row["x"], "y": row["y"]}
        point |= {name: _word(row[name]) for name in ("risk", "utility")}
        tips = [{"field": name, "title": name} for name in ("what", "risk", "utility")]
        yield layer([point], {"type": "point", "shape": shape, **STYLES["anchor"]}, tooltip=tips)


def _marks(table: pl.DataFrame) -> Iterator[Spec]:
    """Yield a ring around the chosen point; by mean, also a dot for the chosen draw and a line to its mean."""
    points = [{"x": row["x"], "y": row["y"]} for row in table.to_dicts()]
    if len(points) == 2:
        yield layer(points, {"type": "line", "color": INK, "strokeWidth": 0.8})
    for point, row in zip(points, table.to_dicts(), strict=True):
        yield layer([point], {"type": "point", "shape": "circle", **STYLES[row["kind"]]})


def _labels(table: pl.DataFrame) -> Iterator[Spec]:
    """Yield leader lines, then each text on a white halo."""
    if not len(table):
        return
    leaders = table.drop_nulls("from_x").select(x="from_x", y="from_y", x2="to_x", y2="to_y")
    if len(leaders):
        yield layer(leaders.to_dicts(), {"type": "rule", "color": GRAY, "strokeWidth": 0.6}, **FROM_TO)
    for (align, kind), part in table.group_by("align", "kind", maintain_order=True):
        rows = part.select("x", "y", "text").to_dicts()
        color = INK if kind == "name" else STYLES["limit" if kind == "line" else str(kind)]["color"]
        look = {"type": "text", "align": align, "baseline": "middle", "fontSize": FONT_SIZE, "color": color}
        halo = {**look, "color": "white", "stroke": "white", "strokeWidth": 3, "strokeJoin": "round"}
        yield layer(rows, halo, text={"field": "text"})
        yield layer(rows, look, text={"field": "text"})


def _word(value: float) -> str:
    return "infinite" if value == float("inf") else f"{value:.4g}"
