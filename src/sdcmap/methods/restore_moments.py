"""Means, variances and covariances of masked numbers brought back to those of the original."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Method, Microdata, Range, Roles, Trials, join_names
from sdcmap.core.method import Origin
from sdcmap.data.cells import common_codes
from sdcmap.kernels.masking.tails import MIN_UNITS_BEYOND, replace_tails
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.chain import Chain
from sdcmap.methods.protect_tails import tails_of, units_of
from sdcmap.methods.synthesize import Synthesize

MIN_NOISE = 0.5  # standard errors; with less, moments would tell whether a unit at the cut of a tail is in the file
MIN_UNITS = 30  # of a group whose moments are restored, in both files; smaller groups are taken together
MAX_ZERO_SHARE = 0.01  # of a variable whose covariances can be restored: zeros stay zero
TRIED_LEAF = 100  # of the synthesis that it is tried after: large leaves disturb moments


@dataclass(frozen=True)
class RestoreMoments(Method):
    """Shift and stretch masked numbers until their means, variances or covariances are those of the original again.

    Use it as a step of a chain, after the step that disturbed them. It removes the bias of these moments, of the whole file
    or of groups whose means users compare, and of nothing else.

    Parameters
    ----------
    on : the numeric variables.
    of : "mean": each variable is shifted. "variance": each is shifted and stretched. "covariance": all are mapped together.
    by : categorical variables; moments are restored in each of their combinations that at least 30 persons or households
        have in the original, and 30 records in the masked file. The others are one group. By default the file is one group.
    noise : standard deviation of the error of the restored moments, in standard errors of the original's, at least 0.5.
        Exact moments would show the value of a person to somebody who knows those of all others.

    Formula: y' = m + (y - mean y) A, with A = 1, sd/sd(y), or the symmetric matrix that takes the covariance matrix of y to
    the target S with the smallest change. m ~ N(mean x, noise^2 Var(x)/n), S = L (1 + noise G/sqrt(n)) L with L the
    symmetric root of Cov x and G symmetric normal with variances 1, and 2 on the diagonal; n counts
    persons, where the file has several records of a person, else households, or records.
    The moments of the original are those of a file whose extremes are replaced by quantiles of their tails, as by
    `ProtectTails`. Zeros stay zero, and variables that are never negative remain so; both can leave a small difference.
    Missing values stay missing and are left out; for covariances, variables must be complete, with less than 1 % zeros.
    Weights are not used: every record counts once. It has no likelihood of its own.
    Reference: the map of Olkin and Pukelsheim (1982), Linear Algebra and its Applications 48.

    Examples
    --------
    >>> RestoreMoments(on=["wage", "rent"], of="mean", by="sex").title
    'wage, rent with restored means by sex'
    """

    label: ClassVar[str] = "Restored moments"
    description: ClassVar[str] = (
        "Masked amounts are shifted and stretched until their means, and variances, are those of the original again."
    )

    mixes_records: ClassVar[bool] = True
    needs_original: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "derived"
    households: ClassVar[str] = "a household counts once in the error of the restored moments"
    kept: ClassVar[str] = (
        "the stated moments up to a stated random error; zeros, and the sign of variables that have one"
    )
    distorted: ClassVar[str] = "other properties of the masked numbers, as far as they change with a shift or stretch"

    on: tuple[str, ...]
    of: Literal["mean", "variance", "covariance"] = "mean"
    by: tuple[str, ...] = ()
    noise: Annotated[float, Range(MIN_NOISE)] = 1.0

    @property
    def action(self) -> str:
        return f"with restored {self.of}s" + (f" by {join_names(self.by)}" if self.by else "")

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Try it after a synthesis, by the first key."""
        if not roles.numbers or not roles.keys:
            return {}
        synthesis = Synthesize(roles.descriptive_columns, leaf=TRIED_LEAF)
        return {f"{cls.__name__} after Synthesize": Chain((synthesis, cls(roles.numbers, by=roles.keys[:1])))}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return None: it masks nothing by itself."""
        return None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.within:
            yield ".within has no effect: state groups as .by."

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.by)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.by:
            if name in data.schema and data.schema[name].kind == "numeric":
                yield f"{type(self).__name__}.by needs categories; {name!r} is numeric."
        for name in self.on if self.of == "covariance" else ():
            if name in data.schema and data.schema[name].kind == "numeric" and _has_gaps(data.numbers(name)):
                yield f"covariances of {name!r} cannot be restored: it has missing values or many zeros. Restore variances."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        original = data if data.base is None else data.base
        before, after = self._groups(original, data)
        x = np.column_stack([protected_numbers(original, name) for name in self.on])
        y = data.matrix(self.on).copy()
        units = units_of(original)
        for group in np.unique(before):
            rows, others = np.flatnonzero(before == group), np.flatnonzero(after == group)
            own = rows if units is None else units[rows]
            y[others] = self._restore(x[rows], y[others], own, rng)
        return data.change(None, dict(zip(self.on, np.ascontiguousarray(y.T), strict=True)))

    def _groups(self, original: Microdata, data: Microdata) -> tuple[Array, Array]:
        """Return the group of each original and of each masked record; combinations of few units are group -1."""
        if not self.by:
            return np.zeros(len(original), dtype=np.int64), np.zeros(len(data), dtype=np.int64)
        code, _ = compress([common_codes(original, data, name) for name in self.by])
        before, after = code[: len(original)], code[len(original) :]
        units = units_of(original)
        distinct = before if units is None else np.unique(np.column_stack([before, units]), axis=0)[:, 0]
        size = code.max() + 1
        few = (np.bincount(distinct, minlength=size) < MIN_UNITS) | (np.bincount(after, minlength=size) < MIN_UNITS)
        return np.where(few[before], -1, before), np.where(few[after], -1, after)

    def _restore(self, x: Array, y: Array, units: Array, rng: Generator) -> Array:
        """Return the masked numbers of one group with the moments of its original ones."""
        if self.of == "covariance":
            return restore_covariances(x, y, len(np.unique(units)), self.noise, rng)
        columns = []
        for before, after in zip(x.T, y.T, strict=True):
            errors = self.noise * rng.standard_normal(2)
            known = ~np.isnan(before)
            count = len(np.unique(units[known]))
            if count < MIN_UNITS or (~np.isnan(after)).sum() < MIN_UNITS:
                columns.append(after)  # too few: their moments would show values of persons
            else:
                columns.append(restore_column(before[known], after, count, errors, self.of == "variance"))
        return np.column_stack(columns)


def protected_numbers(data: Microdata, name: str) -> Array:
    """Return the numbers of a column with its extremes replaced by quantiles of their tails: no unit decides a moment."""
    tails = tails_of(data, name, MIN_UNITS_BEYOND)
    return data.numbers(name) if tails is None else replace_tails(data.numbers(name), tails, None)


def restore_column(x: Array, y: Array, count: int, errors: Array, stretch: bool) -> Array:
    """Return y with the mean of x, and its variance with `stretch`, both with errors in standard errors of `count` units.

    Zeros stay zero, so the other values take over their part of the shift and of the stretch.

    >>> restore_column(np.array([1.0, 3.0]), np.array([0.0, 2.0, 4.0]), 2, np.zeros(2), False).tolist()
    [0.0, 2.0, 4.0]
    """
    mean = x.mean() + errors[0] * x.std() / np.sqrt(count)
    variance = x.var() * max(1 + errors[1] * np.sqrt(2 / count), 0.0)
    moved = ~np.isnan(y) & (y != 0)
    if not moved.any():
        return y
    share = moved.sum() / (~np.isnan(y)).sum()
    own_mean, own_spread, target = y[moved].mean(), y[moved].std(), mean / share
    factor = np.sqrt(max((variance + mean**2) / share - target**2, 0.0)) / own_spread if stretch and own_spread else 1.0
    restored = y.copy()
    restored[moved] = target + factor * (y[moved] - own_mean)
    return _keep_sign(restored, x)


def restore_covariances(x: Array, y: Array, count: int, noise: float, rng: Generator) -> Array:
    """Return y with the means and the covariance matrix of x, with errors in standard errors of `count` units."""
    width = x.shape[1]
    errors = np.triu(rng.standard_normal((width, width)), 1)
    errors = errors + errors.T + np.diag(np.sqrt(2) * rng.standard_normal(width))
    shift = rng.standard_normal(width)
    if min(count, len(y)) < MIN_UNITS + 2 * width:
        return y  # too few: their moments would show values of persons
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)  # the unit of a variable does not matter
    before, after = (np.cov(own / scale, rowvar=False).reshape(width, width) for own in (x, y))
    root = matrix_power(before, 0.5)
    target = root @ (np.eye(width) + noise / np.sqrt(count) * errors) @ root
    mean = x.mean(axis=0) + noise / np.sqrt(count) * scale * (root @ shift)
    restored = mean + scale * ((y - y.mean(axis=0)) / scale @ covariance_map(after, target))
    restored[y == 0] = 0.0
    return np.column_stack([_keep_sign(new, old) for new, old in zip(restored.T, x.T, strict=True)])


def matrix_power(covariance: Array, power: float) -> Array:
    """Return a power of a symmetric matrix on the directions in which it is positive.

    >>> matrix_power(np.diag([4.0, 0.25]), -0.5).round(6).tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    values, vectors = np.linalg.eigh(covariance)
    live = values > 1e-12 * max(values.max(), 0.0)
    return np.asarray((vectors[:, live] * values[live] ** power) @ vectors[:, live].T)


def covariance_map(source: Array, target: Array) -> Array:
    """Return the symmetric A with A source A = target that moves normal values least.  Olkin, Pukelsheim (1982)

    >>> covariance_map(np.diag([4.0, 1.0]), np.diag([1.0, 9.0])).round(6).tolist()
    [[0.5, 0.0], [0.0, 3.0]]
    """
    root, inverse = matrix_power(source, 0.5), matrix_power(source, -0.5)
    return np.asarray(inverse @ matrix_power(root @ target @ root, 0.5) @ inverse)


def _keep_sign(new: Array, original: Array) -> Array:
    """Return the numbers, none below 0 where none of the original is, and none above 0 where none of the original is."""
    least = 0.0 if np.nanmin(original) >= 0 else -np.inf
    most = 0.0 if np.nanmax(original) <= 0 else np.inf
    return np.asarray(np.clip(new, least, most))


def _has_gaps(x: Array) -> bool:
    return bool(np.isnan(x).any() or (x == 0).mean() >= MAX_ZERO_SHARE)
