"""Local suppression: choose the values to blank so that every cell satisfies a rule.

A cell is a distinct row of codes (MISSING where missing), with its number of records. The search is greedy: it tries to
blank sets of variables, smaller and less important sets first. A set is blanked in a cell if that makes the cell safe and
the values blanked so far do not. Counts of matching records are never overestimated, so a cell counted as safe is safe.
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
from sdcmap.kernels.tables.wildcards import find_slot, hash_outside, table_size

SUM_TOLERANCE = 1e-9  # rounding error allowed in counts: with a fractional alpha they depend on the order of summation
MAX_SETS_TRIED = 2_000  # sets of variables; beyond that only the cheapest set of each size is tried, to bound the time


@dataclass(frozen=True)
class Rule:
    """When a cell is safe: at least k records match it, or, if `risk` is set, its individual risk is at most `risk`."""

    k: float
    risk: float = -1.0
    alpha: float = 1.0  # how much a record counts that is missing where the cell has a value (sdcMicro's alpha)

    def find_safe(self, sums: Array) -> Array:
        """Return which cells are safe, given the number and the weight of the records that match each."""
        return _find_safe(sums, self.k, self.risk)


@inner_jit
def _is_safe(f: float, total: float, k: float, risk: float) -> bool:
    return f >= k - SUM_TOLERANCE if risk < 0 else individual_risk(f, total) <= risk + SUM_TOLERANCE


@jit
def _find_safe(sums: Array, k: float, risk: float) -> Array:
    safe = np.empty(len(sums), dtype=np.bool_)
    for i in range(len(sums)):
        safe[i] = _is_safe(sums[i, 0], sums[i, 1], k, risk)
    return safe


def sets_to_try(cheapest_first: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield sets of variables, smaller sets first, then cheaper ones."""
    tried = 0
    for size in range(1, len(cheapest_first) + 1):
        tried += math.comb(len(cheapest_first), size)
        if tried <= MAX_SETS_TRIED:
            yield from combinations(cheapest_first, size)
        else:
            yield tuple(cheapest_first[:size])


def blank_cells(codes: Array, mask: Array) -> Array:
    """Return the cells with the variables of `mask` (bit j: variable j) set to missing."""
    bits = mask[:, np.newaxis] >> np.arange(codes.shape[1]) & 1
    return np.where(bits > 0, wildcards.MISSING, codes)


def index_cells(codes: Array) -> tuple[Array, Array]:
    """Return the first row of each distinct cell, and the number of each row's distinct cell."""
    shape = [int(column.max()) + 2 for column in codes.T]
    if math.prod(shape) > LARGEST_KEY:
        _, first, cell = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    else:
        key = (codes.astype(np.int64) + 1) @ np.array(strides_of(shape))
        _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return first, cell.ravel()


def merge_equal_cells(codes: Array, sums: Array) -> tuple[Array, Array, Array]:
    """Return the distinct cells, their sums, and the number of each row's distinct cell."""
    first, cell = index_cells(codes)
    return codes[first], np.column_stack([np.bincount(cell, column) for column in sums.T]), cell


def matching_sums(codes: Array, sums: Array, rule: Rule) -> Array:
    """Return the number and the weight of the records that match each cell."""
    distinct, merged, cell = merge_equal_cells(codes, sums)
    return np.asarray(wildcards.wildcard_sums(distinct, merged, rule.alpha)[cell])


def suppress(codes: Array, sums: Array, cheapest_first: Sequence[int], rule: Rule) -> tuple[Array, Array]:
    """Choose the variables to blank in each cell, if a missing value matches every value.

    Return them as bits (bit j: variable j), and which cells are then safe.

    sums : number and weight of the records in each cell. cheapest_first : the variables that may be blanked.
    """
    mask = np.zeros(len(codes), dtype=np.int64)
    original = wildcards.patterns_of(codes)
    every = sum(1 << j for j in cheapest_first)
    narrow = np.ascontiguousarray(codes, dtype=np.int32)
    marks = wildcards.value_hashes(narrow)
    while True:
        # Count the matches exactly. Within a round, `_blank` only updates lower bounds of them, which is faster.
        matched = matching_sums(blank_cells(codes, mask), sums, rule)
        safe = rule.find_safe(matched)
        # Stop when every unsafe cell is blanked as far as allowed.
        if len(unsafe := np.flatnonzero(~safe & (every & ~(mask | original) != 0))) == 0:
            return mask, safe
        # Small sets first, so that a cell loses as few and as unimportant values as possible.
        for variables in sets_to_try(cheapest_first):
            unsafe = unsafe[~safe[unsafe]]
            if len(unsafe) == 0:
                break
            _try_set(narrow, marks, sums, original, mask, variables, unsafe, matched, safe, rule)
        # No set helped: blank everything in these cells. They may protect others, so the next round counts again.
        mask[unsafe[~safe[unsafe]]] |= every


def _try_set(
    codes: Array,
    marks: Array,
    sums: Array,
    original: Array,
    mask: Array,
    variables: tuple[int, ...],
    unsafe: Array,
    matched: Array,
    safe: Array,
    rule: Rule,
) -> None:
    """Blank `variables` in those of the cells `unsafe` that become safe by it. Updates mask, matched and safe."""
    bits = sum(1 << j for j in variables)
    pattern = original[unsafe] | mask[unsafe]
    # Cells with different missing variables compare different columns, so each pattern has its own hash table.
    for missing in np.unique(pattern).tolist():
        if missing & bits:  # part of the set is missing already, and the smaller set was tried before
            continue
        group = unsafe[pattern == missing]
        # Small cells first: once blanked they match the larger cells too, which may then keep their values.
        group = group[np.argsort(sums[group, 0], kind="stable")]
        limits = rule.k, rule.risk, rule.alpha
        _blank(codes, marks, sums, original, mask, bits, missing | bits, group, matched, safe, *limits)


@jit
def _blank(
    codes: Array,
    marks: Array,
    sums: Array,
    original: Array,
    mask: Array,
    bits: int,
    hidden: int,
    group: Array,
    matched: Array,
    safe: Array,
    k: float,
    risk: float,
    alpha: float,
) -> None:
    """Blank `bits` in the cells of `group` that become safe by it; `hidden` are all variables missing afterward."""
    size = table_size(len(group))
    table = np.full(size, -1, dtype=np.int64)
    slot_marks = np.zeros(size, dtype=np.uint64)
    inside, added = np.zeros((size, 2)), np.zeros((size, 2))
    # Put the cells of the group into a hash table by their values outside the hidden variables.
    for row in group:
        mark = hash_outside(marks, row, hidden)
        slot = find_slot(table, slot_marks, codes, hidden, row, mark)
        table[slot], slot_marks[slot] = row, mark
    # Sum all cells of the file into these slots: the records that would match a cell of the group after blanking.
    for row in range(len(codes)):
        if original[row] & ~hidden:  # missing outside the hidden variables: leaving it out only undercounts
            continue
        slot = find_slot(table, slot_marks, codes, hidden, row, hash_outside(marks, row, hidden))
        if table[slot] >= 0:
            share = alpha if mask[row] & ~hidden else 1.0
            for c in range(2):
                inside[slot, c] += share * sums[row, c]
    for row in group:
        slot = find_slot(table, slot_marks, codes, hidden, row, hash_outside(marks, row, hidden))
        # A cell of this slot that was just blanked matches this one as well, which may already make it safe.
        for c in range(2):
            matched[row, c] += added[slot, c]
        safe[row] = _is_safe(matched[row, 0], matched[row, 1], k, risk)
        # Blank only if needed and sufficient; otherwise a larger set is tried later.
        if not safe[row] and _is_safe(inside[slot, 0], inside[slot, 1], k, risk):
            safe[row] = True
            mask[row] |= bits
            for c in range(2):
                added[slot, c] += alpha * sums[row, c]


def suppress_to_cells(codes: Array, count: Array, cheapest_first: Sequence[int], k: int) -> tuple[Array, Array]:
    """Choose the variables to blank in each cell, if missing is a category of its own.

    Each released cell, with its blanks, then needs k records. Return bits and safe cells as `suppress` does.
    """
    mask = np.zeros(len(codes), dtype=np.int64)
    safe = count >= k
    for variables in sets_to_try(cheapest_first):
        if len(unsafe := np.flatnonzero(~safe)) == 0:
            return mask, safe
        bits = sum(1 << j for j in variables)
        # Blank the set in all unsafe cells at once, and accept those that then share a cell with k records.
        cell = index_cells(blank_cells(codes, np.where(safe, mask, bits)))[1]
        enough = np.bincount(cell, count) >= k
        joins = unsafe[enough[cell[unsafe]]]
        mask[joins] |= bits
        safe[joins] = True
    return _join_safe_cells(codes, count, mask, safe, sum(1 << j for j in cheapest_first), k)


def _join_safe_cells(codes: Array, count: Array, mask: Array, safe: Array, every: int, k: int) -> tuple[Array, Array]:
    """Blank the remaining unsafe cells completely, with as few and as small safe cells as are needed for k records."""
    # Cells that are equal once everything is blanked can be merged.
    mergeable = merge_equal_cells(blank_cells(codes, np.full(len(codes), every)), np.column_stack([count]))[2]
    for number in np.unique(mergeable[~safe]).tolist():
        rows = np.flatnonzero(mergeable == number)
        if count[rows].sum() < k:  # even all of them together are too few
            continue
        # A safe cell can only be blanked as a whole: a part of it left behind could fall below k.
        _, sums, cell = merge_equal_cells(blank_cells(codes[rows], mask[rows]), np.column_stack([count[rows]]))
        is_unsafe = np.bincount(cell[~safe[rows]], minlength=len(sums)) > 0
        # All unsafe cells first, then safe cells from the smallest on, until k records are reached.
        order = np.lexsort((sums[:, 0], ~is_unsafe))
        needed = max(int(is_unsafe.sum()), int(np.searchsorted(np.cumsum(sums[order, 0]), k)) + 1)
        joins = rows[np.isin(cell, order[:needed])]
        mask[joins] |= every
        safe[joins] = True
    return mask, safe
