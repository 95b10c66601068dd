"""Exact maximum-weight matching of a sparse bipartite graph, with the prices that prove it.

Edges have weights w > 0, relative to staying unmatched. Let u_i and v_j >= 0 be prices with u_i + v_j >= w_ij for every
edge. Their sum bounds the weight of any matching. A matching is optimal if matched edges are tight (u_i + v_j = w_ij) and
unmatched records have price 0. `match_free_records` matches free records along shortest paths and preserves these
conditions (Jonker & Volgenant 1987). It works on either side, so a search can start from any prices. In large files an
auction finds prices so near the optimum that few records are left to the search.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.risk.linkage.auction import auction_prices, bid_exactly, epsilon_steps
from sdcmap.risk.linkage.graph import Graph, best_profit, reverse_graph

MIN_RECORDS_FOR_AUCTION = 1_000  # smaller files are matched at once without one
WEIGHT_BITS = (
    39  # weights are rounded to whole numbers of this size, so that TIGHT_SLACK is less than 1 and sums are exact
)
TIGHT_SLACK = 1e-12  # relative to the largest weight; an edge with less slack counts as tight


class Matching(NamedTuple):
    """A matching: partners of both sides (-1: unmatched) and prices of both sides."""

    partner: Array
    owner: Array
    profit: Array
    price: Array

    @classmethod
    def from_prices(cls, n: int, price: Array) -> Matching:
        """Return the empty matching of n records at these prices of the other side."""
        return cls(np.full(n, -1), np.full(len(price), -1), np.zeros(n), np.maximum(price, 0.0))


def find_heaviest_matching(graph: Graph, m: int, start_from: Matching | None = None) -> Matching:
    """Return the heaviest matching of `graph` with m records on the other side.

    start_from : an earlier matching, whose prices and partners are a good start; optional
    """
    if len(graph.start) - 1 >= MIN_RECORDS_FOR_AUCTION and len(graph.weight):
        return _match_by_auction(graph, m, start_from)
    price = np.zeros(m) if start_from is None else start_from.price.copy()
    partner = np.full(len(graph.start) - 1, -1) if start_from is None else start_from.partner.copy()
    owner = np.full(m, -1)
    owner[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    return _complete(graph, price, partner, owner)


def _match_by_auction(graph: Graph, m: int, start_from: Matching | None) -> Matching:
    """Return the heaviest matching, from the prices of an auction, with weights rounded to whole numbers."""
    scale = 2.0 ** (WEIGHT_BITS - np.frexp(graph.weight.max())[1])
    whole = graph._replace(weight=np.rint(graph.weight * scale))
    price = np.zeros(m) if start_from is None else np.rint(start_from.price * scale)
    reverse = reverse_graph(whole, m)
    price = auction_prices(whole, reverse, price, epsilon_steps(whole.weight, warm=start_from is not None))
    partner, owner = np.full(len(graph.start) - 1, -1), np.full(m, -1)
    bid_exactly(whole, price, partner, owner)
    result = _complete(whole, price, partner, owner, reverse)
    return result._replace(profit=result.profit / scale, price=result.price / scale)


def _complete(graph: Graph, price: Array, partner: Array, owner: Array, reverse: Graph | None = None) -> Matching:
    """Return the heaviest matching, starting from prices and partners that are nearly right."""
    # Restore optimality for the given prices: recompute profits, then dissolve pairs whose edge is no longer tight.
    profit = best_profit(graph, price)
    release_loose(graph, profit, price, partner, owner)
    match_free_records(graph, profit, price, partner, owner)
    # A free record of the other side must have price 0. If one has not, run the same search from that side.
    if ((owner < 0) & (price > 0)).any():
        match_free_records(reverse or reverse_graph(graph, len(owner)), price, profit, owner, partner)
    return Matching(partner, owner, profit, price)


@jit
def release_loose(graph: Graph, profit: Array, price: Array, partner: Array, owner: Array) -> None:
    """Dissolve pairs whose edge is not tight."""
    for i in range(len(partner)):
        if partner[i] >= 0:
            tight = False
            for e in range(graph.start[i], graph.start[i + 1]):
                if graph.other[e] == partner[i]:
                    tight = profit[i] + price[partner[i]] - graph.weight[e] <= TIGHT_SLACK * graph.weight[e]
            if not tight:
                owner[partner[i]] = -1
                partner[i] = -1


@jit
def match_free_records(graph: Graph, profit: Array, price: Array, partner: Array, owner: Array) -> None:
    """Match each free record of positive profit, or reduce its profit to 0, along the path of least cost.

    Runs Dijkstra on the slacks u + v - w. A path ends at a free record of the other side, or at a matched record that
    becomes unmatched instead.
    """
    n, m = len(partner), len(owner)
    distance, is_final = np.full(m, np.inf), np.zeros(m, dtype=np.bool_)
    parent, reached = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    tree, depth = np.empty(n, dtype=np.int64), np.empty(n)
    at_hand = np.empty(m, dtype=np.int64)  # columns at the current distance, which need not go through the heap
    tiny = TIGHT_SLACK * graph.weight.max() if len(graph.weight) else 0.0
    for root in range(n):
        if partner[root] >= 0:
            continue
        # Prices may have risen since the profit was computed.
        profit[root] = 0.0
        for e in range(graph.start[root], graph.start[root + 1]):
            profit[root] = max(profit[root], graph.weight[e] - price[graph.other[e]])
        if profit[root] <= tiny:
            continue
        # numba infers the type of the heap from its first entry.
        heap = [(0.0, 0)]
        heap.pop()
        reached_count, members, at_hand_count, end = 0, 0, 0, -1
        i, base, unmatched, cheapest = root, 0.0, root, profit[root]
        while True:
            # Ending the path here would leave record i unmatched and lose its profit: a candidate for the cheapest end.
            tree[members], depth[members] = i, base
            members += 1
            if base + profit[i] < cheapest:
                unmatched, cheapest = i, base + profit[i]
            for e in range(graph.start[i], graph.start[i + 1]):
                j: Any = np.int64(graph.other[e])
                slack = profit[i] + price[j] - graph.weight[e]
                length = base + slack if slack > tiny else base
                if length < cheapest and length < distance[j]:
                    if distance[j] == np.inf:
                        reached[reached_count] = j
                        reached_count += 1
                    distance[j], parent[j] = length, i
                    if length > base:
                        heappush(heap, (length, j))
                    else:
                        at_hand[at_hand_count] = j
                        at_hand_count += 1
            # Take the nearest column that is not final: first those at the current distance, then from the heap.
            nearest = -1
            if at_hand_count > 0:
                at_hand_count -= 1
                nearest = at_hand[at_hand_count]
            while len(heap) > 0 and nearest < 0:
                _, j = heappop(heap)
                if not is_final[j]:
                    nearest = j
            if nearest < 0 or distance[nearest] >= cheapest:
                break
            # A free column ends the path; otherwise continue with the record that owns it.
            is_final[nearest] = True
            if owner[nearest] < 0:
                end, cheapest = nearest, distance[nearest]
                break
            i, base = owner[nearest], distance[nearest]
        # Update the prices: all edges stay feasible, and the edges of the path become tight.
        for k in range(members):
            profit[tree[k]] = max(0.0, profit[tree[k]] - (cheapest - depth[k]))
        for k in range(reached_count):
            if is_final[reached[k]]:
                price[reached[k]] += cheapest - distance[reached[k]]
            distance[reached[k]], is_final[reached[k]] = np.inf, False
        if end < 0:
            # The path ends at a record that becomes unmatched; its column is free for the rest of the path.
            end = partner[unmatched]
            partner[unmatched] = -1
            profit[unmatched] = 0.0
        # Walk back along the path and exchange partners.
        while end >= 0:
            i = parent[end]
            next_column = partner[i]
            partner[i], owner[end] = end, i
            end = -1 if i == root else next_column
