"""Robust location and scatter: the minimum covariance determinant of Rousseeuw (1985), found by concentration steps.

The set of h records whose covariance matrix has the smallest determinant is the clean half of the file: up to n - h
outliers of any size do not affect it. Mean and covariance are then computed from all records that are near this set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

RANDOM_STARTS = 50  # random sets of p + 1 records
FIRST_STEPS = 2  # concentration steps of each start
BEST_STARTS = 10  # starts that are continued until they converge
MAX_STEPS = 100  # concentration steps, at most
MAX_RECORDS = 5000  # the set is searched among this many records; the others only enter the final covariance
OUTLIER_QUANTILE = 0.975  # of the chi-square distribution; records beyond it are outliers


class Scatter(NamedTuple):
    """A center and a covariance matrix."""

    center: Array
    covariance: Array

    def distances(self, x: Array) -> Array:
        """Return the squared Mahalanobis distances of the records."""
        apart = x - self.center
        return np.asarray(np.einsum("ij,ij->i", apart @ np.linalg.inv(self.covariance), apart))


def robust_scatter(x: Array, seed: int = 0) -> Scatter | None:
    """Return the reweighted minimum covariance determinant of complete records, or None if half of them lie in a plane.

    h = (n + p + 1) // 2. The raw covariance is multiplied by h/n / F_{p+2}(q), where q is the h/n quantile of chi-square
    with p degrees of freedom, which makes it consistent for normal data. The records within its 0.975 quantile give the
    final covariance, corrected in the same way (Croux and Haesbroeck 1999; Pison, Van Aelst, Willems 2002, without their
    factor for small files).
    """
    n, p = x.shape
    if n < 2 * (p + 1):
        return None
    x = x[np.lexsort(x.T)]  # the result must not depend on the order of the records
    rng = np.random.default_rng(seed)
    sample = x if n <= MAX_RECORDS else x[np.sort(rng.choice(n, MAX_RECORDS, replace=False))]
    best = _smallest(sample, rng)
    if best is None:
        return None
    h = (len(sample) + p + 1) // 2
    raw = Scatter(best.center, best.covariance * _consistency(h / len(sample), p))
    # Reweighting: recompute from all records that are not outliers.
    near = raw.distances(x) <= _quantile(OUTLIER_QUANTILE, p)
    final = _scatter_of(x[near]) if near.sum() > p + 1 else None
    return raw if final is None else Scatter(final.center, final.covariance * _consistency(OUTLIER_QUANTILE, p))


def _smallest(x: Array, rng: np.random.Generator) -> Scatter | None:
    """Return the scatter of the best set of h records found.  Rousseeuw, van Driessen (1999), FAST-MCD"""
    n, p = x.shape
    h = (n + p + 1) // 2
    starts = [_steps(x, rng.choice(n, p + 1, replace=False), h, FIRST_STEPS) for _ in range(RANDOM_STARTS)]
    starts.append(_steps(x, _nearest(np.abs(x - np.median(x, axis=0)).sum(axis=1), h), h, FIRST_STEPS))
    # Two steps of each start suffice to see which are promising; only those are continued.
    best = sorted((s for s in starts if s is not None), key=lambda start: start[0])[:BEST_STARTS]
    ends = [end for _, rows in best if (end := _steps(x, rows, h, MAX_STEPS)) is not None]
    return _scatter_of(x[min(ends, key=lambda end: end[0])[1]]) if ends else None


def _steps(x: Array, rows: Array, h: int, most: int) -> tuple[float, Array] | None:
    """Run concentration steps and return the final log determinant and set.

    The h records nearest to the scatter of a set never have a larger determinant.
    """
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
    """Return the rows of the h smallest distances; ties go to the first rows.

    The choice of np.argpartition among ties depends on the processor.
    """
    last = np.partition(distance, h - 1)[h - 1]
    nearer = np.flatnonzero(distance < last)
    return np.concatenate([nearer, np.flatnonzero(distance == last)[: h - len(nearer)]])


def _scatter_of(x: Array, ridge: bool = False) -> Scatter | None:
    covariance = np.atleast_2d(np.cov(x, rowvar=False))
    if ridge:  # p + 1 records may lie in a plane; this keeps their distances finite
        covariance = covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12)
    if not np.isfinite(covariance).all() or np.linalg.cond(covariance) > 1e12:
        return None
    return Scatter(x.mean(axis=0), covariance)


def _quantile(share: float, p: int) -> float:
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(p / 2, share))


def _consistency(share: float, p: int) -> float:
    """Return share / P(chi2_{p+2} <= q), where q is the quantile of chi2_p at this share."""
    from scipy.special import gammainc

    return share / float(gammainc(p / 2 + 1, _quantile(share, p) / 2))
