"""Robust location and scatter: the minimum covariance determinant of Rousseeuw (1985), found by concentration steps.

Of all sets of h records the one whose covariance matrix has the smallest determinant is the clean half of the file: up to
n - h outliers of any size do not move it. Its mean and covariance are then taken anew over the records that are near it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

STARTS = 50  # random sets of p + 1 records
FIRST_STEPS = 2  # of each start
BEST = 10  # starts that go on until they stand still
MOST_STEPS = 100
MOST_RECORDS = 5000  # sets are sought among so many records; the rest is weighed by what was found
NEAR = 0.975  # of the chi-square distribution: records beyond are outliers


class Scatter(NamedTuple):
    """Center and covariance matrix."""

    center: Array
    covariance: Array

    def distances(self, x: Array) -> Array:
        """Squared Mahalanobis distances of the records."""
        apart = x - self.center
        return np.asarray(np.einsum("ij,ij->i", apart @ np.linalg.inv(self.covariance), apart))


def robust_scatter(x: Array, seed: int = 0) -> Scatter | None:
    """The reweighted minimum covariance determinant of complete records; None where half of them lie in a plane.

    h = (n + p + 1) // 2. The raw covariance times h/n / F_{p+2}(q), q the h/n quantile of chi-square with p degrees of
    freedom, is consistent for normal data; records within its .975 quantile give the covariance, corrected in the same
    way (Croux and Haesbroeck 1999; Pison, Van Aelst, Willems 2002, without their factor for small files).
    """
    n, p = x.shape
    if n < 2 * (p + 1):
        return None
    x = x[np.lexsort(x.T)]  # so that the order of the records has no say
    rng = np.random.default_rng(seed)
    sought = x if n <= MOST_RECORDS else x[np.sort(rng.choice(n, MOST_RECORDS, replace=False))]
    best = _smallest(sought, rng)
    if best is None:
        return None
    h = (len(sought) + p + 1) // 2
    raw = Scatter(best.center, best.covariance * _consistency(h / len(sought), p))
    near = raw.distances(x) <= _quantile(NEAR, p)
    own = _scatter_of(x[near]) if near.sum() > p + 1 else None
    return raw if own is None else Scatter(own.center, own.covariance * _consistency(NEAR, p))


def _smallest(x: Array, rng: np.random.Generator) -> Scatter | None:
    """The scatter of the set of h records with the smallest determinant that was found. Rousseeuw, van Driessen (1999)."""
    n, p = x.shape
    h = (n + p + 1) // 2
    starts = [_steps(x, rng.choice(n, p + 1, replace=False), h, FIRST_STEPS) for _ in range(STARTS)]
    starts.append(_steps(x, _nearest(np.abs(x - np.median(x, axis=0)).sum(axis=1), h), h, FIRST_STEPS))
    found = sorted((s for s in starts if s is not None), key=lambda start: start[0])[:BEST]
    ended = [end for _, rows in found if (end := _steps(x, rows, h, MOST_STEPS)) is not None]
    return _scatter_of(x[min(ended, key=lambda end: end[0])[1]]) if ended else None


def _steps(x: Array, rows: Array, h: int, most: int) -> tuple[float, Array] | None:
    """Concentration: the h records nearest to a set have no larger a determinant; log determinant and set at the end."""
    size = np.inf
    scatter = _scatter_of(x[rows], ridge=len(rows) < h)
    for _ in range(most):
        if scatter is None:
            return None
        rows = _nearest(scatter.distances(x), h)
        scatter = _scatter_of(x[rows])
        if scatter is None:
            return None
        now = float(np.linalg.slogdet(scatter.covariance)[1])
        if now >= size - 1e-12:
            break
        size = now
    return size, rows


def _nearest(distance: Array, h: int) -> Array:
    """The rows of the h smallest distances; of equal ones the first, where numpy's choice depends on the processor."""
    last = np.partition(distance, h - 1)[h - 1]
    nearer = np.flatnonzero(distance < last)
    return np.concatenate([nearer, np.flatnonzero(distance == last)[: h - len(nearer)]])


def _scatter_of(x: Array, ridge: bool = False) -> Scatter | None:
    covariance = np.atleast_2d(np.cov(x, rowvar=False))
    if ridge:  # p + 1 records may lie in a plane, and so much keeps their distances finite
        covariance = covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12)
    if not np.isfinite(covariance).all() or np.linalg.cond(covariance) > 1e12:
        return None
    return Scatter(x.mean(axis=0), covariance)


def _quantile(share: float, p: int) -> float:
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(p / 2, share))


def _consistency(share: float, p: int) -> float:
    """share / P(chi2_{p+2} <= q), q the quantile of chi2_p at this share."""
    from scipy.special import gammainc

    return share / float(gammainc(p / 2 + 1, _quantile(share, p) / 2))
