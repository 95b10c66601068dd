"""The best full assignment of a square score matrix, finished from prices that are nearly right.

The total is that of scipy's `linear_sum_assignment`, which starts from nothing. Any prices will do as a start, because in a
square matrix every column is taken in the end (Jonker & Volgenant 1987).
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

ROUNDING = 1e-13  # of a score and a price: a pair this near to its best is there


def finished(score: Array, partner: Array, price: Array) -> tuple[Array, Array]:
    """The best assignment and its prices, from partners of some rows (-1: none) and prices of all columns."""
    partner, price = partner.astype(np.int64), price.astype(float)
    taken_by = np.full(len(price), -1)
    taken_by[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    finish(score, partner, taken_by, price)
    return partner, price


@jit
def finish(score: Array, partner: Array, taken_by: Array, price: Array) -> None:
    """Part the pairs that are not at their best, and bring every lone row in.

    From no partners and prices of 0 it may have more columns than rows.
    """
    n, m = score.shape
    for i in range(n):
        if partner[i] >= 0:
            best = -np.inf
            for j in range(m):
                best = max(best, score[i, j] - price[j])
            own = score[i, partner[i]]
            if own - price[partner[i]] < best - ROUNDING * (abs(own) + price[partner[i]]):
                taken_by[partner[i]] = -1
                partner[i] = -1
    far, parent = np.empty(m), np.empty(m, dtype=np.int64)
    columns = np.empty(m, dtype=np.int64)
    for i in range(n):
        if partner[i] < 0:
            _augment(score, partner, taken_by, price, i, far, parent, columns)


@inner_jit
def _augment(
    score: Array, partner: Array, taken_by: Array, price: Array, root: int, far: Array, parent: Array, columns: Array
) -> None:
    """Bring `root` in along the path that loses least (Dijkstra over columns), and raise the prices on it."""
    m = score.shape[1]
    for j in range(m):
        columns[j] = j
        far[j] = price[j] - score[root, j]
        parent[j] = root
    ready, scanned, level, end = 0, 0, 0.0, -1  # columns: scanned, then those at `level`, then the others
    while end < 0:
        if scanned == ready:
            level = far[columns[ready]]
            for k in range(ready, m):
                j = columns[k]
                if far[j] <= level:
                    if far[j] < level:
                        ready, level = scanned, far[j]
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
            for k in range(scanned, ready):
                if taken_by[columns[k]] < 0:
                    end = columns[k]
                    break
            if end >= 0:
                break
        column = columns[scanned]
        scanned += 1
        i = taken_by[column]
        base = level - (price[column] - score[i, column])
        row = score[i]
        for k in range(ready, m):
            j = columns[k]
            there = base + price[j] - row[j]
            if there < far[j]:
                far[j], parent[j] = there, i
                if there <= level:
                    if taken_by[j] < 0:
                        end = j
                        break
                    columns[k], columns[ready] = columns[ready], j
                    ready += 1
        if end >= 0:
            break
    for k in range(scanned):
        j = columns[k]
        price[j] += level - far[j]
    while True:
        i = parent[end]
        after = partner[i]
        partner[i], taken_by[end] = end, i
        if i == root:
            break
        end = after
