"""Records that are alone: how many, on every set of up to three columns.

A record alone on two columns is alone on every third with them, so only the others are looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

DENSE = 1 << 20  # tables of at most so many cells are counted in place, larger ones in a hash table
FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table


Told = tuple[tuple[int, ...], int]  # a set of columns, and the records alone on it


def most_identifying(codes: Sequence[Array], most: int) -> list[Told]:
    """Of the sets of one, of two and of three columns, the `most` each that leave the most records alone, exactly.

    A column is an array of codes 0, 1, ... No more records are alone than a table has cells, so that a set whose table is
    smaller than the best found need not be counted.

    >>> most_telling([np.array([0, 0, 1]), np.array([0, 1, 1])], 1)
    [((0,), 1), ((0, 1), 3)]
    """
    columns = [np.ascontiguousarray(code, dtype=np.int32) for code in codes]
    sizes = [int(code.max()) + 1 for code in columns]
    order = sorted(range(len(columns)), key=lambda j: -sizes[j])
    everyone = np.arange(len(columns[0]) if columns else 0, dtype=np.int32)
    singles, pairs, triples = list[Told](), list[Told](), list[Told]()
    for a, first in enumerate(order):
        slots, table = _slots(np.zeros_like(everyone), 1, everyone, columns[first], sizes[first])
        alone, rows, group, groups = _others(slots, table, everyone)
        singles.append(((first,), alone))
        for b, second in enumerate(order[a + 1 :], a + 1):
            possible = groups * sizes[second]  # cells: no more records can be alone
            beyond = possible * (sizes[order[b + 1]] if b + 1 < len(order) else 0)
            in_triples = _bound(alone, rows, beyond) > _least(triples, most)
            if _bound(alone, rows, possible) <= _least(pairs, most) and not in_triples:
                continue
            slots, table = _slots(group, groups, rows, columns[second], sizes[second])
            settled = alone + int(_ones(slots, table))
            pairs = _best([*pairs, (tuple(sorted((first, second))), settled)], most)
            if not in_triples:
                continue
            _, few, own, count = _others(slots, table, rows)
            for third in order[b + 1 :]:
                if _bound(settled, few, count * sizes[third]) > _least(triples, most):
                    value = settled + int(_ones(*_slots(own, count, few, columns[third], sizes[third])))
                    triples = _best([*triples, (tuple(sorted((first, second, third))), value)], most)
    return [*_best(singles, most), *pairs, *triples]


def _bound(alone: int, rows: Array, cells: int) -> int:
    """The most records that can be alone when those of `rows` are told apart into so many cells."""
    return alone + min(len(rows), cells)


def alone_on(codes: Sequence[Array]) -> int:
    """Records that are alone on all of these columns together; those found alone are not looked at again.

    >>> alone_on([np.array([0, 0, 1]), np.array([0, 1, 1])])
    3
    """
    rows = np.arange(len(codes[0]) if codes else 0, dtype=np.int32)
    group, groups = np.zeros_like(rows), 1
    for code in codes:
        column = np.ascontiguousarray(code, dtype=np.int32)
        slots, table = _slots(group, groups, rows, column, int(column.max()) + 1)
        _, rows, group, groups = _others(slots, table, rows)
        if not len(rows):
            break
    return len(codes[0]) - len(rows) if codes else 0


def alone_on_pairs(codes: Sequence[Array], known: Array | None = None) -> Array:
    """Records alone on each pair of columns, as a symmetric matrix; on the diagonal, on one column.

    known : the same matrix with -1 where it is not known yet; only those entries are counted.

    >>> alone_on_pairs([np.array([0, 0, 1]), np.array([0, 1, 1])]).tolist()
    [[1, 3], [3, 1]]
    """
    columns = [np.ascontiguousarray(code, dtype=np.int32) for code in codes]
    alone = np.full((len(columns), len(columns)), -1, dtype=np.int64) if known is None else known.copy()
    everyone = np.arange(len(columns[0]) if columns else 0, dtype=np.int32)
    for a, first in enumerate(columns):
        others = np.flatnonzero(alone[a, : a + 1] < 0)
        if not len(others):
            continue
        slots, table = _slots(np.zeros_like(everyone), 1, everyone, first, int(first.max()) + 1)
        settled, rows, group, groups = _others(slots, table, everyone)
        for b in others:
            more = 0 if b == a else _ones(*_slots(group, groups, rows, columns[b], int(columns[b].max()) + 1))
            alone[a, b] = alone[b, a] = settled + int(more)
    return alone


def _best(told: list[Told], most: int) -> list[Told]:
    return sorted(told, key=lambda one: (-one[1], one[0]))[:most]


def _least(told: list[Told], most: int) -> int:
    """What a set must exceed to be among the best."""
    return -1 if len(told) < most else told[-1][1]


def _slots(group: Array, groups: int, rows: Array, code: Array, size: int) -> tuple[Array, Array]:
    """The place of each record's cell in a table, and how many records each place has (2: two or more)."""
    if groups * size <= max(DENSE, 4 * len(rows)):
        return _dense(group, rows, code, size, groups)
    return _hashed(group, rows, code, size, max(4, int(2 * len(rows)).bit_length()))


@jit
def _dense(group: Array, rows: Array, code: Array, size: int, groups: int) -> tuple[Array, Array]:
    table = np.zeros(groups * size, dtype=np.uint8)
    slots = np.empty(len(rows), dtype=np.int32)
    for i in range(len(rows)):
        slot = group[i] * size + code[rows[i]]
        slots[i] = slot
        table[slot] = min(table[slot] + 1, 2)
    return slots, table


@jit
def _hashed(group: Array, rows: Array, code: Array, size: int, bits: int) -> tuple[Array, Array]:
    table = np.zeros(1 << bits, dtype=np.uint8)
    held = np.empty(1 << bits, dtype=np.int64)
    slots = np.empty(len(rows), dtype=np.int32)
    last = (1 << bits) - 1
    for i in range(len(rows)):
        key = np.int64(group[i]) * size + code[rows[i]]
        slot = np.int64((np.uint64(key) * FIBONACCI) >> np.uint64(64 - bits))
        while table[slot] and held[slot] != key:
            slot = (slot + 1) & last
        held[slot] = key
        slots[i] = slot
        table[slot] = min(table[slot] + 1, 2)
    return slots, table


@jit
def _ones(slots: Array, table: Array) -> int:
    alone = 0
    for i in range(len(slots)):
        alone += table[slots[i]] == 1
    return alone


@jit
def _others(slots: Array, table: Array, rows: Array) -> tuple[int, Array, Array, int]:
    """How many are alone; the rows that are not, their groups numbered anew, and how many groups there are."""
    number = np.full(len(table), -1, dtype=np.int32)
    kept, group = np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.int32)
    place, groups = 0, 0
    for i in range(len(rows)):
        slot = slots[i]
        if table[slot] == 1:
            continue
        if number[slot] < 0:
            number[slot] = groups
            groups += 1
        kept[place], group[place] = rows[i], number[slot]
        place += 1
    return len(rows) - place, kept[:place].copy(), group[:place].copy(), groups
