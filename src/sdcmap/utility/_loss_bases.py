"""Bases of the information losses: subpopulations, and comparisons of values and moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, Undefined, did_you_mean
from sdcmap.core.added_noise import noise_covariance, noise_strata, undo_rescaling
from sdcmap.data.cells import cells, common_codes
from sdcmap.kernels.statistics import information_losses as formulas
from sdcmap.kernels.statistics.moments import Moments, correlation_of, moments
from sdcmap.kernels.tables.coding import compress
from sdcmap.utility._numeric import WeightedMeasure

Formula: TypeAlias = Callable[[Array, Array], Array]  # the loss of each value of one variable
Rows: TypeAlias = Array | slice  # of one subpopulation

VALUE_LOSSES: Mapping[str, Formula] = {"IL1": formulas.il1_losses, "IL1s": formulas.il1s_losses}
MOMENT_LOSSES: Mapping[str, tuple[Callable[[Moments, Moments], Array], str]] = {
    "IL2": (formulas.il2_losses, "mean"),
    "IL3": (formulas.il3_losses, "covariance"),
    "IL4": (formulas.il4_losses, "variance"),
    "IL5": (formulas.il5_losses, "correlation"),
}


@dataclass(frozen=True)
class SubpopulationLoss(WeightedMeasure):
    """A loss of numeric information, for the whole file or as the mean over subpopulations.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    by : variables that divide the records into subpopulations. The loss is then the mean over the subpopulations, each
        measured as a separate file; the worst one is in `parts`.
    least : the smallest number of original records of a subpopulation that is measured, at least 2.

    Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.
    """

    unit: ClassVar[str] = "relative change"
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)

    by: tuple[str, ...] = ()
    least: Annotated[int, Range(2)] = 30

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.by:
            if name not in data.schema:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"

    def losses(self, original: Microdata, masked: Microdata) -> Mapping[str, list[float]]:
        """Return the losses whose mean is the value, each for every subpopulation. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no losses.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        losses = self.losses(original, masked)
        values = np.mean([*losses.values()], axis=0)
        parts = {name: float(np.mean(loss)) for name, loss in losses.items()} if len(losses) > 1 else {}
        if self.by:
            parts |= {"worst": float(values.max()), "subpopulations": float(len(values))}
        return Estimate(value=float(values.mean()), parts=parts)

    def subpopulations(self, original: Microdata, masked: Microdata) -> tuple[Sequence[Rows], Sequence[Rows]]:
        """Return the rows of each subpopulation in the original and in the masked file."""
        if not self.by:
            return [slice(None)], [slice(None)]
        if masked.origin is None and masked.base is original and masked.changes.keys().isdisjoint(self.by):
            key = "groups", self.by
            before = after = original.remember(key, lambda: _group_rows(original.view(cells, self.by).code))
        else:
            code, _ = compress([common_codes(original, masked, name) for name in self.by])
            before, after = (_group_rows(part, int(code.max()) + 1) for part in np.split(code, [len(original)]))
        large = [k for k, rows in enumerate(before) if len(rows) >= self.least]
        if not large:
            raise Undefined(f"no subpopulation has at least {self.least} records: choose a smaller `least`.")
        return [before[k] for k in large], [after[k] for k in large]

    def value_losses(self, original: Microdata, masked: Microdata, loss: Formula) -> Iterator[tuple[Rows, Array]]:
        """Yield, for each subpopulation of the original, its rows in the masked file and the loss of each value.

        Losses are variables x records, each against the record's own original; NaN if the original is missing.
        """
        names = self.check_variables(original)
        if masked.origin is None and len(masked) != len(original):
            raise Undefined("the masked file does not state which original record each row came from.")
        owner = slice(None) if masked.origin is None else masked.origin
        numbers = [(original.numbers(name)[owner], masked.numbers(name)) for name in names]
        populations, _ = self.subpopulations(original, masked)
        # the rows of a subpopulation are those of the original: translate them to released rows
        if self.by and masked.origin is not None:
            number = np.zeros(len(original), dtype=np.int64)
            for k, rows in enumerate(populations, 1):
                number[rows] = k
            populations = _group_rows(number[owner], len(populations) + 1)[1:]
        for rows in populations:
            losses = np.empty((len(names), len(numbers[0][1][rows])))
            for row, (x, z) in zip(losses, numbers, strict=True):
                row[:] = loss(x[rows], z[rows])
            yield rows, losses

    def mean_losses(self, original: Microdata, masked: Microdata, loss: Formula) -> list[float]:
        """Return the mean loss of a value in each subpopulation; infinite if one loss is."""
        means = []
        for rows, losses in self.value_losses(original, masked, loss):
            weights = masked.weights[rows] if self.weighted else 1.0
            total, count = _sum_known(losses)
            weight = (count * weights).sum()
            if not weight:
                raise Undefined("no measured value of a (sub)population is known in the original.")
            means.append(float((total * weights).sum() / weight))
        return means

    def record_losses(self, original: Microdata, masked: Microdata, loss: Formula) -> Array:
        """Return the mean loss of each record; NaN if all its values are missing in the original."""
        means = np.full(len(masked), np.nan)
        for rows, losses in self.value_losses(original, masked, loss):
            total, count = _sum_known(losses)
            means[rows] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return means


def _sum_known(losses: Array) -> tuple[Array, Array]:
    """Return, for each record, the sum of its known losses and their number."""
    total = losses.sum(axis=0)
    if not np.isnan(total).any():
        return total, np.full(losses.shape[1], len(losses))
    known = ~np.isnan(losses)
    return np.where(known, losses, 0.0).sum(axis=0), known.sum(axis=0)


def _group_rows(code: Array, size: int = 0) -> list[Array]:
    """Return the rows of each code 0, 1, ...; empty for codes that do not occur."""
    count = np.bincount(code, minlength=size)
    return np.split(np.argsort(code, kind="stable"), np.cumsum(count)[:-1])


@dataclass(frozen=True)
class ValueLoss(SubpopulationLoss):
    """An information loss of single values, which is also defined for each record.

    Missing: a value missing in the original is left out; a value that masking made missing counts as if the user
    replaced it by the variable's mean over the records.
    """

    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def value_loss(self, x: Array, z: Array) -> Array:
        """Return the loss of each value of one variable. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no loss of a value.")

    def losses(self, original: Microdata, masked: Microdata) -> Mapping[str, list[float]]:
        return {"loss": self.mean_losses(original, masked, self.value_loss)}

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the mean loss of each record; NaN if all its values are missing in the original."""
        return self.record_losses(original, masked, self.value_loss)


@dataclass(frozen=True)
class MomentLoss(SubpopulationLoss):
    """An information loss from means, covariances and correlations before and after masking.

    Parameters
    ----------
    corrected : first remove the noise, as a data user can who has read the method note (Kim 1990): undo any rescaling
        in subpopulation means, and subtract d Cov X, computed from the whole released file, from subpopulation
        covariances. Only for additive noise; other methods have no corrected value.
    made_by : the method, if neither a sweep nor a release states it.

    Missing: means over the values present, covariances and correlations over complete pairs, in each file separately.
    """

    missing: ClassVar[str] = "means over the values present, covariances and correlations over complete pairs"
    averages: ClassVar[tuple[str, ...]] = ()  # names of the losses whose mean is the value

    corrected: bool = False
    made_by: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.made_by is not None and not self.corrected:
            yield ".made_by is used only with corrected=True."

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, made_by=method) if self.corrected and self.made_by is None else self

    def losses(self, original: Microdata, masked: Microdata) -> Mapping[str, list[float]]:
        pairs = self._moments_of_both(original, masked)
        of_values = {n: self.mean_losses(original, masked, VALUE_LOSSES[n]) for n in self.averages if n in VALUE_LOSSES}
        of_moments = {n: [_mean_moment_loss(n, *pair) for pair in pairs] for n in self.averages if n in MOMENT_LOSSES}
        return of_values | of_moments

    def _moments_of_both(self, original: Microdata, masked: Microdata) -> list[tuple[Moments, Moments]]:
        """Return the moments of each subpopulation before and after masking."""
        names, (before, after) = self.check_variables(original), self.subpopulations(original, masked)
        key = ("moments", names, self.weighted, self.by, self.least)
        true = original.remember(key, lambda: self._moments(original, original.matrix(names), before))
        released = masked.remember((*key, self.made_by), lambda: self._released_moments(masked, names, after))
        return list(zip(true, released, strict=True))

    def _moments(self, data: Microdata, x: Array, populations: Sequence[Rows]) -> list[Moments]:
        """Return the moments of each subpopulation of one file."""
        if any(len(x[rows]) < 2 for rows in populations):
            raise Undefined("a (sub)population has fewer than 2 records, so it has no variance.")
        return [moments(x[rows], data.weights[rows] if self.weighted else None) for rows in populations]

    def _released_moments(
        self, masked: Microdata, names: tuple[str, ...], populations: Sequence[Rows]
    ) -> list[Moments]:
        """Return the moments of the masked file, without the noise if `corrected`."""
        if not self.corrected:
            return self._moments(masked, masked.matrix(names), populations)
        if self.made_by is None:
            raise Undefined("the correction needs the method: score the file in a sweep, or set `made_by`.")
        noise = self.made_by.added_noise()
        released = self._moments(masked, undo_rescaling(masked, names, noise), populations)
        strata, weights = noise_strata(masked, names, noise), self.weights_of(masked)
        pairs = zip(released, populations, strict=True)
        true = [m.covariance - noise_covariance(strata, rows, weights) for m, rows in pairs]
        return [replace(m, covariance=c, correlation=correlation_of(c)) for m, c in zip(released, true, strict=True)]


def _mean_moment_loss(name: str, before: Moments, after: Moments) -> float:
    """Return the mean loss over the moments known in the original, or raise `Undefined` with the reason."""
    formula, moment = MOMENT_LOSSES[name]
    losses = formula(before, after)
    if np.isinf(losses).any():
        raise Undefined(f"a {moment} is 0 in the original and changed, or is unknown in the masked file.")
    if np.isnan(losses).all():
        raise Undefined(f"no {moment} is known in the original.")
    return float(np.nanmean(losses))
