"""A fishing expedition: any entity will do for the intruder.

Duncan, Keller-McNulty, Stokes (2001) name this goal in section 3 without a formula. Here the intruder is measured by the
entity nearest to their estimate, R = 1/E min_i (x_i - tau^)^2. It is the worst case over entities, in hindsight: the
intruder does not know which entity the estimate hits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.parameter_checks import noise_variances, reciprocal, records, require

QUADRATURE_POINTS = 40
NODES, WEIGHTS = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
HERMITE, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(QUADRATURE_POINTS)
DISTANCE_STEPS = 800  # of the logarithmic grid over distances


def fishing_in_population(noise_variance: ArrayLike, *, n: int, variance: float, entities: int) -> Floats:
    """Return R of the attack Ybar on any of `entities` normal entities outside the sample: 1/E min_j (X_j - Ybar)^2.

    One entity gives eq. 2. Many give R of about entities^2/(pi s2), which only noise far above n s2 changes.

    >>> print(f"{fishing_in_population(0.21, n=200, variance=1.0, entities=1):.6f}")
    0.993986
    """
    require(n=n, variance=variance, entities=entities)
    spread = np.sqrt((1 + noise_variances(noise_variance) / variance) / n)  # of Ybar, in units of s
    u, step = _distances(1 / entities, 40 + 12 * float(spread.max()))
    mse = np.zeros(spread.shape)
    for z, weight in zip(HERMITE, HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum(), strict=True):
        t = (spread * z)[..., None]
        missed = ndtr(t - u) + ndtr(-t - u)  # P(|X - t| > u)
        mse += weight * (2 * u**2 * missed**entities).sum(axis=-1) * step
    return reciprocal(variance * mse)


def fishing_in_file(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """Return R of the attack Ybar on any record of a file, given x and normal noise: 1/E min_i (x_i - Ybar)^2.

    At l2 = 0 it is `largest_in_file`.
    """
    values = np.unique(records(x))
    spread = np.sqrt(noise_variances(noise_variance) / len(np.asarray(x)))
    center = float(np.mean(np.asarray(x, dtype=float)))
    return reciprocal(np.array([_nearest(values, center, float(s)) for s in spread.ravel()]).reshape(spread.shape))


def fishing_with_links(noise_variance: ArrayLike, *, n: int) -> Floats:
    """Return R if every record is linked and the nearest masked value counts: 1/E min_i e_i^2, about n^2/(pi l2).

    The noise is normal.

    >>> print(f"{fishing_with_links(1.0, n=2):.6f}")
    2.751938
    """
    require(n=n)
    u, step = _distances(1 / n, 40.0)
    least = float((2 * u**2 * (2 * ndtr(-u)) ** n).sum() * step)  # E min of n chi^2_1 values
    return reciprocal(noise_variances(noise_variance) * least)


def _distances(near: float, far: float) -> tuple[Floats, float]:
    """Return a logarithmic grid and its step: integral f(u) du = sum f(u) u step, which converges exponentially."""
    grid = np.linspace(math.log(near) - 25, math.log(far), DISTANCE_STEPS)
    return np.exp(grid), float(grid[1] - grid[0])


def _nearest(values: Floats, center: float, spread: float) -> float:
    """Return E min_i (x_i - t)^2 for t ~ N(center, spread^2), by Gauss-Legendre on each side of each record."""
    if spread == 0:
        return float(((values - center) ** 2).min())
    low, high = center - 10 * spread, center + 10 * spread
    middle = (values[1:] + values[:-1]) / 2
    # Between two bounds the nearest record is the same, so the integrand is smooth.
    bounds = np.unique(np.concatenate([np.linspace(low, high, 11), np.clip([*values, *middle], low, high)]))
    half = np.diff(bounds)[:, None] / 2
    t = bounds[:-1, None] + half * (1 + NODES)
    nearest = np.searchsorted(middle, bounds[:-1] + half[:, 0])
    density = np.exp(-(((t - center) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
    return float((half * WEIGHTS * density * (values[nearest][:, None] - t) ** 2).sum())
