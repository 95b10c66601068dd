"""Special uniques: the minimal sets of variables on which a record is alone in the sample."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.combinations import Margins, margin_places, margins_of, members
from sdcmap.kernels.tables.wildcards import wildcard_sums


def minimal_uniques(codes: Array, count: Array, sets: Array) -> tuple[Array, Array]:
    """The minimal sample uniques: which cell, and on which set of variables (bits).

    sets : the sets to look at, the smaller first. A missing value (-1) matches every value.
    Elliot, Manning, Ford (2002); Manning, Haglin, Keane (2008)
    """
    if not (codes < 0).any():
        return _minimal(margins_of(codes), count.astype(np.int64), sets)
    cells, uniques = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    special = np.flatnonzero(wildcard_sums(codes, count) == 1)
    own: list[list[int]] = [[] for _ in special]
    for chosen in sets.tolist():
        alone = np.flatnonzero(wildcard_sums(codes[:, members(chosen)], count)[special] == 1)
        new = [u for u in alone.tolist() if not any(smaller & chosen == smaller for smaller in own[u])]
        for u in new:
            own[u].append(chosen)
        cells.append(special[new])
        uniques.append(np.full(len(new), chosen, dtype=np.int64))
    return np.concatenate(cells), np.concatenate(uniques)


@jit
def _minimal(m: Margins, count: Array, sets: Array) -> tuple[Array, Array]:
    place = np.empty(len(count), dtype=np.int64)
    last = np.full(len(count), -1, dtype=np.int64)  # the latest one found of each cell; `before` leads to earlier ones
    room, made = 1024, 0
    cells, uniques, before = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for chosen in sets:
        size = margin_places(m, chosen, place)
        records = np.zeros(size, dtype=np.int64)
        for cell in range(len(place)):
            records[place[cell]] += count[cell]
        for cell in range(len(place)):
            if records[place[cell]] != 1:
                continue
            entry = last[cell]
            while entry >= 0 and uniques[entry] & chosen != uniques[entry]:
                entry = before[entry]
            if entry >= 0:
                continue
            if made == room:
                cells, uniques, before = _longer(cells), _longer(uniques), _longer(before)
                room *= 2
            cells[made], uniques[made], before[made] = cell, chosen, last[cell]
            last[cell] = made
            made += 1
    return cells[:made], uniques[:made]


@jit
def _longer(values: Array) -> Array:
    more = np.empty(2 * len(values), dtype=values.dtype)
    for i in range(len(values)):
        more[i] = values[i]
    return more


def size_scores(width: int, *, ihsn: bool = False) -> Array:
    """The score of a minimal unique on 1, 2, ..., `width` of `width` variables.

    Of k variables (width - k)!: Elliot, Manning, Ford (2002); by IHSN's first program (2^(width-k) - 1) / C(width, k).
    """
    rest = [width - size for size in range(1, width + 1)]
    if not ihsn:
        return np.array([float(math.factorial(n)) for n in rest])
    return np.array([(2.0**n - 1) / math.comb(width, n) for n in rest])


def dis_suda(score: Array, count: Array, pairs: int, fraction: float, width: int) -> Array:
    """The chance that a match to each cell is right: the file's DIS share, spread over the cells by their scores.

    DIS = U d / (U d + P (1 - d)), U unique records, P records in pairs, d the sampling fraction: Skinner, Elliot (2002).
    1 / (1 + U (1/DIS - 1) / (s^q sum s^-q)), q = 1 + (8 - width) / 20, after sdcMicro; U (1/DIS - 1) = P (1 - d) / d.
    """
    scores = np.zeros(len(score))
    special = score > 0
    power = score[special] ** (1 + (8 - width) / 20)
    weight = fraction * power * (count[special] / power).sum()
    others = pairs * (1 - fraction)
    scores[special] = weight / (weight + others) if others else 1.0  # not 0/0 where a tiny fraction leaves no weight
    return scores
