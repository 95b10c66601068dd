"""One variable before and after masking, drawn: shares of its categories, or of bins of its values."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np

from sdcmap.charts.style import COLOURS, CONFIG, FONT, SCHEMA
from sdcmap.core.chart import Chart, Spec
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import table

BINS = 24
MOST = 20  # categories that are drawn: those with the most records


class Bar(TypedDict):
    """One bar: a category or bin, the file ("before" or "after"), and its share of the records."""

    value: str
    file: str
    share: float


def draw_change(original: Microdata, masked: Microdata, name: str) -> Chart:
    """The distribution of one variable before and after masking, for people who may see the original.

    A category's share, or the share of records in each of 24 equal bins between the 0.5 and 99.5 % quantiles of the
    original; what lies beyond is counted in the outermost bins. Missing values are left out of bins.
    """
    rows = _binned(original, masked, name) if original.column(name).levels is None else _shares(original, masked, name)
    order = [row["value"] for row in rows if row["file"] == "before"]
    spec: Spec = {
        "$schema": SCHEMA,
        "data": {"values": rows},
        "width": 420,
        "height": 220,
        "config": CONFIG | {"font": FONT},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {"field": "value", "type": "nominal", "sort": order, "title": name,
                  "axis": {"labelAngle": -40, "labelOverlap": True, "labelLimit": 120}},
            "xOffset": {"field": "file", "sort": ["before", "after"]},
            "y": {"field": "share", "type": "quantitative", "title": "share of records", "axis": {"format": "~%"}},
            "color": {"field": "file", "sort": ["before", "after"], "title": None,
                      "scale": {"domain": ["before", "after"], "range": [COLOURS[6], COLOURS[0]]},
                      "legend": {"orient": "top"}},
            "tooltip": [{"field": "value", "title": name}, {"field": "file", "title": "file"},
                        {"field": "share", "type": "quantitative", "format": ".2%", "title": "share"}],
        },
    }  # fmt: skip
    return Chart(spec, f"{name} before and after")


def _shares(original: Microdata, masked: Microdata, name: str) -> list[Bar]:
    levels = original.column(name).levels
    counted = table(original, masked, (name,))
    words = ["missing" if level is None else str(level) for level in (levels.to_list() if levels is not None else [])]
    words += [f"new {number}" for number in range(1, len(counted.before) - len(words) + 1)]
    shown = sorted(np.argsort(-(counted.before + counted.after), kind="stable")[:MOST].tolist())
    pairs = (("before", counted.before), ("after", counted.after))
    return [
        {"value": words[place], "file": file, "share": float(counts[place]) / max(float(counts.sum()), 1)}
        for file, counts in pairs
        for place in shown
    ]


def _binned(original: Microdata, masked: Microdata, name: str) -> list[Bar]:
    before, after = (values[~np.isnan(values)] for values in (original.numbers(name), masked.numbers(name)))
    low, high = np.quantile(before, [0.005, 0.995]) if len(before) else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    digits = max(0, 1 - math.floor(math.log10(edges[1] - edges[0])))  # bins next to each other differ in them
    middles = [f"{middle:,.{digits}f}" for middle in (edges[1:] + edges[:-1]) / 2]
    rows: list[Bar] = []
    for file, values in (("before", before), ("after", after)):
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        shares = counts / max(len(values), 1)
        rows += [{"value": m, "file": file, "share": float(s)} for m, s in zip(middles, shares, strict=True)]
    return rows
