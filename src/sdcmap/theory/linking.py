"""The protection that sampling gives: a linked record need not be the target's.

Duncan, Keller-McNulty, Stokes (2001), end of section 3.1: "even an exact match ... is insufficient to guarantee that the
linked record corresponds to the target". The paper gives no formula; the model is ours and stated below.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.checks import noise_variances, reciprocal, require


def link_probability(sampling_fraction: float, *, doubles: float) -> float:
    """P(the one record of the sample that matches the target is the target's) = (1 - e^-m(1-f))/(m(1-f)).

    Parameters
    ----------
    sampling_fraction : f in [0, 1], the chance of an entity to be in the sample; 1 is a census, and the link is certain.
    doubles : m, how many other entities of the population share the target's key on average (Poisson), at least 0.

    Given one match in the sample, Poisson(m(1-f)) entities with the same key were not sampled, and each of them and the
    matched one is the target with the same chance: P = E 1/(1 + Poisson(m(1-f))).

    >>> print(f"{link_probability(0.1, doubles=2.0):.4f} {link_probability(1.0, doubles=2.0):.0f}")
    0.4637 1
    """
    require(sampling_fraction=sampling_fraction, doubles=doubles)
    hidden = doubles * (1 - sampling_fraction)
    return 1.0 if hidden == 0 else -math.expm1(-hidden) / hidden


def linked(
    noise_variance: ArrayLike, *, variance: float, link_probability: float, weighs_doubt: bool = False
) -> Floats:
    """R of a snooper whose linked record is his target's with probability q, another entity's otherwise.

    He takes the masked value: MSE = l2 + 2(1-q)s2 (eq. 4 at q = 1). With `weighs_doubt` he knows mu, s2, l2 and q and takes
    the best linear estimate mu + q s2/(s2+l2) (Y - mu): MSE = s2 - q^2 s2^2/(s2+l2); at q = 1 that is R = 1/l2 + 1/s2.
    Entities that share a key are taken to differ in X as any two do.

    >>> print(f"{linked(0.2, variance=1.0, link_probability=0.9):.4f}")
    2.5000
    """
    require(variance=variance, link_probability=link_probability)
    l2, q = noise_variances(noise_variance), link_probability
    if weighs_doubt:
        return reciprocal(variance * (l2 + (1 - q**2) * variance) / (variance + l2))
    return reciprocal(l2 + 2 * (1 - q) * variance)
