"""Where a curve over the noise variance meets zero, or another curve: a scan of a grid, then a refined root each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import require

Curve = Callable[[ArrayLike], Floats]  # R (or U) at each noise variance

LEAST, MOST, POINTS = 1e-9, 1e4, 1000  # the grid that is scanned, as shares of the data variance


def noise_grid(variance: float = 1.0, *, most: float | None = None, points: int = POINTS) -> Floats:
    """0 and `points` noise variances, equally spaced in their logarithm, from 1e-9 s2 to `most` (1e4 s2)."""
    require(variance=variance)
    top = MOST * variance if most is None else most
    return np.concatenate([[0.0], np.geomspace(min(LEAST * variance, top / 10), top, points)])


def crossings(first: Curve, second: Curve, grid: Floats) -> tuple[float, ...]:
    """Every noise variance at which two risk curves meet and change places, in order.

    >>> from sdcmap.theory.typical import in_population, index_known
    >>> population = lambda l2: in_population(l2, n=200, variance=1.0)
    >>> [round(l2, 6) for l2 in crossings(population, index_known, noise_grid(1.0))]
    [1.01005]
    """
    return tuple(zeros(lambda l2: mse(first, l2) - mse(second, l2), grid[grid > 0]))


def mse(risk: Curve, noise_variance: ArrayLike) -> Floats:
    """1/R, which is finite where R is not."""
    with np.errstate(divide="ignore", over="ignore"):
        mse: Floats = 1 / np.asarray(risk(noise_variance), dtype=float)
    return mse


def zeros(function: Curve, grid: Floats) -> list[float]:
    """Every change of sign between neighbours of the grid, also where the function dips through zero between them."""
    values = np.asarray(function(grid), dtype=float)
    sign = np.where(values >= 0, 1, -1)
    roots = [_root(function, grid[i], grid[i + 1]) for i in range(len(grid) - 1) if sign[i] != sign[i + 1]]
    size = np.abs(values)
    for i in range(1, len(grid) - 1):
        alike = sign[i - 1] == sign[i] == sign[i + 1]
        if (
            alike
            and size[i] <= size[i - 1]
            and size[i] <= size[i + 1]
            and size[i] < min(size[i - 1], size[i + 1]) * 1e3
        ):
            low, high = grid[i - 1], grid[i + 1]
            dip = minimize_scalar(
                lambda l2, up=sign[i]: up * float(function(l2)),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-10 * high},
            )
            if dip.fun < 0:
                roots += [_root(function, low, dip.x), _root(function, dip.x, high)]
    return sorted(roots)


def _root(function: Curve, low: float, high: float) -> float:
    return float(brentq(lambda l2: float(function(l2)), low, high, xtol=1e-300, rtol=1e-14, maxiter=500))
