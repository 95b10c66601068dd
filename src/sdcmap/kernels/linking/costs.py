"""What two records cost as a pair, field by field; whether another known record costs less than the true one; and the
cheapest known records of each released one.

A cost is never negative, so a sum can only grow: known records are left as soon as they cost more than what they must
beat. Fields are looked at one after the other, those first in which random pairs cost most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit, own_threads
from sdcmap.kernels.linking.links import Links

# NUMBER: by the distance, looked up; CATEGORY: by the two codes, looked up; SQUARE: scale (b - a)^2; GAP: cap times
# |b - a| / scale; RELATIVE: the same with scale max(|a|, 0.1) for scale; SAME, WINDOW, BELOW: nothing where b = a,
# |b - a| < scale, b - a < scale, else the cap; MIXTURE: minus the log density of b - a, above its least
NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE = range(9)
STEPS = 8  # of an octave of distance, in the table of a NUMBER
HEAD = 4  # its cells before the distances: both missing, known missing, released missing, equal
NEAR_ZERO, LEAST_REACH = 0.1, 1e-100  # of RELATIVE: values nearer to 0 count as this; a divisor that never overflows
BLOCK = 256  # known records looked at while they stay in the cache
TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal
MOST_VALUES = 1024  # of a known column, up to which what each costs is computed once for a target
DEAR = {NUMBER: 8.0, MIXTURE: 20.0}  # what looking at a value takes, beside looking it up; others 3
SAMPLED = 500  # released values on which the mean cost of a field is estimated
GOLDEN = 0.6180339887498949  # its multiples scatter the places where searches begin
NONE = np.zeros(0)


class Cost(NamedTuple):
    """One field of both files (NaN: missing), and what two of its values cost."""

    kind: int
    known: Array
    released: Array
    scale: float = 1.0  # of NUMBER: the first distance of its table; of CATEGORY: the number of released codes
    cap: float = math.inf
    both: float = 0.0  # the cost where both are missing (NUMBER and CATEGORY: looked up)
    one: float = 0.0  # where one is
    table: Array = (
        NONE  # of MIXTURE: (log(weight / sd), centre, half precision) of each component, in a row, then the top
    )

    def pairs(self, known: Array | slice, released: Array | slice) -> Array:
        """The costs of these known records and these released ones, which broadcast: the plain formula."""
        a, b = self.known[known], self.released[released]
        if self.kind == NUMBER:
            return table_costs(a, b, self.table, self.scale)
        if self.kind == CATEGORY:
            return self.table[(a * self.scale + b).astype(np.intp)]
        lost, gone = np.isnan(a), np.isnan(b)
        a, b = np.where(lost, 0.0, a), np.where(gone, 0.0, b)
        with np.errstate(over="ignore"):
            cost = self._present(a, b - a)
        return np.where(lost & gone, self.both, np.where(lost | gone, self.one, cost))

    def _present(self, a: Array, away: Array) -> Array:
        cost: Array
        if self.kind == SQUARE:
            cost = np.minimum(self.scale * away**2, self.cap)
        elif self.kind == GAP:
            cost = self.cap * np.minimum(np.abs(away) / self.scale, 1.0)
        elif self.kind == RELATIVE:
            reach = np.maximum(self.scale * np.maximum(np.abs(a), NEAR_ZERO), LEAST_REACH)
            cost = self.cap * np.minimum(np.abs(away) / reach, 1.0)
        elif self.kind == MIXTURE:
            height, centre, half = self.table[:-1].reshape(-1, 3).T
            density = np.logaddexp.reduce(height - half * (away[..., np.newaxis] - centre) ** 2, axis=-1)
            cost = np.clip(self.table[-1] - density, 0.0, self.cap)
        else:
            inside = {SAME: away == 0, WINDOW: np.abs(away) < self.scale, BELOW: away < self.scale}[self.kind]
            cost = np.where(inside, 0.0, self.cap)
        return cost


def table_costs(known: Array, released: Array, table: Array, low: float) -> Array:
    """The costs of a NUMBER: its states, and straight lines between the cells of the distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(released - known)
        place = np.clip(octaves(apart / low) * STEPS, 0, len(table) - HEAD - 1)
    below = np.nan_to_num(np.minimum(np.floor(place), len(table) - HEAD - 2)).astype(np.intp)
    rest = np.nan_to_num(place) - below
    first, second = table[HEAD + below], table[HEAD + below + 1]
    lost, gone = np.isnan(known), np.isnan(released)
    states = [lost & gone, lost, gone, apart == 0]
    return np.select(states, [table[k] for k in range(HEAD)], first + (second - first) * rest)


def octaves(ratio: Array) -> Array:
    """log2, straight between the powers of 2, as `frexp` gives it without a logarithm."""
    mantissa, exponent = np.frexp(ratio)
    return exponent - 2.0 + 2.0 * mantissa


@jit
def _cost(
    a: float, b: float, kind: int, scale: float, cap: float, both: float, one: float, table: Array
) -> float:  # fmt: skip
    """The cost of two values; what `Cost.pairs` says in plain."""
    if kind == CATEGORY:
        return float(table[int(a) * int(scale) + int(b)])
    lost, gone = math.isnan(a), math.isnan(b)
    if kind == NUMBER:
        if lost or gone:
            return float(table[2] if not lost else table[0] if gone else table[1])
        if a == b:
            return float(table[3])
        cells = len(table) - HEAD
        mantissa, exponent = math.frexp(abs(b - a) / scale)
        place = min(max((exponent - 2.0 + 2.0 * mantissa) * STEPS, 0.0), cells - 1.0)
        below = min(int(place), cells - 2)
        here = table[HEAD + below]
        return float(here + (table[HEAD + below + 1] - here) * (place - below))
    if lost or gone:
        return both if lost and gone else one
    away = b - a
    if kind == SQUARE:
        return min(scale * away * away, cap)
    if kind == GAP:
        return cap * min(abs(away) / scale, 1.0)
    if kind == RELATIVE:
        return cap * min(abs(away) / max(scale * max(abs(a), NEAR_ZERO), LEAST_REACH), 1.0)
    if kind == SAME:
        return 0.0 if away == 0 else cap
    if kind == WINDOW:
        return 0.0 if abs(away) < scale else cap
    if kind == BELOW:
        return 0.0 if away < scale else cap
    top = -np.inf
    for k in range(0, len(table) - 1, 3):
        top = max(top, table[k] - table[k + 2] * (away - table[k + 1]) ** 2)
    total = 0.0
    for k in range(0, len(table) - 1, 3):
        total += math.exp(table[k] - table[k + 2] * (away - table[k + 1]) ** 2 - top)
    return float(min(max(table[len(table) - 1] - top - math.log(total), 0.0), cap))


# ---- all pairs ------------------------------------------------------------------------------------------------
def block_costs(costs: Sequence[Cost], known: Array | slice, released: Array | slice = slice(None)) -> Array:
    """The costs of these known records (rows) against these released ones (columns)."""
    total = np.zeros((len(costs[0].known[known]), len(costs[0].released[released])))
    for field in costs:
        a, b = np.ascontiguousarray(field.known[known]), np.ascontiguousarray(field.released[released])
        _add_costs(a, b, field.kind, field.scale, field.cap, field.both, field.one, field.table, total)
    return total


@jit
def _add_costs(
    a: Array, b: Array, kind: int, scale: float, cap: float, both: float, one: float, table: Array, total: Array
) -> None:
    for i in range(len(a)):
        for j in range(len(b)):
            total[i, j] += _cost(a[i], b[j], kind, scale, cap, both, one, table)


def mean_costs(costs: Sequence[Cost], known: Array | slice, released: Array | slice = slice(None)) -> Array:
    """The same in the mean over the fields that both records have; 1 where they have none."""
    shape = len(costs[0].known[known]), len(costs[0].released[released])
    total, count = np.zeros(shape), np.zeros(shape)
    for field in costs:
        a, b = np.arange(len(field.known))[known][:, np.newaxis], np.arange(len(field.released))[released]
        both = ~(np.isnan(field.known[a]) | np.isnan(field.released[b]))
        count += both
        total += np.where(both, field.pairs(a, b), 0.0)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


class _Packed(NamedTuple):
    """The fields as arrays, those first that tell most for what looking at them costs.

    A field with few known values is looked up: what each of them costs is computed once for a target.
    """

    a: Array  # (field, known record)
    b: Array  # (released record, field)
    kind: Array
    numbers: Array  # (field, 4): scale, cap, both, one
    start: Array
    tables: Array
    code: Array  # (field, known record): which of the field's values it has
    value: Array  # (field, MOST_VALUES): the values
    values: Array  # how many; 0: too many to be looked up


def _sorted(packed: _Packed) -> tuple[_Packed, Array]:
    """The known records in the order of the first field, so that whole blocks of them can be left out; and that order."""
    order = np.argsort(packed.a[0], kind="stable")
    return packed._replace(a=packed.a[:, order], code=packed.code[:, order]), order


def _packed(costs: Sequence[Cost]) -> _Packed:
    coded = [np.unique(field.known, return_inverse=True) for field in costs]
    few = [len(values) <= MOST_VALUES for values, _ in coded]
    price = [1.0 if here else DEAR.get(field.kind, 3.0) for field, here in zip(costs, few, strict=True)]
    worth = [-_mean_cost(field) / dear for field, dear in zip(costs, price, strict=True)]
    order = np.argsort(worth, kind="stable")
    fields = [costs[f] for f in order]
    value = np.zeros((len(fields), MOST_VALUES))
    code = np.zeros((len(fields), len(fields[0].known)), dtype=np.int32)
    for place, f in enumerate(order):
        if few[f]:
            value[place, : len(coded[f][0])], code[place] = coded[f][0], coded[f][1]
    return _Packed(
        np.array([field.known for field in fields], dtype=float),
        np.ascontiguousarray(np.array([field.released for field in fields], dtype=float).T),
        np.array([field.kind for field in fields]),
        np.array([(field.scale, field.cap, field.both, field.one) for field in fields], dtype=float),
        np.concatenate([[0], np.cumsum([len(field.table) for field in fields])]),
        np.concatenate([field.table for field in fields]).astype(float),
        code,
        value,
        np.array([len(coded[f][0]) if few[f] else 0 for f in order]),
    )


def _mean_cost(field: Cost) -> float:
    """Of random pairs: each of some released values against a known one elsewhere in the file."""
    some = np.linspace(0, len(field.released) - 1, min(len(field.released), SAMPLED)).astype(np.int64)
    return float(field.pairs((some * 7919 + 1) % len(field.known), some).mean())


def _in_parts(run: Callable[[Array], None], count: int, threads: int | None) -> None:
    """Run over 0 to count - 1, in parts for threads; what is found does not depend on their number."""
    threads = own_threads() if threads is None else threads
    parts = np.array_split(np.arange(count), max(1, 4 * threads if threads > 1 else 1))
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(run, [part for part in parts if len(part)]):
            pass


# ---- is the true record outrun? ---------------------------------------------------------------------------------
def outrun(
    costs: Sequence[Cost], truth: Array, targets: Array, *, mean: bool = False, threads: int | None = None
) -> tuple[Array, Array]:
    """For each target, a place of the released file: whether some known record costs less than its true one does, and,
    where none does, how many cost as much (the true one among them). truth: place of the true known record of each released
    one; -1: none, and then it counts as outrun. mean: the cost of a pair is the mean over the fields that are present on
    both sides (1: none is), not the sum; no field is looked up then.

    A target is left as soon as it is outrun.
    """
    packed, order = _sorted(_packed(costs))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    truth = np.where(truth >= 0, place[truth], -1)  # who is like the true record is looked at first
    beaten, ties = np.zeros(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)

    def run(part: Array) -> None:
        here, count = np.zeros(len(part), dtype=np.bool_), np.zeros(len(part), dtype=np.int64)
        _outrun(*packed, truth[targets[part]], targets[part], mean, here, count)
        beaten[part], ties[part] = here, count

    _in_parts(run, len(targets), threads)
    return beaten, ties


@jit
def _outrun(
    a: Array, b: Array, kind: Array, numbers: Array, start: Array, tables: Array, code: Array, value: Array,
    values: Array, truth: Array, targets: Array, mean: bool, beaten: Array, ties: Array,
) -> None:  # fmt: skip
    fields, n = a.shape
    left, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    looked_up, ready = np.empty(value.shape), np.zeros(fields, dtype=np.bool_)
    blocks = (n + BLOCK - 1) // BLOCK
    for t in range(len(targets)):
        if truth[t] < 0:
            beaten[t] = True
            continue
        own = _cost_of(a[:, truth[t]], b[targets[t]], kind, numbers, start, tables, mean)
        slack = TIE * own + TINY
        # a mean of at most own over the fields present: a sum of at most own a field, where an absent one costs own
        limit, absent = ((own + slack) * fields, own) if mean else (own + slack, -1.0)
        ready[:] = False
        for step in range(blocks):
            first = (truth[t] // BLOCK + step) % blocks * BLOCK
            last = min(n, first + BLOCK)
            known = looked_up[0] if ready[0] else looked_up[0, :0]
            if _least(a[0], code[0], known, first, last, b[targets[t], 0], kind[0], numbers[0]) > limit:
                continue
            count = _within(
                a, b[targets[t]], kind, numbers, start, tables, code, value, values, looked_up, ready, absent, limit,
                first, last, left, total,
            )  # fmt: skip
            for k in range(count):
                if mean:
                    total[k] = _cost_of(a[:, left[k]], b[targets[t]], kind, numbers, start, tables, True)
                if total[k] < own - slack:
                    beaten[t] = True
                ties[t] += total[k] <= own + slack
            if beaten[t]:
                break


@jit
def _least(
    a: Array, code: Array, looked_up: Array, first: int, last: int, b: float, kind: int, numbers: Array
) -> float:
    """A bound below what the known values from first to last, which are sorted, cost in the first field: by what was looked
    up, or by the nearest of them where a cost grows with the distance."""
    if len(looked_up):
        return float(looked_up[code[first] : code[last - 1] + 1].min())
    low, high = a[first], a[last - 1]
    grows = kind in (SQUARE, GAP, RELATIVE, WINDOW)
    if not grows or math.isnan(b) or math.isnan(low) or math.isnan(high) or low <= b <= high:
        return 0.0
    nearest = low if b < low else high
    return _cost(nearest, b, kind, numbers[0], numbers[1], 0.0, 0.0, numbers[:0])


@jit
def _within(
    a: Array, b: Array, kind: Array, numbers: Array, start: Array, tables: Array, code: Array, value: Array,
    values: Array, looked_up: Array, ready: Array, absent: float, limit: float, first: int, last: int, left: Array,
    total: Array,
) -> int:  # fmt: skip
    """The known records from first to last that cost at most the limit: which (left), what (total); returns how many.
    looked_up holds, where ready, what each value of a field costs this target."""
    count = last - first
    for k in range(count):
        left[k], total[k] = first + k, 0.0
    for f in range(len(kind)):
        table = tables[start[f] : start[f + 1]]
        if values[f] and not ready[f] and 2 * count > values[f]:
            _look_up(value[f], values[f], b[f], kind[f], numbers[f], absent, table, looked_up[f])
            ready[f] = True
        if ready[f]:
            count = _narrow_by_code(code[f], looked_up[f], left, total, count, limit)
        else:
            count = _narrow(a[f], b[f], kind[f], numbers[f], absent, table, left, total, count, limit)
        if count == 0:
            break
    return count


@jit
def _look_up(
    value: Array, values: int, b: float, kind: int, numbers: Array, absent: float, table: Array, cost: Array
) -> None:
    """What each value of a field costs a target."""
    both, one = (numbers[2], numbers[3]) if absent < 0 else (absent, absent)
    for k in range(values):
        cost[k] = _cost(value[k], b, kind, numbers[0], numbers[1], both, one, table)


@jit
def _narrow_by_code(code: Array, cost: Array, left: Array, total: Array, count: int, limit: float) -> int:
    """As `_narrow`, by what was looked up."""
    kept = 0
    for k in range(count):
        record = left[k]
        sum_here = total[k] + cost[code[record]]
        left[kept], total[kept] = record, sum_here
        kept += sum_here <= limit
    return kept


@jit
def _cost_of(a: Array, b: Array, kind: Array, numbers: Array, start: Array, tables: Array, mean: bool) -> float:
    """What two records cost; mean: over the fields that both have (1: they have none)."""
    total, count = 0.0, 0
    for f in range(len(kind)):
        if not mean or not (math.isnan(a[f]) or math.isnan(b[f])):
            scale, cap, both, one = numbers[f]
            total += _cost(a[f], b[f], kind[f], scale, cap, both, one, tables[start[f] : start[f + 1]])
            count += 1
    if not mean:
        return total
    return total / count if count else 1.0


@jit
def _narrow(
    a: Array, b: float, kind: int, numbers: Array, absent: float, table: Array, left: Array, total: Array, count: int,
    limit: float,
) -> int:  # fmt: skip
    """Add one field's cost to the known records that are left, and keep those within the limit; returns how many. absent:
    what a missing value costs instead, where not negative."""
    kept = 0
    scale, cap = numbers[0], numbers[1]
    both, one = (numbers[2], numbers[3]) if absent < 0 else (absent, absent)
    if kind == CATEGORY:
        code, width = np.int64(b), np.int64(scale)
        for k in range(count):
            cost = total[k] + table[np.int64(a[left[k]]) * width + code]
            left[kept], total[kept] = left[k], cost
            kept += cost <= limit
        return kept
    if kind == SQUARE and not math.isnan(b):
        for k in range(count):
            away = b - a[left[k]]
            cost = total[k] + (one if math.isnan(away) else min(scale * away * away, cap))
            left[kept], total[kept] = left[k], cost
            kept += cost <= limit
        return kept
    for k in range(count):
        cost = total[k] + _cost(a[left[k]], b, kind, scale, cap, both, one, table)
        left[kept], total[kept] = left[k], cost
        kept += cost <= limit
    return kept


# ---- the cheapest -----------------------------------------------------------------------------------------------
def cheapest(
    costs: Sequence[Cost], targets: Array, keep: int, *, mean: bool = False, threads: int | None = None
) -> Links:
    """The `keep` cheapest known records of each target, best first, minus their costs as scores; mean as in `outrun`. Of
    equals, each target takes others: where it begins to look is scattered, so that one-to-one links find partners."""
    packed, order = _sorted(_packed(costs))
    n = len(order)
    keep = min(keep, n)
    index = np.full((len(targets), keep), -1, dtype=np.int32)
    cost = np.full((len(targets), keep), np.inf)

    def run(part: Array) -> None:
        begin = ((targets[part] * GOLDEN) % 1 * n).astype(np.int64)
        _cheapest(*packed, targets[part], begin, mean, index[part[0] : part[-1] + 1], cost[part[0] : part[-1] + 1])

    _in_parts(run, len(targets), threads)
    best = np.argsort(cost, axis=1, kind="stable")
    index = np.where(index >= 0, order[index], -1).astype(np.int32)
    return Links(np.take_along_axis(index, best, axis=1), -np.take_along_axis(cost, best, axis=1))


@jit
def _cheapest(
    a: Array, b: Array, kind: Array, numbers: Array, start: Array, tables: Array, code: Array, value: Array,
    values: Array, targets: Array, begin: Array, mean: bool, index: Array, costs: Array,
) -> None:  # fmt: skip
    """A heap of the cheapest so far for each target, the dearest of them on top."""
    fields, n = a.shape
    keep = index.shape[1]
    left, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    looked_up, ready = np.empty(value.shape), np.zeros(fields, dtype=np.bool_)
    blocks = (n + BLOCK - 1) // BLOCK
    for t in range(len(targets)):
        ready[:] = False
        for step in range(blocks + 1):  # the block of the beginning is seen twice: after the beginning, and before it
            block = (begin[t] // BLOCK + step) % blocks
            first, last = block * BLOCK, min((block + 1) * BLOCK, n)
            if step == 0:
                first = begin[t]
            elif step == blocks:
                last = begin[t]
            if costs[t, 0] <= 0:  # nothing is cheaper
                break
            limit, absent = (costs[t, 0] * fields, costs[t, 0]) if mean else (costs[t, 0], -1.0)
            if mean:  # what is absent costs less than before
                ready[:] = False
            if last == first:
                continue
            known = looked_up[0] if ready[0] else looked_up[0, :0]
            if _least(a[0], code[0], known, first, last, b[targets[t], 0], kind[0], numbers[0]) > limit:
                continue
            count = _within(
                a, b[targets[t]], kind, numbers, start, tables, code, value, values, looked_up, ready, absent, limit,
                first, last, left, total,
            )  # fmt: skip
            for k in range(count):
                if mean:
                    total[k] = _cost_of(a[:, left[k]], b[targets[t]], kind, numbers, start, tables, True)
                if total[k] < costs[t, 0]:
                    _take(index[t], costs[t], left[k], total[k], keep)


@jit
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
