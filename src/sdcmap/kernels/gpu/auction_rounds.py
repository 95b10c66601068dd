"""The auction for a sparse assignment on the GPU: all free records bid at once, round after round.

Rounds of many records are spread over the GPU. When few records are left, one block makes all further rounds by itself,
because starting a kernel takes longer than such a round. The prices differ from those of the CPU, where records bid in
turn; the exact search that follows reaches the same total from either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import Array

THREADS = 256  # of a block in rounds of many records
LAST_THREADS = 1024  # of the only block in rounds of few records
FEW_RECORDS = 1024  # up to so many free records one block makes the rounds
MAX_ROWS = 1 << 24  # a record's row has 24 bits in a packed bid ...
MAX_WEIGHT = 1 << 40  # ... and the bid 40
MAX_BIDS_PER_RECORD = 300  # in a phase, as on the CPU


def auction_prices(graph: Any, reverse: Any, price: Array, steps: list[float]) -> Array:
    """Return prices near the optimum; the GPU counterpart of `risk.linkage.auction.auction_prices`."""
    n, m = len(graph.start) - 1, len(reverse.start) - 1
    if max(n, m) >= MAX_ROWS or graph.weight.max(initial=0.0) >= MAX_WEIGHT:
        raise cuda.NotForGpu(f"the GPU assigns at most {MAX_ROWS:,} records")
    with cuda.exclusive_gpu() as cupy:
        kernels = cuda.compile_kernels(("auction.cu",), {}, fused=False)
        forward, backward = (_Bidders(kernels, side, others) for side, others in ((graph, m), (reverse, n)))
        on_gpu = cupy.asarray(np.minimum(price, graph.weight.max(initial=0.0)))
        for step in steps:
            partner, owner = (cupy.full(count, -1, dtype=cupy.int32) for count in (n, m))
            forward.bid(on_gpu, partner, owner, step)
            profit = forward.best_profit(on_gpu)
            backward.bid(profit, owner, partner, step)
            on_gpu = backward.best_profit(profit)
        return np.asarray(on_gpu.get())


class _Bidders:
    """One side of the graph in GPU memory, with the buffers for its bids."""

    def __init__(self, kernels: Any, graph: Any, others: int) -> None:
        cupy = cuda.cupy()
        self.kernels, self.count, self.others = kernels, len(graph.start) - 1, others
        self.edges = (
            cupy.asarray(graph.start.astype(np.int64)), cupy.asarray(graph.other.astype(np.int32)),
            cupy.asarray(graph.weight),
        )  # fmt: skip
        self.own, self.target = cupy.empty(self.count, dtype=cupy.uint64), cupy.empty(self.count, dtype=cupy.int32)

    def bid(self, price: Any, partner: Any, owner: Any, step: float) -> None:
        """Let free records bid until none can gain, or the number of bids reaches its limit; update in place."""
        cupy, left = cuda.cupy(), MAX_BIDS_PER_RECORD * self.count
        highest = cupy.zeros(self.others, dtype=cupy.uint64)
        free = cupy.flatnonzero(partner < 0).astype(cupy.int32)
        count = len(free)
        queue, following = cupy.empty((2, self.count), dtype=cupy.int32)
        queue[:count] = free
        bids = highest, self.own, self.target
        while FEW_RECORDS < count <= left:
            left -= count
            next_count = cupy.zeros(1, dtype=cupy.int32)
            self.kernels.get_function("bid_round")(
                (cuda.blocks(32 * count, THREADS),), (THREADS,),
                (*self.edges, price, np.float64(step), queue, np.int32(count), *bids),
            )  # fmt: skip
            self.kernels.get_function("settle_round")(
                (cuda.blocks(count, THREADS),), (THREADS,),
                (queue, np.int32(count), *bids, price, partner, owner, following, next_count),
            )  # fmt: skip
            queue, following, count = following, queue, int(next_count[0])
        if 0 < count <= FEW_RECORDS:
            made = cupy.zeros(1, dtype=cupy.int64)
            self.kernels.get_function("bid_to_end")((1,), (LAST_THREADS,), (
                *self.edges, price, np.float64(step), queue, np.int32(count), following, *bids, partner, owner,
                np.int64(left), made,
            ))  # fmt: skip

    def best_profit(self, price: Any) -> Any:
        """Return u_i = max(0, max_j w_ij - v_j) for every record i."""
        profit = cuda.cupy().zeros(self.count)
        self.kernels.get_function("best_profit")(
            (cuda.blocks(32 * self.count, THREADS),), (THREADS,), (*self.edges, price, np.int32(self.count), profit)
        )
        return profit


def plain_auction_prices(graph: Any, reverse: Any, price: Array, steps: list[float]) -> Array:
    """Return what `auction_prices` computes, in numpy."""
    price = np.minimum(price, graph.weight.max(initial=0.0))
    for step in steps:
        partner, owner = np.full(len(graph.start) - 1, -1), np.full(len(reverse.start) - 1, -1)
        _plain_bids(graph, price, partner, owner, step)
        profit = _plain_profit(graph, price)
        _plain_bids(reverse, profit, owner, partner, step)
        price = _plain_profit(reverse, profit)
    return price


def _plain_bids(graph: Any, price: Array, partner: Array, owner: Array, step: float) -> None:
    bidders, left = np.flatnonzero(partner < 0).tolist(), MAX_BIDS_PER_RECORD * len(partner)
    while bidders and len(bidders) <= left:
        left -= len(bidders)
        bids: dict[int, tuple[float, int]] = {}
        losers: list[int] = []
        for i in bidders:
            edges = slice(graph.start[i], graph.start[i + 1])
            gain = np.concatenate([graph.weight[edges] - price[graph.other[edges]], [0.0, 0.0]])
            best, second = -np.sort(-gain)[:2]
            if best > 0:
                j = int(graph.other[edges][gain.argmax()])
                bid = price[j] + min(best, best - second + step), i
                losers += [min(bid, bids[j])[1]] if j in bids else []
                bids[j] = max(bid, bids.get(j, bid))
        for j, (bid_price, i) in bids.items():
            if owner[j] >= 0:
                partner[owner[j]] = -1
                losers.append(int(owner[j]))
            partner[i], owner[j], price[j] = j, i, bid_price
        bidders = losers


def _plain_profit(graph: Any, price: Array) -> Array:
    gain, start = graph.weight - price[graph.other], graph.start
    return np.array([gain[start[i] : start[i + 1]].max(initial=0.0) for i in range(len(start) - 1)])
