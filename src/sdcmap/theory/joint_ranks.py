"""The joint distribution of the r-th largest of n normal values before and after noise.

E(X_(k) - Y_(k))^2 over samples, with k = n + 1 - r; and the moments of normal order statistics.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln, log_ndtr, ndtr, owens_t, xlogy

from sdcmap.kernels.arrays import Floats

# Mean and variance of the order statistics of a standard normal sample, with a relative error of at most 1e-8 for any rank
# up to n = 10^6.


MOMENT_NODES = 1024
WINDOW_DEPTH = 60.0  # the window ends where the density is e^-60 of its peak


@lru_cache(maxsize=65_536)
def normal_moments(rank: int, n: int) -> tuple[float, float]:
    """Return E and V of the `rank`-th smallest of `n` independent N(0, 1) values.

    The density Phi(z)^(k-1) Phi(-z)^(n-k) phi(z) is log-concave and analytic, so a sum over equidistant nodes converges
    exponentially. The nodes are symmetric about 0, and the mean is summed in pairs, E = sum over z > 0 of
    z (w(z) - w(-z)), so that it is accurate near the median too.

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
    """Return the interval in which the density of the `rank`-th smallest of `n` is above e^-depth of its peak.

    The rank must be the median or above it.
    """
    from scipy.optimize import brentq

    peak = float(brentq(_slope, -1.0, 40.0, args=(rank, n), xtol=1e-15))
    top = float(_log_density(peak, rank, n))

    def height(z: float) -> float:
        return float(_log_density(z, rank, n)) - top + depth

    return float(brentq(height, peak - 40, peak, xtol=1e-6)), float(brentq(height, peak, peak + 40, xtol=1e-6))


def _nodes(rank: int, n: int) -> tuple[Floats, Floats]:
    """Return equidistant nodes, half a step off 0, and the density at them relative to its peak."""
    low, high = normal_window(rank, n, WINDOW_DEPTH)
    step = (high - low) / MOMENT_NODES
    z: Floats = (np.arange(np.floor(low / step), np.ceil(high / step), dtype=np.float64) + 0.5) * step
    log = _log_density(z, rank, n)
    return z, np.exp(log - log.max())


def _log_density(z: Floats | float, rank: int, n: int) -> Floats:
    return np.asarray((rank - 1) * log_ndtr(z) + (n - rank) * log_ndtr(-z) - np.square(z) / 2)


def _slope(z: float, rank: int, n: int) -> float:
    """Return d/dz of the log density. It decreases, so its zero is the peak."""
    hazards = np.exp(-z * z / 2 - np.log(2 * np.pi) / 2 - log_ndtr(np.array([z, -z])))
    return float((rank - 1) * hazards[0] - (n - rank) * hazards[1] - z)


PANELS, POINTS_PER_PANEL = 6, 20  # composite Gauss-Legendre
LEGENDRE = np.polynomial.legendre.leggauss(POINTS_PER_PANEL)
NEVER_ZERO = 1e-300  # smallest divisor
MAX_ERROR_SDS = 10.5  # standard deviations that no error among 10^6 records exceeds in practice


@lru_cache(maxsize=16_384)
def mse_of_extreme(r: int, n: int, noise: float) -> float:
    """Return E(X_(k) - Y_(k))^2 for X ~ N(0, 1), Y = X + e, e ~ N(0, `noise`), for the r-th largest of each.

    Small noise: E(X - Y)^2 = 2 integral over u > 0 and s of P(X <= s, Y > s + u) + P(Y <= s, X > s + u), where all terms
    are positive. Large noise: Var X + Var Y + (E X - E Y)^2 - 2 Cov, with Cov by Hoeffding's integral. The cost grows as
    r^2.
    """
    if noise == 0:
        return 0.0
    return _mse_small_noise(r, n, noise) if noise < 1 else _mse_large_noise(r, n, noise)


def _mse_small_noise(r: int, n: int, noise: float) -> float:
    total = 1 + noise
    low, high = normal_window(n + 1 - r, n)
    low, high = min(low, low * math.sqrt(total)), max(high, high * math.sqrt(total))
    s, s_weight = _legendre(low, high)
    u, u_weight = _legendre(0.0, min(high - low, MAX_ERROR_SDS * math.sqrt(noise)))
    s, u = s[:, None], u[None, :]
    t = s + u
    # X <= s < t < Y, then Y <= s < t < X, as corner probabilities; differences that would cancel are simplified by hand.
    first = _corner(-s, -t / math.sqrt(total), -u, (u - noise * s) / math.sqrt(total), noise)
    second = _corner(-t, -s / math.sqrt(total), u, (-u * total - noise * s) / math.sqrt(total), noise)
    joint = _at_most_and_at_least(r, n, ndtr(-s), ndtr(-t / math.sqrt(total)), first)
    joint = joint + _at_most_and_at_least(r, n, ndtr(-s / math.sqrt(total)), ndtr(-t), second)
    return float(2 * s_weight @ joint @ u_weight)


def _mse_large_noise(r: int, n: int, noise: float) -> float:
    root = math.sqrt(1 + noise)
    mean, variance = normal_moments(n + 1 - r, n)
    s, weight = _legendre(*normal_window(n + 1 - r, n))
    x, y = s[:, None], s[None, :]  # y in units of sqrt(1 + noise)
    apart = _at_most_and_at_least(r, n, ndtr(-x), ndtr(-y), _corner(-x, -y, x - y * root, y - x * root, noise))
    # Hoeffding: Cov(X, Y) is the integral of P(X <= x, Y <= y) - P(X <= x) P(Y <= y).
    below = betainc(n + 1 - r, r, ndtr(s))  # P(X_(k) <= s)
    covariance = float(weight @ (below[:, None] * (1 - below) - apart) @ weight) * root
    return variance * (1 + root**2) + mean**2 * (root - 1) ** 2 - 2 * covariance


def _corner(a: Floats, b: Floats, b_less: Floats, a_less: Floats, noise: float) -> Floats:
    """Return P(X < a, Y/sqrt(1 + noise) < b) by Owen's T.

    `b_less` = (b - rho a) sqrt(1 + noise), `a_less` = (a - rho b) sqrt(1 + noise),
    rho = 1/sqrt(1 + noise), and sqrt(1 - rho^2) sqrt(1 + noise) = sqrt(noise).
    """
    scale = math.sqrt(noise)
    corner: Floats = (ndtr(a) + ndtr(b)) / 2 - owens_t(a, b_less / (a * scale)) - owens_t(b, a_less / (b * scale))
    return np.clip(corner - 0.5 * (a * b < 0), 0.0, np.minimum(ndtr(a), ndtr(b)))


def _at_most_and_at_least(r: int, n: int, first: Floats, second: Floats, both: Floats) -> Floats:
    """Return P(A < r, B >= r), where of n records A exceed a first bound and B a second one, with these probabilities."""
    here = np.clip(both / np.maximum(first, NEVER_ZERO), 0.0, 1.0)  # P(above the second bound | above the first)
    there = np.clip((second - both) / np.maximum(1 - first, NEVER_ZERO), 0.0, 1.0)
    joint: Floats = np.zeros(np.broadcast(first, second).shape)
    # Sum over m, the records above the first bound, and i, those of them that are also above the second.
    for m in range(r):
        enough: Floats = np.zeros(joint.shape)
        for i in range(m + 1):
            if r - i <= n - m:
                enough += _binomial(i, m, here) * betainc(r - i, n - m - r + i + 1, there)  # P(Bin(n-m) >= r-i)
        joint += _binomial(m, n, first) * enough
    return joint


def _binomial(k: int, n: int, p: Floats) -> Floats:
    return np.asarray(np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlogy(n - k, 1 - p)))


def _legendre(low: float, high: float) -> tuple[Floats, Floats]:
    edges = np.linspace(low, high, PANELS + 1)
    half = (edges[1] - edges[0]) / 2
    return (edges[:-1, None] + half * (1 + LEGENDRE[0])).ravel(), np.tile(half * LEGENDRE[1], PANELS)
