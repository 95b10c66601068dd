"""Costs of one record against many, laid out as (tile, field, lane), and the cheapest of them kept.

A cost is a sum over fields of slope min(reach, |a - b|), or of (a - b)^2, in float32 and always in the order of the fields,
each product added in one rounding where the processor can: so that it is the same number wherever it is computed, to
the last bits (ROUNDING), and the cost of a box is never above the cost of a record in it by more.
Costs are not negative, hence they sort as their bits do: a candidate is one 64-bit key, the cost's bits above its row.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import fused_jit, lane_jit

TILE = 512  # records in a tile
CACHED = 1 << 18  # bytes of a block of tiles
PART = 64  # lanes that are tested together
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
ROUNDING = np.int32(16)  # last bits in which one cost may differ between two loops
INFINITE = np.int32(0x7F800000)  # the bits of an infinite cost


def tiled(records: Array, lanes: int) -> Array:
    """(tile, field, lane) of an array (record, field), float32; the last tile is filled up with its last record."""
    tiles = -(-len(records) // lanes)
    filled = records[np.minimum(np.arange(tiles * lanes), len(records) - 1)].astype(np.float32)
    return np.ascontiguousarray(filled.reshape(tiles, lanes, -1).transpose(0, 2, 1))


# ---- costs of a tile ------------------------------------------------------------------------------------------
@fused_jit
def tile_costs(cost: Array, tile: Array, a: Array, slope: Array, reach: Array, square: bool) -> None:
    """Cost of each lane; four fields at a time, so that a lane loop has no index arithmetic and few loads."""
    fields = len(tile)
    fours = fields - fields % 4
    cost[:] = 0
    for f in range(0, fours, 4):
        if square:
            _add_four_squares(cost, tile[f : f + 4], a[f : f + 4])
        else:
            _add_four(cost, tile[f : f + 4], a[f : f + 4], slope[f : f + 4], reach[f : f + 4])
    for f in range(fours, fields):
        if square:
            _add_square(cost, tile[f], a[f])
        else:
            _add(cost, tile[f], a[f], slope[f], reach[f])


@fused_jit
def _add(cost: Array, b: Array, a: float, slope: float, reach: float) -> None:
    for lane in range(len(cost)):
        cost[lane] += slope * min(abs(b[lane] - a), reach)


@fused_jit
def _add_four(cost: Array, tile: Array, a: Array, slope: Array, reach: Array) -> None:
    b0, b1, b2, b3 = tile[0], tile[1], tile[2], tile[3]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    s0, s1, s2, s3 = slope[0], slope[1], slope[2], slope[3]
    r0, r1, r2, r3 = reach[0], reach[1], reach[2], reach[3]
    for lane in range(len(cost)):
        total = cost[lane] + s0 * min(abs(b0[lane] - a0), r0)
        total = total + s1 * min(abs(b1[lane] - a1), r1)
        total = total + s2 * min(abs(b2[lane] - a2), r2)
        cost[lane] = total + s3 * min(abs(b3[lane] - a3), r3)


@fused_jit
def _add_square(cost: Array, b: Array, a: float) -> None:
    for lane in range(len(cost)):
        cost[lane] += (b[lane] - a) * (b[lane] - a)


@fused_jit
def _add_four_squares(cost: Array, tile: Array, a: Array) -> None:
    b0, b1, b2, b3 = tile[0], tile[1], tile[2], tile[3]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    for lane in range(len(cost)):
        total = cost[lane] + (b0[lane] - a0) * (b0[lane] - a0)
        total = total + (b1[lane] - a1) * (b1[lane] - a1)
        total = total + (b2[lane] - a2) * (b2[lane] - a2)
        cost[lane] = total + (b3[lane] - a3) * (b3[lane] - a3)


@fused_jit
def box_costs(cost: Array, low: Array, high: Array, a: Array, slope: Array, reach: Array, square: bool) -> None:
    """A lower bound of the costs of the records in each box."""
    cost[:] = 0
    for f in range(len(low)):
        if square:
            _add_box_square(cost, low[f], high[f], a[f])
        else:
            _add_box(cost, low[f], high[f], a[f], slope[f], reach[f])


@fused_jit
def _add_box(cost: Array, low: Array, high: Array, a: float, slope: float, reach: float) -> None:
    nil = np.float32(0)
    for lane in range(len(cost)):
        cost[lane] += slope * min(max(max(low[lane] - a, a - high[lane]), nil), reach)


@fused_jit
def _add_box_square(cost: Array, low: Array, high: Array, a: float) -> None:
    nil = np.float32(0)
    for lane in range(len(cost)):
        far = max(max(low[lane] - a, a - high[lane]), nil)
        cost[lane] += far * far


# ---- the cheapest ---------------------------------------------------------------------------------------------
@lane_jit
def lowest(bits: Array) -> np.int32:
    """The least cost, as bits."""
    least = bits[0]
    for lane in range(len(bits)):
        least = min(least, bits[lane])
    return np.int32(least)


@lane_jit
def offer(keys: Array, count: int, bits: Array, limit: np.int32, row: Array) -> int:
    """Append the records `row` whose cost is at most `limit` to the first `count` keys; returns the new count.

    Parts of a tile without such a record are passed over, and the others taken without a branch.
    """
    for start in range(0, len(row), PART):
        part = bits[start : start + PART]
        if lowest(part) <= limit:
            for lane in range(min(PART, len(row) - start)):
                keys[count] = (np.uint64(part[lane]) << HALF) | np.uint64(row[start + lane])
                count += part[lane] <= limit
    return count


@lane_jit
def select(keys: Array, count: int, keep: int) -> np.int32:
    """Bring the `keep` smallest of the first `count` keys to the front; returns the largest cost of them, as
    bits (Hoare 1961)."""
    first, last = 0, count - 1
    while first < last:
        pivot = keys[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if keep - 1 <= j:
            last = j
        elif keep - 1 >= i:
            first = i
        else:
            break
    return np.int32(keys[keep - 1] >> HALF)


@fused_jit
def limit_from(keys: Array, place: Array, tiles: Array, a: Array, slope: Array, reach: Array, square: bool) -> np.int32:
    """The bits of the largest cost of `a` to the records that another record kept: `keep` of them cost no more."""
    lanes = tiles.shape[2]
    worst = np.float32(0)
    for key in keys:
        at = place[key & LOW]
        cost = np.float32(0)
        for f in range(len(a)):
            far = abs(tiles[at // lanes, f, at % lanes] - a[f])
            if square:
                cost += far * far
            else:
                cost += slope[f] * min(far, reach[f])
        worst = max(worst, cost)
    return np.int32(np.array([worst]).view(np.int32)[0] + ROUNDING)


# ---- all pairs ------------------------------------------------------------------------------------------------
@lane_jit
def scan_all(
    tiles: Array, row: Array, a: Array, slope: Array, reach: Array, square: bool, keep: int, keys: Array
) -> None:  # fmt: skip
    """Each record of `a` against every tile, a block of tiles (as many as the cache holds) after the other; its `keep`
    cheapest come first in its row of `keys`.

    The first record goes alone, and what it kept tells the others, its neighbors, how far to look. Tiles come in the
    order of rows, so that among equal costs the lower row is already kept.
    """
    lanes, room = tiles.shape[2], keys.shape[1]
    block = max(1, CACHED // (4 * tiles.shape[1] * lanes + 1))
    cost = np.empty(lanes, dtype=np.float32)
    bits = cost.view(np.int32)
    count = np.zeros(len(a), dtype=np.int64)
    limit = np.full(len(a), INFINITE)
    for begin, end in ((0, 1), (1, len(a))):
        for i in range(begin, end):
            if i > 0:
                limit[i] = limit_from(keys[0, :keep], row, tiles, a[i], slope[i], reach[i], square)
        for first in range(0, len(tiles), block):
            for i in range(begin, end):
                for t in range(first, min(len(tiles), first + block)):
                    tile_costs(cost, tiles[t], a[i], slope[i], reach[i], square)
                    if lowest(bits) <= limit[i]:
                        count[i] = offer(keys[i], count[i], bits, limit[i], row[t * lanes : (t + 1) * lanes])
                        if count[i] > room - lanes:
                            limit[i] = select(keys[i], count[i], keep) - 1
                            count[i] = keep
        for i in range(begin, end):
            select(keys[i], count[i], keep)
