"""The R-U map of a search: colours by generation, and a ring around what the plan itself had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sdcmap.charts.map_contents import map_info
from sdcmap.charts.ru_map import map_spec
from sdcmap.charts.style import INK
from sdcmap.core.chart import Chart, Spec
from sdcmap.map import RUMap

TITLE = "R-U map by generation"
WIDTH, HEIGHT = 620, 430


def draw_search_map(ru: RUMap, eras: Mapping[str, str], own: Sequence[str], *, title: str = TITLE) -> Chart:
    """eras : method text -> when it was proposed, in words. own : texts of the plan's own methods, which have a ring."""
    info = map_info(ru, by="release", colour=eras, label=False, width=WIDTH, height=HEIGHT)
    spec = map_spec(info, WIDTH, HEIGHT, title)
    rings = info.points.filter(pl.col("method").is_in(list(own))).select("x", "y", "name").to_dicts()
    picture: Spec = spec["hconcat"][0]
    mark = {"type": "point", "shape": "circle", "size": 130, "stroke": INK, "strokeWidth": 1.8, "filled": False}
    picture["layer"].append({"data": {"values": rings}, "mark": {**mark, "opacity": 1}})
    return Chart(spec, title)
