"""A target known to be the largest, the smallest or the r-th of the file: the snooper takes the r-th of the masked file.

Duncan, Keller-McNulty, Stokes (2001), section 3.3, for normal data. Largest and smallest have the same risk. The forms of
the paper put E X_(n) in the place of x_(n): they leave out Var X_(n) and its covariance with Y_(n), and are finite at
l2 = 0 where the truth is infinite. `sdcmap.theory.positions` has the truth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import noise_variances, reciprocal, require
from sdcmap.theory.order_statistics import normal_moments

LARGE = 10  # below this many records the large-sample moments are not used


def large_sample_moments(n: int, r: int = 1) -> tuple[float, float]:
    """K1 and K2, the mean and variance of the r-th largest of n standard normal values for large n (Fisher and Tippett).

    K1 = sqrt(2 ln n) - (ln ln n + ln 4pi + 2(S1 - gamma))/(2 sqrt(2 ln n)), K2 = (pi^2/6 - S2)/(2 ln n), with S1 and S2 the
    sums of 1/j and 1/j^2 for j < r (Cramer 1946, p. 376). n must be at least 3: ln ln n has no value at n = 1, and is
    negative below e.

    >>> mean, variance = large_sample_moments(200)
    >>> print(f"{mean:.6f} {variance:.6f}")
    2.787697 0.155232
    """
    require(n=n, r=r)
    if n < 3:
        raise PlanError(f"n must be a whole number in [3, inf) for the large-sample moments K1 and K2. Got {n}.")
    log = math.log(n)
    first, second = sum(1 / j for j in range(1, r)), sum(1 / j**2 for j in range(1, r))
    mean = math.sqrt(2 * log) - (math.log(log) + math.log(4 * math.pi) + 2 * (first - np.euler_gamma)) / (
        2 * math.sqrt(2 * log)
    )
    return mean, (math.pi**2 / 6 - second) / (2 * log)


def extreme(noise_variance: ArrayLike, *, n: int, variance: float, r: int = 1) -> Floats:
    """The paper's large-sample value: R = 1/{K2 (s2+l2) + K1^2 (sqrt(s2+l2) - s)^2} (eq. 10).

    r counts from the nearer end: 1 is the largest or the smallest. With fewer than 10 records, or r beyond a tenth of
    them, the large-sample moments mean nothing and the exact ones are used (`extreme_exact`).

    >>> print(f"{extreme(0.21, n=200, variance=1.0):.6f}")
    3.765869
    """
    require(n=n, variance=variance, r=r)
    if n < LARGE or r > n / 10:
        return extreme_exact(noise_variance, n=n, variance=variance, r=r)
    return _risk(noise_variances(noise_variance), variance, *large_sample_moments(n, r))


def extreme_exact(noise_variance: ArrayLike, *, n: int, variance: float, r: int = 1) -> Floats:
    """Eq. 10 with the exact moments E and V of the r-th normal order statistic in the place of K1 and K2.

    >>> print(f"{extreme_exact(0.21, n=200, variance=1.0):.6f}")
    3.705295
    """
    require(n=n, variance=variance, r=r)
    return _risk(noise_variances(noise_variance), variance, *normal_moments(n + 1 - r, n))


def _risk(l2: Floats, variance: float, mean: float, spread: float) -> Floats:
    masked = variance + l2
    return reciprocal(spread * masked + mean**2 * (np.sqrt(masked) - math.sqrt(variance)) ** 2)  # eq. 10
