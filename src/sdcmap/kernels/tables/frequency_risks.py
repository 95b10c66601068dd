"""Risks of single records that stand for part of a population."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

SMALL, NEAR_WHOLE = 1e-2, 1e-5
MOST_TERMS = 10_000_000


def individual_risks(f: Array, total: Array, *, exact: bool = False) -> Array:
    """E(1/F | f) of cells with f sample records of summed weight `total`, where F - f is negative binomial (f, p = f/F).

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
    """p/f 2F1(1, 1; f+1; 1-p), for any f > 0, whole or not (a record that may match counts in part).

    Closed for f = 1 and 2. Else the series, whose terms shrink by (n+1)(1-p)/(f+1+n); where that is slow (p small and
    f < 3) Gauss' transformation to p: f/(f-1) 2F1(1, 1; 2-f; p) + G(f+1) G(1-f) p^(f-1) (1-p)^-f.
    """
    if p >= 1:
        return 1 / f
    if f in (1.0, 2.0):
        odds = p / (1 - p)
        return odds * math.log(1 / p) if f == 1 else odds - odds * odds * math.log(1 / p)
    if p < SMALL and f < 3 and abs(f - round(f)) > NEAR_WHOLE:
        turned = f / (f - 1) * _series(2 - f, p)
        rest: float = math.gamma(f + 1) * math.gamma(1 - f) * p ** (f - 1) * (1 - p) ** (-f)
        return p / f * (turned + rest)
    return p / f * _series(f + 1, 1 - p)


@inner_jit
def _series(c: float, z: float) -> float:
    """2F1(1, 1; c; z) for 0 <= z < 1, term by term."""
    total, term = 1.0, 1.0
    for n in range(MOST_TERMS):
        term *= (n + 1) * z / (c + n)
        total += term
        if abs(term) <= 1e-17 * abs(total) and (n + 2) * z < abs(c + n + 1):
            break
    return total


@jit
def individual_risk(f: float, total: float) -> float:
    """The same for one cell, with p / (f - (1 - p)) above f = 2: sdcMicro's approximation.  Benedetti, Franconi (1998)

    Between 1 and 2, where the approximation has no formula, it is exact.
    """
    p = f / total
    if p >= 1:
        return 1 / f
    return mean_inverse(max(f, 1.0), p) if f <= 2 else p / (f - (1 - p))


def household_risks(risk: Array, household: Array) -> Array:
    """1 - prod(1 - r) over the members of each record's household; `household` counts 0, 1, ...

    Logarithms keep small risks apart: 1 - prod(1 - r) = -expm1(sum log1p(-r)).
    """
    with np.errstate(divide="ignore"):
        none = np.bincount(household, np.log1p(-risk))
    return -np.expm1(none)[household]
