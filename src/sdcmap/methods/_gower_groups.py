"""Groups of near records of mixed kinds: MDAV with Gower's distance."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import jit


@on_device
def gower_groups(numbers: Array, codes: Array, size: int, price: Array | None = None) -> Array:
    """The group of each record: groups of `size`, the last one of `size` to 2 size - 1.

    numbers : n x p, each column divided by its range; codes : n x q of nominal variables, 0, 1, ...
    d(i, l) = sum_j |x_ij - x_lj| + #{j: c_ij != c_lj}, which is Gower's distance times the number of variables.
    price : what a different code of each nominal variable costs in place of 1.
    The steps are those of MDAV; the centre of mixed records has the mean of each number and the most frequent code of
    each nominal variable (the least among equally frequent ones). Among equal distances the first record is taken.
    Gower (1971); Domingo-Ferrer, Torra (2005), section 4
    """
    counts = np.zeros((codes.shape[1], int(codes.max(initial=0)) + 1), dtype=np.int64)
    for j, column in enumerate(codes.T):
        counts[j] = np.bincount(column, minlength=counts.shape[1])
    group = np.full(len(codes), -1, dtype=np.int64)
    paid = np.ones(codes.shape[1]) if price is None else np.ascontiguousarray(price, dtype=np.float64)
    _groups(numbers.copy(), codes.astype(np.int64, order="C"), paid, size, numbers.sum(axis=0), counts, group)
    return group


@jit
def _groups(x: Array, c: Array, paid: Array, size: int, total: Array, counts: Array, group: Array) -> None:
    """x, c : the records left, in file order; they close up as records leave."""
    left, made = len(c), 0
    row = np.arange(left)
    distance = np.empty(left)
    middle = np.empty(c.shape[1], dtype=np.int64)
    while left >= 2 * size:
        for j in range(len(middle)):
            middle[j] = np.argmax(counts[j])
        _distances(x, c, paid, left, total / left, middle, distance)
        r = int(np.argmax(distance[:left]))
        r_numbers, r_codes = x[r].copy(), c[r].copy()
        left = _take(x, c, paid, row, left, r, size, total, counts, distance, group, made)
        made += 1
        if left >= 2 * size:
            _distances(x, c, paid, left, r_numbers, r_codes, distance)
            s = int(np.argmax(distance[:left]))
            left = _take(x, c, paid, row, left, s, size, total, counts, distance, group, made)
            made += 1
    for i in range(left):
        group[row[i]] = made


@jit
def _distances(x: Array, c: Array, paid: Array, left: int, numbers: Array, codes: Array, distance: Array) -> None:
    for i in range(left):
        total = 0.0
        for j in range(x.shape[1]):
            total += abs(x[i, j] - numbers[j])
        for j in range(c.shape[1]):
            if c[i, j] != codes[j]:
                total += paid[j]
        distance[i] = total


@jit
def _take(
    x: Array, c: Array, paid: Array, row: Array, left: int, r: int, size: int, total: Array, counts: Array,
    distance: Array, group: Array, made: int,
) -> int:  # fmt: skip
    """Make one group of record r and its size - 1 nearest; returns how many records are left."""
    _distances(x, c, paid, left, x[r].copy(), c[r].copy(), distance)
    distance[r] = -1.0
    for _ in range(size):
        near = np.argmin(distance[:left])
        distance[near] = np.inf
        group[row[near]] = made
        total -= x[near]
        for j in range(c.shape[1]):
            counts[j, c[near, j]] -= 1
    kept = 0
    for i in range(left):
        if group[row[i]] < 0:
            row[kept] = row[i]
            for j in range(x.shape[1]):
                x[kept, j] = x[i, j]
            for j in range(c.shape[1]):
                c[kept, j] = c[i, j]
            kept += 1
    return kept
