"""Propensity scores: how well a model tells released records from original ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.regression import Regressors
from sdcmap.kernels.statistics.trees import grow, leaves_of
from sdcmap.utility._two_way import TwoWay, squared_differences

ALIASED = 1e-9  # a term is a sum of others where they leave no more of its squares


def mean_squared(p: Array, released: Array, original: Array) -> float:
    """pMSE = 1/N sum (p_i - c)^2, c the share of released records.  Woo et al. (2009); Snoke et al. (2018), eq. 1"""
    size = released + original
    return float(size @ (p - released.sum() / size.sum()) ** 2 / size.sum())


def inverse_and_rank(design: Regressors, size: Array) -> tuple[Array, int]:
    """A generalized inverse of X'X over all records, that of terms which are no sums of others, and its rank."""
    gram = 4 * design.likelihood(size, np.zeros_like(size), np.zeros(design.width))[2]
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1.0
    factor, order, rank, _ = lapack.dpstrf(gram / np.outer(scale, scale), tol=ALIASED, lower=1)
    kept = order[:rank] - 1
    own = lapack.dpotri(factor[:rank, :rank], lower=1)[0]
    inverse = np.zeros_like(gram)
    inverse[np.ix_(kept, kept)] = np.tril(own) + np.tril(own, -1).T
    return inverse / np.outer(scale, scale), int(rank)


def paired_null(before: TwoWay, after: TwoWay, inverse: Array, weights: Array, total: float) -> float:
    """The mean of pMSE over all ways to swap the labels "original" and "released" within pairs of records, for a logit
    to first order: tr((X'X)^-1 sum w d d')/(4 N), d the difference between the two rows of a pair.

    One Newton step from equal probabilities gives p - 1/2 = X (X'X)^-1 X'(y - 1/2); swapping labels gives
    X'(y - 1/2) = 1/2 sum s d with independent signs s, whose covariance is 1/4 sum d d'.
    """
    return squared_differences(before, after, inverse, weights) / (4 * total)


def drawn_null(rank: int, released: float, original: float) -> float:
    """The mean of pMSE for records drawn from the original: (k - 1)(1 - c)^2 c/N, Snoke et al. (2018), eq. 5."""
    share = released / (released + original)
    return (rank - 1) * (1 - share) ** 2 * share / (released + original)


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
    at = leaves_of(grow(bins, sizes, ordered, released, 2, leaf), bins)
    share = np.bincount(at, released) / np.maximum(np.bincount(at), 1)
    return np.asarray(share[at])


# A logistic regression with many terms, held to small slopes.


FLAT = 1e-4  # the largest gradient at the end, where curvatures are about 1
OPTIONS = {"maxcor": 30, "gtol": FLAT, "ftol": 0.0, "maxiter": 1000, "maxfun": 2000}


class RidgeLogit(NamedTuple):
    """The probabilities of the first group, its share of the records, and the root of the information where every
    probability is that share (with the ridge)."""

    p: Array
    share: float
    root: Array

    def first_step(self, design: TwoWay, residuals: Array) -> Array:
        """How far probabilities go from the share, to first order, for each column of residuals y - share:
        c(1 - c) X (c(1 - c) X'X + ridge)^-1 X'r, one Newton step."""
        slopes = cho_solve((self.root, True), design.moments(residuals), check_finite=False)
        return self.share * (1 - self.share) * design.predicted(slopes)


def ridge_logit(design: TwoWay, ones: Array, zeros: Array, ridge: float) -> RidgeLogit | None:
    """Logistic regression of units that hold `ones` records of one group and `zeros` of the other, with `ridge`/2 times
    the squared slopes, but for the intercept's, taken from the log-likelihood. None where numbers are too large.

    By L-BFGS in coordinates in which the curvature is 1 at the start: the information is made and taken apart once.
    """
    from scipy.optimize import minimize

    share = float(ones.sum() / (ones.sum() + zeros.sum()))
    start = np.zeros(design.width)
    start[0] = np.log(share / (1 - share))
    penalty = np.r_[0.0, np.full(design.width - 1, ridge)]
    information = design.likelihood(ones, zeros, start)[2]
    information[np.diag_indices_from(information)] += penalty
    try:
        root = cholesky(information, lower=True, overwrite_a=True)
    except (np.linalg.LinAlgError, ValueError):
        return None

    def slopes_at(place: Array) -> Array:
        return np.asarray(start + solve_triangular(root, place, trans="T", lower=True, check_finite=False))

    def loss(place: Array) -> tuple[float, Array]:
        slopes = slopes_at(place)
        value, gradient, *_ = design.likelihood(ones, zeros, slopes, informed=False)
        downhill = solve_triangular(root, penalty * slopes - gradient, lower=True, check_finite=False)
        return 0.5 * float(penalty @ slopes**2) - value, downhill

    best = minimize(loss, np.zeros(design.width), jac=True, method="L-BFGS-B", options=OPTIONS)
    return RidgeLogit(design.likelihood(ones, zeros, slopes_at(best.x), informed=False)[3], share, root)
