"""Population uniques: estimates from the sizes of groups with equal keys, and from log-linear models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import DistinctCells, distinct_cells
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure, find_weight_problems

# Estimates of the number of population uniques from the sizes of the groups of equal records in a sample.
#
# sizes, counts : the group sizes that occur in the sample, rising, and how many groups have each. There are n records
# from a population of N persons; f = n/N. Each function returns the expected number of population uniques, or NaN if its
# model cannot be fitted.


MAX_LOG_PARAMETER = 30.0  # bound of the logarithms and log-odds that parameters are optimized in
LOG_ODDS_GRID = np.linspace(-MAX_LOG_PARAMETER, MAX_LOG_PARAMETER, 241)  # on which a change of sign is looked for


def zayatz(sizes: Array, counts: Array, population: float) -> float:
    """Return (u_1/f) P(size 1 in the population | size 1 in the sample).

    Population groups are assumed to have the sizes of the sample groups. A group of j persons leaves one in the sample
    with the hypergeometric probability. Zayatz (1991)
    """
    n = float(sizes @ counts)
    chance, ones = _chance_of_one(sizes.astype(np.float64), n, population), counts[sizes == 1].sum()
    from_uniques = ones * chance[sizes == 1].sum()
    return float(ones * (from_uniques / (counts @ chance)) * population / n) if from_uniques else 0.0


def _chance_of_one(size: Array, n: float, population: float) -> Array:
    """Return the hypergeometric P(1) = j C(N - j, n - 1)/C(N, n)."""
    fits = population - size >= n - 1
    left = np.where(fits, population - size, n)
    return np.where(fits, np.exp(np.log(size) + _log_choose(left, n - 1) - _log_choose(population, n)), 0.0)


def _log_choose(n: Array | float, k: float) -> Array:
    """Return the logarithm of the binomial coefficient, also for arguments that are not whole numbers."""
    from scipy.special import betaln

    return np.asarray(-betaln(n - k + 1, k + 1) - np.log(np.asarray(n) + 1))


def pitman(sizes: Array, counts: Array, population: float) -> float:
    """Return N (theta + alpha)_(N-1) / (theta + 1)_(N-1), the expected groups of size 1 in Pitman's partition of N.

    Hoshino (2001), whose eq. 14 is its limit G(theta + 1)/G(theta + alpha) N^alpha
    """
    from scipy.special import gammaln

    groups, n = counts.sum(), sizes @ counts
    if groups in (1, n):  # all records equal, or all unique: the maximum lies at the boundary
        return population if groups == n else 0.0
    alpha, theta = pitman_fit(sizes, counts)
    log = np.log(population) + gammaln(theta + alpha + population - 1) - gammaln(theta + population)
    expected = float(np.exp(log + gammaln(theta + 1) - gammaln(theta + alpha)))
    return min(expected, population) if np.isfinite(expected) else np.nan


def pitman_fit(sizes: Array, counts: Array) -> tuple[float, float]:
    """Return the maximum likelihood estimates of alpha and theta, with 0 < alpha < 1 and theta > -alpha.

    Hoshino (2001), eq. 11
    """
    from scipy.optimize import minimize
    from scipy.special import digamma, expit, gammaln

    n, u = float(sizes @ counts), float(counts.sum())

    def loss(at: Array) -> tuple[float, Array]:
        """Return minus the log-likelihood over n, and its gradient in logit(alpha) and log(theta + alpha)."""
        alpha, rest = expit(at[0]), np.exp(at[1])
        theta = rest - alpha
        ratio = theta / alpha
        value = (u - 1) * np.log(alpha) + gammaln(ratio + u) - gammaln(ratio + 1)
        value = value - gammaln(theta + n) + gammaln(theta + 1)
        value += counts @ (gammaln(sizes - alpha) - gammaln(1 - alpha))
        by_ratio = digamma(ratio + u) - digamma(ratio + 1)
        by_theta = by_ratio / alpha - digamma(theta + n) + digamma(theta + 1)
        by_sizes = counts @ (digamma(sizes - alpha) - digamma(1 - alpha))
        by_alpha = (u - 1) / alpha - by_ratio * theta / alpha**2 - by_sizes
        return float(-value / n), -np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * rest]) / n

    options, bounds = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500}, [(-MAX_LOG_PARAMETER, MAX_LOG_PARAMETER)] * 2
    fit = minimize(loss, [0.0, np.log(u)], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    alpha = float(expit(fit.x[0]))
    return alpha, float(np.exp(fit.x[1])) - alpha


def snb(sizes: Array, counts: Array, population: float) -> float:
    """Return K beta^alpha, the expected population uniques of the slide negative binomial model.

    The population has K groups of 1 + Y persons, Y negative binomial (alpha, beta). K is Shlosser's estimate; alpha and
    beta reproduce the numbers of sample groups of size 1 and 2. Chen, Keller-McNulty (1998)
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    f = float(sizes @ counts) / population
    ones, twos = (float(counts[sizes == size].sum()) for size in (1, 2))
    if f >= 1 or ones == 0 or twos == 0:
        return ones if f >= 1 else np.nan
    k = _shlosser(sizes.astype(np.float64), counts, f)

    def alpha_of(beta: Array) -> tuple[Array, Array]:
        """Return alpha from the ratio of twos to ones, in which K cancels, and r.

        With r = (1 - f)(1 - beta)/(1 - (1 - f)(1 - beta)) and s = r/(1 - f), alpha is the positive root of (f s r/2)
        alpha^2 + (f s (2 + r)/2 - r twos/ones) alpha - twos/ones = 0.
        """
        r = (1 - f) * (1 - beta) / (1 - (1 - f) * (1 - beta))
        a = f * r**2 / (1 - f) / 2
        b = f * r * (2 + r) / (1 - f) / 2 - r * twos / ones
        return (np.sqrt(b**2 + 4 * a * twos / ones) - b) / (2 * a), r

    def gap(at: Array) -> Array:
        """Return the logarithm of expected over observed groups of size 1, as a function of logit(beta)."""
        beta = expit(at)
        alpha, r = alpha_of(beta)
        return np.asarray(np.log(k * f / ones) + alpha * (np.log(beta) + np.log1p(r)) + np.log1p(alpha * r))

    # bracket the root on a grid first: the function may have none, or overflow far from it
    with np.errstate(all="ignore"):
        signs = np.sign(gap(LOG_ODDS_GRID))
        change = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        if len(change) == 0:
            return np.nan
        beta = expit(brentq(gap, LOG_ODDS_GRID[change[0]], LOG_ODDS_GRID[change[0] + 1]))
        return min(float(k * beta ** alpha_of(beta)[0]), population)


def _shlosser(size: Array, counts: Array, f: float) -> float:
    """Return the modified Shlosser estimate of the number of groups in the population. Haas and Stokes (1998)"""
    ones = counts[size == 1].sum()
    first = counts @ (size * f**2 * (1 - f**2) ** (size - 1))
    second = counts @ ((1 - f) ** size * ((1 + f) ** size - 1))
    third = counts @ (1 - f) ** size / (counts @ (size * f * (1 - f) ** (size - 1)))
    return float(counts.sum() + ones * first / second * third**2)


MODELS: dict[str, Callable[[Array, Array, float], float]] = {"zayatz": zayatz, "pitman": pitman, "snb": snb}
MAX_PITMAN_FRACTION = 0.1  # sampling fraction up to which Dankar's rule uses Pitman's model


@dataclass(frozen=True)
class PopulationUniqueness(RiskMeasure):
    """Share of the population whose combination of keys is unique, estimated from the sample.

    The attacker has a register of the population and searches the release for persons with unique keys: every link to
    such a person is correct. A sample does not show which records these are, but their number can be estimated from the
    sizes of the groups of equal records. Masked values count as if they were true.

    Parameters
    ----------
    model : "zayatz", "pitman", "snb" (slide negative binomial), or "dankar": Pitman for sampling fractions up to 0.1,
        above that the smaller of Zayatz and SNB, and Zayatz if the others cannot be fitted.
    fraction : the sampling fraction, in [1e-12, 1]; by default records over the sum of the weights, or 1 without
        weights.
    on : the variables the attacker knows, of any kind; by default the keys of the file.

    Formula: expected number of population uniques over N = n/fraction. Zayatz: u_1 P(1 in the population | 1 in the
        sample)/fraction, group sizes as in the sample; Pitman: N (theta + alpha)_(N-1)/(theta + 1)_(N-1) at the maximum
        of the likelihood; SNB: K beta^alpha, K by Shlosser's estimate, alpha and beta from the groups of size 1 and 2.
    `parts`: every model that can be fitted, and "sample uniques", the share of records that are unique in the sample.
    Missing is a category. Weights determine the fraction if none is given; they must be positive. Households are not
    used. Undefined if the model cannot be fitted.
    Reference: Zayatz (1991); Hoshino (2001); Chen and Keller-McNulty (1998); Dankar, El Emam, Neisa, Roffey (2012).

    Examples
    --------
    >>> PopulationUniqueness("pitman", fraction=0.01).text
    "PopulationUniqueness(model='pitman', fraction=0.01)"
    """

    label: ClassVar[str] = "Population uniques"
    description: ClassVar[str] = (
        "Estimated share of people in the population whose combination of keys nobody else has."
    )

    unit: ClassVar[str] = "share of persons"
    weights: ClassVar[str] = "used if no fraction is given: their sum is the size of the population"

    model: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    fraction: Annotated[float | None, Range(1e-12, 1)] = None
    on: tuple[str, ...] = ()

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return find_weight_problems(self, data) if self.fraction is None else iter(())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        sizes, counts = np.unique(masked.view(distinct_cells, names).count, return_counts=True)
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        people, unique = len(masked) / share, float(counts[sizes == 1].sum() / len(masked))
        models = [name for name in MODELS if self.model in (name, "dankar")]
        shares = {name: MODELS[name](sizes, counts, people) / people if unique else 0.0 for name in models}
        fitted = {name: min(share, 1.0) for name, share in shares.items() if not math.isnan(share)}
        value = _apply_dankar_rule(fitted, share) if self.model == "dankar" else fitted.get(self.model)
        if value is None:
            raise Undefined(f"the model {self.model!r} cannot be fitted to the group sizes of this file.")
        return Estimate(value=value, parts=fitted | {"sample uniques": unique})


def _apply_dankar_rule(fitted: dict[str, float], fraction: float) -> float:
    """Choose the estimate by the decision rule of Dankar et al. (2012)."""
    if fraction <= MAX_PITMAN_FRACTION:
        return fitted.get("pitman", fitted["zayatz"])
    return min(fitted["zayatz"], fitted.get("snb", 1.0))


# Sample uniques that a model expects to be population uniques.


# Poisson log-linear models of a table, and the risk of its uniques under them.


MAX_IPF_ROUNDS = 500  # of iterative proportional fitting; most tables converge in a few
IPF_TOLERANCE = 1e-9  # difference of a margin from its target, as a share of all records


def main_effect_means(codes: Array, count: Array) -> Array:
    """Return the fitted mean of each cell that occurs under independence: n prod_j n_j / n.

    codes : MISSING (-1) for a missing value; shares are of known values, and the mean of a cell with a missing value is
        that of all cells it may be
    """
    expected = np.full(len(codes), float(count.sum()))
    for column in codes.T:
        known = column >= 0
        inside = np.bincount(column[known], count[known])
        expected[known] *= (inside / inside.sum())[column[known]]
    return expected


def two_way_means(codes: Array, count: Array, shape: tuple[int, ...]) -> Array:
    """Return the fitted means with all two-way interactions, by iterative proportional fitting.

    The model is fitted to the cells without missing values and scaled to all records. With two variables it is
    saturated, and the means are the counts. Bishop, Fienberg, Holland (1975)
    """
    complete = (codes >= 0).all(axis=1)
    scale = count.sum() / max(count[complete].sum(), 1)
    means = _fit_two_way(tuple(codes[complete].T), count[complete], shape) * scale
    fitted = np.empty(len(codes))
    # a cell with missing values has the mean of the margin over the variables that are missing
    patterns, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    for index, missing in enumerate(patterns):
        rows = pattern.ravel() == index
        margin = means.sum(axis=tuple(np.flatnonzero(missing)), keepdims=True)
        fitted[rows] = margin[tuple(np.maximum(codes[rows], 0).T)]
    return fitted


def _fit_two_way(index: tuple[Array, ...], count: Array, shape: tuple[int, ...]) -> Array:
    """Fit a table to all two-way margins of the counts by iterative proportional fitting."""
    table = np.zeros(shape)
    table[index] = count
    pairs = list(combinations(range(len(shape)), 2))
    others = [tuple(axis for axis in range(len(shape)) if axis not in pair) for pair in pairs]
    targets = [table.sum(axis=rest, keepdims=True) for rest in others]
    means = np.ones(shape)
    for _ in range(MAX_IPF_ROUNDS):
        gap = 0.0
        for rest, target in zip(others, targets, strict=True):
            margin = means.sum(axis=rest, keepdims=True)
            gap = max(gap, float(np.abs(margin - target).max()))
            means *= np.divide(target, margin, out=np.zeros_like(target), where=margin > 0)
        if gap <= IPF_TOLERANCE * count.sum():
            break
    return means


def unique_risks(mean: Array, share: Array) -> tuple[Array, Array]:
    """Return P(F = 1 | f = 1) and E(1/F | f = 1) of sample uniques, given fitted means and sampling fractions.

    F - 1 is Poisson with mean h = mean (1 - share) / share. Skinner, Holmes (1998); Elamir, Skinner (2006)
    """
    with np.errstate(over="ignore"):
        h = np.maximum(mean * (1 - share) / share, 0.0)
    return np.exp(-h), np.divide(-np.expm1(-h), h, out=np.ones_like(h), where=h > 0)


MAX_TABLE_CELLS = 1 << 22  # of the table that a two-way model is fitted to (32 MiB per array)


@dataclass(frozen=True)
class LogLinearRisk(KeyMeasure):
    """Share of records that are unique in the file and, by a log-linear model, also in the population.

    The attacker has a register of the population and looks for released records with unique keys. They cannot see which
    of these are also unique in the population, but a model of the table can estimate it. They succeed if the person
    they link is the only one (tau1), or if they pick the right one of the few who match (tau2).

    Parameters
    ----------
    model : "main effects", or "two-way" with all interactions of two variables.
    tau : "tau1" population uniques, or "tau2" correct links.
    fraction : the sampling fraction, in (0, 1]; by default 1 / weight of each record.
    missing_is : "any value": a missing value matches every value, and the model is fitted to known values; "a
        category": it matches missing values only.

    Formula: with m the fitted mean of the record's cell, p its sampling fraction and h = m (1 - p) / p, tau1 = sum over
        sample uniques of exp(-h), tau2 of (1 - exp(-h)) / h; the value is tau / n. `parts`: "tau1" and "tau2" (numbers
        of records) and "uniques".
    Missing values match according to `missing_is`. Weights: used if no fraction is given; they must be positive.
    Without either, the file is the population and every unique counts. Households are not used.
    Reference: Skinner and Holmes (1998); Elamir and Skinner (2006). sdcMicro's modRisk omits the division by p in h and
    divides by the number of cells that occur, not by n.

    Examples
    --------
    >>> LogLinearRisk(model="two-way", tau="tau2").text
    "LogLinearRisk(model='two-way', tau='tau2')"
    """

    label: ClassVar[str] = "Sample uniques at risk, log-linear model"
    description: ClassVar[str] = (
        "Share of records that are unique in the file and, by a log-linear model, expected to be unique in the "
        "population as well (or to be matched correctly)."
    )

    weights: ClassVar[str] = "used unless a fraction is given; they must be positive"

    model: Literal["main effects", "two-way"] = "main effects"
    tau: Literal["tau1", "tau2"] = "tau1"
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return find_weight_problems(self, data) if self.fraction is None else iter(())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        _, unique, tau1, tau2 = self._risks(original, masked)
        parts = {"tau1": float(tau1.sum()), "tau2": float(tau2.sum()), "uniques": float(len(unique))}
        return Estimate(value=parts[self.tau] / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """Return P(F = 1 | f = 1) or E(1/F | f = 1) of each sample unique, and 0 for the other cells."""
        cells, unique, tau1, tau2 = self._risks(original, masked)
        risk = np.zeros(len(cells.count))
        risk[unique] = tau1 if self.tau == "tau1" else tau2
        return cells, risk

    def _risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        """Return the combinations that occur, which of them have one record, and both probabilities for these."""
        self.check_variables(original)
        cells, codes = self.cells(masked)
        matching = wildcard_sums(codes, cells.count) if (codes < 0).any() else cells.count
        unique = np.flatnonzero(matching == 1)
        if self.fraction is None:
            share = 1 / np.bincount(cells.code, masked.weights)[unique]
        else:
            share = np.full(len(unique), self.fraction)
        return cells, unique, *unique_risks(self._means(codes, cells.count)[unique], share)

    def _means(self, codes: Array, count: Array) -> Array:
        # recode each variable to the categories that occur, so that the table is small
        occurring = [np.unique(column[column >= 0]) for column in codes.T]
        pairs = zip(occurring, codes.T, strict=True)
        codes = np.column_stack([np.where(c < 0, MISSING, np.searchsorted(values, c)) for values, c in pairs])
        if self.model == "main effects" or len(occurring) < 2 or not (codes >= 0).all(axis=1).any():
            return main_effect_means(codes, count)
        shape = tuple(max(len(values), 1) for values in occurring)
        if math.prod(shape) > MAX_TABLE_CELLS:
            raise Undefined(
                f"the table has more than {MAX_TABLE_CELLS:,} cells: name fewer variables, or fit main effects."
            )
        return two_way_means(codes, count, shape)
