"""Searches for pairs of least cost: rivals of the true record, and the cheapest known records of each released one.

A cost is never negative, so a sum over fields can only grow: a known record is dropped as soon as it costs more than
the limit. Known records lie in blocks of records that are similar in the most informative fields, and a block is
skipped if even its nearest values cost too much. Within a block, fields are added one after the other, those first in
which random pairs cost most.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from cachetools import LRUCache, cached

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import class_on_device
from sdcmap.kernels.jit import inner_jit, jit, own_threads, run_parts
from sdcmap.risk.linkage import field_costs as kinds
from sdcmap.risk.linkage.field_costs import Cost, cost_of_values
from sdcmap.risk.linkage.link_search import Links

BLOCK_RECORDS = 512  # known records in a block, at most
RELATIVE_TIE, ABSOLUTE_TIE = 1e-9, 1e-12  # costs that differ by less are equal
MAX_LOOKUP_VALUES = 1024  # distinct values of a known column; with more, costs are not tabulated for each target
EAGER_LOOKUP_SHARE = 1 / 16  # of the records; a field with fewer distinct values is tabulated for every target at once
MAX_CODE_SPAN = 16  # distinct values in a block; up to here the bound takes the least cost over all of them
DEFAULT_EVALUATION_PRICE = 3.0  # time to compute the cost of a value, in units of a table lookup
EVALUATION_PRICE = {kinds.MIXTURE: 20.0, kinds.CELL: 20.0}  # kinds that take longer: exponentials, error functions
MEAN_COST_VALUES = 500  # released values on which the mean cost of a field is estimated
PARTS_PER_THREAD = 4  # parts of the targets for each thread, so that threads finish together
MAX_CACHED_BYTES = 1 << 28  # bytes of cached columns
GOLDEN_RATIO = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly: they scatter the starts of searches


def _distinct_values(values: Array) -> tuple[Array, Array]:
    """Return the distinct values of a column, and the index of each record's value among them."""
    distinct, code = np.unique(values, return_inverse=True)
    return distinct, code.astype(np.int32)


def cache_by_array(
    compute: Callable[[Array], tuple[Array, ...]], max_bytes: int = MAX_CACHED_BYTES
) -> Callable[[Array], tuple[Array, ...]]:
    """Return `compute` with a cache for read-only arrays.

    The result of a read-only array is computed once and cached as long as the array lives; all results together are
    bounded by `max_bytes`. Threads may share the cache.
    """
    cache: LRUCache[int, tuple[Array, ...]] = LRUCache(max_bytes, lambda arrays: sum(part.nbytes for part in arrays))
    # Reentrant, because the garbage collector may free an array, and call `forget`, while this thread holds the lock.
    lock = threading.RLock()

    def forget(key: int) -> None:
        with lock:
            cache.pop(key, None)

    @cached(cache, key=id, lock=lock)
    def compute_once(array: Array) -> tuple[Array, ...]:
        weakref.finalize(array, forget, id(array)).atexit = False
        return compute(array)

    return lambda array: compute(array) if array.flags.writeable else compute_once(array)


_CACHED_DISTINCT = cache_by_array(_distinct_values)  # for known columns that are compared with many releases


class _Layout(NamedTuple):
    """The fields as arrays, the most informative per unit of time first, and the known records in blocks.

    For a field with few distinct known values, the cost of each value is tabulated once for a target.
    """

    a: Array  # (field, known record)
    b: Array  # (released record, field)
    kind: Array
    numbers: Array  # (field, 4): scale, cap, both, one
    start: Array  # where the table of each field begins in `tables`
    tables: Array
    tails: Array  # as `tables`, with the least cost from each cell of a NUMBER's table onward
    code: Array  # (field, known record): index of its value among the distinct values
    value: Array  # (field, MAX_LOOKUP_VALUES): the distinct values
    values: Array  # number of distinct values; 0: too many to tabulate
    block: Array  # where each block begins, and the end of the last
    low: Array  # (block, field): its least value; NaN: some are missing
    high: Array  # (block, field): its greatest value
    first: Array  # (block, field): the code of its least value
    last: Array  # (block, field): the code of its greatest value


def _build_layout(costs: Sequence[Cost]) -> tuple[_Layout, Array]:
    """Return both files as arrays, and the order of the known records in them."""
    distinct = [_CACHED_DISTINCT(field.known) for field in costs]
    is_small = [len(values) <= MAX_LOOKUP_VALUES for values, _ in distinct]
    price = [
        1.0 if small else EVALUATION_PRICE.get(field.kind, DEFAULT_EVALUATION_PRICE)
        for field, small in zip(costs, is_small, strict=True)
    ]
    # Fields that separate random pairs best for their price come first: they rule most records out early.
    mean = np.array([_mean_cost(field) for field in costs])
    field_order = np.argsort(-mean / price, kind="stable")
    fields = [costs[f] for f in field_order]
    code = np.array([distinct[f][1] for f in field_order], dtype=np.int32)
    order, block = _build_blocks(code, mean[field_order], BLOCK_RECORDS)
    code = np.ascontiguousarray(code[:, order])
    a = np.ascontiguousarray(np.array([field.known for field in fields], dtype=float)[:, order])
    value = np.zeros((len(fields), MAX_LOOKUP_VALUES))
    for position, f in enumerate(field_order):
        if is_small[f]:
            value[position, : len(distinct[f][0])] = distinct[f][0]
    # The least and greatest value, and code, of each block.
    low, high, first, last = (
        np.ascontiguousarray(edge.reduceat(side, block[:-1], axis=1).T)
        for side in (a, code)
        for edge in (np.minimum, np.maximum)
    )
    layout = _Layout(
        a=a,
        b=np.ascontiguousarray(np.array([field.released for field in fields], dtype=float).T),
        kind=np.array([field.kind for field in fields]),
        numbers=np.array([(field.scale, field.cap, field.both, field.one) for field in fields], dtype=float),
        start=np.concatenate([[0], np.cumsum([len(field.table) for field in fields])]),
        tables=np.concatenate([field.table for field in fields]).astype(float),
        tails=np.concatenate([np.minimum.accumulate(field.table[::-1])[::-1] for field in fields]).astype(float),
        code=code,
        value=value,
        values=np.array([len(distinct[f][0]) if is_small[f] else 0 for f in field_order]),
        block=block,
        low=low,
        high=high,
        first=first,
        last=last,
    )
    return layout, order


def _mean_cost(field: Cost) -> float:
    """Return the mean cost of random pairs: released values against known values elsewhere in the file."""
    some = np.linspace(0, len(field.released) - 1, min(len(field.released), MEAN_COST_VALUES)).astype(np.int64)
    return float(field.pairs((some * 7919 + 1) % len(field.known), some).mean())


@jit
def _build_blocks(code: Array, worth: Array, size: int) -> tuple[Array, Array]:
    """Return an order in which neighboring records are similar, and where its blocks of at most `size` records begin.

    A set of records is halved at the value change nearest to its middle, in the field of greatest worth. Each split
    halves the worth of its field.
    """
    fields, n = code.shape
    order, begins, blocks = np.arange(n), np.empty(n + 1, dtype=np.int64), 0
    # A stack of parts that are still to be split; the depth is logarithmic, so this capacity is enough.
    depth = 256 + 4 * fields
    left, right, worths = np.empty(depth, dtype=np.int64), np.empty(depth, dtype=np.int64), np.empty((depth, fields))
    left[0], right[0], height = 0, n, 1
    for f in range(fields):
        worths[0, f] = worth[f] + 1e-300
    while height:
        height -= 1
        begin, end = left[height], right[height]
        current_worth = worths[height].copy()
        # Choose the field of greatest worth that is not constant in this part.
        best = -1
        if end - begin > size:
            for f in range(fields):
                if best < 0 or current_worth[f] > current_worth[best]:
                    first = code[f, order[begin]]
                    for k in range(begin + 1, end):
                        if code[f, order[k]] != first:
                            best = f
                            break
        if best < 0:
            # The part is small enough, or all its records are equal: cut it into blocks.
            for position in range(begin, end, size):
                begins[blocks] = position
                blocks += 1
            continue
        inside = order[begin:end].copy()
        value = code[best][inside]
        by_code = np.argsort(value, kind="mergesort")
        for k in range(end - begin):
            order[begin + k] = inside[by_code[k]]
        # Cut where the value changes, so that records with equal values stay in one block.
        middle = (end - begin) // 2
        below, above = middle, middle
        while below > 0 and value[by_code[below - 1]] == value[by_code[below]]:
            below -= 1
        while above < end - begin and value[by_code[above - 1]] == value[by_code[above]]:
            above += 1
        cut = begin + (below if below > 0 and (middle - below <= above - middle or above == end - begin) else above)
        current_worth[best] *= 0.5
        left[height], right[height] = cut, end
        left[height + 1], right[height + 1] = begin, cut
        for f in range(fields):
            worths[height, f] = worths[height + 1, f] = current_worth[f]
        height += 2
    begins[blocks] = n
    return order, begins[: blocks + 1].copy()


def _split_targets(count: int, threads: int) -> list[slice]:
    """Return slices of 0 to count - 1 for so many threads."""
    step = max(1, -(-count // (PARTS_PER_THREAD * threads))) if threads > 1 else max(1, count)
    return [slice(start, start + step) for start in range(0, count, step)]


# ---- costs of a block and of its records ------------------------------------------------------------------------
class _Lookup(NamedTuple):
    """The costs of one target against each distinct known value, for the fields that are tabulated."""

    cost: Array  # (field, value)
    ready: Array


@inner_jit
def _block_bound(layout: _Layout, block: int, b: Array, lookup: _Lookup, limit: float) -> float:
    """Return a lower bound for the costs of a target against the records of a block; it may stop above the limit."""
    total = 0.0
    for f in range(len(layout.kind)):
        first, last = layout.first[block, f], layout.last[block, f]
        if lookup.ready[f] and last - first < MAX_CODE_SPAN:
            least = np.inf
            for k in range(first, last + 1):
                least = min(least, lookup.cost[f, k])
            total += least
        else:
            tables = layout.tables if layout.kind[f] == kinds.CELL else layout.tails
            table = tables[layout.start[f] : layout.start[f + 1]]
            total += _least_cost(
                layout.low[block, f], layout.high[block, f], b[f], layout.kind[f], layout.numbers[f], table
            )
        if total > limit:
            break
    return total


@inner_jit
def _least_cost(low: float, high: float, b: float, kind: int, numbers: Array, tail: Array) -> float:
    """Return a lower bound for the cost of values from low to high.

    It is the cost of the nearest value where costs grow with the distance, for a NUMBER the least cost from there
    onward, and for a CELL the cost of the value nearest to its middle. For other kinds it is 0.
    """
    if kind in (kinds.CATEGORY, kinds.BELOW, kinds.MIXTURE) or (kind == kinds.RELATIVE and numbers[0] > 1):
        return 0.0
    if math.isnan(b) or math.isnan(low) or math.isnan(high):
        return 0.0
    if kind == kinds.CELL:
        first, last = tail[1 + 3 * int(b)], tail[2 + 3 * int(b)]
        nearest = low if math.isinf(first) else high if math.isinf(last) else min(max(0.5 * (first + last), low), high)
        return cost_of_values(nearest, b, kind, numbers[0], numbers[1], 0.0, 0.0, tail)
    if low <= b <= high:
        return 0.0
    nearest = low if b < low else high
    if kind == kinds.NUMBER:
        cell = kinds.cell_of(abs(nearest - b) * numbers[0])
        return float(tail[kinds.STATE_CELLS + min(max(cell, 0), len(tail) - kinds.STATE_CELLS - 1)])
    return cost_of_values(nearest, b, kind, numbers[0], numbers[1], 0.0, 0.0, numbers[:0])


@inner_jit
def _records_within(
    layout: _Layout,
    block: int,
    b: Array,
    lookup: _Lookup,
    missing_cost: float,
    limit: float,
    offset: int,
    remaining: Array,
    total: Array,
) -> int:
    """Find the known records of a block that cost at most the limit, and return their number.

    Writes the records to `remaining` and their costs to `total`. offset: the record of the block to begin with.
    """
    first, last = layout.block[block], layout.block[block + 1]
    count: int = last - first
    position = first + offset % count
    for k in range(count):
        remaining[k], total[k] = position, 0.0
        position = position + 1 if position + 1 < last else first
    for f in range(len(layout.kind)):
        if layout.values[f] and not lookup.ready[f] and 2 * count > layout.values[f]:
            _look_up(layout, f, b[f], missing_cost, lookup)
        if lookup.ready[f]:
            for k in range(count):
                total[k] += lookup.cost[f, layout.code[f, remaining[k]]]
        else:
            table = layout.tables[layout.start[f] : layout.start[f + 1]]
            _add_field(
                layout.a[f], b[f], layout.kind[f], layout.numbers[f], missing_cost, table, remaining[:count], total
            )
        # Drop the records above the limit; they stay above it, because no field has a negative cost.
        survivors = 0
        for k in range(count):
            cost = total[k]
            remaining[survivors], total[survivors] = remaining[k], cost
            survivors += cost <= limit
        count = survivors
        if count == 0:
            break
    return count


@inner_jit
def _look_up_small_fields(layout: _Layout, b: Array, missing_cost: float, lookup: _Lookup) -> None:
    """Tabulate the costs of a target for fields with few distinct values; mark the others as not tabulated."""
    for f in range(len(layout.kind)):
        lookup.ready[f] = False
        if 0 < layout.values[f] <= EAGER_LOOKUP_SHARE * layout.a.shape[1]:
            _look_up(layout, f, b[f], missing_cost, lookup)


@inner_jit
def _look_up(layout: _Layout, f: int, b: float, missing_cost: float, lookup: _Lookup) -> None:
    """Tabulate the costs of a target against each distinct value of a field."""
    table = layout.tables[layout.start[f] : layout.start[f + 1]]
    scale, cap, both, one = layout.numbers[f]
    if missing_cost >= 0:
        both, one = missing_cost, missing_cost
    for k in range(layout.values[f]):
        lookup.cost[f, k] = cost_of_values(layout.value[f, k], b, layout.kind[f], scale, cap, both, one, table)
    lookup.ready[f] = True


@inner_jit
def _cost_of(layout: _Layout, record: int, b: Array, mean: bool) -> float:
    """Return the cost of two records; mean: the mean over fields present in both (1 if there are none)."""
    total, count = 0.0, 0
    for f in range(len(layout.kind)):
        a = layout.a[f, record]
        if not mean or not (math.isnan(a) or math.isnan(b[f])):
            scale, cap, both, one = layout.numbers[f]
            table = layout.tables[layout.start[f] : layout.start[f + 1]]
            total += cost_of_values(a, b[f], layout.kind[f], scale, cap, both, one, table)
            count += 1
    if not mean:
        return total
    return total / count if count else 1.0


@inner_jit
def _add_field(
    a: Array, b: float, kind: int, numbers: Array, missing_cost: float, table: Array, remaining: Array, total: Array
) -> None:
    """Add the cost of one field to the remaining known records.

    The most frequent kinds have separate loops. missing_cost: if not negative, it replaces the cost of a missing
    value.
    """
    scale, cap, both, one = numbers
    if missing_cost >= 0:
        both, one = missing_cost, missing_cost
    if kind == kinds.SQUARE and not math.isnan(b):
        for k in range(len(remaining)):
            difference = b - a[remaining[k]]
            total[k] += one if math.isnan(difference) else min(scale * difference * difference, cap)
    elif kind == kinds.RELATIVE and not math.isnan(b):
        for k in range(len(remaining)):
            value = a[remaining[k]]
            reach = max(scale * max(abs(value), kinds.NEAR_ZERO), kinds.MIN_REACH)
            total[k] += one if math.isnan(value) else cap * min(abs(b - value) / reach, 1.0)
    elif kind == kinds.NUMBER and not math.isnan(b):
        for k in range(len(remaining)):
            difference = abs(b - a[remaining[k]])
            total[k] += (
                table[1]
                if math.isnan(difference)
                else table[3]
                if difference == 0
                else kinds.look_up_distance(difference * scale, table)
            )
    else:
        for k in range(len(remaining)):
            total[k] += cost_of_values(a[remaining[k]], b, kind, scale, cap, both, one, table)


# ---- rivals of the true record ----------------------------------------------------------------------------------
@class_on_device
class RivalSearch:
    """Search for known records that cost less than the true one, or the same.

    Both files are laid out once; the targets can come in parts.

    Parameters
    ----------
    truth : position of the true known record of each released one; -1: none, which counts as beaten
    mean : the cost of a pair is the mean over the fields present on both sides (1 if there are none) instead of the
        sum
    """

    def __init__(self, costs: Sequence[Cost], truth: Array, *, mean: bool = False) -> None:
        self.layout, order = _build_layout(costs)
        # Positions in the new order, in which the block of the true record, with its likeliest rivals, is known.
        self.truth = np.where(truth >= 0, np.argsort(order)[truth], -1)
        self.mean = mean

    def __call__(self, targets: Array, *, threads: int | None = None) -> tuple[Array, Array]:
        """Return for each target whether a rival beats its true record, and how many known records cost the same.

        The count includes the true record and is valid only if it is not beaten. The search for a target stops at the
        first rival.
        """
        beaten, ties = np.zeros(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)

        truth, threads = self.truth[targets], threads or own_threads()

        def run(part: slice) -> None:
            _find_rivals(self.layout, truth[part], targets[part], self.mean, beaten[part], ties[part])

        run_parts(run, _split_targets(len(targets), threads), threads)
        return beaten, ties


@jit
def _find_rivals(layout: _Layout, truth: Array, targets: Array, mean: bool, beaten: Array, ties: Array) -> None:
    """Search the blocks for rivals, starting with the block of the true record."""
    fields, blocks = len(layout.kind), len(layout.block) - 1
    remaining, total = np.empty(BLOCK_RECORDS, dtype=np.int64), np.empty(BLOCK_RECORDS)
    lookup = _Lookup(np.empty(layout.value.shape), np.zeros(fields, dtype=np.bool_))
    for t in range(len(targets)):
        if truth[t] < 0:
            beaten[t] = True
            continue
        target = layout.b[targets[t]]
        own_cost = _cost_of(layout, truth[t], target, mean)
        slack = RELATIVE_TIE * own_cost + ABSOLUTE_TIE
        # With means: the mean over present fields is at most own_cost if and only if the sum over all fields, with
        # own_cost for a missing one, is at most own_cost times the number of fields.
        limit, missing_cost = ((own_cost + slack) * fields, own_cost) if mean else (own_cost + slack, -1.0)
        _look_up_small_fields(layout, target, missing_cost, lookup)
        first_block = np.searchsorted(layout.block, truth[t], "right") - 1
        # The block of the true record holds similar records, so that most targets are beaten there already.
        for step in range(blocks):
            block = (first_block + step) % blocks
            if _block_bound(layout, block, target, lookup, limit) > limit:
                continue
            for k in range(_records_within(layout, block, target, lookup, missing_cost, limit, 0, remaining, total)):
                if mean:
                    total[k] = _cost_of(layout, remaining[k], target, True)
                if total[k] < own_cost - slack:
                    beaten[t] = True
                ties[t] += total[k] <= own_cost + slack
            if beaten[t]:
                break


# ---- the cheapest known records ---------------------------------------------------------------------------------
@class_on_device
class CheapestSearch:
    """Search for the cheapest known records of released ones; both files are laid out once.

    mean : as in `RivalSearch`
    """

    def __init__(self, costs: Sequence[Cost], *, mean: bool = False) -> None:
        self.layout, self.order = _build_layout(costs)
        self.mean = mean

    def __call__(self, targets: Array, keep: int, *, threads: int | None = None) -> Links:
        """Return the `keep` cheapest known records of each target, best first; the scores are minus the costs.

        Each target starts its search elsewhere and so takes different ones of equally cheap records, so that
        one-to-one links can find partners.
        """
        n = len(self.order)
        keep = min(keep, n)
        index = np.full((len(targets), keep), -1, dtype=np.int32)
        cost = np.full((len(targets), keep), np.inf)

        begin, threads = (targets * GOLDEN_RATIO % 1 * n).astype(np.int64), threads or own_threads()

        def run(part: slice) -> None:
            _cheapest(self.layout, targets[part], begin[part], self.mean, index[part], cost[part])

        run_parts(run, _split_targets(len(targets), threads), threads)
        best = np.argsort(cost, axis=1, kind="stable")
        index = np.where(index >= 0, self.order[index], -1).astype(np.int32)
        return Links(np.take_along_axis(index, best, axis=1), -np.take_along_axis(cost, best, axis=1))


@jit
def _cheapest(layout: _Layout, targets: Array, begin: Array, mean: bool, index: Array, costs: Array) -> None:
    """Find the cheapest known records of each target, in a heap with the dearest on top.

    Blocks are visited by increasing bound; equal bounds in the order from the target's start.
    """
    fields, blocks = len(layout.kind), len(layout.block) - 1
    remaining, total = np.empty(BLOCK_RECORDS, dtype=np.int64), np.empty(BLOCK_RECORDS)
    lookup = _Lookup(np.empty(layout.value.shape), np.zeros(fields, dtype=np.bool_))
    # With means, a missing value costs nothing at first, which is a lower bound; the mean is computed afterwards.
    bound, missing_cost = np.empty(blocks), 0.0 if mean else -1.0
    for t in range(len(targets)):
        target = layout.b[targets[t]]
        _look_up_small_fields(layout, target, missing_cost, lookup)
        first_block = np.searchsorted(layout.block, begin[t], "right") - 1
        for step in range(blocks):
            bound[step] = _block_bound(layout, (first_block + step) % blocks, target, lookup, np.inf)
        for step in np.argsort(bound, kind="mergesort"):
            limit = costs[t, 0] * fields if mean else costs[t, 0]
            # All later blocks have higher bounds, so none of their records can enter the heap.
            if bound[step] > limit or costs[t, 0] <= 0:
                break
            block = (first_block + step) % blocks
            for k in range(
                _records_within(layout, block, target, lookup, missing_cost, limit, begin[t], remaining, total)
            ):
                if mean:
                    total[k] = _cost_of(layout, remaining[k], target, True)
                if total[k] < costs[t, 0]:
                    _replace_dearest(index[t], costs[t], remaining[k], total[k], index.shape[1])


@inner_jit
def _replace_dearest(index: Array, costs: Array, record: int, cost: float, keep: int) -> None:
    """Replace the dearest record of the heap, and restore the order of the heap."""
    node = 0
    while True:
        child = 2 * node + 1
        if child >= keep:
            break
        if child + 1 < keep and costs[child + 1] > costs[child]:
            child += 1
        if costs[child] <= cost:
            break
        index[node], costs[node] = index[child], costs[child]
        node = child
    index[node], costs[node] = record, cost
