"""The densities of distances of links, m(z), and of nonlinks, u(z), with the critical distance. Seri (2005), eq. 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sdcmap.charts.legend import Entry, legend_view
from sdcmap.charts.style import COLORS, GRAY, layer, number, page
from sdcmap.core import Array, PlanError
from sdcmap.core.chart import Chart, Spec

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

TITLE = "Distances of links and of nonlinks"
BINS = 48
MAX_PAIRS = 20_000_000  # with more, u(z) is computed for evenly spaced records against all
LINKS, NONLINKS, LIMIT_COLOR = COLORS[1], COLORS[0], "#B22222"
BORDER = {"color": LIMIT_COLOR, "strokeDash": [6, 4], "strokeWidth": 1.4}


def draw_densities(table: RecordTable, *, title: str = "") -> Chart:
    """Draw histogram densities of m(z) and u(z) up to a few critical distances, with delta."""
    pairs = table.pairs
    if pairs is None or table.delta is None:
        raise PlanError("densities of distances need numeric variables.")
    own = pairs.link_distances()[pairs.linked]
    if pairs.nonlinks == 0:
        raise PlanError(
            "densities of distances need records that are compared with units other than their own original."
        )
    end = max(4 * table.delta, float(np.quantile(own, 0.98)) if len(own) else 0.0)
    edges = np.linspace(0.0, end or 1.0, BINS + 1)
    # All pairs of a large file are too many, so u(z) uses evenly spaced records; m(z) uses all links.
    wanted = min(len(pairs.y), max(20, MAX_PAIRS // len(pairs.x)))
    rows = np.unique(np.linspace(0, len(pairs.y) - 1, wanted).astype(np.int64))
    m = density(own, max(1, len(own)), edges)
    u = density(pairs.distances(0.0, float(edges[-1]), rows), max(1, pairs.subset(rows).nonlinks), edges)
    layers: list[Spec] = []
    for color, values in ((NONLINKS, u), (LINKS, m)):
        steps = [{"z": float(e), "density": float(d)} for e, d in zip(edges, [*values, values[-1]], strict=True)]
        look = {"interpolate": "step-after", "color": color}
        layers.append(layer(steps, {"type": "area", **look, "opacity": 0.18}))
        layers.append(layer(steps, {"type": "line", **look, "strokeWidth": 1.5}))
    whole = {"y": {"value": 0}, "y2": {"value": 260}}
    for start, stop in table.region:
        band = [{"z": float(start), "stop": float(min(stop, edges[-1]))}]
        shade = {"type": "rect", "color": LIMIT_COLOR, "opacity": 0.07}
        layers.insert(0, layer(band, shade, x=number("z"), x2={"field": "stop"}, **whole))
        ends = [{"z": float(edge)} for edge in (start, stop) if 0 < edge <= end]
        layers.append(layer(ends, {"type": "rule", **BORDER}, **whole))
    words = "Distance z = ||y − x||" + " / ||y||" * (table.rule.distance == "relative")
    x = number("z", title=words, scale={"domain": [0, float(edges[-1])], "nice": False})
    encoding = {"x": x, "y": number("density", title="Density")}
    plot = {"width": 480, "height": 260, "layer": layers, "encoding": encoding}
    subtitle = f"u(z) from {len(rows):,} evenly spaced records against all {len(pairs.x):,}"
    head = {"subtitle": subtitle, "subtitleColor": GRAY} if len(rows) < len(pairs.y) else {}
    title = title or TITLE
    return Chart(page(title, head=head, hconcat=[plot, legend_view(_legend(table, len(own)))], spacing=18), title)


def density(values: Array, total: int, edges: Array) -> Array:
    """Return the histogram density of `total` values, of which those below the last edge are given."""
    return np.histogram(values, edges)[0] / total / np.diff(edges)


def _legend(table: RecordTable, links: int) -> list[Entry]:
    share = f"{100 * table.links_in_reach / max(1, links):.3g} %"
    where, line = "in the neighborhood", "borders of the neighborhood"
    if table.rule.neighborhood == "distance":
        where, line = "below δ", f"δ = {table.delta:.4g}"
    share_inside = "" if table.rule.delta is not None else f", {100 * table.rule.alpha:.3g} % {where}"
    return [
        Entry("rule", {"color": LINKS, "strokeWidth": 2.0}, f"m(z): {links:,} links, {share} {where}"),
        Entry("rule", {"color": NONLINKS, "strokeWidth": 2.0}, f"u(z): nonlinks{share_inside}"),
        Entry("rule", BORDER, line),
    ]
