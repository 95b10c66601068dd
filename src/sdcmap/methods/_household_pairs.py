"""Households and areas: cells by counting, and partners for households that must move."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.coding import compress

FEW_CELLS = 1 << 20  # so many possible cells, and some for each record, are counted rather than sorted


def met_cells(codes: list[Array]) -> tuple[Array, Array]:
    """As `compress`, by counting: variable by variable only the cells that occur are kept, so nested areas stay few."""
    cell, count = np.zeros(len(codes[0]), dtype=np.int64), np.array([len(codes[0])])
    for code in codes:
        size = int(code.max()) + 1
        if len(count) * size > FEW_CELLS + 4 * len(cell):
            cell, count = compress([cell, code])
            continue
        count = _step(cell, code, size, len(count))
    return cell, count


@jit
def _step(cell: Array, code: Array, size: int, space: int) -> Array:
    """Cross the cells with one more variable, and number those that occur; returns their counts."""
    count = np.zeros(space * size, dtype=np.int64)
    for i in range(len(cell)):
        cell[i] = cell[i] * size + code[i]
        count[cell[i]] += 1
    met = np.flatnonzero(count)
    sizes = count[met]
    for number in range(len(met)):
        count[met[number]] = number
    for i in range(len(cell)):
        cell[i] = count[cell[i]]
    return sizes


def moving_pairs(
    visit: Array, alike: list[Array], area: Array, used: Array, wanted: int, rng: Generator
) -> tuple[Array, Array]:
    """Visit households in the order `visit`; each still unused takes a partner in another area, while `wanted` last.

    alike : codes of each household; the two of a pair agree in all. area : code of each household's area; they differ.
    The partner is drawn uniformly among all unused households that may be one; where there is none the household stays
    unused. `used` marks the households that are taken, now and before.
    """
    free = np.flatnonzero(~used)
    if len(free) == 0 or len(visit) == 0 or wanted == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    kind = met_cells([codes[free] for codes in alike])[0] if alike else np.zeros(len(free), dtype=np.int64)
    part, size = met_cells([kind, area[free]])  # households of one kind in one area; parts of one kind stand together
    members, start = _collected(part, size)
    part_kind = kind[members[start]]
    begins = np.searchsorted(part_kind, np.arange(int(part_kind[-1]) + 2))  # where the parts of each kind begin
    place = np.empty(len(free), dtype=np.int64)
    place[members] = np.arange(len(free))
    here = np.full(len(used), -1, dtype=np.int64)
    here[free] = np.arange(len(free))
    pairs = _take_partners(
        here[visit], rng.random(len(visit)), part, part_kind, begins, start, size.copy(), members, place, wanted
    )
    first, second = free[pairs[0]], free[pairs[1]]
    used[first] = used[second] = True
    return first, second


@jit
def _collected(part: Array, size: Array) -> tuple[Array, Array]:
    """The members part by part, in their order, and where each part begins."""
    start = np.cumsum(size) - size
    filled = start.copy()
    members = np.empty(len(part), dtype=np.int64)
    for i in range(len(part)):
        members[filled[part[i]]] = i
        filled[part[i]] += 1
    return members, start


@jit
def _take_partners(
    visit: Array, draws: Array, part: Array, part_kind: Array, begins: Array, start: Array, left: Array, members: Array,
    place: Array, wanted: int,
) -> Array:  # fmt: skip
    """The unused members of part p are the first left[p] of its stretch of `members`."""
    pairs = np.empty((2, min(wanted, len(visit))), dtype=np.int64)
    paired = 0
    for turn in range(len(visit)):
        household = visit[turn]
        if paired == pairs.shape[1]:
            break
        if household < 0 or place[household] >= start[part[household]] + left[part[household]]:
            continue
        mine, total = part[household], 0
        kind = part_kind[mine]
        for p in range(begins[kind], begins[kind + 1]):
            total += left[p] if p != mine else 0
        if total == 0:
            continue
        ticket = min(int(draws[turn] * total), total - 1)
        theirs = begins[kind]
        while theirs == mine or ticket >= left[theirs]:
            ticket -= left[theirs] if theirs != mine else 0
            theirs += 1
        partner = members[start[theirs] + ticket]
        pairs[0, paired], pairs[1, paired] = household, partner
        paired += 1
        for gone in (household, partner):
            p = part[gone]
            left[p] -= 1
            end, at = start[p] + left[p], place[gone]
            moved = members[end]
            members[end], members[at] = gone, moved
            place[gone], place[moved] = end, at
    return pairs[:, :paired]
