"""Count the records that are unique on every set of up to three columns.

A record that is unique on two columns is unique on these and any third, so only the other records are counted again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

MAX_DENSE_CELLS = 1 << 20  # tables with more cells, and more than 4 per record, are counted in a hash table
FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table

Uniques = tuple[tuple[int, ...], int]  # a set of columns, and the number of records unique on it


def most_identifying(codes: Sequence[Array], most: int) -> list[Uniques]:
    """Return the `most` sets of one, of two and of three columns on which the most records are unique, exactly.

    A column is an array of codes 0, 1, ... At most as many records are unique as a table has cells, so a set whose table is
    smaller than the best counts so far need not be counted.

    >>> most_identifying([np.array([0, 0, 1]), np.array([0, 1, 1])], 1)
    [((0,), 1), ((0, 1), 3)]
    """
    columns = [np.ascontiguousarray(code, dtype=np.int32) for code in codes]
    sizes = [int(code.max()) + 1 for code in columns]
    order = sorted(range(len(columns)), key=lambda j: -sizes[j])
    all_rows = np.arange(len(columns[0]) if columns else 0, dtype=np.int32)
    singles, pairs, triples = list[Uniques](), list[Uniques](), list[Uniques]()
    for a, first in enumerate(order):
        slots, table = _slots(np.zeros_like(all_rows), 1, all_rows, columns[first], sizes[first])
        unique, rows, group, groups = _repeated_rows(slots, table, all_rows)
        singles.append(((first,), unique))
        for b, second in enumerate(order[a + 1 :], a + 1):
            possible = groups * sizes[second]  # cells of the pair
            beyond = possible * (sizes[order[b + 1]] if b + 1 < len(order) else 0)
            in_triples = _bound(unique, rows, beyond) > _least(triples, most)
            # A pair is counted if it can be among the best pairs, or if a triple with it can be among the best triples.
            if _bound(unique, rows, possible) <= _least(pairs, most) and not in_triples:
                continue
            slots, table = _slots(group, groups, rows, columns[second], sizes[second])
            unique_on_pair = unique + int(_count_ones(slots, table))
            pairs = _best([*pairs, (tuple(sorted((first, second))), unique_on_pair)], most)
            if not in_triples:
                continue
            _, rest, own, count = _repeated_rows(slots, table, rows)
            for third in order[b + 1 :]:
                if _bound(unique_on_pair, rest, count * sizes[third]) > _least(triples, most):
                    more = _count_ones(*_slots(own, count, rest, columns[third], sizes[third]))
                    value = unique_on_pair + int(more)
                    triples = _best([*triples, (tuple(sorted((first, second, third))), value)], most)
    return [*_best(singles, most), *pairs, *triples]


def _bound(unique: int, rows: Array, cells: int) -> int:
    """Return how many records can be unique at most when those of `rows` are divided into so many cells."""
    return unique + min(len(rows), cells)


def count_unique(codes: Sequence[Array]) -> int:
    """Count the records that are unique on all of these columns together.

    >>> count_unique([np.array([0, 0, 1]), np.array([0, 1, 1])])
    3
    """
    rows = np.arange(len(codes[0]) if codes else 0, dtype=np.int32)
    group, groups = np.zeros_like(rows), 1
    for code in codes:
        column = np.ascontiguousarray(code, dtype=np.int32)
        slots, table = _slots(group, groups, rows, column, int(column.max()) + 1)
        # Only rows that still share their combination can become unique on a further column.
        _, rows, group, groups = _repeated_rows(slots, table, rows)
        if not len(rows):
            break
    return len(codes[0]) - len(rows) if codes else 0


def count_unique_on_pairs(codes: Sequence[Array], known: Array | None = None) -> Array:
    """Count the records that are unique on each pair of columns, as a symmetric matrix; the diagonal is for one column.

    known : the same matrix with -1 for entries that are not known yet; only those are counted.

    >>> count_unique_on_pairs([np.array([0, 0, 1]), np.array([0, 1, 1])]).tolist()
    [[1, 3], [3, 1]]
    """
    columns = [np.ascontiguousarray(code, dtype=np.int32) for code in codes]
    unique = np.full((len(columns), len(columns)), -1, dtype=np.int64) if known is None else known.copy()
    all_rows = np.arange(len(columns[0]) if columns else 0, dtype=np.int32)
    for a, first in enumerate(columns):
        others = np.flatnonzero(unique[a, : a + 1] < 0)
        if not len(others):
            continue
        slots, table = _slots(np.zeros_like(all_rows), 1, all_rows, first, int(first.max()) + 1)
        unique_on_first, rows, group, groups = _repeated_rows(slots, table, all_rows)
        for b in others:
            more = 0 if b == a else _count_ones(*_slots(group, groups, rows, columns[b], int(columns[b].max()) + 1))
            unique[a, b] = unique[b, a] = unique_on_first + int(more)
    return unique


def _best(counts: list[Uniques], most: int) -> list[Uniques]:
    return sorted(counts, key=lambda one: (-one[1], one[0]))[:most]


def _least(counts: list[Uniques], most: int) -> int:
    """Return the count that a set must exceed to be among the best."""
    return -1 if len(counts) < most else counts[-1][1]


def _slots(group: Array, groups: int, rows: Array, code: Array, size: int) -> tuple[Array, Array]:
    """Return the slot of each record's cell in a table, and how many records each slot has (2 for two or more)."""
    if groups * size <= max(MAX_DENSE_CELLS, 4 * len(rows)):
        return _count_dense(group, rows, code, size, groups)
    return _count_in_hash_table(group, rows, code, size, max(4, int(2 * len(rows)).bit_length()))


@jit
def _count_dense(group: Array, rows: Array, code: Array, size: int, groups: int) -> tuple[Array, Array]:
    table = np.zeros(groups * size, dtype=np.uint8)
    slots = np.empty(len(rows), dtype=np.int32)
    for i in range(len(rows)):
        slot = group[i] * size + code[rows[i]]
        slots[i] = slot
        table[slot] = min(table[slot] + 1, 2)
    return slots, table


@jit
def _count_in_hash_table(group: Array, rows: Array, code: Array, size: int, bits: int) -> tuple[Array, Array]:
    table = np.zeros(1 << bits, dtype=np.uint8)
    slot_key = np.empty(1 << bits, dtype=np.int64)
    slots = np.empty(len(rows), dtype=np.int32)
    last = (1 << bits) - 1
    for i in range(len(rows)):
        key = np.int64(group[i]) * size + code[rows[i]]
        slot = np.int64((np.uint64(key) * FIBONACCI) >> np.uint64(64 - bits))
        while table[slot] and slot_key[slot] != key:
            slot = (slot + 1) & last
        slot_key[slot] = key
        slots[i] = slot
        table[slot] = min(table[slot] + 1, 2)
    return slots, table


@jit
def _count_ones(slots: Array, table: Array) -> int:
    unique = 0
    for i in range(len(slots)):
        unique += table[slots[i]] == 1
    return unique


@jit
def _repeated_rows(slots: Array, table: Array, rows: Array) -> tuple[int, Array, Array, int]:
    """Return how many rows are unique; the other rows, their renumbered groups, and the number of groups."""
    number = np.full(len(table), -1, dtype=np.int32)
    others, group = np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.int32)
    count, groups = 0, 0
    for i in range(len(rows)):
        slot = slots[i]
        if table[slot] == 1:
            continue
        if number[slot] < 0:
            number[slot] = groups
            groups += 1
        others[count], group[count] = rows[i], number[slot]
        count += 1
    return len(rows) - count, others[:count].copy(), group[:count].copy(), groups
