"""Groups of similar records on the GPU: MDAV on numbers, or on numbers and codes with Gower's distance.

The records stay on the GPU, and one kernel forms group after group, a few microseconds each. It returns each time half of
the records are assigned, so that the remaining ones can be stored contiguously. The groups are exactly those of the CPU
kernels `methods._mdav.mdav_groups` and `methods._gower_groups.gower_groups`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import Array

GROUP_THREADS = 256  # threads of a block
RECORDS_PER_BLOCK = 512  # a further block pays off only with this many records, since blocks wait for each other
MAX_GROUP_SIZE = 64  # records of a group, and records per thread: both are held in registers or shared memory


def mdav_groups(x: Array, size: int) -> Array:
    """Return the group of each row of `x`, as `methods._mdav.mdav_groups` does."""
    group, groups_done = np.full(len(x), -1, dtype=np.int64), 0
    with cuda.exclusive_gpu():
        while len(rows := np.flatnonzero(group < 0)):
            no_codes = np.zeros((len(rows), 0), dtype=int)
            group[rows], groups_done = _groups(x[rows], no_codes, size, len(rows) // 2, groups_done, mixed=False)
    return group


def gower_groups(numbers: Array, codes: Array, size: int, price: Array | None = None) -> Array:
    """Return the group of each record, as `methods._gower_groups.gower_groups` does; with `price`, the CPU computes it."""
    if price is not None:
        raise cuda.NotForGpu("codes with a price of their own are compared on the CPU")
    with cuda.exclusive_gpu():
        return _groups(numbers, codes, size, 0, 0, mixed=True)[0]


def _groups(numbers: Array, codes: Array, size: int, until: int, groups_done: int, *, mixed: bool) -> tuple[Array, int]:
    """Return the group of each record and the number of groups so far; stop when `until` records are left (group -1)."""
    cupy, count = cuda.cupy(), len(codes)
    blocks = max(1, min(cuda.processors(), count // RECORDS_PER_BLOCK))
    per_thread = _power_of_two(cuda.blocks(cuda.blocks(count, blocks), GROUP_THREADS))
    if max(size, per_thread) > MAX_GROUP_SIZE:
        raise cuda.NotForGpu(f"the GPU forms groups of at most {MAX_GROUP_SIZE} records")
    settings = {
        "NUMBERS": numbers.shape[1],
        "CODES": codes.shape[1],
        "MIXED": int(mixed),
        "GROUP_THREADS": GROUP_THREADS,
        "PER_THREAD": per_thread,
        "LARGEST": _power_of_two(size),
    }
    kernel = cuda.compile_kernels(("groups.cu",), settings, fused=False, together=True).get_function("mdav")
    x = cupy.asarray(np.ascontiguousarray(np.column_stack([numbers, codes]).T, dtype=float))
    categories = int(codes.max(initial=0)) + 1
    counts = np.array([np.bincount(column, minlength=categories) for column in codes.T], dtype=np.int32)
    group = cupy.full(count, -1, dtype=cupy.int32)
    done = cupy.zeros(2, dtype=cupy.int32)
    # Two buffers in turn, so that a block may write its next results while another still reads the last ones.
    exchange = cupy.empty(2 * blocks * (_power_of_two(size) + 1) * 2)
    kernel((blocks,), (GROUP_THREADS,), (
        x, np.int32(count), np.int32(count), np.int32(size), np.int32(until), np.int32(count), np.int32(groups_done), group,
        cupy.asarray(numbers.sum(axis=0)), cupy.asarray(np.tile(counts.ravel(), blocks)), np.int32(categories), exchange,
        cupy.zeros(1, dtype=cupy.uint32), done,
    ))  # fmt: skip
    return group.get().astype(np.int64), int(done[0])


def _power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least `least`, so that few variants of a kernel are compiled."""
    return 1 << max(0, least - 1).bit_length()


def plain_groups(numbers: Array, codes: Array, size: int, *, mixed: bool) -> Array:
    """Return what groups.cu computes, in numpy.

    Without codes, sums are recomputed each time half of the records are assigned, as `mdav_groups` does.
    """
    group, groups_done = np.full(len(codes), -1, dtype=np.int64), 0
    while len(rows := np.flatnonzero(group < 0)):
        until = 0 if mixed else len(rows) // 2
        groups_done = _plain_round(numbers[rows], codes[rows], size, until, groups_done, mixed, group, rows)
    return group


def _plain_round(
    x: Array, c: Array, size: int, until: int, groups_done: int, mixed: bool, group: Array, rows: Array
) -> int:
    total, free = x.sum(axis=0), np.ones(len(c), dtype=bool)
    while (left := int(free.sum())) >= 2 * size and not 3 * size <= left <= until:
        # The record farthest from the center starts a group; the record farthest from that one starts another.
        middle = [np.bincount(column[free]).argmax() for column in c.T]
        far = np.where(free, _distances(x, c, total / left, middle, mixed), -1.0).argmax()
        for _ in range(1 + (left >= 3 * size)):
            distance = np.where(free, _distances(x, c, x[far], c[far], mixed), np.inf)
            distance[far] = -1.0
            near = np.argsort(distance, kind="stable")[:size]
            for member in near:  # one by one, in the order in which the kernel subtracts them
                total = total - x[member]
            group[rows[near]], free[near], groups_done = groups_done, False, groups_done + 1
            far = np.where(free, _distances(x, c, x[far], c[far], mixed), -1.0).argmax()
    if left < 2 * size:
        group[rows[free]], groups_done = groups_done, groups_done + 1
    return groups_done


def _distances(x: Array, c: Array, numbers: Array, codes: Any, mixed: bool) -> Array:
    total = np.zeros(len(c))
    for j in range(x.shape[1]):
        gap = x[:, j] - numbers[j]
        total += np.abs(gap) if mixed else gap * gap
    for j in range(c.shape[1]):
        total += c[:, j] != codes[j]
    return total
