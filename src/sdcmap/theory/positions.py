"""A target known by its position in the file itself: the k-th smallest of x, attacked with the k-th smallest of Y.

The exact forms of what eq. 6, 7 and 9 of Duncan, Keller-McNulty, Stokes (2001) approximate: those hold x_(k) fixed but let
Y_(k) vary over samples. Here the variance of x_(k) and its covariance with Y_(k) count, so R is infinite at l2 = 0.
R may exceed 1/l2: neighbours that change places cancel each other's noise (erratum of the sentence after eq. 7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import noise_variances, reciprocal, records, require
from sdcmap.theory.joint_ranks import mse_of_extreme
from sdcmap.theory.percentiles import rank_of
from sdcmap.theory.poisson_binomial import mse_of_rank

FURTHEST = 25  # ranks from the nearer end that `position_known` computes; its cost grows as their square


def position_in_file(noise_variance: ArrayLike, x: ArrayLike, rank: int) -> Floats:
    """R = 1/E{(x_(k) - Y_(k))^2 | x} for the records x of one file and normal noise, exact (Poisson-binomial).

    Parameters
    ----------
    x : the original values, at least 2. Tied records share their value, so their order does not matter.
    rank : k, counted from the smallest: 1 is the minimum, len(x) the maximum, `rank_of(p, n)` a sample percentile.

    Cost: some milliseconds at n = 200, a second at n = 3000, growing as n^1.5.

    >>> print(f"{position_in_file(0.21, [0.0, 1.0, 5.0], rank=3):.6f}")
    4.761905
    """
    values = records(x)
    require(n=len(values), rank=rank)
    l2 = noise_variances(noise_variance)
    mse = [mse_of_rank(values, rank, float(noise)) for noise in l2.ravel()]
    return reciprocal(np.array(mse).reshape(l2.shape))


def percentile_in_file(noise_variance: ArrayLike, x: ArrayLike, p: float) -> Floats:
    """`position_in_file` for the p-th sample percentile, k = ceil(n p)."""
    values = records(x)
    return position_in_file(noise_variance, values, rank_of(p, len(values)))


def position_known(noise_variance: ArrayLike, *, n: int, variance: float, rank: int) -> Floats:
    """R = 1/E(X_(k) - Y_(k))^2 over normal samples and normal noise, exact; no file is needed.

    Parameters
    ----------
    rank : k, counted from the smallest. It must be among the 25 nearest to an end; further inside use
        `position_in_file` with a file, or with the normal scores in the place of one.

    >>> print(f"{position_known(0.21, n=200, variance=1.0, rank=200):.6f}")
    4.964624
    """
    require(n=n, variance=variance, rank=rank)
    l2 = noise_variances(noise_variance)
    r = min(rank, n + 1 - rank)
    if r > FURTHEST:
        raise PlanError(
            f"rank must be in [1, {FURTHEST}] or [n - {FURTHEST - 1}, n] here. Got {rank} with n={n}; "
            "use position_in_file for a rank further inside."
        )
    mse = [variance * mse_of_extreme(r, n, float(noise)) for noise in l2.ravel() / variance]
    return reciprocal(np.array(mse).reshape(l2.shape))


def normal_scores(n: int, variance: float) -> Floats:
    """A file that looks like its population: s z_((i - 1/2)/n), i = 1..n."""
    from scipy.special import ndtri

    require(n=n, variance=variance)
    scores: Floats = math.sqrt(variance) * ndtri((np.arange(n) + 0.5) / n)
    return scores
