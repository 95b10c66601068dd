"""Standard errors from influences: how much each record adds to a value.

Records of one unit (the members of a household, or one person in several groups) depend on each other. Their influences
are added up first, so that the variance is that between units: the linearization, or sandwich, estimator.
"""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array


def unit_error(units: Array, influences: Array) -> float:
    """Return the standard error of a value from the influence of each record on it; the influences sum to 0.

    units : the unit of each record, as codes.
    """
    index, count = _number(units)
    total = np.bincount(index, influences, minlength=count)
    return math.sqrt(count / max(count - 1, 1) * float(total @ total))


def _number(units: Array) -> tuple[Array, int]:
    distinct, index = np.unique(units, return_inverse=True)
    return index, len(distinct)


def mean_influences(values: Array) -> Array:
    """Return the influence of each value on their mean."""
    return np.asarray((values - values.mean()) / len(values))


def closer_influences(inside: Array, outside: Array) -> tuple[Array, Array]:
    """Return the influence of each value on P(inside < outside) + P(equal) / 2 over all pairs.

    These are the placements of DeLong, DeLong and Clarke-Pearson (1988), centered and divided by the group sizes.
    """
    return mean_influences(_share_above(inside, outside)), mean_influences(1 - _share_above(outside, inside))


def _share_above(values: Array, others: Array) -> Array:
    """Return the share of `others` above each value, ties counting one half."""
    order = np.sort(others)
    up_to, below = np.searchsorted(order, values, side="right"), np.searchsorted(order, values, side="left")
    return np.asarray(1 - (up_to + below) / 2 / len(order))
