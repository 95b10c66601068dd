"""Whether some known record costs less than the true one: the GPU compares all pairs in double precision.

A target is dropped as soon as one known record is cheaper than its true one. A first pass over a sample of the known
records finds most of these targets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import cuda
from .layout import THREADS, Array, Field, GpuFiles, chunk_size, column_parts, lay_out_fields
from .pair_scan import pair_costs

TIE_RELATIVE, TIE_ABSOLUTE = 1e-9, 1e-12  # costs this close are equal, as in risk/linkage/pair_search.py
FIRST_COLUMNS = 2048  # known records of the first pass


class RivalSearch:
    """The GPU counterpart of `risk.linkage.pair_search.TruePairSearch`.

    Both files are uploaded once; targets come in parts.
    """

    def __init__(self, costs: Sequence[Field], truth: Array, *, mean: bool = False) -> None:
        self.truth = truth
        with cuda.exclusive_gpu():
            self.files = GpuFiles(lay_out_fields(costs, mean=mean))

    def __call__(self, targets: Array, *, threads: int | None = None) -> tuple[Array, Array]:
        """Return whether some known record costs less than the true one, for each target.

        Where none does, also return how many known records cost as much as the true one.
        """
        beaten, ties = np.ones(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)
        left = np.flatnonzero(self.truth[targets] >= 0)
        with cuda.exclusive_gpu():
            own = pair_costs(self.files, targets[left], self.truth[targets[left]])
            for seen in (min(FIRST_COLUMNS, self.files.column_count), self.files.column_count):
                cheaper, equal = self._count(targets[left], own, seen)
                left, own, equal = left[~cheaper], own[~cheaper], equal[~cheaper]
        beaten[left], ties[left] = False, equal
        return beaten, ties

    def _count(self, targets: Array, own: Array, seen: int) -> tuple[Array, Array]:
        """Compare these targets with `seen` known records that are spread over the file."""
        cupy, count = cuda.cupy(), len(targets)
        if count == 0:
            return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64)
        low, high = tie_limits(own)
        rows = cupy.ascontiguousarray(self.files.rows[:, cupy.asarray(targets)])
        beaten, ties = cupy.zeros((2, count), dtype=cupy.uint32)
        blocks = cuda.blocks(count, THREADS)
        chunk = chunk_size(seen, column_parts(blocks, seen))
        self.files.upload_constants()
        self.files.kernel("find_cheaper")((blocks, cuda.blocks(seen, chunk)), (THREADS,), (
            rows, self.files.columns, np.int32(count), np.int32(count), np.int32(seen),
            np.int32(max(1, self.files.column_count // seen)), np.int32(chunk), cupy.asarray(low), cupy.asarray(high),
            beaten, ties,
        ))  # fmt: skip
        return beaten.get().astype(np.bool_), ties.get().astype(np.int64)


def tie_limits(own: Array) -> tuple[Array, Array]:
    """Return the costs below which a record is cheaper than `own`, and up to which it is cheaper or equal."""
    slack = TIE_RELATIVE * own + TIE_ABSOLUTE
    return own - slack, own + slack


def plain_rival_search(cost: Array, truth: Array) -> tuple[Array, Array]:
    """Return the same as `RivalSearch`, in numpy, from all costs (target, known record)."""
    has_truth = truth >= 0
    own = np.where(has_truth, cost[np.arange(len(cost)), truth], 0.0)
    low, high = (limit[:, np.newaxis] for limit in tie_limits(own))
    return ~has_truth | (cost < low).any(axis=1), np.where(has_truth, (cost <= high).sum(axis=1), 0)
