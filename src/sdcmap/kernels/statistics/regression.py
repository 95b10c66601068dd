"""Linear and logistic regression, computed in blocks of rows.

The memory needed is that of the columns, never that of the whole design matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sdcmap.kernels.arrays import Array

BLOCK_ROWS = 1 << 14  # rows of the design matrix at a time
RIDGE = 1e-6  # in records; keeps the slopes of a logit finite where a term separates the two groups perfectly
MAX_NEWTON_STEPS = 60
CACHED_CELLS = 1 << 24  # a design matrix of at most so many cells is kept in memory over the steps of Newton's method
SMALL_STEP = 1e-4  # twice the log-likelihood that is still to gain: every slope is within 0.01 standard errors
TINY = 1e-30  # a smaller probability is rounding
MULTIPLIED = 8  # probabilities before a logarithm; their product stays above the smallest number
SLOW_PROGRESS = 0.4  # a step that leaves more of this gain needs a new Hessian matrix
CANCELLATION = 1e-12  # a sum that is at most this share of its terms' sizes is rounding and counts as 0


class Regressors(Protocol):
    """The terms a logit is fitted to; the first is the intercept."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

    def likelihood(self, ones: Array, zeros: Array, slopes: Array) -> tuple[float, Array, Array, Array]:
        """Return the log-likelihood, its gradient, the information and the probabilities."""


class Design(NamedTuple):
    """The columns of a regression, and its terms, each a product of columns; () is the intercept.

    matrix : the terms as they are computed from the columns, terms x rows, where somebody keeps them.
    """

    columns: tuple[Array, ...]
    terms: tuple[tuple[int, ...], ...]
    rows: int
    matrix: Array | None = None

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the design matrix in blocks of rows."""
        for start in range(0, self.rows, BLOCK_ROWS):
            at = slice(start, min(start + BLOCK_ROWS, self.rows))
            yield at, self.block(at)

    def block(self, at: slice) -> Array:
        """Return these rows of the design matrix."""
        if self.matrix is not None:
            return self.matrix[:, at].T
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

    def predict(self, slopes: Array) -> Array:
        """Return the linear predictor of each row, for one vector of slopes or for each column of a matrix of them."""
        predicted = np.empty((self.rows, *slopes.shape[1:]))
        for at, x in self.blocks():
            predicted[at] = x @ slopes
        return predicted

    def likelihood(self, ones: Array, zeros: Array, slopes: Array) -> tuple[float, Array, Array, Array]:
        """Return the log-likelihood of a logit, its gradient, the information and the probabilities."""
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
    """Fit by ordinary least squares with covariance s^2 (X'X)^-1, or by weighted least squares with White's sandwich.

    Return None if the columns are linearly dependent or there are no more rows than columns.  White (1980)
    """
    k = len(design.terms)
    if design.rows <= k:
        return None
    w = np.ones(design.rows) if weights is None else weights
    # First pass over the rows: the normal equations. Second pass: residuals and, with weights, the sandwich.
    gram, moment = np.zeros((k, k)), np.zeros(k)
    for at, x in design.blocks():
        gram += products(x, w[at])
        moment += x.T @ (w[at] * y[at])
    inverse = invert_gram(gram)
    if inverse is None:
        return None
    slopes = _cancel_rounding(inverse @ moment, np.abs(inverse) @ np.abs(moment))
    error, sandwich = 0.0, np.zeros((k, k))
    for at, x in design.blocks():
        residual = _cancel_rounding(y[at] - x @ slopes, np.abs(y[at]) + np.abs(x) @ np.abs(slopes))
        error += float(residual @ residual)
        if weights is not None:
            influence = _cancel_rounding(x @ inverse, np.abs(x) @ np.abs(inverse))
            sandwich += products(influence, (w[at] * residual) ** 2)
    if weights is None:
        return Fit(slopes, inverse * error / (design.rows - k))
    return Fit(slopes, sandwich * design.rows / (design.rows - k))


def ridge_regression(design: Design, y: Array, ridge: float) -> Array:
    """Return the slopes that minimize the squared residuals plus `ridge` times the squared slopes, not the intercept's.

    The first term must be the intercept.  Hoerl, Kennard (1970)
    """
    k = design.width
    gram, moment = np.zeros((k, k)), np.zeros(k)
    for at, x in design.blocks():
        gram += x.T @ x
        moment += x.T @ y[at]
    gram[np.arange(1, k), np.arange(1, k)] += ridge
    return np.asarray(np.linalg.solve(gram, moment))


def logit_slopes(design: Design, codes: Array, classes: Sequence[int], ridge: float) -> Array:
    """Return the slopes of a logistic regression for each of these classes against all others, to 0.01 standard errors.

    As `logit` with the same ridge, but many times faster. The first step of Newton's method needs the same matrix X'X for
    all classes, later steps keep a Hessian matrix as long as they make progress (the chord method), and all classes are
    evaluated together.
    """
    blocks = list(design.blocks()) if design.rows * design.width <= CACHED_CELLS else design
    gram = sum((x.T @ x for _, x in _each(blocks)), np.zeros((design.width, design.width)))
    own = np.asarray(classes)
    share = np.array([(codes == one).mean() for one in classes])
    fits = [_LogitFit(one, ridge, gram) for one in share.tolist()]
    active = list(range(len(fits)))
    for _ in range(MAX_NEWTON_STEPS):
        slopes = np.array([fits[i].slopes for i in active])
        values, gradients, chances = np.zeros(len(active)), np.zeros(slopes.shape), list[Array]()
        for at, x in _each(blocks):
            eta, is_own = x @ slopes.T, codes[at, np.newaxis] == own[active]
            chances.append(chance := 0.5 * (1 + np.tanh(0.5 * eta)))
            residual = is_own - chance
            gradients += residual.T @ x
            values += _sum_of_logarithms(1 - np.abs(residual))
        left = []
        for row, i in enumerate(active):
            if fits[i].needs_hessian(values[row], gradients[row]):
                information = np.zeros_like(gram)
                for (_, x), p in zip(_each(blocks), chances, strict=True):
                    information += products(x, p[:, row] * (1 - p[:, row]))
                fits[i].set_hessian(information)
            left += [] if fits[i].step() else [i]
        active = left
        if not active:
            break
    return np.array([fit.slopes for fit in fits])


def _sum_of_logarithms(chances: Array) -> Array:
    """Return the sum of the logarithms of each column, from products of a few numbers, since logarithms are slow."""
    starts = np.arange(0, len(chances), MULTIPLIED)
    return np.asarray(np.log(np.multiply.reduceat(np.maximum(chances, TINY), starts, axis=0)).sum(axis=0))


def _each(blocks: Design | list[tuple[slice, Array]]) -> Iterable[tuple[slice, Array]]:
    return blocks if isinstance(blocks, list) else blocks.blocks()


class _LogitFit:
    """The state of the fit of one class: its slopes, its Hessian matrix and what the last evaluation found."""

    def __init__(self, share: float, ridge: float, gram: Array) -> None:
        self.penalty = np.full(len(gram), ridge)
        self.penalty[0] = 0.0
        self.slopes, self._last = np.zeros(len(gram)), np.zeros(len(gram))
        self.slopes[0] = np.log(share / (1 - share))
        self._best, self._gain, self._is_too_far = -np.inf, np.inf, False
        self.set_hessian(share * (1 - share) * gram)

    def set_hessian(self, information: Array) -> None:
        self._inverse = np.linalg.inv(information + np.diag(self.penalty))

    def needs_hessian(self, value: float, gradient: Array) -> bool:
        """Store an evaluation of the log-likelihood, and return whether the Hessian matrix makes too little progress."""
        value = value - 0.5 * float(self.penalty @ self.slopes**2)
        self._gradient = gradient - self.penalty * self.slopes
        self._is_too_far = value < self._best - 1e-9 * abs(self._best)
        if self._is_too_far:
            return False
        self._best = value
        return float(self._gradient @ self._inverse @ self._gradient) > SLOW_PROGRESS * self._gain

    def step(self) -> bool:
        """Go a step, or back half of the last one where it went too far; return whether nothing is left to gain."""
        if self._is_too_far:
            self.slopes, self._gain = (self.slopes + self._last) / 2, 0.0
            return False
        step = self._inverse @ self._gradient
        self._gain, self._last = float(self._gradient @ step), self.slopes
        if self._gain <= SMALL_STEP:
            return True
        self.slopes = self.slopes + step
        return False


def _cancel_rounding(sums: Array, size: Array) -> Array:
    """Set sums to 0 that are only the rounding error of cancelling terms of this size.

    Otherwise a record that is fitted exactly, or that does not affect a coefficient, would have an influence of rounding
    errors, which depends on the order of the rows.
    """
    return np.where(np.abs(sums) <= CANCELLATION * size, 0.0, sums)


def products(x: Array, weights: Array) -> Array:
    """Return X'WX. Written with the root of the weights it is symmetric, and BLAS does half the work."""
    z = x.T * np.sqrt(weights)
    return np.asarray(z @ z.T)


def invert_gram(gram: Array) -> Array | None:
    """Return the inverse of a matrix of sums of squares and products, or None if it is singular to ten digits."""
    # Eigenvalues on the correlation scale, so that the units of the columns do not decide what is singular.
    scale = np.sqrt(np.diag(gram))
    if not ((scale > 0) & np.isfinite(scale)).all():
        return None
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    if values[0] <= 1e-10 * len(values):
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def logit(design: Regressors, ones: Array, zeros: Array, ridge: float = RIDGE) -> tuple[Fit, Array] | None:
    """Fit a logistic regression by Newton's method, and return the fit and the probability of the first group per unit.

    A unit holds `ones` records of the first group and `zeros` of the other. The first term must be the intercept.
    `ridge`/2 times the squared slopes, without the intercept's, is subtracted from the log-likelihood. The covariance is
    the inverse of the information. Return None if that is singular, as with columns of huge numbers.
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
    # Start at the fit with the intercept only.
    slopes = np.zeros(k)
    slopes[0] = np.log(first / (total - first))
    value, gradient, information, p = _likelihood(design, ones, zeros, slopes, penalty)
    for _ in range(MAX_NEWTON_STEPS):
        step = np.linalg.solve(information, gradient)
        decrement = float(gradient @ step)
        if decrement <= 1e-22 * total:
            break
        # Halve the step until the likelihood does not fall.
        share = 1.0
        while True:
            trial = _likelihood(design, ones, zeros, slopes + share * step, penalty)
            if trial[0] >= value - 1e-13 * abs(value) or share < 1e-4:
                break
            share /= 2
        slopes = slopes + share * step
        value, gradient, information, p = trial
        if decrement <= 1e-14 * total:  # this step squared the error; the rest is rounding
            break
    return (Fit(slopes, np.linalg.inv(information)), p) if np.isfinite(information).all() else None


def _likelihood(
    design: Regressors, ones: Array, zeros: Array, slopes: Array, penalty: Array
) -> tuple[float, Array, Array, Array]:
    """Return the penalized log-likelihood, its gradient, the information and the probabilities."""
    value, gradient, information, p = design.likelihood(ones, zeros, slopes)
    information[np.diag_indices_from(information)] += penalty
    if information[0, 0] <= 0:
        information[0, 0] = 1e-12
    return value - 0.5 * float(penalty @ slopes**2), gradient - penalty * slopes, information, p
