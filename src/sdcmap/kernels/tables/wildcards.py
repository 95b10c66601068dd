"""Sums over matching cells where a missing value matches every value.

A cell is a row of codes, with MISSING for a missing value; its pattern is the set of its missing variables. Two cells match
if they agree outside the union of their patterns. So the cells with a given pattern are looked up in the file without these
variables, once for each pattern that remains in it. Cells are stored in a hash table. The hash of a cell is the XOR of the
hashes of its values; cells with equal hashes are compared value by value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

MISSING = -1


class _File(NamedTuple):
    """Distinct cells with their hashes, patterns and sums, and the hash table of their rows (-1 for a free slot)."""

    cells: Array
    hashes: Array
    pattern: Array
    sums: Array
    table: Array


def patterns_of(codes: Array) -> Array:
    """Return the missing variables of each cell as a bit mask; bit j is variable j."""
    return np.asarray(((codes < 0).astype(np.int64) << np.arange(codes.shape[1])).sum(axis=1))


def wildcard_sums(codes: Array, sums: Array, alpha: float = 1.0) -> Array:
    """Return, for each cell, the sum of `sums` over the cells that match it, itself included.

    sums : records or weights, one column each. alpha : share that a matching cell counts if one of its values is missing
    where this cell has a value (sdcMicro's alpha).
    """
    # The file shrinks most if the variables with the most categories are hidden first.
    widest_first = np.argsort(-codes.max(axis=0, initial=0), kind="stable")
    codes = np.ascontiguousarray(codes[:, widest_first], dtype=np.int32)
    columns = np.ascontiguousarray(sums, dtype=np.float64).reshape(len(codes), -1)
    hashes, pattern = value_hashes(codes), patterns_of(codes)
    cell_hash = np.bitwise_xor.reduce(hashes, axis=1)
    order = np.argsort(pattern, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(pattern[order])) + 1)
    by_pattern = {int(pattern[part[0]]): part for part in parts if len(part)}
    # Variables are hidden one by one, in their order; these are all sets that lead to a pattern.
    prefixes = {hides & ((1 << j) - 1) for hides in by_pattern for j in range(hides.bit_length() + 1)}
    total = np.zeros(columns.shape)

    def visit(hidden: int, file: _File) -> None:
        """Look up the cells with the pattern `hidden` in the file without these variables, then hide one more."""
        if hidden in by_pattern:
            _add_matches(codes, hashes, cell_hash, by_pattern[hidden], hidden, alpha, file, total)
        for j in range(hidden.bit_length(), codes.shape[1]):
            if hidden | 1 << j in prefixes:
                visit(hidden | 1 << j, _without(file, j))

    visit(0, _without(_File(codes, cell_hash, pattern, columns, np.zeros(0, dtype=np.int64)), -1))
    return total.reshape(sums.shape)


@inner_jit
def _value_hash(code: int, j: int) -> np.uint64:
    """Return the hash of a value of variable j, 0 for a missing one.  Steele, Lea, Flood (2014), splitmix64"""
    if code < 0:
        return np.uint64(0)
    mixed = ((np.uint64(code) << np.uint64(8)) + np.uint64(j + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@jit
def value_hashes(codes: Array) -> Array:
    """Return the hash of each value of each cell."""
    hashes = np.empty(codes.shape, dtype=np.uint64)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            hashes[i, j] = _value_hash(codes[i, j], j)
    return hashes


@jit
def table_size(entries: int) -> int:
    """Return the number of slots of a hash table for so many cells, at most half full."""
    size = 2
    while size < 2 * entries:
        size *= 2
    return size


@inner_jit
def hash_outside(hashes: Array, row: int, hidden: int) -> np.uint64:
    """Return the hash of a cell in the margin without the `hidden` variables (bits)."""
    key = np.uint64(0)
    for j in range(hashes.shape[1]):
        if not (hidden >> j) & 1:
            key ^= hashes[row, j]
    return key


@inner_jit
def find_slot(table: Array, slot_hash: Array, codes: Array, hidden: int, row: int, key: np.uint64) -> np.int64:
    """Return the slot of the cell that agrees with `row` outside the hidden variables, or a free one.

    table : the row in each slot, -1 if it is free. slot_hash : the hash of that row. key : the hash of `row`.
    """
    last = len(table) - 1
    slot = np.int64(key & np.uint64(last))
    while table[slot] >= 0:
        if slot_hash[slot] == key:
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
    """Return the file with variable `hidden` missing (-1 for none); cells that become equal are added up."""
    cells, hashes, pattern, sums, _ = file
    table = np.full(table_size(len(cells)), -1, dtype=np.int64)
    last = len(table) - 1
    new_cells, new_sums = np.empty_like(cells), np.empty_like(sums)
    new_hash, new_pattern = np.empty_like(hashes), np.empty_like(pattern)
    width = cells.shape[1]
    count = 0
    for row in range(len(cells)):
        own = hashes[row] if hidden < 0 else hashes[row] ^ _value_hash(cells[row, hidden], hidden)
        slot = np.int64(own & np.uint64(last))
        while table[slot] >= 0:
            other = table[slot]
            if new_hash[other] == own:
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
        new_hash[count], new_pattern[count] = own, pattern[row]
        if hidden >= 0:
            new_cells[count, hidden] = -1
            new_pattern[count] |= 1 << hidden
        count += 1
    return _File(new_cells[:count], new_hash[:count], new_pattern[:count], new_sums[:count], table)


@jit
def _add_matches(
    codes: Array, hashes: Array, cell_hash: Array, rows: Array, hidden: int, alpha: float, file: _File, total: Array
) -> None:
    """Add the sums of the matching cells of the file, in all of which `hidden` is missing, to each of `rows`."""
    cells, file_hash, cell_pattern, sums, table = file
    last = len(table) - 1
    width = codes.shape[1]
    for pattern in np.unique(cell_pattern):
        # A cell of this pattern matches if it agrees outside the union of both patterns; XOR removes the other values.
        share = 1.0 if pattern == hidden else alpha
        more = pattern & ~hidden
        for row in rows:
            own = cell_hash[row]
            for j in range(width):
                if (more >> j) & 1:
                    own ^= hashes[row, j]
            slot = np.int64(own & np.uint64(last))
            while table[slot] >= 0:
                cell = table[slot]
                if file_hash[cell] == own and cell_pattern[cell] == pattern:
                    same = True
                    for j in range(width):
                        same &= (more >> j) & 1 == 1 or cells[cell, j] == codes[row, j]
                    if same:
                        for c in range(sums.shape[1]):
                            total[row, c] += share * sums[cell, c]
                        break
                slot = (slot + 1) & last
