"""Classification and regression trees on binned predictors, with small leaves from which values are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

MAX_BINS = 256  # of a numeric predictor, with the bin for NaN


class Tree(NamedTuple):
    """The nodes, each parent before its children; `variable` is -1 at a leaf."""

    variable: Array  # the predictor of the split
    table: Array  # offset of the node in goes_left: goes_left[table + bin]
    left: Array
    right: Array
    start: Array  # the rows of the node: rows[start : start + size]
    size: Array
    goes_left: Array
    rows: Array


def bin_edges(x: Array) -> Array:
    """Return the bounds of at most MAX_BINS - 1 bins with about equally many values each; one more bin is for NaN."""
    known = x[~np.isnan(x)]
    if len(known) == 0:
        return np.empty(0)
    distinct = np.unique(known)
    if len(distinct) < MAX_BINS:
        return distinct[1:]
    known = np.sort(known)
    return np.unique(known[np.arange(1, MAX_BINS - 1) * len(known) // (MAX_BINS - 1)])


def assign_bins(x: Array, edges: Array) -> Array:
    """Return the bin of each number: how many edges it has reached. NaN has the last bin, len(edges) + 1."""
    bins = np.searchsorted(edges, x, side="right")
    return np.where(np.isnan(x), len(edges) + 1, bins).astype(np.int64)


def grow(
    bins: Array, sizes: Array, ordered: Array, y: Array, classes: int, leaf: int, tried: int = 0, seed: int = 0
) -> Tree:
    """Grow the tree of y on the binned predictors.  Breiman, Friedman, Olshen, Stone (1984), sections 4.2.2 and 8

    A node is split where the split helps most, as long as it helps. The categories of a nominal predictor are ordered by
    their mean y; if y is a code, by their share of the node's most frequent class.

    bins : n x p. sizes : number of bins of each predictor. ordered : whether its bins have an order.
    classes : number of codes of y, and splits are judged by Gini's index; 0 if y is a number, and splits are judged by
    the sum of squares. leaf : smallest number of rows of a leaf. tried : how many predictors are tried at each node, chosen
    at random from `seed`; 0: all.  Breiman (2001), section 4
    """
    code = y.astype(np.int64) if classes else np.zeros(len(y), dtype=np.int64)
    value = np.ones(len(y)) if classes else y.astype(np.float64)
    tried = tried or bins.shape[1]
    return _grow(np.ascontiguousarray(bins, dtype=np.int64), sizes, ordered, code, value, classes, leaf, tried, seed)


def find_leaves(tree: Tree, bins: Array) -> Array:
    """Return the leaf of each row."""
    return _leaves(tree, np.ascontiguousarray(bins, dtype=np.int64))


def draw_from_leaves(tree: Tree, bins: Array, y: Array, rng: Generator) -> Array:
    """Draw, for each row of `bins`, the y of a row of its leaf, uniformly."""
    leaf = find_leaves(tree, bins)
    position = (rng.random(len(bins)) * tree.size[leaf]).astype(np.int64)
    return y[tree.rows[tree.start[leaf] + position]]


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
def _grow(
    bins: Array,
    sizes: Array,
    ordered: Array,
    code: Array,
    value: Array,
    classes: int,
    leaf: int,
    tried: int,
    seed: int,
) -> Tree:
    n, state = len(code), np.uint64(seed)
    predictors = np.arange(bins.shape[1])
    most = 2 * max(n // leaf, 1) + 1  # nodes, at most
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
        if count[node] >= 2 * leaf and tried < len(predictors):
            state = _draw_first(predictors, tried, state)
        best = _best_split(bins, sizes, ordered, code, value, classes, leaf, of, predictors[:tried], sums, number, side)
        if best >= 0:
            while filled + sizes[best] > len(goes_left):
                goes_left = np.concatenate((goes_left, np.empty(len(goes_left), dtype=np.bool_)))
            variable[node], table[node] = best, filled
            goes_left[filled : filled + sizes[best]] = side[: sizes[best]]
            filled += sizes[best]
            # Partition the rows of the node in place: those that go left first, in their order.
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
def _draw_first(items: Array, count: int, state: np.uint64) -> np.uint64:
    """Move `count` random items to the front, and return the next state.  Steele, Lea, Flood (2014): SplitMix64"""
    for i in range(count):
        state = state + np.uint64(0x9E3779B97F4A7C15)
        bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        j = i + np.int64((bits ^ (bits >> np.uint64(31))) % np.uint64(len(items) - i))
        items[i], items[j] = items[j], items[i]
    return state


@jit
def _best_split(
    bins: Array,
    sizes: Array,
    ordered: Array,
    code: Array,
    value: Array,
    classes: int,
    leaf: int,
    of: Array,
    predictors: Array,
    sums: Array,
    number: Array,
    side: Array,
) -> int:
    """Return the predictor that splits the rows `of` best, or -1; write into `side` which of its bins go left."""
    n, width = len(of), max(classes, 1)
    if n < 2 * leaf:
        return -1
    middle = 0.0  # numbers are centered at the node's mean, against cancellation
    if classes == 0:
        for row in of:
            middle += value[row] / n
    total = np.zeros(width)
    for row in of:
        total[code[row]] += value[row] - middle
    commonest = np.argmax(total)
    if classes > 0 and total[commonest] == n:
        return -1
    worst = 0.0  # the criterion without a split: sum of squared sums over n
    for c in range(width):
        worst += total[c] ** 2 / n
    best, chosen = worst * (1 + 1e-9) + 1e-12, -1
    below = np.empty(width)
    for v in predictors:
        # Sum y over each bin, order the bins, and try every split between two of them.
        sums[: sizes[v]] = 0.0
        number[: sizes[v]] = 0
        for row in of:
            at = bins[row, v]
            number[at] += 1
            sums[at, code[row]] += value[row] - middle
        occupied = np.flatnonzero(number[: sizes[v]])
        if not ordered[v]:
            means = np.empty(len(occupied))
            for i in range(len(occupied)):
                means[i] = sums[occupied[i], commonest] / number[occupied[i]]
            occupied = occupied[np.argsort(means, kind="mergesort")]
        below[:] = 0.0
        passed = 0
        for i in range(len(occupied) - 1):
            passed += number[occupied[i]]
            gain = 0.0
            for c in range(width):
                below[c] += sums[occupied[i], c]
                gain += below[c] ** 2 / passed + (total[c] - below[c]) ** 2 / (n - passed)
            if passed >= leaf and n - passed >= leaf and gain > best:
                best, chosen = gain, v
                side[: sizes[v]] = 2 * passed > n  # bins without rows go with the larger part
                if ordered[v]:
                    side[: occupied[i] + 1] = True
                    side[occupied[i] + 1 : sizes[v]] = False
                else:
                    side[occupied[: i + 1]] = True
                    side[occupied[i + 1 :]] = False
    return chosen
