"""Distributions as values: the beliefs about an unknown number.

One object may hold the beliefs about many records: parameters that are arrays have one entry per record, and atoms and
draws are on the last axis. Its properties then have one entry per record too. A repr or an error never shows numbers of
such a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sdcmap.core import Floats, PlanError, Undefined
from sdcmap.theory.parameter_checks import Numbers

NODES = 0.05 * np.arange(-800, 801)  # quadrature nodes of `expectation`; sinh(40) is 1e17 scales away


def unwrap(values: ArrayLike) -> Numbers:
    """Return a number for a number, and an array for an array."""
    return np.asarray(values, dtype=float)[()]


class Distribution(ABC):
    """The operations that losses and divergences need; `action` and `x` are numbers, or one per record."""

    if TYPE_CHECKING:  # a field of one distribution is a property of another

        @property
        def shape(self) -> tuple[int, ...]:
            """The shape: () for one belief, (n,) for the beliefs about n records."""

        @property
        def mean(self) -> Numbers:
            """E theta."""

        @property
        def variance(self) -> Numbers:
            """Var theta."""

        @property
        def entropy(self) -> Numbers:
            """-E log p(theta) in nats; it may be negative for a density."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Numbers:
        """Return P(theta <= x)."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Numbers:
        """Return the smallest x with P(theta <= x) >= p."""

    @abstractmethod
    def log_density(self, x: ArrayLike) -> Numbers:
        """Return log p(x), of the density or of the mass at x."""

    @abstractmethod
    def mean_distance(self, action: ArrayLike) -> Numbers:
        """Return E |theta - action|."""

    @abstractmethod
    def mass_within(self, action: ArrayLike, width: float) -> Numbers:
        """Return P(|theta - action| <= width)."""

    @abstractmethod
    def capped_square(self, action: ArrayLike, cap: float) -> Numbers:
        """Return E min((theta - action)^2, cap)."""

    @abstractmethod
    def center_of_mass(self, width: float) -> Numbers:
        """Return the action with the largest `mass_within`."""

    @abstractmethod
    def center_of_capped(self, cap: float) -> Numbers:
        """Return the action with the smallest `capped_square`."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(getattr(self, f.name)).tobytes() for f in fields(self))))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        if self.shape:
            return f"{type(self).__name__}({' x '.join(map(str, self.shape))} records)"
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        parts = [f"{k}={v:g}" if np.ndim(v) == 0 else f"{np.size(v)} {k}" for k, v in values.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def check_parameters(of: object, above_0: tuple[str, ...]) -> None:
    """Store the fields of a distribution as arrays of one shape; raise PlanError unless they are finite (and above 0)."""
    names = [f.name for f in fields(of)]  # type: ignore[arg-type]
    kind, problems = type(of).__name__, []
    try:
        arrays = np.broadcast_arrays(*(np.asarray(getattr(of, name), dtype=float) for name in names))
    except (TypeError, ValueError):
        raise PlanError(f"{kind}: {', '.join(names)} must be numbers, or arrays of one shape.") from None
    for name, values in zip(names, arrays, strict=True):
        low, what = (0.0, "finite and above 0") if name in above_0 else (-np.inf, "finite")
        good = (np.isfinite(values) & (values > low)) | ((values == np.inf) & (name == "df"))
        if bad := int((~good).sum()):
            problems.append(f"{kind}.{name} must be {what}; {bad} of {values.size} is not.")
        object.__setattr__(of, name, unwrap(values))
    if problems:
        raise PlanError(problems)


class LocationScale(Distribution):
    """A symmetric density with one mode: mean + scale * Z, with Z standardized."""

    if TYPE_CHECKING:

        @property
        def scale(self) -> Numbers:
            """The factor of Z."""

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.mean)

    def expectation(self, g: Callable[[Floats], Numbers], dimensions: int = 0) -> Numbers:
        """Return E g(theta) by the trapezoid rule in y, where theta = mean + scale sinh y, at 1,601 values per record.

        g : a smooth function of arrays whose last axes are records. dimensions : the number of these axes, if g has more
        than this distribution.
        """
        y = NODES.reshape(-1, *[1] * max(dimensions, len(self.shape)))
        x = self.mean + self.scale * np.sinh(y)
        mass = np.exp(self.log_density(x)) * self.scale * np.cosh(y)
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(mass > 0, g(x) * mass, 0.0)
        return unwrap(terms.sum(axis=0) * (NODES[1] - NODES[0]))

    def mass_within(self, action: ArrayLike, width: float) -> Numbers:
        away = np.abs(unwrap(action) - self.mean)  # as two tails, neither of which is a difference of close numbers
        return unwrap(1 - self.cdf(self.mean - (width - away)) - self.cdf(self.mean - (width + away)))

    def center_of_mass(self, width: float) -> Numbers:
        if width == 0:
            raise Undefined("a density gives every point probability 0: a 0-1 loss needs a width above 0.")
        return self.mean

    def center_of_capped(self, cap: float) -> Numbers:
        return self.mean


@dataclass(frozen=True, eq=False, repr=False)
class Normal(LocationScale):
    """N(mean, variance); the second argument is a variance, not a standard deviation, and above 0.

    A known value has no density: use a measurement variance, or `Discrete([value], [1])`.

    >>> Normal(4.9, 0.001)
    Normal(mean=4.9, variance=0.001)
    """

    mean: Numbers
    variance: Numbers

    def __post_init__(self) -> None:
        check_parameters(self, ("variance",))

    @property
    def scale(self) -> Numbers:
        """The standard deviation."""
        return np.sqrt(self.variance)

    @property
    def entropy(self) -> Numbers:
        return 0.5 * (1 + np.log(2 * np.pi * self.variance))

    def cdf(self, x: ArrayLike) -> Numbers:
        return unwrap(special.ndtr((unwrap(x) - self.mean) / self.scale))

    def quantile(self, p: ArrayLike) -> Numbers:
        return unwrap(self.mean + self.scale * special.ndtri(unwrap(p)))

    def log_density(self, x: ArrayLike) -> Numbers:
        return -0.5 * np.log(2 * np.pi * self.variance) - 0.5 * (unwrap(x) - self.mean) ** 2 / self.variance

    def mean_distance(self, action: ArrayLike) -> Numbers:
        z = (unwrap(action) - self.mean) / self.scale
        return unwrap(self.scale * (2 * _phi(z) + z * special.erf(z / np.sqrt(2))))

    def capped_square(self, action: ArrayLike, cap: float) -> Numbers:
        width, off = np.sqrt(cap), self.mean - unwrap(action)
        low, high = (-width - off) / self.scale, (width - off) / self.scale
        inside = special.ndtr(high) - special.ndtr(low)
        first = self.scale * (_phi(low) - _phi(high))  # E of scale Z between low and high
        second = self.variance * (inside + low * _phi(low) - high * _phi(high))
        return unwrap(off**2 * inside + 2 * off * first + second + cap * (special.ndtr(low) + special.ndtr(-high)))


@dataclass(frozen=True, eq=False, repr=False)
class Student(LocationScale):
    """mean + scale * t_df; its variance is scale^2 df/(df - 2), infinite for df from 1 to 2.

    >>> float(Student(0, 1, 4).variance)
    2.0
    """

    mean: Numbers
    scale: Numbers
    df: Numbers

    def __post_init__(self) -> None:
        check_parameters(self, ("scale", "df"))

    @property
    def variance(self) -> Numbers:
        if np.any(np.asarray(self.df) <= 1):
            raise Undefined("a Student distribution with df of at most 1 has no mean and no variance.")
        with np.errstate(divide="ignore", invalid="ignore"):
            inflated = np.where(np.asarray(self.df) > 2, 1 / (1 - 2 / np.asarray(self.df)), np.inf)
        return unwrap(np.square(self.scale) * inflated)

    @property
    def entropy(self) -> Numbers:
        half, v = (self.df + 1) / 2, self.df
        spread = half * (special.psi(half) - special.psi(v / 2)) + special.betaln(v / 2, 0.5)
        return unwrap(spread + np.log(v) / 2 + np.log(self.scale))

    def cdf(self, x: ArrayLike) -> Numbers:
        return unwrap(special.stdtr(self.df, (unwrap(x) - self.mean) / self.scale))

    def quantile(self, p: ArrayLike) -> Numbers:
        return unwrap(self.mean + self.scale * special.stdtrit(self.df, unwrap(p)))

    def log_density(self, x: ArrayLike) -> Numbers:
        z, v = (unwrap(x) - self.mean) / self.scale, self.df
        constant = -special.betaln(v / 2, 0.5) - np.log(v) / 2
        return unwrap(constant - np.log(self.scale) - (v + 1) / 2 * np.log1p(z * z / v))

    def mean_distance(self, action: ArrayLike) -> Numbers:
        z, v = (unwrap(action) - self.mean) / self.scale, np.asarray(self.df, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = 2 * (v + z * z) / (v - 1) * self._standard(z) + z * (2 * special.stdtr(v, z) - 1)
        return unwrap(self.scale * np.where(v > 1, distance, np.inf))

    def capped_square(self, action: ArrayLike, cap: float) -> Numbers:
        width, off = np.sqrt(cap), self.mean - unwrap(action)
        low, high = (-width - off) / self.scale, (width - off) / self.scale
        inside = special.stdtr(self.df, high) - special.stdtr(self.df, low)
        first, second = (below(high) - below(low) for below in (self._first_below, self._square_below))
        square = off**2 * inside + 2 * off * self.scale * first + np.square(self.scale) * second
        return unwrap(square + cap * (special.stdtr(self.df, low) + special.stdtr(self.df, -high)))

    def _standard(self, z: Numbers) -> Numbers:
        return np.exp(Student(0.0, 1.0, self.df).log_density(z))

    def _first_below(self, z: Numbers) -> Numbers:
        """Return int t f(t) dt from 0 to z: c (1 - (1 + z^2/v)^((1-v)/2)) v/(v-1), or its limit at v = 1."""
        v = np.asarray(self.df, dtype=float)
        grown = np.log1p(z * z / v)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._standard(0.0) * np.where(v == 1, grown / 2, -np.expm1((1 - v) / 2 * grown) * v / (v - 1))

    def _square_below(self, z: Numbers) -> Numbers:
        """Return int t^2 f(t) dt from 0 to z: an incomplete beta integral, continued to v of at most 2."""
        v = np.asarray(self.df, dtype=float)
        x = z * z / (v + z * z)
        many = 0.5 * v / np.where(v > 2, v - 2, 1) * special.betainc(1.5, np.where(v > 2, v / 2 - 1, 1), x)
        u = np.where(v > 2, 2.0, v)
        few = u / 2 / special.beta(0.5, u / 2) * x**1.5 / 1.5 * special.hyp2f1(1.5, 2 - u / 2, 2.5, x)
        return unwrap(np.sign(z) * np.where(v > 2, many, few))


def _phi(z: Numbers) -> Numbers:
    return unwrap(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
