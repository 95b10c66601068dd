"""A logistic regression with many terms, held to small slopes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from sdcmap.kernels.arrays import Array
from sdcmap.utility._two_way import TwoWay

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
    penalty = np.full(design.width, ridge)
    penalty[0] = 0.0
    information = design.likelihood(ones, zeros, start)[2]
    information[np.diag_indices_from(information)] += penalty
    try:
        root = cholesky(information, lower=True, overwrite_a=True)
    except (np.linalg.LinAlgError, ValueError):
        return None

    def slopes_at(place: Array) -> Array:
        slopes: Array = start + solve_triangular(root, place, trans="T", lower=True, check_finite=False)
        return slopes

    def loss(place: Array) -> tuple[float, Array]:
        slopes = slopes_at(place)
        value, gradient, *_ = design.likelihood(ones, zeros, slopes, informed=False)
        downhill = solve_triangular(root, penalty * slopes - gradient, lower=True, check_finite=False)
        return 0.5 * float(penalty @ slopes**2) - value, downhill

    best = minimize(loss, np.zeros(design.width), jac=True, method="L-BFGS-B", options=OPTIONS)
    return RidgeLogit(design.likelihood(ones, zeros, slopes_at(best.x), informed=False)[3], share, root)
