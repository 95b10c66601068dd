"""The likeliest released records of each known record, all pairs, where fields have densities of different kinds.

A cost is a sum over fields of what is lost against the field's highest density, at most its cap, in float32. Windows and
equalities cost nothing or the cap. A mixture counts by its likeliest component: at most log(components) too much, so more
candidates are taken than asked for, and then scored and ranked by the densities themselves. Many released records can cost
the same, nothing within all windows: each known record then takes others of them, so that one-to-one links find partners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import lane_jit, run_parts
from sdcmap.risk.linkage.cost_tiles import CACHED, INFINITE, LOW, TILE, lowest, offer, select, tiled
from sdcmap.risk.linkage.field_costs import BELOW, SAME, WINDOW
from sdcmap.risk.linkage.link_search import CHUNK, ROOM, Links, best_links

GONE = np.float32(1e18)  # stands for a missing value: it is far from all others
GOLDEN = 0.6180339887498949  # its multiples scatter starts and ties evenly


class FieldCosts(NamedTuple):
    """Both files and how fields count; an array has a column or an entry for each field."""

    kind: Array
    a: Array  # known records, NaN: missing
    b: Array  # released records
    cap: Array
    width: Array  # of windows: |b - a| < width; of one side: b - a < width
    parts: Array  # (field, component, 3): cost, center and half precision of each component of b - a


def likeliest_links(
    costs: FieldCosts, score: Callable[[Array, Array], Array], keep: int, threads: int | None = None
) -> Links:
    """The `keep` best released records of each known record. score(rows, index): the scores of these known records
    (rows, k x 1) against released ones (index, k x candidates). The links do not depend on the number of threads."""
    n, m = len(costs.a), len(costs.b)
    keep = min(keep, m)
    enough = min(m, 2 * keep + 16)
    links = Links(np.empty((n, keep), dtype=np.int32), np.empty((n, keep)))
    if n == 0 or keep == 0:
        return links
    scatter = ((np.arange(n) * GOLDEN) % 1 * (1 << 31)).astype(np.int32)
    scan = scan_of_fields(costs, scatter, enough)

    def run(start: int) -> None:
        rows = np.arange(start, min(n, start + CHUNK))
        index = (np.sort(scan(rows), axis=1) & LOW).astype(np.int32) ^ scatter[rows, np.newaxis]
        best = best_links(score(rows[:, np.newaxis], index), keep)
        links.index[rows] = np.take_along_axis(index, best.index.astype(np.int64), axis=1)
        links.score[rows] = best.score

    run_parts(run, range(0, n, CHUNK), threads)
    return links


@on_device
def scan_of_fields(costs: FieldCosts, scatter: Array, enough: int) -> Callable[[Array], Array]:
    """The keys of the `enough` cheapest of known records: the cost's bits above a row turned by the record's scatter."""
    a, b = (np.where(np.isnan(side), GONE, side).astype(np.float32) for side in (costs.a, costs.b))
    tiles, row = tiled(b, TILE), np.arange(len(b), dtype=np.int32)
    cap, width, parts = (np.ascontiguousarray(x, dtype=np.float32) for x in (costs.cap, costs.width, costs.parts))
    kind = costs.kind.astype(np.int64)

    def scan(rows: Array) -> Array:
        keys = np.empty((len(rows), enough + TILE + ROOM), dtype=np.uint64)
        _scan(tiles, row, a[rows], kind, cap, width, parts, scatter[rows], enough, keys)
        return keys[:, :enough]

    return scan


@lane_jit
def _scan(
    tiles: Array, row: Array, a: Array, kind: Array, cap: Array, width: Array, parts: Array, scatter: Array, keep: int,
    keys: Array,
) -> None:  # fmt: skip
    """The `keep` cheapest of each record of `a`, first in its row of `keys`, where a row number is turned by the bits of
    the record's `scatter`: they decide among equal costs. The first record's say at which tile to start."""
    lanes, room = tiles.shape[2], keys.shape[1]
    start, turned = scatter[0] % len(tiles), np.empty(lanes, dtype=np.int32)
    block = max(1, CACHED // (4 * tiles.shape[1] * lanes + 1))
    cost, most = np.empty(lanes, dtype=np.float32), np.empty(lanes, dtype=np.float32)
    bits = cost.view(np.int32)
    count = np.zeros(len(a), dtype=np.int64)
    limit = np.full(len(a), INFINITE)
    for first in range(0, len(tiles), block):
        for i in range(len(a)):
            for step in range(first, min(len(tiles), first + block)):
                if limit[i] < 0:  # enough records cost nothing
                    break
                t = (start + step) % len(tiles)
                cost[:] = 0
                for f in range(len(kind)):
                    _add(cost, most, tiles[t, f], a[i, f], kind[f], cap[f], width[f], parts[f])
                if lowest(bits) <= limit[i]:
                    here = row[t * lanes : (t + 1) * lanes]
                    for lane in range(len(here)):
                        turned[lane] = here[lane] ^ scatter[i]
                    count[i] = offer(keys[i], count[i], bits, limit[i], turned[: len(here)])
                    if count[i] > room - lanes:
                        limit[i] = select(keys[i], count[i], keep) - 1
                        count[i] = keep
    for i in range(len(a)):
        select(keys[i], count[i], keep)


@lane_jit
def _add(cost: Array, most: Array, b: Array, a: float, kind: int, cap: float, width: float, parts: Array) -> None:
    nil = np.float32(0)
    if a == GONE or kind == SAME:
        for lane in range(len(cost)):
            cost[lane] += nil if b[lane] == a else cap
    elif kind == WINDOW:
        for lane in range(len(cost)):
            cost[lane] += nil if abs(b[lane] - a) < width else cap
    elif kind == BELOW:
        for lane in range(len(cost)):
            cost[lane] += nil if b[lane] - a < width else cap
    elif len(parts) == 2 and parts[0, 2] == parts[1, 2]:
        _add_two(cost, b, a, cap, parts)
    else:
        most[:] = cap
        for k in range(len(parts)):
            top, center, half = parts[k, 0], a + parts[k, 1], parts[k, 2]
            for lane in range(len(cost)):
                away = b[lane] - center
                most[lane] = min(most[lane], top + away * away * half)
        for lane in range(len(cost)):
            cost[lane] += most[lane]


@lane_jit
def _add_two(cost: Array, b: Array, a: float, cap: float, parts: Array) -> None:
    top, other_top = parts[0, 0], parts[1, 0]
    center, other, half = a + parts[0, 1], a + parts[1, 1], parts[0, 2]
    for lane in range(len(cost)):
        away, beyond = b[lane] - center, b[lane] - other
        cost[lane] += min(min(top + away * away * half, other_top + beyond * beyond * half), cap)
