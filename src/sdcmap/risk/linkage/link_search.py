"""The cheapest released records of each known record: all pairs, or boxes where most pairs need not be looked at.

Known records are taken in the order of a k-d tree, so that what one keeps tells the next how far to look. Each record's
result is its own: it does not depend on the number of threads, nor on which of the two ways is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import jit, lane_jit, run_parts
from sdcmap.risk.linkage import cost_tiles

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
    place = np.argsort(order).astype(np.int32)
    leaves = cost_tiles.tiled(records[order], LEAF)
    low, high = cost_tiles.tiled(leaves.min(axis=2), BRANCH), cost_tiles.tiled(leaves.max(axis=2), BRANCH)
    of_branches = (cost_tiles.tiled(edge, len(low))[0] for edge in (low.min(axis=2), high.max(axis=2)))
    return Boxes(order.astype(np.int32), place, leaves, low, high, *of_branches)


@lane_jit
def scan_boxes(boxes: Boxes, a: Array, slope: Array, reach: Array, square: bool, keep: int, keys: Array) -> int:
    """The `keep` cheapest of each record of `a`, first in its row of `keys`; returns the number of leaves looked at.

    What a record kept tells the next, its neighbor, how far to look.
    """
    lanes, room = boxes.leaves.shape[2], keys.shape[1]
    cost = np.empty(lanes, dtype=np.float32)
    of_leaf = np.empty(boxes.leaf_low.shape[2], dtype=np.float32)
    of_branch = np.empty(boxes.branch_low.shape[1], dtype=np.float32)
    bits, leaf_bits, branch_bits = cost.view(np.int32), of_leaf.view(np.int32), of_branch.view(np.int32)
    looked = 0
    for i in range(len(a)):
        count, limit = 0, cost_tiles.INFINITE
        if i > 0:
            limit = cost_tiles.limit_from(
                keys[i - 1, :keep], boxes.place, boxes.leaves, a[i], slope[i], reach[i], square
            )
        cost_tiles.box_costs(of_branch, boxes.branch_low, boxes.branch_high, a[i], slope[i], reach[i], square)
        for b in range(len(of_branch)):
            if branch_bits[b] - cost_tiles.ROUNDING > limit:
                continue
            cost_tiles.box_costs(of_leaf, boxes.leaf_low[b], boxes.leaf_high[b], a[i], slope[i], reach[i], square)
            for t in range(b * BRANCH, min(len(boxes.leaves), (b + 1) * BRANCH)):
                if leaf_bits[t - b * BRANCH] - cost_tiles.ROUNDING > limit:
                    continue
                looked += 1
                cost_tiles.tile_costs(cost, boxes.leaves[t], a[i], slope[i], reach[i], square)
                if cost_tiles.lowest(bits) <= limit:
                    count = cost_tiles.offer(keys[i], count, bits, limit, boxes.row[t * lanes : (t + 1) * lanes])
                    if count > room - lanes:
                        limit = cost_tiles.select(keys[i], count, keep)
                        count = keep
        cost_tiles.select(keys[i], count, keep)
    return looked


CHUNK = 256  # known records in a task
SAMPLED, OF_EACH = 4, 64  # chunks on which the two ways are compared, and records of each
BOXES_BELOW = 0.5  # share of leaves looked at below which boxes are the faster way
FEW_PAIRS = 1 << 27  # pairs for which neither way is worth a sample
ROOM = 100  # candidates that wait, beside a tile, before the worst go


class Links(NamedTuple):
    """Candidate links, a row for each known record."""

    index: Array  # type: ignore[assignment]  # n x k, int32: the released row; -1: none
    score: Array  # n x k, descending, -inf where there is none; ties stand by the lower released row


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


def cheapest(costs: Costs, score: Callable[[Array, Array, Array], None], keep: int, threads: int | None) -> Links:
    """Rows and scores (n x keep) of the released records of least cost, by descending score and then by row.

    score(rows, index, out) writes the scores of the known records `rows` against their candidates `index`.
    """
    n, m = len(costs.a), len(costs.b)
    keep = min(keep, m)
    best = Links(np.empty((n, keep), dtype=np.int32), np.empty((n, keep)))
    if n == 0 or keep == 0:
        return best
    enough = min(m, keep + 8 + keep // 8)  # so that float32 does not lose one of the best
    order = spatial_order(_position(costs.a, costs), CHUNK)
    chunks = [order[start : start + CHUNK] for start in range(0, n, CHUNK)]
    scan = scan_of(costs, chunks, enough)

    def run(rows: Array) -> None:
        keys = scan(rows)[0][:, :enough]
        keys.sort(axis=1)
        index = (keys & cost_tiles.LOW).astype(np.int32)
        exact = np.empty(index.shape)
        score(rows, index, exact)
        _rank(index, exact)
        best.index[rows], best.score[rows] = index[:, :keep], exact[:, :keep]

    run_parts(run, chunks, threads)
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
    tiles, row = cost_tiles.tiled(costs.b, cost_tiles.TILE), np.arange(len(costs.b), dtype=np.int32)

    def scan(rows: Array) -> tuple[Array, int]:
        keys = np.empty((len(rows), enough + cost_tiles.TILE + ROOM), dtype=np.uint64)
        cost_tiles.scan_all(tiles, row, costs.a[rows], costs.slope[rows], costs.reach(rows), costs.square, enough, keys)
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


# The best links of each known record among released records, by a score: `keep` candidates a record, best first.


BLOCK_BYTES = 1 << 26  # of one block of scores
FAR = np.float32(3e38)  # stands for a missing released value: it agrees with none


# ---- the scores, as plain formulas ----------------------------------------------------------------------------
def agreement_scores(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """n x m: the sum over the fields present on both sides of low + gain max(0, 1 - |known - released| / reach).

    YWC (2002), section 4.1: low = wD, gain = wA - wD and reach = t max(|a|, 0.1) give the weight of the d metric.
    """
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        far = np.abs(known[:, f, None] - released[None, :, f]) / reach[:, f, None]
        total += np.where(np.isnan(far), 0.0, low[f] + gain[f] * np.maximum(0.0, 1.0 - far))
    return total


def distance_scores(known: Array, released: Array) -> Array:
    """n x m: minus the squared Euclidean distance."""
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        total -= (known[:, f, None] - released[None, :, f]) ** 2
    return total


# ---- the best of them -----------------------------------------------------------------------------------------
def agreement_links(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, keep: int, threads: int | None = None
) -> Links:
    """The `keep` best released records of each known record by `agreement_scores`.

    known, reach: n x F; released: m x F; low, gain: F. Finite, or NaN for a missing value; reach > 0, gain >= 0.
    threads: default one inside a worker, else all; the links are the same.

    Candidates are found in float32, a few more than `keep`, and then scored and ranked by the formula in float64: a
    link can differ from the best by brute force only where the scores differ by a few units of float32 rounding.
    """
    fields = [np.ascontiguousarray(part, dtype=float) for part in (known, released, reach, low, gain)]
    return cheapest(_agreement_costs(*fields), partial(_agreements, *fields), keep, threads)


def nearest_links(known: Array, released: Array, keep: int, threads: int | None = None) -> Links:
    """The `keep` nearest released records of each known record by `distance_scores`; as `agreement_links`, but that no
    value may be missing."""
    sides = [np.ascontiguousarray(part, dtype=float) for part in (known, released)]
    return cheapest(_distance_costs(*sides), partial(_distances, *sides), keep, threads)


def block_links(block: Callable[[slice], Array], n: int, m: int, keep: int) -> Links:
    """The `keep` best by any score, given for a slice of known records against all released ones; -inf: not a link."""
    keep = min(keep, m)
    index, score = np.empty((n, keep), dtype=np.int32), np.empty((n, keep))
    step = max(1, BLOCK_BYTES // max(1, 8 * m))
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        index[rows], score[rows] = best_links(block(rows), keep)
    return Links(index, score)


def best_links(scores: Array, keep: int) -> Links:
    """The `keep` largest of each row of a matrix of scores, ties by the lower column."""
    keep = min(keep, scores.shape[1])
    if keep == 0:
        return Links(np.empty((len(scores), 0), dtype=np.int32), np.empty((len(scores), 0)))
    order = np.sort(np.argpartition(-scores, keep - 1, axis=1)[:, :keep], axis=1)
    worst = np.take_along_axis(scores, order, axis=1).min(axis=1)
    tied = np.flatnonzero((scores >= worst[:, np.newaxis]).sum(axis=1) > keep)  # there, which of them counts
    order[tied] = np.sort(np.argsort(-scores[tied], axis=1, kind="stable")[:, :keep], axis=1)
    best = np.take_along_axis(scores, order, axis=1)
    rank = np.argsort(-best, axis=1, kind="stable")
    index, best = np.take_along_axis(order, rank, axis=1), np.take_along_axis(best, rank, axis=1)
    return Links(np.where(best == -np.inf, -1, index).astype(np.int32), best)


# ---- scores as costs ------------------------------------------------------------------------------------------
def _agreement_costs(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Costs:
    """Best minus score: the sum over fields of min(gain, gain |a - b| / reach), in float32.

    Values are measured from the end of the released range that is nearer to zero, where a relative reach is short. A
    known value that is missing costs nothing anywhere; a released one costs `gain`. Where `low` counts and released
    values are missing, another field is 1 for the side that costs |low|: present if low < 0, missing if low > 0.
    """
    present = ~np.isnan(released)
    least = released.min(axis=0, initial=np.inf, where=present)
    most = released.max(axis=0, initial=-np.inf, where=present)
    zero = np.where(least > most, 0.0, np.clip(0.0, least, most))
    unit = np.abs(released - zero).max(axis=0, initial=0.0, where=present)
    unit[unit == 0] = 1.0
    a = np.nan_to_num((known - zero) / unit)
    b = np.where(present, (released - zero) / unit, FAR)
    slope = np.where(np.isnan(known), 0.0, np.clip(gain * (unit / reach), gain * 1e-30, 1e30))
    counts = np.flatnonzero(~present.all(axis=0) & (low != 0))
    costly = np.where(low[counts] < 0, present[:, counts], ~present[:, counts])
    weight = np.abs(low[counts])
    return Costs(
        np.hstack([a, np.zeros((len(a), len(counts)))]).astype(np.float32),
        np.hstack([slope, weight * ~np.isnan(known[:, counts])]).astype(np.float32),
        np.concatenate([gain, weight]).astype(np.float32),
        np.hstack([b, costly]).astype(np.float32),
        square=False,
    )


def _distance_costs(known: Array, released: Array) -> Costs:
    """The squared distance in float32, from the middle of each field and in units of the widest."""
    middle = np.median(released, axis=0) if len(released) else np.zeros(released.shape[1])
    unit = max(np.abs(released - middle).max(initial=0.0), np.abs(known - middle).max(initial=0.0)) or 1.0
    a = ((known - middle) / unit).astype(np.float32)
    ones = np.ones(a.shape[1], dtype=np.float32)
    return Costs(a, np.broadcast_to(ones, a.shape), ones, ((released - middle) / unit).astype(np.float32), square=True)


# ---- kept pairs by the formulas, value for value --------------------------------------------------------------
@jit
def _agreements(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, rows: Array, index: Array, out: Array
) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                far = abs(known[rows[i], f] - released[index[i, k], f]) / reach[rows[i], f]
                total += 0.0 if np.isnan(far) else low[f] + gain[f] * max(0.0, 1.0 - far)
            out[i, k] = total


@jit
def _distances(known: Array, released: Array, rows: Array, index: Array, out: Array) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                total -= (known[rows[i], f] - released[index[i, k], f]) ** 2
            out[i, k] = total
