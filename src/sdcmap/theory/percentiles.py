"""A target at a known percentile of the population: the snooper takes the same percentile of the masked file.

Duncan, Keller-McNulty, Stokes (2001), section 3.2. The target is xi_p = mu + z_p s, the attack Y_(k), k = ceil(n p).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sdcmap.kernels import quantiles
from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import noise_variances, reciprocal, require
from sdcmap.theory.order_statistics import normal_moments


def rank_of(p: float, n: int) -> int:
    """k = ceil(n p), whatever the rounding of n p.

    >>> rank_of(0.99, 200), rank_of(0.99, 177)
    (198, 176)
    """
    require(n=n, p=p)
    return quantiles.rank_of(p, n)


def percentile(noise_variance: ArrayLike, *, n: int, variance: float, p: float) -> Floats:
    """Normal data, the paper's large-sample value: R = 1/{p(1-p)/(n phi(z)^2) (s2+l2) + z^2 (sqrt(s2+l2) - s)^2} (eq. 8).

    Low by 13 to 40 % in the tails of a few hundred records (n = 200, p = .99); `percentile_exact` is not.

    >>> print(f"{percentile(0.21, n=200, variance=1.0, p=0.99):.6f}")
    7.223444
    """
    require(n=n, variance=variance, p=p)
    masked, z = variance + noise_variances(noise_variance), float(ndtri(p))
    height = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    bias = np.sqrt(masked) - math.sqrt(variance)
    return reciprocal(p * (1 - p) / (n * height**2) * masked + z**2 * bias**2)  # eq. 8


def percentile_of_any(*, n: int, p: float, density: ArrayLike, masked: ArrayLike, original: ArrayLike) -> Floats:
    """Data of any shape: R = 1/{p(1-p)/(n f_Y(xi_Yp)^2) + (xi_Yp - xi_Xp)^2} (eq. 5, with its p(1-p) and reciprocal).

    Parameters
    ----------
    density : of the masked values at their p-th percentile point, f_Y(xi_Yp), in 1/unit.
    masked, original : the p-th percentile points xi_Yp and xi_Xp of masked and original values, in their unit.
    """
    require(n=n, p=p, density=density, masked=masked, original=original)
    bias = np.asarray(masked, dtype=float) - np.asarray(original, dtype=float)
    return reciprocal(p * (1 - p) / (n * np.asarray(density, dtype=float) ** 2) + bias**2)  # eq. 5


def percentile_exact(noise_variance: ArrayLike, *, n: int, variance: float, p: float) -> Floats:
    """Normal data, exact: R = 1/{(s2+l2) V_k + (z_p s - sqrt(s2+l2) E_k)^2}.

    E_k and V_k are the moments of the k-th normal order statistic.
    R may rise with a little noise: E_k is below z_p, and noise widens the file towards the target.

    >>> print(*(f"{r:.6f}" for r in percentile_exact([0.0, 0.05], n=200, variance=1.0, p=0.99)))
    15.165699 16.342162
    """
    require(n=n, variance=variance, p=p)
    masked = variance + noise_variances(noise_variance)
    mean, spread = normal_moments(rank_of(p, n), n)
    return reciprocal(masked * spread + (float(ndtri(p)) * math.sqrt(variance) - np.sqrt(masked) * mean) ** 2)
