"""Random changes of category by a transition matrix: P(released = b | original = a) = matrix[a, b]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

MOST_CONDITION = 1e10  # of a matrix that is inverted


def invariant_matrix(counts: Array, stay: float, alpha: float) -> Array:
    """A matrix R with p R = p for the shares p of the categories, and no diagonal entry below `stay`.

    Two stages: P keeps a category with probability `stay`; Q leads back, Q_kj = P_jk p_j / sum_i P_ik p_i; R = P Q,
    mixed with the identity as a R + (1 - a) I.  Gouweleeuw et al. (1998), section 4; sdcMicro's pram has a = alpha, where
    the diagonal may fall below its pd; here a is the largest value up to alpha that keeps it.
    """
    size = len(counts)
    if size < 2 or counts.sum() == 0:
        return np.eye(size)
    p = counts / counts.sum()
    first = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(first, stay)
    arrived = p @ first
    met = arrived > 0
    back = np.eye(size)
    back[met] = (first * p[:, np.newaxis]).T[met] / arrived[met, np.newaxis]
    both = first @ back
    leaving = 1 - np.diag(both)[p > 0].min()
    mix = min(alpha, (1 - stay) / leaving) if leaving > 0 else alpha
    mixed = mix * both + (1 - mix) * np.eye(size)
    mixed[p == 0] = np.eye(size)[p == 0]
    matrix: Array = mixed / mixed.sum(axis=1, keepdims=True)
    return matrix


def response_matrix(categories: int, epsilon: float) -> Array:
    """Keep the category with odds e^epsilon against each other one.  Warner (1965); Kairouz, Oh, Viswanath (2016)"""
    other = 1 / (np.exp(min(epsilon, 700.0)) + categories - 1)
    matrix = np.full((categories, categories), other)
    np.fill_diagonal(matrix, 1 - other * (categories - 1))
    return matrix


def changed(codes: Array, matrix: Array, chance: Array) -> Array:
    """The category of each record after its random change; `chance`: a uniform number in [0, 1) each."""
    size = len(matrix)
    target = np.empty((size, size), dtype=np.int64)  # to stay comes first: most records are looked at once
    for a in range(size):
        target[a] = [a, *range(a), *range(a + 1, size)]
    reached = np.cumsum(np.take_along_axis(matrix, target, axis=1), axis=1)
    last = size - 1 - np.argmax(np.take_along_axis(matrix, target, axis=1)[:, ::-1] > 0, axis=1)
    for a in range(size):
        reached[a, last[a] :] = 1.0  # a rounded sum below 1 must not lead to a category with probability 0
    return _changed(codes, reached, target, chance)


@jit
def _changed(codes: Array, reached: Array, target: Array, chance: Array) -> Array:
    released = codes.copy()
    for i in range(len(codes)):
        a = codes[i]
        t = 0
        while chance[i] >= reached[a, t]:
            t += 1
        if t > 0 or target[a, 0] != a:
            released[i] = target[a, t]
    return released


def corrected_table(table: Array, matrices: Sequence[Array | None]) -> Array | None:
    """The unbiased estimate of the table before masking, E(estimate) = original, one matrix (or None) for each axis.

    E(released) = P^T original along each masked axis, so the estimate solves that.  Kooiman et al. (1997), eq. 3
    None where a matrix has no inverse to ten digits.
    """
    estimate: Array = table.astype(np.float64)
    for axis, matrix in enumerate(matrices):
        if matrix is None:
            continue
        if not (np.isfinite(matrix).all() and np.linalg.cond(matrix) < MOST_CONDITION):
            return None
        moved = np.moveaxis(estimate, axis, 0)
        flat = np.linalg.solve(matrix.T, moved.reshape(len(matrix), -1))
        estimate = np.moveaxis(flat.reshape(moved.shape), 0, axis)
    return estimate
