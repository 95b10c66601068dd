"""Count the agreement patterns of all pairs of records: which fields agree, disagree or are missing.

Values become ranks among the distinct released values, so that a field agrees if the released rank lies in a range of
the known record. The kernels compare whole numbers in tiles of released records, and never keep the pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sdcmap.core import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit, own_threads, run_parts

MAX_FIELDS = 39  # the number of a pattern fits into 64 bits up to 3^39 patterns
MAX_DENSE_PATTERNS = 1 << 16  # possible patterns; up to here they are counted in an array, beyond in a hash table
PARTS_PER_THREAD = 4  # parts of the known records for each thread, so that threads finish together
TILE_RECORDS = 1024  # released records in a tile, whose ranks stay in the cache
PARALLEL_COUNTERS = 4  # counters of each pattern; adding to one counter twice in a row would wait for the first sum
FIRST_SLOTS = 1 << 12  # slots of a hash table to begin with; it doubles when half of them are taken
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads neighboring numbers (Knuth)


class Patterns(NamedTuple):
    """The agreement patterns that occur, and the number of pairs with each."""

    field: Array  # patterns x fields: 1 agree, 0 disagree, -1 missing
    pairs: Array


class RankedFields(NamedTuple):
    """Both files as ranks: field f agrees if rank - low <= span, in unsigned numbers."""

    ranks: Array  # (field, released record)
    missing: Array  # field: the rank that stands for a missing released value
    low: Array  # (known record, field): the first rank that agrees; above all ranks where none does
    span: Array  # (known record, field): the number of ranks after it that agree too
    digit: Array  # (known record, field): what a field adds to the number of a pattern; 0 where the value is missing
    base: int  # 2 if no value is missing, else 3: a field that is present in both records adds a second digit


def count_patterns(known: Array, released: Array, reach: Array) -> Patterns:
    """Count the patterns of all pairs of these records (rows) in their fields (columns).

    reach : (known record, field): the largest difference with which the field agrees
    """
    if known.shape[1] > MAX_FIELDS:
        raise Undefined(f'weights "em" and "known" allow at most {MAX_FIELDS} variables; there are {known.shape[1]}.')
    files = rank_fields(known, released, reach)
    number, pairs = count_pattern_numbers(files)
    digits = number[:, np.newaxis] // files.base ** np.arange(known.shape[1], dtype=np.int64) % files.base
    return Patterns((digits - (files.base - 2)).astype(np.int8), pairs)


def rank_fields(known: Array, released: Array, reach: Array) -> RankedFields:
    """Return both files as ranks among the distinct released values of each field."""
    n, fields = known.shape
    columns = [np.unique(column[~np.isnan(column)]) for column in released.T]
    missing = np.array([len(values) for values in columns], dtype=np.int64)
    is_complete = not (np.isnan(known).any() or np.isnan(released).any())
    base = 2 if is_complete else 3
    rank_type = np.uint16 if missing.max(initial=0) < np.iinfo(np.uint16).max else np.uint32
    digit_type = np.uint16 if base**fields <= MAX_DENSE_PATTERNS else np.int64
    ranks = np.empty((fields, len(released)), dtype=rank_type)
    low, span = np.empty((n, fields), dtype=rank_type), np.empty((n, fields), dtype=rank_type)
    for f, values in enumerate(columns):
        # Missing values are greater than all others for `searchsorted`, so their rank is the number of values.
        ranks[f] = np.searchsorted(values, released[:, f])
        _find_agreeing_ranks(values, known[:, f], reach[:, f], low[:, f], span[:, f])
    digit = np.where(np.isnan(known), 0, base ** np.arange(fields, dtype=np.int64)).astype(digit_type)
    return RankedFields(ranks, missing.astype(rank_type), low, span, digit, base)


@jit
def _find_agreeing_ranks(values: Array, known: Array, reach: Array, low: Array, span: Array) -> None:
    """Write the range of ranks that agree with each known value: |known - value| <= reach, as floats compare it."""
    for i in range(len(known)):
        low[i], span[i] = len(values) + 1, 0
        if np.isnan(known[i]):
            continue
        middle = np.searchsorted(values, known[i])
        # Differences never fall with the distance, so bisection finds both ends exactly.
        first, end = 0, middle
        while first < end:
            half = (first + end) // 2
            if abs(known[i] - values[half]) <= reach[i]:
                end = half
            else:
                first = half + 1
        last, end = middle, len(values)
        while last < end:
            half = (last + end) // 2
            if abs(known[i] - values[half]) <= reach[i]:
                last = half + 1
            else:
                end = half
        if first < last:
            low[i], span[i] = first, last - first - 1


@on_device
def count_pattern_numbers(files: RankedFields, threads: int | None = None) -> tuple[Array, Array]:
    """Return the numbers of the patterns that occur, ascending, and the number of pairs with each.

    The digits of a number are the fields. In base 2: 1 agree, 0 disagree. In base 3: 2 agree, 1 disagree, 0 missing.
    """
    n, fields = files.low.shape
    patterns, threads = files.base**fields, threads or own_threads()
    step = max(1, -(-n // (PARTS_PER_THREAD * threads)))
    parts: list[tuple[Array, Array]] = []

    def run(start: int) -> None:
        rows = slice(start, start + step)
        sides = files.low[rows], files.span[rows], files.digit[rows]
        if patterns <= MAX_DENSE_PATTERNS:
            total = _count_in_table(files.ranks, files.missing, *sides, files.base == 2, patterns)
            number = np.flatnonzero(total)
            parts.append((number, total[number]))
        else:
            slots, total = _count_by_hash(files.ranks, files.missing, *sides, files.base == 2)
            is_taken = total > 0
            parts.append((slots[is_taken], total[is_taken]))

    run_parts(run, range(0, n, step), threads)
    # Whole numbers add up to the same in every order, so the order in which the tasks finish does not matter.
    number, index = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    pairs = np.zeros(len(number), dtype=np.int64)
    np.add.at(pairs, index, np.concatenate([part[1] for part in parts]))
    return number, pairs


@inner_jit
def _write_numbers(
    number: Array, ranks: Array, begin: int, missing: Array, low: Array, span: Array, digit: Array, complete: bool
) -> None:
    """Write the number of the pattern of one known record with each released record of the tile from `begin`."""
    number[:] = 0
    for f in range(len(ranks)):
        tile = ranks[f, begin : begin + len(number)]  # contiguous, so that the loop over it is vectorized
        _add_digits(number, tile, missing[f], low[f], span[f], digit[f], complete)


@inner_jit
def _add_digits(number: Array, ranks: Array, missing: int, low: int, span: int, digit: int, complete: bool) -> None:
    """Add the digit of one field of a known record to the pattern of each released record of a tile."""
    if complete:
        for k in range(len(number)):
            number[k] += digit if ranks.dtype.type(ranks[k] - low) <= span else 0
    else:
        for k in range(len(number)):
            present = digit if ranks[k] != missing else 0
            number[k] += present + (digit if ranks.dtype.type(ranks[k] - low) <= span else 0)


@jit
def _count_in_table(
    ranks: Array, missing: Array, low: Array, span: Array, digit: Array, complete: bool, patterns: int
) -> Array:
    """Return the number of pairs with each possible pattern."""
    m = ranks.shape[1]
    count = np.zeros((patterns, PARALLEL_COUNTERS), dtype=np.int64)
    number = np.empty(TILE_RECORDS, dtype=digit.dtype)
    for begin in range(0, m, TILE_RECORDS):
        end = min(m, begin + TILE_RECORDS)
        here = number[: end - begin]
        for i in range(len(low)):
            _write_numbers(here, ranks, begin, missing, low[i], span[i], digit[i], complete)
            for k in range(len(here)):
                count[here[k], k % PARALLEL_COUNTERS] += 1
    total: Array = count.sum(axis=1)
    return total


@jit
def _count_by_hash(
    ranks: Array, missing: Array, low: Array, span: Array, digit: Array, complete: bool
) -> tuple[Array, Array]:
    """Return the slots of a hash table with the patterns that occur, and the pairs in each slot (0: not taken)."""
    m = ranks.shape[1]
    slots, count, taken = np.empty(FIRST_SLOTS, dtype=np.int64), np.zeros(FIRST_SLOTS, dtype=np.int64), 0
    number = np.empty(TILE_RECORDS, dtype=np.int64)
    for begin in range(0, m, TILE_RECORDS):
        end = min(m, begin + TILE_RECORDS)
        here = number[: end - begin]
        for i in range(len(low)):
            _write_numbers(here, ranks, begin, missing, low[i], span[i], digit[i], complete)
            # A tile can take one slot for each of its records, so the table grows before it could become full.
            while 2 * (taken + len(here)) > len(slots):
                slots, count = _double_slots(slots, count)
            for k in range(len(here)):
                slot = _find_slot(slots, count, here[k])
                taken += count[slot] == 0
                slots[slot] = here[k]
                count[slot] += 1
    return slots, count


@inner_jit
def _find_slot(slots: Array, count: Array, number: int) -> Any:
    """Return the slot of a pattern, or the free slot where it belongs; the number of slots is a power of 2."""
    mask = np.uint64(len(slots) - 1)
    slot = ((np.uint64(number) * HASH_FACTOR) >> np.uint64(32)) & mask
    while count[slot] > 0 and slots[slot] != number:
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit
def _double_slots(slots: Array, count: Array) -> tuple[Array, Array]:
    """Return a hash table of twice the size with the same patterns."""
    more, counts = np.empty(2 * len(slots), dtype=np.int64), np.zeros(2 * len(slots), dtype=np.int64)
    for k in range(len(slots)):
        if count[k] > 0:
            slot = _find_slot(more, counts, slots[k])
            more[slot], counts[slot] = slots[k], count[k]
    return more, counts
