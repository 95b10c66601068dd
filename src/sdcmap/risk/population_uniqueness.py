"""Persons of the population who are unique on their keys: estimates from frequencies, and by log-linear models."""

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
from sdcmap.risk._frequencies import KeyMeasure, positive_weights

# How many persons are alone in a population, from the sizes of the groups of equal records in a sample of it.
#
# sizes, counts : the sizes of groups that occur in the sample, rising, and how many groups have each. n records in a
# population of N persons; f = n/N. Each function gives the expected number of persons of the population who are alone, or
# NaN where its model cannot be fitted.


LARGEST = 30.0  # of logarithms and log-odds of parameters
GRID = np.linspace(-LARGEST, LARGEST, 241)  # of the log-odds of a probability, where an equation changes its sign


def zayatz(sizes: Array, counts: Array, population: float) -> float:
    """(u_1/f) P(size 1 in the population | size 1 in the sample), where population groups have the sizes that the sample's
    have, and a group of j persons leaves one in the sample with the hypergeometric probability.  Zayatz (1991)"""
    n = float(sizes @ counts)
    chance, ones = _one_of(sizes.astype(np.float64), n, population), counts[sizes == 1].sum()
    alone = ones * chance[sizes == 1].sum()
    return float(ones * (alone / (counts @ chance)) * population / n) if alone else 0.0


def _one_of(size: Array, n: float, population: float) -> Array:
    """P(1 | hypergeometric) = j C(N - j, n - 1)/C(N, n)."""
    fits = population - size >= n - 1
    left = np.where(fits, population - size, n)
    return np.where(fits, np.exp(np.log(size) + _log_choose(left, n - 1) - _log_choose(population, n)), 0.0)


def _log_choose(n: Array | float, k: float) -> Array:
    from scipy.special import betaln

    return np.asarray(-betaln(n - k + 1, k + 1) - np.log(np.asarray(n) + 1))


def pitman(sizes: Array, counts: Array, population: float) -> float:
    """N (theta + alpha)_(N-1) / (theta + 1)_(N-1), the expected number of groups of one in Pitman's partition of N.
    Hoshino (2001), whose eq. 14 is its limit G(theta + 1)/G(theta + alpha) N^alpha"""
    from scipy.special import gammaln

    groups, n = counts.sum(), sizes @ counts
    if groups in (1, n):  # all equal, or all alone: the maximum lies at the edge
        return population if groups == n else 0.0
    alpha, theta = pitman_fit(sizes, counts)
    log = np.log(population) + gammaln(theta + alpha + population - 1) - gammaln(theta + population)
    expected = float(np.exp(log + gammaln(theta + 1) - gammaln(theta + alpha)))
    return min(expected, population) if np.isfinite(expected) else np.nan


def pitman_fit(sizes: Array, counts: Array) -> tuple[float, float]:
    """alpha and theta at the maximum of the likelihood, over 0 < alpha < 1 and theta > -alpha.  Hoshino (2001), eq. 11"""
    from scipy.optimize import minimize
    from scipy.special import digamma, expit, gammaln

    n, u = float(sizes @ counts), float(counts.sum())

    def loss(at: Array) -> tuple[float, Array]:
        """Minus the log-likelihood over n, and its gradient in the log-odds of alpha and the logarithm of theta + alpha."""
        alpha, rest = expit(at[0]), np.exp(at[1])
        theta = rest - alpha
        ratio = theta / alpha
        value = (u - 1) * np.log(alpha) + gammaln(ratio + u) - gammaln(ratio + 1)
        value = value - gammaln(theta + n) + gammaln(theta + 1)
        value += counts @ (gammaln(sizes - alpha) - gammaln(1 - alpha))
        turn = digamma(ratio + u) - digamma(ratio + 1)
        by_theta = turn / alpha - digamma(theta + n) + digamma(theta + 1)
        by_alpha = (u - 1) / alpha - turn * theta / alpha**2 - counts @ (digamma(sizes - alpha) - digamma(1 - alpha))
        return float(-value / n), -np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * rest]) / n

    options, bounds = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500}, [(-LARGEST, LARGEST)] * 2
    fit = minimize(loss, [0.0, np.log(u)], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    alpha = float(expit(fit.x[0]))
    return alpha, float(np.exp(fit.x[1])) - alpha


def snb(sizes: Array, counts: Array, population: float) -> float:
    """K beta^alpha, where K groups of the population have 1 + Y persons, Y negative binomial (alpha, beta): K is Shlosser's
    estimate, and alpha and beta give the sample as many groups of one and of two as it has.  Chen, Keller-McNulty (1998)"""
    from scipy.optimize import brentq
    from scipy.special import expit

    f = float(sizes @ counts) / population
    ones, twos = (float(counts[sizes == size].sum()) for size in (1, 2))
    if f >= 1 or ones == 0 or twos == 0:
        return ones if f >= 1 else np.nan
    k = _shlosser(sizes.astype(np.float64), counts, f)

    def alpha_of(beta: Array) -> tuple[Array, Array]:
        """alpha by the ratio of twos to ones, in which K falls out, and r = (1 - f)(1 - beta)/(1 - (1 - f)(1 - beta)):
        (f s r/2) alpha^2 + (f s (2 + r)/2 - r twos/ones) alpha - twos/ones = 0, s = r/(1 - f)."""
        r = (1 - f) * (1 - beta) / (1 - (1 - f) * (1 - beta))
        a = f * r**2 / (1 - f) / 2
        b = f * r * (2 + r) / (1 - f) / 2 - r * twos / ones
        return (np.sqrt(b**2 + 4 * a * twos / ones) - b) / (2 * a), r

    def gap(at: Array) -> Array:
        """The logarithm of expected over observed groups of one; beta by its log-odds."""
        beta = expit(at)
        alpha, r = alpha_of(beta)
        return np.asarray(np.log(k * f / ones) + alpha * (np.log(beta) + np.log1p(r)) + np.log1p(alpha * r))

    with np.errstate(all="ignore"):
        signs = np.sign(gap(GRID))
        turn = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        if len(turn) == 0:
            return np.nan
        beta = expit(brentq(gap, GRID[turn[0]], GRID[turn[0] + 1]))
        return min(float(k * beta ** alpha_of(beta)[0]), population)


def _shlosser(size: Array, counts: Array, f: float) -> float:
    """The number of groups in the population.  Haas and Stokes (1998), the modified Shlosser estimator"""
    ones = counts[size == 1].sum()
    first = counts @ (size * f**2 * (1 - f**2) ** (size - 1))
    second = counts @ ((1 - f) ** size * ((1 + f) ** size - 1))
    third = counts @ (1 - f) ** size / (counts @ (size * f * (1 - f) ** (size - 1)))
    return float(counts.sum() + ones * first / second * third**2)


MODELS: dict[str, Callable[[Array, Array, float], float]] = {"zayatz": zayatz, "pitman": pitman, "snb": snb}
SMALL = 0.1  # sampling fraction up to which Dankar's rule takes Pitman's model


@dataclass(frozen=True)
class PopulationUniqueness(RiskMeasure):
    """The share of the population whose combination of keys nobody else has, estimated from the sample.

    The snooper has a register of the population and looks in the release for persons who are alone in it with their keys:
    whoever links such a person links rightly. He succeeds with every one of them who is in the file. Which records these
    are nobody can tell from a sample, but how many there are can be estimated from the sizes of the groups of equal
    records. What masking changed counts as if it were true.

    Parameters
    ----------
    model : "zayatz", "pitman", "snb" (slide negative binomial), or "dankar": Pitman for sampling fractions up to .1, above
        the smaller of Zayatz and SNB, and Zayatz where the others cannot be fitted.
    fraction : the sampling fraction, in [1e-12, 1]; by default records over the sum of the weights, and 1 without weights.
    on : the variables he knows, of any kind; by default the keys of the file.

    Formula: expected number of persons who are alone, over N = n/fraction. Zayatz: u_1 P(1 in the population | 1 in the
        sample)/fraction, sizes of groups as in the sample; Pitman: N (theta + alpha)_(N-1)/(theta + 1)_(N-1) at the
        maximum of the likelihood; SNB: K beta^alpha, K by Shlosser's estimate, alpha and beta by the groups of one and
        of two.
    `parts`: every model that can be fitted, and the share of records that are "alone" in the sample.
    Missing is a category of its own. Weights give the fraction where none is stated; they must be positive. Households are
    not used. Undefined where the model cannot be fitted.
    Reference: Zayatz (1991); Hoshino (2001); Chen and Keller-McNulty (1998); Dankar, El Emam, Neisa, Roffey (2012).

    Examples
    --------
    >>> PopulationUniqueness("pitman", fraction=0.01).text
    "PopulationUniqueness(model='pitman', fraction=0.01)"
    """

    label: ClassVar[str] = "Population uniques"
    description: ClassVar[str] = "Estimated share of records that are unique in the population."

    unit: ClassVar[str] = "share of persons"
    weights: ClassVar[str] = "used where no fraction is stated: their sum is the size of the population"

    model: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    fraction: Annotated[float | None, Range(1e-12, 1)] = None
    on: tuple[str, ...] = ()

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return positive_weights(self, data) if self.fraction is None else iter(())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        sizes, counts = np.unique(masked.view(distinct_cells, names).count, return_counts=True)
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        people, alone = len(masked) / share, float(counts[sizes == 1].sum() / len(masked))
        wanted = [name for name in MODELS if self.model in (name, "dankar")]
        shares = {name: MODELS[name](sizes, counts, people) / people if alone else 0.0 for name in wanted}
        fitted = {name: min(share, 1.0) for name, share in shares.items() if not math.isnan(share)}
        value = _apply_dankar_rule(fitted, share) if self.model == "dankar" else fitted.get(self.model)
        if value is None:
            raise Undefined(f"the model {self.model!r} cannot be fitted to the sizes of the groups of this file.")
        return Estimate(value=value, parts=fitted | {"alone": alone})


def _apply_dankar_rule(fitted: dict[str, float], fraction: float) -> float:
    """Dankar et al. (2012), the decision rule."""
    if fraction <= SMALL:
        return fitted.get("pitman", fitted["zayatz"])
    return min(fitted["zayatz"], fitted.get("snb", 1.0))


# Sample uniques that a model expects to be population uniques.


# Poisson log-linear models of a table, and what they say of its uniques.


ROUNDS = 500  # of iterative proportional fitting
CLOSE = 1e-9  # of a margin to its target, as a share of all records


def main_effect_means(codes: Array, count: Array) -> Array:
    """The fitted mean of each met cell under independence: n prod_j n_j / n.

    codes : MISSING (-1) where a value is missing; shares are of known values, and the mean of a cell with a missing value
    is that of all cells it may be.
    """
    expected = np.full(len(codes), float(count.sum()))
    for column in codes.T:
        known = column >= 0
        inside = np.bincount(column[known], count[known])
        expected[known] *= (inside / inside.sum())[column[known]]
    return expected


def two_way_means(codes: Array, count: Array, shape: tuple[int, ...]) -> Array:
    """The same of at least two variables with all two-way interactions, by iterative proportional fitting.

    The model is fitted to the cells without missing values, and scaled to all records. With two variables it is
    saturated and the means are the counts. Bishop, Fienberg, Holland (1975)
    """
    whole = (codes >= 0).all(axis=1)
    means = _fitted_means(tuple(codes[whole].T), count[whole], shape) * (count.sum() / max(count[whole].sum(), 1))
    fitted = np.empty(len(codes))
    gone, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    for place, missing in enumerate(gone):
        rows = pattern.ravel() == place
        margin = means.sum(axis=tuple(np.flatnonzero(missing)), keepdims=True)
        fitted[rows] = margin[tuple(np.maximum(codes[rows], 0).T)]
    return fitted


def _fitted_means(place: tuple[Array, ...], count: Array, shape: tuple[int, ...]) -> Array:
    table = np.zeros(shape)
    table[place] = count
    pairs = list(combinations(range(len(shape)), 2))
    others = [tuple(axis for axis in range(len(shape)) if axis not in pair) for pair in pairs]
    targets = [table.sum(axis=rest, keepdims=True) for rest in others]
    means = np.ones(shape)
    for _ in range(ROUNDS):
        gap = 0.0
        for rest, target in zip(others, targets, strict=True):
            margin = means.sum(axis=rest, keepdims=True)
            gap = max(gap, float(np.abs(margin - target).max()))
            means *= np.divide(target, margin, out=np.zeros_like(target), where=margin > 0)
        if gap <= CLOSE * count.sum():
            break
    return means


def unique_risks(mean: Array, share: Array) -> tuple[Array, Array]:
    """P(F = 1 | f = 1) and E(1/F | f = 1) of sample uniques with fitted means and sampling fractions.

    F - 1 is Poisson with mean h = mean (1 - share) / share.  Skinner, Holmes (1998); Elamir, Skinner (2006)
    """
    with np.errstate(over="ignore"):
        h = np.maximum(mean * (1 - share) / share, 0.0)
    return np.exp(-h), np.divide(-np.expm1(-h), h, out=np.ones_like(h), where=h > 0)


MOST_CELLS = 1 << 22  # of the table that a two-way model is fitted to


@dataclass(frozen=True)
class LogLinearRisk(KeyMeasure):
    """The share of records that are unique in the file and, by a log-linear model, in the population too.

    The snooper has a register of the population and looks for records of the file that are alone on their keys. He cannot
    tell which of them are alone in the population as well; a model of the table can. He succeeds when the one person he
    links is the only one (tau1), or when he picks the right one of the few who match (tau2).

    Parameters
    ----------
    model : "main effects", or "two-way" with all interactions of two variables.
    tau : "tau1" population uniques, or "tau2" right links.
    fraction : the sampling fraction, in (0, 1]; by default 1 / weight of each record.
    missing_is : "any value": a missing value matches every value, and the model is of known values; "a category": it
        matches missing alone.

    Formula: with m the mean the model fits to the record's cell, p its sampling fraction and h = m (1 - p) / p,
        tau1 = sum over sample uniques of exp(-h), tau2 of (1 - exp(-h)) / h; the value is tau / n.
    `parts`: "tau1" and "tau2" (numbers of records) and "uniques".
    Missing values as `missing_is` says. Weights: used when no fraction is given; they must be positive. Without both, the
    file is the population and every unique counts. Households are not used.
    Reference: Skinner and Holmes (1998); Elamir and Skinner (2006). sdcMicro's modRisk leaves out the division by p in h
    and divides by the number of cells that occur, not by n.

    Examples
    --------
    >>> LogLinearRisk(model="two-way", tau="tau2").text
    "LogLinearRisk(model='two-way', tau='tau2')"
    """

    label: ClassVar[str] = "Expected correct matches of uniques"
    description: ClassVar[str] = (
        "Expected number of correct matches of sample uniques with the population, from a log-linear model."
    )

    weights: ClassVar[str] = "used unless a fraction is given; they must be positive"

    model: Literal["main effects", "two-way"] = "main effects"
    tau: Literal["tau1", "tau2"] = "tau1"
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return positive_weights(self, data) if self.fraction is None else iter(())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        _, alone, tau1, tau2 = self._risks(original, masked)
        parts = {"tau1": float(tau1.sum()), "tau2": float(tau2.sum()), "uniques": float(len(alone))}
        return Estimate(value=parts[self.tau] / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """P(F = 1 | f = 1) or E(1/F | f = 1) of a sample unique, 0 of the others."""
        met, alone, tau1, tau2 = self._risks(original, masked)
        risk = np.zeros(len(met.count))
        risk[alone] = tau1 if self.tau == "tau1" else tau2
        return met, risk

    def _risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        """The combinations that occur, which of them have one record, and the two chances of these."""
        self.check_variables(original)
        met, codes = self.cells(masked)
        matching = wildcard_sums(codes, met.count) if (codes < 0).any() else met.count
        alone = np.flatnonzero(matching == 1)
        if self.fraction is None:
            share = 1 / np.bincount(met.code, masked.weights)[alone]
        else:
            share = np.full(len(alone), self.fraction)
        return met, alone, *unique_risks(self._means(codes, met.count)[alone], share)

    def _means(self, codes: Array, count: Array) -> Array:
        occurring = [np.unique(column[column >= 0]) for column in codes.T]
        pairs = zip(occurring, codes.T, strict=True)
        codes = np.column_stack([np.where(c < 0, MISSING, np.searchsorted(values, c)) for values, c in pairs])
        if self.model == "main effects" or len(occurring) < 2 or not (codes >= 0).all(axis=1).any():
            return main_effect_means(codes, count)
        shape = tuple(max(len(values), 1) for values in occurring)
        if math.prod(shape) > MOST_CELLS:
            raise Undefined(f"the table has more than {MOST_CELLS:,} cells: name fewer variables, or fit main effects.")
        return two_way_means(codes, count, shape)
