"""Additive noise from a mixture of normal distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sdcmap.core import (
    Array,
    Field,
    Fields,
    Generator,
    Microdata,
    Positive,
    Range,
    Roles,
    Trials,
    format_percent,
    format_strength,
)
from sdcmap.core.likelihood import Mixture
from sdcmap.kernels.masking.mixtures import centers, draw_mixture, draw_vectors, vector_centers
from sdcmap.kernels.masking.noise_covariance import covariance_root, unmixing_matrix
from sdcmap.methods._noise_likelihood import MIN_NOISE_SHARE, AdditiveNoise, MixtureFields, noise_shape


@dataclass(frozen=True, eq=False)
class VectorMixture:
    """Log density of released - known ~ sum_k shares_k N(centers_k, diag variances_k), for vectors.

    `known` and `released` hold the vectors; the density is called with row numbers.
    """

    shares: Array
    centers: Array
    variances: Array
    known: Array
    released: Array

    def __call__(self, known: Array, released: Array) -> Array:
        a, b = self.known[known.astype(np.intp)], self.released[released.astype(np.intp)]
        parts = []
        for share, center, variance in zip(self.shares, self.centers, self.variances, strict=True):
            distance = _square_distance((a + center) / np.sqrt(variance), b / np.sqrt(variance))
            parts.append(np.log(share) - 0.5 * np.log(variance).sum() - 0.5 * distance)
        return np.asarray(np.logaddexp.reduce(parts))


def _square_distance(a: Array, b: Array) -> Array:
    """Return |a - b|^2 along the last axis; for all pairs of rows, without storing their differences."""
    if a.ndim == 3 and a.shape[1] == 1 and b.shape[0] == 1:
        rows, columns = a[:, 0], b[0]
        return np.asarray((rows**2).sum(axis=1)[:, np.newaxis] + (columns**2).sum(axis=1) - 2 * rows @ columns.T)
    return np.asarray(((a - b) ** 2).sum(axis=-1))


@dataclass(frozen=True)
class MixtureNoise(AdditiveNoise):
    """Add noise Z = X + sqrt(d) L w with the correlations of X, where w is drawn from a mixture of normals.

    Most draws of normal noise are small. A mixture of two narrow components moves nearly every value away from the truth.

    Parameters
    ----------
    on : numeric variables to mask.
    variance : d, the noise covariance as a share of Cov X, at least 0 (0 is the identity).
    components : K, the number of normal distributions in the mixture; at least 2.
    shares : their weights w_1 ... w_K, which sum to 1; by default equal.
    centers : relative centers psi_1 ... psi_(K-1), in any unit; psi_K and the scale follow from mean 0 and variance 1
        of w. By default equally spaced; for K = 2 the centers are +sqrt(1 - sigma2) and -sqrt(1 - sigma2).
    sigma2 : the variance of each component as a share of the whole, in (0, 1); one for all, or one for each.
    root : the root L of Cov X. Unlike for normal noise, the choice matters: a mixture is not the same in all directions.
    joint : False: each coordinate of w is drawn separately from the mixture (Yancey et al.). True: one component is drawn
        for the whole record, N(theta_k, sigma2_k Cov X), where theta_k is a vector (Roque). This needs more components
        than variables, and no `centers`.
    rescale, keep_zeros, integers, lower, upper : as for Noise, in the same order.

    Formula: w_j ~ sum_k w_k N(theta_k, sigma2), psi_K = -(1/w_K) sum_(k<K) w_k psi_k, S = sum_k w_k psi_k^2,
    theta_k = sqrt((1 - sigma2)/S) psi_k. If the sigma2 differ, their weighted mean is used in the last formula. Joint:
    sum_k w_k theta_k = 0 and sum_k w_k theta_k theta_k' = (1 - sum_k w_k sigma2_k) I. Of the many solutions, the one
    nearest to the cosine basis is used.
    Missing values stay missing; records with missing values are left out of the covariance. Weights are not used: every
    record counts once. Households are not used: persons are masked one by one.

    Likelihood: an informed attacker inverts L and sees the mixture itself, which identifies nearly every record. Where
    L cannot be inverted (missing values, unknown variables, a singular symmetric root) and with bounds or kept zeros,
    normal noise with the same covariance is assumed.
    Reference: Yancey, Winkler, Creecy (2002), section 3.3 and appendix, with Z = X + sqrt(d) Y; Roque (2000).

    Examples
    --------
    >>> MixtureNoise(on=["income", "tax"], variance=0.05).text
    "MixtureNoise(on=['income', 'tax'], variance=0.05)"
    """

    label: ClassVar[str] = "Mixture noise"
    description: ClassVar[str] = (
        "Random noise from several narrow distributions is added to numbers, so that almost every value changes."
    )

    normal: ClassVar[bool] = False
    revision: ClassVar[int] = 2  # 2: eigenvectors have the same sign on every machine
    at_zero: ClassVar[Mapping[str, Any] | None] = {"variance": 0.0, "lower": None, "upper": None, "integers": False}

    on: tuple[str, ...]
    variance: Annotated[float, Range(0)] = 0.1
    components: Annotated[int, Range(2)] = 2
    shares: tuple[Positive, ...] = ()
    centers: tuple[float, ...] = ()
    sigma2: Annotated[float | tuple[float, ...], Range(0, 1, "()")] = 0.025
    root: Literal["eigen", "cholesky", "symmetric"] = "eigen"
    joint: bool = False
    rescale: bool = False
    keep_zeros: bool = False
    integers: bool = False
    lower: float | None = None
    upper: float | None = None

    @property
    def action(self) -> str:
        return f"with {format_percent(self.variance)} mixture noise"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        strengths = (0.05, 0.2) if len(roles.numbers) > 1 else ()
        return {f"{cls.__name__} {format_strength(variance)}": cls(roles.numbers, variance) for variance in strengths}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        count = self.components
        if self.shares and (len(self.shares) != count or abs(sum(self.shares) - 1) > 1e-9):
            yield f".shares must be {count} numbers, one for each component, that sum to 1."
        if isinstance(self.sigma2, tuple) and len(self.sigma2) != count:
            yield f".sigma2 must be one number, or {count} numbers, one for each component."
        if self.joint and self.centers:
            yield ".centers cannot be set for a joint mixture; its centers are computed."
        elif self.joint and count <= len(self.on):
            yield f".joint needs more components than variables: {len(self.on) + 1} or more. Got {count}."
        elif self.centers and len(self.centers) != count - 1:
            yield f".centers must be {count - 1} numbers: the last center follows from the others."
        elif self.centers and not any(self.centers):
            yield ".centers must not all be 0."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        weights, theta, variances = self._mixture()
        if self.joint:
            w = draw_vectors(len(data), weights, theta, variances, rng)
        else:
            w = draw_mixture((len(data), len(self.on)), weights, theta, variances, rng)
        # YWC appendix, Z = X + sqrt(d) Y, y = Sigma^(1/2) w
        return self.add(data, data.view(noise_shape(self.root), self.on) @ w.T)

    def unmix(self, covariance: Array) -> MixtureFields | None:
        """Return a function that gives the fields along the coordinates of w, or None if L cannot be inverted.

        The function takes known values, released values, and the covariance of any normal noise besides the mixture,
        which adds to the variance of each component. The records must have no missing values.
        """
        undo, live = unmixing_matrix(covariance_root(covariance, self.root))
        if len(live) == 0:
            return None
        weights, theta, variances = self._mixture()

        def fields_of(own: Array, seen: Array, normal_covariance: Array) -> Fields:
            # Divide by L, so that the coordinates of w are independent; normal noise and rounding blur each of them.
            change = undo / (self.scale * np.sqrt(max(self.variance, MIN_NOISE_SHARE)))
            blur = np.einsum("ij,jk,ik->i", change, normal_covariance, change)
            a, b = own @ change.T, seen @ change.T
            if self.joint:
                density = VectorMixture(weights, theta[:, live], variances[:, np.newaxis] + blur, a, b)
                return (Field(np.arange(len(a), dtype=float), np.arange(len(b), dtype=float), density),)
            sds = np.sqrt(variances + blur[:, np.newaxis])
            mixtures = (Mixture(tuple(weights.tolist()), tuple(theta.tolist()), tuple(sd)) for sd in sds.tolist())
            return tuple(Field(own, seen, density) for own, seen, density in zip(a.T, b.T, mixtures, strict=True))

        return fields_of

    def _mixture(self) -> tuple[Array, Array, Array]:
        """Return the weights, centers (numbers, or rows if joint) and variances of the components of w."""
        count = self.components
        weights = np.array(self.shares) if self.shares else np.full(count, 1 / count)
        variances = np.broadcast_to(np.array(self.sigma2, dtype=float), (count,))
        if self.joint:
            return weights, vector_centers(weights, variances, len(self.on)), variances
        relative = np.array(self.centers) if self.centers else np.arange(count - 1, 1 - count, -2, dtype=float)
        return weights, centers(relative, weights, variances), variances
