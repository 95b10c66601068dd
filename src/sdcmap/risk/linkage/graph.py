"""Sparse bipartite graphs: the candidate pairs of two files, with their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


class Graph(NamedTuple):
    """Edges grouped by the record on one side: those of record i are start[i] to start[i + 1]."""

    start: Array
    other: Array
    weight: Array


@jit
def reverse_graph(graph: Graph, m: int) -> Graph:
    """Return the same edges grouped by the record on the other side."""
    start = np.zeros(m + 1, dtype=np.int64)
    for j in graph.other:
        start[j + 1] += 1
    start = np.cumsum(start)
    next_slot = start.copy()
    other, weight = np.empty_like(graph.other), np.empty_like(graph.weight)
    for i in range(len(graph.start) - 1):
        for e in range(graph.start[i], graph.start[i + 1]):
            slot = next_slot[graph.other[e]]
            other[slot], weight[slot] = i, graph.weight[e]
            next_slot[graph.other[e]] += 1
    return Graph(start, other, weight)


@jit
def best_profit(graph: Graph, price: Array) -> Array:
    """Return u_i = max(0, max_j w_ij - v_j) for every record i."""
    profit = np.zeros(len(graph.start) - 1)
    for i in range(len(profit)):
        for e in range(graph.start[i], graph.start[i + 1]):
            profit[i] = max(profit[i], graph.weight[e] - price[graph.other[e]])
    return profit
