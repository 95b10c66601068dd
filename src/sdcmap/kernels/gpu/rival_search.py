"""Whether some known record costs less than the true one: all pairs counted on the card, in double precision.

A target that somebody outruns is left; a look at some of the known records first finds most of those.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import cuda
from .layout import THREADS, Array, Field, OnCard, chunk_of, laid_fields, lanes_for
from .pair_scan import listed_costs

TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal
FIRST = 2048  # known records of the first look


class RivalSearch:
    """Search for rivals of the true record; the twin of `risk.linkage.pair_search.RivalSearch`."""

    def __init__(self, costs: Sequence[Field], truth: Array, *, mean: bool = False) -> None:
        self.truth = truth
        with cuda.alone():
            self.files = OnCard(laid_fields(costs, mean=mean))

    def __call__(self, targets: Array, *, threads: int | None = None) -> tuple[Array, Array]:
        """Return for each target whether a rival beats its true record, and how many known records cost the same."""
        beaten, ties = np.ones(len(targets), dtype=np.bool_), np.zeros(len(targets), dtype=np.int64)
        left = np.flatnonzero(self.truth[targets] >= 0)
        with cuda.alone():
            own = listed_costs(self.files, targets[left], self.truth[targets[left]])
            for seen in (min(FIRST, self.files.of), self.files.of):
                outrun, equal = self._count(targets[left], own, seen)
                left, own, equal = left[~outrun], own[~outrun], equal[~outrun]
        beaten[left], ties[left] = False, equal
        return beaten, ties

    def _count(self, targets: Array, own: Array, seen: int) -> tuple[Array, Array]:
        """Of these targets, against `seen` known records spread over the file."""
        cupy, count = cuda.cupy(), len(targets)
        if count == 0:
            return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64)
        low, high = limits(own)
        rows = cupy.ascontiguousarray(self.files.rows[:, cupy.asarray(targets)])
        beaten, ties = cupy.zeros((2, count), dtype=cupy.uint32)
        blocks = cuda.blocks(count, THREADS)
        chunk = chunk_of(seen, lanes_for(blocks, seen))
        self.files.ready()
        self.files.kernel("outrun")((blocks, cuda.blocks(seen, chunk)), (THREADS,), (
            rows, self.files.columns, np.int32(count), np.int32(count), np.int32(seen),
            np.int32(max(1, self.files.of // seen)), np.int32(chunk), cupy.asarray(low), cupy.asarray(high), beaten, ties,
        ))  # fmt: skip
        return beaten.get().astype(np.bool_), ties.get().astype(np.int64)


def limits(own: Array) -> tuple[Array, Array]:
    """What costs less than the first is less than `own`; what costs at most the second is as much, or less."""
    slack = TIE * own + TINY
    return own - slack, own + slack


def plain_rival_search(cost: Array, truth: Array) -> tuple[Array, Array]:
    """The same from all costs (target, known record)."""
    held = truth >= 0
    own = np.where(held, cost[np.arange(len(cost)), truth], 0.0)
    low, high = (limit[:, np.newaxis] for limit in limits(own))
    return ~held | (cost < low).any(axis=1), np.where(held, (cost <= high).sum(axis=1), 0)
