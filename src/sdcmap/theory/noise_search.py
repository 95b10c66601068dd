"""Where a curve over the noise variance crosses a limit or another curve, and the smallest noise for a tolerable risk."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar

from sdcmap.core import Floats, PlanError
from sdcmap.theory.parameter_checks import noise_variances, require

# Zeros of a curve over the noise variance, or crossings with another curve: a scan of a grid, then a refined root.


Curve = Callable[[ArrayLike], Floats]  # R (or U) at each noise variance

LEAST_SHARE, MOST_SHARE = 1e-9, 1e4  # ends of the grid that is scanned, as shares of the data variance
POINTS = 1000  # of that grid


def noise_grid(variance: float = 1.0, *, most: float | None = None, points: int = POINTS) -> Floats:
    """Return 0 and `points` noise variances, equally spaced in their logarithm, from 1e-9 s2 to `most` (1e4 s2)."""
    require(variance=variance)
    top = MOST_SHARE * variance if most is None else most
    return np.concatenate([[0.0], np.geomspace(min(LEAST_SHARE * variance, top / 10), top, points)])


def crossings(first: Curve, second: Curve, grid: Floats) -> tuple[float, ...]:
    """Return every noise variance at which two risk curves cross, in order.

    >>> from sdcmap.theory.typical_targets import in_population, index_known
    >>> population = lambda l2: in_population(l2, n=200, variance=1.0)
    >>> [round(l2, 6) for l2 in crossings(population, index_known, noise_grid(1.0))]
    [1.01005]
    """
    return tuple(zeros(lambda l2: mse(first, l2) - mse(second, l2), grid[grid > 0]))


def mse(risk: Curve, noise_variance: ArrayLike) -> Floats:
    """Return 1/R, which is finite where R is not."""
    with np.errstate(divide="ignore", over="ignore"):
        mse: Floats = 1 / np.asarray(risk(noise_variance), dtype=float)
    return mse


def zeros(function: Curve, grid: Floats) -> list[float]:
    """Return every zero between neighbors of the grid, also both zeros where the function only dips between them."""
    values = np.asarray(function(grid), dtype=float)
    sign = np.where(values >= 0, 1, -1)
    roots = [_root(function, grid[i], grid[i + 1]) for i in range(len(grid) - 1) if sign[i] != sign[i + 1]]
    size = np.abs(values)
    for i in range(1, len(grid) - 1):
        # A local minimum of |f| without a change of sign: f may touch zero between the neighbors.
        near = min(size[i - 1], size[i + 1])
        if sign[i - 1] == sign[i] == sign[i + 1] and size[i] <= near and size[i] < near * 1e3:
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


Status = Literal["found", "already safe", "none"]


@dataclass(frozen=True)
class Solution:
    """How much noise is needed for a tolerable risk.

    Parameters
    ----------
    status : "found"; "already safe" if no noise is needed; "none" if no noise variance in the search range suffices.
    noise_variance, risk, utility : the smallest noise variance that suffices, and R and U there; None if there is none.
    efficiency : U(l2)/U(0), the share of the unmasked file's utility that is left.
    intervals : every interval of noise variances with R at or below the limit. There may be several, because R need not
        fall monotonically. The last one is infinite if R is below the limit at the end of the search range.
    reason : the result as a sentence.
    """

    status: Status
    max_risk: float
    noise_variance: float | None
    risk: float | None
    utility: float | None
    efficiency: float | None
    intervals: tuple[tuple[float, float], ...]
    reason: str

    def __str__(self) -> str:
        return self.reason


def solve(risk: Curve, utility: Curve, max_risk: float, grid: Floats, *, bounded: bool = False) -> Solution:
    """Return the smallest noise variance with R <= `max_risk`, by a scan of `grid` and refined roots.

    Parameters
    ----------
    risk, utility : R and U as functions of the noise variance.
    max_risk : the largest tolerable R, above 0, in 1/unit^2: 1/25 tolerates an error of 5 units.
    grid : noise variances to scan, rising from 0, such as `noise_grid(variance)`.
    bounded : the last point of the grid is a bound on the noise, not only the end of the search.

    >>> from sdcmap.theory.noise_search import noise_grid
    >>> from sdcmap.theory.typical_targets import index_known
    >>> print(solve(index_known, lambda l2: 200 / (1 + np.asarray(l2)), 5.0, noise_grid(1.0)))
    R falls to 5 at a noise variance of 0.2; U is 166.667 there, 83.3 % of the unmasked file's.
    """
    require(max_risk=max_risk)

    def margin(l2: object) -> Floats:
        return mse(risk, l2) - 1 / max_risk  # type: ignore[arg-type]

    # Between zeros of the margin the limit is met or exceeded in turn.
    edges = [float(grid[0]), *zeros(margin, grid), float(grid[-1])]
    safe = islice(pairwise(edges), 0 if margin(grid[0]) >= 0 else 1, None, 2)
    intervals = tuple((low, high) for low, high in safe if low < high)
    if intervals and not bounded and intervals[-1][1] == grid[-1]:
        intervals = (*intervals[:-1], (intervals[-1][0], math.inf))
    if not intervals:
        return _no_solution(risk, max_risk, grid)
    return _solution_at(risk, utility, max_risk, intervals)


def _solution_at(risk: Curve, utility: Curve, max_risk: float, intervals: tuple[tuple[float, float], ...]) -> Solution:
    least = intervals[0][0]
    for _ in range(64):  # move the root up by its rounding error, so that R there does not exceed the limit
        if float(risk(least)) <= max_risk:
            break
        least = math.nextafter(least, math.inf)
    intervals = ((least, intervals[0][1]), *intervals[1:])
    at, u = float(risk(least)), float(utility(least))
    efficiency = u / float(utility(0.0))
    reason = f"No noise is needed: R is {at:.6g} without it, at or below {max_risk:.6g}."
    if least > 0:
        reason = f"R falls to {max_risk:.6g} at a noise variance of {least:.6g}; U is {u:.6g} there, "
        reason += f"{100 * efficiency:.1f} % of the unmasked file's."
    for (_, end), (start, _) in pairwise(intervals):
        reason += f" More noise is not always safer: R is above {max_risk:.6g} between {end:.6g} and {start:.6g}."
    if math.isfinite(intervals[-1][1]) and len(intervals) == 1:
        reason += f" R stays at or below it up to a noise variance of {intervals[-1][1]:.6g}."
    return Solution("found" if least > 0 else "already safe", max_risk, least, at, u, efficiency, intervals, reason)


def _no_solution(risk: Curve, max_risk: float, grid: Floats) -> Solution:
    values = np.asarray(risk(grid), dtype=float)
    best = int(values.argmin())
    reason = (
        f"No noise variance up to {grid[-1]:.6g} brings R to {max_risk:.6g}; the least is R = {values[best]:.6g} "
        f"at {grid[best]:.6g}. Release nothing, tolerate more risk, or use another method."
    )
    return Solution("none", max_risk, None, None, None, None, (), reason)


# The strongest intruder: at each noise variance the attack with the largest risk.
#
# Duncan, Keller-McNulty, Stokes (2001), section 2: against several intruders, protect against the worst of them.


@dataclass(frozen=True)
class Switch:
    """The noise variance at which the strongest attack changes from `before` to `after`; both have this risk there."""

    noise_variance: float
    risk: float
    before: str
    after: str

    def __str__(self) -> str:
        return f"from {self.before} to {self.after} at l2 = {self.noise_variance:.6g}, R = {self.risk:.6g}"


def strongest(attacks: Mapping[str, Curve], noise_variance: ArrayLike) -> tuple[Floats, tuple[str, ...]]:
    """Return the largest risk at each noise variance, and the attack that has it; ties go to the first named.

    >>> from sdcmap.theory.typical_targets import in_population, index_known
    >>> attacks = {"population": lambda l2: in_population(l2, n=200, variance=1.0), "index": index_known}
    >>> strongest(attacks, [0.2, 2.0])[1]
    ('index', 'population')
    """
    names = _names(attacks)
    l2 = noise_variances(noise_variance)
    risks = np.array([np.broadcast_to(attacks[name](l2), l2.shape) for name in names])
    return risks.max(axis=0)[()], tuple(names[i] for i in np.ravel(risks.argmax(axis=0)))


def switches(attacks: Mapping[str, Curve], grid: Floats) -> tuple[Switch, ...]:
    """Return where the strongest attack changes between the ends of `grid`, without 0, where several risks are infinite."""
    names = _names(attacks)
    l2 = grid[grid > 0]
    best = np.array([np.broadcast_to(mse(attacks[name], l2), l2.shape) for name in names]).argmin(axis=0)
    switches: list[Switch] = []
    for i in np.flatnonzero(best[1:] != best[:-1]):
        before, after = names[best[i]], names[best[i + 1]]
        switches += _between(attacks, float(l2[i]), float(l2[i + 1]), before, after)
    return tuple(switches)


def _between(attacks: Mapping[str, Curve], low: float, high: float, before: str, after: str) -> list[Switch]:
    """Return the switches between two neighbors of the grid; a third attack may be the strongest in between."""
    at = zeros(lambda l2: mse(attacks[before], l2) - mse(attacks[after], l2), np.array([low, high]))[0]
    risk = float(attacks[before](at))
    for name in attacks:
        # A third attack is stronger at the crossing: search on both sides of it.
        if name not in (before, after) and float(attacks[name](at)) > risk * (1 + 1e-9):
            return _between(attacks, low, at, before, name) + _between(attacks, at, high, name, after)
    return [Switch(at, risk, before, after)]


def _names(attacks: Mapping[str, Curve]) -> list[str]:
    if not attacks:
        raise PlanError("attacks must contain at least one attack.")
    return list(attacks)
