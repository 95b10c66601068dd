"""The record nearest to each target, and what the nearest ones guess: every pair looked at on the card, twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import GAP, SAME, THREADS, Array, Field, OnCard, chunk_of, laid_fields, lanes_for

ROUNDING = 1e-12


def fields_of(x: Array, c: Array, y: Array, d: Array, weight: Array) -> list[Field]:
    """Codes before numbers, as the CPU adds up: a code counts whether it differs, a number |x - y|, 1 at most, and a
    missing one is at 1 from a known one; each times its weight."""
    numbers, codes = weight[: x.shape[1]].tolist(), weight[x.shape[1] :].tolist()
    same = [Field(SAME, d[:, j], c[:, j], cap=w, one=w) for j, w in enumerate(codes)]
    return same + [Field(GAP, y[:, j], x[:, j], cap=w, one=w) for j, w in enumerate(numbers)]


def nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, tolerance: float
) -> tuple[Array, Array]:  # fmt: skip
    """The twin of `kernels.tables.attribution.nearest`: the least distance of each target, and the share of the records at
    that distance that guess right."""
    fields = fields_of(x, c, y, d, weight)
    if not fields or not len(x) or not len(y):
        raise cuda.Unfit("there is nothing to compare")
    if (d < 0).any():
        raise cuda.Unfit("labels are of several depths")
    with cuda.alone() as cupy:
        files = OnCard(laid_fields(fields, mean=False))
        files.ready()
        count, blocks = files.count, cuda.blocks(files.count, THREADS)
        chunk = chunk_of(files.of, lanes_for(blocks, files.of))
        least = cupy.full(count, np.inf)
        ties, hits = cupy.zeros((2, count), dtype=cupy.uint32)

        def look(name: str, *more: Any) -> None:
            sizes = np.int32(count), np.int32(files.of), np.int32(chunk)
            grid = blocks, cuda.blocks(files.of, chunk)
            files.kernel(name)(grid, (THREADS,), (files.rows, files.columns, *sizes, least, *more))

        look("least_costs")
        sides = (cupy.asarray(np.ascontiguousarray(side, dtype=float)) for side in (secret, guess))
        look("right_guesses", np.float64(ROUNDING), np.float64(tolerance), *sides, ties, hits)
        return np.asarray(least.get()), np.asarray((hits / ties).get())


def plain_nearest(cost: Array, secret: Array, guess: Array, tolerance: float) -> tuple[Array, Array]:
    """The same from all distances (target, record)."""
    least = cost.min(axis=1)
    tied = cost <= least[:, np.newaxis] + ROUNDING
    right = np.abs(guess - secret[:, np.newaxis]) <= tolerance * np.abs(secret[:, np.newaxis])
    return least, (tied & right).sum(axis=1) / tied.sum(axis=1)
