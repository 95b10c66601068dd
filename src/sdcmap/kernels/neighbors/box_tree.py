"""A KD-tree of boxes over the archive, which compiled loops traverse to count and to list distances.

The distance of a pair is z_ij = ||y_i - x_j|| / unit_i, computed in floating point exactly as written. A box of points is
counted or skipped as a whole where its corners decide. Every result equals that of the plain loop over all pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

LEAF_POINTS = 16  # points of a leaf box; at most twice as many
BOUND_SLACK = 1e-12  # relative; far more than the rounding error of a squared distance


class Tree(NamedTuple):
    """The archive x in the order of a balanced KD-tree. Node 1 is the root; node i has the children 2i and 2i + 1."""

    points: Array  # in tree order
    rows: Array  # the archive row of each point
    low: Array  # the box of each node: lower corner ...
    high: Array  # ... and upper corner
    start: Array  # the points of each node: from start ...
    stop: Array  # ... to before stop
    leaves: int

    @staticmethod
    def of(x: Array) -> Tree:
        """Build the tree of the points x, n x m."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        leaves = 1 << max(0, math.ceil(math.log2(max(1, len(x)) / (2 * LEAF_POINTS))))
        edges = np.arange(leaves + 1) * len(x) // leaves
        rows = _tree_order(x, edges)
        points = x[rows]
        start, stop = np.zeros((2, 2 * leaves), dtype=np.int64)
        low, high = np.empty((2, 2 * leaves, x.shape[1]))
        start[leaves:], stop[leaves:] = edges[:-1], edges[1:]
        low[leaves:] = np.minimum.reduceat(points, edges[:-1], axis=0)
        high[leaves:] = np.maximum.reduceat(points, edges[:-1], axis=0)
        for level in reversed(range(leaves.bit_length() - 1)):  # the nodes above the leaves, bottom up
            node = np.arange(1 << level, 2 << level)
            start[node], stop[node] = start[2 * node], stop[2 * node + 1]
            low[node] = np.minimum(low[2 * node], low[2 * node + 1])
            high[node] = np.maximum(high[2 * node], high[2 * node + 1])
        return Tree(points, rows, low, high, start, stop, leaves)


@jit
def _tree_order(x: Array, edges: Array) -> Array:
    """Return the rows in tree order: each node is split at the median of its widest axis."""
    order = np.arange(len(x))
    width = len(edges) - 1
    while width > 1:
        for first in range(0, len(edges) - 1, width):
            start, middle, stop = edges[first], edges[first + width // 2], edges[first + width]
            axis, widest = 0, -1.0
            for a in range(x.shape[1]):
                low, high = np.inf, -np.inf
                for k in range(start, stop):
                    low, high = min(low, x[order[k], a]), max(high, x[order[k], a])
                if high - low > widest:
                    axis, widest = a, high - low
            _split(x, order, axis, start, middle, stop)
        width //= 2
    return order


@inner_jit
def _split(x: Array, order: Array, axis: int, start: int, middle: int, stop: int) -> None:
    """Partition `order` from start to stop so that no value before `middle` exceeds one after it.  Hoare (1961), Find"""
    left, right = start, stop - 1
    while left < right:
        pivot = x[order[(left + right) // 2], axis]
        i, j = left, right
        while i <= j:
            while x[order[i], axis] < pivot:
                i += 1
            while x[order[j], axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            break


@inner_jit
def _squared_distance(y: Array, i: int, points: Array, j: int) -> float:
    total = 0.0
    for a in range(y.shape[1]):
        step = y[i, a] - points[j, a]
        total += step * step
    return total


@inner_jit
def _box_distances(y: Array, i: int, low: Array, high: Array, node: int) -> tuple[float, float]:
    """Return the smallest and the largest squared distance of y_i to a point of a box."""
    least, largest = 0.0, 0.0
    for a in range(y.shape[1]):
        up, down = low[node, a] - y[i, a], y[i, a] - high[node, a]
        outside, across = max(up, down, 0.0), max(-up, -down)
        least += outside * outside
        largest += across * across
    return least, largest


@inner_jit
def _center_distance(y: Array, i: int, low: Array, high: Array, node: int) -> float:
    """Return the squared distance of y_i to the center of a box."""
    total = 0.0
    for a in range(y.shape[1]):
        step = y[i, a] - 0.5 * (low[node, a] + high[node, a])
        total += step * step
    return total


@inner_jit
def _band(bound: float, unit: float) -> tuple[float, float]:
    """Return the squared distances surely below and surely above a bound on z; between them z itself must be computed."""
    square = (bound * unit) * (bound * unit)
    return square * (1 - BOUND_SLACK), square * (1 + BOUND_SLACK)


@jit
def count_within(
    y: Array, unit: Array, visit: Array, tree: Tree, near: Array, far: Array, most: int, below: Array, between: Array
) -> None:
    """Count #{j: z_ij < near_i} and #{j: near_i <= z_ij < far_i} for each row i; stop when both together reach `most`."""
    points, _, low, high, start, stop, leaves = tree
    stack = np.empty(128, dtype=np.int64)
    for i in visit:
        near_least, near_most = _band(near[i], unit[i])
        far_least, far_most = _band(far[i], unit[i])
        inner, outer, depth = 0, 0, 1
        stack[0] = 1
        while depth > 0 and inner + outer < most:
            depth -= 1
            node = stack[depth]
            least, largest = _box_distances(y, i, low, high, node)
            # Skip or count a whole box if its corners decide; open it otherwise.
            if least > far_most:
                continue
            if largest < near_least:
                inner += stop[node] - start[node]
            elif least > near_most and largest < far_least:
                outer += stop[node] - start[node]
            elif node >= leaves:
                for j in range(start[node], stop[node]):
                    square = _squared_distance(y, i, points, j)
                    if square < near_least:
                        inner += 1
                    elif square <= far_most:
                        z = np.sqrt(square) / unit[i]
                        if z < near[i]:
                            inner += 1
                        elif z < far[i]:
                            outer += 1
            else:
                first = _center_distance(y, i, low, high, 2 * node) <= _center_distance(y, i, low, high, 2 * node + 1)
                stack[depth] = 2 * node + first  # visit the nearer child first: counts reach `most` sooner
                stack[depth + 1] = 2 * node + 1 - first
                depth += 2
        below[i], between[i] = inner, outer


@jit
def write_between(
    y: Array, unit: Array, visit: Array, tree: Tree, link: Array, near: float, far: float, offset: Array, out: Array
) -> None:
    """Write the distances of row i in [near, far), except that of its link, from out[offset_i] on."""
    points, rows, low, high, start, stop, leaves = tree
    stack = np.empty(128, dtype=np.int64)
    for i in visit:
        near_least, _ = _band(near, unit[i])
        _, far_most = _band(far, unit[i])
        at, depth = offset[i], 1
        stack[0] = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            least, largest = _box_distances(y, i, low, high, node)
            if least > far_most or largest < near_least:
                continue
            if node < leaves:
                stack[depth], stack[depth + 1] = 2 * node, 2 * node + 1
                depth += 2
                continue
            for j in range(start[node], stop[node]):
                z = np.sqrt(_squared_distance(y, i, points, j)) / unit[i]
                if near <= z < far and rows[j] != link[i]:
                    out[at] = z
                    at += 1
