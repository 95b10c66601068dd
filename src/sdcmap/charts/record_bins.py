"""The confidentiality plot for external readers: counts in bins set by the thresholds, none of 1 to 9 records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdcmap.charts.style import FROM_TO, GRAY, INK, layer, number
from sdcmap.core.audience import MIN_SHOWN_RECORDS, Audience, format_significant
from sdcmap.core.chart import Row, Spec
from sdcmap.kernels.arrays import Array

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

CELL = (74, 40)  # pixels of one bin


class Block(NamedTuple):
    """Bins merged into a rectangle: columns left to right - 1, rows bottom to top - 1, and its records."""

    left: int
    right: int
    bottom: int
    top: int
    records: int


def merge_bins(counts: Array, least: int = MIN_SHOWN_RECORDS) -> list[Block]:
    """Merge bins into rectangles with no record or at least `least`; an empty list where all together have fewer.

    The whole is split where both parts qualify, as evenly as possible, and so on until no part can be split.

    >>> [block.records for block in merge_bins(np.array([[12, 3], [0, 30]]))]
    [15, 0, 30]
    """
    total = int(counts.sum())
    if 0 < total < least:
        return []
    return _split_block(counts, Block(0, counts.shape[0], 0, counts.shape[1], total), least)


def _split_block(counts: Array, block: Block, least: int) -> list[Block]:
    cuts = [(block._replace(right=cut), block._replace(left=cut)) for cut in range(block.left + 1, block.right)]
    cuts += [(block._replace(top=cut), block._replace(bottom=cut)) for cut in range(block.bottom + 1, block.top)]
    # A cut is allowed if neither part has a small count, which an external reader must not see.
    halves = []
    for cut in cuts:
        first, second = (part._replace(records=_sum(counts, part)) for part in cut)
        if all(part.records == 0 or part.records >= least for part in (first, second)):
            halves.append((first, second))
    if not halves or block.records == 0:
        return [block]
    # The most even cut leaves most freedom for further cuts.
    best = min(halves, key=lambda pair: abs(pair[0].records - pair[1].records))
    return [part for half in best for part in _split_block(counts, half, least)]


def _sum(counts: Array, block: Block) -> int:
    return int(counts[block.left : block.right, block.bottom : block.top].sum())


def bins(table: RecordTable) -> tuple[list[float], list[float], Array]:
    """Return bin edges as shares of the thresholds, never of the data, and the number of records in each bin."""
    k, r = table.rule.k, 1.0 if table.uses_frequencies else table.rule.r
    across = [*dict.fromkeys([0, *(math.ceil(k * s / 3) for s in (1, 2, 3, 6, 15, 60))]), math.inf]
    up = [*(r * s / 3 for s in ((0, 1, 2) if table.uses_frequencies else (0, 1, 2, 3, 6, 12))), math.inf]
    # histogram2d needs finite edges; the last bin is open.
    edges = [np.minimum(borders, 1e300) for borders in (across, up)]
    counts = np.histogram2d(table.neighbors, table.perturbation, edges)[0]
    return [float(edge) for edge in across], up, counts.astype(np.int64)


def draw_bins(table: RecordTable, to: Audience) -> Spec:
    """Return the bins as a Vega-Lite view: shaded rectangles with counts to two significant digits."""
    across, up, counts = bins(table)
    columns, rows = counts.shape
    blocks = merge_bins(counts)
    most = max((block.records for block in blocks), default=1) or 1
    values: list[Row] = [
        {"x": b.left, "x2": b.right, "y": b.bottom, "y2": b.top, "middle_x": (b.left + b.right) / 2,
         "middle_y": (b.bottom + b.top) / 2, "share": float(f"{b.records / most:.1g}"),
         "text": format_significant(b.records, 2)}
        for b in blocks
    ]  # fmt: skip
    first = f"Unsafe: {to.count(len(table.unsafe))} of {format_significant(len(table), 2)} records."
    first = first if blocks else f"Fewer than {MIN_SHOWN_RECORDS} records: nothing is shown."
    title = [first, f"Counts to two digits; bins with 1 to {MIN_SHOWN_RECORDS - 1} records are merged with others."]
    x_title = "Records with the same combination" if table.uses_frequencies else "Number of neighbors"
    y_title = "Information loss" if table.uses_frequencies else "Perturbation"
    x, y = _axis(across, columns, x_title), _axis(up, rows, y_title)
    text = {"x": number("middle_x", **x), "y": number("middle_y", **y), "text": {"field": "text"}}
    scale = {"domain": [0, 1], "range": ["#ffffff", "#6baed6"], "interpolate": "rgb"}
    shade = number("share", legend=None, scale=scale)
    line = {"type": "rule", "color": "#B22222", "strokeDash": [6, 4], "strokeWidth": 1.3}
    thresholds = [layer([{"x": across.index(float(table.rule.k))}], line, x=number("x", **x))]
    if not table.uses_frequencies:  # the perturbation r is the edge with index 3
        thresholds.append(layer([{"y": 3}], line, y=number("y", **y)))
    look = {"type": "text", "fontSize": 11, "color": INK}
    halo = {**look, "color": "white", "stroke": "white", "strokeWidth": 4, "strokeJoin": "round"}
    return {
        "width": CELL[0] * columns, "height": CELL[1] * rows, "data": {"values": values},
        "title": {"text": title, "anchor": "start", "color": GRAY, "fontSize": 10.5, "fontWeight": "normal"},
        "layer": [
            {"mark": {"type": "rect", "stroke": "#c8ccd0", "strokeWidth": 1},
             "encoding": {"x": number("x", **x), "y": number("y", **y), **FROM_TO, "color": shade}},
            *thresholds,
            *({"mark": mark, "encoding": text} for mark in (halo, look)),
        ],
    }  # fmt: skip


def _axis(edges: Sequence[float], count: int, title: str) -> Spec:
    labels = ["" if math.isinf(edge) else f"{edge:.3g}" for edge in edges]
    expression = " : ".join(f"datum.value === {index} ? '{text}'" for index, text in enumerate(labels)) + " : ''"
    look = {"values": list(range(len(edges))), "labelExpr": expression, "title": title}
    return {"axis": look, "scale": {"domain": [0, count], "nice": False}}
