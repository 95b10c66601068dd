"""Random pairs of records for swapping: one random perfect matching, looked at only as far as needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from sdcmap.kernels.jit import jit

Array = npt.NDArray[Any]
SPARE = 8  # draws beyond two a pair, for the few that are drawn again
LOW = np.uint64(0xFFFFFFFF)


def matching_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """The first `wanted` admissible pairs of one random perfect matching of the records.

    A pair is admissible when its records differ in every column of `differ` (n x v codes) and agree in `same`
    (n codes, or empty). Fewer than `wanted` pairs come back when the matching has no more.   GKS (2003), section 3
    """
    n = len(differ)
    order = np.arange(n, dtype=np.int64 if n > np.iinfo(np.int32).max else np.int32)
    pairs = np.empty((2, wanted), dtype=np.int64)
    looked, found = 0, 0
    while found < wanted and looked < n // 2:
        share = (found + 1) / (looked + 1)  # of admissible pairs so far: how many more to look at
        block = min(int((wanted - found) / share) + 32, n // 2 - looked)
        draws = rng.integers(0, 1 << 32, 2 * block + SPARE, dtype=np.uint32)
        looked, found = _match(order, draws, looked, found, differ, same, pairs)
    return pairs[0, :found], pairs[1, :found]


@jit
def _match(
    order: Array, draws: Array, looked: int, found: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int]:
    """Fisher-Yates, two records at a time, until the draws or the wanted pairs are used up.

    A draw u of 32 bits becomes a place below k as floor(u k / 2^32), and is drawn again in the rare case that would
    make some places likelier than others (Lemire 2019).
    """
    n = len(order)
    wanted = pairs.shape[1]
    used = 0
    while found < wanted and looked < n // 2 and used + 2 <= len(draws):
        done = 0
        while done < 2 and used < len(draws):
            here = 2 * looked + done
            left = np.uint64(n - here)
            product = np.uint64(draws[used]) * left
            used += 1
            if (product & LOW) >= left or (product & LOW) >= (np.uint64(1 << 32) - left) % left:
                there = here + np.int64(product >> np.uint64(32))
                order[here], order[there] = order[there], order[here]
                done += 1
        if done < 2:
            break
        first, second = order[2 * looked], order[2 * looked + 1]
        looked += 1
        admissible = len(same) == 0 or same[first] == same[second]
        for j in range(differ.shape[1]):
            admissible &= differ[first, j] != differ[second, j]
        if admissible:
            pairs[0, found], pairs[1, found] = first, second
            found += 1
    return looked, found
