"""Coding and counting of table cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sdcmap.kernels.jit import jit

Array = npt.NDArray[Any]


def mixed_radix(codes: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Cell number of each record, sum_j stride_j * code_j, and the strides (last variable fastest)."""
    strides = [1] * len(sizes)
    for j in range(len(sizes) - 2, -1, -1):
        strides[j] = strides[j + 1] * sizes[j + 1]
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    for code, stride in zip(codes, strides, strict=True):
        cell += code.astype(np.int64) * stride
    space = strides[0] * sizes[0]
    return cell.astype(np.int32 if space <= np.iinfo(np.int32).max else np.int64), tuple(strides)


@jit
def shift_cells(code: Array, count: Array, rows: Array, shift: Array) -> tuple[Array, Array, Array, Array]:
    """Move the records `rows` by `shift` cells: (which of them moved, their old cell, their new cell, counts after)."""
    moved = np.empty(len(rows), dtype=np.int64)
    old = np.empty(len(rows), dtype=np.int64)
    new = np.empty(len(rows), dtype=np.int64)
    after = count.copy()
    k = 0
    for i in range(len(rows)):
        if shift[i] != 0:
            moved[k], old[k] = i, code[rows[i]]
            new[k] = old[k] + shift[i]
            after[old[k]] -= 1
            after[new[k]] += 1
            k += 1
    return moved[:k], old[:k], new[:k], after


def compress(codes: Sequence[Array]) -> tuple[Array, Array]:
    """Cell number of each record among the cells that occur, 0, 1, ..., and their counts; any number of variables."""
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    count = np.array([len(cell)])
    for code in codes:
        size = int(code.max()) + 1
        if len(count) * size > np.iinfo(np.int64).max:
            raise OverflowError("a variable has too many categories")
        _, cell, count = np.unique(cell * size + code, return_inverse=True, return_counts=True)
    return cell, count


def hellinger(before: Array, after: Array, total: int | None = None) -> float:
    """H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies.  GKS (2003), section 4

    `total` is the number of records of both tables when only the cells that differ are given.
    """
    f = before / (total or before.sum())
    g = after / (total or after.sum())
    return float(np.sqrt(0.5 * np.sum((np.sqrt(f) - np.sqrt(g)) ** 2)))
