"""Array types of the kernels, and a rule for the signs of eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

EQUAL_ENTRIES = 1e-9  # relative difference up to which two entries of an eigenvector count as equal


def with_fixed_signs(vectors: Array) -> Array:
    """Return the eigenvectors (one per column) with the largest entry of each made positive.

    The sign that LAPACK returns depends on the processor. Where several entries are the largest up to rounding, the first
    of them decides.
    """
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - EQUAL_ENTRIES) * size.max(axis=0), axis=0)
    return np.asarray(vectors * np.sign(vectors[leading, np.arange(vectors.shape[1])]))
