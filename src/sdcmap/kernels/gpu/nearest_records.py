"""The record nearest to each target, and what the nearest records guess; the GPU computes every pair twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import GAP, SAME, THREADS, Array, Field, GpuFiles, chunk_size, column_parts, lay_out_fields

TIE_TOLERANCE = 1e-12  # distances that differ by at most this are equal, as in kernels/tables/attribution.py


def fields_of(x: Array, c: Array, y: Array, d: Array, weight: Array) -> list[Field]:
    """Return the fields of Gower's distance, codes before numbers, in the order in which the CPU adds them.

    A code counts its weight if it differs. A number counts its weight times |x - y|, at most its weight; a missing number
    is at distance 1 from a known one.
    """
    numbers, codes = weight[: x.shape[1]].tolist(), weight[x.shape[1] :].tolist()
    same = [Field(SAME, d[:, j], c[:, j], cap=w, one=w) for j, w in enumerate(codes)]
    return same + [Field(GAP, y[:, j], x[:, j], cap=w, one=w) for j, w in enumerate(numbers)]


def nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, tolerance: float
) -> tuple[Array, Array]:
    """Return the least distance of each target, and the share of the records at that distance that guess right.

    The GPU counterpart of `kernels.tables.attribution.nearest`.
    """
    fields = fields_of(x, c, y, d, weight)
    if not fields or not len(x) or not len(y):
        raise cuda.NotForGpu("there is nothing to compare")
    if (d < 0).any():
        raise cuda.NotForGpu("labels are of several depths")
    with cuda.exclusive_gpu() as cupy:
        files = GpuFiles(lay_out_fields(fields, mean=False))
        files.upload_constants()
        count, blocks = files.row_count, cuda.blocks(files.row_count, THREADS)
        chunk = chunk_size(files.column_count, column_parts(blocks, files.column_count))
        least = cupy.full(count, np.inf)
        ties, hits = cupy.zeros((2, count), dtype=cupy.uint32)

        def launch(name: str, *more: Any) -> None:
            sizes = np.int32(count), np.int32(files.column_count), np.int32(chunk)
            grid = blocks, cuda.blocks(files.column_count, chunk)
            files.kernel(name)(grid, (THREADS,), (files.rows, files.columns, *sizes, least, *more))

        # First pass: the least distance. Second pass: count the records at that distance and their right guesses.
        launch("least_costs")
        sides = (cupy.asarray(np.ascontiguousarray(side, dtype=float)) for side in (secret, guess))
        launch("right_guesses", np.float64(TIE_TOLERANCE), np.float64(tolerance), *sides, ties, hits)
        return np.asarray(least.get()), np.asarray((hits / ties).get())


def plain_nearest(cost: Array, secret: Array, guess: Array, tolerance: float) -> tuple[Array, Array]:
    """Return the same as `nearest`, in numpy, from all distances (target, record)."""
    least = cost.min(axis=1)
    tied = cost <= least[:, np.newaxis] + TIE_TOLERANCE
    right = np.abs(guess - secret[:, np.newaxis]) <= tolerance * np.abs(secret[:, np.newaxis])
    return least, (tied & right).sum(axis=1) / tied.sum(axis=1)
