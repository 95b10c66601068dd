"""Sums over matching cells where a missing value matches every value.

A cell is a row of codes, MISSING where the value is missing; its pattern is the set of its missing variables. Two cells
match when they agree outside the union of their patterns. So the cells that miss some variables are looked up in the file
without these variables, once for each pattern that is left there. Cells lie in a hash table under a mark, the exclusive or
of the marks of their values, and are then compared value by value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

MISSING = -1


class _File(NamedTuple):
    """Distinct cells, their marks, patterns and sums, and the hash table they lie in (-1: a free slot)."""

    cells: Array
    mark: Array
    pattern: Array
    sums: Array
    table: Array


def patterns_of(codes: Array) -> Array:
    """The missing variables of each cell as a number: bit j is variable j."""
    return np.asarray(((codes < 0).astype(np.int64) << np.arange(codes.shape[1])).sum(axis=1))


def wildcard_sums(codes: Array, sums: Array, alpha: float = 1.0) -> Array:
    """The sum of `sums` (records, weights; one column each) over the cells that match each cell, itself included.

    A cell that is missing where the looking cell has a value counts `alpha` of its sum (sdcMicro's alpha).
    """
    widest_first = np.argsort(-codes.max(axis=0, initial=0), kind="stable")  # without these the file is smallest
    codes = np.ascontiguousarray(codes[:, widest_first], dtype=np.int32)
    columns = np.ascontiguousarray(sums, dtype=np.float64).reshape(len(codes), -1)
    marks, pattern = marks_of(codes), patterns_of(codes)
    mark = np.bitwise_xor.reduce(marks, axis=1)
    order = np.argsort(pattern, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(pattern[order])) + 1)
    looking = {int(pattern[part[0]]): part for part in parts if len(part)}
    on_the_way = {hides & ((1 << j) - 1) for hides in looking for j in range(hides.bit_length() + 1)}
    total = np.zeros(columns.shape)

    def visit(hidden: int, file: _File) -> None:
        """Look up the cells that miss `hidden` in the file without these variables, then hide one more."""
        if hidden in looking:
            _add_matches(codes, marks, mark, looking[hidden], hidden, alpha, file, total)
        for j in range(hidden.bit_length(), codes.shape[1]):
            if hidden | 1 << j in on_the_way:
                visit(hidden | 1 << j, _without(file, j))

    visit(0, _without(_File(codes, mark, pattern, columns, np.zeros(0, dtype=np.int64)), -1))
    return total.reshape(sums.shape)


@inner_jit
def _mark(code: int, j: int) -> np.uint64:
    """A random-looking number for one value of variable j, 0 for a missing one.  Steele, Lea, Flood (2014), splitmix64"""
    if code < 0:
        return np.uint64(0)
    mixed = ((np.uint64(code) << np.uint64(8)) + np.uint64(j + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@jit
def marks_of(codes: Array) -> Array:
    """The mark of each value of each cell."""
    marks = np.empty(codes.shape, dtype=np.uint64)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            marks[i, j] = _mark(codes[i, j], j)
    return marks


@jit
def table_size(entries: int) -> int:
    """The slots of a hash table for so many cells, at most half full."""
    size = 2
    while size < 2 * entries:
        size *= 2
    return size


@inner_jit
def mark_outside(marks: Array, row: int, hidden: int) -> np.uint64:
    """The mark of a cell in the margin without the `hidden` variables (bits)."""
    mark = np.uint64(0)
    for j in range(marks.shape[1]):
        if not (hidden >> j) & 1:
            mark ^= marks[row, j]
    return mark


@inner_jit
def slot_of(table: Array, held: Array, codes: Array, hidden: int, row: int, mark: np.uint64) -> np.int64:
    """The slot of the cell that agrees with `row` outside the hidden variables, or a free one.

    table : the row in each slot, -1 where it is free. held : its mark.
    """
    last = len(table) - 1
    slot = np.int64(mark & np.uint64(last))
    while table[slot] >= 0:
        if held[slot] == mark:
            other = table[slot]
            same = True
            for j in range(codes.shape[1]):
                if codes[other, j] != codes[row, j] and not (hidden >> j) & 1:
                    same = False
                    break
            if same:
                break
        slot = (slot + 1) & last
    return slot


@jit
def _without(file: _File, hidden: int) -> _File:
    """The file with variable `hidden` missing (-1: none), cells that are now one added up."""
    cells, mark, pattern, sums, _ = file
    table = np.full(table_size(len(cells)), -1, dtype=np.int64)
    last = len(table) - 1
    new_cells, new_sums = np.empty_like(cells), np.empty_like(sums)
    new_mark, new_pattern = np.empty_like(mark), np.empty_like(pattern)
    width = cells.shape[1]
    count = 0
    for row in range(len(cells)):
        own = mark[row] if hidden < 0 else mark[row] ^ _mark(cells[row, hidden], hidden)
        slot = np.int64(own & np.uint64(last))
        while table[slot] >= 0:
            other = table[slot]
            if new_mark[other] == own:
                same = True
                for j in range(width):
                    same &= j == hidden or new_cells[other, j] == cells[row, j]
                if same:
                    break
            slot = (slot + 1) & last
        if table[slot] >= 0:
            for j in range(sums.shape[1]):
                new_sums[table[slot], j] += sums[row, j]
            continue
        table[slot] = count
        for j in range(width):
            new_cells[count, j] = cells[row, j]
        for j in range(sums.shape[1]):
            new_sums[count, j] = sums[row, j]
        new_mark[count], new_pattern[count] = own, pattern[row]
        if hidden >= 0:
            new_cells[count, hidden] = -1
            new_pattern[count] |= 1 << hidden
        count += 1
    return _File(new_cells[:count], new_mark[:count], new_pattern[:count], new_sums[:count], table)


@jit
def _add_matches(
    codes: Array, marks: Array, mark: Array, looking: Array, hidden: int, alpha: float, file: _File, total: Array
) -> None:
    """total[i] += the sum of the cells of the file, which all miss `hidden`, that match i, for each i in `looking`."""
    cells, cell_mark, cell_pattern, sums, table = file
    last = len(table) - 1
    width = codes.shape[1]
    for pattern in np.unique(cell_pattern):
        share = 1.0 if pattern == hidden else alpha
        more = pattern & ~hidden
        for row in looking:
            own = mark[row]
            for j in range(width):
                if (more >> j) & 1:
                    own ^= marks[row, j]
            slot = np.int64(own & np.uint64(last))
            while table[slot] >= 0:
                cell = table[slot]
                if cell_mark[cell] == own and cell_pattern[cell] == pattern:
                    same = True
                    for j in range(width):
                        same &= (more >> j) & 1 == 1 or cells[cell, j] == codes[row, j]
                    if same:
                        for c in range(sums.shape[1]):
                            total[row, c] += share * sums[cell, c]
                        break
                slot = (slot + 1) & last
