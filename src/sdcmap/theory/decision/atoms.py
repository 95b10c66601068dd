"""Distributions on finitely many values: `Discrete` is what is believed, `Samples` stand for a density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcmap.core import Array, Floats, PlanError, Undefined
from sdcmap.theory.decision.distributions import Distribution, unwrap
from sdcmap.theory.parameter_checks import Numbers

Index = NDArray[np.intp]
SUMS_TO_1 = 1e-8


class Atoms(Distribution):
    """Values with weights on the last axis, in ascending order."""

    @property
    def atoms(self) -> tuple[Floats, Floats]:
        """Values and weights."""
        values, weights = (np.asarray(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return values, weights

    @property
    def shape(self) -> tuple[int, ...]:
        return self.atoms[0].shape[:-1]

    def expected(self, g: Callable[[Floats], Array]) -> Numbers:
        """E g(theta)."""
        values, weights = self.atoms
        return unwrap((weights * g(values)).sum(axis=-1))

    @property
    def mean(self) -> Numbers:
        return self.expected(lambda values: values)

    @property
    def variance(self) -> Numbers:
        return self.expected(lambda values: (values - np.expand_dims(self.mean, -1)) ** 2)

    def cdf(self, x: ArrayLike) -> Numbers:
        return self.expected(lambda values: values <= _beside(x))

    def quantile(self, p: ArrayLike) -> Numbers:
        values, weights = self.atoms
        below = np.cumsum(weights, axis=-1) < _beside(p) - 1e-12
        place = np.minimum(below.sum(axis=-1), values.shape[-1] - 1)
        wide = np.broadcast_to(values, (*place.shape, values.shape[-1]))
        return unwrap(np.take_along_axis(wide, place[..., np.newaxis], axis=-1)[..., 0])

    def mean_distance(self, action: ArrayLike) -> Numbers:
        return self.expected(lambda values: np.abs(values - _beside(action)))

    def mass_within(self, action: ArrayLike, width: float) -> Numbers:
        return self.expected(lambda values: np.abs(values - _beside(action)) <= width)

    def capped_square(self, action: ArrayLike, cap: float) -> Numbers:
        return self.expected(lambda values: np.minimum((values - _beside(action)) ** 2, cap))

    def center_of_mass(self, width: float) -> Numbers:
        values, weights = self.atoms
        first, last = _windows(values, width)
        whole = _cumulated(weights)
        mass = np.take_along_axis(whole, last, -1) - np.take_along_axis(whole, first, -1)
        best = np.argmax(mass, axis=-1)[..., np.newaxis]
        ends = [np.take_along_axis(index, best, -1) for index in (first, last - 1)]
        low, high = (np.take_along_axis(values, end, -1)[..., 0] for end in ends)
        return unwrap(low + (high - low) / 2)

    def center_of_capped(self, cap: float) -> Numbers:
        """The best of the window means: between two breakpoints the same atoms count, and the loss is a parabola."""
        values, weights = self.atoms
        first, last = _windows(values, np.sqrt(cap))
        middle = values - np.expand_dims(self.mean, -1)
        sums = [_cumulated(weights * middle**power) for power in (0, 1, 2)]
        mass, once, twice = (np.take_along_axis(s, last, -1) - np.take_along_axis(s, first, -1) for s in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            center = np.where(mass > 0, once / mass, 0.0)
            loss = np.where(mass > 0, twice - once * center, np.inf) + cap * (1 - mass)
        return unwrap(np.take_along_axis(center, np.argmin(loss, axis=-1)[..., np.newaxis], -1)[..., 0] + self.mean)


@dataclass(frozen=True, eq=False, repr=False)
class Discrete(Atoms):
    """Finitely many values (or codes) with probabilities that sum to 1; `Discrete([value], [1])` knows the value.

    Held in ascending order; the mass of a value that is given twice is added up.

    >>> float(Discrete([2, 1, 2], [0.25, 0.5, 0.25]).mean)
    1.5
    """

    values: ArrayLike
    weights: ArrayLike

    def __post_init__(self) -> None:
        values, weights = _pair(self, self.values, self.weights)
        if bad := int((np.abs(weights.sum(axis=-1) - 1) > SUMS_TO_1).sum()):
            raise PlanError(f"Discrete.weights must sum to 1; {bad} of {weights[..., 0].size} do not.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", _merged(values, weights / weights.sum(axis=-1, keepdims=True)))

    @property
    def entropy(self) -> Numbers:
        return sum_of_logs(self.atoms[1], self.atoms[1])

    def log_density(self, x: ArrayLike) -> Numbers:
        with np.errstate(divide="ignore"):
            return unwrap(np.log(self.expected(lambda values: values == _beside(x))))


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Atoms):
    """Draws from a posterior, at least 2 each, with weights (default: equal; only their ratios count).

    They stand for a distribution that has a density, so they have no entropy of their own: `KullbackLeibler` is
    `Undefined` for them, `PlugIn`, `Neighbors`, `WassersteinDistance` and `LossInduced` are not.

    >>> round(float(Samples([1.0, 2.0, 3.0]).variance), 9)
    1.0
    """

    draws: ArrayLike
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        weights = np.ones(np.shape(self.draws)) if self.weights is None else self.weights
        draws, weights = _pair(self, self.draws, weights)
        if ((weights > 0).sum(axis=-1) < 2).any():
            raise PlanError("Samples needs at least 2 draws with a weight above 0; a known value: Discrete([v], [1]).")
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "weights", weights / weights.sum(axis=-1, keepdims=True))

    @property
    def variance(self) -> Numbers:
        """sum w (x - mean)^2/(1 - sum w^2): with equal weights the unbiased sample variance."""
        return unwrap(super().variance / (1 - (self.atoms[1] ** 2).sum(axis=-1)))

    @property
    def entropy(self) -> Numbers:
        raise Undefined(f"draws have no density. {INSTEAD}")

    def log_density(self, x: ArrayLike) -> Numbers:
        raise Undefined(f"draws have no density. {INSTEAD}")


INSTEAD = "Use PlugIn, Neighbors, WassersteinDistance or LossInduced, or fit a Normal."


def for_each_record(function: Callable[..., Numbers]) -> Callable[..., Floats]:
    """The function of the atoms of two beliefs, values and weights each, record by record."""
    return np.vectorize(function, otypes=[float], signature="(n),(n),(m),(m)->()")


def sum_of_logs(weights: Floats, mass: Floats) -> Numbers:
    """-sum w log m: the entropy where both are one, else the cross entropy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return unwrap(np.where(weights > 0, -weights * np.log(mass), 0.0).sum(axis=-1))


def _beside(x: ArrayLike) -> Floats:
    return np.asarray(x, dtype=float)[..., np.newaxis]


def _pair(of: object, values: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    """Values and weights of one shape, sorted by value; finite, the weights not below 0, their sum above."""
    kind = type(of).__name__
    try:
        given, mass = np.broadcast_arrays(np.asarray(values, dtype=float), np.asarray(weights, dtype=float))
    except (TypeError, ValueError):
        raise PlanError(f"{kind}: values and weights must be numbers, as many of one as of the other.") from None
    if given.ndim == 0 or given.shape[-1] == 0:
        raise PlanError(f"{kind} needs a list of values and a list of weights.")
    if not np.isfinite(given).all():
        raise PlanError(f"{kind}: its values must be finite; {int((~np.isfinite(given)).sum())} are not.")
    if not (np.isfinite(mass).all() and (mass >= 0).all() and (mass.sum(axis=-1) > 0).all()):
        raise PlanError(f"{kind}.weights must be finite and not below 0, with a sum above 0.")
    order = np.argsort(given, axis=-1, kind="stable")
    return np.take_along_axis(given, order, -1), np.take_along_axis(mass, order, -1)


def _merged(values: Floats, weights: Floats) -> Floats:
    """The weights with the mass of equal values at the last of them."""
    ends = np.ones(values.shape, dtype=bool)
    ends[..., :-1] = values[..., 1:] != values[..., :-1]
    if ends.all():
        return weights
    so_far = np.where(ends, np.cumsum(weights, axis=-1), 0.0)
    before = np.roll(np.maximum.accumulate(so_far, axis=-1), 1, axis=-1)
    before[..., 0] = 0.0
    alone = ends & np.roll(ends, 1, axis=-1)  # the last of a row is always an end, so the first wraps rightly
    return np.where(alone, weights, np.where(ends, so_far - before, 0.0))


def _cumulated(weights: Floats) -> Floats:
    """Sums of the first 0, 1, ... of them."""
    return np.concatenate([np.zeros_like(weights[..., :1]), np.cumsum(weights, axis=-1)], axis=-1)


def _windows(values: Floats, width: float) -> tuple[Index, Index]:
    """Every set of neighboring atoms that lie within `width` of some number: index of the first, and after the last.

    As the number moves up, atom v enters at v - width and leaves after v + width; between two such events the set is one.
    """
    # v - width and u + width meet in spite of rounding
    span = 1e-12 * np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    events = np.concatenate([values - width, values + width + span], axis=-1)
    enters = np.argsort(events, axis=-1, kind="stable") < values.shape[-1]
    return np.cumsum(~enters, axis=-1), np.cumsum(enters, axis=-1)
