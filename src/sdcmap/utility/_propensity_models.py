"""Propensity scores: how well a model distinguishes released from original records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.regression import Regressors
from sdcmap.kernels.statistics.trees import find_leaves, grow
from sdcmap.utility._two_way import TwoWay, sum_squared_differences

ALIAS_TOLERANCE = 1e-9  # a term with a smaller residual share of its sum of squares is a combination of others


def compute_pmse(p: Array, released: Array, original: Array) -> float:
    """Return pMSE = 1/N sum (p_i - c)^2, c the share of released records.

    Woo et al. (2009); Snoke et al. (2018), eq. 1
    """
    size = released + original
    return float(size @ (p - released.sum() / size.sum()) ** 2 / size.sum())


def inverse_and_rank(design: Regressors, size: Array) -> tuple[Array, int]:
    """Return a generalized inverse of X'X over all records, from linearly independent terms, and its rank."""
    gram = 4 * design.likelihood(size, np.zeros_like(size), np.zeros(design.width))[2]
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1.0
    # pivoted Cholesky: the first `rank` pivots are linearly independent terms
    factor, order, rank, _ = lapack.dpstrf(gram / np.outer(scale, scale), tol=ALIAS_TOLERANCE, lower=1)
    independent = order[:rank] - 1
    lower = lapack.dpotri(factor[:rank, :rank], lower=1)[0]
    inverse = np.zeros_like(gram)
    inverse[np.ix_(independent, independent)] = np.tril(lower) + np.tril(lower, -1).T
    return inverse / np.outer(scale, scale), int(rank)


def expected_pmse_of_pairs(before: TwoWay, after: TwoWay, inverse: Array, weights: Array, total: float) -> float:
    """Return the mean of pMSE over all ways to swap the labels "original" and "released" within pairs of records.

    For a logit, to first order: tr((X'X)^-1 sum w d d')/(4 N), d the difference between the two rows of a pair. One
    Newton step from equal probabilities gives p - 1/2 = X (X'X)^-1 X'(y - 1/2); swapping labels gives X'(y - 1/2) = 1/2
    sum s d with independent signs s, whose covariance is 1/4 sum d d'.
    """
    return sum_squared_differences(before, after, inverse, weights) / (4 * total)


def expected_pmse_of_draws(rank: int, released: float, original: float) -> float:
    """Return the mean of pMSE for records drawn from the original: (k - 1)(1 - c)^2 c/N, Snoke et al. (2018), eq. 5."""
    share = released / (released + original)
    return (rank - 1) * (1 - share) ** 2 * share / (released + original)


def tree_pmse(bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> float:
    """Return the largest pMSE of classification trees that each start with another variable, split in half.

    A tree that chooses its first split looks at one variable at a time. If masking preserves each variable's
    distribution (shuffling, swapping), no single split helps, and such a tree stops at once.

    leaf : the smallest number of records in a leaf
    """
    return max(_pmse_beginning_with(v, bins, sizes, ordered, released, leaf) for v in range(bins.shape[1]))


def _pmse_beginning_with(v: int, bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> float:
    """Return the pMSE of two trees, one for each half of the records by variable `v`."""
    size = np.cumsum(np.bincount(bins[:, v]))
    upper = bins[:, v] > np.searchsorted(size, size[-1] / 2)
    p = np.empty(len(bins))
    for part in (upper, ~upper) if upper.any() else (~upper,):
        p[part] = _shares_in_leaves(bins[part], sizes, ordered, released[part], leaf)
    return compute_pmse(p, released.astype(np.float64), 1.0 - released)


def _shares_in_leaves(bins: Array, sizes: Array, ordered: Array, released: Array, leaf: int) -> Array:
    """Return, for each record, the share of released records in its leaf."""
    at = find_leaves(grow(bins, sizes, ordered, released, 2, leaf), bins)
    share = np.bincount(at, released) / np.maximum(np.bincount(at), 1)
    return np.asarray(share[at])


# A logistic regression with many terms, regularized by a ridge.


GRADIENT_TOLERANCE = 1e-4  # largest gradient at convergence, in coordinates with curvatures of about 1
LBFGS_OPTIONS = {"maxcor": 30, "gtol": GRADIENT_TOLERANCE, "ftol": 0.0, "maxiter": 1000, "maxfun": 2000}


class RidgeLogit(NamedTuple):
    """A fitted logit with a ridge.

    `p` are the probabilities of the first group and `share` is its share of the records. `root` is the Cholesky factor
    of the information, with the ridge, where every probability equals the share.
    """

    p: Array
    share: float
    root: Array

    def first_step(self, design: TwoWay, residuals: Array) -> Array:
        """Return the first-order change of the probabilities for each column of residuals y - share.

        This is one Newton step: c(1 - c) X (c(1 - c) X'X + ridge)^-1 X'r.
        """
        slopes = cho_solve((self.root, True), design.moments(residuals), check_finite=False)
        return self.share * (1 - self.share) * design.predict(slopes)


def ridge_logit(design: TwoWay, ones: Array, zeros: Array, ridge: float) -> RidgeLogit | None:
    """Fit a logistic regression with a ridge; return None if the numbers are too large.

    Each unit has `ones` records of one group and `zeros` of the other. The log-likelihood is reduced by `ridge`/2 times
    the squared slopes, except the intercept's. L-BFGS runs in coordinates in which the curvature at the start is 1, so
    that the information matrix is computed and factorized only once.
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

    def slopes_at(point: Array) -> Array:
        return np.asarray(start + solve_triangular(root, point, trans="T", lower=True, check_finite=False))

    def loss(point: Array) -> tuple[float, Array]:
        slopes = slopes_at(point)
        value, gradient, *_ = design.likelihood(ones, zeros, slopes, with_information=False)
        downhill = solve_triangular(root, penalty * slopes - gradient, lower=True, check_finite=False)
        return 0.5 * float(penalty @ slopes**2) - value, downhill

    best = minimize(loss, np.zeros(design.width), jac=True, method="L-BFGS-B", options=LBFGS_OPTIONS)
    return RidgeLogit(design.likelihood(ones, zeros, slopes_at(best.x), with_information=False)[3], share, root)
