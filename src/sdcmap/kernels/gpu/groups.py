"""Groups of near records on the card: MDAV on numbers, and with Gower's distance on numbers and codes.

The records stay on the card, and one kernel makes group after group, some microseconds each; it comes back each time half
of the records are gone, so that those left lie close together. The groups are those of `kernels/grouping`, value for value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda
from .layout import Array

MEMBERS = 256  # threads of a block
FEW = 512  # records for which one more block is worth the meeting
MOST = 64  # records of a group, and of a thread


def mdav_groups(x: Array, size: int) -> Array:
    """The group of each row of `x`, as `methods._mdav.mdav_groups`."""
    group, made = np.full(len(x), -1, dtype=np.int64), 0
    with cuda.alone():
        while len(rows := np.flatnonzero(group < 0)):
            no_codes = np.zeros((len(rows), 0), dtype=int)
            group[rows], made = _groups(x[rows], no_codes, size, len(rows) // 2, made, mixed=False)
    return group


def gower_groups(numbers: Array, codes: Array, size: int, price: Array | None = None) -> Array:
    """The group of each record, as `methods._gower_groups.gower_groups`; with prices of codes the CPU does it."""
    if price is not None:
        raise cuda.Unfit("codes with a price of their own are compared on the CPU")
    with cuda.alone():
        return _groups(numbers, codes, size, 0, 0, mixed=True)[0]


def _groups(numbers: Array, codes: Array, size: int, until: int, made: int, *, mixed: bool) -> tuple[Array, int]:
    """The groups of these records, -1 where `until` of them are left, and how many groups there are then."""
    cupy, count = cuda.cupy(), len(codes)
    blocks = max(1, min(cuda.processors(), count // FEW))
    held = _power_of_two(cuda.blocks(cuda.blocks(count, blocks), MEMBERS))
    if max(size, held) > MOST:
        raise cuda.Unfit(f"groups are made on the GPU of up to {MOST} records each")
    settings = {
        "NUMBERS": numbers.shape[1], "CODES": codes.shape[1], "MIXED": int(mixed), "MEMBERS": MEMBERS, "HELD": held,
        "LARGEST": _power_of_two(size),
    }  # fmt: skip
    kernel = cuda.compiled(("groups.cu",), settings, fused=False, together=True).get_function("mdav")
    x = cupy.asarray(np.ascontiguousarray(np.column_stack([numbers, codes]).T, dtype=float))
    most = int(codes.max(initial=0)) + 1
    counts = np.array([np.bincount(column, minlength=most) for column in codes.T], dtype=np.int32)
    group = cupy.full(count, -1, dtype=cupy.int32)
    done = cupy.zeros(2, dtype=cupy.int32)
    found = cupy.empty(2 * blocks * (_power_of_two(size) + 1) * 2)
    kernel((blocks,), (MEMBERS,), (
        x, np.int32(count), np.int32(count), np.int32(size), np.int32(until), np.int32(count), np.int32(made), group,
        cupy.asarray(numbers.sum(axis=0)), cupy.asarray(np.tile(counts.ravel(), blocks)), np.int32(most), found,
        cupy.zeros(1, dtype=cupy.uint32), done,
    ))  # fmt: skip
    return group.get().astype(np.int64), int(done[0])


def _power_of_two(least: int) -> int:
    """The smallest that is not less: few kinds of kernels are compiled."""
    return 1 << max(0, least - 1).bit_length()


def plain_groups(numbers: Array, codes: Array, size: int, *, mixed: bool) -> Array:
    """What groups.cu computes, in numpy: sums anew each time half of the records are gone, but not of mixed ones."""
    group, made = np.full(len(codes), -1, dtype=np.int64), 0
    while len(rows := np.flatnonzero(group < 0)):
        until = 0 if mixed else len(rows) // 2
        made = _plain_round(numbers[rows], codes[rows], size, until, made, mixed, group, rows)
    return group


def _plain_round(x: Array, c: Array, size: int, until: int, made: int, mixed: bool, group: Array, rows: Array) -> int:
    total, free = x.sum(axis=0), np.ones(len(c), dtype=bool)
    while (left := int(free.sum())) >= 2 * size and not 3 * size <= left <= until:
        middle = [np.bincount(column[free]).argmax() for column in c.T]
        far = np.where(free, _distances(x, c, total / left, middle, mixed), -1.0).argmax()
        for _ in range(1 + (left >= 3 * size)):
            distance = np.where(free, _distances(x, c, x[far], c[far], mixed), np.inf)
            distance[far] = -1.0
            near = np.argsort(distance, kind="stable")[:size]
            for place in near:
                total = total - x[place]
            group[rows[near]], free[near], made = made, False, made + 1
            far = np.where(free, _distances(x, c, x[far], c[far], mixed), -1.0).argmax()
    if left < 2 * size:
        group[rows[free]], made = made, made + 1
    return made


def _distances(x: Array, c: Array, numbers: Array, codes: Any, mixed: bool) -> Array:
    total = np.zeros(len(c))
    for j in range(x.shape[1]):
        gap = x[:, j] - numbers[j]
        total += np.abs(gap) if mixed else gap * gap
    for j in range(c.shape[1]):
        total += c[:, j] != codes[j]
    return total
