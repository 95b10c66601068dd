"""Undominated points, linear optima and hypervolumes of two numbers that are both better when smaller."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array


def is_undominated(first: Array, second: Array) -> Array:
    """Return True for each point that no other point dominates.

    A point dominates another if it is at least as good in both numbers and better in one; equal points do not dominate
    each other. A point with NaN is never undominated. O(n log n).
    """
    result = np.zeros(len(first), dtype=bool)
    order = np.lexsort((second, first))
    order = order[~(np.isnan(first) | np.isnan(second))[order]]
    if len(order) == 0:
        return result
    x, y = first[order], second[order]
    # Within a group of equal x only the smallest y can be undominated, and only if it is below all groups before.
    starts = np.concatenate([[True], x[1:] != x[:-1]])
    group, least = np.cumsum(starts) - 1, y[starts]
    better = np.concatenate([[True], least[1:] < np.minimum.accumulate(least)[:-1]])
    result[order] = (y == least[group]) & better[group]
    return result


def linear_optima(first: Array, second: Array) -> list[tuple[float, float, int]]:
    """Return the minima of first + a second as a goes from 0 to infinity: (from a, to a, index of the point).

    These are the corners of the lower left convex hull. Ties go to the point with the smaller second number, then to
    the lower index.  GKS (2003), section 5
    """
    corners = np.flatnonzero(is_undominated(first, second) & np.isfinite(first) & np.isfinite(second))
    corners = corners[np.argsort(first[corners], kind="stable")]  # first rises, second falls
    hull: list[int] = []
    breaks: list[float] = []
    for point in corners:
        if hull and first[point] == first[hull[-1]]:
            continue
        # Drop corners of the hull that are no longer convex: the break with the new point must exceed the last one.
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


# The hypervolume: the area that points dominate. Both numbers are better when smaller; 0 is the best possible value and 1
# the reference, beyond which nothing counts, so the area is a share of the unit square.
#
# Zitzler, Thiele (1998), section 3: the size of the space covered.


def hypervolume(first: Array, second: Array) -> float:
    """Return the share of the unit square that some point dominates; points with NaN dominate nothing.

    >>> hypervolume(np.array([0.5, 0.25]), np.array([0.5, 0.75]))
    0.3125
    """
    # Corners descend from left to right: each adds the strip between its height and that of the corner before.
    x, y = corners(first, second)
    return float(np.sum((1 - x) * (np.concatenate([[1.0], y[:-1]]) - y)))


def corners(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the distinct undominated points inside the unit square, by ascending first number.

    Negative numbers count as 0.
    """
    inside = is_undominated(first, second) & (first < 1) & (second < 1)
    x, y = np.maximum(first[inside], 0.0), np.maximum(second[inside], 0.0)
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    falls = np.concatenate([[True], y[1:] < np.minimum.accumulate(y)[:-1]]) if len(y) else np.zeros(0, dtype=bool)
    return x[falls], y[falls]


def hypervolume_gains(first: Array, second: Array, front: tuple[Array, Array]) -> Array:
    """Return what each point on its own would add to the hypervolume of a front; points with NaN add nothing.

    >>> hypervolume_gains(np.array([0.25, 0.9]), np.array([0.25, 0.9]), (np.array([0.5]), np.array([0.5])))
    array([0.3125, 0.    ])
    """
    x, y = corners(*front)
    before, gain = hypervolume(x, y), np.zeros(len(first))
    beaten = ((x <= np.maximum(first, 0.0)[:, None]) & (y <= np.maximum(second, 0.0)[:, None])).any(axis=1)
    for point in np.flatnonzero((first < 1) & (second < 1) & ~beaten):  # the others do not change the corners
        area = hypervolume(np.append(x, first[point]), np.append(y, second[point]))
        gain[point] = max(0.0, area - before)
    return gain


def pick_by_hypervolume(first: Array, second: Array, count: int, front: tuple[Array, Array]) -> list[int]:
    """Pick at most `count` points, one after the other, each time the one that adds most to the hypervolume.

    The hypervolume is that of the front and of the points picked before. Ties go to the point nearest to (0, 0), then to
    the lower index, so points that add nothing come last. Points with NaN are never picked.
    """
    left = [point for point in range(len(first)) if not (np.isnan(first[point]) or np.isnan(second[point]))]
    chosen: list[int] = []
    while left and len(chosen) < count:
        gain = hypervolume_gains(first[left], second[left], front)
        distance = np.hypot(first[left], second[left])
        best = left[int(np.lexsort((distance, -gain))[0])]
        chosen.append(best)
        left.remove(best)
        front = np.append(front[0], first[best]), np.append(front[1], second[best])
    return chosen
