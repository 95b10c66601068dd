"""Random pairs of records for swapping: one random perfect matching, looked at only as far as needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from sdcmap.kernels.jit import jit

Array = npt.NDArray[Any]


def matching_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """The first `wanted` admissible pairs of one random perfect matching of the records.

    A pair is admissible when its records differ in every column of `differ` (n x v codes) and agree in `same`
    (n codes, or empty). Fewer than `wanted` pairs come back when the matching has no more.   GKS (2003), section 3
    """
    n = len(differ)
    order = np.arange(n, dtype=np.int64 if n > np.iinfo(np.int32).max else np.int32)
    pairs = np.empty((2, wanted), dtype=order.dtype)
    looked, found = 0, 0
    while found < wanted and looked < n // 2:
        share = (found + 1) / (looked + 1)  # of admissible pairs so far: how many more to look at
        block = min(int((wanted - found) / share) + 32, n // 2 - looked)
        looked, found = _match(order, rng.random(2 * block), looked, found, differ, same, pairs)
    return pairs[0, :found], pairs[1, :found]


@jit
def _match(
    order: Array, draws: Array, looked: int, found: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int]:
    """Fisher-Yates, two records at a time, until the draws or the wanted pairs are used up."""
    n = len(order)
    wanted = pairs.shape[1]
    for step in range(len(draws) // 2):
        for half in range(2):
            here = 2 * looked + half
            there = here + int(draws[2 * step + half] * (n - here))
            order[here], order[there] = order[there], order[here]
        first, second = order[2 * looked], order[2 * looked + 1]
        looked += 1
        admissible = len(same) == 0 or same[first] == same[second]
        for j in range(differ.shape[1]):
            if differ[first, j] == differ[second, j]:
                admissible = False
        if admissible:
            pairs[0, found], pairs[1, found] = first, second
            found += 1
            if found == wanted:
                break
    return looked, found
