"""Information loss of numeric variables: IL1 to IL5, IL1s, the relative loss, and their summaries S0 to S2.

The classes differ in one formula each: a loss of single values, of moments, or the losses that they average.
docs/information-loss.md shows how they react to zeros and skewness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Microdata, Positive, Undefined
from sdcmap.kernels.statistics.information_losses import il1_losses, il1s_losses, relative_losses
from sdcmap.utility._loss_bases import MomentLoss, ValueLoss


@dataclass(frozen=True)
class IL1(ValueLoss):
    """Mean change of a value, relative to the mean of its sizes before and after.

    It reaches 2 wherever masking changes a zero or a sign, so files with many zeros are dominated by them.

    Formula: IL1 = mean over records i and variables j of |x_ij - z_ij| / (0.5 (|x_ij| + |z_ij|)); 0/0 = 0.

    Examples
    --------
    >>> IL1(on=["income", "tax"]).text
    "IL1(on=['income', 'tax'])"
    """

    label: ClassVar[str] = "Mean change of values (IL1)"
    description: ClassVar[str] = "Average change of a value, relative to its size."

    unit: ClassVar[str] = "relative change, 0 to 2"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)

    def value_loss(self, x: Array, z: Array) -> Array:
        return il1_losses(x, z)


@dataclass(frozen=True)
class IL1s(ValueLoss):
    """Mean change of a value, in units of sqrt(2) standard deviations of its variable.

    Formula: IL1s = mean over records i and variables j of |x_ij - z_ij| / (sqrt(2) S_j), S_j of the original.
    Weights: used when `weighted`, in the mean over records. S_j and the mean that replaces a missing value remain
    unweighted, because they only set the scale. Households are not used. Undefined if masking changed a constant
    variable. sdcMicro's IL1s is the sum, not the mean.

    Examples
    --------
    >>> IL1s(on=["income", "tax"]).text
    "IL1s(on=['income', 'tax'])"
    """

    label: ClassVar[str] = "Mean change of values (IL1s)"
    description: ClassVar[str] = "Average change of a value, in standard deviations of its variable."

    unit: ClassVar[str] = "standard deviations / sqrt(2)"

    def value_loss(self, x: Array, z: Array) -> Array:
        return il1s_losses(x, z)

    def losses(self, original: Microdata, masked: Microdata) -> Mapping[str, list[float]]:
        losses = super().losses(original, masked)
        if np.isinf(losses["loss"]).any():
            raise Undefined("a variable that is constant in the original was changed, so its loss has no scale.")
        return losses


@dataclass(frozen=True)
class RelativeLoss(ValueLoss):
    """Mean change of a value, relative to the value itself: the loss that IL1 and IL1s replace.

    Values near 0 dominate it: on most files it is orders of magnitude above the other losses.

    Parameters
    ----------
    constant : replaces |x| where x = 0, in the variable's unit, above 0; the loss then depends on it. By default a zero
        that masking changed makes the loss infinite.

    Formula: loss = mean over records i and variables j of |x_ij - z_ij| / |x_ij|; 0/0 = 0.

    Examples
    --------
    >>> RelativeLoss(on="income").text
    "RelativeLoss(on='income')"
    """

    label: ClassVar[str] = "Mean relative change of values"
    description: ClassVar[str] = "Average change of a value, relative to the original value."

    constant: Positive | None = None

    def value_loss(self, x: Array, z: Array) -> Array:
        return relative_losses(x, z, self.constant)


@dataclass(frozen=True)
class IL2(MomentLoss):
    """Mean relative change of the means.

    Undefined if masking changed a mean of 0; a mean near 0 makes it large.

    Formula: IL2 = mean over variables j of |mean x_j - mean z_j| / |mean x_j|; 0/0 = 0.

    Examples
    --------
    >>> IL2(by="sex").text
    "IL2(by='sex')"
    """

    label: ClassVar[str] = "Change of means (IL2)"
    description: ClassVar[str] = "Average relative change of the means."

    averages: ClassVar[tuple[str, ...]] = ("IL2",)


@dataclass(frozen=True)
class IL3(MomentLoss):
    """Mean relative change of the variances and covariances.

    Undefined if masking changed a covariance of 0. Almost uncorrelated variables make it large and unstable: on the
    paper's file, two correlations of 0.004 cause differences of 30 to 50 % between seeds.

    Formula: IL3 = mean over pairs j >= k of |Cov(X)_jk - Cov(Z)_jk| / |Cov(X)_jk|; 0/0 = 0.

    Examples
    --------
    >>> IL3(by="sex").text
    "IL3(by='sex')"
    """

    label: ClassVar[str] = "Change of covariances (IL3)"
    description: ClassVar[str] = "Average relative change of variances and covariances."

    averages: ClassVar[tuple[str, ...]] = ("IL3",)


@dataclass(frozen=True)
class IL4(MomentLoss):
    """Mean relative change of the variances.

    Undefined if masking changed a constant variable.

    Formula: IL4 = mean over variables j of |Var x_j - Var z_j| / Var x_j; 0/0 = 0.

    Examples
    --------
    >>> IL4(by="sex").text
    "IL4(by='sex')"
    """

    label: ClassVar[str] = "Change of variances (IL4)"
    description: ClassVar[str] = "Average relative change of the variances."

    averages: ClassVar[tuple[str, ...]] = ("IL4",)


@dataclass(frozen=True)
class IL5(MomentLoss):
    """Mean change of the correlations.

    A correlation with a constant variable counts as 0.

    Formula: IL5 = mean over pairs j > k of |Cor(X)_jk - Cor(Z)_jk|.

    Examples
    --------
    >>> IL5(by="sex").text
    "IL5(by='sex')"
    """

    label: ClassVar[str] = "Change of correlations (IL5)"
    description: ClassVar[str] = "Average change of the correlations."

    averages: ClassVar[tuple[str, ...]] = ("IL5",)
    unit: ClassVar[str] = "correlation"
    min_variables: ClassVar[int] = 2


@dataclass(frozen=True)
class _Summary(MomentLoss):
    """The mean of several information losses, each of which is in `parts`."""

    unit: ClassVar[str] = "mean of losses"
    min_variables: ClassVar[int] = 2


@dataclass(frozen=True)
class S0(_Summary):
    """Mean of IL2, IL3, IL4 and IL5: the utility of the A-score 50 (s0 + re-identified share).

    Undefined if one of its parts is. Two almost uncorrelated variables dominate it through IL3.

    Formula: s0 = (IL2 + IL3 + IL4 + IL5)/4; each is in `parts`, unrounded.

    Examples
    --------
    >>> S0().text
    'S0'
    """

    label: ClassVar[str] = "Combined loss s0"
    description: ClassVar[str] = "Average of the changes in means, covariances, variances and correlations."

    averages: ClassVar[tuple[str, ...]] = ("IL2", "IL3", "IL4", "IL5")


@dataclass(frozen=True)
class S1(_Summary):
    """Mean of IL1, IL2, IL3, IL4 and IL5: the utility of the D-score 50 (s1 + re-identified share).

    Undefined if one of its parts is. IL1 is about single values and is never corrected for noise.

    Formula: s1 = (IL1 + IL2 + IL3 + IL4 + IL5)/5; each is in `parts`, unrounded.

    Examples
    --------
    >>> S1().text
    'S1'
    """

    label: ClassVar[str] = "Combined loss s1"
    description: ClassVar[str] = "Average of the changes in values, means, covariances, variances and correlations."

    averages: ClassVar[tuple[str, ...]] = ("IL1", "IL2", "IL3", "IL4", "IL5")


@dataclass(frozen=True)
class S2(_Summary):
    """Mean of IL1s, IL2, IL4 and IL5: the utility of the S-score 50 (s2 + re-identified share).

    Undefined if one of its parts is. IL1s is about single values and is never corrected for noise.

    Formula: s2 = (IL1s + IL2 + IL4 + IL5)/4; each is in `parts`, unrounded.

    Examples
    --------
    >>> S2().text
    'S2'
    """

    label: ClassVar[str] = "Combined loss s2"
    description: ClassVar[str] = "Average of the changes in standardized values, means, variances and correlations."

    averages: ClassVar[tuple[str, ...]] = ("IL1s", "IL2", "IL4", "IL5")
