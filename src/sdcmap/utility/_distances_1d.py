"""Distances between two distributions of one number, each a sample with weights."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


def in_order(x: Array, weights: Array | None) -> tuple[Array, Array]:
    """The numbers rising, with the weight of each; without weights, ones."""
    if weights is None:
        return np.sort(x), np.ones(len(x))
    order = np.argsort(x, kind="stable")
    return x[order], weights[order]


@jit
def distribution_distances(x: Array, w: Array, y: Array, v: Array) -> tuple[float, float]:
    """Of two samples in order with weights w and v: sup |F - G| (Kolmogorov-Smirnov) and the integral of |F - G|, which
    is the Wasserstein distance of order 1.  Vallender (1974)"""
    total_x, total_y = w.sum(), v.sum()
    i, j = 0, 0
    f, g, gap = 0.0, 0.0, 0.0
    largest, area = 0.0, 0.0
    here = 0.0
    while i < len(x) or j < len(y):
        at = x[i] if j == len(y) or (i < len(x) and x[i] <= y[j]) else y[j]
        area += gap * (at - here) if gap > 0 else 0.0
        here = at
        while i < len(x) and x[i] == at:
            f += w[i]
            i += 1
        while j < len(y) and y[j] == at:
            g += v[j]
            j += 1
        gap = abs(f / total_x - g / total_y)
        if i == len(x) and j == len(y):
            gap = 0.0
        largest = max(largest, gap)
    return largest, area
