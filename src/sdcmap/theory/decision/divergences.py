"""Divergences D(agency, other): how far another belief is from the agency's.

Trottini (2001), definition 3 leaves D open. Each divergence has a `unit`. Its `notes(p, q)` state what the number does not
show, such as a saturated estimate or a point mass. A divergence may be infinite; nothing is clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Floats, Range, Undefined, Value
from sdcmap.theory.decision.atoms import ALTERNATIVES, Atoms, Discrete, Samples, for_each_record
from sdcmap.theory.decision.distributions import Distribution, LocationScale, Normal, unwrap
from sdcmap.theory.decision.losses import Absolute, Log, Loss, Quadratic
from sdcmap.theory.parameter_checks import Numbers

TRUSTED_NATS = 3.0  # above this, nearest-neighbor estimates from some thousand draws are far too low
MAX_SKEWNESS, MAX_KURTOSIS = 0.5, 1.0  # up to these, the plug-in accepts draws as normal without a note


@dataclass(frozen=True)
class Divergence(Value, ABC):
    """The base of every divergence: at least 0, and 0 if both beliefs are equal."""

    unit: ClassVar[str] = "nats"

    @abstractmethod
    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        """Return D(p, q): a number, or one per record."""

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        """Return sentences that a reader of D(p, q) must know."""
        return ()


@dataclass(frozen=True)
class KullbackLeibler(Divergence):
    """KL(p || q) = E_p log p/q in nats; in closed form for two normals or two discrete ones, otherwise by quadrature.

    It is infinite if p has mass where q has none, such as a known value, `Discrete([v], [1])`, against a density.

    >>> round(float(KullbackLeibler()(Normal(4.9, 0.001), Normal(-5, 1))), 6)
    51.959378
    """

    def __call__(self, p: Distribution, q: Distribution) -> Numbers:
        if isinstance(p, Samples) or isinstance(q, Samples):
            raise Undefined(f"KL needs two densities, and draws have none. {ALTERNATIVES}")
        if isinstance(p, LocationScale) != isinstance(q, LocationScale):
            return unwrap(np.full(np.broadcast_shapes(p.shape, q.shape), np.inf))
        if isinstance(p, Normal) and isinstance(q, Normal):
            return normal_divergence(p.mean, p.variance, q.mean, q.variance)
        if isinstance(p, LocationScale):  # a difference of logs is exactly 0 where p = q
            return unwrap(np.maximum(p.expectation(lambda x: p.log_density(x) - q.log_density(x), len(q.shape)), 0.0))
        return unwrap(np.maximum(Log().expected_loss(p, q) - p.entropy, 0.0))  # below 0 is rounding

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        if isinstance(p, LocationScale) != isinstance(q, LocationScale):
            return (POINT_MASS,)
        return (SUPPORT,) if isinstance(p, Discrete) and np.isinf(self(p, q)).any() else ()


POINT_MASS = "KL of a point mass and a density is infinite: use LossInduced, or give the agency a measurement variance."
SUPPORT = "KL is infinite: the agency gives probability to values that are impossible in the other belief."


def normal_divergence(mean: Numbers, variance: Numbers, other_mean: Numbers, other_variance: Numbers) -> Numbers:
    """Return KL(N(m, v) || N(m', v')) = (v/v' - 1 - log v/v')/2 + (m - m')^2/(2 v')."""
    excess = (variance - other_variance) / other_variance
    return unwrap(np.maximum(excess - np.log1p(excess), 0.0) / 2 + (mean - other_mean) ** 2 / (2 * other_variance))


@dataclass(frozen=True)
class PlugIn(Divergence):
    """KL of the two normals with the same means and variances; correct for draws from normal posteriors, near or far.

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
                if far := int(((np.abs(skew) > MAX_SKEWNESS) | (np.abs(kurtosis) > MAX_KURTOSIS)).sum()):
                    which = f"{far} of {np.size(skew)} of {who} beliefs"
                    sentences.append(f"{which} are not normal, but the plug-in treats them as normal.")
            elif not isinstance(belief, Normal):
                sentences.append(f"{who} belief is a {type(belief).__name__}, but the plug-in treats it as normal.")
        return tuple(sentences)


def _shape(p: Atoms) -> tuple[Floats, Floats]:
    """Return skewness and excess kurtosis."""
    off = p.atoms[0] - np.expand_dims(p.mean, -1)
    second, third, fourth = ((p.atoms[1] * off**power).sum(axis=-1) for power in (2, 3, 4))
    return third / second**1.5, fourth / second**2 - 3


@dataclass(frozen=True)
class Neighbors(Divergence):
    """KL from the draws of two posteriors, by distances to the k-th nearest draw.

    It is the mean log ratio of the distances to the k-th draw of q and to the k-th other draw of p, plus
    log(n_q/(n_p - 1)). It assumes no distribution, but it saturates: with 4,000 draws a true 52 is estimated as 11. Above
    3 it is a lower bound, and the notes say so.
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
        own = cKDTree(points).query(points, k=[self.k + 1])[0][:, 0]  # the nearest draw is the draw itself
        other = cKDTree(y[:, np.newaxis]).query(points, k=[self.k])[0][:, 0]
        if (own == 0).any() or (other == 0).any():
            instead = "use LossInduced for point masses"
            raise Undefined(f"more than {self.k} draws coincide, and Neighbors needs a density: {instead}.")
        return float(np.mean(np.log(other / own)) + np.log(len(y) / (len(x) - 1)))

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        estimates = np.atleast_1d(self(p, q))
        far = int((estimates > TRUSTED_NATS).sum())
        if not far:
            return ()
        which = f"{far} of {estimates.size} estimates are" if estimates.size > 1 else "the estimate is"
        return (f"{which} above {TRUSTED_NATS:g} nats, where nearest neighbors saturate: a lower bound. Use PlugIn.",)


@dataclass(frozen=True)
class WassersteinDistance(Divergence):
    """The cost of moving one belief into the other, in the variable's unit: min (E |X - Y|^order)^(1/order).

    In closed form for two normals, exact for two sets of atoms. It never saturates and is defined for point masses.

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
            return unwrap(np.where(stretch > 0, Absolute().expected_loss(Normal(shift, z**2), 0.0), np.abs(shift)))
        if not (isinstance(p, Atoms) and isinstance(q, Atoms)):
            raise Undefined("WassersteinDistance compares Normal with Normal or atoms with atoms: draw Samples.")
        return unwrap(for_each_record(self._transport)(*p.atoms, *q.atoms))

    def _transport(self, values: Floats, weights: Floats, others: Floats, mass: Floats) -> float:
        """Return the distance of atoms in ascending order: the best coupling pairs equal quantiles."""
        # Between two steps of either distribution function, one atom of each is coupled.
        first, second = np.cumsum(weights), np.cumsum(mass)
        steps = np.sort(np.concatenate([first, second]))
        length = np.diff(steps, prepend=0.0)
        middle = steps - length / 2
        gap = values[np.minimum(np.searchsorted(first, middle), len(values) - 1)]
        gap = np.abs(gap - others[np.minimum(np.searchsorted(second, middle), len(others) - 1)])
        return float((length * gap**self.order).sum() ** (1 / self.order))


@dataclass(frozen=True)
class LossInduced(Divergence):
    """The agency's extra expected loss by the other's best action: D = E_A L(theta, a_other) - E_A L(theta, a_A).

    It has the unit of the loss, so that D + U_A = E_A L(theta, a_other) has a clear meaning. With log loss it is KL, with
    quadratic loss the squared distance of the means. It is 0 for any two beliefs with the same best action.

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
        return unwrap(np.maximum(self.loss.expected_loss(p, self.loss.best(q)) - least, 0.0))  # below 0 is rounding

    def notes(self, p: Distribution, q: Distribution) -> tuple[str, ...]:
        return KullbackLeibler().notes(p, q) if isinstance(self.loss, Log) else ()


DIVERGENCES: Mapping[str, type[Divergence]] = {
    "kl": KullbackLeibler,
    "plug-in": PlugIn,
    "neighbors": Neighbors,
    "wasserstein": WassersteinDistance,
    "loss": LossInduced,
}
