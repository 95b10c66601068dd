"""Rank swapping."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

TRIES = 64  # draws in a window before its free ranks are listed; either way each free rank is equally likely


def rank_swap(x: Array, p: float, rng: Generator) -> Array:
    """Swap each value with one of a nearby rank; the sorted values stay what they were.

    Walk the ranks i = 0, 1, ...; a rank not yet swapped draws k uniformly among the not-yet-swapped ranks with
    0 < k - i < p n (strict), and the two values are exchanged; where none is left, i stays.
    YWC (2002), section 3.1, in the reading that reproduces their Table 1.
    """
    order = np.argsort(x, kind="stable")
    partner = np.arange(len(x))
    width = largest_step(p, len(x))
    start = 0
    while width > 0 and start < len(x):
        start = _swap_from(partner, start, width, rng.random(4 * len(x) + TRIES + 1), TRIES)
    swapped = np.empty_like(x)
    swapped[order] = x[order][partner]
    return swapped


def largest_step(p: float, n: int) -> int:
    """The largest distance of two ranks that is strictly below p n."""
    return int(np.ceil(p * n)) - 1


def rank_spans(values: Array, x: Array) -> tuple[Array, Array]:
    """The first and the last rank that each x has, or would have, among the rising `values`; NaN where x is missing.

    A value that is not there could stand at the rank before or after its place.
    """
    first = np.searchsorted(values, x, side="left").astype(float)
    last = np.searchsorted(values, x, side="right") - 1.0
    absent = last < first
    first[absent], last[absent] = first[absent] - 1, last[absent] + 1
    first[np.isnan(x)] = last[np.isnan(x)] = np.nan
    return first, last


@jit
def _swap_from(partner: Array, start: int, width: int, draws: Array, tries: int) -> int:
    """Go on from rank `start` while draws last; returns the rank to go on from."""
    n = len(partner)
    used = 0
    for i in range(start, n):
        if partner[i] != i:
            continue
        reach = min(width, n - 1 - i)
        if used + tries + 1 > len(draws):
            return i
        chosen = -1
        if reach > 0:
            for _ in range(tries):
                k = i + 1 + int(draws[used] * reach)
                used += 1
                if partner[k] == k:
                    chosen = k
                    break
        if chosen < 0 and reach > 0:
            free = 0
            for k in range(i + 1, i + 1 + reach):
                free += partner[k] == k
            if free > 0:
                place = int(draws[used] * free)
                used += 1
                for k in range(i + 1, i + 1 + reach):
                    if partner[k] == k:
                        if place == 0:
                            chosen = k
                            break
                        place -= 1
        if chosen >= 0:
            partner[i], partner[chosen] = chosen, i
    return n
