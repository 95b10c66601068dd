"""The confidentiality plot for readers outside: counts in bins that the thresholds fix, none of 1 to 9 records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdcmap.charts.style import GREY, INK
from sdcmap.core.audience import SMALL, Audience, significant
from sdcmap.core.chart import Spec
from sdcmap.kernels.arrays import Array

if TYPE_CHECKING:
    from sdcmap.recordwise.table import RecordTable

CELL = (74, 40)  # pixels of one bin


class Block(NamedTuple):
    """Bins merged to a rectangle: columns left to right - 1, rows bottom to top - 1, and its records."""

    left: int
    right: int
    bottom: int
    top: int
    records: int


def merged(counts: Array, least: int = SMALL) -> list[Block]:
    """The bins as rectangles that hold no record or at least `least`; an empty list where all together are too few.

    A rectangle is halved where both parts hold, as evenly as can be, and so on until no part can be halved.

    >>> [block.records for block in merged(np.array([[12, 3], [0, 30]]))]
    [15, 0, 30]
    """
    total = int(counts.sum())
    if 0 < total < least:
        return []
    return _halved(counts, Block(0, counts.shape[0], 0, counts.shape[1], total), least)


def _halved(counts: Array, block: Block, least: int) -> list[Block]:
    cuts = []
    for cut in range(block.left + 1, block.right):
        cuts.append((block._replace(right=cut), block._replace(left=cut)))
    for cut in range(block.bottom + 1, block.top):
        cuts.append((block._replace(top=cut), block._replace(bottom=cut)))
    best: tuple[int, Block, Block] | None = None
    for pair in cuts:
        first, second = (part._replace(records=_sum(counts, part)) for part in pair)
        if all(part.records == 0 or part.records >= least for part in (first, second)):
            uneven = abs(first.records - second.records)
            if best is None or uneven < best[0]:
                best = (uneven, first, second)
    if best is None or block.records == 0:
        return [block]
    return [*_halved(counts, best[1], least), *_halved(counts, best[2], least)]


def _sum(counts: Array, block: Block) -> int:
    return int(counts[block.left : block.right, block.bottom : block.top].sum())


def bins(table: RecordTable) -> tuple[list[float], list[float], Array]:
    """Borders in shares of the thresholds, never of the data, and the number of records between them."""
    k, r = table.rule.k, 1.0 if table.social else table.rule.r
    across = [*dict.fromkeys([0, *(math.ceil(k * s / 3) for s in (1, 2, 3, 6, 15, 60))]), math.inf]
    up = [r * s / 3 for s in ((0, 1, 2, 3) if table.social else (0, 1, 2, 3, 6, 12))]
    up = [*up[:-1], math.inf] if table.social else [*up, math.inf]
    counts = np.histogram2d(table.neighbours, table.perturbation, [_finite(across), _finite(up)])[0]
    return [float(edge) for edge in across], up, counts.astype(np.int64)


def _finite(edges: Sequence[float]) -> list[float]:
    return [min(edge, 1e300) for edge in edges]


def draw_bins(table: RecordTable, to: Audience) -> Spec:
    """The bins as a Vega-Lite view: a shaded rectangle with its count, to two significant digits, for each."""
    across, up, counts = bins(table)
    columns, rows = counts.shape
    blocks = merged(counts)
    most = max((block.records for block in blocks), default=1) or 1
    values = [
        {
            "x": b.left, "x2": b.right, "y": b.bottom, "y2": b.top, "middle_x": (b.left + b.right) / 2,
            "middle_y": (b.bottom + b.top) / 2, "share": float(f"{b.records / most:.1g}"),
            "text": significant(b.records, 2),
        }
        for b in blocks
    ]  # fmt: skip
    unsafe = to.count(len(table.unsafe))
    said = [f"Unsafe: {unsafe} of {significant(len(table), 2)} records."]
    if not blocks:
        said = [f"Fewer than {SMALL} records: nothing is shown."]
    said.append(f"Counts to two digits; bins with 1 to {SMALL - 1} records are merged with others.")
    x_title = "Records with the same combination" if table.social else "Number of neighbours"
    y_title = "Information loss" if table.social else "Perturbation"
    place: Spec = {
        "x": {"field": "x", "type": "quantitative", **_axis(across, columns, x_title)},
        "y": {"field": "y", "type": "quantitative", **_axis(up, rows, y_title)},
    }
    text = {
        "x": {**place["x"], "field": "middle_x"},
        "y": {**place["y"], "field": "middle_y"},
        "text": {"field": "text"},
    }
    colour = {"field": "share", "type": "quantitative", "legend": None,
              "scale": {"domain": [0, 1], "range": ["#ffffff", "#6baed6"], "interpolate": "rgb"}}  # fmt: skip
    return {
        "width": CELL[0] * columns,
        "height": CELL[1] * rows,
        "title": {"text": said, "anchor": "start", "color": GREY, "fontSize": 10.5, "fontWeight": "normal"},
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "rect", "stroke": "#c8ccd0", "strokeWidth": 1},
             "encoding": {**place, "x2": {"field": "x2"}, "y2": {"field": "y2"}, "color": colour}},
            *_thresholds(table, across, place),
            {"mark": {"type": "text", "fontSize": 11, "color": "white", "stroke": "white", "strokeWidth": 4,
                      "strokeJoin": "round"}, "encoding": text},
            {"mark": {"type": "text", "fontSize": 11, "color": INK}, "encoding": text},
        ],
    }  # fmt: skip


def _axis(edges: Sequence[float], count: int, title: str) -> Spec:
    labels = {str(place): "" if math.isinf(edge) else f"{edge:.3g}" for place, edge in enumerate(edges)}
    said = " : ".join(f"datum.value === {place} ? '{words}'" for place, words in labels.items()) + " : ''"
    look = {"values": list(range(len(edges))), "labelExpr": said, "title": title}
    return {"axis": look, "scale": {"domain": [0, count], "nice": False}}


def _thresholds(table: RecordTable, across: Sequence[float], place: Spec) -> list[Spec]:
    """Lines at k neighbours and, with distances, at perturbation r, the border number 3."""
    style = {"type": "rule", "color": "#B22222", "strokeDash": [6, 4], "strokeWidth": 1.3}
    lines = [
        {"data": {"values": [{"x": across.index(float(table.rule.k))}]}, "mark": style, "encoding": {"x": place["x"]}}
    ]
    if not table.social:
        lines.append({"data": {"values": [{"y": 3}]}, "mark": style, "encoding": {"y": place["y"]}})
    return lines
