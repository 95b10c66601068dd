"""Charts of a search: progress, the map by generation, important choices, methods along the frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sdcmap.charts.map_contents import map_info
from sdcmap.charts.ru_map import map_spec
from sdcmap.charts.style import COLORS, GRAY, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.map import RUMap

MAX_STAGES = 12  # choices that are drawn, the most important first
FRONT, OTHER = "on the frontier", "others"


def draw_importance(table: pl.DataFrame, *, title: str = "Which choices matter") -> Chart:
    """Draw how much each choice matters.

    table : stage, risk, loss: the share of the variance of log risk and of loss that is lost if the stage is shuffled.
    """
    shown = table.head(MAX_STAGES)
    rows = shown.unpivot(["risk", "loss"], index="stage", variable_name="of", value_name="share").to_dicts()
    scale = {"domain": ["risk", "loss"], "range": [COLORS[1], COLORS[0]]}
    encoding = {
        "y": {"field": "stage", "type": "nominal", "sort": shown["stage"].to_list(), "title": None,
              "axis": {"labelLimit": 220}},
        "yOffset": {"field": "of", "sort": ["risk", "loss"]},
        "x": number("share", title="Share of the variance that is lost without it"),
        "color": {"field": "of", "type": "nominal", "sort": ["risk", "loss"], "scale": scale, "legend": {"title": None}},
        "tooltip": [{"field": "stage"}, {"field": "of"}, number("share", format=".3f")],
    }  # fmt: skip
    return _chart(title, **layer(rows, "bar", **encoding), width=420)


def draw_choices(
    table: pl.DataFrame, options: Mapping[str, tuple[str, ...]], *, title: str = "Choices of every candidate",
    ends: Mapping[str, tuple[float, float]] | None = None,
) -> Chart:  # fmt: skip
    """Draw parallel coordinates: a line for each candidate, an axis for each choice, the frontier in color.

    table : name, front, then a column an axis: texts among its options, or numbers, in [0, 1] where no ends are given;
    missing where a choice had no effect. options : the words of each axis that has some, from bottom to top. ends : the
    numbers at the bottom and the top of an axis, which are written there.
    """
    ends = ends or {}
    axes = [name for name in table.columns if name not in ("name", "front")]
    rows = [
        {"name": row["name"], "of": FRONT if row["front"] else OTHER, "axis": axis,
         "choice": f"{row[axis]:.4g}" if isinstance(row[axis], float) else str(row[axis]),
         "value": _height(row[axis], options.get(axis, ()), ends.get(axis, (0.0, 1.0)))}
        for row in table.sort("front").iter_rows(named=True) for axis in axes if row[axis] is not None
    ]  # fmt: skip
    x = {"field": "axis", "type": "nominal", "sort": axes, "title": None,
         "axis": {"labelAngle": -25, "labelLimit": 160}}  # fmt: skip
    position = {"x": x, "y": number("value", axis=None, scale={"domain": [0, 1]})}
    scale = {"domain": [FRONT, OTHER], "range": [COLORS[1], GRAY]}
    color = {"field": "of", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}}
    faint = {"condition": {"test": f"datum.of === '{FRONT}'", "value": 0.95}, "value": 0.18}  # all but the frontier
    tips = [{"field": "name", "title": "candidate"}, {"field": "axis"}, {"field": "choice"}]
    line = {"type": "line", "strokeWidth": 1.4, "point": {"size": 14}}
    lines = layer(rows, line, **position, detail={"field": "name"}, color=color, opacity=faint, tooltip=tips)
    layers = [lines, *_words(axes, options, ends, position)]
    return _chart(title, layer=layers, width=115 * max(4, len(axes)), height=320)


def _height(value: object, options: tuple[str, ...], ends: tuple[float, float] = (0.0, 1.0)) -> float:
    if isinstance(value, str):
        return (options.index(value) + 0.5) / len(options)
    low, high = ends
    return (float(value) - low) / (high - low) if high > low else 0.5  # type: ignore[arg-type]


def _words(
    axes: list[str], options: Mapping[str, tuple[str, ...]], ends: Mapping[str, tuple[float, float]], position: Spec
) -> list[Spec]:
    """Return the labels of the options on each axis, and of the numbers at its ends."""
    rows: list[Row] = [
        {"axis": axis, "value": _height(option, options[axis]), "text": option}
        for axis in axes for option in options.get(axis, ())
    ]  # fmt: skip
    rows += [
        {"axis": axis, "value": height, "text": f"{end:.3g}"}
        for axis in axes for height, end in zip((0.0, 1.0), ends.get(axis, ()), strict=False)
    ]  # fmt: skip
    look = {"type": "text", "align": "left", "dx": 5, "fontSize": 9, "color": INK}
    halo = {**look, "color": "white", "stroke": "white", "strokeWidth": 3}
    return [layer(rows, mark, **position, text={"field": "text"}) for mark in (halo, look)]


def draw_method_shares(table: pl.DataFrame, *, title: str = "Methods along the frontier") -> Chart:
    """Draw which methods the frontier uses.

    table : place along the frontier, risk, class, share of the steps that are of this class.
    """
    classes = table["class"].unique(maintain_order=True).to_list()
    words = pl.col("risk").map_elements(lambda r: f"{r:.3g}", return_dtype=pl.String)
    rows = table.with_columns(member=words).to_dicts()
    risks = ", ".join(f"'{place}': '{risk}'" for place, risk in {row["place"]: row["member"] for row in rows}.items())
    under = {"labelExpr": f"({{{risks}}})[datum.label]", "labelAngle": 0}  # the risk of a member under its bar
    scale = {"domain": classes, "range": [_shade(index) for index in range(len(classes))]}
    encoding = {
        "x": {"field": "place", "type": "ordinal", "title": "Members of the frontier, least risk first", "axis": under},
        "y": number("share", title="Share of its steps", stack="zero"),
        "color": {"field": "class", "type": "nominal", "sort": classes, "scale": scale, "legend": {"title": None}},
        "tooltip": [{"field": "member", "title": "risk"}, {"field": "class"}, number("share", format=".0%")],
    }
    return _chart(title, **layer(rows, "bar", **encoding), width=520, height=240)


def _shade(index: int) -> str:
    """Return the color of a class; colors repeat, lighter each time."""
    repeat, position = divmod(index, len(COLORS))
    parts = [int(COLORS[position][start : start + 2], 16) for start in (1, 3, 5)]
    return "#" + "".join(f"{round(255 - (255 - part) * 0.45**repeat):02x}" for part in parts)


def _chart(title: str, **picture: Any) -> Chart:
    return Chart(page(title, head={"color": INK, "offset": 10}, **picture), title)


# ---- progress: the share of the area against evaluations, compared with random search -----------------------------
PROGRESS_TITLE = "What the search gained"
OURS, RANDOM = "this search", "random search, replayed from stored scores"


def draw_progress(own: pl.DataFrame, replayed: pl.DataFrame, *, title: str = PROGRESS_TITLE) -> Chart:
    """Draw the progress of a search.

    own : evaluations, area. replayed : evaluations, area, low, high; empty where there is too little to replay.
    """
    layers: list[Spec] = []
    if len(replayed):
        rows = replayed.with_columns(series=pl.lit(RANDOM)).to_dicts()
        band = {"type": "area", "color": GRAY, "opacity": 0.18}
        layers = [layer(rows, band, y=number("low"), y2={"field": "high"}), _line(rows, {"strokeDash": [5, 3]})]
    layers.append(_line(own.with_columns(series=pl.lit(OURS)).to_dicts(), {}))
    encoding = {"x": number("evaluations", title="Full evaluations of new methods")}
    head = {"text": title, "anchor": "start", "fontSize": 13, "color": INK}
    return Chart({**page(width=520, height=300, layer=layers, encoding=encoding), "title": head}, title)


def _line(rows: list[Row], look: Spec) -> Spec:
    color = {"field": "series", "type": "nominal", "scale": {"domain": [OURS, RANDOM], "range": [COLORS[0], GRAY]},
              "legend": {"title": None, "orient": "bottom", "labelLimit": 400}}  # fmt: skip
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 22, "filled": True}, **look}
    y = number("area", title="Share of the area (log risk, loss)", scale={"zero": False})
    return layer(rows, mark, y=y, color=color, tooltip=[{"field": "evaluations"}, number("area", format=".4f")])


# ---- the R-U map of a search: colors by generation, and a ring around the plan's own methods -----------------------
MAP_TITLE = "R-U map by generation"
WIDTH, HEIGHT = 620, 430


def draw_search_map(ru: RUMap, eras: Mapping[str, str], own: Sequence[str], *, title: str = MAP_TITLE) -> Chart:
    """Draw the map of a search.

    eras : when each method was proposed, in words, by its text. own : texts of the plan's own methods, which get a ring.
    """
    info = map_info(ru, by="release", color=eras, label=False, width=WIDTH, height=HEIGHT)
    spec = map_spec(info, WIDTH, HEIGHT, title)
    rings = info.points.filter(pl.col("method").is_in(list(own))).select("x", "y", "name").to_dicts()
    mark = {"type": "point", "shape": "circle", "size": 130, "stroke": INK, "strokeWidth": 1.8, "filled": False}
    spec["hconcat"][0]["layer"].append(layer(rings, {**mark, "opacity": 1}))
    return Chart(spec, title)
