"""Classification and regression trees on binned predictors, grown to small leaves that values are drawn from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

MOST_BINS = 256  # of a numeric predictor


class Tree(NamedTuple):
    """The nodes, a parent before its children; `variable` is -1 at a leaf."""

    variable: Array  # what the node asks
    table: Array  # where its answers begin: goes_left[table + bin]
    left: Array
    right: Array
    start: Array  # the rows of the node: rows[start : start + size]
    size: Array
    goes_left: Array
    rows: Array


def bin_edges(x: Array) -> Array:
    """Bounds of at most MOST_BINS - 1 bins of numbers with about equally many each; the last bin is for NaN."""
    known = x[~np.isnan(x)]
    if len(known) == 0:
        return np.empty(0)
    distinct = np.unique(known)
    if len(distinct) < MOST_BINS:
        return distinct[1:]
    ranked = np.sort(known)
    return np.unique(ranked[np.arange(1, MOST_BINS - 1) * len(ranked) // (MOST_BINS - 1)])


def binned(x: Array, edges: Array) -> Array:
    """The bin of each number: how many of the edges it has reached; NaN has the last bin, len(edges) + 1."""
    reached = np.searchsorted(edges, x, side="right")
    return np.where(np.isnan(x), len(edges) + 1, reached).astype(np.int64)


def grow(bins: Array, sizes: Array, ordered: Array, y: Array, classes: int, leaf: int) -> Tree:
    """The tree of y on the binned predictors.

    bins : n x p; sizes : number of bins of each predictor; ordered : whether its bins have an order. classes : y is a
    code below it, and a split is judged by Gini's index; 0: y is a number, and it is judged by the sum of squares.
    leaf : fewest rows of a leaf. A node is split where that helps most, as long as it helps; the categories of a nominal
    predictor are put in the order of their mean y (of a code: of their share of the node's most frequent class).
    Breiman, Friedman, Olshen, Stone (1984), sections 4.2.2 and 8
    """
    code = y.astype(np.int64) if classes else np.zeros(len(y), dtype=np.int64)
    value = np.ones(len(y)) if classes else y.astype(np.float64)
    return _grow(np.ascontiguousarray(bins, dtype=np.int64), sizes, ordered, code, value, classes, leaf)


def leaves_of(tree: Tree, bins: Array) -> Array:
    """The leaf that each row falls into."""
    return _leaves(tree, np.ascontiguousarray(bins, dtype=np.int64))


def drawn_from(tree: Tree, bins: Array, y: Array, rng: Generator) -> Array:
    """For each row of `bins`, the y of a row drawn uniformly from its leaf."""
    leaf = leaves_of(tree, bins)
    place = (rng.random(len(bins)) * tree.size[leaf]).astype(np.int64)
    return y[tree.rows[tree.start[leaf] + place]]


@jit
def _leaves(tree: Tree, bins: Array) -> Array:
    leaf = np.zeros(len(bins), dtype=np.int64)
    for i in range(len(bins)):
        node = 0
        while tree.variable[node] >= 0:
            goes_left = tree.goes_left[tree.table[node] + bins[i, tree.variable[node]]]
            node = tree.left[node] if goes_left else tree.right[node]
        leaf[i] = node
    return leaf


@jit
def _grow(bins: Array, sizes: Array, ordered: Array, code: Array, value: Array, classes: int, leaf: int) -> Tree:
    n = len(code)
    most = 2 * max(n // leaf, 1) + 1
    variable, table = np.full(most, -1), np.zeros(most, dtype=np.int64)
    left, right = np.full(most, -1), np.full(most, -1)
    start, count = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    rows, moved = np.arange(n), np.empty(n, dtype=np.int64)
    widest = max(1, sizes.max()) if len(sizes) else 1
    sums = np.zeros((widest, max(classes, 1)))
    number = np.zeros(widest, dtype=np.int64)
    side = np.empty(widest, dtype=np.bool_)
    goes_left, filled = np.empty(1024, dtype=np.bool_), 0
    count[0] = n
    nodes, node = 1, 0
    while node < nodes:
        of = rows[start[node] : start[node] + count[node]]
        best = _best_split(bins, sizes, ordered, code, value, classes, leaf, of, sums, number, side)
        if best >= 0:
            while filled + sizes[best] > len(goes_left):
                goes_left = np.concatenate((goes_left, np.empty(len(goes_left), dtype=np.bool_)))
            variable[node], table[node] = best, filled
            goes_left[filled : filled + sizes[best]] = side[: sizes[best]]
            filled += sizes[best]
            to_left, to_right = 0, 0
            for row in of:
                if side[bins[row, best]]:
                    of[to_left] = row
                    to_left += 1
                else:
                    moved[to_right] = row
                    to_right += 1
            of[to_left:] = moved[:to_right]
            left[node], right[node] = nodes, nodes + 1
            start[nodes], count[nodes] = start[node], to_left
            start[nodes + 1], count[nodes + 1] = start[node] + to_left, to_right
            nodes += 2
        node += 1
    edges = variable[:nodes], table[:nodes], left[:nodes], right[:nodes]
    return Tree(*edges, start[:nodes], count[:nodes], goes_left, rows)


@jit
def _best_split(
    bins: Array, sizes: Array, ordered: Array, code: Array, value: Array, classes: int, leaf: int, of: Array,
    sums: Array, number: Array, side: Array,
) -> int:  # fmt: skip
    """The predictor that splits the rows `of` best, or -1; `side` tells of each of its bins whether it goes left."""
    n, width = len(of), max(classes, 1)
    if n < 2 * leaf:
        return -1
    middle = 0.0  # numbers are taken from the node's mean
    if classes == 0:
        for row in of:
            middle += value[row] / n
    total = np.zeros(width)
    for row in of:
        total[code[row]] += value[row] - middle
    commonest = np.argmax(total)
    if classes > 0 and total[commonest] == n:
        return -1
    worst = 0.0  # what the node has without a split: sum of squared sums over n
    for c in range(width):
        worst += total[c] ** 2 / n
    best, chosen = worst * (1 + 1e-9) + 1e-12, -1
    below = np.empty(width)
    for v in range(bins.shape[1]):
        sums[: sizes[v]] = 0.0
        number[: sizes[v]] = 0
        for row in of:
            at = bins[row, v]
            number[at] += 1
            sums[at, code[row]] += value[row] - middle
        met = np.flatnonzero(number[: sizes[v]])
        if not ordered[v]:
            means = np.empty(len(met))
            for i in range(len(met)):
                means[i] = sums[met[i], commonest] / number[met[i]]
            met = met[np.argsort(means, kind="mergesort")]
        below[:] = 0.0
        passed = 0
        for i in range(len(met) - 1):
            passed += number[met[i]]
            gain = 0.0
            for c in range(width):
                below[c] += sums[met[i], c]
                gain += below[c] ** 2 / passed + (total[c] - below[c]) ** 2 / (n - passed)
            if passed >= leaf and n - passed >= leaf and gain > best:
                best, chosen = gain, v
                side[: sizes[v]] = 2 * passed > n  # bins that no row of the node has go with the larger part
                if ordered[v]:
                    side[: met[i] + 1] = True
                    side[met[i] + 1 : sizes[v]] = False
                else:
                    side[met[: i + 1]] = True
                    side[met[i + 1 :]] = False
    return chosen
