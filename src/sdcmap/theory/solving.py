"""The smallest noise that keeps the risk at or below what can be tolerated, and what is left of the utility."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import require
from sdcmap.theory.crossing import Curve, mse, zeros

Status = Literal["found", "already safe", "none"]


@dataclass(frozen=True)
class Solution:
    """The answer to "how much noise is needed?".

    Parameters
    ----------
    status : "found"; "already safe" when no noise is needed; "none" when no noise variance that was searched will do.
    noise_variance, risk, utility : the smallest noise variance that will do, and R and U there; None when there is none.
    efficiency : U(l2)/U(0), the share of the unmasked file's utility that is left.
    intervals : every interval of noise variances with R at or below the limit. R need not fall all the way, so there
        may be more than one; infinite at the top when R stays below the limit as far as was searched.
    reason : the answer in words.
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
    """The smallest noise variance with R <= `max_risk`, by a scan of `grid` (from 0 up) and a refined root each.

    Parameters
    ----------
    risk, utility : R and U as functions of the noise variance.
    max_risk : the largest tolerable R, above 0, in 1/unit^2: 1/25 tolerates an error of 5 units.
    grid : noise variances to scan, rising from 0, such as `noise_grid(variance)`.
    bounded : the last point of the grid is a bound on the noise, not just the end of the search.

    >>> from sdcmap.theory.crossing import noise_grid
    >>> from sdcmap.theory.typical import index_known
    >>> print(solve(index_known, lambda l2: 200 / (1 + np.asarray(l2)), 5.0, noise_grid(1.0)))
    R falls to 5 at a noise variance of 0.2; U is 166.667 there, 83.3 % of the unmasked file's.
    """
    require(max_risk=max_risk)
    limit = 1 / max_risk

    def room(l2: object) -> Floats:
        return mse(risk, l2) - limit  # type: ignore[arg-type]

    safe_at_first = bool(room(grid[0]) >= 0)
    edges = [float(grid[0]), *zeros(room, grid), float(grid[-1])]
    safe = [safe_at_first ^ bool(i % 2) for i in range(len(edges) - 1)]
    intervals = tuple((edges[i], edges[i + 1]) for i in range(len(safe)) if safe[i] and edges[i] < edges[i + 1])
    if intervals and not bounded and intervals[-1][1] == grid[-1]:
        intervals = (*intervals[:-1], (intervals[-1][0], math.inf))
    if not intervals:
        return _none(risk, max_risk, grid)
    return _found(risk, utility, max_risk, intervals)


def _found(risk: Curve, utility: Curve, max_risk: float, intervals: tuple[tuple[float, float], ...]) -> Solution:
    least = _at_or_below(risk, max_risk, intervals[0][0])
    intervals = ((least, intervals[0][1]), *intervals[1:])
    at, u = float(risk(least)), float(utility(least))
    efficiency = u / float(utility(0.0))
    if least == 0:
        status: Status = "already safe"
        reason = f"No noise is needed: R is {at:.6g} without it, at or below {max_risk:.6g}."
    else:
        status = "found"
        reason = (
            f"R falls to {max_risk:.6g} at a noise variance of {least:.6g}; "
            f"U is {u:.6g} there, {efficiency:.1%} of the unmasked file's.".replace("%", " %")
        )
    for (_, end), (start, _) in pairwise(intervals):
        reason += f" More noise is not always safer: R is above {max_risk:.6g} between {end:.6g} and {start:.6g}."
    if math.isfinite(intervals[-1][1]) and len(intervals) == 1:
        reason += f" It holds up to {intervals[-1][1]:.6g}."
    return Solution(status, max_risk, least, at, u, efficiency, intervals, reason)


def _at_or_below(risk: Curve, max_risk: float, noise_variance: float) -> float:
    """The root, moved up by its rounding error so that R there is not above the limit."""
    for _ in range(64):
        if float(risk(noise_variance)) <= max_risk:
            break
        noise_variance = math.nextafter(noise_variance, math.inf)
    return noise_variance


def _none(risk: Curve, max_risk: float, grid: Floats) -> Solution:
    values = np.asarray(risk(grid), dtype=float)
    best = int(values.argmin())
    reason = (
        f"No noise variance up to {grid[-1]:.6g} brings R to {max_risk:.6g}; the least is R = {values[best]:.6g} "
        f"at {grid[best]:.6g}. Release nothing, or tolerate more, or mask another way."
    )
    return Solution("none", max_risk, None, None, None, None, (), reason)
