"""Re-identification risks of single records in a sample of a population."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

SMALL_P = 1e-2  # below this the series in 1 - p converges slowly
NEAR_WHOLE = 1e-5  # Gauss' transformation has poles at whole f, and loses digits this close to them
MAX_TERMS = 10_000_000  # of the series


def individual_risks(f: Array, total: Array, *, exact: bool = False) -> Array:
    """Return E(1/F | f) of cells with f sample records of total weight `total`; F - f is negative binomial (f, p = f/F).

    exact : p/f 2F1(1, 1; f+1; 1-p), which is p^f/f 2F1(f, f; f+1; 1-p) by Euler's transformation.
    Benedetti, Franconi (1998); Franconi, Polettini (2004)
    """
    f, total = np.asarray(f, dtype=np.float64), np.asarray(total, dtype=np.float64)
    return _risks(f, total, exact)


@jit
def _risks(f: Array, total: Array, exact: bool) -> Array:
    risk = np.empty(len(f))
    for i in range(len(f)):
        risk[i] = mean_inverse(f[i], min(f[i] / total[i], 1.0)) if exact else individual_risk(f[i], total[i])
    return risk


@inner_jit
def mean_inverse(f: float, p: float) -> float:
    """Return p/f 2F1(1, 1; f+1; 1-p) for any f > 0; f need not be whole, since a record that may match counts in part.

    There is a closed form for f = 1 and 2. Otherwise the series is summed, whose terms shrink by (n+1)(1-p)/(f+1+n). Where
    that is slow (p small and f < 3), Gauss' transformation to p is used:
    f/(f-1) 2F1(1, 1; 2-f; p) + G(f+1) G(1-f) p^(f-1) (1-p)^-f.
    """
    if p >= 1:
        return 1 / f
    if f in (1.0, 2.0):
        odds = p / (1 - p)
        return odds * math.log(1 / p) if f == 1 else odds - odds * odds * math.log(1 / p)
    if p < SMALL_P and f < 3 and abs(f - round(f)) > NEAR_WHOLE:
        first = f / (f - 1) * _series(2 - f, p)
        rest: float = math.gamma(f + 1) * math.gamma(1 - f) * p ** (f - 1) * (1 - p) ** (-f)
        return p / f * (first + rest)
    return p / f * _series(f + 1, 1 - p)


@inner_jit
def _series(c: float, z: float) -> float:
    """Return 2F1(1, 1; c; z) for 0 <= z < 1, term by term."""
    total, term = 1.0, 1.0
    for n in range(MAX_TERMS):
        term *= (n + 1) * z / (c + n)
        total += term
        if abs(term) <= 1e-17 * abs(total) and (n + 2) * z < abs(c + n + 1):
            break
    return total


@jit
def individual_risk(f: float, total: float) -> float:
    """Return the risk of one cell: exact up to f = 2, and p / (f - (1 - p)) above, as sdcMicro approximates it.

    Benedetti, Franconi (1998)
    """
    p = f / total
    if p >= 1:
        return 1 / f
    return mean_inverse(max(f, 1.0), p) if f <= 2 else p / (f - (1 - p))


def household_risks(risk: Array, household: Array) -> Array:
    """Return 1 - prod(1 - r) over the members of each record's household; households are numbered 0, 1, ...

    Logarithms keep the precision of small risks: 1 - prod(1 - r) = -expm1(sum log1p(-r)).
    """
    with np.errstate(divide="ignore"):
        log_none = np.bincount(household, np.log1p(-risk))
    return -np.expm1(log_none)[household]
