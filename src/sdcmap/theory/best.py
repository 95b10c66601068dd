"""The best snooper: at each noise variance the strongest of the attacks that are open to him. Protect against the worst.

Duncan, Keller-McNulty, Stokes (2001), section 2: several data snoopers are met by protecting against the worst of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Floats
from sdcmap.theory.parameter_checks import noise_variances
from sdcmap.theory.solving import Curve, mse, zeros


@dataclass(frozen=True)
class Switch:
    """At this noise variance the best attack changes from `before` to `after`; both have this risk there."""

    noise_variance: float
    risk: float
    before: str
    after: str

    def __str__(self) -> str:
        return f"from {self.before} to {self.after} at l2 = {self.noise_variance:.6g}, R = {self.risk:.6g}"


def strongest(attacks: Mapping[str, Curve], noise_variance: ArrayLike) -> tuple[Floats, tuple[str, ...]]:
    """The largest risk at each noise variance, and the attack that has it (the first named, where some are equal).

    >>> from sdcmap.theory.typical import in_population, index_known
    >>> attacks = {"population": lambda l2: in_population(l2, n=200, variance=1.0), "index": index_known}
    >>> strongest(attacks, [0.2, 2.0])[1]
    ('index', 'population')
    """
    names = _names(attacks)
    l2 = noise_variances(noise_variance)
    risks = np.array([np.broadcast_to(attacks[name](l2), l2.shape) for name in names])
    best = risks.argmax(axis=0)
    return risks.max(axis=0)[()], tuple(names[i] for i in np.ravel(best))


def switches(attacks: Mapping[str, Curve], grid: Floats) -> tuple[Switch, ...]:
    """Where the best attack changes, between the ends of `grid` (0 left out: there several risks are infinite)."""
    names = _names(attacks)
    l2 = grid[grid > 0]
    errors = np.array([np.broadcast_to(mse(attacks[name], l2), l2.shape) for name in names])
    best = errors.argmin(axis=0)
    switches: list[Switch] = []
    for i in np.flatnonzero(best[1:] != best[:-1]):
        before, after = names[best[i]], names[best[i + 1]]
        switches += _between(attacks, float(l2[i]), float(l2[i + 1]), before, after)
    return tuple(switches)


def _between(attacks: Mapping[str, Curve], low: float, high: float, before: str, after: str) -> list[Switch]:
    """The switches between two neighbours of the grid; a third attack may be the best for a moment."""
    at = zeros(lambda l2: mse(attacks[before], l2) - mse(attacks[after], l2), np.array([low, high]))[0]
    risk = float(attacks[before](at))
    for name in attacks:
        if name not in (before, after) and float(attacks[name](at)) > risk * (1 + 1e-9):
            return _between(attacks, low, at, before, name) + _between(attacks, at, high, name, after)
    return [Switch(at, risk, before, after)]


def _names(attacks: Mapping[str, Curve]) -> list[str]:
    if not attacks:
        raise PlanError("attacks must name at least one attack.")
    return list(attacks)
