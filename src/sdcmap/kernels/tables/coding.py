"""Number and count the cells of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.kernels.scratch_memory import empty

LARGEST_KEY = 1 << 62  # in tables with more possible cells, only the cells that occur are numbered


def strides_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return by how much one step of each variable changes the cell number; the last variable changes it by 1."""
    strides = [1] * len(sizes)
    for j in range(len(sizes) - 2, -1, -1):
        strides[j] = strides[j + 1] * sizes[j + 1]
    return tuple(strides)


def cell_numbers(codes: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Return the cell number of each record, sum_j stride_j * code_j, in the smallest integer type, and the strides."""
    strides = strides_of(sizes)
    cell = empty(len(codes[0]), _smallest_type(strides[0] * sizes[0]))
    cell[:] = 0
    for code, stride in zip(codes, strides, strict=True):
        _add_scaled(cell, code, stride)
    return cell, strides


def _smallest_type(space: int) -> type[np.integer[Any]]:
    return np.uint16 if space <= 1 << 16 else np.int32 if space <= 1 << 31 else np.int64


@jit
def _add_scaled(cell: Array, code: Array, stride: int) -> None:
    for i in range(len(cell)):
        cell[i] += code[i] * stride


def count_units(code: Array, units: Array, size: int) -> Array:
    """Return how many different units have each of the codes 0, 1, ... `size` - 1.

    >>> count_units(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2).tolist()
    [2, 1]
    """
    pairs = np.unique(units.astype(np.int64) * size + code)
    return np.bincount(pairs % size, minlength=size)


@jit
def count_cells(code: Array, size: int) -> Array:
    """Count the records in each of `size` cells, without a copy of the codes in a larger type."""
    count = np.zeros(size, dtype=np.int64)
    for i in range(len(code)):
        count[np.uint64(code[i])] += 1
    return count


@jit
def move_cells(cell: Array, stride: int, before: Array, rows: Array, after: Array) -> None:
    """Update the cell numbers of `rows` in place when one variable changes from `before` (all rows) to `after` (`rows`)."""
    for i in range(len(cell)):
        cell[i] += stride * (np.int64(after[i]) - np.int64(before[np.uint64(rows[i])]))


@jit
def recount(count: Array, old: Array, new: Array) -> Array:
    """Return the counts after one record has moved from each cell of `old` to the cell of `new`."""
    after = count.copy()
    for i in range(len(old)):
        after[np.uint64(old[i])] -= 1
        after[np.uint64(new[i])] += 1
    return after


@jit
def in_small_cells(after: Array, new: Array, n: int) -> tuple[int, int]:
    """Count the records in cells with fewer than n records: all of them, and those among the records in `new`."""
    total, moved = 0, 0
    for i in range(len(after)):
        total += after[i] * (after[i] < n)
    for i in range(len(new)):
        moved += after[np.uint64(new[i])] < n
    return total, moved


def compress(codes: Sequence[Array]) -> tuple[Array, Array]:
    """Number the cells that occur 0, 1, ..., and return the number of each record and the count of each cell.

    There is no limit on the number of variables.
    """
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    space = 1
    for code in codes:
        size = int(code.max()) + 1
        if space * size > LARGEST_KEY:
            # Renumber before the cell number can overflow: at most one cell per record occurs.
            observed, cell = np.unique(cell, return_inverse=True)
            space = len(observed)
        if space * size > np.iinfo(np.int64).max:
            raise OverflowError("a variable has too many categories")
        cell = cell * size + code
        space *= size
    _, cell, count = np.unique(cell, return_inverse=True, return_counts=True)
    return cell, count
