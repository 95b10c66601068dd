"""The Poisson-binomial distribution, the number of independent events that happen; order statistics of noisy values."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, xlogy

from sdcmap.kernels.arrays import Floats
from sdcmap.kernels.jit import jit

PANELS, POINTS_PER_PANEL = 16, 16  # composite Gauss-Legendre on each side of the target
LEGENDRE = np.polynomial.legendre.leggauss(POINTS_PER_PANEL)
TAIL_DEPTH = 48.0  # the window ends where a bound on the tail is below e^-48
MAX_ERROR_SDS = 10.0  # standard deviations that no error exceeds in practice


def mse_of_rank(x: Floats, rank: int, noise_variance: float) -> float:
    """Return E(x_(k) - Y_(k))^2 given x, for Y = x + e, e ~ N(0, noise_variance); k = `rank`, counted from the smallest.

    P(Y_(k) <= y | x) = P(N(y) >= k), with N(y) Poisson-binomial, p_i = Phi((y - x_i)/lambda). Integration by parts gives
    E(x_(k) - Y_(k))^2 = integral over u > 0 of 2u {P(Y_(k) > x_(k) + u) + P(Y_(k) <= x_(k) - u)} du.
    """
    if noise_variance == 0:
        return 0.0
    x = np.sort(x)
    scale, target = float(np.sqrt(noise_variance)), float(x[rank - 1])
    low, high = _window(x, rank, scale)
    mse = 0.0
    # Below the target the tail is P(Y_(k) <= y), above it P(Y_(k) > y).
    for end, side in ((low, 1), (high, 0)):
        edges = np.linspace(0, abs(end - target), PANELS + 1)
        half = (edges[1] - edges[0]) / 2
        u = (edges[:-1, None] + half * (1 + LEGENDRE[0])).ravel()
        y = target + (u if side == 0 else -u)
        tail = split_at(ndtr((y[:, None] - x) / scale), rank)[side]
        mse += float(half * (np.tile(LEGENDRE[1], PANELS) * 2 * u * tail).sum())
    return mse


def _window(x: Floats, rank: int, scale: float) -> tuple[float, float]:
    """Return an interval that holds Y_(k): no error exceeds MAX_ERROR_SDS, and P(N >= k) <= exp(-n KL(k/n, mean p)).

    The second bound is Hoeffding's.
    """
    from scipy.optimize import brentq

    n, target = len(x), float(x[rank - 1])
    low, high = target - MAX_ERROR_SDS * scale, target + MAX_ERROR_SDS * scale

    def depth(y: float, count: int) -> float:
        mean = min(max(float(ndtr((y - x) / scale).mean()), 1e-300), 1 - 1e-16)
        share = count / n
        return float(n * (xlogy(share, share / mean) + xlogy(1 - share, (1 - share) / (1 - mean)))) - TAIL_DEPTH

    ends = x[0] - 40 * scale, x[-1] + 40 * scale
    middle = float(brentq(lambda y: ndtr((y - x) / scale).mean() - (rank - 0.5) / n, *ends))
    if low < middle and depth(low, rank) > 0 > depth(middle, rank):
        low = float(brentq(depth, low, middle, args=(rank,), xtol=1e-3 * scale))
    if high > middle and depth(high, rank - 1) > 0 > depth(middle, rank - 1):
        high = float(brentq(depth, middle, high, args=(rank - 1,), xtol=1e-3 * scale))
    return min(low, target), max(high, target)


def split_at(probabilities: Floats, count: int) -> tuple[Floats, Floats]:
    """Return P(N < count) and P(N >= count) for each row of event probabilities.

    Each is the sum of its own terms, so that both tails are accurate.

    >>> fewer, enough = split_at(np.array([[0.5, 0.5], [0.0, 1.0]]), 1)
    >>> [float(p) for p in fewer], [float(p) for p in enough]
    ([0.25, 0.0], [0.75, 1.0])
    """
    fewer, enough = np.empty(len(probabilities)), np.empty(len(probabilities))
    _split_at(np.ascontiguousarray(probabilities), count, fewer, enough)
    return fewer, enough


@jit
def _split_at(probabilities: Floats, count: int, fewer: Floats, enough: Floats) -> None:
    """Convolve one event at a time and keep only the counts whose probability matters (above 1e-30)."""
    rows, n = probabilities.shape
    mass = np.zeros(n + 2)
    for row in range(rows):
        mass[:] = 0.0
        mass[0] = 1.0
        low, high = 0, 0
        for event in range(n):
            p = probabilities[row, event]
            for j in range(high + 1, low, -1):
                mass[j] = mass[j] * (1.0 - p) + mass[j - 1] * p
            mass[low] *= 1.0 - p
            # Narrow the range of counts to those whose probability matters.
            high += 1
            while low < high and mass[low] < 1e-30:
                mass[low] = 0.0
                low += 1
            while high > low and mass[high] < 1e-30:
                mass[high] = 0.0
                high -= 1
        fewer[row] = mass[low : min(count, high + 1)].sum() if low < count else 0.0
        enough[row] = mass[max(count, low) : high + 1].sum() if high >= count else 0.0
