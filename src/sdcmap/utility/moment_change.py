"""Change of means, variances, covariances, correlations and eigenvalues; loss of correlations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.kernels.statistics.moments import Moments, moments
from sdcmap.kernels.statistics.robust_scatter import robust_scatter
from sdcmap.utility._numeric import NumericMeasure, matrix_of, over_variables, sound_weights
from sdcmap.utility.table_losses import summary_of

SINGULAR = 1e-10  # an eigenvalue of a correlation matrix below this is 0


def plain_moments(data: Microdata, names: tuple[str, ...]) -> Moments:
    """Unweighted moments of these variables, as a view."""
    return moments(matrix_of(data, names))


def weighted_moments(data: Microdata, names: tuple[str, ...]) -> Moments:
    """Weighted ones; the weight is named last."""
    return moments(matrix_of(data, names[:-1]), sound_weights(data))


def complete_correlation(x: Array, weights: Array) -> Array:
    """The correlation matrix of the records that know every variable; NaN where there are too few."""
    complete = ~np.isnan(x).any(axis=1)
    return moments(x[complete], weights[complete]).correlation


def eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Eigenvalues of the correlation matrix of the complete records, the largest first, as a view."""
    return _eigenvalues(matrix_of(data, names), np.ones(len(data)))


def weighted_eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Of the weighted correlation matrix; the weight is named last."""
    return _eigenvalues(matrix_of(data, names[:-1]), sound_weights(data))


def _eigenvalues(x: Array, weights: Array) -> Array:
    correlation = complete_correlation(x, weights)
    if np.isnan(correlation).any():
        raise Undefined("fewer than 2 records have all measured values, so there is no correlation matrix.")
    return np.asarray(np.linalg.eigvalsh(correlation)[::-1])


def robust_eigenvalues(data: Microdata, names: tuple[str, ...]) -> Array:
    """Of the robust covariance matrix of the complete records in standard deviations, the largest first, as a view."""
    x = matrix_of(data, names)
    x = x[~np.isnan(x).any(axis=1)]
    spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(len(names))
    scatter = robust_scatter((x - x.mean(axis=0)) / spread) if (spread > 0).all() else None
    if scatter is None:
        flat = "half of the records lie in a plane, or there are too few"
        raise Undefined(f"{flat}, so that there is no robust covariance.")
    return np.asarray(np.linalg.eigvalsh(scatter.covariance)[::-1])


@dataclass(frozen=True)
class MomentChange(NumericMeasure):
    """How far masking moved the means, variances, covariances, correlations or eigenvalues of numeric variables.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones. At least 2 but for
        means and variances.
    of : "mean", in standard deviations of the original; "variance", as a share of the original's; "covariance", over the
        product of the two standard deviations; "correlation"; "eigenvalues" of the correlation matrix, each as a share
        of the original's; "robust eigenvalues" of the covariance matrix, in standard deviations of each file, that
        outliers do not move (minimum covariance determinant; no weights).
    summary : the value is the "mean" or the "worst" over variables, pairs of variables, or eigenvalues; both in `parts`.

    Formula: |m' - m|/s; |v'/v - 1|; |c' - c|/(s_j s_k); |r' - r|; |e' - e|/e; the prime marks the released file.
    Missing values are left out, in each file on its own: a covariance is that of the records that know both variables,
    eigenvalues are those of complete records. Weights: used when `weighted`, with the sample size (sum w)^2/sum w^2.
    Households are not used. A variable that masking made constant has correlation 0; one that was constant has no scale,
    and adds 0 where masking left it alone. Works for sampled and synthetic files; undefined where numbers were recoded
    into categories. Releasing nothing has no value. sdcMicro's `eigen` and
    `robeigen` are the sums, not the means.
    Reference: Hundepool et al. (2012), section 3.5.1; Mateo-Sanz, Domingo-Ferrer, Sebe (2005).

    Examples
    --------
    >>> MomentChange(on=["income", "tax"], of="correlation").text
    "MomentChange(on=['income', 'tax'], of='correlation')"
    """

    label: ClassVar[str] = "Change of moments"
    description: ClassVar[str] = "How far masking changed means, variances, covariances, correlations or eigenvalues."

    revision: ClassVar[int] = 2  # 2: equal distances alike on every machine
    unit: ClassVar[str] = "share of the original's scale"

    of: Literal["mean", "variance", "covariance", "correlation", "eigenvalues", "robust eigenvalues"] = "mean"
    summary: Literal["mean", "worst"] = "mean"

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.of not in ("mean", "variance") and len(set(self.variables(data))) < 2:
            yield f"MomentChange of {self.of} needs at least 2 variables."
        if self.of == "robust eigenvalues" and self.weighted:
            yield "MomentChange of robust eigenvalues knows no weights."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if self.of in ("eigenvalues", "robust eigenvalues"):
            return self._change_of_eigenvalues(original, masked, names)
        view = weighted_moments if self.weighted else plain_moments
        before, after = (data.view(view, self.with_weight(data, *names)) for data in (original, masked))
        sd = np.sqrt(np.diag(before.covariance))
        if np.isnan(np.diag(after.covariance)).any() or np.isnan(sd).any():
            raise Undefined("a measured variable has fewer than 2 values in one of the files.")
        moved = after.covariance - before.covariance
        if self.of in ("mean", "variance"):
            single = (after.mean - before.mean, sd) if self.of == "mean" else (np.diag(moved), sd**2)
            return over_variables(dict(zip(names, _scaled(*single), strict=True)), self.summary)
        pairs = np.triu_indices(len(names), 1)
        scale = np.outer(sd, sd)[pairs]
        if self.of == "covariance":
            changes = _scaled(moved[pairs], scale)
        else:
            changes = np.abs(after.correlation - before.correlation)[pairs][scale > 0].tolist()
        if not changes or np.isnan(changes).any():
            raise Undefined("no pair of measured variables has a correlation in both files.")
        return summary_of(changes, self.summary)

    def _change_of_eigenvalues(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Estimate:
        plain = robust_eigenvalues if self.of == "robust eigenvalues" else eigenvalues
        view = weighted_eigenvalues if self.weighted else plain
        before, after = (data.view(view, self.with_weight(data, *names)) for data in (original, masked))
        if before[-1] < SINGULAR:
            zero = "the correlation matrix has an eigenvalue of 0, so that its change has no scale"
            raise Undefined(f"{zero}: a measured variable is a sum of others; leave it out.")
        return summary_of((np.abs(after - before) / before).tolist(), self.summary)


def _scaled(change: Array, scale: Array) -> list[float]:
    """|change|/scale; without a scale, 0 where nothing changed."""
    if ((scale == 0) & (change != 0)).any():
        raise Undefined("a variable that is constant in the original was changed, so its change has no scale.")
    shares: list[float] = (np.abs(change) / np.where(scale > 0, scale, 1.0)).tolist()
    return shares


# How far masking moved the place of each variable among the others.


@dataclass(frozen=True)
class CorrelationLoss(NumericMeasure):
    """The loss of how well the variables explain each other: sdcMicro's IL_correl.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers, at least 2; by default all numeric ones.

    Formula: |u - v| / sqrt(2); u and v are the diagonals of the inverse correlation matrices of both files, 1/(1 - R_j^2)
        of each variable on all others, each divided by its length. 0: every variable is as much explained by the others
        as before, against the rest; 1: what was explained best is now the only one that is not.
    Noise on all variables alike brings the v_j together; so does independence. Undefined where a variable is a sum of
    others in one of the files.
    Missing: complete records, of each file on its own. Weights: used when `weighted`. Households are not used. Works for
    sampled and synthetic files; undefined where numbers were recoded into categories. Releasing nothing has no value.
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
    missing: ClassVar[str] = "complete records, of each file on its own"
    fewest: ClassVar[int] = 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        first = original.remember(("explained", self), lambda: self._explained(original, names))
        lost = float(np.sqrt(((first - self._explained(masked, names)) ** 2).sum() / 2))
        return Estimate(value=min(lost, 1.0))

    def _explained(self, data: Microdata, names: tuple[str, ...]) -> Array:
        """1/(1 - R^2) of each variable on the others, the diagonal of the inverse correlations, scaled to length 1."""
        correlation = complete_correlation(matrix_of(data, names), self.weights_of(data))
        if np.isnan(correlation).any() or np.linalg.eigvalsh(correlation)[0] < SINGULAR:
            raise Undefined("a measured variable is a sum of others in one of the files: leave it out.")
        diagonal = np.diagonal(np.linalg.inv(correlation))
        return np.asarray(diagonal / np.sqrt((diagonal**2).sum()))
