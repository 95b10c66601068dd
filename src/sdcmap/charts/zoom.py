"""Released records among the originals, all of them and zoomed in. Seri (2005), figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sdcmap.charts.legend import Entry, legend_view
from sdcmap.charts.style import COLORS, GRAY, INK, layer, number, page
from sdcmap.core import Array, PlanError
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.kernels.neighbors.counting import PairDistances

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

TITLE = "Released records among the {units}"
MAX_POINTS = 5000  # of more units, evenly spaced ones are drawn
SIDE = 250  # pixels
NEIGHBOR, LINK = COLORS[0], COLORS[1]
RELEASED = {"shape": "triangle-up", "filled": True, "size": 90, "color": INK, "opacity": 1}
ORIGINAL = {"shape": "circle", "filled": True, "size": 12, "color": GRAY, "opacity": 0.55}
INSIDE = {**ORIGINAL, "color": NEIGHBOR, "opacity": 0.8}  # the neighborhood
OWN = {"shape": "circle", "filled": False, "size": 110, "color": LINK, "strokeWidth": 1.8, "opacity": 1}


def draw_zoom(table: RecordTable, rows: Sequence[int] = (), *, title: str = "") -> Chart:
    """Draw all units with some released records as triangles, and a panel for each of these with its neighborhood.

    The axes are the first two variables of the rule, on its scale.
    """
    pairs = table.pairs
    if pairs is None or pairs.x.shape[1] < 2 or table.delta is None:
        raise PlanError("the zoom needs at least two numeric variables in `on`.")
    chosen = [_index_of(table, row) for row in rows] if rows else _typical(table)
    names = [f"({chr(98 + position % 25)})" for position in range(len(chosen))]
    panels = [_whole(table, pairs, chosen, names)]
    panels += [_near(table, pairs, index, name) for index, name in zip(chosen, names, strict=True)]
    views, columns = [*panels, legend_view(_legend(table, pairs))], 3 if len(panels) > 3 else len(panels) + 1
    title = title or TITLE.format(units=_units_phrase(table))
    return Chart(page(title, concat=views, columns=columns, spacing=24), title)


def _units_phrase(table: RecordTable) -> str:
    """Return what the cloud consists of."""
    return "units of the archive" if table.has_archive else "originals"


def _index_of(table: RecordTable, row: int) -> int:
    matches = np.flatnonzero(table.rows == row)
    if len(matches) == 0:
        raise PlanError("the zoom shows only rows that the rule judged. One of the given rows is not among them.")
    return int(matches[0])


def _typical(table: RecordTable) -> list[int]:
    """Return the largest unit and, among the tenth with most neighbors, the one with the most similar perturbation."""
    largest = _index_of(table, table.largest)
    crowded = np.argsort(-table.neighbors, kind="stable")[: max(1, len(table) // 10)]
    alike = crowded[np.argmin(np.abs(table.perturbation[crowded] - table.perturbation[largest]))]
    return list(dict.fromkeys([largest, int(alike)]))


def _whole(table: RecordTable, pairs: PairDistances, chosen: list[int], names: list[str]) -> Spec:
    shown = np.linspace(0, len(pairs.x) - 1, min(len(pairs.x), MAX_POINTS)).astype(np.int64)
    triangles = [_released_point(table, pairs, index, name) for index, name in zip(chosen, names, strict=True)]
    label = {"type": "text", "dx": 9, "align": "left", "fontSize": 10, "color": INK}
    halo = {**label, "color": "white", "stroke": "white", "strokeWidth": 4, "strokeJoin": "round"}
    layers = [
        layer(_points(pairs.x[shown]), {"type": "point", **ORIGINAL}),
        layer(triangles, {"type": "point", **RELEASED}, tooltip=_tips(table)),
        *(layer(triangles, mark, text={"field": "name"}) for mark in (halo, label)),
    ]
    drawn = "" if len(shown) == len(pairs.x) else f"; {len(shown):,} of {len(pairs.x):,} drawn"
    return _panel(
        table,
        layers,
        f"(a) all {len(pairs.x):,} {_units_phrase(table)}{drawn}",
        [_domain(pairs.x[:, a]) for a in (0, 1)],
    )


def _points(x: Array) -> list[Row]:
    return [{"x": float(a), "y": float(b)} for a, b in x[:, :2]]


def _near(table: RecordTable, pairs: PairDistances, index: int, name: str) -> Spec:
    """Return the panel of one released record; it covers three radii of its neighborhood, or its link if farther."""
    y, own = pairs.y[index], pairs.x[pairs.link[[index]][pairs.linked[[index]]]]
    units = pairs.x[pairs.units_of(index)]
    # The neighborhood is measured in units of the record, so its radius differs between records.
    radius = float((table.delta or 0.0) * pairs.unit[index])
    reach = 1.1 * max(3 * radius, float(np.abs(y[:2] - own[:, :2]).max(initial=0.0))) or 1.0
    inside = np.flatnonzero((np.abs(units[:, :2] - y[:2]) <= reach).all(axis=1))
    shown = units[inside[np.linspace(0, len(inside) - 1, min(len(inside), MAX_POINTS)).astype(np.int64)]]
    z = np.sqrt(((shown - y) ** 2).sum(axis=1)) / pairs.unit[index]
    # The neighborhood may consist of several rings of distances (Fellegi-Sunter).
    near = np.logical_or.reduce([(start <= z) & (z < stop) for start, stop in table.region] or [z < 0])
    angles = np.linspace(0, 2 * np.pi, 91)
    circle = [
        {"x": float(y[0] + radius * np.cos(t)), "y": float(y[1] + radius * np.sin(t)), "turn": float(t)} for t in angles
    ]
    layers = [
        layer(circle, {"type": "line", "color": NEIGHBOR, "strokeWidth": 1.1}, order=number("turn")),
        layer(_points(shown[~near]), {"type": "point", **ORIGINAL, "size": 22}),
        layer(_points(shown[near]), {"type": "point", **INSIDE, "size": 28}),
        layer(_points(own), {"type": "point", **OWN}),
        layer([_released_point(table, pairs, index, name)], {"type": "point", **RELEASED}, tooltip=_tips(table)),
    ]
    count = int(table.neighbors[index])
    words = f"{name} {count:,} neighbor{'s' * (count != 1)}, perturbation {table.perturbation[index]:.2g}"
    return _panel(table, layers, words, [(float(y[a]) - reach, float(y[a]) + reach) for a in (0, 1)])


def _released_point(table: RecordTable, pairs: PairDistances, index: int, name: str) -> Spec:
    y = pairs.y[index]
    return {"x": float(y[0]), "y": float(y[1]), "name": name, "row": int(table.rows[index])}


def _tips(table: RecordTable) -> list[Spec]:
    names = zip(("x", "y"), table.rule.on, strict=False)
    return [{"field": "row", "title": "row of the masked file"}, *(number(f, title=n, format=".5~g") for f, n in names)]


def _domain(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _panel(table: RecordTable, layers: list[Spec], title: str, domains: list[tuple[float, float]]) -> Spec:
    words = {"raw": "", "log": " (log)", "standardized": " (standardized)"}[table.rule.scale]
    encoding = {
        axis: number(axis, title=name + words, axis={"tickCount": 5},
                     scale={"domain": list(domain), "nice": False, "zero": False})
        for axis, name, domain in zip(("x", "y"), table.rule.on, domains, strict=False)
    }  # fmt: skip
    clipped = [{**layer, "mark": {**layer["mark"], "clip": layer["mark"]["type"] != "text"}} for layer in layers]
    head = {"text": title, "anchor": "start", "fontSize": 11, "fontWeight": "normal", "offset": 6}
    return {"width": SIDE, "height": SIDE, "layer": clipped, "encoding": encoding, "title": head}


def _legend(table: RecordTable, pairs: PairDistances) -> list[Entry]:
    unit = "unit of the archive" if table.has_archive else "original"
    circle = "neighborhood: z < δ" if pairs.x.shape[1] == 2 else "neighborhood, cut through y"
    return [
        Entry("point", {**RELEASED, "size": 70}, "released record"),
        Entry("point", {**OWN, "size": 80}, f"its own {unit}"),
        Entry("point", {**ORIGINAL, "size": 30}, f"other {unit}"),
        Entry("point", {**INSIDE, "size": 34}, f"{unit} in the neighborhood"),
        Entry("rule", {"color": NEIGHBOR, "strokeWidth": 1.1}, circle),
    ]
