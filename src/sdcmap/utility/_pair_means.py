"""Means over pairs of records, never stored: of distances, or of a kernel of them."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


@jit
def row_means(x: Array, c: Array, y: Array, d: Array, width: float, own: bool) -> Array:
    """For each record of the first file the mean over the second of the distance, or of exp(-distance/width) where a width
    is given (not 0). x, y : numbers; c, d : codes; the distance is Euclid's, a code that differs counting 1: the root of
    sum (x - y)^2 + #{c != d}. A sum of distances of single variables would see their margins alone.

    own : whether record i of both files is a pair too.
    """
    means = np.zeros(len(x))
    for i in range(len(x)):
        for r in range(len(y)):
            if r == i and not own:
                continue
            away = 0.0
            for j in range(x.shape[1]):
                away += (x[i, j] - y[r, j]) ** 2
            for j in range(c.shape[1]):
                away += c[i, j] != d[r, j]
            away = np.sqrt(away)
            means[i] += away if width == 0 else np.exp(-away / width)
        means[i] /= len(y) - (not own)
    return means
