"""Estimates from noisy records, and their standard errors.

Each statistic is a smooth function of means of Wick polynomials, so each record has an influence on it. Standard errors
assume independent draws from a population. They include the sampling error, the error of the noise, and the error of the
estimated noise covariance. The last differs from that of a sample from X + e, because the noise was drawn with the
covariance of the very records it was added to: with D = d S_X and its estimate d/(1 + d) S_Z, the error D_hat - D is
d/(1 + d) times the mean of u u' - x x', from which the sampling error of S_X cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import polars as pl

from sdcmap.core import Array, Undefined
from sdcmap.corrections.wick_polynomials import Term, Wick, noise_terms
from sdcmap.kernels.statistics.moments import correlation_of, moments

BLOCK_RECORDS = 1 << 15  # records per block; bounds the memory for the polynomials of a large file
MIN_EIGENVALUE_SHARE = 1e-9  # of the largest eigenvalue; a normal matrix with a smaller eigenvalue counts as singular


@dataclass(frozen=True)
class Group:
    """Records of one noise stratum inside a domain.

    rows : their indices among the domain's records. noise : D. signal : Cov X in the stratum. center : its mean.
    kappa : d/(1 + d). count : n, the number of records from which D was estimated. estimated : which entries of D are
    estimated (all, or the diagonal). fourth : the variance of e e' as a share of that of normal noise.
    """

    rows: Array
    noise: Array
    signal: Array
    center: Array
    kappa: float
    count: int
    estimated: Array
    fourth: float = 1.0


@dataclass(frozen=True)
class Records:
    """The complete records of a domain: z = x + e (n x m), shares of the weight that sum to 1, and noise groups."""

    z: Array
    share: Array
    groups: tuple[Group, ...]

    @property
    def noise(self) -> Array:
        """Return the mean noise covariance."""
        return np.asarray(np.sum([group.noise * self.share[group.rows].sum() for group in self.groups], axis=0))

    def standardize(self) -> tuple[Records, Array, Array]:
        """Return the records standardized to mean 0 and standard deviation 1, and that mean and deviation."""
        observed = moments(self.z, self.share)
        center, scale = observed.mean, np.sqrt(observed.variance)
        scale = np.where(scale > 0, scale, 1.0)
        both = np.outer(scale, scale)
        groups = tuple(
            replace(g, noise=g.noise / both, signal=g.signal / both, center=(g.center - center) / scale)
            for g in self.groups
        )
        return Records((self.z - center) / scale, self.share, groups), center, scale


def wick_sums(records: Records, terms: Sequence[Term]) -> tuple[Array, Array]:
    """Return the weighted means of the Wick polynomials h (K), and sum share^2 (h - mean)(h - mean)' (K x K)."""
    mean, first, second = np.zeros(len(terms)), np.zeros(len(terms)), np.zeros((len(terms), len(terms)))
    for group, rows in _blocks(records):
        table, share = Wick(records.z[rows], group.noise).table(terms), records.share[rows]
        mean += share @ table
        first += share**2 @ table
        second += (table * share[:, None] ** 2).T @ table
    cross = np.outer(first, mean)
    return mean, second - cross - cross.T + (records.share**2).sum() * np.outer(mean, mean)


def standard_errors(records: Records, terms: Sequence[Term], spread: Array, gradient: Array) -> Array:
    """Return the standard error of each statistic.

    gradient : one row for each statistic, its derivatives with respect to the means of the terms.
    """
    count = len(records.z)
    variance = np.einsum("sk,kl,sl->s", gradient, spread, gradient, optimize=True) * (count / max(count - 1, 1))
    # Add the error of the estimated noise covariance of each group, and its covariance with the sampling error.
    for group in (group for group in records.groups if group.noise.any()):
        slope, error = _noise_terms(records, group, terms)
        j = np.einsum("sk,kab->sab", gradient, slope) * group.estimated
        c = np.einsum("sk,kab->sab", gradient, error)
        jd, js = j @ group.noise, j @ group.signal
        own = 4 * np.einsum("sab,sba->s", js, jd) + 2 * group.fourth * np.einsum("sab,sba->s", jd, jd)  # Var(J r)
        variance += (2 * np.einsum("sab,sab->s", j, c) + group.kappa * own) * group.kappa / group.count
    return np.asarray(np.sqrt(np.clip(variance, 0, None)))


def _noise_terms(records: Records, group: Group, terms: Sequence[Term]) -> tuple[Array, Array]:
    parts = [
        noise_terms(Wick(records.z[rows], group.noise), records.share[rows], group.center, terms, group.fourth)
        for other, rows in _blocks(records)
        if other is group
    ]
    return np.sum([slope for slope, _ in parts], axis=0), np.sum([error for _, error in parts], axis=0)


def _blocks(records: Records) -> Iterator[tuple[Group, Array]]:
    """Yield the rows of each group in blocks, so that the polynomials of a large file fit into memory."""
    for group in records.groups:
        for start in range(0, len(group.rows), BLOCK_RECORDS):
            yield group, group.rows[start : start + BLOCK_RECORDS]


@dataclass(frozen=True)
class MomentEstimates:
    """Means, covariances and correlations with standard errors; NaN where a corrected variance is not positive.

    smallest : the smallest eigenvalue of the corrected covariance matrix of standardized variables, as a share of the
    largest.
    """

    mean: Array
    mean_se: Array
    covariance: Array
    covariance_se: Array
    correlation: Array
    correlation_se: Array
    smallest: float


def estimate_moments(records: Records) -> MomentEstimates:
    """Return corrected moments: means do not change, and the noise is subtracted from covariances. Kim (1986, 1990)"""
    inner, center, scale = records.standardize()
    m = len(center)
    pairs = list(combinations_with_replacement(range(m), 2))
    terms: list[Term] = [*((j,) for j in range(m)), *pairs]
    means, spread = wick_sums(inner, terms)
    noise = inner.noise
    unbiased = 1 / (1 - float((inner.share**2).sum()))  # n/(n - 1), generalized to weights
    covariance = np.zeros((m, m))
    for (j, k), value in zip(pairs, means[m:], strict=True):
        covariance[j, k] = covariance[k, j] = unbiased * (value + noise[j, k]) - noise[j, k]
    correlation = correlation_of(covariance)
    gradient = np.vstack([np.eye(len(terms)), _correlation_gradient(covariance, correlation, pairs, m)])
    plain, relative = np.split(standard_errors(inner, terms, spread, gradient), [len(terms)])
    both = np.outer(scale, scale)
    if not np.isfinite(covariance).all():
        raise Undefined("the numbers are so large that their covariance overflows: divide them by a constant.")
    values = np.linalg.eigvalsh(covariance)
    return MomentEstimates(
        center,
        plain[:m] * scale,
        covariance * both,
        _square(plain[m:], pairs, m) * both,
        correlation,
        _square(relative, pairs, m),
        float(values[0] / values[-1]) if values[-1] > 0 else -1.0,
    )


def _correlation_gradient(covariance: Array, correlation: Array, pairs: list[tuple[int, int]], m: int) -> Array:
    """Return the gradient of correlations: dr = dc_jk/(s_j s_k) - r/2 (dc_jj/s_j^2 + dc_kk/s_k^2)."""
    column = {pair: m + number for number, pair in enumerate(pairs)}
    variance = np.where(np.diagonal(covariance) > 0, np.diagonal(covariance), np.nan)
    gradient = np.zeros((len(pairs), m + len(pairs)))
    for row, (j, k) in enumerate(pairs):
        gradient[row, column[j, k]] += 1 / np.sqrt(variance[j] * variance[k])
        for variable in (j, k):
            gradient[row, column[variable, variable]] -= correlation[j, k] / 2 / variance[variable]
    return gradient


def _square(values: Array, pairs: list[tuple[int, int]], m: int) -> Array:
    """Return a symmetric matrix from the values of its pairs."""
    square = np.zeros((m, m))
    for (j, k), value in zip(pairs, values, strict=True):
        square[j, k] = square[k, j] = value
    return square


def estimate_regression(records: Records, terms: Sequence[Term]) -> tuple[Array, Array] | None:
    """Return the coefficients of the terms and their standard errors; column 0 of the records is the response.

    Return None if the corrected normal matrix is not positive definite.
    beta = M^-1 v, M = mean :t t':, v = mean :t y:.  Fuller (1987), section 1 and 3; Fuller (1993)
    The influence of a record is M^-1 :t (y - t' beta):.
    """
    inner, center, scale = records.standardize()
    # List every product that occurs in M = t t' and v = t y once; `product` and `with_y` are indices into that list.
    index: dict[Term, int] = {}
    product = np.array([[index.setdefault(tuple(sorted(a + b)), len(index)) for b in terms] for a in terms])
    with_y = np.array([index.setdefault((0, *a), len(index)) for a in terms])
    every = list(index)
    means, spread = wick_sums(inner, every)
    normal = means[product]
    values = np.linalg.eigvalsh(normal)
    if values[0] <= MIN_EIGENVALUE_SHARE * values[-1]:
        return None
    inverse = np.linalg.inv(normal)
    beta = inverse @ means[with_y]
    moment = np.zeros((len(terms), len(every)))  # d(v - M beta)/d(means of the terms)
    for row in range(len(terms)):
        moment[row, with_y[row]] += 1
        np.subtract.at(moment[row], product[row], beta)
    back = scale[0] * _from_standardized(terms, center, scale)
    coefficients = back @ beta
    coefficients[list(terms).index(())] += center[0]
    return coefficients, standard_errors(inner, every, spread, back @ inverse @ moment)


def _from_standardized(terms: Sequence[Term], center: Array, scale: Array) -> Array:
    """Return the matrix that maps coefficients of products of u = (x - center)/scale to those of products of x.

    Every factor of a term must be a term too.
    """
    index = {term: number for number, term in enumerate(terms)}
    back = np.zeros((len(terms), len(terms)))
    for column, term in enumerate(terms):
        # Expand the product of (x - center)/scale: each factor contributes either x or -center.
        for chosen in range(1 << len(term)):
            factors = tuple(v for position, v in enumerate(term) if chosen >> position & 1)
            others = [v for position, v in enumerate(term) if not chosen >> position & 1]
            back[index[factors], column] += np.prod(-center[others]) / np.prod(scale[list(term)])
    return back


@dataclass(frozen=True, repr=False)
class Corrected:
    """Statistics of a file masked with noise, corrected for the noise.

    table : one row for each statistic: the categories of the domain (one column for each variable of `by`), statistic
        ("mean", "covariance", "correlation" or "coefficient"), of, with, released (without a correction), corrected, se,
        low and high (95 % confidence interval) and records. A value that does not exist is null.
    notes : sentences about the correction.
    semidefinite : whether every corrected covariance matrix is positive semidefinite.
    """

    table: pl.DataFrame
    notes: tuple[str, ...]
    semidefinite: bool

    def of(self, statistic: str) -> pl.DataFrame:
        """Return the rows of one statistic, such as "coefficient"."""
        return self.table.filter(pl.col("statistic") == statistic).drop("statistic")

    def __repr__(self) -> str:
        rows = [self.table.columns, *([_format_value(value) for value in row] for row in self.table.rows())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *self.notes])


def _format_value(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
