"""Normal scores, the normal regression between them, and the way back to values by rank."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import covariance_root

SMALL = 1e-12


def normal_scores(x: Array) -> Array:
    """The mean of a standard normal Z where it lies in the stretch of each value: E(Z | F(x-) < Phi(Z) < F(x)).

    F is the empirical distribution of x. Values that occur once have nearly Phi^-1 of their rank; equal values share one
    score, so the scores of a variable with few values vary by less than 1. NaN is one more value, the largest.
    """
    from scipy.special import ndtri

    _, inverse, count = np.unique(x, return_inverse=True, return_counts=True)
    density = np.exp(-0.5 * ndtri(np.cumsum(count)[:-1] / len(x)) ** 2) / np.sqrt(2 * np.pi)
    scores: Array = (-np.diff(density, prepend=0.0, append=0.0) * len(x) / count)[inverse]
    return scores


def drawn_given(scores: Array, predictors: Array, rng: Generator) -> Array:
    """One draw of the normal variables behind the scores, given the predictors: Z = S b + e, e ~ N(0, C).

    scores : n x p normal scores, NaN where unknown: left out of the fit, and drawn all the same. With m = E(Z | value)
    and v = Var m, Cov(Z, S) = Cov(m, S)/v and Cov(Z_i, Z_j) = Cov(m_i, m_j)/(v_i v_j), so b and C are found by least
    squares of m on S; C is made a covariance matrix by setting negative eigenvalues to 0, and no Z varies by more than 1.
    Muralidhar, Sarathy (2006); for few values: Olsson, Drasgow, Dorans (1982), the polyserial correlation
    """
    s = np.column_stack([np.ones(len(scores)), predictors])
    spread = np.nanmean(scores**2, axis=0)
    spread[spread < SMALL] = 1.0  # a constant has no scores
    fitted = np.empty_like(scores)
    for j, own in enumerate(scores.T):
        rows = ~np.isnan(own)
        fitted[:, j] = s @ np.linalg.lstsq(s[rows], own[rows])[0] / spread[j]
    fitted /= np.maximum(1.0, np.sqrt(np.mean(fitted**2, axis=0)))
    known = ~np.isnan(scores)
    m = np.where(known, scores, 0.0) / spread
    latent = m.T @ m / np.maximum(known.T.astype(float) @ known, 1.0)  # over the rows in which both are known
    np.fill_diagonal(latent, 1.0)
    root = covariance_root(latent - fitted.T @ fitted / len(fitted))
    drawn: Array = fitted + rng.standard_normal(scores.shape) @ root.T
    return drawn


def rank_mapped(x: Array, scores: Array) -> Array:
    """The values of x in the order of the scores: the record with the largest score has the largest value.

    Equal scores are ranked in file order.  Muralidhar, Sarathy (2006)
    """
    mapped = np.empty_like(x)
    mapped[np.argsort(scores, kind="stable")] = np.sort(x)
    return mapped


def quantile_mapped(x: Array, scores: Array) -> Array:
    """F^-1(Phi(score)) for the empirical distribution F of x, NaN the largest value."""
    from scipy.special import ndtr

    place = np.minimum((ndtr(scores) * len(x)).astype(np.int64), len(x) - 1)
    mapped: Array = np.sort(x)[place]
    return mapped


def dummies(codes: Array, count: int) -> Array:
    """A column of 0 and 1 for each category but the first."""
    indicators: Array = (codes[:, np.newaxis] == np.arange(1, count)).astype(float)
    return indicators
