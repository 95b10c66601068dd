"""Regions of global risk, and the best candidate that is safe.  Trottini (2001), par. 22-29.

iek and rdh are the two coordinates of global risk, sek and dus those of global utility, an entry a candidate; all are at
most 0, and 0 is to know the target exactly. "Above" a limit is strictly above it.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array

LETTERS = np.array(["D", "C", "A", "B"])  # neither, IEK alone, RDH alone, both


def regions(iek: Array, rdh: Array, agency_limit: float, intruder_limit: float) -> Array:
    """A: rdh above its limit alone; B: both; C: iek alone; D: neither, which is safe.  par. 23"""
    return LETTERS[(iek > agency_limit) + 2 * (rdh > intruder_limit)]


def excess(iek: Array, rdh: Array, agency_limit: float, intruder_limit: float) -> Array:
    """How far the worse of the two is above its limit, as a share of the limit (of 1 where that is 0); at most 0: safe."""
    over = [(v - limit) / (abs(limit) or 1.0) for v, limit in ((iek, agency_limit), (rdh, intruder_limit))]
    return np.maximum(*over)


def distances(sek: Array, dus: Array) -> Array:
    """Euclidean distance of global utility from (0, 0), the point of most utility.  par. 26"""
    return np.hypot(sek, dus)


def ranked(iek: Array, rdh: Array, distance: Array) -> Array:
    """Candidates by their utility's distance from (0, 0), nearest first; of equals the one with less risk."""
    return np.lexsort((rdh, iek, distance))


def by_limits(iek: Array, rdh: Array, distance: Array) -> tuple[Array, Array, Array]:
    """The choice for all limits at once: edges of the agency's limit, of the intruder's, and the choice between them.

    choice[i, j] is the candidate for limits in [agency[i], agency[i + 1]) x [intruder[j], intruder[j + 1]); below the
    first edge of either nothing is safe. -1: nothing.  par. 29
    """
    agency, row = np.unique(iek, return_inverse=True)
    intruder, column = np.unique(rdh, return_inverse=True)
    order = ranked(iek, rdh, distance)
    place = np.full((len(agency), len(intruder)), len(order))
    np.minimum.at(place, (row[order], column[order]), np.arange(len(order)))
    place = np.minimum.accumulate(np.minimum.accumulate(place, axis=0), axis=1)
    return agency, intruder, np.append(order, -1)[place]
