"""Undominated points and linear optima of two numbers that are both better when smaller."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array


def undominated(first: Array, second: Array) -> Array:
    """True where no other point is at least as good in both numbers and better in one; equal points stand together.

    NaN is never undominated. O(n log n): sort by the first number, then keep a running minimum of the second.
    """
    kept = np.zeros(len(first), dtype=bool)
    order = np.lexsort((second, first))
    order = order[~(np.isnan(first) | np.isnan(second))[order]]
    if len(order) == 0:
        return kept
    x, y = first[order], second[order]
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))  # groups of equal x; y rises within a group
    group = np.cumsum(np.concatenate([[0], (x[1:] != x[:-1]).astype(int)]))
    least = y[starts]
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(least)[:-1]])
    first_group = np.arange(len(starts)) == 0
    ok = (least < best_before) | first_group
    kept[order] = (y == least[group]) & ok[group]
    return kept


def linear_optima(first: Array, second: Array) -> list[tuple[float, float, int]]:
    """Minima of first + a second as a goes from 0 to infinity: (from a, to a, index of the point).

    These are the corners of the lower left convex hull. Ties go to the point with the smaller second number, then to
    the lower index.  GKS (2003), section 5
    """
    corners = np.flatnonzero(undominated(first, second) & np.isfinite(first) & np.isfinite(second))
    corners = corners[np.argsort(first[corners], kind="stable")]  # first rises, second falls
    hull: list[int] = []
    breaks: list[float] = []
    for point in corners:
        if hull and first[point] == first[hull[-1]]:
            continue
        while hull:
            slope = (first[point] - first[hull[-1]]) / (second[hull[-1]] - second[point])
            if not breaks or slope > breaks[-1]:
                breaks.append(float(slope))
                break
            hull.pop()
            breaks.pop()
        hull.append(int(point))
        breaks = breaks[: len(hull) - 1]
    limits = [0.0, *breaks, float("inf")]
    return [(limits[i], limits[i + 1], point) for i, point in enumerate(hull)]
