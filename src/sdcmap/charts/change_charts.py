"""Charts of what masking changed: shares, densities, tables of two columns, correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from sdcmap.charts.style import COLORS, CONFIG, SCHEMA, layer, number, page
from sdcmap.core import Array, Microdata
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.data.tables import table

FILES = ("before", "after")
BINS = 24
MAX_CATEGORIES = 20  # those with the most records are drawn


def draw_change(original: Microdata, masked: Microdata, name: str) -> Chart:
    """Draw the distribution of one variable before and after masking, for people who may see the original.

    A category's share, or the share of records in each of 24 equal bins between the 0.5 and 99.5 % quantiles of the
    original; what lies beyond is counted in the outermost bins. Missing values are left out of bins.
    """
    levels = original.column(name).levels
    rows = _bin_shares(original, masked, name) if levels is None else _shares(original, masked, name, levels)
    order = [row["value"] for row in rows if row["file"] == "before"]
    x = {"field": "value", "type": "nominal", "sort": order, "title": name,
         "axis": {"labelAngle": -40, "labelOverlap": True, "labelLimit": 120}}  # fmt: skip
    y = number("share", title="share of records", axis={"format": "~%"})
    tips = [{"field": "value", "title": name}, {"field": "file", "title": "file"},
            number("share", format=".2%", title="share")]  # fmt: skip
    offset = {"field": "file", "sort": [*FILES]}
    return _two_files(name, rows, {"type": "bar", "cornerRadiusEnd": 2}, x=x, xOffset=offset, y=y, tooltip=tips)


def _two_files(name: str, rows: Sequence[Row], mark: Spec, **encoding: Any) -> Chart:
    """Return a chart of one column, the original in gray and the masked file in blue."""
    color = {"field": "file", "sort": [*FILES], "title": None, "legend": {"orient": "top"},
              "scale": {"domain": [*FILES], "range": [COLORS[6], COLORS[0]]}}  # fmt: skip
    spec = {
        "$schema": SCHEMA,
        "width": 420,
        "height": 220,
        "config": CONFIG,
        **layer(rows, mark, **encoding, color=color),
    }
    return Chart(spec, f"{name} before and after")


def _shares(original: Microdata, masked: Microdata, name: str, levels: pl.Series) -> list[Row]:
    """Return a row for each category and file: value, file, and its share of the records."""
    counts_by_file = table(original, masked, (name,))
    words = ["missing" if level is None else str(level) for level in levels]
    words += [f"new {number}" for number in range(1, len(counts_by_file.before) - len(words) + 1)]
    shown = sorted(np.argsort(-(counts_by_file.before + counts_by_file.after), kind="stable")[:MAX_CATEGORIES].tolist())
    return [
        {"value": words[index], "file": file, "share": float(counts[index]) / max(float(counts.sum()), 1)}
        for file, counts in zip(FILES, (counts_by_file.before, counts_by_file.after), strict=True)
        for index in shown
    ]


def _bin_shares(original: Microdata, masked: Microdata, name: str) -> list[Row]:
    """Return a row for each bin and file, as `_shares` does."""
    before, after = (values[~np.isnan(values)] for values in (original.numbers(name), masked.numbers(name)))
    low, high = np.quantile(before, ENDS) if len(before) else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    digits = max(0, 1 - math.floor(math.log10(edges[1] - edges[0])))
    middles = [f"{middle:,.{digits}f}" for middle in (edges[1:] + edges[:-1]) / 2]
    return [
        {"value": middle, "file": file, "share": float(count / max(len(values), 1))}
        for file, values in zip(FILES, (before, after), strict=True)
        for middle, count in zip(middles, np.histogram(np.clip(values, *edges[[0, -1]]), edges)[0], strict=True)
    ]


# ---- densities ------------------------------------------------------------------------------------------------
GRID = 161  # points at which densities are computed
ENDS = (0.005, 0.995)  # quantiles between which distributions are drawn
MIN_DENSITY_VALUES = 10  # a density of fewer values is not drawn


def draw_density_change(original: Microdata, masked: Microdata, name: str) -> Chart:
    """Draw the density of a numeric column before (gray) and after masking (blue), for people who may see the original.

    Both have the bandwidth of the original, so that only their values differ: 0.9 min(s, IQR / 1.34) n^(-1/5), with s alone
    where the quartiles are equal (Silverman 1986, eq. 3.31). Missing values are left out and every record counts once. The
    density is drawn between the 0.5 and 99.5 % quantiles of both files.
    """
    both = [_finite_values(data, name) for data in (original, masked)]
    ends = np.array([np.quantile(values, ENDS) for values in both])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    grid = np.linspace(low, high, GRID)
    width = bandwidth(both[0]) or (high - low) / 50
    rows: list[Row] = [
        {"value": float(value), "file": file, "density": float(height)}
        for file, values in zip(FILES, both, strict=True)
        for value, height in zip(grid, density(values, grid, width), strict=True)
    ]
    scale = {"domain": [low, high], "nice": False}
    return _two_files(
        name, rows, {"type": "area", "opacity": 0.28, "line": {"strokeWidth": 1.8}},
        x=number("value", title=name, scale=scale, axis={"format": "~s", "tickCount": 6}),
        y=number("density", title="density", stack=None, axis={"labels": False}),
        tooltip=[{"field": "file"}, number("value", format=",.4~g", title=name), number("density", format=".3~g")],
    )  # fmt: skip


def has_density(original: Microdata, masked: Microdata, name: str) -> bool:
    """Return whether a column is a number in both files, with enough values."""
    numbers = all(data.column(name).levels is None for data in (original, masked))
    return numbers and min(len(_finite_values(data, name)) for data in (original, masked)) >= MIN_DENSITY_VALUES


def bandwidth(values: Array) -> float:
    """Return Silverman's bandwidth; 0 where all values are equal."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    spread = float(values.std(ddof=1))
    robust = float(upper - lower) / 1.34
    return float(0.9 * (min(spread, robust) if robust > 0 else spread) * len(values) ** -0.2)


def density(values: Array, grid: Array, width: float) -> Array:
    """Return the Gaussian kernel density at the points of an even grid.

    Each value is divided between its two neighboring grid points, and the counts are smoothed (linear binning). This is as
    good as the sum over all values if the grid is finer than the bandwidth, and fast for millions of values.
    """
    step = grid[1] - grid[0]
    # The grid is extended by four bandwidths on both sides, so that values beyond its ends contribute too.
    more = int(np.ceil(4 * width / step))
    position = (values - grid[0]) / step + more
    position = position[(position >= 0) & (position < len(grid) - 1 + 2 * more)]
    left = position.astype(np.int64)
    share = position - left
    size = len(grid) + 2 * more
    counts = np.bincount(left, 1 - share, size) + np.bincount(left + 1, share, size)
    kernel = np.exp(-0.5 * (np.arange(-more, more + 1) * step / width) ** 2)
    smoothed: Array = np.convolve(counts, kernel / (width * np.sqrt(2 * np.pi)), mode="same")
    return smoothed[more : more + len(grid)] / len(values)


def _finite_values(data: Microdata, name: str) -> Array:
    values = data.numbers(name)
    return values[np.isfinite(values)]


# ---- tables of two columns --------------------------------------------------------------------------------------
MAX_TABLE_LEVELS = 12  # categories of a column; those with the most records are drawn
CELL = 34  # pixels across
SHARE, CHANGE = ["#ffffff", "#0072B2"], ["#D55E00", "#ffffff", "#0072B2"]  # shades
QUIET = {"labelLimit": 110, "ticks": False, "domain": False}
TURNED = {**QUIET, "labelAngle": -40}


def draw_table_change(original: Microdata, masked: Microdata, down: str, across: str) -> Chart:
    """Draw the percentage of records in each cell of two categorical columns: before, after, and the difference.

    For people who may see the original: cells with few records are not hidden. Only the 12 largest categories of a column
    are drawn; percentages are of all records. Every record counts once; missing is a category.
    """
    cells = cell_shares(original, masked, down, across)
    orders = [_largest(cells, side, original, name) for side, name in (("down", down), ("across", across))]
    shown = cells.filter(pl.col("down").is_in(orders[0]), pl.col("across").is_in(orders[1]))
    most = max(1.0, *(float(shown[file].max() or 0) for file in FILES))  # type: ignore[arg-type]
    least = max(0.1, float(shown["change"].abs().max() or 0))  # type: ignore[arg-type]
    ends = {"before": [0, most], "after": [0, most], "change": [-least, 0, least]}
    panels = [_panel(shown.to_dicts(), file, (down, across), orders, domain) for file, domain in ends.items()]
    title = f"{down} by {across}: percent of the records"
    resolve = {"scale": {"color": "independent"}}
    return Chart(page(title, columns=3, spacing=22, resolve=resolve, concat=panels), title)


def cell_shares(original: Microdata, masked: Microdata, down: str, across: str) -> pl.DataFrame:
    """Return a row for each cell that occurs in either file: its categories, percent before and after, and the change."""
    before, after = (_count_cells(data, down, across) for data in (original, masked))
    both = before.join(after, on=["down", "across"], how="full", coalesce=True, suffix=" after")
    shares = (pl.col(old).fill_null(0).alias(new) for old, new in (("share", "before"), ("share after", "after")))
    cells = both.select("down", "across", *shares).sort("down", "across")
    return cells.with_columns(change=pl.col("after") - pl.col("before"))


def _count_cells(data: Microdata, down: str, across: str) -> pl.DataFrame:
    frame = data.only([down, across]).frame()
    words = {"down": pl.col(down), "across": pl.col(across)}
    texts = frame.select(**{to: column.cast(pl.String).fill_null("missing") for to, column in words.items()})
    return texts.group_by("down", "across").agg(share=100 * pl.len() / max(1, len(frame)))


def _largest(cells: pl.DataFrame, side: str, original: Microdata, name: str) -> list[str]:
    """Return the categories with the most records, in the order of the file; new categories come last."""
    sums = cells.group_by(side).agg(size=(pl.col("before") + pl.col("after")).sum())
    largest = sums.sort("size", side, descending=[True, False]).head(MAX_TABLE_LEVELS)[side].to_list()
    levels = original.column(name).levels
    known = [] if levels is None else [str(level) for level in levels.drop_nulls()]
    return sorted(largest, key=lambda word: (known.index(word) if word in known else len(known), word))


def _panel(rows: list[Row], file: str, names: tuple[str, str], orders: list[list[str]], domain: list[float]) -> Spec:
    """Return one heat map: before, after or the change; only the first has row labels."""
    y_title, y_axis = names[0] if file == "before" else None, {**QUIET, "labels": file == "before"}
    x_axis = {**TURNED, "labels": True}
    at = {
        "x": {"field": "across", "type": "nominal", "sort": orders[1], "title": names[1], "axis": x_axis},
        "y": {"field": "down", "type": "nominal", "sort": orders[0], "title": y_title, "axis": y_axis},
    }
    colors, form = (CHANGE, "+.1f") if file == "change" else (SHARE, ".1f")
    numbers = [number(one, format=".2f") for one in (*FILES, "change")]
    tips = [{"field": "down", "title": names[0]}, {"field": "across", "title": names[1]}, *numbers]
    shade = number(file, legend=None, scale={"domain": domain, "range": colors, "interpolate": "rgb"})
    cells = _heat_map(at, shade, number(file, format=form), f"abs(datum['{file}']) > {0.6 * domain[-1]}", tooltip=tips)
    head = {"text": file, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    return {"data": {"values": rows}, "width": {"step": CELL}, "height": {"step": 22}, "layer": cells, "title": head}


def _heat_map(at: Spec, shade: Spec, text: Spec, dark: str, **more: Any) -> list[Spec]:
    """Return shaded cells with a number in each, white where the Vega expression `dark` is true."""
    ink = {"condition": {"test": dark, "value": "white"}, "value": "#222222"}
    return [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {**at, "color": shade, **more}},
        {"mark": {"type": "text", "fontSize": 9.5}, "encoding": {**at, "text": text, "color": ink}},
    ]


# ---- correlations -----------------------------------------------------------------------------------------------
def draw_correlations(original: Microdata, masked: Microdata, names: Sequence[str]) -> Chart:
    """Draw Pearson correlations of numeric columns before and after masking; every record counts once.

    The records where both columns have values are used. Cells of a constant column are empty. Colors range from orange (-1)
    over white to blue (1).
    """
    rows: list[Row] = [
        {"file": file, "a": a, "b": b, "r": round(float(r), 4)}
        for file, data in zip(FILES, (original, masked), strict=True)
        for a, line in zip(names, correlations(data, names), strict=True)
        for b, r in zip(names, line, strict=True)
        if np.isfinite(r)
    ]
    axis: Spec = {"type": "nominal", "sort": list(names), "title": None}
    at = {"x": {"field": "a", **axis, "axis": TURNED}, "y": {"field": "b", **axis, "axis": QUIET}}
    shade = number("r", title="correlation", scale={"domain": [-1, 0, 1], "range": CHANGE, "interpolate": "rgb"})
    cells = _heat_map(at, shade, number("r", format=".2f"), "abs(datum.r) > 0.6")
    header = {"labelFontSize": 12, "labelAnchor": "start"}
    title = "Correlations before and after"
    spec = page(
        title, data={"values": rows}, columns=2,
        facet={"field": "file", "type": "nominal", "sort": [*FILES], "title": None, "header": header},
        spec={"width": {"step": CELL}, "height": {"step": CELL * 0.7}, "layer": cells},
    )  # fmt: skip
    return Chart(spec, title)


def correlations(data: Microdata, names: Sequence[str]) -> Array:
    """Return Pearson correlations, each over the records where both columns have values; NaN where one is constant."""
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
