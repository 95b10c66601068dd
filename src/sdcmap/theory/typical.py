"""A target that is typical of the data: the snooper takes the mean of the masked file, or the record he has linked.

Duncan, Keller-McNulty, Stokes (2001), section 3.1. Y_i = x_i + e_i, E e = 0, Var e = `noise_variance` (l2), X has mean mu
and `variance` (s2), `n` records. No shape of the distribution is assumed. R and U are in 1/(unit of X)^2.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.parameter_checks import noise_variances, reciprocal, records, require


def utility(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """U of a user who estimates the mean: U = 1/E(Ybar - mu)^2 = n/(s2 + l2).

    >>> float(utility(0.25, n=200, variance=1.0))
    160.0
    """
    require(n=n, variance=variance)
    return reciprocal((variance + noise_variances(noise_variance)) / n)


def utility_of_variance(noise_variance: ArrayLike, *, n: int, variance: float, noise_known: bool) -> Floats:
    """U of a user who estimates the data variance s2 of normal data from S_Y^2: 1/MSE.

    Without lambda he is off by l2, MSE = 2(s2 + l2)^2/(n - 1) + l2^2; with lambda published he subtracts it and the
    second term is gone. (The mean of eq. U above needs no lambda, so publishing it changes nothing there.)
    """
    require(n=n, variance=variance)
    l2 = noise_variances(noise_variance)
    spread = 2 * (variance + l2) ** 2 / (n - 1)
    return reciprocal(spread if noise_known else spread + l2**2)


def in_population(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Target anywhere in the population but not in the sample, attack Ybar: R = n/((n+1)s2 + l2) (eq. 2).

    >>> print(f"{in_population(0.21, n=200, variance=1.0):.6f}")
    0.993986
    """
    require(n=n, variance=variance)
    return reciprocal(((n + 1) * variance + noise_variances(noise_variance)) / n)  # eq. 2


def in_sample(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Target known to be one of the n records, attack Ybar: R = n/((n-1)s2 + l2), exact.

    The paper says that this state has the risk of eq. 2; the target is itself in Ybar, so it has n - 1, not n + 1.
    """
    require(n=n, variance=variance)
    return reciprocal(((n - 1) * variance + noise_variances(noise_variance)) / n)


def in_file(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """The same for the records x of one file: R = n/(l2 + sum (x_i - xbar)^2), the exact form of eq. 3."""
    values = records(x)
    return reciprocal((noise_variances(noise_variance) + ((values - values.mean()) ** 2).sum()) / len(values))


def perhaps_in_sample(noise_variance: ArrayLike, *, n: int, variance: float, sampling_fraction: float) -> Floats:
    """Target in the sample with probability f, the sampling fraction: R = n/((n+1-2f)s2 + l2).

    f = 0 is eq. 2, f = 1 (a census) is `in_sample`.
    """
    require(n=n, variance=variance, sampling_fraction=sampling_fraction)
    return reciprocal(((n + 1 - 2 * sampling_fraction) * variance + noise_variances(noise_variance)) / n)


def fixed_target(noise_variance: ArrayLike, *, n: int, variance: float, distance: float) -> Floats:
    """One target outside the sample whose value is `distance` = tau - mu off the mean: R = n/(s2 + l2 + n d^2) (eq. 1)."""
    require(n=n, variance=variance, distance=distance)
    return reciprocal((variance + noise_variances(noise_variance)) / n + distance**2)  # eq. 1


def each_record(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """Each record of a file as the fixed target of Ybar, given x: R_i = n/(l2 + n(xbar - x_i)^2).

    The result has one more axis than `noise_variance`, the records.
    """
    values = records(x)
    return reciprocal(noise_variances(noise_variance)[..., None] / len(values) + (values - values.mean()) ** 2)


def largest_in_population(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """The largest R over all targets of the population: at tau = mu, n/(s2 + l2), which is U (after eq. 1)."""
    return fixed_target(noise_variance, n=n, variance=variance, distance=0.0)


def largest_in_file(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """The largest R over the records of a file: that of the record nearest to the mean of the file (after eq. 1)."""
    worst: Floats = each_record(noise_variance, x).max(axis=-1)
    return worst


def index_known(noise_variance: ArrayLike) -> Floats:
    """The snooper knows which record is his target's and takes its masked value: R = 1/l2 (eq. 4), infinite at l2 = 0.

    >>> float(index_known(0.2)), float(index_known(0))
    (5.0, inf)
    """
    return reciprocal(noise_variances(noise_variance))  # eq. 4


# The protection that sampling gives: a linked record need not be the target's.
#
# Duncan, Keller-McNulty, Stokes (2001), end of section 3.1: "even an exact match ... is insufficient to guarantee that
# the linked record corresponds to the target". The paper gives no formula; the model is ours and stated below.


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
