"""Sets of variables, and where the cells of a table fall in the margin of each set."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.wildcards import mark_outside, marks_of, slot_of, table_size, wildcard_sums

DENSE_MARGIN = 1 << 16  # margins with more possible cells than this (and than 8 for each cell) lie in a hash table


def sets_up_to(width: int, largest: int) -> Array:
    """All sets of 1 to `largest` of `width` variables as bits, the smaller first."""
    sizes = range(1, min(largest, width) + 1)
    masks = [sum(1 << j for j in chosen) for size in sizes for chosen in combinations(range(width), size)]
    return np.array(masks, dtype=np.int64)


def set_count(width: int, largest: int) -> int:
    """How many these are."""
    return sum(math.comb(width, size) for size in range(1, min(largest, width) + 1))


def members(chosen: int) -> list[int]:
    """The variables of a set.

    >>> members(0b101)
    [0, 2]
    """
    return [j for j in range(int(chosen).bit_length()) if int(chosen) >> j & 1]


class Margins(NamedTuple):
    """What `margin_places` works on: cells without missing values, and a hash table for margins too large to be dense."""

    codes: Array
    columns: Array
    marks: Array
    shape: Array
    table: Array
    held: Array
    dense: int


def margins_of(codes: Array) -> Margins:
    """The margins of these cells."""
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    shape = codes.max(axis=0).astype(np.int64) + 1
    dense = max(DENSE_MARGIN, 8 * len(codes))
    size = table_size(len(codes)) if math.prod(shape.tolist()) > dense else 0
    table, held = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint64)
    return Margins(codes, np.ascontiguousarray(codes.T), marks_of(codes), shape, table, held, dense)


@inner_jit
def margin_places(m: Margins, chosen: int, place: Array) -> int:
    """Write where each cell falls in the margin of the `chosen` variables (bits); how many places there are."""
    width = len(m.shape)
    size = 1
    for j in range(width):
        if (chosen >> j) & 1 and size <= m.dense:
            size *= m.shape[j]
    if size <= m.dense:
        place[:] = 0
        stride = 1
        for j in range(width):
            if (chosen >> j) & 1:
                for cell in range(len(place)):
                    place[cell] += m.columns[j, cell] * stride
                stride *= m.shape[j]
        return size
    m.table[:] = -1
    hidden = ((1 << width) - 1) & ~chosen
    for cell in range(len(place)):
        mark = mark_outside(m.marks, cell, hidden)
        slot = slot_of(m.table, m.held, m.codes, hidden, cell, mark)
        if m.table[slot] < 0:
            m.table[slot], m.held[slot] = cell, mark
        place[cell] = slot
    return len(m.table)


def unsafe_combinations(codes: Array, count: Array, sets: Array, k: int) -> tuple[Array, Array]:
    """The unsafe cells of the margin of each set (1 to k - 1 records), and for each cell the sets where its own is one.

    A missing value (-1) matches every value; a combination with one is no combination of that set.
    """
    if (codes < 0).any():
        return _unsafe_with_missing(codes, count, sets, k)
    return _unsafe(margins_of(codes), count.astype(np.int64), sets, k)


@jit
def _unsafe(m: Margins, count: Array, sets: Array, k: int) -> tuple[Array, Array]:
    cells = np.zeros(len(sets), dtype=np.int64)
    exposed = np.zeros(len(count), dtype=np.int64)
    place = np.empty(len(count), dtype=np.int64)
    for s in range(len(sets)):
        size = margin_places(m, sets[s], place)
        total = np.zeros(size, dtype=np.int64)
        for cell in range(len(place)):
            total[place[cell]] += count[cell]
        for inside in total:
            cells[s] += 0 < inside < k
        for cell in range(len(place)):
            exposed[cell] += total[place[cell]] < k
    return cells, exposed


def _unsafe_with_missing(codes: Array, count: Array, sets: Array, k: int) -> tuple[Array, Array]:
    cells = np.zeros(len(sets), dtype=np.int64)
    exposed = np.zeros(len(codes), dtype=np.int64)
    for s, chosen in enumerate(sets):
        margin = codes[:, members(chosen)]
        unsafe = (wildcard_sums(margin, count) < k) & (margin >= 0).all(axis=1)
        exposed += unsafe
        cells[s] = len(np.unique(margin[unsafe], axis=0))
    return cells, exposed
