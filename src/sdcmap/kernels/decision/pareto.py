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
    new = np.concatenate([[True], x[1:] != x[:-1]])  # groups of equal x; y rises within a group
    group, least = np.cumsum(new) - 1, y[new]
    better = np.concatenate([[True], least[1:] < np.minimum.accumulate(least)[:-1]])  # than all groups before
    kept[order] = (y == least[group]) & better[group]
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


# The area that points dominate, and what more points would add to it. Both numbers are better when smaller; 1 is the
# reference, beyond which nothing counts, and 0 the best there is, so that the area is a share of the whole.
#
# Zitzler, Thiele (1998), section 3: the size of the space covered.


def hypervolume(first: Array, second: Array) -> float:
    """The share of the unit square that some point dominates; NaN dominates nothing.

    >>> hypervolume(np.array([0.5, 0.25]), np.array([0.5, 0.75]))
    0.3125
    """
    x, y = corners(first, second)
    return float(np.sum((1 - x) * (np.concatenate([[1.0], y[:-1]]) - y)))


def corners(first: Array, second: Array) -> tuple[Array, Array]:
    """The undominated points inside the unit square, once each, the first number rising; what is below 0 counts as 0."""
    kept = undominated(first, second) & (first < 1) & (second < 1)
    x, y = np.maximum(first[kept], 0.0), np.maximum(second[kept], 0.0)
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    falls = np.concatenate([[True], y[1:] < np.minimum.accumulate(y)[:-1]]) if len(y) else np.zeros(0, dtype=bool)
    return x[falls], y[falls]


def gains(first: Array, second: Array, front: tuple[Array, Array]) -> Array:
    """What each point alone would add to the area of a front; NaN adds nothing.

    >>> gains(np.array([0.25, 0.9]), np.array([0.25, 0.9]), (np.array([0.5]), np.array([0.5])))
    array([0.3125, 0.    ])
    """
    x, y = corners(*front)
    before, added = hypervolume(x, y), np.zeros(len(first))
    beaten = ((x <= np.maximum(first, 0.0)[:, None]) & (y <= np.maximum(second, 0.0)[:, None])).any(axis=1)
    for place in np.flatnonzero((first < 1) & (second < 1) & ~beaten):  # the others leave the corners as they are
        area = hypervolume(np.append(x, first[place]), np.append(y, second[place]))
        added[place] = max(0.0, area - before)
    return added


def picked(first: Array, second: Array, count: int, front: tuple[Array, Array]) -> list[int]:
    """At most so many points, each time the one that adds most to the area of the front and of those picked before; of
    equals the one that comes first. Points that add nothing are taken last, those nearest to the best point first; NaN
    never is."""
    left = [place for place in range(len(first)) if not (np.isnan(first[place]) or np.isnan(second[place]))]
    chosen: list[int] = []
    while left and len(chosen) < count:
        gain = gains(first[left], second[left], front)
        distance = np.hypot(first[left], second[left])
        best = left[int(np.lexsort((distance, -gain))[0])]
        chosen.append(best)
        left.remove(best)
        front = np.append(front[0], first[best]), np.append(front[1], second[best])
    return chosen
