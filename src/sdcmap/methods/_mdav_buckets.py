"""Records in the buckets of a k-d partition, for the nearest and the farthest of those that are still free.

Each bucket has its bounding ball and box, so that most of them are never looked at. What is found is what the plain scan
finds, value for value: distances are summed variable by variable, and among equal distances the record that comes first
in the file is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

BUCKET = 64  # records in a bucket when it is made, at most
ROOM = 1e-9  # relative room for rounding in the bounds of a ball, far above the rounding of a distance


class Buckets(NamedTuple):
    """Records still free, bucket by bucket; those that are taken leave, and the others close up."""

    x: Array  # the records' values
    row: Array  # the row of each in the file
    place: Array  # where each row of the file stands
    home: Array  # the bucket of each row of the file
    start: Array  # where each bucket begins
    left: Array  # records left in each
    centre: Array
    radius: Array
    low: Array  # least and largest value of each variable
    high: Array
    bound: Array  # room for the bounds of one search


def buckets_of(x: Array, rows: Array) -> Buckets:
    """These rows of x, in buckets."""
    parts: list[Array] = []
    _split(x, rows, parts)
    order = np.concatenate(parts)
    count = np.array([len(part) for part in parts])
    start = np.cumsum(count) - count
    y = np.ascontiguousarray(x[order])
    centre = np.add.reduceat(y, start) / count[:, np.newaxis]
    radius = np.sqrt(np.maximum.reduceat(((y - np.repeat(centre, count, axis=0)) ** 2).sum(axis=1), start))
    place, home = np.full((2, len(x)), -1)
    place[order], home[order] = np.arange(len(order)), np.repeat(np.arange(len(parts)), count)
    low, high = np.minimum.reduceat(y, start), np.maximum.reduceat(y, start)
    return Buckets(y, order, place, home, start, count, centre, radius, low, high, np.empty(len(parts)))


def _split(x: Array, rows: Array, parts: list[Array]) -> None:
    """Halve the rows at the median of the variable that is widest, until a part fits a bucket."""
    if len(rows) <= BUCKET:
        parts.append(rows)
        return
    y = x[rows]
    widest = int(np.argmax(y.max(axis=0) - y.min(axis=0)))
    order = np.argpartition(y[:, widest], len(rows) // 2)
    _split(x, rows[order[: len(rows) // 2]], parts)
    _split(x, rows[order[len(rows) // 2 :]], parts)


@inner_jit
def remove(row: int, b: Buckets) -> None:
    home, at = b.home[row], b.place[row]
    b.left[home] -= 1
    last = b.start[home] + b.left[home]
    moved = b.row[last]
    for j in range(b.x.shape[1]):
        b.x[at, j] = b.x[last, j]
    b.row[at] = moved
    b.place[moved] = at
    b.place[row] = -1


@inner_jit
def distance_from(x: Array, at: int, q: Array) -> float:
    total = 0.0
    for j in range(len(q)):
        gap = x[at, j] - q[j]
        total += gap * gap
    return total


@inner_jit
def farthest(q: Array, b: Buckets) -> int:
    """The free row farthest from q."""
    widest = -1
    for i in range(len(b.start)):
        b.bound[i] = -1.0
        if b.left[i] > 0:
            b.bound[i] = ((np.sqrt(distance_from(b.centre, i, q)) + b.radius[i]) * (1 + ROOM)) ** 2
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
    """No record of the bucket is farther; rounding keeps the order, so no room is needed."""
    total = 0.0
    for j in range(len(q)):
        gap = max(abs(b.low[i, j] - q[j]), abs(b.high[i, j] - q[j]))
        total += gap * gap
    return total


@inner_jit
def _box_lower(i: int, q: Array, b: Buckets) -> float:
    total = 0.0
    for j in range(len(q)):
        gap = max(b.low[i, j] - q[j], q[j] - b.high[i, j], 0.0)
        total += gap * gap
    return total


@jit
def nearest(q: Array, start_row: int, wanted: int, near: Array, b: Buckets) -> float:
    """The `wanted` free rows nearest to q, but for `start_row`, into `near`; returns the largest squared distance."""
    distances = np.full(wanted, np.inf)
    near[:wanted] = len(b.place)
    closest = -1
    for i in range(len(b.start)):
        b.bound[i] = np.inf
        if b.left[i] > 0:
            gap = max(0.0, np.sqrt(distance_from(b.centre, i, q)) * (1 - ROOM) - b.radius[i] * (1 + ROOM))
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
        while last > 0 and (
            distance < distances[last - 1] or (distance == distances[last - 1] and row < near[last - 1])
        ):
            distances[last], near[last] = distances[last - 1], near[last - 1]
            last -= 1
        distances[last], near[last] = distance, row
