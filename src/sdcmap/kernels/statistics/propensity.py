"""Propensity scores: how well a model tells released records from original ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.regression import Design, logit, products
from sdcmap.kernels.statistics.trees import grow, leaves_of


def two_way_terms(widths: list[int], squared: list[bool], order: int) -> tuple[tuple[int, ...], ...]:
    """The terms of variables that have so many columns each: the intercept, every column, and with order 2 the squares of
    the first columns of the variables to be `squared` and the products of the columns of two variables."""
    place = np.cumsum([0, *widths]).tolist()
    terms: list[tuple[int, ...]] = [(), *((at,) for at in range(place[-1]))]
    if order == 2:
        terms += [(first, first) for first, wanted in zip(place, squared, strict=False) if wanted]
        for a, b in combinations(range(len(widths)), 2):
            terms += [(i, j) for i in range(place[a], place[a + 1]) for j in range(place[b], place[b + 1])]
    return tuple(terms)


def mean_squared(p: Array, released: Array, original: Array) -> float:
    """pMSE = 1/N sum (p_i - c)^2, c the share of released records.  Woo et al. (2009); Snoke et al. (2018), eq. 1"""
    size = released + original
    total = size.sum()
    share = released.sum() / total
    return float(size @ (p - share) ** 2 / total)


def logit_pmse(design: Design, released: Array, original: Array) -> float | None:
    """pMSE of a logistic regression; None where that cannot be fitted."""
    fitted = logit(design, released, original)
    return None if fitted is None else mean_squared(fitted[1], released, original)


def inverse_and_rank(design: Design, size: Array) -> tuple[Array, int]:
    """A generalised inverse of X'X over all records, and its rank."""
    k = len(design.terms)
    gram = np.zeros((k, k))
    for at, x in design.blocks():
        gram += products(x, size[at])
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = values > 1e-9 * max(values[-1], 1.0)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T / np.outer(scale, scale)
    return inverse, int(kept.sum())


def paired_null(before: Design, after: Design, inverse: Array, weights: Array, total: float) -> float:
    """The mean of pMSE over all ways to swap the labels "original" and "released" within pairs of records, for a logit
    to first order: tr((X'X)^-1 sum w^2 d d')/(4 N), d the difference between the two rows of a pair.

    One Newton step from equal probabilities gives p - 1/2 = X (X'X)^-1 X'(y - 1/2); swapping labels gives
    X'(y - 1/2) = 1/2 sum s w d with independent signs s, whose covariance is 1/4 sum w^2 d d'.
    """
    spread = np.zeros_like(inverse)
    for (at, x), (_, z) in zip(before.blocks(), after.blocks(), strict=True):
        d = (z - x) * weights[at, np.newaxis]
        spread += d.T @ d
    return float(np.sum(inverse * spread) / (4 * total))


def drawn_null(rank: int, released: float, original: float, left: float) -> float:
    """The mean of pMSE for records drawn from the original: (k - 1)(1 - c)^2 c/N, Snoke et al. (2018), eq. 5; times
    `left`, the share of the original not in a sample without replacement (1 for draws with replacement)."""
    total = released + original
    share = released / total
    return (rank - 1) * (1 - share) ** 2 * share / total * left


def tree_pmse(bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> float:
    """The largest pMSE of classification trees whose leaves have `leaf` records or more, each of which begins with another
    variable, cut into halves.

    A tree that chooses its first question goes by one variable alone: where masking keeps each variable's distribution
    (shuffling, swapping) no question helps, and it stops before it begins.
    """
    return max(_pmse_beginning_with(v, bins, sizes, ordered, released, leaf) for v in range(bins.shape[1]))


def _pmse_beginning_with(v: int, bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> float:
    size = np.cumsum(np.bincount(bins[:, v]))
    upper = bins[:, v] > np.searchsorted(size, size[-1] / 2)
    p = np.empty(len(bins))
    for part in (upper, ~upper) if upper.any() else (~upper,):
        p[part] = _shares_in_leaves(bins[part], sizes, ordered, released[part], leaf)
    return mean_squared(p, released.astype(np.float64), 1.0 - released)


def _shares_in_leaves(bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> Array:
    """For each record the share of released ones in its leaf."""
    tree = grow(bins, sizes, ordered, released, 2, leaf)
    at = leaves_of(tree, bins)
    share = np.bincount(at, released) / np.maximum(np.bincount(at), 1)
    scores: Array = share[at]
    return scores
