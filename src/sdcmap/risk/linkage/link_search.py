"""The cheapest released records of each known record, by scanning all pairs or by a tree of boxes.

Known records are taken in the order of a k-d tree, so that what one record keeps gives the next a limit to start with.
The result of a record does not depend on the number of threads, nor on which of the two ways is used.
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

# ---- a tree of boxes ------------------------------------------------------------------------------------------
# Released records lie in boxes within boxes, so that most of them need not be compared. Records are sorted by a k-d tree;
# LEAF_RECORDS consecutive records form a leaf and BRANCH_LEAVES leaves a branch, each with its bounding box. The cost of
# a box is a lower bound for its records, so a box that costs more than the worst kept record is skipped.
LEAF_RECORDS = 64  # records in a leaf
BRANCH_LEAVES = 64  # leaves in a branch
SPLIT_SAMPLE_RECORDS = 1_000  # records on which the field of a split is chosen


class Boxes(NamedTuple):
    """Records as leaves, with the bounding boxes of leaves and branches."""

    row: Array  # the record at each position
    position: Array  # the position of each record
    leaves: Array  # (leaf, field, lane)
    leaf_low: Array  # (branch, field, leaf of it)
    leaf_high: Array
    branch_low: Array  # (field, branch)
    branch_high: Array


def spatial_order(coordinates: Array, size: int = LEAF_RECORDS) -> Array:
    """Return the records in the order of a k-d tree.

    Each part is halved, at a multiple of `size`, by the field with the widest spread (from the 5 % to the 95 %
    quantile). Equal values stay in the order of rows.
    """
    order = np.arange(len(coordinates))
    open_parts = [(0, len(order))]
    while open_parts:
        start, stop = open_parts.pop()
        if stop - start <= size:
            continue
        part = order[start:stop]
        some = np.sort(coordinates[part[:: -(-len(part) // SPLIT_SAMPLE_RECORDS)]], axis=0)
        edge = len(some) // 20
        widest = np.argmax(some[len(some) - 1 - edge] - some[edge])
        order[start:stop] = part[np.argsort(coordinates[part, widest], kind="stable")]
        middle = start + size * -(-len(part) // (2 * size))
        open_parts += [(start, middle), (middle, stop)]
    return order


def build_boxes(records: Array, order: Array) -> Boxes:
    """Return the leaves and boxes of float32 records (record, field) taken in this order."""
    position = np.argsort(order).astype(np.int32)
    leaves = cost_tiles.tile_records(records[order], LEAF_RECORDS)
    low = cost_tiles.tile_records(leaves.min(axis=2), BRANCH_LEAVES)
    high = cost_tiles.tile_records(leaves.max(axis=2), BRANCH_LEAVES)
    of_branches = (cost_tiles.tile_records(edge, len(low))[0] for edge in (low.min(axis=2), high.max(axis=2)))
    return Boxes(order.astype(np.int32), position, leaves, low, high, *of_branches)


@lane_jit
def scan_boxes(boxes: Boxes, a: Array, slope: Array, reach: Array, square: bool, keep: int, keys: Array) -> int:
    """Find the `keep` cheapest of each record of `a`, and return the number of leaves scanned.

    They come first in the record's row of `keys`.
    """
    lanes, capacity = boxes.leaves.shape[2], keys.shape[1]
    cost = np.empty(lanes, dtype=np.float32)
    of_leaf = np.empty(boxes.leaf_low.shape[2], dtype=np.float32)
    of_branch = np.empty(boxes.branch_low.shape[1], dtype=np.float32)
    bits, leaf_bits, branch_bits = cost.view(np.int32), of_leaf.view(np.int32), of_branch.view(np.int32)
    scanned = 0
    for i in range(len(a)):
        count, limit = 0, cost_tiles.INFINITE_COST_BITS
        if i > 0:
            # The previous record is a neighbor: what it kept bounds how far this record must search.
            limit = cost_tiles.limit_from_neighbor(
                keys[i - 1, :keep], boxes.position, boxes.leaves, a[i], slope[i], reach[i], square
            )
        # Skip branches, and then leaves, whose lower bound is above the limit.
        cost_tiles.box_costs(of_branch, boxes.branch_low, boxes.branch_high, a[i], slope[i], reach[i], square)
        for b in range(len(of_branch)):
            if branch_bits[b] - cost_tiles.COST_ULPS > limit:
                continue
            cost_tiles.box_costs(of_leaf, boxes.leaf_low[b], boxes.leaf_high[b], a[i], slope[i], reach[i], square)
            for t in range(b * BRANCH_LEAVES, min(len(boxes.leaves), (b + 1) * BRANCH_LEAVES)):
                if leaf_bits[t - b * BRANCH_LEAVES] - cost_tiles.COST_ULPS > limit:
                    continue
                scanned += 1
                cost_tiles.tile_costs(cost, boxes.leaves[t], a[i], slope[i], reach[i], square)
                if cost_tiles.least_bits(bits) <= limit:
                    count = cost_tiles.append_candidates(
                        keys[i], count, bits, limit, boxes.row[t * lanes : (t + 1) * lanes]
                    )
                    if count > capacity - lanes:
                        limit = cost_tiles.select_smallest(keys[i], count, keep)
                        count = keep
        cost_tiles.select_smallest(keys[i], count, keep)
    return scanned


# ---- links ----------------------------------------------------------------------------------------------------
CHUNK_RECORDS = 256  # known records in a task
SAMPLE_CHUNKS = 4  # chunks on which boxes are tried ...
SAMPLE_RECORDS_PER_CHUNK = 64  # ... with so many records of each
MAX_LEAF_SHARE_FOR_BOXES = 0.5  # boxes are faster if they scan less than this share of the leaves
MIN_PAIRS_FOR_SAMPLE = 1 << 27  # pairs; smaller files are scanned completely, without trying boxes
SPARE_CANDIDATES = 100  # buffer for candidates beside a tile; a full buffer is reduced to the best


class Links(NamedTuple):
    """Candidate links, one row for each known record."""

    index: Array  # type: ignore[assignment]  # n x k, int32: the released row; -1: none
    score: Array  # n x k, descending, -inf where there is none; ties are ordered by released row


class Costs(NamedTuple):
    """Costs in float32: the sum over fields of min(cap, slope |a - b|), or of (a - b)^2."""

    a: Array  # n x F
    slope: Array  # n x F
    cap: Array  # F
    b: Array  # m x F
    square: bool

    def reach(self, rows: Array) -> Array:
        """Return the distance at which the cost of a field reaches its cap; 0 where the slope is 0."""
        slope = self.slope[rows]
        return np.divide(self.cap, slope, out=np.zeros_like(slope), where=slope > 0)


def find_cheapest(costs: Costs, score: Callable[[Array, Array, Array], None], keep: int, threads: int | None) -> Links:
    """Return the released records of least cost (n x keep), by descending score and then by row.

    score : score(rows, index, out) writes the exact scores of the known records `rows` against their candidates
        `index`
    """
    n, m = len(costs.a), len(costs.b)
    keep = min(keep, m)
    best = Links(np.empty((n, keep), dtype=np.int32), np.empty((n, keep)))
    if n == 0 or keep == 0:
        return best
    # A few more candidates than needed, so that float32 rounding does not lose one of the best.
    candidates = min(m, keep + 8 + keep // 8)
    order = spatial_order(_sort_coordinates(costs.a, costs), CHUNK_RECORDS)
    chunks = [order[start : start + CHUNK_RECORDS] for start in range(0, n, CHUNK_RECORDS)]
    scan = scan_of(costs, chunks, candidates)

    def run(rows: Array) -> None:
        # Rank the candidates by the exact formula in float64; the keys give only their order in float32.
        keys = scan(rows)[0][:, :candidates]
        keys.sort(axis=1)
        index = (keys & cost_tiles.ROW_MASK).astype(np.int32)
        exact = np.empty(index.shape)
        score(rows, index, exact)
        _rank(index, exact)
        best.index[rows], best.score[rows] = index[:, :keep], exact[:, :keep]

    run_parts(run, chunks, threads)
    return best


Scan = Callable[[Array], tuple[Array, int]]


@on_device
def scan_of(costs: Costs, chunks: list[Array], candidates: int) -> Scan:
    """Return the faster scan: of all pairs, unless a sample of known records shows that boxes scan few of them."""
    if len(costs.a) * len(costs.b) > MIN_PAIRS_FOR_SAMPLE:
        leaves, in_boxes = make_box_scan(costs, candidates)
        sample = [rows[:SAMPLE_RECORDS_PER_CHUNK] for rows in chunks[:: -(-len(chunks) // SAMPLE_CHUNKS)]]
        scanned = sum(in_boxes(rows)[1] for rows in sample)
        if scanned < MAX_LEAF_SHARE_FOR_BOXES * leaves * sum(map(len, sample)):
            return in_boxes
    return make_pair_scan(costs, candidates)


def make_pair_scan(costs: Costs, candidates: int) -> Scan:
    """Return a scan of all pairs."""
    tiles, row = cost_tiles.tile_records(costs.b, cost_tiles.TILE_RECORDS), np.arange(len(costs.b), dtype=np.int32)

    def scan(rows: Array) -> tuple[Array, int]:
        keys = np.empty((len(rows), candidates + cost_tiles.TILE_RECORDS + SPARE_CANDIDATES), dtype=np.uint64)
        cost_tiles.scan_all(
            tiles, row, costs.a[rows], costs.slope[rows], costs.reach(rows), costs.square, candidates, keys
        )
        return keys, len(rows) * len(tiles)

    return scan


def make_box_scan(costs: Costs, candidates: int) -> tuple[int, Scan]:
    """Return the number of leaves, and a scan by boxes."""
    boxes = build_boxes(costs.b, spatial_order(_sort_coordinates(costs.b, costs)))

    def scan(rows: Array) -> tuple[Array, int]:
        keys = np.empty((len(rows), candidates + boxes.leaves.shape[2] + SPARE_CANDIDATES), dtype=np.uint64)
        known = costs.a[rows], costs.slope[rows], costs.reach(rows)
        return keys, scan_boxes(boxes, *known, costs.square, candidates, keys)

    return len(boxes.leaves), scan


def _sort_coordinates(values: Array, costs: Costs) -> Array:
    """Return the coordinates for `spatial_order`: the values, or ranks times caps where costs are capped."""
    if costs.square:
        return values
    ranks = [np.searchsorted(np.sort(x), x) for x in values.T]
    return np.array(ranks, dtype=np.float32).reshape(values.shape[1], len(values)).T * costs.cap


@jit
def _rank(index: Array, score: Array) -> None:
    """Sort each row by descending score and then by index, with an insertion sort, because it is nearly sorted."""
    for i in range(len(index)):
        for k in range(1, index.shape[1]):
            this, value, at = index[i, k], score[i, k], k
            while at > 0 and (score[i, at - 1] < value or (score[i, at - 1] == value and index[i, at - 1] > this)):
                index[i, at], score[i, at] = index[i, at - 1], score[i, at - 1]
                at -= 1
            index[i, at], score[i, at] = this, value


BLOCK_BYTES = 1 << 26  # bytes of a block of scores in memory
MISSING_RELEASED = np.float32(3e38)  # stands for a missing released value; it agrees with no known value


# ---- scores: the formulas in numpy ----------------------------------------------------------------------------
def agreement_scores(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """Return n x m scores: the sum over fields present on both sides of low + gain max(0, 1 - |known - released| /
    reach).

    With low = wD, gain = wA - wD and reach = t max(|a|, 0.1) this is the weight of the d metric in Yancey, Winkler,
    Creecy (2002), section 3.4.
    """
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        ratio = np.abs(known[:, f, None] - released[None, :, f]) / reach[:, f, None]
        total += np.where(np.isnan(ratio), 0.0, low[f] + gain[f] * np.maximum(0.0, 1.0 - ratio))
    return total


def distance_scores(known: Array, released: Array) -> Array:
    """Return n x m scores: minus the squared Euclidean distance."""
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        total -= (known[:, f, None] - released[None, :, f]) ** 2
    return total


# ---- best links -----------------------------------------------------------------------------------------------
def agreement_links(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, keep: int, threads: int | None = None
) -> Links:
    """Return the `keep` best released records of each known record by `agreement_scores`.

    Candidates are found in float32, a few more than `keep`, and then scored and ranked by the formula in float64. A
    link can differ from the best by brute force only where scores differ by a few units of float32 rounding.

    Parameters
    ----------
    known, reach : n x F, finite or NaN for a missing value; reach > 0
    released : m x F, finite or NaN for a missing value
    low, gain : F; gain >= 0
    threads : by default one inside a worker, else all; the links are the same
    """
    fields = [np.ascontiguousarray(part, dtype=float) for part in (known, released, reach, low, gain)]
    return find_cheapest(_agreement_costs(*fields), partial(_score_agreements, *fields), keep, threads)


def nearest_links(known: Array, released: Array, keep: int, threads: int | None = None) -> Links:
    """Return the `keep` nearest released records of each known record by `distance_scores`.

    As `agreement_links`, but no value may be missing.
    """
    sides = [np.ascontiguousarray(part, dtype=float) for part in (known, released)]
    return find_cheapest(_distance_costs(*sides), partial(_score_distances, *sides), keep, threads)


def block_links(block: Callable[[slice], Array], n: int, m: int, keep: int) -> Links:
    """Return the `keep` best links by any score, computed for a slice of known records against all released ones
    (-inf: no link).
    """
    keep = min(keep, m)
    index, score = np.empty((n, keep), dtype=np.int32), np.empty((n, keep))
    step = max(1, BLOCK_BYTES // max(1, 8 * m))
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        index[rows], score[rows] = best_links(block(rows), keep)
    return Links(index, score)


def best_links(scores: Array, keep: int) -> Links:
    """Return the `keep` largest scores of each row, ties ordered by column."""
    keep = min(keep, scores.shape[1])
    if keep == 0:
        return Links(np.empty((len(scores), 0), dtype=np.int32), np.empty((len(scores), 0)))
    order = np.sort(np.argpartition(-scores, keep - 1, axis=1)[:, :keep], axis=1)
    worst = np.take_along_axis(scores, order, axis=1).min(axis=1)
    # Where more than `keep` scores tie, argpartition chooses arbitrarily: sort these rows completely.
    tied = np.flatnonzero((scores >= worst[:, np.newaxis]).sum(axis=1) > keep)
    order[tied] = np.sort(np.argsort(-scores[tied], axis=1, kind="stable")[:, :keep], axis=1)
    best = np.take_along_axis(scores, order, axis=1)
    rank = np.argsort(-best, axis=1, kind="stable")
    index, best = np.take_along_axis(order, rank, axis=1), np.take_along_axis(best, rank, axis=1)
    return Links(np.where(best == -np.inf, -1, index).astype(np.int32), best)


# ---- scores as costs ------------------------------------------------------------------------------------------
def _agreement_costs(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Costs:
    """Return the agreement scores as costs: the sum over fields of min(gain, gain |a - b| / reach), in float32.

    Values are measured from the end of the released range that is closer to zero, where a relative reach is short and
    float32 must be precise. A missing known value costs nothing; a missing released value costs `gain`. Where `low` is
    not 0 and released values are missing, an additional field has value 1 for the side that costs |low|: present if
    low < 0, missing if low > 0.
    """
    present = ~np.isnan(released)
    least = released.min(axis=0, initial=np.inf, where=present)
    most = released.max(axis=0, initial=-np.inf, where=present)
    zero = np.where(least > most, 0.0, np.clip(0.0, least, most))
    unit = np.abs(released - zero).max(axis=0, initial=0.0, where=present)
    unit[unit == 0] = 1.0
    a = np.nan_to_num((known - zero) / unit)
    b = np.where(present, (released - zero) / unit, MISSING_RELEASED)
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
    """Return the squared distance as costs in float32, centered at the medians and in units of the widest range."""
    middle = np.median(released, axis=0) if len(released) else np.zeros(released.shape[1])
    unit = max(np.abs(released - middle).max(initial=0.0), np.abs(known - middle).max(initial=0.0)) or 1.0
    a = ((known - middle) / unit).astype(np.float32)
    ones = np.ones(a.shape[1], dtype=np.float32)
    return Costs(a, np.broadcast_to(ones, a.shape), ones, ((released - middle) / unit).astype(np.float32), square=True)


# ---- scores of candidates, in float64 -------------------------------------------------------------------------
@jit
def _score_agreements(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, rows: Array, index: Array, out: Array
) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                ratio = abs(known[rows[i], f] - released[index[i, k], f]) / reach[rows[i], f]
                total += 0.0 if np.isnan(ratio) else low[f] + gain[f] * max(0.0, 1.0 - ratio)
            out[i, k] = total


@jit
def _score_distances(known: Array, released: Array, rows: Array, index: Array, out: Array) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                total -= (known[rows[i], f] - released[index[i, k], f]) ** 2
            out[i, k] = total
