"""Predicates: how many records satisfy each of many conjunctions of simple conditions."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW, MISSING = range(7)


@jit
def count_matches(x: Array, column: Array, test: Array, at: Array, most: int) -> Array:
    """How many rows of x satisfy each predicate, counted up to `most`.

    A predicate is a row of conditions: x[:, column] compared as `test` says with `at`; a missing number (NaN) satisfies
    MISSING and UNEQUAL alone.
    """
    counts = np.zeros(len(column), dtype=np.int64)
    for q in range(len(column)):
        for i in range(len(x)):
            if _satisfies(x[i], column[q], test[q], at[q]):
                counts[q] += 1
                if counts[q] == most:
                    break
    return counts


@inner_jit
def _satisfies(row: Array, column: Array, test: Array, at: Array) -> bool:
    for j in range(len(column)):
        value, kind = row[column[j]], test[j]
        if kind == MISSING:
            holds = np.isnan(value)
        elif kind == EQUAL:
            holds = value == at[j]
        elif kind == UNEQUAL:
            holds = value != at[j]
        elif kind == AT_LEAST:
            holds = value >= at[j]
        elif kind == AT_MOST:
            holds = value <= at[j]
        elif kind == ABOVE:
            holds = value > at[j]
        else:
            holds = value < at[j]
        if not holds:
            return False
    return True
