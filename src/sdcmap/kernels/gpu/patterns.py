"""Agreement patterns of all pairs of records: the GPU compares ranks, which are whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import THREADS, TILE, Array, chunk_size, column_parts

MAX_PATTERNS = 1 << 16  # possible patterns; more are counted on the CPU, in a hash table
MAX_SHARED_PATTERNS = 1 << 13  # possible patterns whose counters fit into the memory of a block
MAX_CHUNK = 1 << 20  # released records of a block, so that its counters of 32 bits do not overflow


def count_pattern_numbers(files: Any, threads: int | None = None) -> tuple[Array, Array]:
    """Return the numbers of the patterns that occur, ascending, and the number of pairs with each.

    The GPU counterpart of `risk.linkage.agreement_patterns.count_pattern_numbers`. It ignores `threads`.
    """
    (rows, fields), columns = files.low.shape, files.ranks.shape[1]
    patterns = files.base**fields
    if patterns > MAX_PATTERNS:
        raise cuda.NotForGpu("there are too many possible patterns")
    with cuda.exclusive_gpu() as cupy:
        total = cupy.zeros(patterns, dtype=cupy.uint64)
        blocks = cuda.blocks(rows, THREADS)
        chunk = min(MAX_CHUNK, chunk_size(columns, column_parts(blocks, columns)))
        settings: dict[str, int | str] = {
            "FIELDS": fields, "THREADS": THREADS, "TILE": TILE, "PATTERNS": patterns,
            "IN_SHARED": int(patterns <= MAX_SHARED_PATTERNS), "HAS_MISSING": files.base - 2,
        }  # fmt: skip
        sides = (files.low.T, files.span.T, files.digit.T, files.ranks.T, files.missing)
        arrays = [cupy.asarray(np.ascontiguousarray(side, dtype=np.uint32)) for side in sides]
        cuda.compile_kernels(("patterns.cu",), settings).get_function("count_patterns")(
            (blocks, cuda.blocks(columns, chunk)), (THREADS,),
            (*arrays, np.int32(rows), np.int32(columns), np.int32(chunk), total),
        )  # fmt: skip
        pairs = total.get().astype(np.int64)
    number = np.flatnonzero(pairs)
    return number, pairs[number]


def plain_pattern_numbers(files: Any) -> tuple[Array, Array]:
    """Return the same as `count_pattern_numbers`, in numpy, from all pairs at once."""
    ranks = files.ranks.astype(np.uint32).T
    number = np.zeros((len(files.low), len(ranks)), dtype=np.int64)
    for f in range(ranks.shape[1]):
        low, span, digit = (getattr(files, side)[:, f, np.newaxis] for side in ("low", "span", "digit"))
        number += digit.astype(np.int64) * (ranks[:, f] - low.astype(np.uint32) <= span)
        if files.base == 3:
            number += digit.astype(np.int64) * (ranks[:, f] != files.missing[f])
    numbers, pairs = np.unique(number, return_counts=True)
    return numbers, pairs
