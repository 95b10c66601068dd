"""Linear and logistic regression with standard errors that count units, such as households, and not records.

Columns that are linearly dependent on earlier ones are left out: their coefficients are NaN. So are those of columns that
separate the two groups of a logistic regression, whose best coefficient is infinite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

MIN_OWN_VARIATION = 1e-8  # share of a column's variation that earlier columns do not explain; else it is dependent
MAX_NEWTON_STEPS = 30
NEWTON_TOLERANCE = 1e-10  # of the step, in standard errors
RIDGE = 1e-6  # in records; keeps the fit finite where a column separates the groups
# Where a column separates the groups, its records say almost nothing about the size of the coefficient, and the sandwich,
# made of their vanishing residuals, is far smaller than the error that the information gives. Without separation the two
# agree, but for the clusters.
SEPARATED = 5.0  # times the sandwich
EXACT_FIT = (
    1e-12  # share of the variation that is rounding if it remains; nothing is uncertain then, and the errors are 0
)


class Coefficients(NamedTuple):
    """Coefficients and their standard errors; NaN for columns that were left out, or where nothing could be fitted."""

    values: Array
    errors: Array

    @classmethod
    def all_missing(cls, count: int) -> Coefficients:
        return cls(np.full(count, np.nan), np.full(count, np.nan))


def clustered_least_squares(x: Array, y: Array, weights: Array, units: Array) -> Coefficients:
    """Fit by weighted least squares, with the sandwich covariance between units.

    x : a row for each record; the intercept is a column of its own. units : the unit of each record, from 0. Reference:
    White (1980); Liang, Zeger (1986).
    """
    gram = x.T @ (x * weights[:, None])
    kept = independent_columns(gram)
    if len(x) <= len(kept) or not len(kept):
        return Coefficients.all_missing(x.shape[1])
    own = x if len(kept) == x.shape[1] else x[:, kept]
    inverse = np.linalg.inv(gram[np.ix_(kept, kept)])
    slopes = inverse @ (own.T @ (weights * y))
    residuals = y - own @ slopes
    if float(weights @ residuals**2) <= EXACT_FIT * float(weights @ (y - np.average(y, weights=weights)) ** 2):
        return _expand(kept, slopes, np.zeros(len(kept)), x.shape[1])
    return _expand(kept, slopes, _errors(own, weights * residuals, inverse, units), x.shape[1])


def clustered_logit(x: Array, y: Array, weights: Array, units: Array) -> Coefficients:
    """Fit a logistic regression of y (0 or 1) by Newton's method, with the sandwich covariance between units."""
    kept = independent_columns(x.T @ (x * weights[:, None]))
    share = float((weights * y).sum() / weights.sum()) if weights.sum() > 0 else 0.0
    if len(x) <= len(kept) or not 0 < share < 1:
        return Coefficients.all_missing(x.shape[1])
    own = x[:, kept]
    scale = np.sqrt((weights[:, None] * own**2).sum(axis=0) / weights.sum())
    z, slopes = own / scale, np.zeros(len(kept))
    for _ in range(MAX_NEWTON_STEPS):
        p = 0.5 * (1 + np.tanh(0.5 * (z @ slopes)))
        gradient = z.T @ (weights * (y - p)) - RIDGE * slopes
        information = z.T @ (z * (weights * p * (1 - p))[:, None])
        information[np.diag_indices_from(information)] += RIDGE
        step = np.linalg.solve(information, gradient)
        size = float(gradient @ step)  # twice the gain of log-likelihood that the step promises
        slopes = slopes + step * min(1.0, 4.0 / max(float(np.abs(z @ step).max()), 1e-300))
        if size < NEWTON_TOLERANCE:
            break
    p = 0.5 * (1 + np.tanh(0.5 * (z @ slopes)))
    information = z.T @ (z * (weights * p * (1 - p))[:, None])
    information[np.diag_indices_from(information)] += RIDGE
    inverse = np.linalg.inv(information)
    errors = _errors(z, weights * (y - p), inverse, units)
    separates = np.sqrt(np.diag(inverse) * weights.mean()) > SEPARATED * errors
    slopes, errors = (np.where(separates, np.nan, own / scale) for own in (slopes, errors))
    return _expand(kept, slopes, errors, x.shape[1])


def independent_columns(gram: Array) -> Array:
    """Return the columns that do not depend linearly on the columns before them; gram : their sums of products."""
    size = np.sqrt(np.diag(gram))
    kept: list[int] = []
    for j in np.flatnonzero(size > 0).tolist():
        own = gram[np.ix_(kept, kept)] / np.outer(size[kept], size[kept])
        shared = gram[kept, j] / (size[kept] * size[j])
        unexplained = 1.0 - float(shared @ np.linalg.solve(own, shared)) if kept else 1.0
        if unexplained > MIN_OWN_VARIATION:
            kept.append(j)
    return np.array(kept, dtype=np.int64)


def sums_by_unit(values: Array, units: Array) -> Array:
    """Return the sum of each column within each unit; units are codes from 0, and the identity is returned as it is."""
    count = int(units.max(initial=-1)) + 1
    if count == len(values):
        return values
    return np.column_stack([np.bincount(units, column, minlength=count) for column in values.T])


def _errors(x: Array, scores: Array, inverse: Array, units: Array) -> Array:
    """Return the standard errors of coefficients from the score of each record."""
    influences = sums_by_unit((x @ inverse) * scores[:, None], units)
    count, (rows, width) = len(influences), x.shape
    factor = count / max(count - 1, 1) * (rows - 1) / max(rows - width, 1)
    return np.asarray(np.sqrt(factor * (influences**2).sum(axis=0)))


def _expand(kept: Array, slopes: Array, errors: Array, width: int) -> Coefficients:
    full = Coefficients.all_missing(width)
    full.values[kept], full.errors[kept] = slopes, errors
    return full
