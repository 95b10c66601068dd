"""What masking changed, drawn: shares, densities, tables of two columns, correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import polars as pl

from sdcmap.charts.style import COLOURS, CONFIG, FONT, SCHEMA
from sdcmap.core import Array, Microdata
from sdcmap.core.chart import Chart, Row, Spec
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


# A number before and after masking: two densities on one axis.


GRID = 161  # points at which densities are told
ENDS = (0.005, 0.995)  # quantiles of the original between which they are drawn
FILES = ("before", "after")
FEWEST = 10  # values, below which there is no density


def draw_density_change(original: Microdata, masked: Microdata, name: str) -> Chart:
    """The density of a numeric column before (grey) and after masking (blue), for people who may see the original.

    Both have the bandwidth of the original, so that they differ by their values alone: .9 min(s, IQR / 1.34) n^(-1/5),
    of s alone where the quartiles are one value (Silverman 1986, eq. 3.31). Missing values are left out and every
    record counts once. Drawn between the .5 and 99.5 % quantiles of both files.
    """
    both = [_known(data, name) for data in (original, masked)]
    low, high = _ends(both)
    grid = np.linspace(low, high, GRID)
    width = bandwidth(both[0]) or (high - low) / 50
    rows: list[Row] = [
        {"value": float(value), "file": file, "density": float(height)}
        for file, values in zip(FILES, both, strict=True)
        for value, height in zip(grid, density(values, grid, width), strict=True)
    ]
    colour = {"field": "file", "sort": list(FILES), "title": None, "legend": {"orient": "top"},
              "scale": {"domain": list(FILES), "range": [COLOURS[6], COLOURS[0]]}}  # fmt: skip
    spec: Spec = {
        "$schema": SCHEMA, "data": {"values": rows}, "width": 420, "height": 220, "config": CONFIG | {"font": FONT},
        "mark": {"type": "area", "opacity": 0.28, "line": {"strokeWidth": 1.8}},
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "title": name, "scale": {"domain": [low, high], "nice": False},
                  "axis": {"format": "~s", "tickCount": 6}},
            "y": {"field": "density", "type": "quantitative", "title": "density", "stack": None, "axis": {"labels": False}},
            "color": colour,
            "tooltip": [{"field": "file"}, {"field": "value", "type": "quantitative", "format": ",.4~g", "title": name},
                        {"field": "density", "type": "quantitative", "format": ".3~g"}],
        },
    }  # fmt: skip
    return Chart(spec, f"{name} before and after")


def has_density(original: Microdata, masked: Microdata, name: str) -> bool:
    """Whether a column is a number in both files, with enough values."""
    numbers = all(data.column(name).levels is None for data in (original, masked))
    return numbers and min(len(_known(data, name)) for data in (original, masked)) >= FEWEST


def bandwidth(values: Array) -> float:
    """Silverman's rule of thumb; 0 where all values are one."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    spread = float(values.std(ddof=1))
    robust = float(upper - lower) / 1.34
    return float(0.9 * (min(spread, robust) if robust > 0 else spread) * len(values) ** -0.2)


def density(values: Array, grid: Array, width: float) -> Array:
    """The Gaussian kernel density at the points of an even grid.

    Each value is shared out between the two points beside it, in a grid that reaches four widths further, and counts are
    smoothed: as good as the sum over all values where the grid is finer than the width, and quick for millions.
    """
    step = grid[1] - grid[0]
    more = int(np.ceil(4 * width / step))
    place = (values - grid[0]) / step + more
    place = place[(place >= 0) & (place < len(grid) - 1 + 2 * more)]
    left = place.astype(np.int64)
    share = place - left
    size = len(grid) + 2 * more
    counts = np.bincount(left, 1 - share, size) + np.bincount(left + 1, share, size)
    kernel = np.exp(-0.5 * (np.arange(-more, more + 1) * step / width) ** 2)
    smoothed: Array = np.convolve(counts, kernel / (width * np.sqrt(2 * np.pi)), mode="same")
    return smoothed[more : more + len(grid)] / len(values)


def _known(data: Microdata, name: str) -> Array:
    values = data.numbers(name)
    return values[np.isfinite(values)]


def _ends(both: list[Array]) -> tuple[float, float]:
    ends = np.array([np.quantile(values, ENDS) for values in both])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


# The table of two columns before and after masking, as heat maps side by side.


MOST_LEVELS = 12  # categories of a column that are drawn: those with the most records
CELL = 34  # pixels across
SHARE, CHANGE = ["#ffffff", "#0072B2"], ["#D55E00", "#ffffff", "#0072B2"]  # shades


def draw_table_change(original: Microdata, masked: Microdata, down: str, across: str) -> Chart:
    """Per cent of the records in each cell of two categorical columns: before, after, and the difference in points.

    For people who may see the original: cells of few records are not hidden. Of a column with more than 12 categories those
    with the most records are drawn; shares are of all records. Every record counts once; missing is a category.
    """
    cells = cell_shares(original, masked, down, across)
    orders = [_largest(cells, place, original, name) for place, name in (("down", down), ("across", across))]
    shown = cells.filter(pl.col("down").is_in(orders[0]), pl.col("across").is_in(orders[1]))
    most = max(1.0, *(float(shown[file].max() or 0) for file in ("before", "after")))  # type: ignore[arg-type]
    least = max(0.1, float(shown["change"].abs().max() or 0))  # type: ignore[arg-type]
    ends = {"before": [0, most], "after": [0, most], "change": [-least, 0, least]}
    rows = shown.to_dicts()
    panels = [_panel(rows, file, (down, across), orders, domain) for file, domain in ends.items()]
    title = f"{down} by {across}: per cent of the records"
    spec: Spec = {"$schema": SCHEMA, "background": "white", "padding": 12, "config": CONFIG, "columns": 3, "spacing": 22,
                  "resolve": {"scale": {"color": "independent"}}, "concat": panels,
                  "title": {"text": title, "anchor": "start", "fontSize": 13, "offset": 12}}  # fmt: skip
    return Chart(spec, title)


def cell_shares(original: Microdata, masked: Microdata, down: str, across: str) -> pl.DataFrame:
    """A row a cell that occurs in either file: its categories in words, per cent before and after, and the change."""
    before, after = (_counted(data, down, across) for data in (original, masked))
    both = before.join(after, on=["down", "across"], how="full", coalesce=True, suffix=" after")
    shares = both.select(
        "down", "across", before=pl.col("share").fill_null(0), after=pl.col("share after").fill_null(0)
    )
    return shares.with_columns(change=pl.col("after") - pl.col("before")).sort("down", "across")


def _counted(data: Microdata, down: str, across: str) -> pl.DataFrame:
    frame = data.only([down, across]).frame()
    words = [
        pl.col(name).cast(pl.String).fill_null("missing").alias(to) for name, to in ((down, "down"), (across, "across"))
    ]
    return frame.select(*words).group_by("down", "across").agg(share=100 * pl.len() / max(1, len(frame)))


def _largest(cells: pl.DataFrame, place: str, original: Microdata, name: str) -> list[str]:
    """The categories with the most records, in the order of the file; those that masking made come last."""
    sums = cells.group_by(place).agg(size=(pl.col("before") + pl.col("after")).sum())
    kept = sums.sort("size", place, descending=[True, False]).head(MOST_LEVELS)[place].to_list()
    levels = original.column(name).levels
    known = [str(level) for level in (levels.to_list() if levels is not None else []) if level is not None]
    return sorted(kept, key=lambda word: (known.index(word) if word in known else len(known), word))


def _panel(rows: list[Row], file: str, names: tuple[str, str], orders: list[list[str]], domain: list[float]) -> Spec:
    """One heat map: before, after or the change; the first names its rows."""
    quiet = {"labelLimit": 110, "ticks": False, "domain": False, "labels": file == "before"}
    turned = {**quiet, "labels": True, "labelAngle": -40}
    title = names[0] if file == "before" else None
    at = {
        "x": {"field": "across", "type": "nominal", "sort": orders[1], "title": names[1], "axis": turned},
        "y": {"field": "down", "type": "nominal", "sort": orders[0], "title": title, "axis": quiet},
    }
    scale = {"domain": domain, "range": CHANGE if file == "change" else SHARE, "interpolate": "rgb"}
    shade = {"field": file, "type": "quantitative", "legend": None, "scale": scale}
    ink = {"condition": {"test": f"abs(datum['{file}']) > {0.6 * domain[-1]}", "value": "white"}, "value": "#222222"}
    text = {"field": file, "type": "quantitative", "format": "+.1f" if file == "change" else ".1f"}
    numbers = [{"field": one, "type": "quantitative", "format": ".2f"} for one in ("before", "after", "change")]
    tips = [{"field": "down", "title": names[0]}, {"field": "across", "title": names[1]}, *numbers]
    layer = [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {**at, "color": shade, "tooltip": tips}},
        {"mark": {"type": "text", "fontSize": 9.5}, "encoding": {**at, "text": text, "color": ink}},
    ]
    head = {"text": file, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    return {
        "data": {"values": rows},
        "width": {"step": CELL},
        "height": {"step": 22},
        "layer": layer,
        "title": head,
    }


# Correlations of the numbers before and after masking, side by side.


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
