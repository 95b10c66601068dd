"""Neighbors of released records in an archive: the GPU compares every pair, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import THREADS, TILE, Array, chunk_size, column_parts


def count_between(pairs: Any, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
    """Count the records nearer than `near` and those from `near` to below `far`.

    The GPU counterpart of `kernels.neighbors.counting.count_between`. It counts all pairs and ignores `most`.
    """
    rows, columns, fields = len(pairs.y), len(pairs.x), pairs.x.shape[1]
    with cuda.exclusive_gpu() as cupy:
        below, between = cupy.zeros((2, rows), dtype=cupy.uint64)
        if rows and columns:
            blocks = cuda.blocks(rows, THREADS)
            chunk = chunk_size(columns, column_parts(blocks, columns))
            settings: dict[str, int | str] = {"FIELDS": fields, "THREADS": THREADS, "TILE": TILE}
            bounds = (cupy.asarray(np.ascontiguousarray(part, dtype=float)) for part in (pairs.unit, near, far))
            cuda.compile_kernels(("neighbors.cu",), settings, fused=False).get_function("count_between")(
                (blocks, cuda.blocks(columns, chunk)), (THREADS,),
                (cupy.asarray(np.ascontiguousarray(pairs.y.T)), cupy.asarray(np.ascontiguousarray(pairs.x, dtype=float)),
                 np.int32(rows), np.int32(columns), np.int32(chunk), *bounds, below, between),
            )  # fmt: skip
        return below.get().astype(np.int64), between.get().astype(np.int64)


def plain_between(pairs: Any, near: Array, far: Array) -> tuple[Array, Array]:
    """Return the same as `count_between`, in numpy, from all distances at once."""
    total = np.zeros((len(pairs.y), len(pairs.x)))
    for f in range(pairs.x.shape[1]):
        step = pairs.y[:, f, np.newaxis] - pairs.x[:, f]
        total += step * step
    z = np.sqrt(total) / pairs.unit[:, np.newaxis]
    inner = z < near[:, np.newaxis]
    return inner.sum(axis=1), (~inner & (z < far[:, np.newaxis])).sum(axis=1)
