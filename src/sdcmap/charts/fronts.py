"""The frontiers of several studies on common axes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sdcmap.charts.style import COLOURS, CONFIG, INK, SCHEMA, SHAPES
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap

TITLE = "Frontiers of the studies"
WIDTH, HEIGHT = 620, 400


def draw_fronts(maps: Mapping[str, RUMap], choices: Mapping[str, Choice] | None = None, *, title: str = TITLE) -> Chart:
    """A step line and points for each study, utility across and risk up; a ring around what each chooses.

    maps : name -> its map, all on the same axes. Infinite values are left out. Where an axis is an expectation, methods
    stand for releases. choices : name -> the choice, where there is one.
    """
    names = list(maps)
    ru = maps[names[0]]
    rows = [row for name in names for row in _front(name, maps[name])]
    turn = "step-after" if ru.signs[0] * ru.signs[1] > 0 else "step-before"
    axis = {"grid": True, "gridOpacity": 0.4, "format": "~g", "tickCount": 6}
    scale = {"zero": False, "nice": True}
    place = {
        "x": {"field": "utility", "type": "quantitative", "title": ru.labels[1], "axis": axis, "scale": scale},
        "y": {"field": "risk", "type": "quantitative", "title": ru.labels[0], "axis": axis, "scale": scale},
    }
    tips = [{"field": "study"}, {"field": "name", "title": "candidate"},
            *({"field": one, "type": "quantitative", "format": ".4~g"} for one in ("risk", "utility"))]  # fmt: skip
    ring = {
        "type": "point",
        "shape": "circle",
        "size": 190,
        "filled": False,
        "strokeWidth": 2.2,
        "stroke": INK,
        "opacity": 1,
    }
    layers: list[Spec] = [
        {"mark": {"type": "line", "interpolate": turn, "strokeWidth": 1.6},
         "encoding": {**place, "color": _by(names, COLOURS), "order": {"field": "utility"}}},
        {"mark": {"type": "point", "filled": True, "size": 46, "opacity": 0.95},
         "encoding": {**place, "color": _by(names, COLOURS), "shape": _by(names, SHAPES), "tooltip": tips}},
        {"data": {"values": _chosen(choices or {})}, "mark": ring, "encoding": {**place, "tooltip": tips}},
    ]  # fmt: skip
    spec = {"$schema": SCHEMA, "config": CONFIG, "background": "white", "padding": 12, "width": WIDTH, "height": HEIGHT,
            "title": {"text": title, "anchor": "start", "fontSize": 13, "color": INK, "offset": 10},
            "data": {"values": rows}, "layer": layers}  # fmt: skip
    return Chart(spec, title)


def _front(study: str, ru: RUMap) -> list[Row]:
    table = ru.means if ru.is_expectation else ru.points
    front = table.filter("frontier", ~pl.col("anchor"), pl.col("risk").is_finite(), pl.col("utility").is_finite())
    return [
        {"study": study, "name": ru.scores.name_of(row["method"]), "risk": row["risk"], "utility": row["utility"]}
        for row in front.sort("utility", "risk").iter_rows(named=True)
    ]


def _chosen(choices: Mapping[str, Choice]) -> list[Row]:
    return [
        {"study": study, "name": f"{choice.name}, the choice", "risk": choice.risk, "utility": choice.utility}
        for study, choice in choices.items()
        if choice.candidate is not None
    ]


def _by(names: list[str], values: tuple[str, ...]) -> Spec:
    used = [values[place % len(values)] for place in range(len(names))]
    legend = {"title": None, "orient": "top", "labelLimit": 320, "symbolOpacity": 1}
    return {
        "field": "study",
        "type": "nominal",
        "sort": names,
        "legend": legend,
        "scale": {"domain": names, "range": used},
    }
