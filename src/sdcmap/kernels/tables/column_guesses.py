"""Guesses of each column from the records that are nearest on all other columns."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.attribution import TIE_TOLERANCE, add_codes, add_numbers


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
    total, own, unused = np.empty(len(y)), np.empty((len(guessed), len(y))), np.empty(len(y))
    for t in range(len(x)):
        # the distance over all fields, and the part of each guessed column
        total[:], own[:] = 0.0, 0.0
        for f in range(len(column)):
            part = unused
            for g in range(len(guessed)):
                if guessed[g] == column[f]:
                    part = own[g]
            for sums in (total, part):
                if f < x.shape[1]:
                    add_numbers(x[t, f], y[:, f], 1.0, sums)
                else:
                    add_codes(c[t, f - x.shape[1]], d[:, f - x.shape[1]], 1.0, sums)
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
