"""Poisson log-linear models of a table, and what they say of its uniques."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sdcmap.kernels.arrays import Array

ROUNDS = 500  # of iterative proportional fitting
CLOSE = 1e-9  # of a margin to its target, as a share of all records


def main_effect_means(codes: Array, count: Array) -> Array:
    """The fitted mean of each met cell under independence: n prod_j n_j / n.

    codes : MISSING (-1) where a value is missing; shares are of known values, and the mean of a cell with a missing value
    is that of all cells it may be.
    """
    expected = np.full(len(codes), float(count.sum()))
    for column in codes.T:
        known = column >= 0
        inside = np.bincount(column[known], count[known])
        expected[known] *= (inside / inside.sum())[column[known]]
    return expected


def two_way_means(codes: Array, count: Array, shape: tuple[int, ...]) -> Array:
    """The same of at least two variables with all two-way interactions, by iterative proportional fitting.

    The model is fitted to the cells without missing values, and scaled to all records. With two variables it is
    saturated and the means are the counts. Bishop, Fienberg, Holland (1975)
    """
    whole = (codes >= 0).all(axis=1)
    means = _fitted(tuple(codes[whole].T), count[whole], shape) * (count.sum() / max(count[whole].sum(), 1))
    fitted = np.empty(len(codes))
    gone, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    for place, missing in enumerate(gone):
        rows = pattern.ravel() == place
        margin = means.sum(axis=tuple(np.flatnonzero(missing)), keepdims=True)
        fitted[rows] = margin[tuple(np.maximum(codes[rows], 0).T)]
    return fitted


def _fitted(place: tuple[Array, ...], count: Array, shape: tuple[int, ...]) -> Array:
    table = np.zeros(shape)
    table[place] = count
    pairs = list(combinations(range(len(shape)), 2))
    others = [tuple(axis for axis in range(len(shape)) if axis not in pair) for pair in pairs]
    targets = [table.sum(axis=rest, keepdims=True) for rest in others]
    means = np.ones(shape)
    for _ in range(ROUNDS):
        gap = 0.0
        for rest, target in zip(others, targets, strict=True):
            margin = means.sum(axis=rest, keepdims=True)
            gap = max(gap, float(np.abs(margin - target).max()))
            means *= np.divide(target, margin, out=np.zeros_like(target), where=margin > 0)
        if gap <= CLOSE * count.sum():
            break
    return means


def unique_risks(mean: Array, share: Array) -> tuple[Array, Array]:
    """P(F = 1 | f = 1) and E(1/F | f = 1) of sample uniques with fitted means and sampling fractions.

    F - 1 is Poisson with mean h = mean (1 - share) / share.  Skinner, Holmes (1998); Elamir, Skinner (2006)
    """
    with np.errstate(over="ignore"):
        h = np.maximum(mean * (1 - share) / share, 0.0)
    return np.exp(-h), np.divide(-np.expm1(-h), h, out=np.ones_like(h), where=h > 0)
