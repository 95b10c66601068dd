"""Additive noise: its base class, and the likelihood for an attacker who knows the method note."""

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

TOO_LARGE = "the numbers are so large that their variance overflows: divide them by a constant."
TOO_FEW = "noise needs at least 2 records without missing values to compute a variance."
UNKNOWN_SHAPE = "the attacker needs at least 2 records without missing values to estimate the noise covariance."


def noise_spread(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the standard deviation of each variable. A view."""
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
    return float(noise_covariance.column_spreads(x))


@cache
def noise_shape(kind: str) -> Callable[[Microdata, tuple[str, ...]], Array]:
    """Return the view that computes the root of the covariance matrix; one function for each kind of root."""

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


# Fields of complete records, from their known values, released values, and the covariance of any normal noise in addition.
MixtureFields = Callable[[Array, Array, Array], Fields]


class AdditiveNoise(Method):
    """Base class of methods that release x + e, where Var e is a share of each variable's variance."""

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
        """Describe what the noise preserves; bounds and kept zeros reduce it."""
        exact = ["all zeros"] if self.keep_zeros else []
        if self.is_bounded or (self.rescale and self.keep_zeros):
            return "; ".join(exact) or "nothing exactly; bounds change the mean too"
        moments = "the mean in expectation"
        if self.rescale:
            moments = f"means{', variances and covariances' if self.correlated else ' and variances'} in expectation"
        elif self.correlated and not self.keep_zeros and self.above is None:
            moments = "the mean and correlations in expectation"
        return "; ".join([moments, *exact])

    @property
    def distorted(self) -> str:  # type: ignore[override]
        every = "every value except zeros" if self.keep_zeros else "every value"
        if self.is_bounded:
            return f"{every}; means, variances and correlations, by the noise and by the bounds"
        larger = [] if self.rescale else ["variances grow by the share of noise"]
        smaller = [] if self.correlated else ["correlations become smaller"]
        return "; ".join([every, *larger, *smaller])

    @property
    def is_bounded(self) -> bool:
        return self.lower is not None or self.upper is not None

    @property
    def is_plain(self) -> bool:
        """Return whether every released value is x + e or an affine map of it: no bounds, kept zeros or `above`."""
        return not (self.keep_zeros or self.is_bounded) and self.above is None

    @property
    def scale(self) -> float:
        """Return c of the released value c (x + e) + (1 - c) mu; 1 without rescaling."""
        return noise_covariance.shrinkage(self.variance) if self.rescale else 1.0

    def add(self, data: Microdata, noise: Array, spread: Array | None = None) -> Microdata:
        """Return the file with scaled `noise` added, then rescaled, rounded and bounded as the options say.

        noise : m x n, with the variances of the variables, or with variance 1 if their standard deviations `spread` (m)
            are given. It is overwritten by the masked values.
        """
        return data.change(None, self.add_to_columns(data, noise, spread))

    def add_to_columns(self, data: Microdata, noise: Array, spread: Array | None = None) -> dict[str, Array]:
        """Return the masked values of each variable, as `add` does.

        noise : m x n, or m x draws x n for several draws at once, which cannot be rescaled.
        """
        changed = {}
        for j, name in enumerate(self.on):
            x, y = data.numbers(name), noise[j]
            above = False if self.above is None else x > self.above
            share = np.sqrt(np.where(above, self.variance_above or 0.0, self.variance))
            y *= share * (1.0 if spread is None else spread[j])
            y += x
            y = noise_covariance.restore_covariance(y, self.variance) if self.rescale else y
            changed[name] = noise_covariance.prepare_release_values(
                x, y, self.keep_zeros, self.integers, self.lower, self.upper
            )
        return changed

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        names = self.known_names(known)
        x, y = known.matrix(names), released.matrix(names)
        if self.normal and (not self.correlated or self.above is not None or len(names) == 1):
            return fields_by_variable(self, x, y)
        covariance = covariance_before(self, x, y)
        if not self.is_plain:
            return joint_fields_inside_bounds(self, x, y, covariance)
        return joint_fields(self, x, y, covariance, self.unmix(covariance) if names == self.on else None)

    def unmix(self, covariance: Array) -> MixtureFields | None:
        """Return the fields of complete records if the noise is not normal, or None to treat it as normal.

        covariance : Cov X.
        """
        return None

    def added_noise(self) -> AddedNoise:
        reasons = {
            "bounds cut off the noise, so means and variances are biased": self.is_bounded,
            "its variance depends on the true value (above, variance_above)": self.above is not None,
            "zeros were kept, so the noise depends on the true value": self.keep_zeros,
            "values were rounded to whole numbers": self.integers,
        }
        if any(reasons.values()):
            raise Undefined(f"the noise cannot be removed: {'; '.join(why for why in reasons if reasons[why])}.")
        return self.stated_noise()

    def stated_noise(self) -> AddedNoise:
        if self.above is not None:
            raise Undefined("the variance of the noise depends on the true value (above, variance_above).")
        return AddedNoise(self.on, self.variance, self.correlated, self.rescale, self.within, self.normal)


MIN_NOISE_SHARE = 1e-12  # replaces a noise share of 0, so that densities exist
ZERO_STEP_SHARE = 1e-3  # of the noise sd: the rounding unit assumed for values that noise moved to exactly zero
LOG_PEAK = -0.5 * np.log(2 * np.pi)  # log density of N(0, 1) at 0


@dataclass(frozen=True)
class CensoredNormal:
    """Log density of released = known + N(0, sd^2), censored at the bounds; above `above` the noise has `sd_above`.

    A released bound means "at or beyond". `zero` is the known value of a kept zero: it is always released as 0, and any
    other value becomes 0 only by rounding to `step`. With `ends_alone`, only bounds and zeros contribute. Densities are
    in units of `sd`; bounds and zeros have probabilities.
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
        """Return True where a released value is neither a bound nor a kept zero."""
        is_inside = np.ones(released.shape, dtype=bool)
        is_inside &= True if self.lower is None else released > self.lower
        is_inside &= True if self.upper is None else released < self.upper
        is_inside &= True if self.zero is None else released != 0
        return is_inside


@dataclass(frozen=True, eq=False)
class NormalInside:
    """Log density of released - known ~ N(0, covariance), over the variables in which a released record is inside bounds.

    known, released : matrices; the density is called with row numbers. pattern : the number of the set of these
    variables for each released record. whitening : for each set, the matrix that whitens it (0 for other variables).
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
            chosen = np.flatnonzero(pattern == number)
            change = self.whitening[number].T
            a, b = self.known[rows] @ change, self.released[columns[chosen]] @ change
            log_densities[:, chosen] = a @ b.T - 0.5 * (a**2).sum(axis=1)[:, np.newaxis] - 0.5 * (b**2).sum(axis=1)
        return log_densities


def fields_by_variable(noise: AdditiveNoise, known: Array, released: Array) -> Fields:
    """Return one field for each variable, for independent noise."""
    own, cuts = _censored_densities(noise, known, released)
    if noise.is_plain:
        return tuple(Field(own[:, j] / cut.sd, released[:, j] / cut.sd, Normal(1.0)) for j, cut in cuts.items())
    return tuple(Field(own[:, j], released[:, j], cut) for j, cut in cuts.items())


def joint_fields(
    noise: AdditiveNoise, known: Array, released: Array, covariance: Array, complete: MixtureFields | None = None
) -> Fields:
    """Return fields along the directions in which correlated noise has a positive variance, N(0, 1) each.

    In a direction without variance all records are equal, so it carries no information. Records with the same pattern of
    missing values form a part and use the covariance of their variables. `complete` gives the fields of records without
    missing values if the noise is not normal; other records use normal noise with the same covariance.
    """
    own, _ = redo_rescaling(noise, known, released)
    rounding = rounding_covariance(released)
    spread = noise.scale**2 * max(noise.variance, MIN_NOISE_SHARE) * covariance + rounding
    whole = None if complete is None else lambda own, seen: complete(own, seen, rounding)
    return whiten_fields(own, released, spread, means_of(known), whole)


def whiten_fields(
    own: Array, released: Array, spread: Array, center: Array, complete: Callable[[Array, Array], Fields] | None = None
) -> Fields:
    """Return whitened fields of released - own ~ N(0, spread). complete : replaces them for complete records."""
    own, seen = own - center, released - center

    def fields_of(rows: Array, others: Array, columns: Array) -> Fields:
        if complete is not None and len(columns) == own.shape[1]:
            return complete(own[rows], seen[others])
        change = noise_covariance.whitening_matrix(spread[np.ix_(columns, columns)]).T
        pairs = zip((own[np.ix_(rows, columns)] @ change).T, (seen[np.ix_(others, columns)] @ change).T, strict=True)
        return tuple(Field(a, b, Normal(1.0)) for a, b in pairs)

    return _fields_by_missing_pattern(own, seen, fields_of)


def joint_fields_inside_bounds(noise: AdditiveNoise, known: Array, released: Array, covariance: Array) -> Fields:
    """Return the fields of correlated noise with bounds or kept zeros.

    One field covers all variables in which a released record is inside its bounds; one more for each variable covers
    values at a bound or zero.
    """
    own, cuts = _censored_densities(noise, known, released)
    spread = noise.scale**2 * max(noise.variance, MIN_NOISE_SHARE) * covariance + rounding_covariance(released)
    inside = np.zeros(released.shape, dtype=bool)
    for j, cut in cuts.items():
        inside[:, j] = cut.inside(released[:, j])
    center = means_of(known)

    def fields_of(rows: Array, others: Array, columns: Array) -> Fields:
        live = np.zeros((len(others), len(spread)), dtype=bool)
        live[:, columns] = inside[np.ix_(others, columns)]
        sets, pattern = np.unique(live, axis=0, return_inverse=True)
        matrices = tuple(_whitening_of(spread, variables) for variables in sets)
        a, b = np.nan_to_num(own[rows] - center), np.nan_to_num(released[others] - center)
        numbers = np.arange(len(rows), dtype=float), np.arange(len(others), dtype=float)
        ends = (
            Field(own[rows, j], released[others, j], replace(cuts[j], ends_alone=True)) for j in columns if j in cuts
        )
        return Field(*numbers, NormalInside(a, b, pattern.ravel(), matrices)), *ends

    return _fields_by_missing_pattern(known, released, fields_of)


def redo_rescaling(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, Array]:
    """Return c x + (1 - c) mu of the known file, and its shift (1 - c) mu, as the rescaling of the noise would.

    mu is the mean of the masked file, which the released file shows. If bounds or zeros changed that mean, the mean of
    the known file is a better estimate.
    """
    if not noise.rescale:
        return known, np.zeros(known.shape[1])
    shift = (1 - noise.scale) * means_of(released if noise.is_plain else known)
    return noise.scale * known + shift, shift


def rounding_step(values: Array) -> float:
    """Return the power of ten to which released values were rounded, or 0 if they were not."""
    power = granularity(values)
    return 0.0 if power is None else 10.0**power


def rounding_covariance(released: Array) -> Array:
    """Return the covariance that rounding of the released values adds."""
    return np.diag([rounding_step(column) ** 2 / 12 for column in released.T])


def covariance_before(noise: AdditiveNoise, known: Array, released: Array) -> Array:
    """Return the attacker's estimate of the covariance matrix before masking, or raise Undefined."""
    x, growth = _file_before(noise, known, released)
    if len(complete := x[~np.isnan(x).any(axis=1)]) < 2:
        raise Undefined(UNKNOWN_SHAPE)
    return np.atleast_2d(np.cov(complete, rowvar=False)) / growth


def _file_before(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, float]:
    """Return the records from which the attacker estimates the covariance before masking, and the factor to divide by.

    An attacker who knows every record uses these. Otherwise they use the released file and remove the noise:
    Cov Z = (1 + variance) Cov X, or Cov X if it was rescaled.
    """
    if len(known) == len(released):
        return known, 1.0
    return released, 1.0 if noise.rescale else 1.0 + noise.variance


def _censored_densities(noise: AdditiveNoise, known: Array, released: Array) -> tuple[Array, dict[int, CensoredNormal]]:
    """Return the rescaled known values, and the noise density of each variable that is not constant.

    A constant variable has no noise and does not distinguish records.
    """
    own, shift = redo_rescaling(noise, known, released)
    bounds = noise.lower, noise.upper
    lower, upper = noise_covariance.whole_bounds(*bounds) if noise.integers else bounds
    before, growth = _file_before(noise, known, released)
    cuts = {}
    for j, column in enumerate(before.T):
        values = column[~np.isnan(column)]
        spread = float(noise_covariance.column_spreads(values)) / growth**0.5 if len(values) > 1 else 0.0
        if not spread > 0:
            continue
        step = rounding_step(released[:, j])
        shares = np.array([max(share, MIN_NOISE_SHARE) for share in (noise.variance, noise.variance_above or 0.0)])
        sd, high = np.sqrt(noise.scale**2 * shares * spread**2 + step**2 / 12).tolist()
        zero = float(shift[j]) if noise.keep_zeros else None
        cuts[j] = CensoredNormal(sd, lower, upper, zero, step or ZERO_STEP_SHARE * sd, noise.above, high)
    return own, cuts


def _fields_by_missing_pattern(
    known: Array, released: Array, fields_of: Callable[[Array, Array, Array], Fields]
) -> Fields:
    """Return the fields of each set of records with values in the same variables, computed by `fields_of`.

    `fields_of` takes the rows in the known file, the rows in the released file, and the columns.
    """
    part, _ = compress(list(np.isnan(np.concatenate([known, released])).T.astype(np.uint8)))
    is_present = ~np.isnan(known)
    return fields_by_part(
        part, len(known), lambda rows, others: fields_of(rows, others, np.flatnonzero(is_present[rows[0]]))
    )


def _whitening_of(covariance: Array, live: Array) -> Array:
    """Return the matrix that whitens the variables `live` and ignores the others."""
    columns = np.flatnonzero(live)
    part = noise_covariance.whitening_matrix(covariance[np.ix_(columns, columns)])
    matrix = np.zeros((len(part), len(covariance)))
    matrix[:, columns] = part
    return matrix


def means_of(x: Array) -> Array:
    """Return the mean of each column without missing values, 0 for an empty column."""
    present = ~np.isnan(x)
    return np.asarray(np.where(present, x, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))
