"""Prices for a sparse assignment by an auction with epsilon scaling, in both directions.

A free record bids for its best target: it raises the price until the target is as good as its second best, plus epsilon.
The outbid record bids again. In the end each record is within epsilon of its best profit. A coarse epsilon moves demand
across the whole file with few bids; finer ones repair it locally (Bertsekas 1988). Targets that end free must cost nothing.
So after each phase they bid for records in the same way, with profits in the place of prices (Bertsekas and Castanon 1992).

The result is a start for `matching.match_free_records`, which makes it exact. Weights are whole numbers.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit, run_parts
from sdcmap.risk.linkage.graph import Graph, best_profit

FIRST_STEP, LAST_STEP = 0.2, 6e-5  # epsilon of the first and about the last phase, as shares of the range of weights
STEP_DIVISOR = 5.0  # from one phase to the next
BLOCK_RECORDS = 8_192  # that bid together; fewer free records bid in turn
RECORDS_PER_TASK = 1_024  # of a block, computed by one core at a time
MAX_BIDS_PER_RECORD = 300  # in a phase; what is still free then is left to the exact search


def epsilon_steps(weight: Array, *, warm: bool) -> list[float]:
    """Return the epsilon of each phase, at least 1; `warm`: start prices are known, so that only fine phases are needed."""
    spread = float(weight.max() - weight.min()) if len(weight) else 0.0
    steps, share = [], LAST_STEP * STEP_DIVISOR if warm else FIRST_STEP
    while share > LAST_STEP / 2:
        steps.append(max(1.0, np.rint(spread * share)))
        share /= STEP_DIVISOR
    return list(dict.fromkeys(steps))


@on_device
def auction_prices(graph: Graph, reverse: Graph, price: Array, steps: list[float]) -> Array:
    """Return prices near the optimum, starting from `price`.

    reverse : the same edges grouped by the record on the other side
    """
    n, m = len(graph.start) - 1, len(reverse.start) - 1
    for step in steps:
        partner, owner = np.full(n, -1), np.full(m, -1)
        price = price.copy()
        bid(graph, price, partner, owner, step, MAX_BIDS_PER_RECORD * n)
        profit = best_profit(graph, price)
        bid(reverse, profit, owner, partner, step, MAX_BIDS_PER_RECORD * m)
        price = best_profit(reverse, profit)
    return price


def bid(graph: Graph, price: Array, partner: Array, owner: Array, step: float, max_bids: int) -> None:
    """Let free records bid until none is left that can gain, or about `max_bids` are made; update in place.

    While many records are free, they bid in blocks: the records of a block bid at the same prices, on all cores, and the
    highest bid for a target wins. Few records bid in turn. The result does not depend on the number of cores.
    """
    free = np.flatnonzero(partner < 0)
    while len(free) > BLOCK_RECORDS and max_bids > 0:
        max_bids -= len(free)
        losers = [
            _bid_together(graph, price, partner, owner, step, free[start : start + BLOCK_RECORDS])
            for start in range(0, len(free), BLOCK_RECORDS)
        ]
        free = np.concatenate(losers)
    _bid_in_turn(graph, price, partner, owner, step, free, max_bids)


def _bid_together(graph: Graph, price: Array, partner: Array, owner: Array, step: float, block: Array) -> Array:
    """Let the records of `block` bid at the same prices. Return those without a target that may bid again."""
    target, offer = np.empty(len(block), dtype=np.int64), np.empty(len(block))
    starts = range(0, len(block), RECORDS_PER_TASK)
    run_parts(lambda start: _make_offers(graph, price, step, block, start, target, offer), starts)
    return _settle_offers(price, partner, owner, block, target, offer)


@jit
def _make_offers(
    graph: Graph, price: Array, step: float, block: Array, start: int, target: Array, offer: Array
) -> None:
    """Write the target and the bid of the records from `start` of the block."""
    for k in range(start, min(start + RECORDS_PER_TASK, len(block))):
        best, second, j = _two_best(graph, price, block[k])
        target[k] = j
        offer[k] = price[j] + min(best, best - second + step) if j >= 0 else 0.0


@jit
def _settle_offers(price: Array, partner: Array, owner: Array, block: Array, target: Array, offer: Array) -> Array:
    """Give each target to its highest bid, and of equal bids to the first. Return the records that lost."""
    losers, count = np.empty(len(block), dtype=np.int64), 0
    for k in range(len(block)):
        i, j = block[k], target[k]
        if j < 0:
            continue
        loser = i
        if offer[k] > price[j]:
            loser, price[j] = owner[j], offer[k]
            partner[i], owner[j] = j, i
        if loser >= 0:
            partner[loser] = -1
            losers[count] = loser
            count += 1
    return losers[:count]


@jit
def _bid_in_turn(
    graph: Graph, price: Array, partner: Array, owner: Array, step: float, free: Array, max_bids: int
) -> None:
    """Let the free records bid one after the other."""
    n = len(partner)
    queue = np.empty(n, dtype=np.int64)
    queue[: len(free)] = free
    first, length = 0, len(free)
    while length > 0 and max_bids > 0:
        i = queue[first]
        first = first + 1 if first + 1 < n else 0
        length -= 1
        best, second, j = _two_best(graph, price, i)
        max_bids -= 1
        if j < 0:
            continue
        price[j] += min(best, best - second + step)
        outbid = owner[j]
        partner[i], owner[j] = j, i
        if outbid >= 0:
            partner[outbid] = -1
            end = first + length
            queue[end if end < n else end - n] = outbid
            length += 1


@inner_jit
def _two_best(graph: Graph, price: Array, i: int) -> tuple[float, float, int]:
    """Return the best and the second best profit of record i, at least 0, and the target of the best (-1: none)."""
    best, second, target = 0.0, 0.0, -1
    for e in range(graph.start[i], graph.start[i + 1]):
        profit = graph.weight[e] - price[graph.other[e]]
        if profit > best:
            best, second, target = profit, best, graph.other[e]
        elif profit > second:
            second = profit
    return best, second, target


TIGHTENING_PASSES = 2
MAX_CHAIN = 20  # records that are outbid in a row; longer chains are left to the exact search


@jit
def bid_exactly(graph: Graph, price: Array, partner: Array, owner: Array) -> None:
    """Match free records by bids without epsilon, so that every pair is tight (Jonker and Volgenant 1987).

    A record whose best profits tie takes a free target among them, or stays free.
    """
    for _ in range(TIGHTENING_PASSES):
        for root in range(len(partner)):
            i, chain = root, 0
            while i >= 0 and partner[i] < 0 and chain < MAX_CHAIN:
                best, second, j = _two_best(graph, price, i)
                if j >= 0 and best == second:
                    j = _free_target(graph, price, owner, i, best)
                if j < 0:
                    break
                price[j] += best - second
                outbid = owner[j]
                partner[i], owner[j] = j, i
                if outbid >= 0:
                    partner[outbid] = -1
                i, chain = outbid, chain + 1


@inner_jit
def _free_target(graph: Graph, price: Array, owner: Array, i: int, profit: float) -> int:
    """Return a free target at which record i has this profit (-1: none)."""
    for e in range(graph.start[i], graph.start[i + 1]):
        if owner[graph.other[e]] < 0 and graph.weight[e] - price[graph.other[e]] == profit:
            return int(graph.other[e])
    return -1
