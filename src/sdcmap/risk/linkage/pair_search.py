"""Searches by what pairs of records cost: whether another known record costs less than the true one, and the cheapest known
records of each released one.

A cost is never negative, so a sum can only grow: known records are left as soon as they cost more than what they must beat.
They lie in blocks of records that are alike in the fields that tell most, and a block is left out as a whole where the
nearest values within it cost too much already. Within a block fields are looked at one after the other, those first in
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
from sdcmap.kernels.device import held_on_device
from sdcmap.kernels.jit import inner_jit, jit, own_threads, run_parts
from sdcmap.risk.linkage import field_costs as kinds
from sdcmap.risk.linkage.field_costs import Cost, cost_of_values
from sdcmap.risk.linkage.link_search import Links

BLOCK = 512  # known records of a block at most
TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal
MOST_VALUES = 1024  # of a known column, up to which what each costs is computed once for a target
FEW_VALUES = 1 / 16  # of the records: so many are looked up for every target at once
SPAN = 16  # of neighboring values of a block, up to which the cheapest is looked for
DEAR = {kinds.MIXTURE: 20.0, kinds.CELL: 20.0}  # what looking at a value takes, beside looking it up; others 3
SAMPLED = 500  # released values on which the mean cost of a field is estimated
PARTS = 4  # of the targets for each thread
MAX_CACHED_BYTES = 1 << 28  # of the coded columns that are kept
GOLDEN = 0.6180339887498949  # its multiples scatter the places where searches begin


def _coded(values: Array) -> tuple[Array, Array]:
    """The distinct values of a column, and which of them each record has."""
    distinct, code = np.unique(values, return_inverse=True)
    return distinct, code.astype(np.int32)


def cached_by_array(
    compute: Callable[[Array], tuple[Array, ...]], max_bytes: int = MAX_CACHED_BYTES
) -> Callable[[Array], tuple[Array, ...]]:
    """Return `compute` with a cache: an array that is closed to writing is computed once, and its result is kept as long
    as the array lives, bounded by bytes. Threads may share it."""
    cache: LRUCache[int, tuple[Array, ...]] = LRUCache(max_bytes, lambda arrays: sum(part.nbytes for part in arrays))
    lock = threading.RLock()  # an array may end, and be forgotten, while this thread holds the lock

    def forget(key: int) -> None:
        with lock:
            cache.pop(key, None)

    @cached(cache, key=id, lock=lock)
    def computed_once(array: Array) -> tuple[Array, ...]:
        weakref.finalize(array, forget, id(array)).atexit = False
        return compute(array)

    return lambda array: compute(array) if array.flags.writeable else computed_once(array)


_CODED = cached_by_array(_coded)  # of the known columns that many files are compared with


class _Laid(NamedTuple):
    """The fields as arrays, those first that tell most for what looking at them costs, and the known records in blocks.

    A field with few known values is looked up: what each of them costs is computed once for a target.
    """

    a: Array  # (field, known record)
    b: Array  # (released record, field)
    kind: Array
    numbers: Array  # (field, 4): scale, cap, both, one
    start: Array  # of each field's table
    tables: Array
    tails: Array  # of a NUMBER's table: the least cost from each cell of distance on
    code: Array  # (field, known record): which of the field's values it has
    value: Array  # (field, MOST_VALUES): the values
    values: Array  # how many; 0: too many to be looked up
    block: Array  # where each block begins, and the end
    low: Array  # (block, field): its least value; NaN: some are missing
    high: Array
    first: Array  # (block, field): the code of its least value
    last: Array


def _lay_out(costs: Sequence[Cost]) -> tuple[_Laid, Array]:
    """Both files, and the order of the known records in it."""
    coded = [_CODED(field.known) for field in costs]
    few = [len(values) <= MOST_VALUES for values, _ in coded]
    price = [1.0 if here else DEAR.get(field.kind, 3.0) for field, here in zip(costs, few, strict=True)]
    mean = np.array([_mean_cost(field) for field in costs])
    by_worth = np.argsort(-mean / price, kind="stable")
    fields = [costs[f] for f in by_worth]
    code = np.array([coded[f][1] for f in by_worth], dtype=np.int32)
    order, block = _boxes(code, mean[by_worth], BLOCK)
    code = np.ascontiguousarray(code[:, order])
    a = np.ascontiguousarray(np.array([field.known for field in fields], dtype=float)[:, order])
    value = np.zeros((len(fields), MOST_VALUES))
    for place, f in enumerate(by_worth):
        if few[f]:
            value[place, : len(coded[f][0])] = coded[f][0]
    return _Laid(
        a,
        np.ascontiguousarray(np.array([field.released for field in fields], dtype=float).T),
        np.array([field.kind for field in fields]),
        np.array([(field.scale, field.cap, field.both, field.one) for field in fields], dtype=float),
        np.concatenate([[0], np.cumsum([len(field.table) for field in fields])]),
        np.concatenate([field.table for field in fields]).astype(float),
        np.concatenate([np.minimum.accumulate(field.table[::-1])[::-1] for field in fields]).astype(float),
        code, value, np.array([len(coded[f][0]) if few[f] else 0 for f in by_worth]), block,
        *(np.ascontiguousarray(edge.reduceat(side, block[:-1], axis=1).T)
          for side in (a, code) for edge in (np.minimum, np.maximum)),
    ), order  # fmt: skip


def _mean_cost(field: Cost) -> float:
    """Of random pairs: each of some released values against a known one elsewhere in the file."""
    some = np.linspace(0, len(field.released) - 1, min(len(field.released), SAMPLED)).astype(np.int64)
    return float(field.pairs((some * 7919 + 1) % len(field.known), some).mean())


@jit
def _boxes(code: Array, worth: Array, size: int) -> tuple[Array, Array]:
    """An order of the records in which neighbors are alike, and where its blocks begin, each of `size` records at most.

    A set of records is halved where a field's values change, nearest to its middle; the field is that whose worth is
    greatest, and each halving takes half of it.
    """
    fields, n = code.shape
    order, begins, blocks = np.arange(n), np.empty(n + 1, dtype=np.int64), 0
    deep = 256 + 4 * fields
    left, right, worths = np.empty(deep, dtype=np.int64), np.empty(deep, dtype=np.int64), np.empty((deep, fields))
    left[0], right[0], height = 0, n, 1
    for f in range(fields):
        worths[0, f] = worth[f] + 1e-300
    while height:
        height -= 1
        begin, end = left[height], right[height]
        mine = worths[height].copy()
        best = -1
        if end - begin > size:
            for f in range(fields):
                if best < 0 or mine[f] > mine[best]:
                    first = code[f, order[begin]]
                    for k in range(begin + 1, end):
                        if code[f, order[k]] != first:
                            best = f
                            break
        if best < 0:  # all alike, or few
            for place in range(begin, end, size):
                begins[blocks] = place
                blocks += 1
            continue
        inside = order[begin:end].copy()
        value = code[best][inside]
        is_value_map = np.argsort(value, kind="mergesort")
        for k in range(end - begin):
            order[begin + k] = inside[is_value_map[k]]
        middle = (end - begin) // 2
        below, above = middle, middle
        while below > 0 and value[is_value_map[below - 1]] == value[is_value_map[below]]:
            below -= 1
        while above < end - begin and value[is_value_map[above - 1]] == value[is_value_map[above]]:
            above += 1
        cut = begin + (below if below > 0 and (middle - below <= above - middle or above == end - begin) else above)
        mine[best] *= 0.5
        left[height], right[height] = cut, end
        left[height + 1], right[height + 1] = begin, cut
        for f in range(fields):
            worths[height, f] = worths[height + 1, f] = mine[f]
        height += 2
    begins[blocks] = n
    return order, begins[: blocks + 1].copy()


def _parts(count: int, threads: int) -> list[slice]:
    """Parts of 0 to count - 1 for so many threads."""
    step = max(1, -(-count // (PARTS * threads))) if threads > 1 else max(1, count)
    return [slice(start, start + step) for start in range(0, count, step)]


# ---- what a block and its records cost --------------------------------------------------------------------------
class _Looked(NamedTuple):
    """What one target costs: each value of the fields that are ready."""

    cost: Array  # (field, value)
    ready: Array


@inner_jit
def _block_bound(laid: _Laid, block: int, b: Array, looked: _Looked, limit: float) -> float:
    """A bound below what the records of a block cost a target; once it is above the limit, that is enough."""
    total = 0.0
    for f in range(len(laid.kind)):
        first, last = laid.first[block, f], laid.last[block, f]
        if looked.ready[f] and last - first < SPAN:
            least = np.inf
            for k in range(first, last + 1):
                least = min(least, looked.cost[f, k])
            total += least
        else:
            kept = laid.tables if laid.kind[f] == kinds.CELL else laid.tails
            table = kept[laid.start[f] : laid.start[f + 1]]
            total += _least(laid.low[block, f], laid.high[block, f], b[f], laid.kind[f], laid.numbers[f], table)
        if total > limit:
            break
    return total


@inner_jit
def _least(low: float, high: float, b: float, kind: int, numbers: Array, tail: Array) -> float:
    """A bound below what values from low to high cost: by the nearest of them where a cost grows with the distance, of a
    NUMBER by the least from there on, of a CELL by the nearest to its middle."""
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
        return float(tail[kinds.HEAD + min(max(cell, 0), len(tail) - kinds.HEAD - 1)])
    return cost_of_values(nearest, b, kind, numbers[0], numbers[1], 0.0, 0.0, numbers[:0])


@inner_jit
def _within(
    laid: _Laid, block: int, b: Array, looked: _Looked, absent: float, limit: float, turn: int,
    left: Array, total: Array,
) -> int:  # fmt: skip
    """The known records of a block that cost at most the limit: which (left), what (total); returns how many. turn: at
    which of them to begin."""
    first, last = laid.block[block], laid.block[block + 1]
    count: int = last - first
    place = first + turn % count
    for k in range(count):
        left[k], total[k] = place, 0.0
        place = place + 1 if place + 1 < last else first
    for f in range(len(laid.kind)):
        if laid.values[f] and not looked.ready[f] and 2 * count > laid.values[f]:
            _look_up(laid, f, b[f], absent, looked)
        if looked.ready[f]:
            for k in range(count):
                total[k] += looked.cost[f, laid.code[f, left[k]]]
        else:
            table = laid.tables[laid.start[f] : laid.start[f + 1]]
            _add_field(laid.a[f], b[f], laid.kind[f], laid.numbers[f], absent, table, left[:count], total)
        kept = 0
        for k in range(count):
            cost = total[k]
            left[kept], total[kept] = left[k], cost
            kept += cost <= limit
        count = kept
        if count == 0:
            break
    return count


@inner_jit
def _look_up_few(laid: _Laid, b: Array, absent: float, looked: _Looked) -> None:
    """What the values of each field cost a target, where they are few beside the records; of the others, nothing yet."""
    for f in range(len(laid.kind)):
        looked.ready[f] = False
        if 0 < laid.values[f] <= FEW_VALUES * laid.a.shape[1]:
            _look_up(laid, f, b[f], absent, looked)


@inner_jit
def _look_up(laid: _Laid, f: int, b: float, absent: float, looked: _Looked) -> None:
    """What each value of a field costs a target."""
    table = laid.tables[laid.start[f] : laid.start[f + 1]]
    scale, cap, both, one = laid.numbers[f]
    if absent >= 0:
        both, one = absent, absent
    for k in range(laid.values[f]):
        looked.cost[f, k] = cost_of_values(laid.value[f, k], b, laid.kind[f], scale, cap, both, one, table)
    looked.ready[f] = True


@inner_jit
def _cost_of(laid: _Laid, record: int, b: Array, mean: bool) -> float:
    """What two records cost; mean: over the fields that both have (1: they have none)."""
    total, count = 0.0, 0
    for f in range(len(laid.kind)):
        a = laid.a[f, record]
        if not mean or not (math.isnan(a) or math.isnan(b[f])):
            scale, cap, both, one = laid.numbers[f]
            table = laid.tables[laid.start[f] : laid.start[f + 1]]
            total += cost_of_values(a, b[f], laid.kind[f], scale, cap, both, one, table)
            count += 1
    if not mean:
        return total
    return total / count if count else 1.0


@inner_jit
def _add_field(
    a: Array, b: float, kind: int, numbers: Array, absent: float, table: Array, left: Array, total: Array
) -> None:
    """Add one field's cost to the known records that are left; kinds that take most of the time have their own loops.
    absent: what a missing value costs instead, where not negative."""
    scale, cap, both, one = numbers
    if absent >= 0:
        both, one = absent, absent
    if kind == kinds.SQUARE and not math.isnan(b):
        for k in range(len(left)):
            away = b - a[left[k]]
            total[k] += one if math.isnan(away) else min(scale * away * away, cap)
    elif kind == kinds.RELATIVE and not math.isnan(b):
        for k in range(len(left)):
            value = a[left[k]]
            reach = max(scale * max(abs(value), kinds.NEAR_ZERO), kinds.LEAST_REACH)
            total[k] += one if math.isnan(value) else cap * min(abs(b - value) / reach, 1.0)
    elif kind == kinds.NUMBER and not math.isnan(b):
        for k in range(len(left)):
            away = abs(b - a[left[k]])
            total[k] += (
                table[1] if math.isnan(away) else table[3] if away == 0 else kinds.by_distance(away * scale, table)
            )
    else:
        for k in range(len(left)):
            total[k] += cost_of_values(a[left[k]], b, kind, scale, cap, both, one, table)


# ---- is the true record outrun? ---------------------------------------------------------------------------------
@held_on_device
class Race:
    """Whether some known record costs less than the true one, the files laid out once for targets that come in parts.

    truth: place of the true known record of each released one; -1: none, and then it counts as outrun. mean: the cost of a
    pair is the mean over the fields that are present on both sides (1: none is), not the sum; no field is looked up then.
    """

    def __init__(self, costs: Sequence[Cost], truth: Array, *, mean: bool = False) -> None:
        self.laid, order = _lay_out(costs)
        # who is like the true record is looked at first
        self.truth = np.where(truth >= 0, np.argsort(order)[truth], -1)
        self.mean = mean

    def __call__(self, targets: Array, *, threads: int | None = None) -> tuple[Array, Array]:
        """For each target, a place of the released file: whether it is outrun, and, where not, how many known records cost
        as much as its true one (that one among them). A target is left as soon as it is outrun."""
        beaten, ties = np.zeros(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)

        truth, threads = self.truth[targets], threads or own_threads()

        def run(part: slice) -> None:
            _outrun(self.laid, truth[part], targets[part], self.mean, beaten[part], ties[part])

        run_parts(run, _parts(len(targets), threads), threads)
        return beaten, ties


@jit
def _outrun(laid: _Laid, truth: Array, targets: Array, mean: bool, beaten: Array, ties: Array) -> None:
    fields, blocks = len(laid.kind), len(laid.block) - 1
    left, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    looked = _Looked(np.empty(laid.value.shape), np.zeros(fields, dtype=np.bool_))
    for t in range(len(targets)):
        if truth[t] < 0:
            beaten[t] = True
            continue
        mine = laid.b[targets[t]]
        own = _cost_of(laid, truth[t], mine, mean)
        slack = TIE * own + TINY
        # a mean of at most own over the fields present: a sum of at most own a field, where an absent one costs own
        limit, absent = ((own + slack) * fields, own) if mean else (own + slack, -1.0)
        _look_up_few(laid, mine, absent, looked)
        home = np.searchsorted(laid.block, truth[t], "right") - 1
        for step in range(blocks):
            here = (home + step) % blocks
            if _block_bound(laid, here, mine, looked, limit) > limit:
                continue
            for k in range(_within(laid, here, mine, looked, absent, limit, 0, left, total)):
                if mean:
                    total[k] = _cost_of(laid, left[k], mine, True)
                if total[k] < own - slack:
                    beaten[t] = True
                ties[t] += total[k] <= own + slack
            if beaten[t]:
                break


# ---- the cheapest -----------------------------------------------------------------------------------------------
@held_on_device
class Search:
    """The cheapest known records of released ones, the files laid out once; mean as in `Race`."""

    def __init__(self, costs: Sequence[Cost], *, mean: bool = False) -> None:
        self.laid, self.order = _lay_out(costs)
        self.mean = mean

    def __call__(self, targets: Array, keep: int, *, threads: int | None = None) -> Links:
        """The `keep` cheapest of each target, best first, minus their costs as scores. Of equals, each target takes others:
        where it begins to look is scattered, so that one-to-one links find partners."""
        n = len(self.order)
        keep = min(keep, n)
        index = np.full((len(targets), keep), -1, dtype=np.int32)
        cost = np.full((len(targets), keep), np.inf)

        begin, threads = (targets * GOLDEN % 1 * n).astype(np.int64), threads or own_threads()

        def run(part: slice) -> None:
            _cheapest(self.laid, targets[part], begin[part], self.mean, index[part], cost[part])

        run_parts(run, _parts(len(targets), threads), threads)
        best = np.argsort(cost, axis=1, kind="stable")
        index = np.where(index >= 0, self.order[index], -1).astype(np.int32)
        return Links(np.take_along_axis(index, best, axis=1), -np.take_along_axis(cost, best, axis=1))


@jit
def _cheapest(laid: _Laid, targets: Array, begin: Array, mean: bool, index: Array, costs: Array) -> None:
    """A heap of the cheapest so far for each target, the dearest of them on top; the blocks come by their bounds, equal
    ones from where the target begins."""
    fields, blocks = len(laid.kind), len(laid.block) - 1
    left, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    looked = _Looked(np.empty(laid.value.shape), np.zeros(fields, dtype=np.bool_))
    bound, absent = np.empty(blocks), 0.0 if mean else -1.0  # what is absent costs nothing yet: the mean is taken after
    for t in range(len(targets)):
        mine = laid.b[targets[t]]
        _look_up_few(laid, mine, absent, looked)
        home = np.searchsorted(laid.block, begin[t], "right") - 1
        for step in range(blocks):
            bound[step] = _block_bound(laid, (home + step) % blocks, mine, looked, np.inf)
        for step in np.argsort(bound, kind="mergesort"):
            limit = costs[t, 0] * fields if mean else costs[t, 0]
            if bound[step] > limit or costs[t, 0] <= 0:  # nothing is cheaper
                break
            here = (home + step) % blocks
            for k in range(_within(laid, here, mine, looked, absent, limit, begin[t], left, total)):
                if mean:
                    total[k] = _cost_of(laid, left[k], mine, True)
                if total[k] < costs[t, 0]:
                    _take(index[t], costs[t], left[k], total[k], index.shape[1])


@inner_jit
def _take(index: Array, costs: Array, record: int, cost: float, keep: int) -> None:
    """Put a record in the place of the dearest, and let it sink."""
    here = 0
    while True:
        child = 2 * here + 1
        if child >= keep:
            break
        if child + 1 < keep and costs[child + 1] > costs[child]:
            child += 1
        if costs[child] <= cost:
            break
        index[here], costs[here] = index[child], costs[child]
        here = child
    index[here], costs[here] = record, cost
