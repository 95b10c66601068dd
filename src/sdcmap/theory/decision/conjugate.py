"""Additive noise with normal models: the posteriors of intruder, society and agency in closed form.

y = x + e, e ~ N(0, l2), x ~ N(mu, s2). The intruder has linked the target and sees its y. Society wants mu and sees the
mean of the released file. The agency has the original. All of them know l2 (assumption 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.core import Floats, Positive, Range, Value
from sdcmap.theory.decision.decision_criterion import GlobalRisk, GlobalUtility, Options, global_risk, global_utility
from sdcmap.theory.decision.distributions import Normal, Student, unwrap
from sdcmap.theory.parameter_checks import Numbers, require

NODES, MASSES = np.polynomial.hermite_e.hermegauss(40)


def normal_posterior(prior: Normal, observed: ArrayLike, variance: ArrayLike) -> Normal:
    """Return the belief after seeing `observed` ~ N(theta, variance): precisions add up; vectorized over all three.

    >>> normal_posterior(Normal(0, 1), 2.5, 0.25)
    Normal(mean=2, variance=0.2)
    """
    require(observed=observed, variance=variance)
    data, error_variance = unwrap(observed), unwrap(variance)
    share = prior.variance / (prior.variance + error_variance)  # weight of the data in the posterior mean
    return Normal(prior.mean + share * (data - prior.mean), share * error_variance)


def mean_posterior(mean: float, variance: float, n: int) -> Student:
    """Return the belief about mu from the mean and the sample variance of n normal values only: Student with n - 1 df."""
    require(mean=mean, variance=variance, n=n)
    return Student(mean, np.sqrt(variance / n), n - 1)


@dataclass(frozen=True)
class NoiseScenario(Value):
    """A file of n records with variance s2, released as y = x + e with Var e = l2 (all in unit^2).

    >>> scenario = NoiseScenario(n=200, variance=1.0, noise_variance=2.0)
    >>> round(float(scenario.intruder(Normal(0, 1), 2.5).variance), 6)
    0.666667
    """

    n: Annotated[int, Range(2)]
    variance: Positive = 1.0
    noise_variance: Positive = 1.0

    def intruder(self, prior: Normal, released: ArrayLike) -> Normal:
        """Return the intruder's belief about x_t from its released value; vectorized over priors or records."""
        return normal_posterior(prior, released, self.noise_variance)

    def society(self, prior: Normal, released_mean: ArrayLike) -> Normal:
        """Return society's belief about mu from the mean of the released file, which has variance (s2 + l2)/n."""
        return normal_posterior(prior, released_mean, (self.variance + self.noise_variance) / self.n)

    def agency(self, value: ArrayLike, measurement_variance: ArrayLike) -> Normal:
        """Return the agency's belief about x_t: the original value, with its measurement error."""
        return Normal(unwrap(value), unwrap(measurement_variance))

    def agency_of_mean(self, prior: Normal, mean: ArrayLike) -> Normal:
        """Return the agency's belief about mu from the mean of the original."""
        return normal_posterior(prior, mean, self.variance / self.n)

    def expected_risk(self, agency: Normal, prior: Normal, value: float, **how: Unpack[Options]) -> GlobalRisk:
        """Return the mean G.RISK over the noise, for a target whose original value is `value`.

        The quadrature is Gauss-Hermite, exact for KL and for quadratic loss. how : as in `global_risk`.
        """
        pair = _over_noise(value, self.noise_variance, lambda y: global_risk(agency, self.intruder(prior, y), **how))
        return GlobalRisk(*pair)

    def expected_utility(self, agency: Normal, prior: Normal, mean: float, **how: Unpack[Options]) -> GlobalUtility:
        """Return the mean G.UTILITY over the noise, for a file whose original mean is `mean`."""
        spread = self.noise_variance / self.n
        pair = _over_noise(mean, spread, lambda y: global_utility(agency, self.society(prior, y), **how))
        return GlobalUtility(*pair)


def _over_noise(
    value: float, variance: float, pair_at: Callable[[Floats], tuple[Numbers, Numbers]]
) -> tuple[float, float]:
    require(value=value)
    pair = np.broadcast_arrays(*pair_at(value + np.sqrt(variance) * NODES))
    first, second = (float(MASSES @ values / MASSES.sum()) for values in pair)
    return first, second
