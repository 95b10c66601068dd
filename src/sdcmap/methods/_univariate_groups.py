"""Groups of records that are neighbours in one order, and the value that a group takes."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array, with_fixed_signs
from sdcmap.kernels.jit import jit


def ranked_groups(order: Array, size: int) -> Array:
    """The group of each record: the first `size` of the order, the next `size`, ...; what remains joins the last one."""
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.minimum(np.arange(len(order)) // size, len(order) // size - 1)
    return group


def optimal_groups(x: Array, size: int) -> Array:
    """The groups of at least `size` values that have the least sum of squares within groups.

    Hansen, Mukherjee (2003): an optimal group holds neighbours in the order of x, `size` to 2 size - 1 of them, so the
    least sum is a shortest path over the sorted values, found in n size steps.
    """
    order = np.argsort(x, kind="stable")
    begins = _shortest_path(x[order], size)
    group = np.empty(len(x), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    return group


@jit
def _shortest_path(x: Array, size: int) -> Array:
    """True where a group of the sorted values x begins."""
    n = len(x)
    least = np.full(n + 1, np.inf)  # least sum of squares of the first i values
    least[0] = 0.0
    before = np.zeros(n + 1, dtype=np.int64)
    for end in range(size, n + 1):
        mean, squares = 0.0, 0.0
        for count in range(1, min(end, 2 * size - 1) + 1):  # Welford's update, one value more at the low end
            gap = x[end - count] - mean
            mean += gap / count
            squares += gap * (x[end - count] - mean)
            if count >= size and least[end - count] + squares < least[end]:
                least[end] = least[end - count] + squares
                before[end] = end - count
    begins = np.zeros(n, dtype=np.bool_)
    end = n
    while end > 0:
        end = before[end]
        begins[end] = True
    return begins


# ---- the value of a group -------------------------------------------------------------------------------------
def group_means(x: Array, group: Array, weights: Array | None = None) -> Array:
    """The (weighted) mean of each record's group; equal values have their value as mean, to the last digit."""
    first = _firsts(x, group)[group]
    total = np.bincount(group, (x - first) * (1.0 if weights is None else weights))
    share = np.bincount(group, weights)
    means: Array = first + (total / share)[group]
    return means


def group_medians(x: Array, group: Array, *, between: bool = True) -> Array:
    """The median of each record's group; of an even number the mean of the middle two, or the lower one of them."""
    order = np.lexsort((x, group))
    count = np.bincount(group)
    start = np.cumsum(count) - count
    ranked = x[order]
    lower = ranked[start + (count - 1) // 2]
    medians: Array = lower + (ranked[start + count // 2] - lower) / 2 if between else lower
    return medians[group]


def group_modes(x: Array, group: Array) -> Array:
    """The most frequent value of each record's group; among equally frequent ones the least."""
    order = np.lexsort((x, group))
    ranked, of = x[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])]))
    length = np.diff(np.concatenate([starts, [len(x)]]))
    best = np.lexsort((-length, of[starts]))  # stable: the least value comes first among equal lengths
    leads = np.concatenate([[True], np.diff(of[starts][best]) > 0])
    modes: Array = ranked[starts[best[leads]]]
    return modes[group]


def _firsts(x: Array, group: Array) -> Array:
    """A value of each group."""
    first = np.empty(int(group.max()) + 1, dtype=x.dtype)
    first[group] = x
    return first


def first_component(z: Array) -> Array:
    """The scores of the first principal component of standardised columns, its largest loading positive."""
    scores: Array = z @ with_fixed_signs(np.linalg.eigh(z.T @ z)[1])[:, -1]
    return scores
