"""The likeliest released records of each known record, over all pairs, where fields have different kinds of densities.

A cost is a sum over fields of the log density lost against the field's maximum, at most its cap, in float32. Windows
and equalities cost 0 or the cap. A mixture counts by its likeliest component only, which is at most log(components)
too much. So more candidates are taken than asked for, and then scored and ranked by the densities themselves. Many
released records can tie at cost 0, within all windows. Each known record then takes different ones of them, so that
one-to-one links can find partners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import lane_jit, run_parts
from sdcmap.risk.linkage.cost_tiles import (
    INFINITE_COST_BITS,
    ROW_MASK,
    TILE_BLOCK_BYTES,
    TILE_RECORDS,
    append_candidates,
    least_bits,
    select_smallest,
    tile_records,
)
from sdcmap.risk.linkage.field_costs import BELOW, SAME, WINDOW
from sdcmap.risk.linkage.link_search import CHUNK_RECORDS, SPARE_CANDIDATES, Links, best_links

MISSING_VALUE = np.float32(1e18)  # stands for a missing value; far from all others
GOLDEN_RATIO = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly: they scatter starting points and ties


class FieldCosts(NamedTuple):
    """Both files and the costs of their fields; each array has a column or an entry for each field."""

    kind: Array
    a: Array  # known records; NaN: missing
    b: Array  # released records
    cap: Array
    width: Array  # WINDOW: |b - a| < width; BELOW: b - a < width
    parts: Array  # (field, component, 3): cost, center and half precision of each component of b - a


def find_likeliest_links(
    costs: FieldCosts, score: Callable[[Array, Array], Array], keep: int, threads: int | None = None
) -> Links:
    """Return the `keep` best released records of each known record; the number of threads does not change them.

    score : score(rows, index) returns the scores of known records (rows, k x 1) against released ones (index, k x
        candidates)
    """
    n, m = len(costs.a), len(costs.b)
    keep = min(keep, m)
    candidates = min(m, 2 * keep + 16)
    links = Links(np.empty((n, keep), dtype=np.int32), np.empty((n, keep)))
    if n == 0 or keep == 0:
        return links
    # Each known record orders equal costs differently, so that ties are spread over the released records.
    scatter = ((np.arange(n) * GOLDEN_RATIO) % 1 * (1 << 31)).astype(np.int32)
    scan = scan_of_fields(costs, scatter, candidates)

    def run(start: int) -> None:
        rows = np.arange(start, min(n, start + CHUNK_RECORDS))
        index = (np.sort(scan(rows), axis=1) & ROW_MASK).astype(np.int32) ^ scatter[rows, np.newaxis]
        best = best_links(score(rows[:, np.newaxis], index), keep)
        links.index[rows] = np.take_along_axis(index, best.index.astype(np.int64), axis=1)
        links.score[rows] = best.score

    run_parts(run, range(0, n, CHUNK_RECORDS), threads)
    return links


@on_device
def scan_of_fields(costs: FieldCosts, scatter: Array, candidates: int) -> Callable[[Array], Array]:
    """Return a function that finds the keys of the `candidates` cheapest released records.

    A key has the bits of the cost above the row number, which is XORed with the record's scatter.
    """
    a, b = (np.where(np.isnan(side), MISSING_VALUE, side).astype(np.float32) for side in (costs.a, costs.b))
    tiles, row = tile_records(b, TILE_RECORDS), np.arange(len(b), dtype=np.int32)
    cap, width, parts = (np.ascontiguousarray(x, dtype=np.float32) for x in (costs.cap, costs.width, costs.parts))
    kind = costs.kind.astype(np.int64)

    def scan(rows: Array) -> Array:
        keys = np.empty((len(rows), candidates + TILE_RECORDS + SPARE_CANDIDATES), dtype=np.uint64)
        _scan(tiles, row, a[rows], kind, cap, width, parts, scatter[rows], candidates, keys)
        return keys[:, :candidates]

    return scan


@lane_jit
def _scan(
    tiles: Array,
    row: Array,
    a: Array,
    kind: Array,
    cap: Array,
    width: Array,
    parts: Array,
    scatter: Array,
    keep: int,
    keys: Array,
) -> None:
    """Find the `keep` cheapest of each record of `a`; they come first in its row of `keys`.

    A row number is XORed with the record's `scatter`, which decides among equal costs. The scatter of the first record
    decides at which tile to start.
    """
    lanes, capacity = tiles.shape[2], keys.shape[1]
    start, scattered_rows = scatter[0] % len(tiles), np.empty(lanes, dtype=np.int32)
    block = max(1, TILE_BLOCK_BYTES // (4 * tiles.shape[1] * lanes + 1))
    cost, least = np.empty(lanes, dtype=np.float32), np.empty(lanes, dtype=np.float32)
    bits = cost.view(np.int32)
    count = np.zeros(len(a), dtype=np.int64)
    limit = np.full(len(a), INFINITE_COST_BITS)
    for first in range(0, len(tiles), block):
        for i in range(len(a)):
            for step in range(first, min(len(tiles), first + block)):
                if limit[i] < 0:  # `keep` records cost 0, so no other can be cheaper
                    break
                t = (start + step) % len(tiles)
                cost[:] = 0
                for f in range(len(kind)):
                    _add_field(cost, least, tiles[t, f], a[i, f], kind[f], cap[f], width[f], parts[f])
                if least_bits(bits) <= limit[i]:
                    here = row[t * lanes : (t + 1) * lanes]
                    # Scatter the row numbers, so that equal costs are ordered differently for each known record.
                    for lane in range(len(here)):
                        scattered_rows[lane] = here[lane] ^ scatter[i]
                    count[i] = append_candidates(keys[i], count[i], bits, limit[i], scattered_rows[: len(here)])
                    if count[i] > capacity - lanes:
                        # The buffer is full: keep the best, and accept only records that cost less from now on.
                        limit[i] = select_smallest(keys[i], count[i], keep) - 1
                        count[i] = keep
    for i in range(len(a)):
        select_smallest(keys[i], count[i], keep)


@lane_jit
def _add_field(
    cost: Array, least: Array, b: Array, a: float, kind: int, cap: float, width: float, parts: Array
) -> None:
    """Add the cost of one field to each lane."""
    zero = np.float32(0)
    if a == MISSING_VALUE or kind == SAME:
        for lane in range(len(cost)):
            cost[lane] += zero if b[lane] == a else cap
    elif kind == WINDOW:
        for lane in range(len(cost)):
            cost[lane] += zero if abs(b[lane] - a) < width else cap
    elif kind == BELOW:
        for lane in range(len(cost)):
            cost[lane] += zero if b[lane] - a < width else cap
    elif len(parts) == 2 and parts[0, 2] == parts[1, 2]:
        _add_two_components(cost, b, a, cap, parts)
    else:
        least[:] = cap
        for k in range(len(parts)):
            top, center, half = parts[k, 0], a + parts[k, 1], parts[k, 2]
            for lane in range(len(cost)):
                difference = b[lane] - center
                least[lane] = min(least[lane], top + difference * difference * half)
        for lane in range(len(cost)):
            cost[lane] += least[lane]


@lane_jit
def _add_two_components(cost: Array, b: Array, a: float, cap: float, parts: Array) -> None:
    """Add the cost of a mixture of two components with equal precision, the most common case."""
    top, other_top = parts[0, 0], parts[1, 0]
    center, other, half = a + parts[0, 1], a + parts[1, 1], parts[0, 2]
    for lane in range(len(cost)):
        difference, other_difference = b[lane] - center, b[lane] - other
        cost[lane] += min(
            min(top + difference * difference * half, other_top + other_difference * other_difference * half), cap
        )
