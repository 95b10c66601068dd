"""The distances of links and of nonlinks: m(z), u(z) and the critical distance.  Seri (2005), eq. 3"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdcmap.charts.legend import Entry, legend_view
from sdcmap.charts.style import COLOURS, CONFIG, GREY, SCHEMA
from sdcmap.core import Array, PlanError
from sdcmap.core.chart import Chart, Spec
from sdcmap.kernels.neighbours.counting import Pairs

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

TITLE = "Distances of links and of nonlinks"
BINS = 48
MOST_PAIRS = 20_000_000  # above this u(z) is that of evenly spaced records against all
LINKS, NONLINKS, LINE = COLOURS[1], COLOURS[0], "#B22222"


def draw_densities(table: RecordTable, *, title: str = "") -> Chart:
    """Histogram densities of m(z) and u(z) up to a few critical distances, with delta."""
    pairs = table.assessment.pairs
    if pairs is None or table.delta is None:
        raise PlanError("densities of distances need numeric variables.")
    own = pairs.link_distances()
    end = max(4 * table.delta, float(np.quantile(own, 0.98)))
    edges = np.linspace(0.0, end or 1.0, BINS + 1)
    rows = _some_rows(pairs)
    m = density(own, len(own), edges)
    u = density(pairs.distances(0.0, float(edges[-1]), rows), len(rows) * (len(pairs.x) - 1), edges)
    layers: list[Spec] = []
    for colour, values in ((NONLINKS, u), (LINKS, m)):
        steps = [{"z": float(e), "density": float(d)} for e, d in zip(edges, [*values, values[-1]], strict=True)]
        area = {"type": "area", "interpolate": "step-after", "color": colour, "opacity": 0.18}
        line = {"type": "line", "interpolate": "step-after", "color": colour, "strokeWidth": 1.5}
        layers += [{"data": {"values": steps}, "mark": area}, {"data": {"values": steps}, "mark": line}]
    for start, stop in table.assessment.region:
        band = {"type": "rect", "color": LINE, "opacity": 0.07}
        place = {
            "x": {"field": "z", "type": "quantitative"},
            "x2": {"field": "stop"},
            "y": {"value": 0},
            "y2": {"value": 260},
        }
        band_ends = [{"z": float(start), "stop": float(min(stop, edges[-1]))}]
        layers.insert(0, {"data": {"values": band_ends}, "mark": band, "encoding": place})
        ends = [{"z": float(edge)} for edge in (start, stop) if 0 < edge <= end]
        mark = {"type": "rule", "color": LINE, "strokeWidth": 1.4, "strokeDash": [6, 4]}
        layers.append({"data": {"values": ends}, "mark": mark, "encoding": {"y": {"value": 0}, "y2": {"value": 260}}})
    relative = table.rule.distance == "relative"
    words = "Distance z = ||y − x|| / ||y||" if relative else "Distance z = ||y − x||"
    x = {"field": "z", "type": "quantitative", "title": words,
         "scale": {"domain": [0, float(edges[-1])], "nice": False}}  # fmt: skip
    y = {"field": "density", "type": "quantitative", "title": "Density"}
    plot = {"width": 480, "height": 260, "layer": layers, "encoding": {"x": x, "y": y}}
    head: Spec = {"text": title or TITLE, "anchor": "start", "fontSize": 13, "offset": 12}
    if len(rows) < len(pairs.y):
        said = f"u(z) from {len(rows):,} evenly spaced records against all {len(pairs.x):,}"
        head |= {"subtitle": said, "subtitleColor": GREY}
    spec = {"$schema": SCHEMA, "hconcat": [plot, legend_view(_legend(table, own))],
            "spacing": 18, "background": "white", "padding": 12, "config": CONFIG, "title": head}  # fmt: skip
    return Chart(spec, title or TITLE)


def density(values: Array, total: int, edges: Array) -> Array:
    """Histogram density of `total` values, of which those below the last edge are given."""
    heights: Array = np.histogram(values, edges)[0] / total / np.diff(edges)
    return heights


def _some_rows(pairs: Pairs) -> Array:
    wanted = min(len(pairs.y), max(20, MOST_PAIRS // len(pairs.x)))
    return np.unique(np.linspace(0, len(pairs.y) - 1, wanted).astype(np.int64))


def _legend(table: RecordTable, own: Array) -> list[Entry]:
    share = f"{100 * table.assessment.link_in.mean():.3g} %"
    where = "below δ" if table.rule.neighbourhood == "distance" else "in the neighbourhood"
    line = f"δ = {table.delta:.4g}" if table.rule.neighbourhood == "distance" else "borders of the neighbourhood"
    told = "" if table.rule.delta is not None else f", {100 * table.rule.alpha:.3g} % {where}"
    return [
        Entry("rule", {"color": LINKS, "strokeWidth": 2.0}, f"m(z): {len(own):,} links, {share} {where}"),
        Entry("rule", {"color": NONLINKS, "strokeWidth": 2.0}, f"u(z): nonlinks{told}"),
        Entry("rule", {"color": LINE, "strokeDash": [6, 4], "strokeWidth": 1.4}, line),
    ]
