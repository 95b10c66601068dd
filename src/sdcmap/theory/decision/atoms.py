"""Distributions on finitely many values: `Discrete` is a belief itself, `Samples` represent a density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcmap.core import Array, Floats, PlanError, Undefined
from sdcmap.theory.decision.distributions import Distribution, unwrap
from sdcmap.theory.parameter_checks import Numbers

Index = NDArray[np.intp]
WEIGHT_SUM_TOLERANCE = 1e-8  # how far the weights of a Discrete may be from a sum of 1


class Atoms(Distribution):
    """Values with weights on the last axis, in ascending order."""

    @property
    def atoms(self) -> tuple[Floats, Floats]:
        """The values and the weights."""
        values, weights = (np.asarray(getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return values, weights

    @property
    def shape(self) -> tuple[int, ...]:
        return self.atoms[0].shape[:-1]

    def expectation(self, g: Callable[[Floats], Array]) -> Numbers:
        """Return E g(theta)."""
        values, weights = self.atoms
        return unwrap((weights * g(values)).sum(axis=-1))

    @property
    def mean(self) -> Numbers:
        return self.expectation(lambda values: values)

    @property
    def variance(self) -> Numbers:
        return self.expectation(lambda values: (values - np.expand_dims(self.mean, -1)) ** 2)

    def cdf(self, x: ArrayLike) -> Numbers:
        return self.expectation(lambda values: values <= _with_value_axis(x))

    def quantile(self, p: ArrayLike) -> Numbers:
        values, weights = self.atoms
        below = np.cumsum(weights, axis=-1) < _with_value_axis(p) - 1e-12
        index = np.minimum(below.sum(axis=-1), values.shape[-1] - 1)
        wide = np.broadcast_to(values, (*index.shape, values.shape[-1]))
        return unwrap(np.take_along_axis(wide, index[..., np.newaxis], axis=-1)[..., 0])

    def mean_distance(self, action: ArrayLike) -> Numbers:
        return self.expectation(lambda values: np.abs(values - _with_value_axis(action)))

    def mass_within(self, action: ArrayLike, width: float) -> Numbers:
        return self.expectation(lambda values: np.abs(values - _with_value_axis(action)) <= width)

    def capped_square(self, action: ArrayLike, cap: float) -> Numbers:
        return self.expectation(lambda values: np.minimum((values - _with_value_axis(action)) ** 2, cap))

    def center_of_mass(self, width: float) -> Numbers:
        values, weights = self.atoms
        first, last = _windows(values, width)
        # The mass of every window is a difference of cumulative sums; the best one is centered on its end atoms.
        whole = _cumulative_sums(weights)
        mass = np.take_along_axis(whole, last, -1) - np.take_along_axis(whole, first, -1)
        best = np.argmax(mass, axis=-1)[..., np.newaxis]
        ends = [np.take_along_axis(index, best, -1) for index in (first, last - 1)]
        low, high = (np.take_along_axis(values, end, -1)[..., 0] for end in ends)
        return unwrap(low + (high - low) / 2)

    def center_of_capped(self, cap: float) -> Numbers:
        """Return the best of the window means.

        Between two breakpoints the same atoms are within the cap, and the loss is a parabola.
        """
        values, weights = self.atoms
        first, last = _windows(values, np.sqrt(cap))
        # Centered values, so that the second moments of the windows do not cancel.
        middle = values - np.expand_dims(self.mean, -1)
        sums = [_cumulative_sums(weights * middle**power) for power in (0, 1, 2)]
        mass, once, twice = (np.take_along_axis(s, last, -1) - np.take_along_axis(s, first, -1) for s in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            center = np.where(mass > 0, once / mass, 0.0)
            loss = np.where(mass > 0, twice - once * center, np.inf) + cap * (1 - mass)
        return unwrap(np.take_along_axis(center, np.argmin(loss, axis=-1)[..., np.newaxis], -1)[..., 0] + self.mean)


@dataclass(frozen=True, eq=False, repr=False)
class Discrete(Atoms):
    """Finitely many values (or codes) with probabilities that sum to 1; `Discrete([value], [1])` is a known value.

    Values are stored in ascending order; the probabilities of equal values are added up.

    >>> float(Discrete([2, 1, 2], [0.25, 0.5, 0.25]).mean)
    1.5
    """

    values: ArrayLike
    weights: ArrayLike

    def __post_init__(self) -> None:
        values, weights = _pair(self, self.values, self.weights)
        if bad := int((np.abs(weights.sum(axis=-1) - 1) > WEIGHT_SUM_TOLERANCE).sum()):
            raise PlanError(f"Discrete.weights must sum to 1; {bad} of {weights[..., 0].size} sets do not.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", _merge_equal_values(values, weights / weights.sum(axis=-1, keepdims=True)))

    @property
    def entropy(self) -> Numbers:
        return sum_of_logs(self.atoms[1], self.atoms[1])

    def log_density(self, x: ArrayLike) -> Numbers:
        with np.errstate(divide="ignore"):
            return unwrap(np.log(self.expectation(lambda values: values == _with_value_axis(x))))


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Atoms):
    """Draws from a posterior, at least 2, with weights (by default equal; only their ratios matter).

    They represent a distribution with a density, so they have no entropy of their own: `KullbackLeibler` raises
    `Undefined` for them; `PlugIn`, `Neighbors`, `WassersteinDistance` and `LossInduced` do not.

    >>> round(float(Samples([1.0, 2.0, 3.0]).variance), 9)
    1.0
    """

    draws: ArrayLike
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        weights = np.ones(np.shape(self.draws)) if self.weights is None else self.weights
        draws, weights = _pair(self, self.draws, weights)
        if ((weights > 0).sum(axis=-1) < 2).any():
            raise PlanError(
                "Samples needs at least 2 draws with a weight above 0. For a known value use Discrete([v], [1])."
            )
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "weights", weights / weights.sum(axis=-1, keepdims=True))

    @property
    def variance(self) -> Numbers:
        """sum w (x - mean)^2/(1 - sum w^2); with equal weights, the unbiased sample variance."""
        return unwrap(super().variance / (1 - (self.atoms[1] ** 2).sum(axis=-1)))

    @property
    def entropy(self) -> Numbers:
        raise Undefined(f"draws have no density. {ALTERNATIVES}")

    def log_density(self, x: ArrayLike) -> Numbers:
        raise Undefined(f"draws have no density. {ALTERNATIVES}")


ALTERNATIVES = "Use PlugIn, Neighbors, WassersteinDistance or LossInduced, or fit a Normal."


def for_each_record(function: Callable[..., Numbers]) -> Callable[..., Floats]:
    """Vectorize a function of the atoms of two beliefs (values and weights of each) over records."""
    return np.vectorize(function, otypes=[float], signature="(n),(n),(m),(m)->()")


def sum_of_logs(weights: Floats, mass: Floats) -> Numbers:
    """Return -sum w log m: the entropy if both are the same, otherwise the cross entropy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return unwrap(np.where(weights > 0, -weights * np.log(mass), 0.0).sum(axis=-1))


def _with_value_axis(x: ArrayLike) -> Floats:
    return np.asarray(x, dtype=float)[..., np.newaxis]


def _pair(of: object, values: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    """Return values and weights of one shape, sorted by value; raise PlanError if they are not valid."""
    kind = type(of).__name__
    try:
        points, mass = np.broadcast_arrays(np.asarray(values, dtype=float), np.asarray(weights, dtype=float))
    except (TypeError, ValueError):
        raise PlanError(f"{kind}: values and weights must be numbers, equally many of both.") from None
    if points.ndim == 0 or points.shape[-1] == 0:
        raise PlanError(f"{kind} needs a list of values and a list of weights.")
    if not np.isfinite(points).all():
        raise PlanError(f"{kind}: its values must be finite; {int((~np.isfinite(points)).sum())} are not.")
    if not (np.isfinite(mass).all() and (mass >= 0).all() and (mass.sum(axis=-1) > 0).all()):
        raise PlanError(f"{kind}.weights must be finite and not below 0, with a sum above 0.")
    order = np.argsort(points, axis=-1, kind="stable")
    return np.take_along_axis(points, order, -1), np.take_along_axis(mass, order, -1)


def _merge_equal_values(values: Floats, weights: Floats) -> Floats:
    """Move the weights of equal values to the last of them."""
    ends = np.ones(values.shape, dtype=bool)
    ends[..., :-1] = values[..., 1:] != values[..., :-1]
    if ends.all():
        return weights
    so_far = np.where(ends, np.cumsum(weights, axis=-1), 0.0)
    before = np.roll(np.maximum.accumulate(so_far, axis=-1), 1, axis=-1)
    before[..., 0] = 0.0
    single = ends & np.roll(ends, 1, axis=-1)  # np.roll wraps correctly: the last of a row is always an end
    return np.where(single, weights, np.where(ends, so_far - before, 0.0))


def _cumulative_sums(weights: Floats) -> Floats:
    """Return the sums of the first 0, 1, ... weights."""
    return np.concatenate([np.zeros_like(weights[..., :1]), np.cumsum(weights, axis=-1)], axis=-1)


def _windows(values: Floats, width: float) -> tuple[Index, Index]:
    """Return every set of atoms within `width` of some number: the index of the first, and after the last.

    As the number moves up, atom v enters at v - width and leaves after v + width. Between two such events the set is the
    same.
    """
    # a small span, so that v - width and u + width are equal in spite of rounding
    span = 1e-12 * np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    events = np.concatenate([values - width, values + width + span], axis=-1)
    enters = np.argsort(events, axis=-1, kind="stable") < values.shape[-1]
    return np.cumsum(~enters, axis=-1), np.cumsum(enters, axis=-1)
