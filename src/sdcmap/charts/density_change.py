"""A number before and after masking: two densities on one axis."""

from __future__ import annotations

import numpy as np

from sdcmap.charts.style import COLOURS, CONFIG, FONT, SCHEMA
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array

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
