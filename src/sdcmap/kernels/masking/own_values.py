"""Values that are one or two persons' own: where a model draws one, it tells that its owner was in the file."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import on_grid_of

NEAR = 8  # values on each side between which an own one may come to lie
FEW = 10  # records with a number; that three have it, and not two, would tell of the third
CROWD = 3  # so many records with a value, or behind an average, and it is nobody's own


def unowned_numbers(drawn: Array, original: Array, rng: Generator) -> Array:
    """Numbers drawn from an original; one that fewer than ten of its records have becomes any number between the eighth
    value below it and the eighth above (U(x_(i-8), x_(i+8)), x_(i) its distinct values; at an end of the range, the end).
    Between its next neighbors it would still be where its owner is, more often than where nobody is. It stays on the grid
    of the original, where there is one: off it, it would tell that few had it. NaN stays.

    >>> rng, original = np.random.default_rng(1), np.repeat([0.0, 5.0, 9.0], [10, 1, 1])
    >>> unowned_numbers(np.array([0.0, 5.0]), original, rng).round(1).tolist()
    [0.0, 5.0]
    """
    values, counts = np.unique(original[~np.isnan(original)], return_counts=True)
    if len(values) < 2:
        return drawn
    rows = np.flatnonzero(~np.isnan(drawn))
    place = np.searchsorted(values, drawn[rows])
    owned = counts[place] < FEW
    rows, place = rows[owned], place[owned]
    low, high = values[np.maximum(place - NEAR, 0)], values[np.minimum(place + NEAR, len(values) - 1)]
    spread = drawn.copy()
    spread[rows] = on_grid_of(low + (high - low) * rng.random(len(rows)), values)
    return spread


def unowned_codes(drawn: Array, original: Array, known: int, ordered: bool, rng: Generator) -> Array:
    """Codes of categories drawn from an original; one that fewer than three of its records have becomes the nearest that
    more have, or, without an order, any of these as often as it is met. Where there is none, they stay, as do codes from
    `known` on, which say that a value is missing.

    >>> unowned_codes(np.array([0, 1, 2, 3]), np.array([0, 0, 0, 1, 2, 3]), 3, True, np.random.default_rng(1)).tolist()
    [0, 0, 0, 3]
    """
    counts = np.bincount(original, minlength=known)
    crowds = np.flatnonzero(counts[:known] >= CROWD)
    rows = np.flatnonzero((counts[drawn] < CROWD) & (drawn < known))
    if len(crowds) == 0 or len(rows) == 0:
        return drawn
    moved = drawn.copy()
    if ordered:
        moved[rows] = crowds[np.abs(drawn[rows, np.newaxis] - crowds).argmin(axis=1)]
    else:
        moved[rows] = rng.choice(crowds, len(rows), p=counts[crowds] / counts[crowds].sum())
    return moved
