"""Additive noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.added_noise import AddedNoise
from sdcmap.core.likelihood import Field
from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles, Strengths, strength
from sdcmap.core.value import Range, Spec
from sdcmap.core.words import percent
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.masking.noise_covariance import normals
from sdcmap.methods._noise_likelihood import by_variable, covariance_before, together, together_inside
from sdcmap.methods._noise_options import NoiseOptions, noise_shape, noise_spread


@dataclass(frozen=True)
class Noise(Method):
    """Additive normal noise, Y = X + e, with a variance stated as a share of each variable's own.

    Parameters
    ----------
    on : numeric variables to mask.
    variance : Var e as a share d of the variable's variance, at least 0 (0 is the identity).
    correlated : draw e with the covariance shape of X, so that correlations are kept in expectation.
    lower, upper : bounds, in the variable's unit; a masked value beyond is set to the bound, as in Y = max(0, x + e).
        Bounds bias the mean.
    above, variance_above : above the value `above` (variable's unit) the share is `variance_above` instead.
    root : the root L of the covariance matrix that correlated noise e = sqrt(d) L w is drawn with: eigenvectors times
        square roots of eigenvalues, the triangular Cholesky root, or the symmetric one. All give the same distribution.
    rescale : release c Y + (1 - c) mu, c = 1/sqrt(1 + d), mu the means of Y, so that variances are restored in
        expectation, and covariances too when correlated.
    keep_zeros : a value that is exactly 0 stays 0.
    integers : round to whole numbers, halves to the even one.

    Formula: e ~ N(0, variance s^2), or e ~ N(0, variance Cov X) when correlated.
    The options work in this order: noise, rescaling, rounding, bounds (whole ones when rounding), zeros. So bounds hold
    for every value but a kept zero, and after `rescale` bounds and kept zeros disturb what it restores.
    A singular covariance matrix is no obstacle: relations such as total = a + b hold for correlated noise too, until
    bounds, zeros or rounding disturb them.
    Missing values stay missing; variances and covariances leave them out. Weights are not used: every record counts
    once. Households are not used: persons are masked one by one.

    Likelihood: a reader of the note who knows the records undoes the rescaling and looks at the noise along the
    directions of the covariance matrix; a bound says "beyond", a kept zero is a zero, rounding adds to the noise
    variance. With `above` the variables are looked at one by one, which for correlated noise is less than could be done.
    Reference: Duncan, Keller-McNulty, Stokes (2001), sections 2 and 4; Kim (1986); Yancey, Winkler, Creecy (2002),
    eq. (1), where the sign must be +.

    Examples
    --------
    >>> Noise(on="income", variance=0.1).text
    "Noise(on='income')"
    """

    at_zero: ClassVar[Mapping[str, Any] | None] = {
        "variance": 0.0, "lower": None, "upper": None, "above": None, "variance_above": None, "integers": False,
    }  # fmt: skip
    searched: ClassVar[Strengths | None] = Strengths("variance", 0.01, 4.0)

    on: tuple[str, ...]
    variance: Annotated[float, Range(0)] = 0.1
    correlated: bool = False
    lower: float | None = None
    upper: float | None = None
    above: float | None = None
    variance_above: Annotated[float | None, Range(0)] = None
    root: Literal["eigen", "cholesky", "symmetric"] = "eigen"
    rescale: bool = False
    keep_zeros: bool = False
    integers: bool = False

    @property
    def deed(self) -> str:
        kind = "correlated noise" if self.correlated else "noise"
        return f"with {kind} {percent(self.variance)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        strengths = (0.05, 0.2, 0.5) if roles.numbers else ()
        return {f"{cls.__name__} {strength(variance)}": cls(roles.numbers, variance) for variance in strengths}

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."
        yield from self.options.problems()
        if (self.above is None) != (self.variance_above is None):
            yield ".above and .variance_above go together."
        if self.rescale and self.above is not None:
            yield ".rescale needs one noise variance, and .above states another."

    def identity(self) -> Spec:
        """Give correlated noise revision 2 (eigenvectors have the same sign on every machine); other noise is unchanged."""
        changed = self.correlated and self.root != "cholesky"
        return super().identity() | ({"revision": 2} if changed else {})

    @property
    def kept(self) -> str:  # type: ignore[override]
        return self.options.kept(self.correlated)

    @property
    def distorted(self) -> str:  # type: ignore[override]
        return self.options.distorted(self.correlated)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        e = normals(rng, len(data), len(self.on))
        if self.correlated:
            return self.options.masked(data, self.on, data.view(noise_shape(self.root), self.on) @ e)  # N(0, Cov X)
        return self.options.masked(data, self.on, e, data.view(noise_spread, self.on))  # N(0, s_j^2) in variable j

    def pair_fields(self, known: Microdata, released: Microdata) -> tuple[Field, ...]:
        names = self.known_names(known)
        x, y = known.matrix(names), released.matrix(names)
        if not self.correlated or self.above is not None or len(names) == 1:
            return by_variable(self.options, x, y)
        likelihood = together if self.options.plain else together_inside
        return likelihood(self.options, x, y, covariance_before(self.options, x, y))

    def added_noise(self) -> AddedNoise:
        return self.options.to_take_off(self.on, self.within, correlated=self.correlated)

    @property
    def options(self) -> NoiseOptions:
        return NoiseOptions(
            self.variance, self.rescale, self.keep_zeros, self.lower, self.upper, self.integers,
            self.above, self.variance_above or 0.0,
        )  # fmt: skip
