"""Regions of global risk, and the best safe candidate.  Trottini (2001), par. 22-29.

iek and rdh are the two coordinates of global risk, sek and dus those of global utility, one entry per candidate. All are at
most 0, and 0 means that the target is known exactly. A coordinate exceeds its limit if it is strictly above it.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array

LETTERS = np.array(["D", "C", "A", "B"])  # neither limit exceeded, that of IEK only, that of RDH only, both


def regions(iek: Array, rdh: Array, agency_limit: float, intruder_limit: float) -> Array:
    """Return the region of each candidate.  par. 23

    A: only rdh exceeds its limit; B: both do; C: only iek does; D: neither does, which is safe.
    """
    return LETTERS[(iek > agency_limit) + 2 * (rdh > intruder_limit)]


def excess(iek: Array, rdh: Array, agency_limit: float, intruder_limit: float) -> Array:
    """Return how far the worse coordinate exceeds its limit, as a share of the limit; at most 0 if it is safe.

    A limit of 0 counts as 1.
    """
    over = [(v - limit) / (abs(limit) or 1.0) for v, limit in ((iek, agency_limit), (rdh, intruder_limit))]
    return np.maximum(*over)


def distances(sek: Array, dus: Array) -> Array:
    """Return the Euclidean distance of global utility from (0, 0), the point of largest utility.  par. 26"""
    return np.hypot(sek, dus)


def rank_by_utility(iek: Array, rdh: Array, distance: Array) -> Array:
    """Return the candidates by the distance of their utility from (0, 0), nearest first; less risk breaks ties."""
    return np.lexsort((rdh, iek, distance))


def choices_by_limits(iek: Array, rdh: Array, distance: Array) -> tuple[Array, Array, Array]:
    """Return the choice for all pairs of limits: edges of the agency's limit and of the intruder's, and the choices.

    choice[i, j] is the candidate for limits in [agency[i], agency[i + 1]) x [intruder[j], intruder[j + 1]), or -1 for
    none. Below the first edge of either limit no candidate is safe.  par. 29
    """
    agency, row = np.unique(iek, return_inverse=True)
    intruder, column = np.unique(rdh, return_inverse=True)
    order = rank_by_utility(iek, rdh, distance)
    rank = np.full((len(agency), len(intruder)), len(order))
    np.minimum.at(rank, (row[order], column[order]), np.arange(len(order)))
    # A candidate that is safe for some limits is safe for all larger ones: the best rank accumulates over both axes.
    rank = np.minimum.accumulate(np.minimum.accumulate(rank, axis=0), axis=1)
    return agency, intruder, np.append(order, -1)[rank]
