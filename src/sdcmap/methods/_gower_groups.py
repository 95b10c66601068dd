"""Groups of similar records: variables of mixed kinds by Gower's distance (MDAV), and single numbers by rank.

The last part computes the value that a group takes.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array, with_fixed_signs
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import jit


@on_device
def gower_groups(numbers: Array, codes: Array, size: int, cost_of_codes: Array | None = None) -> Array:
    """Return the group of each record: groups of `size`, the last one of `size` to 2 size - 1.

    d(i, l) = sum_j |x_ij - x_lj| + #{j: c_ij != c_lj}, which is Gower's distance times the number of variables.
    The steps are those of MDAV. The center of mixed records has the mean of each number and the most frequent code of
    each nominal variable, the smallest code in a tie. Ties of distances go to the first record.
    Gower (1971); Domingo-Ferrer, Torra (2005), section 4

    numbers : n x p, each column divided by its range. codes : n x q, nominal variables coded 0, 1, ...
    cost_of_codes : the distance between different codes of each nominal variable; by default 1.
    """
    width = int(codes.max(initial=0)) + 1
    counts = np.array([np.bincount(column, minlength=width) for column in codes.T], dtype=np.int64).reshape(-1, width)
    group = np.full(len(codes), -1, dtype=np.int64)
    costs = np.ones(codes.shape[1]) if cost_of_codes is None else np.ascontiguousarray(cost_of_codes, dtype=np.float64)
    _mdav_gower(numbers.copy(), codes.astype(np.int64, order="C"), costs, size, numbers.sum(axis=0), counts, group)
    return group


@jit
def _mdav_gower(x: Array, c: Array, costs: Array, size: int, total: Array, counts: Array, group: Array) -> None:
    """Form the groups. x, c : numbers and codes of the free records in file order; they move up as records leave."""
    left, group_number = len(c), 0
    row = np.arange(left)
    distance = np.empty(left)
    middle = np.empty(c.shape[1], dtype=np.int64)
    while left >= 2 * size:
        for j in range(len(middle)):
            middle[j] = np.argmax(counts[j])
        _distances(x, c, costs, left, total / left, middle, distance)
        # r, the record farthest from the center, and its nearest records form a group.
        r = int(np.argmax(distance[:left]))
        r_numbers, r_codes = x[r].copy(), c[r].copy()
        left = _take_group(x, c, costs, row, left, r, size, total, counts, distance, group, group_number)
        group_number += 1
        # s, the record farthest from r, and its nearest records form another.
        if left >= 2 * size:
            _distances(x, c, costs, left, r_numbers, r_codes, distance)
            s = int(np.argmax(distance[:left]))
            left = _take_group(x, c, costs, row, left, s, size, total, counts, distance, group, group_number)
            group_number += 1
    for i in range(left):
        group[row[i]] = group_number


@jit
def _distances(x: Array, c: Array, costs: Array, left: int, numbers: Array, codes: Array, distance: Array) -> None:
    """Write the distance of each free record from a point (numbers and codes) to `distance`."""
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
    x: Array,
    c: Array,
    costs: Array,
    row: Array,
    left: int,
    r: int,
    size: int,
    total: Array,
    counts: Array,
    distance: Array,
    group: Array,
    group_number: int,
) -> int:
    """Form a group of record r and its size - 1 nearest. Return the number of records left."""
    _distances(x, c, costs, left, x[r].copy(), c[r].copy(), distance)
    distance[r] = -1.0
    for _ in range(size):
        near = np.argmin(distance[:left])
        distance[near] = np.inf
        group[row[near]] = group_number
        total -= x[near]
        for j in range(c.shape[1]):
            counts[j, c[near, j]] -= 1
    # Close the gaps, so that the free records stay in file order and ties go to the first.
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


# ---- groups of neighbors in one order -------------------------------------------------------------------------
def ranked_groups(x: Array, size: int) -> Array:
    """Return the group of each record: the `size` smallest values, the next `size`, ...; the rest joins the last."""
    group = np.empty(len(x), dtype=np.int64)
    group[np.argsort(x, kind="stable")] = np.minimum(np.arange(len(x)) // size, len(x) // size - 1)
    return group


def optimal_groups(x: Array, size: int) -> Array:
    """Return the groups of at least `size` values with the smallest sum of squares within groups.

    Hansen, Mukherjee (2003): an optimal group consists of `size` to 2 size - 1 neighbors in the order of x. The smallest
    sum is therefore a shortest path over the sorted values, found in n size steps.
    """
    order = np.argsort(x, kind="stable")
    group = np.empty(len(x), dtype=np.int64)
    group[order] = np.cumsum(_shortest_path(x[order], size)) - 1
    return group


@jit
def _shortest_path(x: Array, size: int) -> Array:
    """Return True where a group of the sorted values x begins."""
    n = len(x)
    least = np.full(n + 1, np.inf)  # smallest sum of squares of the first i values
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
    # Follow the shortest path back from the last value.
    begins = np.zeros(n, dtype=np.bool_)
    end = n
    while end > 0:
        end = before[end]
        begins[end] = True
    return begins


# ---- the value of a group -------------------------------------------------------------------------------------
def group_means(x: Array, group: Array, weights: Array | None = None) -> Array:
    """Return the (weighted) mean of each record's group. The mean of equal values is exactly that value."""
    one = np.empty(int(group.max()) + 1, dtype=x.dtype)  # a value of each group
    one[group] = x
    first = one[group]
    total = np.bincount(group, (x - first) * (1.0 if weights is None else weights))
    return np.asarray(first + (total / np.bincount(group, weights))[group])


def group_medians(x: Array, group: Array, *, between: bool = True) -> Array:
    """Return the median of each record's group.

    For an even number of values it is the mean of the middle two if `between`, else the lower one.
    """
    order = np.lexsort((x, group))
    count = np.bincount(group)
    start = np.cumsum(count) - count
    ranked = x[order]
    lower = ranked[start + (count - 1) // 2]
    return np.asarray((lower + (ranked[start + count // 2] - lower) / 2 if between else lower)[group])


def group_modes(x: Array, group: Array) -> Array:
    """Return the most frequent value of each record's group, the smallest one in a tie."""
    order = np.lexsort((x, group))
    ranked, of = x[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])]))
    length = np.diff(np.concatenate([starts, [len(x)]]))
    best = np.lexsort((-length, of[starts]))  # stable: in a tie the smallest value comes first
    leads = np.concatenate([[True], np.diff(of[starts][best]) > 0])
    return np.asarray(ranked[starts[best[leads]]][group])


def first_component(z: Array) -> Array:
    """Return the scores of the first principal component of standardized columns, with a fixed sign."""
    return np.asarray(z @ with_fixed_signs(np.linalg.eigh(z.T @ z)[1])[:, -1])
