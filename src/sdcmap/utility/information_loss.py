"""Information loss of numeric variables: IL1 to IL5, IL1s, the relative loss, and their summaries S0 to S2.

The members differ in one formula each: a loss of single values, of moments, or the names of those they average.
Yancey, Winkler, Creecy (2002), section 3.5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.added_noise import noise_covariance, noise_strata, unmasked_scale
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Positive, Range
from sdcmap.data.cells import cells, common_codes
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined, did_you_mean
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.losses import (
    il1_losses,
    il1s_losses,
    il2_losses,
    il3_losses,
    il4_losses,
    il5_losses,
    relative_losses,
)
from sdcmap.kernels.statistics.moments import Moments, correlation_of, moments
from sdcmap.kernels.tables.coding import compress

ValueLoss = Callable[[Array, Array], Array]
MomentLoss = Callable[[Moments, Moments], Array]
Groups = tuple[Array, ...]  # the rows of each (sub)population

VALUE_LOSSES: Mapping[str, ValueLoss] = {"IL1": il1_losses, "IL1s": il1s_losses}
MOMENT_LOSSES: Mapping[str, tuple[MomentLoss, str]] = {
    "IL2": (il2_losses, "mean"),
    "IL3": (il3_losses, "covariance"),
    "IL4": (il4_losses, "variance"),
    "IL5": (il5_losses, "correlation"),
}


@dataclass(frozen=True)
class _InformationLoss(Measure):
    """A loss of numeric information, of the whole file or as the mean over subpopulations, each measured as a file of its
    own; with `by`, the worst subpopulation and their number are in the parts.

    Fields: `on`, the variables (by default all numeric ones); `weighted`, for survey weights; `by` and `least`, which
    subpopulations: those of the variables `by` with at least `least` records in the original.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    weighted : use the survey weights; needs a weight.
    by : variables that divide the records into subpopulations; the loss is then the mean over the subpopulations,
        each measured as a file of its own, and the worst one is in the parts.
    least : records a subpopulation needs in the original to be measured, at least 2.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "relative change"
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "means over the values present, covariances and correlations over complete pairs"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"
    fewest: ClassVar[int] = 1  # variables it needs

    on: tuple[str, ...] = ()
    weighted: bool = False
    by: tuple[str, ...] = ()
    least: Annotated[int, Range(2)] = 30

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.weighted and data.weight is None:
            yield f"{type(self).__name__}.weighted needs a file with a weight."
        if 0 < len(set(self.variables(data))) < self.fewest:
            yield f"{type(self).__name__} needs at least {self.fewest} variables."
        for name in self.by:
            if name not in data.schema:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        """The named parts of the loss, for each (sub)population."""
        raise TypeError(f"{type(self).__name__} has no losses.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        losses = self.losses(original, masked)
        values = [float(np.mean(list(parts.values()))) for parts in losses]
        parts = (
            {name: float(np.mean([part[name] for part in losses])) for name in losses[0]} if len(losses[0]) > 1 else {}
        )
        if self.by:
            parts |= {"worst": max(values), "subpopulations": float(len(values))}
        return Estimate(float(np.mean(values)), None, parts)

    # ---- the two files --------------------------------------------------------------------------------------------
    def groups(self, original: Microdata, masked: Microdata) -> tuple[Groups, Groups]:
        """The rows of each (sub)population, in the original and as the masked file has them."""
        if not self.by:
            return (np.arange(len(original)),), (np.arange(len(masked)),)
        if masked.origin is None and masked.base is original and masked.changes.keys().isdisjoint(self.by):
            groups = original.remember(("groups", self.by), lambda: _groups(original.view(cells, self.by).code))
            large = tuple(rows for rows in groups if len(rows) >= self.least)
            return _some(large, self.least), large
        code, _ = compress([common_codes(original, masked, name) for name in self.by])
        size = int(code.max()) + 1
        before, after = (_groups(part, size) for part in np.split(code, [len(original)]))
        kept = [k for k, rows in enumerate(before) if len(rows) >= self.least]
        return _some(tuple(before[k] for k in kept), self.least), tuple(after[k] for k in kept)

    def value_losses(self, original: Microdata, masked: Microdata, loss: ValueLoss) -> tuple[Array, Array]:
        """The loss of each value of the masked file against its record's own (NaN where the original is missing), and the
        number of each record's subpopulation in the original (-1: none that is measured)."""
        names = self.checked(original)
        if masked.origin is None and len(masked) != len(original):
            raise Undefined("the masked records are not those of the original, so no value has a loss of its own.")
        rows = slice(None) if masked.origin is None else masked.origin
        number = np.full(len(original), -1)
        for k, members in enumerate(self.groups(original, masked)[0]):
            number[members] = k
        number = number[rows]
        losses = np.full((len(names), len(masked)), np.nan).T  # written and added up column by column
        parts = [np.flatnonzero(number == k) for k in range(number.max() + 1)] if self.by else [slice(None)]
        for column, name in enumerate(names):
            x, z = original.numbers(name)[rows], masked.numbers(name)
            for part in parts:
                losses[part, column] = loss(x[part], z[part])
        return losses, number

    def mean_losses(self, original: Microdata, masked: Microdata, loss: ValueLoss) -> list[float]:
        """The mean loss of a value in each (sub)population; infinite where one is."""
        losses, number = self.value_losses(original, masked, loss)
        weights = masked.weights if self.weighted else np.ones(len(masked))
        known = ~np.isnan(losses)
        weight = known.sum(axis=1) * weights
        total = (losses if known.all() else np.where(known, losses, 0.0)).sum(axis=1) * weights
        here = number >= 0
        sums = np.bincount(number[here], weight[here])
        if not sums.all():
            raise Undefined("no measured value of a (sub)population is known in the original.")
        return list((np.bincount(number[here], total[here]) / sums).tolist())

    def record_losses(self, original: Microdata, masked: Microdata, loss: ValueLoss) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        losses, _ = self.value_losses(original, masked, loss)
        known = ~np.isnan(losses)
        count = known.sum(axis=1)
        return np.where(count > 0, np.where(known, losses, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class _ValueLoss(_InformationLoss):
    """An information loss of single values, which each record has too."""

    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def of_values(self, x: Array, z: Array) -> Array:
        """The loss of each value of one variable."""
        raise TypeError(f"{type(self).__name__} has no loss of a value.")

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        return [{"loss": mean} for mean in self.mean_losses(original, masked, self.of_values)]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        return self.record_losses(original, masked, self.of_values)


@dataclass(frozen=True)
class _MomentLoss(_InformationLoss):
    """An information loss read off means, covariances and correlations before and after masking.

    Fields besides those of every information loss: `corrected`, for a data user who takes the noise off first; `made_by`,
    the method, where a sweep or release does not tell it.

    Parameters
    ----------
    corrected : take the noise off first, as a data user can who has read the method note (Kim 1990): subpopulation
        means are undone of any rescaling, and d Cov X, told by the whole released file, is taken off subpopulation
        covariances. For additive noise alone; other methods have no corrected value.
    made_by : the method, where neither a sweep nor a release tells it.
    """

    averages: ClassVar[tuple[str, ...]] = ()  # the losses whose mean it is, by their names in the two tables above

    corrected: bool = False
    made_by: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.made_by is not None and not self.corrected:
            yield ".made_by is for corrected=True."

    def knowing(self, method: Method) -> Measure:
        return replace(self, made_by=method) if self.corrected and self.made_by is None else self

    def compared(self, original: Microdata, masked: Microdata) -> Iterator[tuple[Moments, Moments]]:
        """The moments of each (sub)population before and after masking."""
        names, groups = self.checked(original), self.groups(original, masked)
        key = ("moments", names, self.weighted, self.by, self.least)
        before = original.remember(key, lambda: self._moments(original, names, groups[0]))
        after = masked.remember((*key, self.made_by), lambda: self._released(masked, names, groups[1]))
        return zip(before, after, strict=True)

    def _moments(self, data: Microdata, names: tuple[str, ...], groups: Groups) -> tuple[Moments, ...]:
        return _moments(data.matrix(names), self._weights(data), groups)

    def _released(self, masked: Microdata, names: tuple[str, ...], groups: Groups) -> tuple[Moments, ...]:
        if not self.corrected:
            return self._moments(masked, names, groups)
        if self.made_by is None:
            raise Undefined("correcting needs the method: a sweep tells it, else give `made_by`.")
        noise = self.made_by.added_noise()
        seen = _moments(unmasked_scale(masked, names, noise), self._weights(masked), groups)
        strata, weights = noise_strata(masked, names, noise), self._weights(masked)
        w = np.ones(len(masked)) if weights is None else weights
        taken = [m.covariance - noise_covariance(strata, rows, w) for m, rows in zip(seen, groups, strict=True)]
        return tuple(
            Moments(m.mean, covariance, correlation_of(covariance), m.size)
            for m, covariance in zip(seen, taken, strict=True)
        )

    def _weights(self, data: Microdata) -> Array | None:
        return data.weights if self.weighted else None

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        names = [name for name in self.averages if name in VALUE_LOSSES]
        of_values = {name: self.mean_losses(original, masked, VALUE_LOSSES[name]) for name in names}
        return [
            {name: of_values[name][k] if name in of_values else _moment_loss(name, *pair) for name in self.averages}
            for k, pair in enumerate(self.compared(original, masked))
        ]


@dataclass(frozen=True)
class _Summary(_MomentLoss):
    """The mean of several information losses, each of which is in the parts."""

    unit: ClassVar[str] = "mean of losses"
    fewest: ClassVar[int] = 2


def _moment_loss(name: str, before: Moments, after: Moments) -> float:
    """The mean of one of MOMENT_LOSSES over the moments known in the original."""
    loss, moment = MOMENT_LOSSES[name]
    return _mean_of(loss(before, after), moment)


def _mean_of(losses: Array, what: str) -> float:
    """The mean loss of the moments known in the original, or Undefined with the reason."""
    if np.isinf(losses).any():
        raise Undefined(f"a {what} is 0 in the original and masking changed it, or the masked file no longer tells it.")
    if np.isnan(losses).all():
        raise Undefined(f"no {what} is known in the original.")
    return float(np.nanmean(losses))


def _groups(code: Array, size: int | None = None) -> Groups:
    """The rows of each code 0, 1, ...; codes that no record has are empty."""
    count = np.bincount(code, minlength=size or 0)
    return tuple(np.split(np.argsort(code, kind="stable"), np.cumsum(count)[:-1]))


def _some(groups: Groups, least: int) -> Groups:
    if not groups:
        raise Undefined(f"no subpopulation has {least} records.")
    return groups


def _moments(x: Array, weights: Array | None, groups: Groups) -> tuple[Moments, ...]:
    if any(len(rows) < 2 for rows in groups):
        raise Undefined("a (sub)population has fewer than 2 records, so it has no variance.")
    if len(groups) == 1 and len(groups[0]) == len(x):
        return (moments(x, weights),)
    return tuple(moments(x[rows], None if weights is None else weights[rows]) for rows in groups)


# ---- the members -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class IL1(_ValueLoss):
    """The mean change of a value, relative to the mean size of the value before and after.

    Formula: IL1 = mean over records i and variables j of |x_ij - z_ij| / (0.5 (|x_ij| + |z_ij|)); 0/0 = 0.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean, of the records, in its place. Weights: used when `weighted`, in the mean over records, else every
    record counts once. Households are not used.
    It reaches 2 wherever a zero is changed or a sign, so a file with many zeros is dominated by them.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL1(on=["income", "tax"]).text
    "IL1(on=['income', 'tax'])"
    """

    unit: ClassVar[str] = "relative change, 0 to 2"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)

    def of_values(self, x: Array, z: Array) -> Array:
        return il1_losses(x, z)


@dataclass(frozen=True)
class IL1s(_ValueLoss):
    """The mean change of a value, in units of sqrt(2) standard deviations of its variable.

    Formula: IL1s = mean over records i and variables j of |x_ij - z_ij| / (sqrt(2) S_j), S_j of the original.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. Weights: used when `weighted`, in the mean over records, else every record counts once;
    S_j and that mean stay those of the records, for a weight says whom a loss is for, not what it is measured in.
    Households are not used.
    A constant variable that masking left alone adds 0; one that it changed leaves the measure undefined. Releasing nothing
    has no value here. sdcMicro's IL1s is the sum, not the mean.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL1s(on=["income", "tax"]).text
    "IL1s(on=['income', 'tax'])"
    """

    unit: ClassVar[str] = "standard deviations / sqrt(2)"

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        losses = super().losses(original, masked)
        if any(np.isinf(loss["loss"]) for loss in losses):
            raise Undefined("a variable that is constant in the original was changed, so its loss has no scale.")
        return losses

    def of_values(self, x: Array, z: Array) -> Array:
        return il1s_losses(x, z)


@dataclass(frozen=True)
class RelativeLoss(_ValueLoss):
    """The mean change of a value, relative to the value itself: the loss that IL1 and IL1s replace.

    Parameters
    ----------
    constant : stands in place of |x| where x = 0, in the variable's unit, above 0; the loss then depends on it. By
        default a zero that masking changed makes the loss infinite.

    Formula: loss = mean over records i and variables j of |x_ij - z_ij| / |x_ij|; 0/0 = 0.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. Weights: used when `weighted`, else every record counts once. Households are not used.
    Values near 0 dominate it: it is orders of magnitude above the other losses on most files.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> RelativeLoss(on="income").text
    "RelativeLoss(on='income')"
    """

    constant: Positive | None = None

    def of_values(self, x: Array, z: Array) -> Array:
        return relative_losses(x, z, self.constant)


@dataclass(frozen=True)
class IL2(_MomentLoss):
    """The mean relative change of the means.

    Formula: IL2 = mean over variables j of |mean x_j - mean z_j| / |mean x_j|; 0/0 = 0.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A mean of 0 that masking changed leaves the measure undefined; a mean near 0 makes it large.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL2(by="sex").text
    "IL2(by='sex')"
    """

    averages: ClassVar[tuple[str, ...]] = ("IL2",)


@dataclass(frozen=True)
class IL3(_MomentLoss):
    """The mean relative change of the variances and covariances.

    Formula: IL3 = mean over pairs j >= k of |Cov(X)_jk - Cov(Z)_jk| / |Cov(X)_jk|; 0/0 = 0.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A covariance of 0 that masking changed leaves the measure undefined; variables that are almost uncorrelated make it
    large and unstable: two correlations of .004 give it a spread of 30 to 50 % between seeds on the paper's file.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL3(by="sex").text
    "IL3(by='sex')"
    """

    averages: ClassVar[tuple[str, ...]] = ("IL3",)


@dataclass(frozen=True)
class IL4(_MomentLoss):
    """The mean relative change of the variances.

    Formula: IL4 = mean over variables j of |Var x_j - Var z_j| / Var x_j; 0/0 = 0.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A constant variable that masking changed leaves the measure undefined.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL4(by="sex").text
    "IL4(by='sex')"
    """

    averages: ClassVar[tuple[str, ...]] = ("IL4",)


@dataclass(frozen=True)
class IL5(_MomentLoss):
    """The mean change of the correlations.

    Formula: IL5 = mean over pairs j > k of |Cor(X)_jk - Cor(Z)_jk|.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A correlation with a constant variable counts as 0.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL5(by="sex").text
    "IL5(by='sex')"
    """

    averages: ClassVar[tuple[str, ...]] = ("IL5",)
    unit: ClassVar[str] = "correlation"
    fewest: ClassVar[int] = 2


@dataclass(frozen=True)
class S0(_Summary):
    """The mean of IL2, IL3, IL4 and IL5, the utility of the A-score 50 (s0 + re-identified share).

    Formula: s0 = (IL2 + IL3 + IL4 + IL5)/4; each is in the parts, unrounded.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    It is undefined where one of its parts is. Two almost uncorrelated variables dominate it through IL3.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> S0().text
    'S0'
    """

    averages: ClassVar[tuple[str, ...]] = ("IL2", "IL3", "IL4", "IL5")


@dataclass(frozen=True)
class S1(_Summary):
    """The mean of IL1, IL2, IL3, IL4 and IL5, the utility of the D-score 50 (s1 + re-identified share).

    Formula: s1 = (IL1 + IL2 + IL3 + IL4 + IL5)/5; each is in the parts, unrounded.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    It is undefined where one of its parts is. IL1 speaks of single values and is never corrected.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> S1().text
    'S1'
    """

    averages: ClassVar[tuple[str, ...]] = ("IL1", "IL2", "IL3", "IL4", "IL5")


@dataclass(frozen=True)
class S2(_Summary):
    """The mean of IL1s, IL2, IL4 and IL5, the utility of the S-score 50 (s2 + re-identified share).

    Formula: s2 = (IL1s + IL2 + IL4 + IL5)/4; each is in the parts, unrounded.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    It is undefined where one of its parts is. IL1s speaks of single values and is never corrected.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> S2().text
    'S2'
    """

    averages: ClassVar[tuple[str, ...]] = ("IL1s", "IL2", "IL4", "IL5")
