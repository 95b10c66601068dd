"""Multiplicative noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.likelihood import IMPOSSIBLE, Field
from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles, Strengths, strength
from sdcmap.core.value import Range
from sdcmap.core.words import percent
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods._noise_likelihood import LEAST, rounding_step


def lognormal_factors(shape: tuple[int, ...], variance: float, rng: Generator) -> Array:
    """u with E u = 1 and Var u = variance: log u ~ N(-t/2, t), t = log(1 + variance)."""
    t = np.log1p(variance)
    factors: Array = np.exp(np.sqrt(t) * rng.standard_normal(shape) - t / 2)
    return factors


def cut_normal_factors(shape: tuple[int, ...], variance: float, rng: Generator) -> Array:
    """u ~ N(1, variance), drawn again until 0 < u < 2: E u = 1, since the cut is symmetric."""
    e = np.sqrt(variance) * rng.standard_normal(shape)
    while (far := np.abs(e) >= 1).any():
        e[far] = np.sqrt(variance) * rng.standard_normal(int(far.sum()))
    factors: Array = 1 + e
    return factors


@dataclass(frozen=True)
class Multiplied:
    """released = known times a factor u with mean 1; zero stays zero and the sign is kept.

    log : log u ~ N(-t/2, t), else u ~ N(1, variance). step : what values were rounded to. least : the smallest released
    value above 0; a smaller one can only be a zero.
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
        log_density = (
            log_density if self.log else log_density + np.log(size_released / safe)
        )  # as a density of log y too
        log_density = np.where(released == 0, log_ndtr(error / sd), log_density)
        log_density = np.where(np.sign(known) * np.sign(released) < 0, IMPOSSIBLE, log_density)
        return np.where(known == 0, np.where(released == 0, 0.0, IMPOSSIBLE), log_density)


@dataclass(frozen=True)
class MultiplicativeNoise(Method):
    """Multiply each value by a random factor with mean 1, so that large values get much noise and small ones little.

    Parameters
    ----------
    on : numeric variables to mask, each with factors of its own.
    variance : the variance of the factor, at least 0 (0 is the identity): the noise has a coefficient of variation of
        sqrt(variance), so that 0.01 changes a value by about 10 % of itself. It is a share of the value's own square and
        not, as for Noise, of the variable's variance.
    distribution : of the factor. "lognormal": log u ~ N(-t/2, t), t = log(1 + variance). "normal": u ~ N(1, variance),
        drawn again until 0 < u < 2, so that the sign is kept; the cut makes the variance smaller than stated, by less
        than 2 % up to variance = 0.1.
    integers : round to whole numbers, halves to the even one; small values may become 0 by it.

    Formula: y = x u, E u = 1.
    Zeros stay zero and negative values stay negative. Missing values stay missing. Weights are not used: every record
    counts once. Households are not used: persons are masked one by one.

    Likelihood: log |y| - log |x| ~ N(-t/2, t), or y - x ~ N(0, variance x^2); a known zero is released as zero, and
    another value becomes zero by rounding alone. Rounding to a step adds step^2/12 to the variance of the released value.
    Reference: Kim and Winkler (2003), Multiplicative noise for masking continuous data.

    Examples
    --------
    >>> MultiplicativeNoise(on="income", variance=0.05).text
    "MultiplicativeNoise(on='income', variance=0.05)"
    """

    at_zero: ClassVar[Mapping[str, Any] | None] = {"variance": 0.0, "integers": False}
    kept: ClassVar[str] = "zeros and signs, value for value but for rounding; the mean in expectation"
    distorted: ClassVar[str] = "every value but zeros; variances grow by the factor's variance times the mean square"
    searched: ClassVar[Strengths | None] = Strengths("variance", 0.005, 1.0)

    on: tuple[str, ...]
    variance: Annotated[float, Range(0)] = 0.01
    distribution: Literal["lognormal", "normal"] = "lognormal"
    integers: bool = False

    @property
    def deed(self) -> str:
        return f"times noise of {percent(self.variance**0.5)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        strengths = (0.01, 0.05) if roles.numbers else ()
        return {f"{cls.__name__} {strength(variance)}": cls(roles.numbers, variance) for variance in strengths}

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        x = data.matrix(self.on)
        factors = lognormal_factors if self.distribution == "lognormal" else cut_normal_factors
        y = x * factors(x.shape, self.variance, rng)
        y = np.rint(y) if self.integers else y
        return data.change(None, dict(zip(self.on, np.ascontiguousarray(y.T), strict=True)))

    def pair_fields(self, known: Microdata, released: Microdata) -> tuple[Field, ...]:
        return tuple(self._field(known.numbers(name), released.numbers(name)) for name in self.known_names(known))

    def _field(self, known: Array, released: Array) -> Field:
        step = rounding_step(released)
        sizes = np.abs(released[(released != 0) & ~np.isnan(released)])
        least = step / 2 if step else float(sizes.min(initial=1.0))
        log = self.distribution == "lognormal"
        return Field(known, released, Multiplied(max(self.variance, LEAST), log, step, least))
