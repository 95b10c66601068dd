"""What a reader of the method note can compute of additive noise: by variable, or of all variables together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Field, Fields, Infeasible, Method, Microdata, Undefined
from sdcmap.core.added_noise import AddedNoise
from sdcmap.core.likelihood import IMPOSSIBLE, Normal, fields_by_part
from sdcmap.kernels.masking import noise_covariance
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.kernels.tables.coding import compress

# What additive noises share: the spread of the original, and the parameters that say what becomes of x + e.


TOO_LARGE = "noise needs a variance, and these numbers are too large to have one: divide them by a constant."
TOO_FEW = "noise needs at least 2 records without missing values to know a variance."
UNKNOWN_SHAPE = "a snooper needs at least 2 records without missing values to know how noise is shaped."


def noise_spread(data: Microdata, names: tuple[str, ...]) -> Array:
    """The standard deviation of each variable, as a view."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.array([_spread(data.numbers(name)) for name in names])
    if not np.isfinite(spread).all():
        raise Infeasible(TOO_LARGE)
    return spread


def _spread(x: Array) -> float:
    spread = x.std(ddof=1) if len(x) > 1 else np.nan
    if not np.isnan(spread):
        return float(spread)
    if np.isnan(x).sum() > len(x) - 2:
        raise Infeasible(TOO_FEW)
    return float(noise_covariance.spreads(x))


@cache
def noise_shape(kind: str) -> Callable[[Microdata, tuple[str, ...]], Array]:
    """The view that gives the root of the covariance matrix; one function for each kind of root."""

    def shape(data: Microdata, names: tuple[str, ...]) -> Array:
        x = data.matrix(names)
        if (~np.isnan(x).any(axis=1)).sum() < 2:
            raise Infeasible(TOO_FEW)
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = noise_covariance.complete_covariance(x)
        if not np.isfinite(covariance).all():
            raise Infeasible(TOO_LARGE)
        return noise_covariance.covariance_root(covariance, kind)

    return shape


MixtureFields = Callable[[Array, Array, Array], Fields]


class AdditiveNoise(Method):
    """The base of methods that release x + e, with the variance of e stated as a share of each variable's own."""

    normal: ClassVar[bool] = True

    on: tuple[str, ...]
    variance: float
    correlated: bool = True
    rescale: bool
    keep_zeros: bool
    lower: float | None
    upper: float | None
    integers: bool
    above: float | None = None
    variance_above: float | None = None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        low = -np.inf if self.lower is None else self.lower
        high = np.inf if self.upper is None else self.upper
        if low >= high:
            yield ".lower must be below .upper."
        elif self.integers and np.ceil(low) > np.floor(high):
            yield ".integers needs a whole number between .lower and .upper."

    @property
    def kept(self) -> str:  # type: ignore[override]
        """What the noise keeps: every option that moves values again leaves less."""
        whole = ["zeros, value for value"] if self.keep_zeros else []
        if self.is_bounded or (self.rescale and self.keep_zeros):
            return "; ".join(whole) or "nothing exactly: the bounds move the mean too"
        mean = "the mean in expectation"
        if self.rescale:
            mean = f"means{', variances and covariances' if self.correlated else ' and variances'} in expectation"
        elif self.correlated and not self.keep_zeros and self.above is None:
            mean = "the mean in expectation; correlations"
        return "; ".join([mean, *whole])

    @property
    def distorted(self) -> str:  # type: ignore[override]
        every = "every value but zeros" if self.keep_zeros else "every value"
        if self.is_bounded:
            return f"{every}; means, variances and correlations, by the noise and by its bounds"
        growth = [] if self.rescale else ["variances grow by the noise share"]
        shrunk = [] if self.correlated else ["correlations shrink"]
        return "; ".join([every, *growth, *shrunk])

    @property
    def is_bounded(self) -> bool:
        return self.lower is not None or self.upper is not None

    @property
    def is_plain(self) -> bool:
        """Whether every released value is x + e, but for an affine map: no bounds, kept zeros or larger noise above."""
        return not (self.keep_zeros or self.is_bounded) and self.above is None

    @property
    def scale(self) -> float:
        """c of the released c (x + e) + (1 - c) mu."""
        return noise_covariance.shrinkage(self.variance) if self.rescale else 1.0

    def add(self, data: Microdata, noise: Array, spread: Array | None = None) -> Microdata:
        """The file with `noise` at its share, and all that comes after it.

        noise : m x n, with the variances of the variables, or with variance 1 where their `spread` (m) is given; what is
            in it becomes the masked values.
        """
        changed = {}
        for j, name in enumerate(self.on):
            x, y = data.numbers(name), noise[j]
            above = False if self.above is None else x > self.above
            share = np.sqrt(np.where(above, self.variance_above or 0.0, self.variance))
            y *= share * (1.0 if spread is None else spread[j])
            y += x
            y = noise_covariance.rescaled(y, self.variance) if self.rescale else y
            changed[name] = noise_covariance.finished(x, y, self.keep_zeros, self.integers, self.lower, self.upper)
        return data.change(None, changed)

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        names = self.known_names(known)
        x, y = known.matrix(names), released.matrix(names)
        if self.normal and (not self.correlated or self.above is not None or len(names) == 1):
            return by_variable(self, x, y)
        covariance = covariance_before(self, x, y)
        if not self.is_plain:
            return together_inside(self, x, y, covariance)
        return together(self, x, y, covariance, self.unmix(covariance) if names == self.on else None)

    def unmix(self, covariance: Array) -> MixtureFields | None:
        """The fields of records without missing values where their noise is not normal, from their known and released
        values and the covariance of what is normal beside it; None: noise counts as normal. covariance: Cov X."""
        return None

    def added_noise(self) -> AddedNoise:
        reasons = {
            "bounds cut the noise off, so means and variances are biased": self.is_bounded,
            "its variance depends on the true value (above, variance_above)": self.above is not None,
            "zeros were kept, so the noise depends on the true value": self.keep_zeros,
            "values were rounded to whole numbers": self.integers,
        }
        if any(reasons.values()):
            raise Undefined(f"the noise cannot be taken off: {'; '.join(why for why in reasons if reasons[why])}.")
        return AddedNoise(self.on, self.variance, self.correlated, self.rescale, self.within, self.normal)


MIN_NOISE_SHARE = 1e-12  # the variance, as a share, that stands for none
ZERO_STEP_SHARE = 1e-3  # noise that brings a value to zero was rounded: to this share of its standard deviation
LOG_PEAK = -0.5 * np.log(2 * np.pi)  # log density of N(0, 1) at 0


@dataclass(frozen=True)
class CensoredNormal:
    """released = known + N(0, sd^2), cut at the bounds; above `above` the noise has `sd_above`.

    A released bound only says "beyond". `zero` is the known value that stands for a kept zero: it is released as 0 and
    never otherwise; any other value becomes 0 by rounding to `step` alone. With `ends_alone` all other released values
    say nothing here. Densities are in units of `sd`, bounds and zeros are probabilities.
    """

    sd: float
    lower: float | None = None
    upper: float | None = None
    zero: float | None = None
    step: float = 0.0
    above: float | None = None
    sd_above: float = 0.0
    ends_alone: bool = False

    def __call__(self, known: Array, released: Array) -> Array:
        from scipy.special import log_ndtr

        larger = np.zeros(known.shape, dtype=bool) if self.above is None else known > self.above
        sd = np.where(larger, self.sd_above, self.sd)
        inside: Array = -0.5 * ((released - known) / sd) ** 2 - np.log(sd / self.sd)
        log_density = np.zeros_like(inside) if self.ends_alone else inside
        if self.zero is not None:
            log_density = np.where(released == 0, inside + LOG_PEAK + np.log(self.step / self.sd), log_density)
        if self.lower is not None:
            log_density = np.where(released <= self.lower, log_ndtr((self.lower - known) / sd), log_density)
        if self.upper is not None:
            log_density = np.where(released >= self.upper, log_ndtr((known - self.upper) / sd), log_density)
        if self.zero is not None:
            log_density = np.where(known == self.zero, np.where(released == 0, 0.0, IMPOSSIBLE), log_density)
        return log_density

    def inside(self, released: Array) -> Array:
        """True where a released value is neither a bound nor, with kept zeros, a zero."""
        is_inside = np.ones(released.shape, dtype=bool)
        is_inside &= True if self.lower is None else released > self.lower
        is_inside &= True if self.upper is None else released < self.upper
        is_inside &= True if self.zero is None else released != 0
        return is_inside


@dataclass(frozen=True, eq=False)
class NormalInside:
    """released - known ~ N(0, covariance) over the variables in which a released record is inside its bounds.

    known, released : row numbers of the matrices. pattern, whitening : which variables these are, as the number of the
    pattern of each released record, and the matrix that whitens them (0 for the others).
    """

    known: Array
    released: Array
    pattern: Array
    whitening: tuple[Array, ...]

    def __call__(self, known: Array, released: Array) -> Array:
        rows, columns = known.astype(np.intp), released.astype(np.intp)
        if known.ndim == 2 and known.shape[1] == 1 and released.shape[0] == 1:
            return self._outer(rows[:, 0], columns[0])
        pairs = np.broadcast(rows, columns)
        densities = [self._outer(np.array([i]), np.array([j]))[0, 0] for i, j in pairs]
        return np.array(densities).reshape(pairs.shape)

    def _outer(self, rows: Array, columns: Array) -> Array:
        log_densities = np.zeros((len(rows), len(columns)))
        pattern = self.pattern[columns]
        for number in np.unique(pattern):
            here = np.flatnonzero(pattern == number)
            change = self.whitening[number].T
            a, b = self.known[rows] @ change, self.released[columns[here]] @ change
            log_densities[:, here] = a @ b.T - 0.5 * (a**2).sum(axis=1)[:, np.newaxis] - 0.5 * (b**2).sum(axis=1)
        return log_densities


def by_variable(noise: AdditiveNoise, known: Array, released: Array) -> Fields:
    """One field for each variable, for independent noise."""
    own, cuts = _cuts(noise, known, released)
    if noise.is_plain:
        return tuple(Field(own[:, j] / cut.sd, released[:, j] / cut.sd, Normal(1.0)) for j, cut in cuts.items())
    return tuple(Field(own[:, j], released[:, j], cut) for j, cut in cuts.items())


def together(
    noise: AdditiveNoise, known: Array, released: Array, covariance: Array, complete: MixtureFields | None = None
) -> Fields:
    """Fields along the directions in which correlated noise is not null, N(0, 1) each.

    In a null direction all records are alike, so it says nothing. Records with one pattern of missing values are a part of
    their own and use the covariance of what they have. `complete` states the fields of records without missing values
    where their noise is not normal; the others keep the normal one with the same covariance.
    """
    own, _ = redo_rescaling(noise, known, released)
    rounding = rounding_covariance(released)
    spread = noise.scale**2 * max(noise.variance, MIN_NOISE_SHARE) * covariance + rounding
    whole = None if complete is None else lambda own, seen: complete(own, seen, rounding)
    return whiten_fields(own, released, spread, means_of(known), whole)


def whiten_fields(
    own: Array, released: Array, spread: Array, center: Array, complete: Callable[[Array, Array], Fields] | None = None
) -> Fields:
    """The fields of released - own ~ N(0, spread), N(0, 1) each; `complete`: those of records without missing values."""
    own, seen = own - center, released - center

    def fields_of(rows: Array, others: Array, here: Array) -> Fields:
        if complete is not None and len(here) == own.shape[1]:
            return complete(own[rows], seen[others])
        change = noise_covariance.whitening(spread[np.ix_(here, here)]).T
        pairs = zip((own[np.ix_(rows, here)] @ change).T, (seen[np.ix_(others, here)] @ change).T, strict=True)
        return tuple(Field(a, b, Normal(1.0)) for a, b in pairs)

    return _by_pattern(own, seen, fields_of)


def together_inside(noise: AdditiveNoise, known: Array, released: Array, covariance: Array) -> Fields:
    """The same where noise was cut at bounds or zeros were kept: all variables together where a released record is inside
    its bounds, and one field for each variable that says what a bound or a zero tells."""
    own, cuts = _cuts(noise, known, released)
    spread = noise.scale**2 * max(noise.variance, MIN_NOISE_SHARE) * covariance + rounding_covariance(released)
    inside = np.zeros(released.shape, dtype=bool)
    for j, cut in cuts.items():
        inside[:, j] = cut.inside(released[:, j])
    center = means_of(known)

    def fields_of(rows: Array, others: Array, here: Array) -> Fields:
        live = np.zeros((len(others), len(spread)), dtype=bool)
        live[:, here] = inside[np.ix_(others, here)]
        sets, pattern = np.unique(live, axis=0, return_inverse=True)
        matrices = tuple(_whitening_of(spread, variables) for variables in sets)
        a, b = np.nan_to_num(own[rows] - center), np.nan_to_num(released[others] - center)
        numbers = np.arange(len(rows), dtype=float), np.arange(len(others), dtype=float)
        ends = (Field(own[rows, j], released[others, j], replace(cuts[j], ends_alone=True)) for j in here if j in cuts)
        return Field(*numbers, NormalInside(a, b, pattern.ravel(), matrices)), *ends

    return _by_pattern(known, released, fields_of)


def redo_rescaling(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, Array]:
    """c x + (1 - c) mu of the known file, and its shift (1 - c) mu: a snooper redoes the rescaling.

    mu is the mean of the masked file, which the released file has too; where bounds or zeros moved that mean, the known
    file's own is nearer.
    """
    if not noise.rescale:
        return known, np.zeros(known.shape[1])
    shift = (1 - noise.scale) * means_of(released if noise.is_plain else known)
    return noise.scale * known + shift, shift


def rounding_step(values: Array) -> float:
    """The power of ten that released values were rounded to; 0 where they were not."""
    power = granularity(values)
    return 0.0 if power is None else 10.0**power


def rounding_covariance(released: Array) -> Array:
    """What rounding of the released values adds to a covariance matrix."""
    return np.diag([rounding_step(column) ** 2 / 12 for column in released.T])


def covariance_before(noise: AdditiveNoise, known: Array, released: Array) -> Array:
    """The covariance matrix of the file before masking, as a snooper has it, or Undefined where he has none."""
    x, growth = _file_before(noise, known, released)
    if len(complete := x[~np.isnan(x).any(axis=1)]) < 2:
        raise Undefined(UNKNOWN_SHAPE)
    return np.atleast_2d(np.cov(complete, rowvar=False)) / growth


def _file_before(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, float]:
    """The records whose covariance a snooper takes for that before masking, and by how much noise multiplied it.

    Who knows every record takes theirs. Who knows some, or a file of his own, takes the released file's with the noise
    taken off: Cov Z = (1 + variance) Cov X, or Cov X where it was rescaled.
    """
    if len(known) == len(released):
        return known, 1.0
    return released, 1.0 if noise.rescale else 1.0 + noise.variance


def _cuts(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, dict[int, CensoredNormal]]:
    """The known values where the noise was added, and the noise of each variable that is not constant.

    A constant variable has no noise and tells no record apart.
    """
    own, shift = redo_rescaling(noise, known, released)
    bounds = noise.lower, noise.upper
    lower, upper = noise_covariance.whole_bounds(*bounds) if noise.integers else bounds
    before, growth = _file_before(noise, known, released)
    cuts = {}
    for j, column in enumerate(before.T):
        values = column[~np.isnan(column)]
        spread = float(noise_covariance.spreads(values)) / growth**0.5 if len(values) > 1 else 0.0
        if not spread > 0:
            continue
        step = rounding_step(released[:, j])
        shares = np.array([max(share, MIN_NOISE_SHARE) for share in (noise.variance, noise.variance_above or 0.0)])
        sd, high = np.sqrt(noise.scale**2 * shares * spread**2 + step**2 / 12).tolist()
        zero = float(shift[j]) if noise.keep_zeros else None
        cuts[j] = CensoredNormal(sd, lower, upper, zero, step or ZERO_STEP_SHARE * sd, noise.above, high)
    return own, cuts


def _by_pattern(known: Array, released: Array, fields_of: Callable[[Array, Array, Array], Fields]) -> Fields:
    """The fields of the records that have values in the same variables, from their rows in both files and these columns."""
    part, _ = compress(list(np.isnan(np.concatenate([known, released])).T.astype(np.uint8)))
    there = ~np.isnan(known)
    return fields_by_part(
        part, len(known), lambda rows, others: fields_of(rows, others, np.flatnonzero(there[rows[0]]))
    )


def _whitening_of(covariance: Array, live: Array) -> Array:
    """The matrix that whitens the variables `live` and leaves the others out."""
    here = np.flatnonzero(live)
    part = noise_covariance.whitening(covariance[np.ix_(here, here)])
    matrix = np.zeros((len(part), len(covariance)))
    matrix[:, here] = part
    return matrix


def means_of(x: Array) -> Array:
    present = ~np.isnan(x)
    return np.asarray(np.where(present, x, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))
