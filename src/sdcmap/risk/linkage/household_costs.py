"""What two households cost as a pair: their members, one to one, in the pairing that costs least."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.risk.linkage.dense_assignment import finish

TIE, TINY = 1e-9, 1e-12  # costs so near, relative and absolute, are equal


@jit
def household_costs(cost: Array, released: Array, known: Array) -> Array:
    """The costs of released households (rows) and known ones (columns); infinite where a pair cannot be the cheapest.

    cost : of each released person (rows) and each known one (columns), household by household, finite.
    released, known : where each household begins, and the end of the last; a known one has as many members or more, and
        those who are left over cost nothing.
    """
    total = np.full((len(released) - 1, len(known) - 1), np.inf)
    for h in range(len(released) - 1):
        rows = cost[released[h] : released[h + 1]]
        cheapest = np.inf
        for g in range(len(known) - 1):
            members = rows[:, known[g] : known[g + 1]]
            bound = _each_to_its_nearest(members, cheapest * (1 + TIE) + TINY)
            if np.isfinite(bound):
                total[h, g] = bound if len(rows) == 1 else _one_to_one(members)
                cheapest = min(cheapest, total[h, g])
    return total


@inner_jit
def _each_to_its_nearest(cost: Array, limit: float) -> float:
    """The sum of each row's least cost, which no pairing undercuts; infinite where it is above the limit."""
    total = 0.0
    for i in range(len(cost)):
        least = cost[i, 0]
        for j in range(1, cost.shape[1]):
            least = min(least, cost[i, j])
        total += least
        if total > limit:
            return np.inf
    return total


@jit
def _one_to_one(cost: Array) -> float:
    """The cost of the cheapest pairing of all rows."""
    n, m = cost.shape
    partner, taken_by = np.full(n, -1), np.full(m, -1)
    finish(-cost, partner, taken_by, np.zeros(m))
    total = 0.0
    for i in range(n):
        total += cost[i, partner[i]]
    return total
