"""Divergences D(agency, other): how badly another person's belief stands for the agency's.

Trottini (2001), definition 3 leaves D open. Each has a `unit`, and `notes(p, q)` says in words what its number does not
show: a unit, a saturated estimate, a point mass. A number is infinite where the truth is; nothing is clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Floats, Range, Undefined, Value
from sdcmap.theory.decision.atoms import INSTEAD, Atoms, Discrete, Samples, for_each_record
from sdcmap.theory.decision.distributions import Distribution, LocationScale, Normal, unwrap
from sdcmap.theory.decision.losses import Absolute, Log, Loss, Quadratic
from sdcmap.theory.parameter_checks import Numbers

TRUSTED_TO = 3.0  # nats; beyond, nearest-neighbor estimates from some thousand draws stay far too low
MOST_SKEW, MOST_KURTOSIS = 0.5, 1.0  # what a normal plug-in takes for normal


@dataclass(frozen=True)
class Divergence(Value, ABC):
    """The base of every divergence: at least 0, and 0 where the two beliefs are one."""

    unit: ClassVar[str] = "nats"

    @abstractmethod
    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        """D(p, q): a number, or one a record."""

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        """What a reader of D(p, q) must know, a sentence each."""
        return ()


@dataclass(frozen=True)
class KullbackLeibler(Divergence):
    """KL(p || q) = E_p log p/q in nats: closed for two normals or two discrete ones, by quadrature with a Student.

    Infinite where p has mass that q has not: a person who knows the value, `Discrete([v], [1])`, against a density.

    >>> round(float(KullbackLeibler()(Normal(4.9, 0.001), Normal(-5, 1))), 6)
    51.959378
    """

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if isinstance(p, Samples) or isinstance(q, Samples):
            raise Undefined(f"KL needs two densities, and draws have none. {INSTEAD}")
        if isinstance(p, LocationScale) != isinstance(q, LocationScale):
            return unwrap(np.full(np.broadcast_shapes(p.shape, q.shape), np.inf))
        if isinstance(p, Normal) and isinstance(q, Normal):
            return normal_divergence(p.mean, p.variance, q.mean, q.variance)
        if isinstance(p, LocationScale):  # the difference of the logs is 0 where p = q, whatever the quadrature
            return unwrap(np.maximum(p.expected(lambda x: p.log_density(x) - q.log_density(x), len(q.shape)), 0.0))
        return unwrap(np.maximum(Log().expected(p, q) - p.entropy, 0.0))  # what is below 0 is rounding

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        if isinstance(p, LocationScale) != isinstance(q, LocationScale):
            return (POINT_MASS,)
        return (SUPPORT,) if isinstance(p, Discrete) and np.isinf(self(p, q)).any() else ()


POINT_MASS = "KL of a point mass and a density is infinite: use LossInduced, or give the agency a measurement variance."
SUPPORT = "KL is infinite: the agency gives probability to values that the other thinks impossible."


def normal_divergence(mean: Numbers, variance: Numbers, other_mean: Numbers, other_variance: Numbers) -> Numbers:
    """KL(N(m, v) || N(m', v')) = (v/v' - 1 - log v/v')/2 + (m - m')^2/(2 v')."""
    excess = (variance - other_variance) / other_variance
    return unwrap(np.maximum(excess - np.log1p(excess), 0.0) / 2 + (mean - other_mean) ** 2 / (2 * other_variance))


@dataclass(frozen=True)
class PlugIn(Divergence):
    """KL of the two normals with the same means and variances; right for draws from normal posteriors, near or far.

    >>> round(float(PlugIn()(Normal(0, 1), Normal(1, 1))), 6)
    0.5
    """

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if not all(np.all(np.isfinite(belief.variance) & (np.asarray(belief.variance) > 0)) for belief in (p, q)):
            raise Undefined("the normal plug-in needs two variances that are finite and above 0: use LossInduced.")
        return normal_divergence(p.mean, p.variance, q.mean, q.variance)

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        sentences = []
        for who, belief in (("the agency's", p), ("the other's", q)):
            if isinstance(belief, Atoms):
                skew, kurtosis = _shape(belief)
                if far := int(((np.abs(skew) > MOST_SKEW) | (np.abs(kurtosis) > MOST_KURTOSIS)).sum()):
                    which = f"{far} of {np.size(skew)} of {who} beliefs"
                    sentences.append(f"{which} are not normal, and the plug-in takes them so.")
            elif not isinstance(belief, Normal):
                sentences.append(f"{who} belief is a {type(belief).__name__}, and the plug-in takes it for normal.")
        return tuple(sentences)


def _shape(p: Atoms) -> tuple[Floats, Floats]:
    """Skewness and excess kurtosis."""
    off = p.atoms[0] - np.expand_dims(p.mean, -1)
    second, third, fourth = ((p.atoms[1] * off**power).sum(axis=-1) for power in (2, 3, 4))
    return third / second**1.5, fourth / second**2 - 3


@dataclass(frozen=True)
class Neighbors(Divergence):
    """KL from the draws of two posteriors, by distances to the k-th nearest draw.

    log of the distance to the k-th of q over that to the k-th other of p, its mean, plus log(n_q/(n_p - 1)). It assumes no
    shape, and saturates: with 4,000 draws a true 52 comes out as 11. Above 3 it is a lower bound, and the notes say so.
    Reference: Wang, Kulkarni, Verdu (2009), IEEE Trans. Inf. Theory 55, eq. 5.
    """

    k: Annotated[int, Range(1)] = 5

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if not (isinstance(p, Samples) and isinstance(q, Samples)):
            raise Undefined("Neighbors compares Samples with Samples; other distributions have a KL in closed form.")
        if not all(np.allclose(belief.atoms[1], 1 / belief.atoms[1].shape[-1], rtol=1e-9) for belief in (p, q)):
            raise Undefined("Neighbors needs draws of equal weight: draw again by the weights, or use PlugIn.")
        if min(p.atoms[0].shape[-1] - 1, q.atoms[0].shape[-1]) < self.k:
            raise Undefined(f"Neighbors needs more than {self.k} draws on both sides.")
        return unwrap(for_each_record(self._of_draws)(*p.atoms, *q.atoms))

    def _of_draws(self, x: Floats, _: Floats, y: Floats, __: Floats) -> float:
        from scipy.spatial import cKDTree

        points = x[:, np.newaxis]
        own = cKDTree(points).query(points, k=[self.k + 1])[0][:, 0]  # the nearest is the draw itself
        other = cKDTree(y[:, np.newaxis]).query(points, k=[self.k])[0][:, 0]
        if (own == 0).any() or (other == 0).any():
            instead = "use LossInduced for point masses"
            raise Undefined(f"more than {self.k} draws coincide, and Neighbors needs a density: {instead}.")
        return float(np.mean(np.log(other / own)) + np.log(len(y) / (len(x) - 1)))

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        estimates = np.atleast_1d(self(p, q))
        far = int((estimates > TRUSTED_TO).sum())
        if not far:
            return ()
        which = f"{far} of {estimates.size} estimates are" if estimates.size > 1 else "the estimate is"
        return (f"{which} above {TRUSTED_TO:g} nats, where nearest neighbors saturate: a lower bound. Use PlugIn.",)


@dataclass(frozen=True)
class WassersteinDistance(Divergence):
    """What moving one belief into the other costs, in the variable's unit: (E |X - Y|^order)^(1/order), best coupled.

    Closed for two normals, exact for two sets of atoms; it never saturates and does not mind point masses.

    >>> round(float(WassersteinDistance()(Normal(4.9, 0.001), Normal(-5, 1))), 3)
    9.947
    """

    unit: ClassVar[str] = "unit"
    order: Literal[1, 2] = 2

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if isinstance(p, Normal) and isinstance(q, Normal):
            shift, stretch = p.mean - q.mean, np.abs(p.scale - q.scale)
            if self.order == 2:
                return np.hypot(shift, stretch)
            z = np.where(stretch > 0, stretch, 1.0)  # E |shift + stretch Z|
            return unwrap(np.where(stretch > 0, Absolute().expected(Normal(shift, z**2), 0.0), np.abs(shift)))
        if not (isinstance(p, Atoms) and isinstance(q, Atoms)):
            raise Undefined("WassersteinDistance compares Normal with Normal or atoms with atoms: draw Samples.")
        return unwrap(for_each_record(self._transport)(*p.atoms, *q.atoms))

    def _transport(self, values: Floats, weights: Floats, others: Floats, mass: Floats) -> float:
        """Atoms in ascending order, coupled quantile by quantile."""
        first, second = np.cumsum(weights), np.cumsum(mass)
        steps = np.sort(np.concatenate([first, second]))
        length = np.diff(steps, prepend=0.0)
        middle = steps - length / 2
        gap = values[np.minimum(np.searchsorted(first, middle), len(values) - 1)]
        gap = np.abs(gap - others[np.minimum(np.searchsorted(second, middle), len(others) - 1)])
        return float((length * gap**self.order).sum() ** (1 / self.order))


@dataclass(frozen=True)
class LossInduced(Divergence):
    """What the agency expects to lose by the other's best action: D = E_A L(theta, a_other) - E_A L(theta, a_A).

    It has the unit of the loss, so that D + U_A = E_A L(theta, a_other) is one number with one meaning. Log loss makes it
    KL; quadratic loss the squared distance of the means. It is 0 for any two beliefs with the same best action.

    >>> round(float(LossInduced()(Normal(4.9, 0.001), Normal(-5, 1))), 6)
    98.01
    """

    loss: Loss = field(default=Quadratic())

    @property
    def unit(self) -> str:  # type: ignore[override]
        return self.loss.unit

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if isinstance(self.loss, Log):
            return KullbackLeibler()(p, q)
        least = self.loss.uncertainty(p)
        if not np.isfinite(least).all():
            raise Undefined("the agency's uncertainty is infinite under this loss: use Bounded, Absolute or ZeroOne.")
        return unwrap(np.maximum(self.loss.expected(p, self.loss.best(q)) - least, 0.0))  # below 0 is rounding

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        return KullbackLeibler().notes(p, q) if isinstance(self.loss, Log) else ()


DIVERGENCES: Mapping[str, type[Divergence]] = {
    "kl": KullbackLeibler, "plug-in": PlugIn, "neighbors": Neighbors, "wasserstein": WassersteinDistance,
    "loss": LossInduced,
}  # fmt: skip
