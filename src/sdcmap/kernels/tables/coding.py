"""Coding and counting of table cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.kernels.scratch_memory import empty

LARGEST_KEY = 1 << 62  # tables with more possible cells have no cell numbers, only numbers of the cells that occur


def strides_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """How far one step of each variable moves the cell number (last variable fastest)."""
    strides = [1] * len(sizes)
    for j in range(len(sizes) - 2, -1, -1):
        strides[j] = strides[j + 1] * sizes[j + 1]
    return tuple(strides)


def mixed_radix(codes: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Cell number of each record, sum_j stride_j * code_j, in the narrowest type, and the strides."""
    strides = strides_of(sizes)
    cell = empty(len(codes[0]), _holding(strides[0] * sizes[0]))
    cell[:] = 0
    for code, stride in zip(codes, strides, strict=True):
        _add_scaled(cell, code, stride)
    return cell, strides


def _holding(space: int) -> type[np.integer[Any]]:
    return np.uint16 if space <= 1 << 16 else np.int32 if space <= 1 << 31 else np.int64


@jit
def _add_scaled(cell: Array, code: Array, stride: int) -> None:
    for i in range(len(cell)):
        cell[i] += code[i] * stride


@jit
def count_cells(code: Array, size: int) -> Array:
    """Number of records in each of `size` cells, without a wide copy of the codes."""
    count = np.zeros(size, dtype=np.int64)
    for i in range(len(code)):
        count[np.uint64(code[i])] += 1
    return count


@jit
def move_cells(cell: Array, stride: int, before: Array, rows: Array, after: Array) -> None:
    """Move the cell numbers of `rows` along one variable, from its codes `before` (all rows) to `after` (these rows)."""
    for i in range(len(cell)):
        cell[i] += stride * (np.int64(after[i]) - np.int64(before[np.uint64(rows[i])]))


@jit
def recount(count: Array, old: Array, new: Array) -> Array:
    """The counts after one record moved from each of `old` to each of `new`."""
    after = count.copy()
    for i in range(len(old)):
        after[np.uint64(old[i])] -= 1
        after[np.uint64(new[i])] += 1
    return after


@jit
def in_small_cells(after: Array, new: Array, n: int) -> tuple[int, int]:
    """Records in cells with fewer than n records: all of them, and those among the records that moved to `new`."""
    every, moved = 0, 0
    for i in range(len(after)):
        every += after[i] * (after[i] < n)
    for i in range(len(new)):
        moved += after[np.uint64(new[i])] < n
    return every, moved


def compress(codes: Sequence[Array]) -> tuple[Array, Array]:
    """Cell number of each record among the cells that occur, 0, 1, ..., and their counts; any number of variables."""
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    space = 1
    for code in codes:
        size = int(code.max()) + 1
        if space * size > LARGEST_KEY:
            met, cell = np.unique(cell, return_inverse=True)
            space = len(met)
        if space * size > np.iinfo(np.int64).max:
            raise OverflowError("a variable has too many categories")
        cell = cell * size + code
        space *= size
    _, cell, count = np.unique(cell, return_inverse=True, return_counts=True)
    return cell, count
