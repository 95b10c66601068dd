"""Replace values that one or two persons have.

If a model draws such a value, it discloses that its owner was in the original file.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import snap_to_grid

NEIGHBOR_VALUES = 8  # distinct values on each side, between which a rare number is redrawn
MIN_NUMBER_UNITS = 10  # with a number; with a limit of three, the step from two to three would disclose the third
MIN_SHARING_RECORDS = 3  # units with a category, or behind an average, from which on it belongs to no single person


def replace_rare_numbers(drawn: Array, original: Array, rng: Generator) -> Array:
    """Replace drawn numbers that fewer than ten units of the original have.

    original : the values of the units, a value once for each unit that has it.

    A rare number x_(i) is replaced by a draw from U(x_(i-8), x_(i+8)), where x_(1), x_(2), ... are the distinct values of
    the original; the range is cut at its ends. Between its next neighbors it would still be near its owner's value more
    often than chance allows. The result stays on the grid of the original, because a value off the grid would disclose that
    it was rare. NaN stays.

    >>> rng, original = np.random.default_rng(1), np.repeat([0.0, 5.0, 9.0], [10, 1, 1])
    >>> replace_rare_numbers(np.array([0.0, 5.0]), original, rng).round(1).tolist()
    [0.0, 5.0]
    """
    values, counts = np.unique(original[~np.isnan(original)], return_counts=True)
    if len(values) < 2:
        return drawn
    rows = np.flatnonzero(~np.isnan(drawn))
    index = np.minimum(np.searchsorted(values, drawn[rows]), len(values) - 1)
    rare = counts[index] < MIN_NUMBER_UNITS
    rows, index = rows[rare], index[rare]
    low = values[np.maximum(index - NEIGHBOR_VALUES, 0)]
    high = values[np.minimum(index + NEIGHBOR_VALUES, len(values) - 1)]
    replaced = drawn.copy()
    replaced[rows] = snap_to_grid(low + (high - low) * rng.random(len(rows)), values)
    return replaced


def replace_rare_codes(drawn: Array, original: Array, known: int, ordered: bool, rng: Generator) -> Array:
    """Replace drawn categories that fewer than three units of the original have; `original` as in replace_rare_numbers.

    With an order, the nearest category with enough records replaces a rare one; without, such a category is drawn with its
    frequency. Without any such category the codes stay, as do codes from `known` on, which stand for missing values.

    >>> replace_rare_codes(np.array([0, 1, 2, 3]), np.array([0, 0, 0, 1, 2, 3]), 3, True, np.random.default_rng(1)).tolist()
    [0, 0, 0, 3]
    """
    counts = np.bincount(original, minlength=known)
    frequent = np.flatnonzero(counts[:known] >= MIN_SHARING_RECORDS)
    rows = np.flatnonzero((counts[drawn] < MIN_SHARING_RECORDS) & (drawn < known))
    if len(frequent) == 0 or len(rows) == 0:
        return drawn
    replaced = drawn.copy()
    if ordered:
        replaced[rows] = frequent[np.abs(drawn[rows, np.newaxis] - frequent).argmin(axis=1)]
    else:
        replaced[rows] = rng.choice(frequent, len(rows), p=counts[frequent] / counts[frequent].sum())
    return replaced
