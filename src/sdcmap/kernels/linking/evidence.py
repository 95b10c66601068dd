"""What two values tell about whether two records are one person's: learnt from true pairs, looked up for all others.

A field's evidence is log P(values | true pair) / P(values | random pair), kept as a cost: the field's highest evidence
minus it, so that costs are never negative and a sum can only grow. Numbers are looked up by how far they are apart, on a
scale whose steps are equal shares of an octave; categories by the two codes. Nothing is assumed of the shape of an error.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit, own_threads

NUMBER, CATEGORY = 0, 1
STEPS = 8  # of an octave of distance
MOST_BINS, IN_A_BIN = 32, 50  # of the distances of true pairs: at most so many bins, of about so many pairs
SAMPLE = 500  # known values from which the distances of random pairs are counted
HEAD = 4  # cells of a number's table before the distances: both missing, known missing, released missing, equal
BLOCK = 1024  # known records looked at while they stay in the cache
TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal
NEAREST, FARTHEST = 1e-300, 1e300  # distances beyond are these


class Evidence(NamedTuple):
    """The cost of one field."""

    kind: int
    table: Array  # of a number: HEAD cells, then the distances; of a category: (known code, released code), in a row
    width: int  # of a category: number of released codes
    low: float  # of a number: the first distance of the table

    def __call__(self, known: Array, released: Array) -> Array:
        """The costs of these values, which broadcast (the plain formula; `outrun` has the same for all pairs)."""
        if self.kind == CATEGORY:
            return self.table[(known * self.width + released).astype(np.intp)]
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(released - known)
            place = np.clip(_octaves(apart / self.low) * STEPS, 0, len(self.table) - HEAD - 1)
        below = np.nan_to_num(np.minimum(np.floor(place), len(self.table) - HEAD - 2)).astype(np.intp)
        rest = np.nan_to_num(place) - below
        first, second = self.table[HEAD + below], self.table[HEAD + below + 1]
        cost = first + (second - first) * rest
        lost, gone = np.isnan(known), np.isnan(released)
        states = [lost & gone, lost, gone, apart == 0]
        return np.select(states, [self.table[k] for k in range(HEAD)], cost)


def _octaves(ratio: Array) -> Array:
    """log2, straight between the powers of 2, as `frexp` gives it without a logarithm."""
    mantissa, exponent = np.frexp(ratio)
    return exponent - 2.0 + 2.0 * mantissa


# ---- learning -------------------------------------------------------------------------------------------------
def number_evidence(known: Array, released: Array, all_known: Array, all_released: Array) -> Evidence:
    """The evidence of a number, NaN where missing, from true pairs (known, released) and from both files.

    The distances of true pairs are put into bins of about equal counts; a bin's evidence is its share among true pairs over
    its share among random pairs. Beyond the farthest true pair stands half a pair.
    """
    n = max(len(known), 1)
    lost, gone = np.isnan(known), np.isnan(released)
    missing = float(np.isnan(all_released).mean()) if len(all_released) else 0.0
    heads = [
        _log_ratio((lost & gone).sum(), lost.sum(), missing), _log_ratio((lost & ~gone).sum(), lost.sum(), 1 - missing),
        _log_ratio((~lost & gone).sum(), (~lost).sum(), missing),
    ]  # fmt: skip
    present = _log_ratio((~lost & ~gone).sum(), (~lost).sum(), 1 - missing)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.clip(np.abs(released - known)[~lost & ~gone], 0.0, FARTHEST)
    theirs = np.sort(all_released[~np.isnan(all_released)])
    ours = all_known[~np.isnan(all_known)]
    same = _share_equal(ours, theirs)
    equal = _log_ratio((apart == 0).sum(), len(apart), same)
    positive = np.sort(apart[apart > 0])
    if len(positive) == 0 or len(theirs) == 0:
        far = math.log(0.5 / (len(apart) + 1)) - math.log(max(1 - same, 0.5 / n))
        return _shifted(NUMBER, np.array([*heads, present + equal, present + far, present + far]), 0, 1.0)
    bins = int(np.clip(len(positive) // IN_A_BIN, 2, MOST_BINS))
    edges = np.unique(np.quantile(positive, np.linspace(0, 1, bins + 1)))
    count = np.histogram(positive, edges)[0] if len(edges) > 1 else np.array([len(positive)])
    random = np.maximum(_within(ours, theirs, edges) - same, 0.0)
    share = np.diff(random) if len(edges) > 1 else random[-1:]
    share[0] = random[1] if len(edges) > 1 else random[0]  # from distance 0 on
    beyond = max(1.0 - same - random[-1], 0.5 / n)
    log_ratio = np.log((count + 0.5) / (len(apart) + 1)) - np.log(np.maximum(share, 0.5 / n / max(len(theirs), 1)))
    tail = math.log(0.5 / (len(apart) + 1)) - math.log(beyond)
    centres = np.sqrt(edges[:-1]) * np.sqrt(edges[1:]) if len(edges) > 1 else edges
    low, high = max(centres[0], NEAREST), 1.1 * max(edges[-1], NEAREST)
    knots = low * _powers(np.arange(2 + math.ceil(STEPS * (math.log2(high / low) + 1))) / STEPS)
    points = np.log(np.concatenate([np.maximum(centres, low), [max(edges[-1], low), high]]))
    curve = np.interp(np.log(knots), points, np.concatenate([log_ratio, [log_ratio[-1], tail]]))
    return _shifted(NUMBER, np.concatenate([heads, [present + equal], present + curve]), 0, low)


def category_evidence(known: Array, released: Array, all_released: Array, levels: int, comparable: bool) -> Evidence:
    """The evidence of a category in codes 0 to levels - 1, missing among them, from true pairs.

    P(b | a) = (n_ab + q(b | a)) / (n_a + 1), where q agrees as often as all pairs do and else follows the released file;
    with codes that cannot agree (not `comparable`) q is the released file's.
    """
    share = (np.bincount(all_released.astype(np.intp), minlength=levels) + 0.5) / (len(all_released) + 0.5 * levels)
    joint = np.bincount((known * levels + released).astype(np.intp), minlength=levels * levels).reshape(levels, levels)
    agree = ((known == released).sum() + 0.5) / (len(known) + 1) if comparable else 0.0
    prior = agree * np.eye(levels) + (1 - agree) * share
    given = (joint + prior) / (joint.sum(axis=1, keepdims=True) + 1)
    return _shifted(CATEGORY, np.log(given / share).ravel(), levels, 1.0)


def _shifted(kind: int, log_ratio: Array, width: int, low: float) -> Evidence:
    return Evidence(kind, log_ratio.max() - log_ratio, width, low)


def _log_ratio(true: float, of: float, random: float) -> float:
    """log of the share of true pairs in a state over that of random pairs; a state that random pairs never have: 0."""
    return 0.0 if random <= 0 else math.log((true + random) / (of + 1)) - math.log(random)


def _powers(octaves: Array) -> Array:
    """The inverse of `_octaves`."""
    whole = np.floor(octaves)
    return np.ldexp(1.0 + (octaves - whole), whole.astype(np.int64))


def _share_equal(ours: Array, theirs: Array) -> float:
    """The share of random pairs whose values are equal; theirs are sorted."""
    if len(ours) == 0 or len(theirs) == 0:
        return 0.0
    values, count = np.unique(ours, return_counts=True)
    met = np.searchsorted(theirs, values, "right") - np.searchsorted(theirs, values, "left")
    return float((count / len(ours)) @ (met / len(theirs)))


def _within(ours: Array, theirs: Array, reach: Array) -> Array:
    """The share of random pairs at most `reach` apart, from evenly spaced known values; theirs are sorted."""
    ours = np.sort(ours)
    some = ours[np.linspace(0, len(ours) - 1, min(len(ours), SAMPLE)).astype(np.int64)][:, np.newaxis]
    with np.errstate(over="ignore"):
        found = np.searchsorted(theirs, some + reach, "right") - np.searchsorted(theirs, some - reach, "left")
    share: Array = found.mean(axis=0) / len(theirs)
    return share


# ---- all pairs ------------------------------------------------------------------------------------------------
def block_costs(evidence: list[Evidence], known: Array, released: Array, rows: Array | slice) -> Array:
    """The costs of these known records (rows) against every released one (columns)."""
    chosen = known[rows]
    total = np.zeros((len(chosen), len(released)))
    for f, field in enumerate(evidence):
        a, b = np.ascontiguousarray(chosen[:, f]), np.ascontiguousarray(released[:, f])
        _add_costs(a, b, field.kind, field.width, field.low, field.table, total)
    return total


@jit
def _add_costs(a: Array, b: Array, kind: int, width: int, low: float, table: Array, total: Array) -> None:
    for i in range(len(a)):
        for j in range(len(b)):
            total[i, j] += _cost(a[i], b[j], kind, width, low, table)


@jit
def _cost(a: float, b: float, kind: int, width: int, low: float, table: Array) -> float:
    """The cost of two values; what `Evidence.__call__` says in plain."""
    if kind == CATEGORY:
        return float(table[int(a) * width + int(b)])
    if math.isnan(a) or math.isnan(b):
        return float(table[2] if not math.isnan(a) else table[0] if math.isnan(b) else table[1])
    if a == b:
        return float(table[3])
    cells = len(table) - HEAD
    mantissa, exponent = math.frexp(abs(b - a) / low)
    place = min(max((exponent - 2.0 + 2.0 * mantissa) * STEPS, 0.0), cells - 1.0)
    below = min(int(place), cells - 2)
    here = table[HEAD + below]
    return float(here + (table[HEAD + below + 1] - here) * (place - below))


def outrun(
    evidence: list[Evidence], known: Array, released: Array, truth: Array, targets: Array, threads: int | None = None
) -> tuple[Array, Array]:
    """For each target, a place of the released file: whether some known record fits it better than its true one does, and,
    where none does, how many fit as well (the true one among them). truth: place of the true known record; -1: none, and
    then it counts as outrun.

    Columns are looked at one after the other, those first in which random pairs cost most, and a known record is left as
    soon as it costs more than the true one; a target is left as soon as it is outrun.
    """
    order = np.argsort([-_mean_cost(f, known[:, k], released[:, k]) for k, f in enumerate(evidence)], kind="stable")
    fields = [evidence[f] for f in order]
    a, b = np.ascontiguousarray(known[:, order].T), np.ascontiguousarray(released[:, order])
    kind = np.array([field.kind for field in fields])
    width = np.array([field.width for field in fields])
    low = np.array([field.low for field in fields])
    start = np.concatenate([[0], np.cumsum([len(field.table) for field in fields])])
    tables = np.concatenate([field.table for field in fields])
    beaten, ties = np.zeros(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)
    threads = own_threads() if threads is None else threads
    parts = np.array_split(np.arange(len(targets)), max(1, 4 * threads if threads > 1 else 1))

    def run(part: Array) -> None:
        here, count = np.zeros(len(part), dtype=np.bool_), np.zeros(len(part), dtype=np.int64)
        _outrun(a, b, kind, width, low, start, tables, truth[targets[part]], targets[part], here, count)
        beaten[part], ties[part] = here, count

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(run, [part for part in parts if len(part)]):
            pass
    return beaten, ties


def _mean_cost(field: Evidence, known: Array, released: Array) -> float:
    """Of random pairs: each of some released values against a known one elsewhere in the file."""
    some = np.linspace(0, len(released) - 1, min(len(released), SAMPLE)).astype(np.int64)
    others = (some * 7919 + 1) % len(known)
    return float(field(known[others], released[some]).mean())


@jit
def _outrun(
    a: Array, b: Array, kind: Array, width: Array, low: Array, start: Array, tables: Array, truth: Array,
    targets: Array, beaten: Array, ties: Array,
) -> None:  # fmt: skip
    """a: (field, known record); b: (released record, field)."""
    fields, n = a.shape
    left, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    own = np.zeros(len(targets))
    for t in range(len(targets)):
        if truth[t] < 0:
            beaten[t] = True
            continue
        left[0], total[0] = truth[t], 0.0
        for f in range(fields):
            table = tables[start[f] : start[f + 1]]
            _narrow(a[f], b[targets[t], f], kind[f], width[f], low[f], table, left, total, 1, np.inf)
        own[t] = total[0]
    for first in range(0, n, BLOCK):
        for t in range(len(targets)):
            if beaten[t]:
                continue
            slack = TIE * own[t] + TINY
            count = min(BLOCK, n - first)
            for k in range(count):
                left[k], total[k] = first + k, 0.0
            for f in range(fields):
                table = tables[start[f] : start[f + 1]]
                count = _narrow(
                    a[f], b[targets[t], f], kind[f], width[f], low[f], table, left, total, count, own[t] + slack
                )
                if count == 0:
                    break
            for k in range(count):
                if total[k] < own[t] - slack:
                    beaten[t] = True
            ties[t] += count


@jit
def _narrow(
    a: Array, b: float, kind: int, width: int, low: float, table: Array, left: Array, total: Array, count: int,
    limit: float,
) -> int:  # fmt: skip
    """Add one field's cost to the known records that are left, and keep those within the limit; returns how many."""
    kept = 0
    if kind == CATEGORY:
        code = np.int64(b)
        for k in range(count):
            cost = total[k] + table[np.int64(a[left[k]]) * width + code]
            left[kept], total[kept] = left[k], cost
            kept += cost <= limit
        return kept
    for k in range(count):
        cost = total[k] + _cost(a[left[k]], b, kind, width, low, table)
        left[kept], total[kept] = left[k], cost
        kept += cost <= limit
    return kept
