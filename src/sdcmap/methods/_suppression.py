"""Local suppression: which values of which cells to blank until every cell meets a rule.

A cell is a row of codes (MISSING where missing) with its number of records. Sets of variables are tried from the cheapest
to the dearest: where blanking such a set would make a cell meet the rule, it is blanked, unless what was blanked before
already protects it. The counts used are never above the true ones, so the rule holds where they say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables import wildcards
from sdcmap.kernels.tables.coding import LARGEST_KEY, strides_of
from sdcmap.kernels.tables.frequency_risks import individual_risk
from sdcmap.kernels.tables.wildcards import mark_outside, slot_of, table_size

SUM_TOLERANCE = 1e-9  # of sums with a fractional alpha, in another order
MAX_SETS_TRIED = 2_000  # beyond so many sets of variables, only the cheapest of each size is tried


@dataclass(frozen=True)
class Rule:
    """A cell is safe when at least k records match it; with `risk`, when its individual risk is at most that."""

    k: float
    risk: float = -1.0
    alpha: float = 1.0  # what a record counts for that is missing where the looking one has a value

    def safe(self, sums: Array) -> Array:
        """Which cells are safe, from their matching records and the weights of these."""
        return _safe(sums, self.k, self.risk)


@inner_jit
def _is_safe(f: float, total: float, k: float, risk: float) -> bool:
    return f >= k - SUM_TOLERANCE if risk < 0 else individual_risk(f, total) <= risk + SUM_TOLERANCE


@jit
def _safe(sums: Array, k: float, risk: float) -> Array:
    safe = np.empty(len(sums), dtype=np.bool_)
    for i in range(len(sums)):
        safe[i] = _is_safe(sums[i, 0], sums[i, 1], k, risk)
    return safe


def sets_to_try(cheapest_first: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Sets of variables, the smaller first, then the cheaper."""
    tried = 0
    for size in range(1, len(cheapest_first) + 1):
        tried += math.comb(len(cheapest_first), size)
        if tried <= MAX_SETS_TRIED:
            yield from combinations(cheapest_first, size)
        else:
            yield tuple(cheapest_first[:size])


def blank_cells(codes: Array, mask: Array) -> Array:
    """The cells with the variables of `mask` (bit j: variable j) missing."""
    bits = mask[:, np.newaxis] >> np.arange(codes.shape[1]) & 1
    return np.where(bits > 0, wildcards.MISSING, codes)


def index_cells(codes: Array) -> tuple[Array, Array]:
    """A row of each distinct cell, and which distinct cell each cell is."""
    shape = [int(column.max()) + 2 for column in codes.T]
    if math.prod(shape) > LARGEST_KEY:
        _, first, cell = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    else:
        key = (codes.astype(np.int64) + 1) @ np.array(strides_of(shape))
        _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return first, cell.ravel()


def merge_equal_cells(codes: Array, sums: Array) -> tuple[Array, Array, Array]:
    """The distinct ones of these cells, their sums, and which of them each cell is."""
    first, cell = index_cells(codes)
    return codes[first], np.column_stack([np.bincount(cell, column) for column in sums.T]), cell


def matching_sums(codes: Array, sums: Array, rule: Rule) -> Array:
    """Records and weights that match each cell."""
    distinct, merged, cell = merge_equal_cells(codes, sums)
    return np.asarray(wildcards.wildcard_sums(distinct, merged, rule.alpha)[cell])


def suppress(codes: Array, sums: Array, cheapest_first: Sequence[int], rule: Rule) -> tuple[Array, Array]:
    """What to blank in each cell (bit j: variable j), missing values matching everything; and who is safe then.

    sums : records and weights of each cell. cheapest_first : the variables that may be blanked.
    """
    mask = np.zeros(len(codes), dtype=np.int64)
    original = wildcards.patterns_of(codes)
    every = sum(1 << j for j in cheapest_first)
    narrow = np.ascontiguousarray(codes, dtype=np.int32)
    marks = wildcards.marks_of(narrow)
    while True:
        matched = matching_sums(blank_cells(codes, mask), sums, rule)
        safe = rule.safe(matched)
        if len(unsafe := np.flatnonzero(~safe & (every & ~(mask | original) != 0))) == 0:
            return mask, safe
        for variables in sets_to_try(cheapest_first):
            unsafe = unsafe[~safe[unsafe]]
            if len(unsafe) == 0:
                break
            _try_set(narrow, marks, sums, original, mask, variables, unsafe, matched, safe, rule)
        mask[unsafe[~safe[unsafe]]] |= every


def _try_set(
    codes: Array, marks: Array, sums: Array, original: Array, mask: Array, variables: tuple[int, ...], unsafe: Array,
    matched: Array, safe: Array, rule: Rule,
) -> None:  # fmt: skip
    """Blank `variables` where that makes one of the cells `unsafe` safe; cells with other patterns are looked at apart."""
    bits = sum(1 << j for j in variables)
    pattern = original[unsafe] | mask[unsafe]
    for pattern_here in np.unique(pattern).tolist():
        if pattern_here & bits:  # a smaller set does the same
            continue
        group = unsafe[pattern == pattern_here]
        group = group[np.argsort(sums[group, 0], kind="stable")]
        limits = rule.k, rule.risk, rule.alpha
        _blank(codes, marks, sums, original, mask, bits, pattern_here | bits, group, matched, safe, *limits)


@jit
def _blank(
    codes: Array, marks: Array, sums: Array, original: Array, mask: Array, bits: int, hidden: int, group: Array,
    matched: Array, safe: Array, k: float, risk: float, alpha: float,
) -> None:  # fmt: skip
    size = table_size(len(group))
    table = np.full(size, -1, dtype=np.int64)
    slot_marks = np.zeros(size, dtype=np.uint64)
    inside, added = np.zeros((size, 2)), np.zeros((size, 2))
    for row in group:
        mark = mark_outside(marks, row, hidden)
        slot = slot_of(table, slot_marks, codes, hidden, row, mark)
        table[slot], slot_marks[slot] = row, mark
    for row in range(len(codes)):
        if original[row] & ~hidden:  # unknown outside the hidden variables: it is not counted
            continue
        slot = slot_of(table, slot_marks, codes, hidden, row, mark_outside(marks, row, hidden))
        if table[slot] >= 0:
            share = alpha if mask[row] & ~hidden else 1.0
            for c in range(2):
                inside[slot, c] += share * sums[row, c]
    for row in group:
        slot = slot_of(table, slot_marks, codes, hidden, row, mark_outside(marks, row, hidden))
        for c in range(2):
            matched[row, c] += added[slot, c]
        safe[row] = _is_safe(matched[row, 0], matched[row, 1], k, risk)
        if not safe[row] and _is_safe(inside[slot, 0], inside[slot, 1], k, risk):
            safe[row] = True
            mask[row] |= bits
            for c in range(2):
                added[slot, c] += alpha * sums[row, c]


def suppress_to_cells(codes: Array, count: Array, cheapest_first: Sequence[int], k: int) -> tuple[Array, Array]:
    """The same where missing is a category of its own: released cells need k records, those that share their blanks."""
    mask = np.zeros(len(codes), dtype=np.int64)
    safe = count >= k
    for variables in sets_to_try(cheapest_first):
        if len(unsafe := np.flatnonzero(~safe)) == 0:
            return mask, safe
        bits = sum(1 << j for j in variables)
        cell = index_cells(blank_cells(codes, np.where(safe, mask, bits)))[1]
        enough = np.bincount(cell, count) >= k
        joins = unsafe[enough[cell[unsafe]]]
        mask[joins] |= bits
        safe[joins] = True
    return _join_safe_cells(codes, count, mask, safe, sum(1 << j for j in cheapest_first), k)


def _join_safe_cells(codes: Array, count: Array, mask: Array, safe: Array, every: int, k: int) -> tuple[Array, Array]:
    """The cells that are left, blanked as far as may be, together with the smallest safe ones that make them k."""
    cell = merge_equal_cells(blank_cells(codes, np.full(len(codes), every)), np.column_stack([count]))[2]
    for home in np.unique(cell[~safe]).tolist():
        rows = np.flatnonzero(cell == home)
        if count[rows].sum() < k:
            continue
        _, sums, cell = merge_equal_cells(blank_cells(codes[rows], mask[rows]), np.column_stack([count[rows]]))
        alone = np.bincount(cell[~safe[rows]], minlength=len(sums)) > 0
        order = np.lexsort((sums[:, 0], ~alone))
        needed = max(int(alone.sum()), int(np.searchsorted(np.cumsum(sums[order, 0]), k)) + 1)
        joins = rows[np.isin(cell, order[:needed])]
        mask[joins] |= every
        safe[joins] = True
    return mask, safe
