"""Changes of means, variances, covariances, correlations and eigenvalues; loss of correlations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.kernels.statistics.moments import Moments, moments
from sdcmap.kernels.statistics.robust_scatter import robust_scatter
from sdcmap.utility._numeric import NumericMeasure, check_weights, matrix_of, summarize_variables
from sdcmap.utility.table_losses import summarize

MIN_EIGENVALUE = 1e-10  # a smaller eigenvalue of a correlation matrix counts as 0


def plain_moments(data: Microdata, names: tuple[str, ...]) -> Moments:
    """Return the unweighted moments of these variables, as a view."""
    return moments(matrix_of(data, names))


def weighted_moments(data: Microdata, names: tuple[str, ...]) -> Moments:
    """Return the weighted moments; the last name is the weight."""
    return moments(matrix_of(data, names[:-1]), check_weights(data))


def complete_correlation(x: Array, weights: Array) -> Array:
    """Return the correlation matrix of the complete records; NaN if there are too few."""
    complete = ~np.isnan(x).any(axis=1)
    return moments(x[complete], weights[complete]).correlation


def eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the eigenvalues of the correlation matrix of the complete records, largest first, as a view."""
    return _eigenvalues(matrix_of(data, names), np.ones(len(data)))


def weighted_eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the eigenvalues of the weighted correlation matrix; the last name is the weight."""
    return _eigenvalues(matrix_of(data, names[:-1]), check_weights(data))


def _eigenvalues(x: Array, weights: Array) -> Array:
    correlation = complete_correlation(x, weights)
    if np.isnan(correlation).any():
        raise Undefined("fewer than 2 records have all measured values, so there is no correlation matrix.")
    return np.asarray(np.linalg.eigvalsh(correlation)[::-1])


def robust_eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the eigenvalues of the robust covariance of the standardized complete records, largest first, as a view."""
    x = matrix_of(data, names)
    x = x[~np.isnan(x).any(axis=1)]
    spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(len(names))
    scatter = robust_scatter((x - x.mean(axis=0)) / spread) if (spread > 0).all() else None
    if scatter is None:
        raise Undefined("half of the records lie in a plane, or there are too few: there is no robust covariance.")
    return np.asarray(np.linalg.eigvalsh(scatter.covariance)[::-1])


@dataclass(frozen=True)
class MomentChange(NumericMeasure):
    """How far masking changed the means, variances, covariances, correlations or eigenvalues of numeric variables.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones. At least 2,
        except for means and variances.
    of : "mean", in standard deviations of the original; "variance", as a share of the original's; "covariance", divided
        by the product of the two standard deviations; "correlation"; "eigenvalues" of the correlation matrix, each as a
        share of the original's; "robust eigenvalues" of the covariance matrix of standardized variables, which outliers
        do not affect (minimum covariance determinant; no weights).
    summary : the value is the "mean" or the "worst" over variables, pairs of variables, or eigenvalues; both in
        `parts`.

    Formula: |m' - m|/s; |v'/v - 1|; |c' - c|/(s_j s_k); |r' - r|; |e' - e|/e; the prime marks the released file.
    Missing values are left out, in each file separately: covariances use records with both variables, eigenvalues use
    complete records. Weights: used when `weighted`, with the sample size (sum w)^2/sum w^2. Households are not used. A
    variable that masking made constant has correlation 0; one that was constant before has no scale, and counts 0 if
    masking did not change it. Works for sampled and synthetic files; undefined if numbers were recoded into categories.
    sdcMicro's `eigen` and `robeigen` are the sums, not the means.
    Releasing nothing has no value.
    Reference: Hundepool et al. (2012), section 3.5.1; Mateo-Sanz, Domingo-Ferrer, Sebe (2005).

    Examples
    --------
    >>> MomentChange(on=["income", "tax"], of="correlation").text
    "MomentChange(on=['income', 'tax'], of='correlation')"
    """

    label: ClassVar[str] = "Change of moments"
    description: ClassVar[str] = "How far masking changed means, variances, covariances, correlations or eigenvalues."

    revision: ClassVar[int] = 2  # 2: ties are broken alike on every machine
    unit: ClassVar[str] = "share of the original's scale"

    of: Literal["mean", "variance", "covariance", "correlation", "eigenvalues", "robust eigenvalues"] = "mean"
    summary: Literal["mean", "worst"] = "mean"

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.of not in ("mean", "variance") and len(set(self.variables(data))) < 2:
            yield f"MomentChange of {self.of} needs at least 2 variables."
        if self.of == "robust eigenvalues" and self.weighted:
            yield "MomentChange of robust eigenvalues does not use weights: set weighted = false."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if self.of in ("eigenvalues", "robust eigenvalues"):
            return self._change_of_eigenvalues(original, masked, names)
        view = weighted_moments if self.weighted else plain_moments
        before, after = (data.view(view, self.with_weight(data, *names)) for data in (original, masked))
        sd = np.sqrt(np.diag(before.covariance))
        if np.isnan(np.diag(after.covariance)).any() or np.isnan(sd).any():
            raise Undefined("a measured variable has fewer than 2 values in one of the files.")
        change = after.covariance - before.covariance
        if self.of in ("mean", "variance"):
            single = (after.mean - before.mean, sd) if self.of == "mean" else (np.diag(change), sd**2)
            return summarize_variables(dict(zip(names, _scale_changes(*single), strict=True)), self.summary)
        pairs = np.triu_indices(len(names), 1)
        scale = np.outer(sd, sd)[pairs]
        if self.of == "covariance":
            changes = _scale_changes(change[pairs], scale)
        else:
            changes = np.abs(after.correlation - before.correlation)[pairs][scale > 0].tolist()
        if not changes or np.isnan(changes).any():
            raise Undefined("no pair of measured variables has a correlation in both files.")
        return summarize(changes, self.summary)

    def _change_of_eigenvalues(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Estimate:
        """Return the summary of the relative changes of the eigenvalues."""
        plain = robust_eigenvalues if self.of == "robust eigenvalues" else eigenvalues
        view = weighted_eigenvalues if self.weighted else plain
        before, after = (data.view(view, self.with_weight(data, *names)) for data in (original, masked))
        if before[-1] < MIN_EIGENVALUE:
            zero = "an eigenvalue of the correlation matrix is 0, so its change has no scale"
            raise Undefined(f"{zero}: a measured variable is a combination of others; leave it out.")
        return summarize((np.abs(after - before) / before).tolist(), self.summary)


def _scale_changes(change: Array, scale: Array) -> list[float]:
    """Return |change|/scale; without a scale, 0 if nothing changed."""
    if ((scale == 0) & (change != 0)).any():
        raise Undefined("a variable that is constant in the original was changed, so its change has no scale.")
    shares: list[float] = (np.abs(change) / np.where(scale > 0, scale, 1.0)).tolist()
    return shares


# How well each variable is explained by the others.


@dataclass(frozen=True)
class CorrelationLoss(NumericMeasure):
    """Change in how well the variables explain each other: sdcMicro's IL_correl.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers, at least 2; by default all numeric ones.

    Formula: |u - v| / sqrt(2); u and v are the diagonals of the inverse correlation matrices of both files, 1/(1 -
        R_j^2) of each variable on all others, each divided by its length. 0: every variable is explained by the others
        as well as before, relative to the rest; 1: the variable that was explained best is now the only one that is
        not. Equal noise on all variables makes the v_j similar; so does independence. Undefined if a variable is a
        linear combination of others in one of the files.
    Missing: complete records, in each file separately. Weights: used when `weighted`. Households are not used. Works
    for sampled and synthetic files; undefined if numbers were recoded into categories.
    Releasing nothing has no value.
    Reference: Mlodak (2020), with the factor of sdcMicro.

    Examples
    --------
    >>> CorrelationLoss(on=["income", "tax"]).text
    "CorrelationLoss(on=['income', 'tax'])"
    """

    label: ClassVar[str] = "Loss of correlations"
    description: ClassVar[str] = "How far masking changed how well the variables explain each other."

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    missing: ClassVar[str] = "complete records, in each file separately"
    min_variables: ClassVar[int] = 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        first = original.remember(("explained", self), lambda: self._inverse_diagonal(original, names))
        distance = float(np.sqrt(((first - self._inverse_diagonal(masked, names)) ** 2).sum() / 2))
        return Estimate(value=min(distance, 1.0))

    def _inverse_diagonal(self, data: Microdata, names: tuple[str, ...]) -> Array:
        """Return 1/(1 - R^2) of each variable on the others, scaled to length 1."""
        correlation = complete_correlation(matrix_of(data, names), self.weights_of(data))
        if np.isnan(correlation).any() or np.linalg.eigvalsh(correlation)[0] < MIN_EIGENVALUE:
            raise Undefined("a measured variable is a combination of others in one of the files: leave it out.")
        diagonal = np.diagonal(np.linalg.inv(correlation))
        return np.asarray(diagonal / np.sqrt((diagonal**2).sum()))
