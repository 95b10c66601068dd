"""Mean and variance of the order statistics of a standard normal sample, to 1e-8 relative for any rank up to n = 10^6."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from sdcmap.kernels.arrays import Floats

NODES = 1024
DEPTH = 60.0  # the window ends where the density is e^-60 of its peak


@lru_cache(maxsize=65_536)
def normal_moments(rank: int, n: int) -> tuple[float, float]:
    """E and V of the `rank`-th smallest of `n` independent N(0, 1) values.

    The density Phi(z)^(k-1) Phi(-z)^(n-k) phi(z) is log-concave and analytic, so equidistant nodes over the window that
    holds it converge exponentially. The nodes are symmetric about 0 and the mean is summed in pairs,
    E = sum over z > 0 of z (w(z) - w(-z)), so that it keeps its digits near the median too.

    >>> mean, variance = normal_moments(200, 200)
    >>> print(f"{mean:.6f} {variance:.6f}")
    2.746042 0.160724
    """
    if not 1 <= rank <= n:
        raise ValueError("rank must be in [1, n].")
    if 2 * rank < n + 1:
        mean, variance = normal_moments(n + 1 - rank, n)
        return -mean, variance
    z, weight = _nodes(rank, n)
    total = weight.sum()
    up, w = z[z > 0], weight[z > 0]
    odds = log_ndtr(up) - log_ndtr(-up)
    mean = float((up * w * -np.expm1((n + 1 - 2 * rank) * odds)).sum() / total)
    variance = float((weight * (z - mean) ** 2).sum() / total)
    return mean, variance


def normal_window(rank: int, n: int, depth: float = 45.0) -> tuple[float, float]:
    """Where the density of the `rank`-th smallest of `n` is above e^-depth of its peak; the median or a rank above it."""
    from scipy.optimize import brentq

    peak = float(brentq(_slope, -1.0, 40.0, args=(rank, n), xtol=1e-15))
    top = float(_log_density(peak, rank, n))

    def height(z: float) -> float:
        return float(_log_density(z, rank, n)) - top + depth

    return float(brentq(height, peak - 40, peak, xtol=1e-6)), float(brentq(height, peak, peak + 40, xtol=1e-6))


def _nodes(rank: int, n: int) -> tuple[Floats, Floats]:
    """Equidistant nodes, half a step off 0, and the density there as a share of its largest."""
    low, high = normal_window(rank, n, DEPTH)
    step = (high - low) / NODES
    z: Floats = (np.arange(np.floor(low / step), np.ceil(high / step), dtype=np.float64) + 0.5) * step
    log = _log_density(z, rank, n)
    return z, np.exp(log - log.max())


def _log_density(z: Floats | float, rank: int, n: int) -> Floats:
    log_density: Floats = (rank - 1) * log_ndtr(z) + (n - rank) * log_ndtr(-z) - np.square(z) / 2
    return log_density


def _slope(z: float, rank: int, n: int) -> float:
    """d/dz of the log density: falls throughout, so its zero is the peak."""
    hazards = np.exp(-z * z / 2 - np.log(2 * np.pi) / 2 - log_ndtr(np.array([z, -z])))
    return float((rank - 1) * hazards[0] - (n - rank) * hazards[1] - z)
