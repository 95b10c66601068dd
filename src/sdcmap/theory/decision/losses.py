"""Losses, and the uncertainty of a distribution under each: the expected loss of the best action.

Duncan and Lambert (1986); Trottini (2001), par. 8. L(theta, a) is the cost of estimating theta by a; U(p) = min_a E_p L.
If the loss is not negative, neither is U. Under log loss U is the entropy, which may be negative for a density.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.core import Floats, Positive, Range, Undefined, Value
from sdcmap.theory.decision.atoms import Atoms, Discrete, Samples, for_each_record, sum_of_logs
from sdcmap.theory.decision.distributions import Distribution, LocationScale, Normal, unwrap
from sdcmap.theory.parameter_checks import Numbers

Action: TypeAlias = ArrayLike | Distribution  # an estimate of theta; under log loss, a belief


@dataclass(frozen=True)
class Loss(Value, ABC):
    """The base of every loss: the best action under a belief, and the expected loss of an action."""

    unit: ClassVar[str]

    @abstractmethod
    def best(self, p: Distribution) -> Action:
        """Return the action with the smallest expected loss."""

    @abstractmethod
    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        """Return E_p L(theta, action)."""

    def uncertainty(self, p: Distribution) -> Numbers:
        """Return U(p) = min_a E_p L(theta, a)."""
        return self.expected_loss(p, self.best(p))


def _numbers(action: Action) -> ArrayLike:
    if isinstance(action, Distribution):
        raise Undefined(
            "an action under this loss is a number, or one per record; only a log loss takes a distribution."
        )
    return action


@dataclass(frozen=True)
class Quadratic(Loss):
    """(theta - a)^2: the best action is the mean, and U is the variance.

    >>> float(Quadratic().uncertainty(Normal(0, 4)))
    4.0
    """

    unit: ClassVar[str] = "unit²"

    def best(self, p: Distribution) -> Numbers:
        return p.mean

    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        return p.variance + (p.mean - unwrap(_numbers(action))) ** 2


@dataclass(frozen=True)
class Absolute(Loss):
    """|theta - a|: the best action is the median, and U is the mean distance from it.

    >>> round(float(Absolute().uncertainty(Normal(0, 4))), 6)
    1.595769
    """

    unit: ClassVar[str] = "unit"

    def best(self, p: Distribution) -> Numbers:
        return p.quantile(0.5)

    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        return p.mean_distance(_numbers(action))


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 if |theta - a| > width, otherwise 0: U is the probability that the best guess misses.

    width : in the variable's unit, at least 0; with width 0, for categories, U = 1 - the largest probability. A density
        needs a width above 0.

    >>> round(float(ZeroOne(width=1).uncertainty(Normal(0, 4))), 6)
    0.617075
    >>> round(float(ZeroOne().uncertainty(Discrete([0, 1, 2, 3], [0.7, 0.1, 0.1, 0.1]))), 6)
    0.3
    """

    unit: ClassVar[str] = "probability"
    width: Annotated[float, Range(0)] = 0.0

    def best(self, p: Distribution) -> Numbers:
        return p.center_of_mass(self.width)

    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        return np.maximum(1 - p.mass_within(_numbers(action), self.width), 0.0)  # below 0 is rounding


@dataclass(frozen=True)
class Bounded(Loss):
    """min((theta - a)^2, cap): a miss costs no more than `cap` (unit^2), however far.

    >>> round(float(Bounded(cap=4).uncertainty(Normal(0, 4))), 6)
    2.064234
    """

    unit: ClassVar[str] = "unit²"
    cap: Positive = 1.0

    def best(self, p: Distribution) -> Numbers:
        return p.center_of_capped(self.cap)

    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        return p.capped_square(_numbers(action), self.cap)


@dataclass(frozen=True)
class Log(Loss):
    """-log a(theta): the action is a distribution; the best one is the belief itself, and U is its entropy in nats.

    >>> round(float(Log().uncertainty(Normal(0, 4))), 6)
    2.112086
    """

    unit: ClassVar[str] = "nats"

    def best(self, p: Distribution) -> Distribution:
        return p

    def uncertainty(self, p: Distribution) -> Numbers:
        return p.entropy

    def expected_loss(self, p: Distribution, action: Action) -> Numbers:
        """Return -E_p log a(theta), infinite if p has mass where `action` has none."""
        if not isinstance(action, Distribution):
            raise Undefined("the action of a log loss is a distribution; numbers have no density.")
        if isinstance(action, Samples):
            raise Undefined("draws have no density, so a log loss cannot score them: fit a Normal.")
        if isinstance(action, Normal):
            spread = p.variance + (p.mean - action.mean) ** 2
            return 0.5 * np.log(2 * np.pi * action.variance) + 0.5 * spread / action.variance
        if isinstance(action, Discrete):
            return _cross_entropy(p, action)
        if isinstance(p, LocationScale):
            return -p.expectation(action.log_density, len(action.shape))
        if not isinstance(p, Atoms):
            raise Undefined(f"a log loss has no expectation under a {type(p).__name__}.")
        more = [1] * max(len(action.shape) - len(p.shape), 0)  # axes of records that only the action has
        values, weights = (np.moveaxis(part, -1, 0).reshape(-1, *more, *p.shape) for part in p.atoms)
        return unwrap(-(weights * action.log_density(values)).sum(axis=0))


def _cross_entropy(p: Distribution, q: Discrete) -> Numbers:
    """Return -sum p log q over the values of p; infinite if p is a density, which has no mass on the values of q."""
    if not isinstance(p, Discrete):
        return unwrap(np.full(np.broadcast_shapes(p.shape, q.shape), np.inf))
    if p.atoms[0].shape == q.atoms[0].shape and np.array_equal(p.atoms[0], q.atoms[0]):
        return sum_of_logs(p.atoms[1], q.atoms[1])
    return unwrap(for_each_record(_cross_entropy_of)(*p.atoms, *q.atoms))


def _cross_entropy_of(values: Floats, weights: Floats, support: Floats, mass: Floats) -> Numbers:
    index = np.minimum(np.searchsorted(support, values, side="right") - 1, len(support) - 1)
    return sum_of_logs(weights, np.where(support[index] == values, mass[index], 0.0))


LOSSES: Mapping[str, type[Loss]] = {
    "quadratic": Quadratic,
    "absolute": Absolute,
    "zero-one": ZeroOne,
    "bounded": Bounded,
    "log": Log,
}


def loss_by_name(name: str, width: float) -> Loss:
    """Return a loss on numbers by its name; width : of a hit under "zero-one", and the largest error under "bounded".

    >>> loss_by_name("bounded", 2.0)
    Bounded(cap=4.0)
    """
    if name == "bounded":
        return Bounded(cap=width**2)
    return ZeroOne(width=width) if name == "zero-one" else LOSSES[name]()
