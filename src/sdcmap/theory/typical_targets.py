"""A target that is typical of the data: the intruder uses the mean of the masked file, or the record they have linked.

Duncan, Keller-McNulty, Stokes (2001), section 3.1. Y_i = x_i + e_i, E e = 0, Var e = `noise_variance` (l2), X has mean mu
and `variance` (s2), `n` records. No distribution is assumed. R and U are in 1/(unit of X)^2.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.parameter_checks import noise_variances, reciprocal, records, require


def utility(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Return U of a user who estimates the mean: 1/E(Ybar - mu)^2 = n/(s2 + l2).

    >>> float(utility(0.25, n=200, variance=1.0))
    160.0
    """
    require(n=n, variance=variance)
    return reciprocal((variance + noise_variances(noise_variance)) / n)


def utility_of_variance(noise_variance: ArrayLike, *, n: int, variance: float, noise_known: bool) -> Floats:
    """Return U of a user who estimates the variance s2 of normal data from S_Y^2: 1/MSE.

    Without lambda the estimate has bias l2, and MSE = 2(s2 + l2)^2/(n - 1) + l2^2. If lambda is published, the user
    subtracts l2, and the second term vanishes. (The mean needs no lambda, so publishing it does not change `utility`.)
    """
    require(n=n, variance=variance)
    l2 = noise_variances(noise_variance)
    spread = 2 * (variance + l2) ** 2 / (n - 1)
    return reciprocal(spread if noise_known else spread + l2**2)


def in_population(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Return R of the attack Ybar on a target of the population outside the sample: n/((n+1)s2 + l2) (eq. 2).

    >>> print(f"{in_population(0.21, n=200, variance=1.0):.6f}")
    0.993986
    """
    require(n=n, variance=variance)
    return reciprocal(((n + 1) * variance + noise_variances(noise_variance)) / n)  # eq. 2


def in_sample(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Return R of the attack Ybar on a target known to be one of the n records: n/((n-1)s2 + l2), exact.

    The paper uses the risk of eq. 2 here. But the target itself is part of Ybar, which gives n - 1 instead of n + 1.
    """
    require(n=n, variance=variance)
    return reciprocal(((n - 1) * variance + noise_variances(noise_variance)) / n)


def in_file(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """Return R of the attack Ybar on the records x of one file: n/(l2 + sum (x_i - xbar)^2), the exact form of eq. 3."""
    values = records(x)
    return reciprocal((noise_variances(noise_variance) + ((values - values.mean()) ** 2).sum()) / len(values))


def perhaps_in_sample(noise_variance: ArrayLike, *, n: int, variance: float, sampling_fraction: float) -> Floats:
    """Return R of the attack Ybar on a target that is in the sample with probability f: n/((n+1-2f)s2 + l2).

    f is the sampling fraction. f = 0 is eq. 2, f = 1 (a census) is `in_sample`.
    """
    require(n=n, variance=variance, sampling_fraction=sampling_fraction)
    return reciprocal(((n + 1 - 2 * sampling_fraction) * variance + noise_variances(noise_variance)) / n)


def fixed_target(noise_variance: ArrayLike, *, n: int, variance: float, distance: float) -> Floats:
    """Return R for one target outside the sample at `distance` d = tau - mu from the mean: n/(s2 + l2 + n d^2) (eq. 1)."""
    require(n=n, variance=variance, distance=distance)
    return reciprocal((variance + noise_variances(noise_variance)) / n + distance**2)  # eq. 1


def each_record(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """Return R of the attack Ybar on each record of a file, given x: R_i = n/(l2 + n(xbar - x_i)^2).

    The result has one more axis than `noise_variance`, for the records.
    """
    values = records(x)
    return reciprocal(noise_variances(noise_variance)[..., None] / len(values) + (values - values.mean()) ** 2)


def largest_in_population(noise_variance: ArrayLike, *, n: int, variance: float) -> Floats:
    """Return the largest R over all targets of the population, at tau = mu: n/(s2 + l2), which is U (after eq. 1)."""
    return fixed_target(noise_variance, n=n, variance=variance, distance=0.0)


def largest_in_file(noise_variance: ArrayLike, x: ArrayLike) -> Floats:
    """Return the largest R over the records of a file, that of the record nearest to the mean (after eq. 1)."""
    worst: Floats = each_record(noise_variance, x).max(axis=-1)
    return worst


def index_known(noise_variance: ArrayLike) -> Floats:
    """Return R of an intruder who knows the target's record and uses its masked value: 1/l2 (eq. 4), infinite at l2 = 0.

    >>> float(index_known(0.2)), float(index_known(0))
    (5.0, inf)
    """
    return reciprocal(noise_variances(noise_variance))  # eq. 4


# The protection by sampling: a linked record need not be the target's.
#
# Duncan, Keller-McNulty, Stokes (2001), end of section 3.1: "even an exact match ... is insufficient to guarantee that
# the linked record corresponds to the target". The paper gives no formula; the model below is our own.


def link_probability(sampling_fraction: float, *, doubles: float) -> float:
    """Return P(the only record that matches the target is the target's) = 1/(1 + m(1-f)).

    Parameters
    ----------
    sampling_fraction : f in [0, 1], the probability that an entity is in the sample; in a census (1) the link is certain.
    doubles : m, the mean number of other entities of the population with the target's key (Poisson), at least 0.

    Poisson(mf) other entities with the key are in the sample. Exactly one record matches if it is the target's, with
    probability f e^-mf, or if the target was not sampled and one other entity was: (1-f) mf e^-mf.

    >>> print(f"{link_probability(0.1, doubles=2.0):.4f} {link_probability(1.0, doubles=2.0):.0f}")
    0.3571 1
    """
    require(sampling_fraction=sampling_fraction, doubles=doubles)
    return 1 / (1 + doubles * (1 - sampling_fraction))


def linked_record(
    noise_variance: ArrayLike, *, variance: float, link_probability: float, weighs_doubt: bool = False
) -> Floats:
    """Return R of an intruder whose linked record is the target's with probability q, and another entity's otherwise.

    The intruder uses the masked value: MSE = l2 + 2(1-q)s2 (eq. 4 at q = 1). With `weighs_doubt` they know mu, s2, l2 and q
    and use the best linear estimate mu + q s2/(s2+l2) (Y - mu): MSE = s2 - q^2 s2^2/(s2+l2); at q = 1 that is
    R = 1/l2 + 1/s2. Entities that share a key are assumed to differ in X like any two entities.

    >>> print(f"{linked_record(0.2, variance=1.0, link_probability=0.9):.4f}")
    2.5000
    """
    require(variance=variance, link_probability=link_probability)
    l2, q = noise_variances(noise_variance), link_probability
    if weighs_doubt:
        return reciprocal(variance * (l2 + (1 - q**2) * variance) / (variance + l2))
    return reciprocal(l2 + 2 * (1 - q) * variance)
