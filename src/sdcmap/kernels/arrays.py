"""What every kernel takes and gives: arrays of numpy, of any type or of floating numbers; signs of eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

SAME_SIZE = 1e-9  # relative: entries of an eigenvector so near to each other are equal but for rounding


def with_fixed_signs(vectors: Array) -> Array:
    """The eigenvectors, a column each, with the largest entry positive; of entries that are equal but for rounding, the
    first. The sign that LAPACK returns depends on the processor."""
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - SAME_SIZE) * size.max(axis=0), axis=0)
    return np.asarray(vectors * np.sign(vectors[leading, np.arange(vectors.shape[1])]))
