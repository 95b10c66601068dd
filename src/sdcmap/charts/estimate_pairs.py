"""Estimates of the original and of a release side by side, with their confidence intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from sdcmap.charts.style import COLORS, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec

BEFORE, AFTER = COLORS[6], COLORS[0]
SPREAD = 0.16  # of a row, that the two estimates are apart
LARGEST = 30.0  # standard errors; estimates beyond are drawn at the edge
MAX_LABEL = 52  # characters


class EstimatePair(NamedTuple):
    """An estimate and half the width of its interval, of the original and of the release, in common units."""

    name: str
    before: float
    before_half: float
    after: float
    after_half: float


def draw_estimate_pairs(pairs: Sequence[EstimatePair], *, title: str = "Estimates before and after masking") -> Chart:
    """Draw each estimate of the original (gray circle) above that of the release (blue diamond), with 95 % intervals.

    The unit is one standard error of the original. An estimate that the release does not give is not drawn.
    """
    rows: list[Row] = []
    for place, pair in enumerate(pairs):
        for file, value, half, shift in (
            ("original", pair.before, pair.before_half, -SPREAD),
            ("release", pair.after, pair.after_half, SPREAD),
        ):
            if math.isfinite(value):
                ends = (value - half, value + half) if math.isfinite(half) else (value, value)
                low, middle, high = (min(max(end, -LARGEST), LARGEST) for end in (ends[0], value, ends[1]))
                rows.append({"file": file, "place": place + shift, "low": low, "x": middle, "high": high,
                             "name": pair.name, "estimate": f"{value:.3g}"})  # fmt: skip
    names = [_shorten(pair.name) for pair in pairs]
    axis: Spec = {
        "values": list(range(len(pairs))), "labelExpr": f"{json.dumps(names)}[datum.value]", "title": None,
        "ticks": False, "domain": False, "labelPadding": 8, "labelLimit": 420,
    }  # fmt: skip
    y = number("place", scale={"domain": [-0.6, len(pairs) - 0.4], "reverse": True, "nice": False}, axis=axis)
    reach = [abs(x) + half for pair in pairs for x, half in (pair[1:3], pair[3:5])]
    cut = f"; cut off beyond {LARGEST:g}" if any(math.isfinite(x) and x > LARGEST for x in reach) else ""
    x = {"title": f"estimate, in standard errors of the original (95 % interval{cut})"}
    layers: list[Spec] = [layer([{"x": 0}], {"type": "rule", "color": INK, "strokeWidth": 0.8}, x=number("x"))]
    for file, color, shape in (("original", BEFORE, "circle"), ("release", AFTER, "diamond")):
        own = [row for row in rows if row["file"] == file]
        bar = {"type": "rule", "color": color, "strokeWidth": 1.8}
        layers.append(layer(own, bar, y=y, x=number("low", **x), x2={"field": "high"}))
        mark = {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": color, "shape": shape}
        tips = [{"field": "name", "title": "estimate"}, {"field": "estimate", "title": f"{file}, in standard errors"}]
        layers.append(layer(own, mark, y=y, x=number("x", axis={"title": x["title"]}), tooltip=tips))
        if own:
            look = {"type": "text", "fontSize": 10, "color": color, "dy": -9 if file == "original" else 11}
            layers.append(layer(own[:1], look, y=y, x=number("x"), text={"value": file}))
    spec = page(
        title, width=420, height=max(60, 34 * len(pairs)), layer=layers,
        padding={"left": 60, "right": 28, "top": 12, "bottom": 12},
    )  # fmt: skip
    return Chart(spec, title)


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_LABEL else name[: MAX_LABEL - 1] + "…"
