"""A target known by its position: the k-th smallest of x, attacked with the k-th smallest of Y.

These are the exact forms of what eq. 6, 7 and 9 of Duncan, Keller-McNulty, Stokes (2001) approximate. The approximations
fix x_(k) but let Y_(k) vary over samples. Here the variance of x_(k) and its covariance with Y_(k) count, so R is infinite
at l2 = 0. R may exceed 1/l2: neighbors that change places cancel each other's noise (erratum of the sentence after eq. 7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sdcmap.core import Floats, PlanError
from sdcmap.kernels import quantiles
from sdcmap.theory.joint_ranks import mse_of_extreme, normal_moments
from sdcmap.theory.parameter_checks import noise_variances, reciprocal, records, require
from sdcmap.theory.poisson_binomial import mse_of_rank

# A target at a known percentile of the population: the intruder uses the same percentile of the masked file.
#
# Duncan, Keller-McNulty, Stokes (2001), section 3.2. The target is xi_p = mu + z_p s, the attack Y_(k), k = ceil(n p).


def rank_of(p: float, n: int) -> int:
    """Return k = ceil(n p), without the rounding error of n p.

    >>> rank_of(0.99, 200), rank_of(0.99, 177)
    (198, 176)
    """
    require(n=n, p=p)
    return quantiles.quantile_rank(p, n)


def percentile(noise_variance: ArrayLike, *, n: int, variance: float, p: float) -> Floats:
    """Return R for normal data and large samples: 1/{p(1-p)/(n phi(z)^2) (s2+l2) + z^2 (sqrt(s2+l2) - s)^2} (eq. 8).

    It is 13 to 40 % too low in the tails of a few hundred records (n = 200, p = 0.99); `percentile_exact` is exact.

    >>> print(f"{percentile(0.21, n=200, variance=1.0, p=0.99):.6f}")
    7.223444
    """
    require(n=n, variance=variance, p=p)
    masked, z = variance + noise_variances(noise_variance), float(ndtri(p))
    height = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    bias = np.sqrt(masked) - math.sqrt(variance)
    return reciprocal(p * (1 - p) / (n * height**2) * masked + z**2 * bias**2)  # eq. 8


def percentile_of_any(*, n: int, p: float, density: ArrayLike, masked: ArrayLike, original: ArrayLike) -> Floats:
    """Return R for any distribution: 1/{p(1-p)/(n f_Y(xi_Yp)^2) + (xi_Yp - xi_Xp)^2}.

    It is eq. 5, with the p(1-p) and the reciprocal that are missing in print.

    Parameters
    ----------
    density : of the masked values at their p-th percentile point, f_Y(xi_Yp), in 1/unit.
    masked, original : the p-th percentile points xi_Yp and xi_Xp of masked and original values, in their unit.
    """
    require(n=n, p=p, density=density, masked=masked, original=original)
    bias = np.asarray(masked, dtype=float) - np.asarray(original, dtype=float)
    return reciprocal(p * (1 - p) / (n * np.asarray(density, dtype=float) ** 2) + bias**2)  # eq. 5


def percentile_exact(noise_variance: ArrayLike, *, n: int, variance: float, p: float) -> Floats:
    """Return R for normal data, exactly: 1/{(s2+l2) V_k + (z_p s - sqrt(s2+l2) E_k)^2}.

    E_k and V_k are the moments of the k-th normal order statistic. A little noise may raise R: E_k is below z_p, and noise
    widens the file towards the target.

    >>> print(*(f"{r:.6f}" for r in percentile_exact([0.0, 0.05], n=200, variance=1.0, p=0.99)))
    15.165699 16.342162
    """
    require(n=n, variance=variance, p=p)
    masked = variance + noise_variances(noise_variance)
    mean, spread = normal_moments(rank_of(p, n), n)
    return reciprocal(masked * spread + (float(ndtri(p)) * math.sqrt(variance) - np.sqrt(masked) * mean) ** 2)


MAX_RANK_FROM_END = 25  # largest rank from the nearer end of `position_known`; the cost grows as its square


def position_in_file(noise_variance: ArrayLike, x: ArrayLike, rank: int) -> Floats:
    """Return R = 1/E{(x_(k) - Y_(k))^2 | x} for the records x of one file and normal noise, exactly (Poisson-binomial).

    Parameters
    ----------
    x : the original values, at least 2. The order of tied records does not matter.
    rank : k, counted from the smallest: 1 is the minimum, len(x) the maximum, `rank_of(p, n)` a sample percentile.

    It takes some milliseconds at n = 200 and a second at n = 3,000, growing as n^1.5.

    >>> print(f"{position_in_file(0.21, [0.0, 1.0, 5.0], rank=3):.6f}")
    4.761905
    """
    values = records(x)
    require(n=len(values), rank=rank)
    l2 = noise_variances(noise_variance)
    return reciprocal(np.array([mse_of_rank(values, rank, float(noise)) for noise in l2.ravel()]).reshape(l2.shape))


def position_known(noise_variance: ArrayLike, *, n: int, variance: float, rank: int) -> Floats:
    """Return R = 1/E(X_(k) - Y_(k))^2 over normal samples and normal noise, exactly; no file is needed.

    Parameters
    ----------
    rank : k, counted from the smallest. It must be among the 25 nearest to an end. For other ranks use
        `position_in_file` with a file, or with `normal_scores` instead of one.

    >>> print(f"{position_known(0.21, n=200, variance=1.0, rank=200):.6f}")
    4.964624
    """
    require(n=n, variance=variance, rank=rank)
    l2 = noise_variances(noise_variance)
    r = min(rank, n + 1 - rank)
    if r > MAX_RANK_FROM_END:
        raise PlanError(
            f"rank must be in [1, {MAX_RANK_FROM_END}] or [n - {MAX_RANK_FROM_END - 1}, n] here. Got {rank} with n={n}; "
            "use position_in_file for other ranks."
        )
    mse = [variance * mse_of_extreme(r, n, float(noise)) for noise in l2.ravel() / variance]
    return reciprocal(np.array(mse).reshape(l2.shape))


def extreme_in_sample(noise_variance: ArrayLike, *, n: int, variance: float, r: int = 1) -> Floats:
    """Return `position_known` for the r-th largest."""
    return position_known(noise_variance, n=n, variance=variance, rank=n + 1 - r)


def normal_scores(n: int, variance: float) -> Floats:
    """Return a file with the quantiles of its normal population: s z_((i - 1/2)/n), i = 1..n."""
    require(n=n, variance=variance)
    return np.asarray(math.sqrt(variance) * ndtri((np.arange(n) + 0.5) / n))


# A target known to be the largest, the smallest or the r-th of the file: the intruder uses the r-th of the masked file.
#
# Duncan, Keller-McNulty, Stokes (2001), section 3.3, for normal data. The largest and the smallest have the same risk. The
# formulas of the paper use E X_(n) instead of x_(n). They omit Var X_(n) and its covariance with Y_(n), and are finite at
# l2 = 0, where R is infinite. `position_known` and `position_in_file` are exact.


MIN_LARGE_SAMPLE = 10  # records; the large-sample moments are not used below


def large_sample_moments(n: int, r: int = 1) -> tuple[float, float]:
    """Return K1 and K2, mean and variance of the r-th largest of n standard normal values for large n (Fisher, Tippett).

    K1 = sqrt(2 ln n) - (ln ln n + ln 4pi + 2(S1 - gamma))/(2 sqrt(2 ln n)), K2 = (pi^2/6 - S2)/(2 ln n), with S1 and S2 the
    sums of 1/j and 1/j^2 for j < r (Cramer 1946, p. 376). n must be at least 3, because ln ln n is undefined at n = 1
    and negative below e.

    >>> mean, variance = large_sample_moments(200)
    >>> print(f"{mean:.6f} {variance:.6f}")
    2.787697 0.155232
    """
    require(n=n, r=r)
    if n < 3:
        raise PlanError(f"n must be a whole number in [3, inf) for the large-sample moments K1 and K2. Got {n}.")
    log, root = math.log(n), math.sqrt(2 * math.log(n))
    first, second = sum(1 / j for j in range(1, r)), sum(1 / j**2 for j in range(1, r))
    less = math.log(log) + math.log(4 * math.pi) + 2 * (first - np.euler_gamma)
    return root - less / (2 * root), (math.pi**2 / 6 - second) / (2 * log)


def extreme(noise_variance: ArrayLike, *, n: int, variance: float, r: int = 1) -> Floats:
    """Return R for large samples: 1/{K2 (s2+l2) + K1^2 (sqrt(s2+l2) - s)^2} (eq. 10).

    r counts from the nearer end: 1 is the largest or the smallest. With fewer than 10 records, or r beyond a tenth of
    them, the large-sample moments are useless, and `extreme_exact` is used.

    >>> print(f"{extreme(0.21, n=200, variance=1.0):.6f}")
    3.765869
    """
    require(n=n, variance=variance, r=r)
    if n < MIN_LARGE_SAMPLE or r > n / 10:
        return extreme_exact(noise_variance, n=n, variance=variance, r=r)
    return _risk(noise_variances(noise_variance), variance, *large_sample_moments(n, r))


def extreme_exact(noise_variance: ArrayLike, *, n: int, variance: float, r: int = 1) -> Floats:
    """Return R of eq. 10 with the exact moments E and V of the r-th normal order statistic instead of K1 and K2.

    >>> print(f"{extreme_exact(0.21, n=200, variance=1.0):.6f}")
    3.705295
    """
    require(n=n, variance=variance, r=r)
    return _risk(noise_variances(noise_variance), variance, *normal_moments(n + 1 - r, n))


def _risk(l2: Floats, variance: float, mean: float, spread: float) -> Floats:
    masked = variance + l2
    return reciprocal(spread * masked + mean**2 * (np.sqrt(masked) - math.sqrt(variance)) ** 2)  # eq. 10
