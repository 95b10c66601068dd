"""Groups of near records: MDAV, and V-MDAV with groups of variable size, without an n x n matrix.

The groups are those of the plain scan, value for value; among equal distances the record that comes first in the file is
taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.methods._mdav_buckets import ROOM, Buckets, buckets_of, distance_from, farthest, nearest, remove

SORTING = 8  # looks at a record that cost as much as sorting it once more


@on_device
def mdav_groups(x: Array, size: int) -> Array:
    """The group of each row of `x`: groups of `size` rows, the last one of `size` to 2 size - 1.

    While 3 size or more rows are left: r, the row farthest from the mean of those left, and its size - 1 nearest make a
    group; then s, the row left farthest from r, and its size - 1 nearest make another. With 2 size or more left, r makes
    one more group; the rest is the last.  Domingo-Ferrer, Torra (2005), MDAV-generic
    """
    group = np.full(len(x), -1, dtype=np.int64)
    made = 0
    for buckets, left in _rebuilt(x, group):
        made = _mdav(x, group, x[group < 0].sum(axis=0), made, size, left // 2, buckets)
    return group


def vmdav_groups(x: Array, size: int, gain: float) -> Array:
    """The group of each row of `x`: groups of `size` to 2 size - 1 rows, larger where a near row stands apart from others.

    The free row farthest from the mean of all rows and its size - 1 nearest make a group. The free row nearest to the
    group, at distance d_in, joins it if d_in < gain d_out, d_out its distance to the nearest other free row, until it is
    refused or the group has 2 size - 1 rows. Fewer than `size` rows left at the end join the group whose mean is nearest.
    Solanas, Martinez-Balleste (2006), V-MDAV
    """
    group = np.full(len(x), -1, dtype=np.int64)
    far = np.argsort(-squared_distances(x, x.sum(axis=0) / len(x)), kind="stable")
    made = 0
    for buckets, left in _rebuilt(x, group, size):
        made = _vmdav(x, group, far, made, size, gain, left // 2, buckets)
    rest = np.flatnonzero(group < 0)
    taken = np.flatnonzero(group >= 0)
    share = np.bincount(group[taken])
    means = np.column_stack([np.bincount(group[taken], column[taken]) / share for column in x.T])
    for row in rest:
        group[row] = np.argmin(squared_distances(means, x[row]))
    return group


def squared_distances(x: Array, q: Array) -> Array:
    """|x_i - q|^2 of each row, summed variable by variable."""
    total = np.zeros(len(x))
    for column, value in zip(x.T, q, strict=True):
        total += (column - value) ** 2
    return total


def _rebuilt(x: Array, group: Array, least: int = 1) -> Iterator[tuple[Buckets, int]]:
    """Buckets of the rows that have no group yet, made anew each time half of them are gone, while `least` are left."""
    while len(rows := np.flatnonzero(group < 0)) >= least:
        yield buckets_of(x, rows), len(rows)


@jit
def _mdav(x: Array, group: Array, total: Array, made: int, size: int, until: int, b: Buckets) -> int:
    """Make groups until `until` rows or fewer are left (below 3 size: until none is); returns the groups made."""
    left = len(b.row)
    near = np.empty(size, dtype=np.int64)
    by_distance = np.empty(0, dtype=np.int64)  # rows by falling distance from a mean of a while ago, `middle`
    far, middle = np.empty(0), np.empty(0)
    looked = SORTING * left + 1
    while left > 0:
        if left <= until and left >= 3 * size:
            break
        if left < 2 * size:
            for i in range(len(b.start)):
                for at in range(b.start[i], b.start[i] + b.left[i]):
                    group[b.row[at]] = made
            return made + 1
        mean = total / left
        if looked > SORTING * left:
            middle, looked = mean, 0
            by_distance, far = _falling(middle, left, b)
        r, seen = _farthest_from_mean(x, group, mean, middle, by_distance, far)
        looked += seen
        left -= _take_nearest(x, r, size, near, b, group, made, total)
        made += 1
        if left >= 2 * size:
            s = farthest(x[r], b)
            left -= _take_nearest(x, s, size, near, b, group, made, total)
            made += 1
    return made


@jit
def _falling(q: Array, left: int, b: Buckets) -> tuple[Array, Array]:
    """The free rows by falling distance from q, and the distances."""
    rows, distances = np.empty(left, dtype=np.int64), np.empty(left)
    filled = 0
    for i in range(len(b.start)):
        for at in range(b.start[i], b.start[i] + b.left[i]):
            rows[filled], distances[filled] = b.row[at], -np.sqrt(distance_from(b.x, at, q))
            filled += 1
    order = np.argsort(distances, kind="mergesort")  # compiled once for all kernels that sort
    return rows[order], -distances[order]


@inner_jit
def _farthest_from_mean(
    x: Array, group: Array, mean: Array, middle: Array, by_distance: Array, far: Array
) -> tuple[int, int]:
    """The free row farthest from `mean`, and how many rows were looked at: |x - mean| <= |x - middle| + |middle - mean|."""
    shift = 0.0
    for j in range(len(mean)):
        shift += (mean[j] - middle[j]) ** 2
    shift = np.sqrt(shift)
    best, farthest = -1.0, -1
    for i in range(len(far)):
        if ((far[i] + shift) * (1 + ROOM)) ** 2 < best:
            return farthest, i
        row = by_distance[i]
        if group[row] >= 0:
            continue
        distance = distance_from(x, row, mean)
        if distance > best or (distance == best and row < farthest):
            best, farthest = distance, row
    return farthest, len(far)


@jit
def _vmdav(x: Array, group: Array, far: Array, made: int, size: int, gain: float, until: int, b: Buckets) -> int:
    left = len(b.row)
    near = np.empty(size, dtype=np.int64)
    members = np.empty(2 * size - 1, dtype=np.int64)
    total = np.zeros(x.shape[1])
    winner = np.empty(1, dtype=np.int64)
    for r in far:
        if left < size or left <= until:
            break
        if group[r] >= 0:
            continue
        left -= _take_nearest(x, r, size, near, b, group, made, total)
        count = size
        for m in range(size):
            members[m] = near[m]
        while count < 2 * size - 1 and left > 1:
            inside, joins = np.inf, -1
            for m in range(count):
                distance = nearest(x[members[m]], -1, 1, winner, b)
                if distance < inside or (distance == inside and winner[0] < joins):
                    inside, joins = distance, winner[0]
            outside = nearest(x[joins], joins, 1, winner, b)
            if not np.sqrt(inside) < gain * np.sqrt(outside):
                break
            remove(joins, b)
            group[joins] = made
            members[count] = joins
            count += 1
            left -= 1
        made += 1
    return made


@jit
def _take_nearest(x: Array, r: int, size: int, near: Array, b: Buckets, group: Array, made: int, total: Array) -> int:
    """Make one group of the free row r and its size - 1 nearest, and take its rows out of `total`."""
    remove(r, b)
    near[0] = r
    if size > 1:
        nearest(x[r], r, size - 1, near[1:], b)
    for m in range(size):
        if m > 0:
            remove(near[m], b)
        group[near[m]] = made
        total -= x[near[m]]
    return size
