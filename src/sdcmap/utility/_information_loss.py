"""What the information-loss measures share: the two files, whole or by subpopulation, and their moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.added_noise import noise_covariance, noise_strata, unmasked_scale
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Range
from sdcmap.data.cells import cells, common_codes
from sdcmap.data.microdata import Array, Microdata
from sdcmap.errors import Undefined, did_you_mean
from sdcmap.kernels.statistics.moments import Moments, correlation_of, moments
from sdcmap.kernels.tables.coding import compress

ValueLoss = Callable[[Array, Array], Array]
Groups = tuple[Array, ...]  # the rows of each (sub)population


@dataclass(frozen=True)
class InformationLoss(Measure):
    """A loss of numeric information, of the whole file or as the mean over subpopulations, each measured as a file of its
    own; with `by`, the worst subpopulation and their number are in the parts.

    Fields: `on`, the variables (by default all numeric ones); `weighted`, for survey weights; `by` and `least`, which
    subpopulations: those of the variables `by` with at least `least` records in the original.
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
            if name not in data.names:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        """The named parts of the loss, for each (sub)population."""
        raise TypeError(f"{type(self).__name__} has no losses.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        found = self.losses(original, masked)
        values = [float(np.mean(list(parts.values()))) for parts in found]
        parts = {name: float(np.mean([part[name] for part in found])) for name in found[0]} if len(found[0]) > 1 else {}
        if self.by:
            parts |= {"worst": max(values), "subpopulations": float(len(values))}
        return Estimate(float(np.mean(values)), None, parts)

    # ---- the two files --------------------------------------------------------------------------------------------
    def groups(self, original: Microdata, masked: Microdata) -> tuple[Groups, Groups]:
        """The rows of each (sub)population, in the original and as the masked file has them."""
        if not self.by:
            return (np.arange(len(original)),), (np.arange(len(masked)),)
        if masked.origin is None and masked.base is original and masked.changes.keys().isdisjoint(self.by):
            found = original.remember(("groups", self.by), lambda: _groups(original.view(cells, self.by).code))
            large = tuple(rows for rows in found if len(rows) >= self.least)
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
        found = np.full((len(names), len(masked)), np.nan).T  # written and added up column by column
        parts = [np.flatnonzero(number == k) for k in range(number.max() + 1)] if self.by else [slice(None)]
        for column, name in enumerate(names):
            x, z = original.numbers(name)[rows], masked.numbers(name)
            for part in parts:
                found[part, column] = loss(x[part], z[part])
        return found, number

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
class MomentsMeasure(InformationLoss):
    """An information loss read off means, covariances and correlations before and after masking.

    Fields besides those of InformationLoss: `corrected`, for a data user who takes the noise off first; `made_by`, the
    method, where a sweep or release does not tell it.
    """

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
        found = _moments(unmasked_scale(masked, names, noise), self._weights(masked), groups)
        strata, weights = noise_strata(masked, names, noise), self._weights(masked)
        w = np.ones(len(masked)) if weights is None else weights
        taken = [m.covariance - noise_covariance(strata, rows, w) for m, rows in zip(found, groups, strict=True)]
        return tuple(
            Moments(m.mean, covariance, correlation_of(covariance), m.size)
            for m, covariance in zip(found, taken, strict=True)
        )

    def _weights(self, data: Microdata) -> Array | None:
        return data.weights if self.weighted else None


def mean_of(losses: Array, what: str) -> float:
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
