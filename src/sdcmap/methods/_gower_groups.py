"""Groups of near records: of mixed kinds by Gower's distance (MDAV), and of one number."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array, with_fixed_signs
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import jit


@on_device
def gower_groups(numbers: Array, codes: Array, size: int, costs_of_codes: Array | None = None) -> Array:
    """The group of each record: groups of `size`, the last one of `size` to 2 size - 1.

    numbers : n x p, each column divided by its range; codes : n x q of nominal variables, 0, 1, ...
    d(i, l) = sum_j |x_ij - x_lj| + #{j: c_ij != c_lj}, which is Gower's distance times the number of variables.
    price : what a different code of each nominal variable costs in place of 1.
    The steps are those of MDAV; the center of mixed records has the mean of each number and the most frequent code of
    each nominal variable (the least among equally frequent ones). Among equal distances the first record is taken.
    Gower (1971); Domingo-Ferrer, Torra (2005), section 4
    """
    width = int(codes.max(initial=0)) + 1
    counts = np.array([np.bincount(column, minlength=width) for column in codes.T], dtype=np.int64).reshape(-1, width)
    group = np.full(len(codes), -1, dtype=np.int64)
    costs = (
        np.ones(codes.shape[1]) if costs_of_codes is None else np.ascontiguousarray(costs_of_codes, dtype=np.float64)
    )
    _mdav_gower(numbers.copy(), codes.astype(np.int64, order="C"), costs, size, numbers.sum(axis=0), counts, group)
    return group


@jit
def _mdav_gower(x: Array, c: Array, costs: Array, size: int, total: Array, counts: Array, group: Array) -> None:
    """x, c : the records left, in file order; they close up as records leave."""
    left, group_number = len(c), 0
    row = np.arange(left)
    distance = np.empty(left)
    middle = np.empty(c.shape[1], dtype=np.int64)
    while left >= 2 * size:
        for j in range(len(middle)):
            middle[j] = np.argmax(counts[j])
        _distances(x, c, costs, left, total / left, middle, distance)
        r = int(np.argmax(distance[:left]))
        r_numbers, r_codes = x[r].copy(), c[r].copy()
        left = _take_group(x, c, costs, row, left, r, size, total, counts, distance, group, group_number)
        group_number += 1
        if left >= 2 * size:
            _distances(x, c, costs, left, r_numbers, r_codes, distance)
            s = int(np.argmax(distance[:left]))
            left = _take_group(x, c, costs, row, left, s, size, total, counts, distance, group, group_number)
            group_number += 1
    for i in range(left):
        group[row[i]] = group_number


@jit
def _distances(x: Array, c: Array, costs: Array, left: int, numbers: Array, codes: Array, distance: Array) -> None:
    for i in range(left):
        total = 0.0
        for j in range(x.shape[1]):
            total += abs(x[i, j] - numbers[j])
        for j in range(c.shape[1]):
            if c[i, j] != codes[j]:
                total += costs[j]
        distance[i] = total


@jit
def _take_group(
    x: Array, c: Array, costs: Array, row: Array, left: int, r: int, size: int, total: Array, counts: Array,
    distance: Array, group: Array, group_number: int,
) -> int:  # fmt: skip
    """Make one group of record r and its size - 1 nearest; returns how many records are left."""
    _distances(x, c, costs, left, x[r].copy(), c[r].copy(), distance)
    distance[r] = -1.0
    for _ in range(size):
        near = np.argmin(distance[:left])
        distance[near] = np.inf
        group[row[near]] = group_number
        total -= x[near]
        for j in range(c.shape[1]):
            counts[j, c[near, j]] -= 1
    remaining = 0
    for i in range(left):
        if group[row[i]] < 0:
            row[remaining] = row[i]
            for j in range(x.shape[1]):
                x[remaining, j] = x[i, j]
            for j in range(c.shape[1]):
                c[remaining, j] = c[i, j]
            remaining += 1
    return remaining


# Groups of records that are neighbors in one order, and the value that a group takes.


def ranked_groups(x: Array, size: int) -> Array:
    """The group of each record: the `size` least values, the next `size`, ...; what remains joins the last one."""
    group = np.empty(len(x), dtype=np.int64)
    group[np.argsort(x, kind="stable")] = np.minimum(np.arange(len(x)) // size, len(x) // size - 1)
    return group


def optimal_groups(x: Array, size: int) -> Array:
    """The groups of at least `size` values that have the least sum of squares within groups.

    Hansen, Mukherjee (2003): an optimal group holds neighbors in the order of x, `size` to 2 size - 1 of them, so the
    least sum is a shortest path over the sorted values, found in n size steps.
    """
    order = np.argsort(x, kind="stable")
    group = np.empty(len(x), dtype=np.int64)
    group[order] = np.cumsum(_shortest_path(x[order], size)) - 1
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
    one = np.empty(int(group.max()) + 1, dtype=x.dtype)  # a value of each group
    one[group] = x
    first = one[group]
    total = np.bincount(group, (x - first) * (1.0 if weights is None else weights))
    return np.asarray(first + (total / np.bincount(group, weights))[group])


def group_medians(x: Array, group: Array, *, between: bool = True) -> Array:
    """The median of each record's group; of an even number the mean of the middle two, or the lower one of them."""
    order = np.lexsort((x, group))
    count = np.bincount(group)
    start = np.cumsum(count) - count
    ranked = x[order]
    lower = ranked[start + (count - 1) // 2]
    return np.asarray((lower + (ranked[start + count // 2] - lower) / 2 if between else lower)[group])


def group_modes(x: Array, group: Array) -> Array:
    """The most frequent value of each record's group; among equally frequent ones the least."""
    order = np.lexsort((x, group))
    ranked, of = x[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])]))
    length = np.diff(np.concatenate([starts, [len(x)]]))
    best = np.lexsort((-length, of[starts]))  # stable: the least value comes first among equal lengths
    leads = np.concatenate([[True], np.diff(of[starts][best]) > 0])
    return np.asarray(ranked[starts[best[leads]]][group])


def first_component(z: Array) -> Array:
    """The scores of the first principal component of standardized columns, its largest loading positive."""
    return np.asarray(z @ with_fixed_signs(np.linalg.eigh(z.T @ z)[1])[:, -1])
