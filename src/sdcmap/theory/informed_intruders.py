"""Intruders who correct their percentile estimate for the noise, because they know lambda or estimate it.

Duncan, Keller-McNulty, Stokes (2001), section 3.2, name both without formulas. The formulas here are exact for normal data.
Y_(k) has the bias E_k sqrt(s2+l2) - z_p s for the percentile xi_p = mu + z_p s. The intruder estimates sqrt(s2+l2) by S_Y,
the standard deviation of the masked file, and s by some s^. The estimate of the percentile is T = Y_(k) - E_k S_Y + z_p s^:

    MSE = (s2+l2)/n + E{ S_Y (Q - E_k) + z_p (s^ - s) }^2,   Q = (Y_(k) - Ybar)/S_Y.

Q is independent of S_Y (Basu), E Q = E_k/c4 and E Q^2 = V_k - 1/n + E_k^2 with c4 = E S_Y/sqrt(s2+l2), so one integral over
the chi distribution of S_Y remains. An intruder who relies on normality uses T = Ybar + z_p s^ instead:
MSE = (s2+l2)/n + z_p^2 E(s^ - s)^2.

Publishing lambda raises R wherever the bias matters. In a narrow band of small noise it does not: there the noise just
compensates for E_k < z_p, so Y_(k) is nearly unbiased, and the correction only adds variance (n = 200, p = 0.99: l2 from
0.05 to 0.14).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, ndtri

from sdcmap.kernels.arrays import Floats
from sdcmap.theory.joint_ranks import normal_moments
from sdcmap.theory.parameter_checks import noise_variances, reciprocal, require
from sdcmap.theory.positions import rank_of

QUADRATURE_POINTS = 160
NODES, WEIGHTS = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)


def noise_known(
    noise_variance: ArrayLike, *, n: int, variance: float, p: float, trusts_normality: bool = False
) -> Floats:
    """Return R of an intruder who knows lambda: s^ = sqrt(max(S_Y^2 - l2, 0)).

    Parameters
    ----------
    p : the percentile of the population that the target is at, in (0, 1), with n p at least 1.
    trusts_normality : the intruder knows that the data are normal and uses Ybar + z_p s^; otherwise Y_(k) is corrected.

    >>> print(f"{noise_known(1.0, n=200, variance=1.0, p=0.99):.3f}")
    6.958
    """
    require(n=n, variance=variance, p=p)
    l2 = noise_variances(noise_variance)
    masked = np.atleast_1d(variance + l2)
    s, weight = _chi(n, np.atleast_1d(np.sqrt(l2)) / np.sqrt(masked))
    left = np.maximum(masked[..., None] * s**2 - np.atleast_1d(l2)[..., None], 0.0)
    return _risk(l2, n, variance, p, (s, weight), (np.sqrt(left), left), trusts_normality)


def noise_guessed(
    noise_variance: ArrayLike,
    *,
    n: int,
    variance: float,
    p: float,
    prior_df: float,
    prior_variance: float | None = None,
    trusts_normality: bool = False,
) -> Floats:
    """Return R of an intruder who estimates lambda from the masked variance and a prior belief about s.

    The belief s0^2 comes from experience with similar data: it is distributed as prior_variance chi^2_v/v, like the
    variance of v + 1 unmasked values, independently of this file. The intruder takes l2^ = max(S_Y^2 - s0^2, 0), hence
    s^ = sqrt(S_Y^2 - l2^) = min(S_Y, s0). R is averaged over s0.

    Parameters
    ----------
    prior_df : v, the strength of the belief, above 0; infinite for certainty.
    prior_variance : the center of the belief, in unit^2; by default the true variance.

    >>> print(f"{noise_guessed(1.0, n=200, variance=1.0, p=0.99, prior_df=100):.3f}")
    8.674
    """
    center = variance if prior_variance is None else prior_variance
    require(n=n, variance=variance, p=p, prior_df=prior_df, prior_variance=center)
    l2 = noise_variances(noise_variance)
    masked = np.atleast_1d(variance + l2)
    s, weight = _chi(n, np.sqrt(center / masked))
    seen = np.sqrt(masked)[..., None] * s
    if math.isinf(prior_df):
        first = np.minimum(seen, math.sqrt(center))
        return _risk(l2, n, variance, p, (s, weight), (first, first**2), trusts_normality)
    b = prior_df / 2
    v = b * seen**2 / center
    above = gammaincc(b, v)  # P(s0 > S_Y)
    c4 = math.exp(gammaln(b + 0.5) - gammaln(b)) / math.sqrt(b)
    first = math.sqrt(center) * c4 * gammainc(b + 0.5, v) + seen * above  # E(s^ | S_Y)
    second = center * gammainc(b + 1, v) + seen**2 * above  # E(s^^2 | S_Y)
    return _risk(l2, n, variance, p, (s, weight), (first, second), trusts_normality)


def _risk(
    l2: Floats,
    n: int,
    variance: float,
    p: float,
    nodes: tuple[Floats, Floats],
    moments: tuple[Floats, Floats],
    trusts_normality: bool,
) -> Floats:
    """Return 1/MSE from the nodes s of S_Y/sqrt(s2+l2), with weights, and the first two moments of s^ given S_Y."""
    (s, weight), (first, second) = nodes, moments
    masked, truth, z = np.atleast_1d(variance + l2), math.sqrt(variance), float(ndtri(p))
    mse = masked / n + z**2 * (weight * (second - 2 * truth * first + variance)).sum(axis=-1)
    if not trusts_normality:
        # The correction of Y_(k) by E_k S_Y adds its own variance, and its covariance with the error of s^.
        mean, spread = normal_moments(rank_of(p, n), n)
        excess = 1 / (weight * s).sum(axis=-1) - 1  # 1/c4 - 1
        mse += masked * (spread - 1 / n - 2 * mean**2 * excess)  # E S_Y^2 (Q - E_k)^2
        mse += 2 * z * np.sqrt(masked) * mean * excess * (weight * s * (first - truth)).sum(axis=-1)
    return reciprocal(mse.reshape(l2.shape))


def _chi(n: int, split: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights for S/sigma of n normal values, denser on both sides of `split`, where s^ has its kink."""
    a = (n - 1) / 2
    low, high = math.sqrt(gammaincinv(a, 1e-28) / a), math.sqrt(gammainccinv(a, 1e-28) / a)
    middle = np.clip(split, low, high)[..., None]
    # The substitution u^2 concentrates the nodes at the kink, and its derivative 2u vanishes there.
    u, du = (1 + NODES) / 2, WEIGHTS / 2
    s = np.concatenate([middle - (middle - low) * u**2, middle + (high - middle) * u**2], axis=-1)
    ds = np.concatenate([(middle - low) * 2 * u * du, (high - middle) * 2 * u * du], axis=-1)
    log = (n - 2) * np.log(np.maximum(s, 1e-300)) - a * s**2
    weight = ds * np.exp(log - log.max(axis=-1, keepdims=True))
    return s, weight / weight.sum(axis=-1, keepdims=True)
