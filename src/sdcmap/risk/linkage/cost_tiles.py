"""Kernels that compute the costs of one record against many, and keep the cheapest.

Records lie in tiles, arrays (tile, field, lane), so that the inner loops run over lanes and vectorize. A cost is a sum
over fields of slope * min(reach, |a - b|), or of (a - b)^2, in float32. Fields are always added in the same order, and
each product is added with a single rounding where the processor can. So every loop gives the same number up to its
last bits (COST_ULPS), and the cost of a box never exceeds the cost of a record in it by more than that. Costs are not
negative, hence they sort as their bits do: a candidate is one 64-bit key, the bits of the cost above the row number.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import fused_jit, lane_jit

TILE_RECORDS = 512  # records in a tile
TILE_BLOCK_BYTES = 1 << 18  # bytes; a block of tiles stays in the cache while several records are compared with it
LANES_TESTED_TOGETHER = 64  # lanes of a tile that are skipped together when all of them cost too much
COST_SHIFT, ROW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)  # a key: cost bits above, row number below
COST_ULPS = np.int32(16)  # units in the last place by which a cost may differ between two loops
INFINITE_COST_BITS = np.int32(0x7F800000)  # bits of float32 infinity


def tile_records(records: Array, lanes: int) -> Array:
    """Return records (record, field) as float32 tiles (tile, field, lane); the last record fills up the last tile."""
    tiles = -(-len(records) // lanes)
    filled = records[np.minimum(np.arange(tiles * lanes), len(records) - 1)].astype(np.float32)
    return np.ascontiguousarray(filled.reshape(tiles, lanes, -1).transpose(0, 2, 1))


# ---- costs of a tile ------------------------------------------------------------------------------------------
@fused_jit
def tile_costs(cost: Array, tile: Array, a: Array, slope: Array, reach: Array, square: bool) -> None:
    """Write the cost of each lane of a tile.

    Four fields are added at a time, so that a lane loop has no index arithmetic and few loads.
    """
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
    """Write a lower bound for the costs of the records in each box."""
    cost[:] = 0
    for f in range(len(low)):
        if square:
            _add_box_square(cost, low[f], high[f], a[f])
        else:
            _add_box(cost, low[f], high[f], a[f], slope[f], reach[f])


@fused_jit
def _add_box(cost: Array, low: Array, high: Array, a: float, slope: float, reach: float) -> None:
    zero = np.float32(0)
    for lane in range(len(cost)):
        cost[lane] += slope * min(max(max(low[lane] - a, a - high[lane]), zero), reach)


@fused_jit
def _add_box_square(cost: Array, low: Array, high: Array, a: float) -> None:
    zero = np.float32(0)
    for lane in range(len(cost)):
        distance = max(max(low[lane] - a, a - high[lane]), zero)
        cost[lane] += distance * distance


# ---- candidates -----------------------------------------------------------------------------------------------
@lane_jit
def least_bits(bits: Array) -> np.int32:
    """Return the least cost, as bits."""
    least = bits[0]
    for lane in range(len(bits)):
        least = min(least, bits[lane])
    return np.int32(least)


@lane_jit
def append_candidates(keys: Array, count: int, bits: Array, limit: np.int32, row: Array) -> int:
    """Append the records `row` with a cost of at most `limit` to the first `count` keys; return the new count.

    Parts of a tile without such a record are skipped. In the others, every key is written and the count advances only
    for records within the limit, which avoids a branch in the loop.
    """
    for start in range(0, len(row), LANES_TESTED_TOGETHER):
        part = bits[start : start + LANES_TESTED_TOGETHER]
        if least_bits(part) <= limit:
            for lane in range(min(LANES_TESTED_TOGETHER, len(row) - start)):
                keys[count] = (np.uint64(part[lane]) << COST_SHIFT) | np.uint64(row[start + lane])
                count += part[lane] <= limit
    return count


@lane_jit
def select_smallest(keys: Array, count: int, keep: int) -> np.int32:
    """Move the `keep` smallest of the first `count` keys to the front, and return the bits of the largest cost of
    them.

    This is quickselect (Hoare 1961).
    """
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
    return np.int32(keys[keep - 1] >> COST_SHIFT)


@fused_jit
def limit_from_neighbor(
    keys: Array, position: Array, tiles: Array, a: Array, slope: Array, reach: Array, square: bool
) -> np.int32:
    """Return the bits of the largest cost of `a` to the records that a neighboring record kept.

    There are `keep` of them, so no record beyond this cost can be among the `keep` cheapest of `a`.
    """
    lanes = tiles.shape[2]
    worst = np.float32(0)
    for key in keys:
        at = position[key & ROW_MASK]
        cost = np.float32(0)
        for f in range(len(a)):
            distance = abs(tiles[at // lanes, f, at % lanes] - a[f])
            if square:
                cost += distance * distance
            else:
                cost += slope[f] * min(distance, reach[f])
        worst = max(worst, cost)
    return np.int32(np.array([worst]).view(np.int32)[0] + COST_ULPS)


# ---- all pairs ------------------------------------------------------------------------------------------------
@lane_jit
def scan_all(
    tiles: Array, row: Array, a: Array, slope: Array, reach: Array, square: bool, keep: int, keys: Array
) -> None:
    """Compare each record of `a` with every tile; its `keep` cheapest come first in its row of `keys`.

    The tiles are processed in blocks that fit into the cache. The first record is scanned alone. The records it kept
    give the others, its neighbors, a limit to start with. Tiles come in the order of rows, so that among equal costs
    the lower row is already kept.
    """
    lanes, capacity = tiles.shape[2], keys.shape[1]
    block = max(1, TILE_BLOCK_BYTES // (4 * tiles.shape[1] * lanes + 1))
    cost = np.empty(lanes, dtype=np.float32)
    bits = cost.view(np.int32)
    count = np.zeros(len(a), dtype=np.int64)
    limit = np.full(len(a), INFINITE_COST_BITS)
    # The first record alone, then all the others with limits from what the first one kept.
    for begin, end in ((0, 1), (1, len(a))):
        for i in range(begin, end):
            if i > 0:
                limit[i] = limit_from_neighbor(keys[0, :keep], row, tiles, a[i], slope[i], reach[i], square)
        for first in range(0, len(tiles), block):
            for i in range(begin, end):
                for t in range(first, min(len(tiles), first + block)):
                    tile_costs(cost, tiles[t], a[i], slope[i], reach[i], square)
                    if least_bits(bits) <= limit[i]:
                        count[i] = append_candidates(
                            keys[i], count[i], bits, limit[i], row[t * lanes : (t + 1) * lanes]
                        )
                        if count[i] > capacity - lanes:
                            # The buffer is full: keep the best, and accept only records that cost less from now on.
                            limit[i] = select_smallest(keys[i], count[i], keep) - 1
                            count[i] = keep
        for i in range(begin, end):
            select_smallest(keys[i], count[i], keep)
