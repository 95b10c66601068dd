"""Additive and multiplicative noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Field, Fields, Generator, Method, Microdata, Range, Stream, Strengths, format_percent
from sdcmap.core.likelihood import IMPOSSIBLE
from sdcmap.core.value import Spec
from sdcmap.kernels.masking.noise_covariance import draw_normal_batch, draw_normals
from sdcmap.methods._noise_likelihood import MIN_NOISE_SHARE, AdditiveNoise, noise_shape, noise_spread, rounding_step


@dataclass(frozen=True)
class Noise(AdditiveNoise):
    """Add normal noise, Y = X + e, with a variance given as a share of each variable's variance.

    Parameters
    ----------
    on : numeric variables to mask.
    variance : Var e as a share d of the variable's variance, at least 0 (0 is the identity).
    correlated : give e the correlations of X, so that correlations are preserved in expectation.
    lower, upper : bounds, in the variable's unit; a masked value beyond a bound is set to it, as in Y = max(0, x + e).
        Bounds bias the mean.
    above, variance_above : for values greater than `above` (in the variable's unit) the share is `variance_above`.
    root : the root L of the covariance matrix from which correlated noise e = sqrt(d) L w is drawn: eigenvectors times
        square roots of eigenvalues, the triangular Cholesky root, or the symmetric root. The distribution is the same.
    rescale : release c Y + (1 - c) mu, where c = 1/sqrt(1 + d) and mu are the means of Y. This restores variances in
        expectation, and covariances too if the noise is correlated.
    keep_zeros : values that are exactly 0 stay 0.
    integers : round to whole numbers, halves to even.

    Formula: e ~ N(0, variance s^2), or e ~ N(0, variance Cov X) if correlated.
    The options are applied in this order: noise, rescaling, rounding, bounds (whole numbers if rounding), zeros. Bounds and
    zeros after `rescale` change the restored moments slightly. The covariance matrix may be singular: relations such as
    total = a + b also hold after correlated noise, except for bounds, zeros and rounding.
    Missing values stay missing and are left out of variances and covariances. Weights are not used: every record counts
    once. Households are not used: persons are masked one by one.

    Likelihood: an informed attacker undoes the rescaling and evaluates the noise along the directions of the covariance
    matrix. A value at a bound means "at or beyond it", a kept zero was a zero, and rounding adds to the noise variance.
    With `above`, variables are evaluated one by one, which loses some information if the noise is correlated.
    Reference: Duncan, Keller-McNulty, Stokes (2001), sections 2 and 4; Kim (1986); Yancey, Winkler, Creecy (2002),
    eq. (1), where the sign must be +.

    Examples
    --------
    >>> Noise(on="income", variance=0.1).text
    "Noise(on='income')"
    """

    label: ClassVar[str] = "Additive noise"
    description: ClassVar[str] = (
        "Random noise is added to each number; its variance is a share of the variable's variance."
    )

    at_zero: ClassVar[Mapping[str, Any] | None] = {
        "variance": 0.0,
        "lower": None,
        "upper": None,
        "above": None,
        "variance_above": None,
        "integers": False,
    }
    searched: ClassVar[Strengths | None] = Strengths("variance", 0.01, 4.0, tried=(0.05, 0.2, 0.5))

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
    def action(self) -> str:
        return f"with {format_percent(self.variance)} {'correlated ' if self.correlated else ''}noise"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if (self.above is None) != (self.variance_above is None):
            yield ".above and .variance_above must be set together."
        if self.rescale and self.above is not None:
            yield ".rescale needs a single noise variance; remove .above."

    def identity(self) -> Spec:
        """Give correlated noise revision 2 (eigenvectors have the same sign on every machine); other noise is unchanged."""
        has_fixed_signs = self.correlated and self.root != "cholesky"
        return super().identity() | ({"revision": 2} if has_fixed_signs else {})

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        e = draw_normals(rng, len(data), len(self.on))
        if self.correlated:
            return self.add(data, data.view(noise_shape(self.root), self.on) @ e)  # N(0, Cov X)
        return self.add(data, e, data.view(noise_spread, self.on))  # N(0, s_j^2) in variable j

    def mask_batch(self, data: Microdata, streams: Sequence[Stream]) -> Mapping[str, Array] | None:
        if self.correlated or self.rescale:  # sums over several draws at once might be rounded differently
            return None
        e = draw_normal_batch([stream.rng() for stream in streams], len(data), len(self.on))
        return self.add_to_columns(data, e, data.view(noise_spread, self.on))


def lognormal_factors(shape: tuple[int, ...], variance: float, rng: Generator) -> Array:
    """Draw u with E u = 1 and Var u = variance: log u ~ N(-t/2, t), t = log(1 + variance)."""
    t = np.log1p(variance)
    return np.asarray(np.exp(np.sqrt(t) * rng.standard_normal(shape) - t / 2))


def cut_normal_factors(shape: tuple[int, ...], variance: float, rng: Generator) -> Array:
    """Draw u ~ N(1, variance), truncated to 0 < u < 2. The truncation is symmetric, so E u = 1."""
    e = np.sqrt(variance) * rng.standard_normal(shape)
    while (far := np.abs(e) >= 1).any():
        e[far] = np.sqrt(variance) * rng.standard_normal(int(far.sum()))
    return np.asarray(1 + e)


@dataclass(frozen=True)
class Multiplied:
    """Log density of released = known * u, where the factor u has mean 1; zeros and signs do not change.

    log : log u ~ N(-t/2, t), else u ~ N(1, variance). step : the rounding unit of released values. least : the smallest
    released absolute value above 0; a product below it was rounded to zero.
    """

    variance: float
    log: bool
    step: float
    least: float

    def __call__(self, known: Array, released: Array) -> Array:
        from scipy.special import log_ndtr

        size = np.abs(known)
        safe = np.where(size > 0, size, 1.0)
        size_released = np.where(released == 0, self.least, np.abs(released))
        rounding = self.step**2 / 12
        if self.log:
            t = np.log1p(self.variance)
            sd = np.sqrt(t + rounding / safe**2)  # Var log(y) is about Var(y)/y^2
            error = np.log(size_released) - np.log(safe) + t / 2
        else:
            sd = np.sqrt(self.variance + rounding / safe**2)
            error = size_released / safe - 1
        log_density: Array = -0.5 * (error / sd) ** 2 - np.log(sd / np.sqrt(self.variance))
        if not self.log:
            log_density += np.log(size_released / safe)  # density of log y, as in the other branch
        # A released zero means that the product was rounded down to zero: a probability, not a density.
        log_density = np.where(released == 0, log_ndtr(error / sd), log_density)
        log_density = np.where(np.sign(known) * np.sign(released) < 0, IMPOSSIBLE, log_density)
        return np.where(known == 0, np.where(released == 0, 0.0, IMPOSSIBLE), log_density)


@dataclass(frozen=True)
class MultiplicativeNoise(Method):
    """Multiply each value by a random factor with mean 1, so that the noise is proportional to the value.

    Parameters
    ----------
    on : numeric variables to mask, each with its own factors.
    variance : the variance of the factor, at least 0 (0 is the identity). A value changes by about sqrt(variance) of
        itself: 0.01 means 10 %. Unlike for Noise, it does not refer to the variable's variance.
    distribution : of the factor. "lognormal": log u ~ N(-t/2, t), t = log(1 + variance). "normal": u ~ N(1, variance),
        truncated to 0 < u < 2, so that signs do not change; this reduces the variance by less than 2 % up to
        variance = 0.1.
    integers : round to whole numbers, halves to even; small values may become 0.

    Formula: y = x u, E u = 1.
    Zeros stay zero and negative values stay negative. Missing values stay missing. Weights are not used: every record
    counts once. Households are not used: persons are masked one by one.

    Likelihood: log |y| - log |x| ~ N(-t/2, t), or y - x ~ N(0, variance x^2). A known zero is released as zero; another
    value becomes zero only by rounding. Rounding to multiples of a step adds step^2/12 to the variance of the value.
    Reference: Kim and Winkler (2003), Multiplicative noise for masking continuous data.

    Examples
    --------
    >>> MultiplicativeNoise(on="income", variance=0.05).text
    "MultiplicativeNoise(on='income', variance=0.05)"
    """

    label: ClassVar[str] = "Multiplicative noise"
    description: ClassVar[str] = (
        "Each number is multiplied by a random factor near 1, so that large values change most."
    )

    at_zero: ClassVar[Mapping[str, Any] | None] = {"variance": 0.0, "integers": False}
    kept: ClassVar[str] = "zeros and signs, apart from rounding; the mean in expectation"
    distorted: ClassVar[str] = "every value except zeros; variances grow by the factor's variance times the mean square"
    searched: ClassVar[Strengths | None] = Strengths("variance", 0.005, 1.0, tried=(0.01, 0.05))

    on: tuple[str, ...]
    variance: Annotated[float, Range(0)] = 0.01
    distribution: Literal["lognormal", "normal"] = "lognormal"
    integers: bool = False

    @property
    def action(self) -> str:
        return f"with {format_percent(self.variance**0.5)} multiplicative noise"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        x = data.matrix(self.on)
        factors = lognormal_factors if self.distribution == "lognormal" else cut_normal_factors
        y = x * factors(x.shape, self.variance, rng)
        y = np.ascontiguousarray(np.rint(y.T) if self.integers else y.T)
        return data.change(None, dict(zip(self.on, y, strict=True)))

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return tuple(self._field(known.numbers(name), released.numbers(name)) for name in self.known_names(known))

    def _field(self, known: Array, released: Array) -> Field:
        step = rounding_step(released)
        sizes = np.abs(released[(released != 0) & ~np.isnan(released)])
        least = step / 2 if step else float(sizes.min(initial=1.0))
        density = Multiplied(max(self.variance, MIN_NOISE_SHARE), self.distribution == "lognormal", step, least)
        return Field(known, released, density)
