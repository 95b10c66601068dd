"""Groups of similar records: MDAV, and V-MDAV with groups of variable size, without an n x n distance matrix.

The groups are exactly those of a plain scan over all records. Ties go to the record that comes first in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit

# The records that are still free lie in the buckets of a k-d partition. Bounding balls and boxes of the buckets exclude
# most of them from a search. Distances are summed variable by variable, as in a plain scan, so that ties are the same.

MAX_BUCKET_RECORDS = 64  # records; small enough for tight bounds, large enough that few bounds are computed
BOUND_MARGIN = 1e-9  # relative widening of the bounds of a ball, far above the rounding error of a distance


class Buckets(NamedTuple):
    """The free records, sorted by bucket. A record that is put into a group is removed, and the others move up."""

    x: Array  # the records' values
    row: Array  # the row of each record in the file
    position: Array  # the index in `x` of each row of the file, -1 if it is not free
    home: Array  # the bucket of each row of the file
    start: Array  # the index at which each bucket begins
    left: Array  # free records in each bucket
    center: Array
    radius: Array
    low: Array  # smallest and (`high`) largest value of each variable
    high: Array
    bound: Array  # scratch memory for the bounds of one search


def buckets_of(x: Array, rows: Array) -> Buckets:
    """Put these rows of x into buckets."""
    parts: list[Array] = []
    _split(x, rows, parts)
    order = np.concatenate(parts)
    count = np.array([len(part) for part in parts])
    start = np.cumsum(count) - count
    y = np.ascontiguousarray(x[order])
    center = np.add.reduceat(y, start) / count[:, np.newaxis]
    radius = np.sqrt(np.maximum.reduceat(((y - np.repeat(center, count, axis=0)) ** 2).sum(axis=1), start))
    position, home = np.full((2, len(x)), -1)
    position[order], home[order] = np.arange(len(order)), np.repeat(np.arange(len(parts)), count)
    low, high = np.minimum.reduceat(y, start), np.maximum.reduceat(y, start)
    return Buckets(y, order, position, home, start, count, center, radius, low, high, np.empty(len(parts)))


def _split(x: Array, rows: Array, parts: list[Array]) -> None:
    """Halve the rows at the median of the variable with the widest range, until each part fits a bucket."""
    if len(rows) <= MAX_BUCKET_RECORDS:
        parts.append(rows)
        return
    y = x[rows]
    widest = int(np.argmax(y.max(axis=0) - y.min(axis=0)))
    order = np.argpartition(y[:, widest], len(rows) // 2)
    _split(x, rows[order[: len(rows) // 2]], parts)
    _split(x, rows[order[len(rows) // 2 :]], parts)


@inner_jit
def remove(row: int, b: Buckets) -> None:
    """Remove a row: the last free record of its bucket takes its position."""
    home, at = b.home[row], b.position[row]
    b.left[home] -= 1
    last = b.start[home] + b.left[home]
    moved = b.row[last]
    for j in range(b.x.shape[1]):
        b.x[at, j] = b.x[last, j]
    b.row[at] = moved
    b.position[moved] = at
    b.position[row] = -1


@inner_jit
def distance_from(x: Array, at: int, q: Array) -> float:
    """Return the squared distance of x[at] from q."""
    total = 0.0
    for j in range(len(q)):
        gap = x[at, j] - q[j]
        total += gap * gap
    return total


@inner_jit
def farthest(q: Array, b: Buckets) -> int:
    """Return the free row that is farthest from q."""
    # Search the bucket with the largest upper bound first: its result excludes most other buckets.
    widest = -1
    for i in range(len(b.start)):
        b.bound[i] = -1.0
        if b.left[i] > 0:
            b.bound[i] = ((np.sqrt(distance_from(b.center, i, q)) + b.radius[i]) * (1 + BOUND_MARGIN)) ** 2
            if widest < 0 or b.bound[i] > b.bound[widest]:
                widest = i
    best, farthest = _farthest_of(widest, q, b, -1.0, -1)
    for i in range(len(b.start)):
        if b.bound[i] >= best and i != widest and _box_upper(i, q, b) >= best:
            best, farthest = _farthest_of(i, q, b, best, farthest)
    return farthest


@inner_jit
def _farthest_of(i: int, q: Array, b: Buckets, best: float, farthest: int) -> tuple[float, int]:
    for at in range(b.start[i], b.start[i] + b.left[i]):
        distance = distance_from(b.x, at, q)
        if distance > best or (distance == best and b.row[at] < farthest):
            best, farthest = distance, b.row[at]
    return best, farthest


@inner_jit
def _box_upper(i: int, q: Array, b: Buckets) -> float:
    """Return an upper bound of the squared distances in a bucket. Rounding is monotone, so it needs no margin."""
    total = 0.0
    for j in range(len(q)):
        gap = max(abs(b.low[i, j] - q[j]), abs(b.high[i, j] - q[j]))
        total += gap * gap
    return total


@inner_jit
def _box_lower(i: int, q: Array, b: Buckets) -> float:
    """Return a lower bound of the squared distances in a bucket."""
    total = 0.0
    for j in range(len(q)):
        gap = max(b.low[i, j] - q[j], q[j] - b.high[i, j], 0.0)
        total += gap * gap
    return total


@jit
def nearest(q: Array, start_row: int, wanted: int, near: Array, b: Buckets) -> float:
    """Write the `wanted` free rows nearest to q, except `start_row`, to `near`. Return the largest squared distance."""
    distances = np.full(wanted, np.inf)
    near[:wanted] = len(b.position)
    # Search the bucket with the smallest lower bound first: its distances exclude most other buckets.
    closest = -1
    for i in range(len(b.start)):
        b.bound[i] = np.inf
        if b.left[i] > 0:
            gap = max(
                0.0, np.sqrt(distance_from(b.center, i, q)) * (1 - BOUND_MARGIN) - b.radius[i] * (1 + BOUND_MARGIN)
            )
            b.bound[i] = gap * gap
            if closest < 0 or b.bound[i] < b.bound[closest]:
                closest = i
    _nearest_of(closest, q, start_row, wanted, near, distances, b)
    for i in range(len(b.start)):
        if b.bound[i] <= distances[wanted - 1] and i != closest and _box_lower(i, q, b) <= distances[wanted - 1]:
            _nearest_of(i, q, start_row, wanted, near, distances, b)
    return float(distances[wanted - 1])


@inner_jit
def _nearest_of(i: int, q: Array, start_row: int, wanted: int, near: Array, distances: Array, b: Buckets) -> None:
    for at in range(b.start[i], b.start[i] + b.left[i]):
        distance, row = distance_from(b.x, at, q), b.row[at]
        last = wanted - 1
        if row == start_row or distance > distances[last] or (distance == distances[last] and row > near[last]):
            continue
        # Insert the record into the sorted list of the nearest ones.
        before = last - 1
        while before >= 0 and (distance < distances[before] or (distance == distances[before] and row < near[before])):
            distances[last], near[last] = distances[before], near[before]
            last, before = before, before - 1
        distances[last], near[last] = distance, row


VISITS_PER_SORT = 8  # visits of a record that cost as much as sorting it again


@on_device
def mdav_groups(x: Array, size: int) -> Array:
    """Return the group of each row of `x`: groups of `size` rows, the last one of `size` to 2 size - 1.

    While 3 size or more rows are left: r, the row farthest from the mean of those left, and its size - 1 nearest form a
    group; then s, the remaining row farthest from r, and its size - 1 nearest form another. With 2 size or more left, r
    forms one more group; the rest is the last group. Domingo-Ferrer, Torra (2005), MDAV-generic
    """
    group = np.full(len(x), -1, dtype=np.int64)
    group_number = 0
    for buckets, left in _rebuild_buckets(x, group):
        group_number = _mdav(x, group, x[group < 0].sum(axis=0), group_number, size, left // 2, buckets)
    return group


def vmdav_groups(x: Array, size: int, gain: float) -> Array:
    """Return the group of each row of `x`: groups of `size` to 2 size - 1 rows, depending on the data.

    The free row farthest from the mean of all rows and its size - 1 nearest form a group. The free row nearest to the
    group, at distance d_in, joins it if d_in < gain d_out, where d_out is its distance to the nearest other free row.
    This is repeated until a row does not join or the group has 2 size - 1 rows. Fewer than `size` rows left at the end
    join the group with the nearest mean. Solanas, Martinez-Balleste (2006), V-MDAV
    """
    group = np.full(len(x), -1, dtype=np.int64)
    far = np.argsort(-squared_distances(x, x.sum(axis=0) / len(x)), kind="stable")
    group_number = 0
    for buckets, left in _rebuild_buckets(x, group, size):
        group_number = _vmdav(x, group, far, group_number, size, gain, left // 2, buckets)
    grouped = np.flatnonzero(group >= 0)
    share = np.bincount(group[grouped])
    means = np.column_stack([np.bincount(group[grouped], column[grouped]) / share for column in x.T])
    for row in np.flatnonzero(group < 0):
        group[row] = np.argmin(squared_distances(means, x[row]))
    return group


def squared_distances(x: Array, q: Array) -> Array:
    """Return |x_i - q|^2 of each row, summed variable by variable."""
    return np.asarray(sum((column - value) ** 2 for column, value in zip(x.T, q, strict=True)))


def _rebuild_buckets(x: Array, group: Array, least: int = 1) -> Iterator[tuple[Buckets, int]]:
    """Yield buckets of the free rows while at least `least` are left; the caller returns when half of them are grouped.

    Rebuilding the buckets each time keeps their bounds tight.
    """
    while len(rows := np.flatnonzero(group < 0)) >= least:
        yield buckets_of(x, rows), len(rows)


@jit
def _mdav(x: Array, group: Array, total: Array, group_number: int, size: int, until: int, b: Buckets) -> int:
    """Form groups until at most `until` rows are left, or none if that is below 3 size. Return the next group number."""
    left = len(b.row)
    near = np.empty(size, dtype=np.int64)
    # Rows by decreasing distance from `middle`, an earlier mean. The mean moves slowly: the farthest row is near the top.
    by_distance = np.empty(0, dtype=np.int64)
    far, middle = np.empty(0), np.empty(0)
    visits = VISITS_PER_SORT * left + 1
    while left > 0:
        if left <= until and left >= 3 * size:
            break
        if left < 2 * size:
            for i in range(len(b.start)):
                for at in range(b.start[i], b.start[i] + b.left[i]):
                    group[b.row[at]] = group_number
            return group_number + 1
        mean = total / left
        # Sort again once the searches have cost more than a new sort would.
        if visits > VISITS_PER_SORT * left:
            middle, visits = mean, 0
            by_distance, far = _sort_by_distance(middle, left, b)
        r, visited = _farthest_from_mean(x, group, mean, middle, by_distance, far)
        visits += visited
        left -= _take_nearest(x, r, size, near, b, group, group_number, total)
        group_number += 1
        if left >= 2 * size:
            s = farthest(x[r], b)
            left -= _take_nearest(x, s, size, near, b, group, group_number, total)
            group_number += 1
    return group_number


@jit
def _sort_by_distance(q: Array, left: int, b: Buckets) -> tuple[Array, Array]:
    """Return the free rows by decreasing distance from q, and the distances."""
    rows, distances = np.empty(left, dtype=np.int64), np.empty(left)
    filled = 0
    for i in range(len(b.start)):
        for at in range(b.start[i], b.start[i] + b.left[i]):
            rows[filled], distances[filled] = b.row[at], -np.sqrt(distance_from(b.x, at, q))
            filled += 1
    order = np.argsort(distances, kind="mergesort")  # the kind that all kernels use, so that it is compiled once
    return rows[order], -distances[order]


@inner_jit
def _farthest_from_mean(
    x: Array, group: Array, mean: Array, middle: Array, by_distance: Array, far: Array
) -> tuple[int, int]:
    """Return the free row farthest from `mean`, and the number of rows visited.

    Rows are visited by decreasing distance from `middle`; |x - mean| <= |x - middle| + |middle - mean| ends the search.
    """
    shift = 0.0
    for j in range(len(mean)):
        shift += (mean[j] - middle[j]) ** 2
    shift = np.sqrt(shift)
    best, farthest = -1.0, -1
    for i in range(len(far)):
        if ((far[i] + shift) * (1 + BOUND_MARGIN)) ** 2 < best:
            return farthest, i
        row = by_distance[i]
        if group[row] >= 0:
            continue
        distance = distance_from(x, row, mean)
        if distance > best or (distance == best and row < farthest):
            best, farthest = distance, row
    return farthest, len(far)


@jit
def _vmdav(
    x: Array, group: Array, far: Array, group_number: int, size: int, gain: float, until: int, b: Buckets
) -> int:
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
        left -= _take_nearest(x, r, size, near, b, group, group_number, total)
        count = size
        members[:size] = near
        # Extend the group by its nearest free row while that row is much nearer to the group than to other free rows.
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
            group[joins] = group_number
            members[count] = joins
            count += 1
            left -= 1
        group_number += 1
    return group_number


@jit
def _take_nearest(
    x: Array, r: int, size: int, near: Array, b: Buckets, group: Array, group_number: int, total: Array
) -> int:
    """Form a group of the free row r and its size - 1 nearest, and subtract its rows from `total`."""
    remove(r, b)
    near[0] = r
    if size > 1:
        nearest(x[r], r, size - 1, near[1:], b)
    for m in range(size):
        if m > 0:
            remove(near[m], b)
        group[near[m]] = group_number
        total -= x[near[m]]
    return size
