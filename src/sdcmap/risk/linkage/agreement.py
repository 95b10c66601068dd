"""Agreement scores of all pairs of two small files, compiled: the plain formula is `links.agreement_scores`."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


def agreement_matrix(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """n x m: the sum over the fields present on both sides of low + gain max(0, 1 - |known - released| / reach)."""
    score = np.zeros((len(known), len(released)))
    _add_fields(score, known, np.ascontiguousarray(released.T), reach, low, gain)
    return score


@jit
def _add_fields(score: Array, known: Array, fields: Array, reach: Array, low: Array, gain: Array) -> None:
    for i in range(score.shape[0]):
        row = score[i]
        for f in range(fields.shape[0]):
            a, width, base, more = known[i, f], reach[i, f], low[f], gain[f]
            field = fields[f]
            for j in range(len(field)):
                far = abs(a - field[j]) / width
                near = base + more * max(0.0, 1.0 - far)
                row[j] += near if far == far else 0.0
