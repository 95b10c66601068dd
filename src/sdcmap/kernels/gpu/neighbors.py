"""Neighbors of released records in an archive, every pair looked at on the card, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import THREADS, TILE, Array, chunk_of, lanes_for


def count_between(pairs: Any, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
    """The twin of `kernels.neighbors.counting.count_between`; it counts to the end, whatever `most` says."""
    count, of, fields = len(pairs.y), len(pairs.x), pairs.x.shape[1]
    with cuda.alone() as cupy:
        below, between = cupy.zeros((2, count), dtype=cupy.uint64)
        if count and of:
            blocks = cuda.blocks(count, THREADS)
            chunk = chunk_of(of, lanes_for(blocks, of))
            settings: dict[str, int | str] = {"FIELDS": fields, "THREADS": THREADS, "TILE": TILE}
            bounds = (cupy.asarray(np.ascontiguousarray(part, dtype=float)) for part in (pairs.unit, near, far))
            cuda.compiled(("neighbors.cu",), settings, fused=False).get_function("count_between")(
                (blocks, cuda.blocks(of, chunk)), (THREADS,),
                (cupy.asarray(np.ascontiguousarray(pairs.y.T)), cupy.asarray(np.ascontiguousarray(pairs.x, dtype=float)),
                 np.int32(count), np.int32(of), np.int32(chunk), *bounds, below, between),
            )  # fmt: skip
        return below.get().astype(np.int64), between.get().astype(np.int64)


def plain_between(pairs: Any, near: Array, far: Array) -> tuple[Array, Array]:
    """The same in numpy, all distances at once."""
    total = np.zeros((len(pairs.y), len(pairs.x)))
    for f in range(pairs.x.shape[1]):
        step = pairs.y[:, f, np.newaxis] - pairs.x[:, f]
        total += step * step
    z = np.sqrt(total) / pairs.unit[:, np.newaxis]
    inner = z < near[:, np.newaxis]
    return inner.sum(axis=1), (~inner & (z < far[:, np.newaxis])).sum(axis=1)
