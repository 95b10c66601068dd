"""Linear and logistic regression by rows in blocks: memory is that of the columns, never of the whole design."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sdcmap.kernels.arrays import Array

BLOCK = 1 << 14  # rows of the design at once
RIDGE = 1e-6  # records; it keeps the slopes of a logit finite where a term tells the two groups apart for certain
MOST_STEPS = 60
ROUNDING = 1e-12  # a sum of terms that cancel to this share of them is 0


class Regressors(Protocol):
    """What a logit is fitted to: so many rows and terms, the first of which is the intercept."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

    def likelihood(self, ones: Array, zeros: Array, slopes: Array) -> tuple[float, Array, Array, Array]:
        """The log-likelihood, its gradient, the information, and the probabilities."""


class Design(NamedTuple):
    """A regression's `columns` as they are, and its `terms`, each a product of some columns; () is the intercept."""

    columns: tuple[Array, ...]
    terms: tuple[tuple[int, ...], ...]
    rows: int

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The rows of the design, some at a time."""
        for start in range(0, self.rows, BLOCK):
            at = slice(start, min(start + BLOCK, self.rows))
            yield at, self.block(at)

    def block(self, at: slice) -> Array:
        base = [column[at].astype(np.float64) for column in self.columns]
        x = np.empty((len(self.terms), at.stop - at.start))
        for row, term in zip(x, self.terms, strict=True):
            row[:] = base[term[0]] if term else 1.0
            for factor in term[1:]:
                row *= base[factor]
        return x.T

    @property
    def width(self) -> int:
        return len(self.terms)

    def likelihood(self, ones: Array, zeros: Array, slopes: Array) -> tuple[float, Array, Array, Array]:
        """The log-likelihood of a logit, its gradient, the information, and the probabilities."""
        value, gradient, information = 0.0, np.zeros(self.width), np.zeros((self.width, self.width))
        p = np.empty(self.rows)
        for at, x in self.blocks():
            eta = x @ slopes
            size = ones[at] + zeros[at]
            p[at] = chance = 0.5 * (1 + np.tanh(0.5 * eta))
            value += float(ones[at] @ eta - size @ np.logaddexp(0.0, eta))
            gradient += x.T @ (ones[at] - size * chance)
            information += products(x, size * chance * (1 - chance))
        return value, gradient, information, p


class Fit(NamedTuple):
    """Coefficients and their covariance matrix."""

    slopes: Array
    covariance: Array


def least_squares(design: Design, y: Array, weights: Array | None) -> Fit | None:
    """Ordinary least squares with s^2 (X'X)^-1; with weights, weighted least squares with the sandwich of White (1980).

    None where the columns depend on each other, or there are no more rows than columns.
    """
    k = len(design.terms)
    if design.rows <= k:
        return None
    w = np.ones(design.rows) if weights is None else weights
    gram, moment = np.zeros((k, k)), np.zeros(k)
    for at, x in design.blocks():
        gram += products(x, w[at])
        moment += x.T @ (w[at] * y[at])
    inverse = inverse_of(gram)
    if inverse is None:
        return None
    slopes = _unrounded(inverse @ moment, np.abs(inverse) @ np.abs(moment))
    error, sandwich = 0.0, np.zeros((k, k))
    for at, x in design.blocks():
        residual = _unrounded(y[at] - x @ slopes, np.abs(y[at]) + np.abs(x) @ np.abs(slopes))
        error += float(residual @ residual)
        if weights is not None:
            influence = _unrounded(x @ inverse, np.abs(x) @ np.abs(inverse))
            sandwich += products(influence, (w[at] * residual) ** 2)
    if weights is None:
        return Fit(slopes, inverse * error / (design.rows - k))
    return Fit(slopes, sandwich * design.rows / (design.rows - k))


def _unrounded(sums: Array, size: Array) -> Array:
    """The same with 0 for what is left of a sum of terms of this size when they cancel: a record that is fitted exactly, or
    that a coefficient does not rest on, would else have an influence of rounding, another in each order of rows."""
    return np.where(np.abs(sums) <= ROUNDING * size, 0.0, sums)


def products(x: Array, weights: Array) -> Array:
    """X'WX; the root of the weights makes it symmetric, for which BLAS needs half the work."""
    z = x.T * np.sqrt(weights)
    return np.asarray(z @ z.T)


def inverse_of(gram: Array) -> Array | None:
    """The inverse of a matrix of sums of squares and products; None where it has none to ten digits."""
    scale = np.sqrt(np.diag(gram))
    if not ((scale > 0) & np.isfinite(scale)).all():
        return None
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    if values[0] <= 1e-10 * len(values):
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def logit(design: Regressors, ones: Array, zeros: Array, ridge: float = RIDGE) -> tuple[Fit, Array] | None:
    """Logistic regression of units that hold `ones` records of one group and `zeros` of the other, by Newton's method
    (iteratively reweighted least squares), and the probability of the first group in each unit.

    The first term must be the intercept. `ridge`/2 times the squared slopes, but for the intercept's, is taken from the
    log-likelihood; the covariance is the inverse of the information. None where that has none: columns of huge numbers.
    """
    try:
        return _logit(design, ones, zeros, ridge)
    except np.linalg.LinAlgError:
        return None


def _logit(design: Regressors, ones: Array, zeros: Array, ridge: float) -> tuple[Fit, Array] | None:
    k = design.width
    penalty = np.full(k, ridge)
    penalty[0] = 0.0
    total, first = float(ones.sum() + zeros.sum()), float(ones.sum())
    slopes = np.zeros(k)
    slopes[0] = np.log(first / (total - first))
    reached, gradient, information, p = _likelihood(design, ones, zeros, slopes, penalty)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(information, gradient)
        decrement = float(gradient @ step)
        if decrement <= 1e-22 * total:
            break
        share = 1.0
        while True:
            tried = _likelihood(design, ones, zeros, slopes + share * step, penalty)
            if tried[0] >= reached - 1e-13 * abs(reached) or share < 1e-4:
                break
            share /= 2
        slopes = slopes + share * step
        reached, gradient, information, p = tried
        if decrement <= 1e-14 * total:  # this step squared the error: what is left is rounding
            break
    return (Fit(slopes, np.linalg.inv(information)), p) if np.isfinite(information).all() else None


def _likelihood(
    design: Regressors, ones: Array, zeros: Array, slopes: Array, penalty: Array
) -> tuple[float, Array, Array, Array]:
    """The penalized log-likelihood, its gradient, the information, and the probabilities."""
    value, gradient, information, p = design.likelihood(ones, zeros, slopes)
    information[np.diag_indices_from(information)] += penalty
    if information[0, 0] <= 0:
        information[0, 0] = 1e-12
    return value - 0.5 * float(penalty @ slopes**2), gradient - penalty * slopes, information, p
