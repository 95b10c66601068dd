"""Sets of variables, and the cells of a table in the margin of each set."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.wildcards import find_slot, hash_outside, table_size, value_hashes, wildcard_sums

MAX_DENSE_CELLS = 1 << 16  # a margin with more possible cells, and more than 8 per table cell, uses a hash table


def sets_up_to(width: int, largest: int) -> Array:
    """Return all sets of 1 to `largest` of `width` variables as bit masks, smaller sets first."""
    sizes = range(1, min(largest, width) + 1)
    masks = [sum(1 << j for j in chosen) for size in sizes for chosen in combinations(range(width), size)]
    return np.array(masks, dtype=np.int64)


def set_count(width: int, largest: int) -> int:
    """Return how many sets `sets_up_to` returns."""
    return sum(math.comb(width, size) for size in range(1, min(largest, width) + 1))


def members(chosen: int) -> list[int]:
    """Return the variables of a set.

    >>> members(0b101)
    [0, 2]
    """
    return [j for j in range(int(chosen).bit_length()) if int(chosen) >> j & 1]


class Margins(NamedTuple):
    """The input of `locate_in_margin`: cells without missing values, and a hash table for margins too large to be dense."""

    codes: Array  # (cell, variable)
    columns: Array  # the same, transposed
    hashes: Array  # of each value
    shape: Array  # number of categories of each variable
    table: Array  # hash table: the cell in each slot, -1 if it is free
    slot_hash: Array  # the hash of that cell
    dense: int  # largest size of a margin that is counted without the hash table


def margins_of(codes: Array) -> Margins:
    """Prepare the margins of these cells."""
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    shape = codes.max(axis=0).astype(np.int64) + 1
    dense = max(MAX_DENSE_CELLS, 8 * len(codes))
    size = table_size(len(codes)) if math.prod(shape.tolist()) > dense else 0
    table, slot_hash = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint64)
    return Margins(codes, np.ascontiguousarray(codes.T), value_hashes(codes), shape, table, slot_hash, dense)


@inner_jit
def locate_in_margin(m: Margins, chosen: int, index: Array) -> int:
    """Write the index of each cell in the margin of the `chosen` variables (bits); return the number of indices."""
    width = len(m.shape)
    size = 1
    for j in range(width):
        if (chosen >> j) & 1 and size <= m.dense:
            size *= m.shape[j]
    if size <= m.dense:  # number the cells of the margin by strides
        index[:] = 0
        stride = 1
        for j in range(width):
            if (chosen >> j) & 1:
                for cell in range(len(index)):
                    index[cell] += m.columns[j, cell] * stride
                stride *= m.shape[j]
        return size
    m.table[:] = -1  # too many possible cells: an index is a slot of the hash table
    hidden = ((1 << width) - 1) & ~chosen
    for cell in range(len(index)):
        key = hash_outside(m.hashes, cell, hidden)
        slot = find_slot(m.table, m.slot_hash, m.codes, hidden, cell, key)
        if m.table[slot] < 0:
            m.table[slot], m.slot_hash[slot] = cell, key
        index[cell] = slot
    return len(m.table)


def unsafe_combinations(codes: Array, count: Array, sets: Array, k: int) -> tuple[Array, Array]:
    """Count the unsafe cells (1 to k - 1 records) in the margin of each set, and the sets in which each cell is unsafe.

    A missing value (-1) matches every value; a cell with a missing value in a set is not counted for that set.
    """
    if (codes < 0).any():
        return _unsafe_with_missing(codes, count, sets, k)
    return _unsafe(margins_of(codes), count.astype(np.int64), sets, k)


@jit
def _unsafe(m: Margins, count: Array, sets: Array, k: int) -> tuple[Array, Array]:
    cells = np.zeros(len(sets), dtype=np.int64)
    exposed = np.zeros(len(count), dtype=np.int64)
    index = np.empty(len(count), dtype=np.int64)
    for s in range(len(sets)):
        size = locate_in_margin(m, sets[s], index)
        total = np.zeros(size, dtype=np.int64)
        for cell in range(len(index)):
            total[index[cell]] += count[cell]
        # A cell of the margin is unsafe with 1 to k - 1 records; a cell of the table is exposed if its own is.
        for inside in total:
            cells[s] += 0 < inside < k
        for cell in range(len(index)):
            exposed[cell] += total[index[cell]] < k
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
