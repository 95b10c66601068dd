"""Gower's distance as it is written down, for attacks that look at few of the pairs."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array


def gower(first: Array, second: Array, categorical: Array, span: Array) -> Array:
    """Minus Gower's distance: the mean over the fields present on both sides of |a - b| / range, or of a != b."""
    total, count = np.zeros((len(first), len(second))), np.zeros((len(first), len(second)))
    for f, (is_category, width) in enumerate(zip(categorical, span, strict=True)):
        apart = np.abs(first[:, f, np.newaxis] - second[np.newaxis, :, f])
        present = ~np.isnan(apart)
        count += present
        total -= np.where(present, apart > 0 if is_category else np.minimum(apart / width, 1.0), 0.0)
    return np.where(count > 0, total / np.maximum(count, 1), -1.0)
