"""Answers of counting queries, each a range in some variables."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

BLOCK = 4096  # records that stay in the cache while all queries look at them


def ranges_around(known: Array, values: Array, width: float, rng: Generator) -> tuple[Array, Array]:
    """Ranges around each of `values`, anywhere, with a share `width` of the rising numbers `known` in them; near an end
    they begin or end there, so that none is cut."""
    place = np.searchsorted(known, values)
    span = max(round(width * len(known)), 1) - 1
    first, last = np.maximum(place - span, 0), np.minimum(place, len(known) - 1 - span)
    start = first + (rng.random(len(values)) * (last - first + 1)).astype(np.int64)
    return known[start], known[start + span]


@jit
def range_sums(columns: Array, weights: Array, low: Array, high: Array) -> Array:
    """For each query q the weights of the records i with low[q, v] <= columns[v, i] <= high[q, v] in every variable v
    that the query asks about (where low is not NaN); without weights (none given) their number. A missing value is in no
    range."""
    counts = np.zeros(len(low))
    count = columns.shape[1]
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        inside = np.empty(stop - start, dtype=np.uint8)
        for q in range(len(low)):
            inside[:] = 1
            for v in range(len(columns)):
                if not np.isnan(low[q, v]):
                    _narrow(inside, columns[v, start:stop], low[q, v], high[q, v])
            counts[q] += _number(inside) if len(weights) == 0 else _weight(inside, weights[start:stop])
    return counts


@inner_jit
def _narrow(inside: Array, x: Array, low: float, high: float) -> None:
    for i in range(len(inside)):
        inside[i] &= (x[i] >= low) & (x[i] <= high)


@inner_jit
def _number(inside: Array) -> float:
    total = 0
    for i in range(len(inside)):
        total += inside[i]
    return float(total)


@inner_jit
def _weight(inside: Array, weights: Array) -> float:
    total = 0.0
    for i in range(len(inside)):
        total += weights[i] * inside[i]
    return total
