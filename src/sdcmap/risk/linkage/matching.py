"""The heaviest one-to-one matching of a sparse bipartite graph, exactly, with the prices that prove it.

Edges have weights w > 0 over staying alone. Prices u_i, v_j >= 0 with u_i + v_j >= w_ij for every edge bound the weight of
any matching by their sum; a matching is the heaviest when matched edges are tight (u_i + v_j = w_ij) and who is alone has
price 0. `settle` brings lone records in along shortest paths and keeps the rest so (Jonker & Volgenant 1987); it serves
either side, so that a search goes on from any prices. On candidates with many ties, auctions before it gained nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

SLACK = 1e-12  # of the largest weight: an edge this near to tight is tight


class Graph(NamedTuple):
    """Edges by the record on one side: those of i are start[i] to start[i + 1]."""

    start: Array
    other: Array
    weight: Array


class Matching(NamedTuple):
    """A matching: partners of both sides (-1: alone), prices of both sides."""

    partner: Array
    taken_by: Array
    profit: Array
    price: Array


def heaviest(graph: Graph, m: int, before: Matching | None = None) -> Matching:
    """The heaviest matching of `graph` with m records on the other side, from earlier prices and partners if given."""
    price = np.zeros(m) if before is None else before.price.copy()
    partner = np.full(len(graph.start) - 1, -1) if before is None else before.partner.copy()
    taken_by = np.full(m, -1)
    taken_by[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    profit = best_profit(graph, price)
    release_loose(graph, profit, price, partner, taken_by)
    settle(graph, profit, price, partner, taken_by)
    if ((taken_by < 0) & (price > 0)).any():
        settle(reversed_graph(graph, m), price, profit, taken_by, partner)
    return Matching(partner, taken_by, profit, price)


@jit
def reversed_graph(graph: Graph, m: int) -> Graph:
    """The same edges by the record on the other side."""
    start = np.zeros(m + 1, dtype=np.int64)
    for j in graph.other:
        start[j + 1] += 1
    start = np.cumsum(start)
    at = start.copy()
    other, weight = np.empty_like(graph.other), np.empty_like(graph.weight)
    for i in range(len(graph.start) - 1):
        for e in range(graph.start[i], graph.start[i + 1]):
            place = at[graph.other[e]]
            other[place], weight[place] = i, graph.weight[e]
            at[graph.other[e]] += 1
    return Graph(start, other, weight)


@jit
def best_profit(graph: Graph, price: Array) -> Array:
    """u_i = max(0, max_j w_ij - v_j)."""
    profit = np.zeros(len(graph.start) - 1)
    for i in range(len(profit)):
        for e in range(graph.start[i], graph.start[i + 1]):
            profit[i] = max(profit[i], graph.weight[e] - price[graph.other[e]])
    return profit


@jit
def release_loose(graph: Graph, profit: Array, price: Array, partner: Array, taken_by: Array) -> None:
    """Part the pairs whose edge is not tight."""
    for i in range(len(partner)):
        if partner[i] >= 0:
            tight = False
            for e in range(graph.start[i], graph.start[i + 1]):
                if graph.other[e] == partner[i]:
                    tight = profit[i] + price[partner[i]] - graph.weight[e] <= SLACK * graph.weight[e]
            if not tight:
                taken_by[partner[i]] = -1
                partner[i] = -1


@jit
def settle(graph: Graph, profit: Array, price: Array, partner: Array, taken_by: Array) -> None:
    """Bring each lone record of positive profit to a partner, or its profit to 0, along the path that costs least
    (Dijkstra on the slacks u + v - w); a path may also leave another record alone in its stead."""
    n, m = len(partner), len(taken_by)
    far, closed = np.full(m, np.inf), np.zeros(m, dtype=np.bool_)
    parent, touched = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    tree, depth = np.empty(n, dtype=np.int64), np.empty(n)
    at_hand = np.empty(m, dtype=np.int64)  # at no more distance than the last: no need to go through the heap
    tiny = SLACK * graph.weight.max() if len(graph.weight) else 0.0
    for root in range(n):
        if partner[root] >= 0:
            continue
        profit[root] = 0.0  # prices may have risen since
        for e in range(graph.start[root], graph.start[root + 1]):
            profit[root] = max(profit[root], graph.weight[e] - price[graph.other[e]])
        if profit[root] <= tiny:
            continue
        heap = [(0.0, 0)]
        heap.pop()
        touches, members, hands, end = 0, 0, 0, -1
        i, base, alone, cheapest = root, 0.0, root, profit[root]
        while True:
            tree[members], depth[members] = i, base
            members += 1
            if base + profit[i] < cheapest:
                alone, cheapest = i, base + profit[i]
            for e in range(graph.start[i], graph.start[i + 1]):
                j: Any = np.int64(graph.other[e])
                slack = profit[i] + price[j] - graph.weight[e]
                there = base + slack if slack > tiny else base
                if there < cheapest and there < far[j]:
                    if far[j] == np.inf:
                        touched[touches] = j
                        touches += 1
                    far[j], parent[j] = there, i
                    if there > base:
                        heappush(heap, (there, j))
                    else:
                        at_hand[hands] = j
                        hands += 1
            nearest = -1
            if hands > 0:
                hands -= 1
                nearest = at_hand[hands]
            while len(heap) > 0 and nearest < 0:
                _, j = heappop(heap)
                if not closed[j]:
                    nearest = j
            if nearest < 0 or far[nearest] >= cheapest:
                break
            closed[nearest] = True
            if taken_by[nearest] < 0:
                end, cheapest = nearest, far[nearest]
                break
            i, base = taken_by[nearest], far[nearest]
        for k in range(members):
            profit[tree[k]] = max(0.0, profit[tree[k]] - (cheapest - depth[k]))
        for k in range(touches):
            if closed[touched[k]]:
                price[touched[k]] += cheapest - far[touched[k]]
            far[touched[k]], closed[touched[k]] = np.inf, False
        if end < 0:
            end = partner[alone]
            partner[alone] = -1
            profit[alone] = 0.0
        while end >= 0:
            i = parent[end]
            after = partner[i]
            partner[i], taken_by[end] = end, i
            end = -1 if i == root else after
