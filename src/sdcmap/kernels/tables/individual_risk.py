"""Risks of single records that stand for part of a population."""

from __future__ import annotations

import math

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


def individual_risks(f: Array, total: Array, *, exact: bool = False) -> Array:
    """E(1/F | f) of cells with f sample records of summed weight `total`, where F - f is negative binomial (f, p = f/F).

    exact : p/f 2F1(1, 1; f+1; 1-p), which is p^f/f 2F1(f, f; f+1; 1-p) by Euler's transformation.
    Benedetti, Franconi (1998); Franconi, Polettini (2004)
    """
    f, total = np.asarray(f, dtype=np.float64), np.asarray(total, dtype=np.float64)
    if not exact:
        return _approximate(f, total)
    from scipy.special import hyp2f1

    p = np.minimum(f / total, 1.0)
    risk: Array = p / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - p)
    return risk


@jit
def _approximate(f: Array, total: Array) -> Array:
    risk = np.empty(len(f))
    for i in range(len(f)):
        risk[i] = individual_risk(f[i], total[i])
    return risk


@jit
def individual_risk(f: float, total: float) -> float:
    """The same for one cell, with p / (f - (1 - p)) above f = 2: sdcMicro's approximation.  Benedetti, Franconi (1998)"""
    p = f / total
    if p >= 1:
        return 1 / f
    odds = p / (1 - p)
    if f <= 1:
        return odds * math.log(1 / p)
    if f <= 2:
        return odds - odds * odds * math.log(1 / p)
    return p / (f - (1 - p))


def household_risks(risk: Array, household: Array) -> Array:
    """1 - prod(1 - r) over the members of each record's household; `household` counts 0, 1, ...

    Logarithms keep small risks apart: 1 - prod(1 - r) = -expm1(sum log1p(-r)).
    """
    with np.errstate(divide="ignore"):
        none = np.bincount(household, np.log1p(-risk))
    any_member: Array = -np.expm1(none)[household]
    return any_member
