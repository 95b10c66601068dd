"""Released records in boxes within boxes, so that most need not be looked at: the result is that of `scan_all`.

Records are put in the order of a k-d tree; LEAF of them make a leaf, BRANCH leaves a branch, each with its box. A box
whose cost, a lower bound for the records in it, is above the worst kept is passed over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import lane_jit
from sdcmap.risk.linkage.cost_tiles import (
    INFINITE,
    ROUNDING,
    box_costs,
    limit_from,
    lowest,
    offer,
    select,
    tile_costs,
    tiled,
)

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
