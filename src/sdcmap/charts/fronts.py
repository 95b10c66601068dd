"""The frontiers of several studies on common axes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sdcmap.charts.style import COLORS, INK, SHAPES, by_group, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap

TITLE = "Frontiers of the studies"
WIDTH, HEIGHT = 620, 400


def draw_fronts(maps: Mapping[str, RUMap], choices: Mapping[str, Choice] | None = None, *, title: str = TITLE) -> Chart:
    """Draw a step line and points for each study, utility across and risk up, with a ring around each choice.

    maps : map of each study by name, all on the same axes. Infinite values are left out. Where an axis is an expectation,
    methods are drawn instead of releases. choices : the choice of each study by name, where there is one.
    """
    names = list(maps)
    ru = maps[names[0]]
    rows = [row for name in names for row in _front(name, maps[name])]
    step = "step-after" if ru.signs[0] * ru.signs[1] > 0 else "step-before"
    look = {"axis": {"grid": True, "gridOpacity": 0.4, "format": "~g", "tickCount": 6},
            "scale": {"zero": False, "nice": True}}  # fmt: skip
    position = {"x": number("utility", title=ru.labels[1], **look), "y": number("risk", title=ru.labels[0], **look)}
    color, shape = (by_group("study", names, values, orient="top") for values in (COLORS, SHAPES))
    tips = [{"field": "study"}, {"field": "name", "title": "candidate"},
            *(number(name, format=".4~g") for name in ("risk", "utility"))]  # fmt: skip
    ring = {"type": "point", "shape": "circle", "size": 190, "filled": False, "strokeWidth": 2.2, "stroke": INK}
    chosen = [
        {"study": study, "name": f"{choice.name}, the choice", "risk": choice.risk, "utility": choice.utility}
        for study, choice in (choices or {}).items()
        if choice.candidate is not None
    ]
    layers: list[Spec] = [
        {"mark": {"type": "line", "interpolate": step, "strokeWidth": 1.6},
         "encoding": {**position, "color": color, "order": {"field": "utility"}}},
        {"mark": {"type": "point", "filled": True, "size": 46, "opacity": 0.95},
         "encoding": {**position, "color": color, "shape": shape, "tooltip": tips}},
        layer(chosen, {**ring, "opacity": 1}, **position, tooltip=tips),
    ]  # fmt: skip
    head = {"color": INK, "offset": 10}
    spec = page(title, head=head, width=WIDTH, height=HEIGHT, data={"values": rows}, layer=layers)
    return Chart(spec, title)


def _front(study: str, ru: RUMap) -> list[Row]:
    table = ru.means if ru.is_expectation else ru.points
    front = table.filter("frontier", ~pl.col("anchor"), pl.col("risk").is_finite(), pl.col("utility").is_finite())
    return [
        {"study": study, "name": ru.scores.name_of(row["method"]), "risk": row["risk"], "utility": row["utility"]}
        for row in front.sort("utility", "risk").iter_rows(named=True)
    ]
