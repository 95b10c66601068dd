"""The cheapest released records of each known record: all pairs, or boxes where most pairs need not be looked at.

Known records are taken in the order of a k-d tree, so that what one keeps tells the next how far to look. Each record's
result is its own: it does not depend on the number of threads, nor on which of the two ways is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import jit, lane_jit, own_threads
from sdcmap.risk.linkage.cost_tiles import (
    INFINITE,
    LOW,
    ROUNDING,
    TILE,
    box_costs,
    limit_from,
    lowest,
    offer,
    scan_all,
    select,
    tile_costs,
    tiled,
)

# Released records in boxes within boxes, so that most need not be looked at: the result is that of `scan_all`.
#
# Records are put in the order of a k-d tree; LEAF of them make a leaf, BRANCH leaves a branch, each with its box. A box
# whose cost, a lower bound for the records in it, is above the worst kept is passed over.


LEAF = 64  # records in a leaf
BRANCH = 64  # leaves in a branch
LOOKED_AT = 1000  # records on which a split is decided


class Boxes(NamedTuple):
    """Records as leaves, and the boxes around leaves and branches."""

    row: Array  # the record at each place
    place: Array  # the place of each record
    leaves: Array  # (leaf, field, lane)
    leaf_low: Array  # (branch, field, leaf of it)
    leaf_high: Array
    branch_low: Array  # (field, branch)
    branch_high: Array


def spatial_order(position: Array, size: int = LEAF) -> Array:
    """Records in the order of a k-d tree: halves, at a multiple of `size`, by the field of the widest spread.

    The spread is from the 5 % to the 95 % point; equal values keep the order of rows.
    """
    order = np.arange(len(position))
    open_parts = [(0, len(order))]
    while open_parts:
        start, stop = open_parts.pop()
        if stop - start <= size:
            continue
        part = order[start:stop]
        some = np.sort(position[part[:: -(-len(part) // LOOKED_AT)]], axis=0)
        edge = len(some) // 20
        widest = np.argmax(some[len(some) - 1 - edge] - some[edge])
        order[start:stop] = part[np.argsort(position[part, widest], kind="stable")]
        middle = start + size * -(-len(part) // (2 * size))
        open_parts += [(start, middle), (middle, stop)]
    return order


def boxed(records: Array, order: Array) -> Boxes:
    """Leaves and boxes of records (record, field) float32 that are taken in `order`."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    leaves = tiled(records[order], LEAF)
    low, high = tiled(leaves.min(axis=2), BRANCH), tiled(leaves.max(axis=2), BRANCH)
    branches = len(low)
    return Boxes(
        order.astype(np.int32),
        place,
        leaves,
        low,
        high,
        tiled(low.min(axis=2), branches)[0],
        tiled(high.max(axis=2), branches)[0],
    )


@lane_jit
def scan_boxes(
    boxes: Boxes, a: Array, slope: Array, reach: Array, square: bool, keep: int, keys: Array
) -> int:  # fmt: skip
    """The `keep` cheapest of each record of `a`, first in its row of `keys`; returns the number of leaves looked at.

    What a record kept tells the next, its neighbour, how far to look.
    """
    lanes, room = boxes.leaves.shape[2], keys.shape[1]
    cost = np.empty(lanes, dtype=np.float32)
    of_leaf = np.empty(boxes.leaf_low.shape[2], dtype=np.float32)
    of_branch = np.empty(boxes.branch_low.shape[1], dtype=np.float32)
    bits, leaf_bits, branch_bits = cost.view(np.int32), of_leaf.view(np.int32), of_branch.view(np.int32)
    looked = 0
    for i in range(len(a)):
        count, limit = 0, INFINITE
        if i > 0:
            limit = limit_from(keys[i - 1, :keep], boxes.place, boxes.leaves, a[i], slope[i], reach[i], square)
        box_costs(of_branch, boxes.branch_low, boxes.branch_high, a[i], slope[i], reach[i], square)
        for b in range(len(of_branch)):
            if branch_bits[b] - ROUNDING > limit:
                continue
            box_costs(of_leaf, boxes.leaf_low[b], boxes.leaf_high[b], a[i], slope[i], reach[i], square)
            for t in range(b * BRANCH, min(len(boxes.leaves), (b + 1) * BRANCH)):
                if leaf_bits[t - b * BRANCH] - ROUNDING > limit:
                    continue
                looked += 1
                tile_costs(cost, boxes.leaves[t], a[i], slope[i], reach[i], square)
                if lowest(bits) <= limit:
                    count = offer(keys[i], count, bits, limit, boxes.row[t * lanes : (t + 1) * lanes])
                    if count > room - lanes:
                        limit = select(keys[i], count, keep)
                        count = keep
        select(keys[i], count, keep)
    return looked


CHUNK = 256  # known records in a task
SAMPLED, OF_EACH = 4, 64  # chunks on which the two ways are compared, and records of each
BOXES_BELOW = 0.5  # share of leaves looked at below which boxes are the faster way
FEW_PAIRS = 1 << 27  # pairs for which neither way is worth a sample
ROOM = 100  # candidates that wait, beside a tile, before the worst go


class Costs(NamedTuple):
    """A cost, float32: the sum over fields of min(cap, slope |a - b|), or of (a - b)^2."""

    a: Array  # n x F
    slope: Array  # n x F
    cap: Array  # F
    b: Array  # m x F
    square: bool

    def reach(self, rows: Array) -> Array:
        """The distance at which a field's cost is at its cap; 0 where it has none."""
        slope = self.slope[rows]
        return np.divide(self.cap, slope, out=np.zeros_like(slope), where=slope > 0)


def cheapest(
    costs: Costs, score: Callable[[Array, Array, Array], None], keep: int, threads: int | None
) -> tuple[Array, Array]:
    """Rows and scores (n x keep) of the released records of least cost, by descending score and then by row.

    score(rows, index, out) writes the scores of the known records `rows` against their candidates `index`.
    """
    n, m = len(costs.a), len(costs.b)
    keep = min(keep, m)
    best = np.empty((n, keep), dtype=np.int32), np.empty((n, keep))
    if n == 0 or keep == 0:
        return best
    enough = min(m, keep + 8 + keep // 8)  # so that float32 does not lose one of the best
    order = spatial_order(_position(costs.a, costs), CHUNK)
    chunks = [order[start : start + CHUNK] for start in range(0, n, CHUNK)]
    scan = scan_of(costs, chunks, enough)

    def run(rows: Array) -> None:
        keys = scan(rows)[0][:, :enough]
        keys.sort(axis=1)
        index = (keys & LOW).astype(np.int32)
        exact = np.empty(index.shape)
        score(rows, index, exact)
        _rank(index, exact)
        best[0][rows], best[1][rows] = index[:, :keep], exact[:, :keep]

    with ThreadPoolExecutor(own_threads() if threads is None else threads) as pool:
        for _ in pool.map(run, chunks):
            pass
    return best


Scan = Callable[[Array], tuple[Array, int]]


@on_device
def scan_of(costs: Costs, chunks: list[Array], enough: int) -> Scan:
    """All pairs, unless a sample of the known records shows that boxes need few of them."""
    if len(costs.a) * len(costs.b) > FEW_PAIRS:
        leaves, in_boxes = by_boxes(costs, enough)
        sample = [rows[:OF_EACH] for rows in chunks[:: -(-len(chunks) // SAMPLED)]]
        looked = sum(in_boxes(rows)[1] for rows in sample)
        if looked < BOXES_BELOW * leaves * sum(map(len, sample)):
            return in_boxes
    return by_all_pairs(costs, enough)


def by_all_pairs(costs: Costs, enough: int) -> Scan:
    tiles, row = tiled(costs.b, TILE), np.arange(len(costs.b), dtype=np.int32)

    def scan(rows: Array) -> tuple[Array, int]:
        keys = np.empty((len(rows), enough + TILE + ROOM), dtype=np.uint64)
        scan_all(tiles, row, costs.a[rows], costs.slope[rows], costs.reach(rows), costs.square, enough, keys)
        return keys, len(rows) * len(tiles)

    return scan


def by_boxes(costs: Costs, enough: int) -> tuple[int, Scan]:
    boxes = boxed(costs.b, spatial_order(_position(costs.b, costs)))

    def scan(rows: Array) -> tuple[Array, int]:
        keys = np.empty((len(rows), enough + boxes.leaves.shape[2] + ROOM), dtype=np.uint64)
        known = costs.a[rows], costs.slope[rows], costs.reach(rows)
        return keys, scan_boxes(boxes, *known, costs.square, enough, keys)

    return len(boxes.leaves), scan


def _position(values: Array, costs: Costs) -> Array:
    """Where records stand for `spatial_order`: their values, or ranks times caps where costs are capped."""
    if costs.square:
        return values
    ranks = [np.searchsorted(np.sort(x), x) for x in values.T]
    return np.array(ranks, dtype=np.float32).reshape(values.shape[1], len(values)).T * costs.cap


@jit
def _rank(index: Array, score: Array) -> None:
    """Order each row by descending score and then by index; it is nearly so already."""
    for i in range(len(index)):
        for k in range(1, index.shape[1]):
            this, value, at = index[i, k], score[i, k], k
            while at > 0 and (score[i, at - 1] < value or (score[i, at - 1] == value and index[i, at - 1] > this)):
                index[i, at], score[i, at] = index[i, at - 1], score[i, at - 1]
                at -= 1
            index[i, at], score[i, at] = this, value
