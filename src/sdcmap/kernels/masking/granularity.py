"""The power of ten that numbers were rounded to."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array

COARSEST, FINEST = 6, -9  # powers of ten that are tried


def granularity(values: Array, storage: str = "Float64") -> int | None:
    """The largest k in 6 .. -9 for which every value is a multiple of 10^k; None: there is none.

    >>> granularity(np.array([1.5, 20.0, 3.25]))
    -2
    >>> granularity(np.array([3000.0, 12000.0]))
    3
    """
    known = values[~np.isnan(values)]
    if not known.any():
        return 0 if len(known) else None
    precision = 4 * np.finfo(np.float32 if storage == "Float32" else np.float64).eps
    for k in range(COARSEST, FINEST - 1, -1):
        scaled = in_steps(known, k)
        if np.all(np.abs(scaled - np.rint(scaled)) <= precision * np.abs(scaled)):
            return k
    return None


def in_steps(values: Array, k: int) -> Array:
    return values / 10.0**k if k >= 0 else values * 10.0**-k
