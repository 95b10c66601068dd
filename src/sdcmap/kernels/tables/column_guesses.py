"""Guesses of each column from the records that are nearest on all other columns."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.attribution import ANY, TIE_TOLERANCE


@jit
def nearest_without_column(
    x: Array, c: Array, y: Array, d: Array, column: Array, guessed: Array, truth: Array, guess: Array
) -> Array:
    """Return the share of right guesses, for each target and guessed column, among the records nearest without the column.

    The distance is Gower's, the sum over all fields but those of the guessed column. Records that tie count equally.

    x, c : numbers (each divided by its range) and codes of the targets; y, d : those of the records.
    column : the column of each field, first numbers, then codes. guessed : the columns to guess.
    truth, guess : (target or record, guessed column) codes; a guess is right where they are equal; -1: no value.
    """
    right = np.zeros((len(x), len(guessed)))
    total, own = np.empty(len(y)), np.empty((len(guessed), len(y)))
    for t in range(len(x)):
        # the distance over all fields, and the part of each guessed column
        total[:], own[:] = 0.0, 0.0
        for f in range(len(column)):
            index = -1
            for g in range(len(guessed)):
                if guessed[g] == column[f]:
                    index = g
            for r in range(len(y)):
                cost = _field_distance(x, c, y, d, t, r, f)
                total[r] += cost
                if index >= 0:
                    own[index, r] += cost
        for g in range(len(guessed)):
            if truth[t, g] < 0:
                continue
            least, ties, hits = np.inf, 0, 0
            for r in range(len(y)):
                distance = total[r] - own[g, r]
                if distance > least + TIE_TOLERANCE:
                    continue
                if distance < least - TIE_TOLERANCE:
                    least, ties, hits = distance, 0, 0
                ties += 1
                hits += truth[t, g] == guess[r, g]
            right[t, g] = hits / ties
    return right


@inner_jit
def _field_distance(x: Array, c: Array, y: Array, d: Array, t: int, r: int, f: int) -> float:
    """Return the distance of a target and a record in one field, between 0 and 1."""
    numbers = x.shape[1]
    if f >= numbers:
        code = d[r, f - numbers]
        return 1.0 if c[t, f - numbers] != code and code != ANY else 0.0
    gap = abs(x[t, f] - y[r, f])
    if np.isnan(gap):
        return 0.0 if np.isnan(x[t, f]) and np.isnan(y[r, f]) else 1.0
    return float(min(gap, 1.0))
