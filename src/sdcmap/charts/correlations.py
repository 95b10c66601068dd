"""Correlations of the numbers before and after masking, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.charts.style import CONFIG, SCHEMA
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array

CELL = 34  # pixels
FILES = ("before", "after")


def draw_correlations(original: Microdata, masked: Microdata, names: Sequence[str]) -> Chart:
    """Pearson correlations of numeric columns, over the records where both are known; every record counts once.

    A constant column has none: its cells are empty. Colours run from orange (-1) over white to blue (1).
    """
    rows: list[Row] = [
        {"file": file, "a": a, "b": b, "r": round(float(r), 4)}
        for file, data in zip(FILES, (original, masked), strict=True)
        for a, line in zip(names, correlations(data, names), strict=True)
        for b, r in zip(names, line, strict=True)
        if np.isfinite(r)
    ]
    order = list(names)
    place: Spec = {
        "type": "nominal",
        "sort": order,
        "title": None,
        "axis": {"labelLimit": 110, "ticks": False, "domain": False},
    }
    shade = {"field": "r", "type": "quantitative", "title": "correlation",
             "scale": {"domain": [-1, 0, 1], "range": ["#D55E00", "#ffffff", "#0072B2"], "interpolate": "rgb"}}  # fmt: skip
    at = {"x": {"field": "a", **place, "axis": {**place["axis"], "labelAngle": -40}}, "y": {"field": "b", **place}}
    words = {"field": "r", "type": "quantitative", "format": ".2f"}
    ink = {"condition": {"test": "abs(datum.r) > 0.6", "value": "white"}, "value": "#222222"}
    layer: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {**at, "color": shade}},
        {"mark": {"type": "text", "fontSize": 9.5}, "encoding": {**at, "text": words, "color": ink}},
    ]
    spec: Spec = {
        "$schema": SCHEMA, "data": {"values": rows}, "background": "white", "padding": 12, "config": CONFIG,
        "facet": {"field": "file", "type": "nominal", "sort": list(FILES), "title": None,
                  "header": {"labelFontSize": 12, "labelAnchor": "start"}},
        "spec": {"width": {"step": CELL}, "height": {"step": CELL * 0.7}, "layer": layer},
        "columns": 2, "title": {"text": "Correlations before and after", "anchor": "start", "fontSize": 13, "offset": 12},
    }  # fmt: skip
    return Chart(spec, "Correlations before and after")


def correlations(data: Microdata, names: Sequence[str]) -> Array:
    """Pearson correlations, each over the records where both columns are known; NaN where one is constant there."""
    columns = [data.numbers(name) for name in names]
    matrix = np.full((len(names), len(names)), np.nan)
    for i, a in enumerate(columns):
        for j, b in enumerate(columns[: i + 1]):
            known = np.isfinite(a) & np.isfinite(b)
            matrix[i, j] = matrix[j, i] = _correlation(a[known], b[known])
    return matrix


def _correlation(a: Array, b: Array) -> float:
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.clip(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std()), -1, 1))
