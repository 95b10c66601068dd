"""The R-U map linked to the confidentiality plots of its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from sdcmap.charts.confidentiality import draw_confidentiality
from sdcmap.charts.ru_map import draw_map
from sdcmap.core.chart import Chart
from sdcmap.core.map_options import MapLook
from sdcmap.map import RUMap

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable


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
