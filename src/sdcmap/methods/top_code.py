"""Top and bottom coding of one number, and of several together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import (
    Array,
    Generator,
    Infeasible,
    Method,
    Microdata,
    Range,
    Roles,
    Trials,
    format_number,
    format_percent,
    format_strength,
)
from sdcmap.core.method import Origin
from sdcmap.data.amounts import amounts, replace_amounts
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS
from sdcmap.kernels.statistics.robust_scatter import Scatter, robust_scatter


def code_tail(x: Array, beyond: Array, bound: float, replaced_by: str | float) -> Array:
    """Replace the values `beyond` the bound by the bound, by their mean or median, or by a number.

    The mean of one or two values would reveal them, so fewer than three values are replaced by the bound.
    """
    if not beyond.any():
        return x
    if not isinstance(replaced_by, str):
        bound = replaced_by
    elif replaced_by != "bound" and beyond.sum() >= MIN_SHARING_RECORDS:
        bound = float(np.mean(x[beyond]) if replaced_by == "mean" else np.median(x[beyond]))
    return np.where(beyond, bound, x)


def _infer_bound(low: Array, high: Array, *, at_bound: bool) -> float:
    """Return the top that was computed from the data, as far as the released values show it.

    It is the largest released value, or, if that value is the mean of the coded ones, the largest of the others.
    """
    largest = float(np.nanmax(low, initial=-np.inf))
    others = high[low < largest]
    return largest if at_bound or len(others) == 0 else float(others.max())


@dataclass(frozen=True)
class TopCode(Method):
    """Replace values above a top, and below a bottom, by one value each.

    Parameters
    ----------
    on : variables to mask: numeric, or ordinal with numbers as categories.
    top, bottom : the bounds, in the variable's unit; values strictly beyond them are coded.
    top_share, bottom_share : instead of a bound, the share of the values to code, in (0, 1); the bound is a quantile.
    replaced_by : the "bound", the "mean" or "median" of the coded values, or a number in the variable's unit. The mean
        preserves totals. Fewer than three coded values get the bound, because their mean or median would reveal them.

    Formula: x > top is replaced, and x < bottom likewise; a bound by share is the quantile of the nonmissing values (R's
    type 7). Equal values are coded together, so fewer values than the share may be coded.
    Missing values stay missing. Weights are not used: quantiles and means count every record once. Households are not used.
    Reference: Hundepool et al. (2012), section 3.2.3; sdcMicro's topBotCoding.

    Examples
    --------
    >>> TopCode(on="age", top=85).text
    "TopCode(on='age', top=85.0)"
    """

    label: ClassVar[str] = "Top and bottom coding"
    description: ClassVar[str] = "Very large and very small values are replaced by one common value each."

    kinds: ClassVar[tuple[str, ...]] = ("numeric", "ordinal")
    random: ClassVar[bool] = False
    revision: ClassVar[int] = 2
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = (
        "every value between the bounds; unweighted totals, if coded values are replaced by their mean"
    )
    distorted: ClassVar[str] = "the tails of the distribution, and therefore variances and quantiles beyond the bounds"
    is_value_map: ClassVar[bool] = True

    on: tuple[str, ...]
    top: float | None = None
    bottom: float | None = None
    top_share: Annotated[float | None, Range(0, 1, "()")] = None
    bottom_share: Annotated[float | None, Range(0, 1, "()")] = None
    replaced_by: Literal["bound", "mean", "median"] | float = "bound"

    @property
    def action(self) -> str:
        ends = {"top": (self.top, self.top_share), "bottom": (self.bottom, self.bottom_share)}
        coded = [f"{end} coded at {format_number(at)}" for end, (at, _) in ends.items() if at is not None]
        coded += [f"{end} {format_percent(share)} coded" for end, (_, share) in ends.items() if share is not None]
        return " and ".join(coded)

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        shares = (0.01, 0.05) if roles.numbers else ()
        trials = (cls(roles.numbers, top_share=share, bottom_share=share, replaced_by="mean") for share in shares)
        return {f"{cls.__name__} {format_strength(share)}": trial for share, trial in zip(shares, trials, strict=True)}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        for end, share in (("top", self.top_share), ("bottom", self.bottom_share)):
            if getattr(self, end) is not None and share is not None:
                yield f" needs {end} or {end}_share, not both."
        if self.top is None and self.bottom is None and self.top_share is None and self.bottom_share is None:
            yield " needs a top, a bottom, or the share of values to code."
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            yield ".bottom must be below .top."
        if (self.top_share or 0) + (self.bottom_share or 0) >= 1:
            yield ".top_share and .bottom_share must sum to less than 1."

    def recoded_rows(self, released: Microdata, name: str) -> Array | None:
        """Return the values at or beyond a stated bound, or, for a bound by share, at the extremes of the release."""
        x = amounts(released, name)
        known = x[~np.isnan(x)]
        top = self.top if self.top_share is None else known.max(initial=-np.inf)
        bottom = self.bottom if self.bottom_share is None else known.min(initial=np.inf)
        return np.asarray((x >= (np.inf if top is None else top)) | (x <= (-np.inf if bottom is None else bottom)))

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """Return an interval without an end for values at or beyond a bound, and the given interval for others.

        A bound by share is inferred from the released values.
        """
        if not isinstance(self.replaced_by, str):
            return super().preimage(name, low, high, released)
        top, bottom = self.top, self.bottom
        if self.top_share is not None:
            top = _infer_bound(low, high, at_bound=self.replaced_by == "bound")
        if self.bottom_share is not None:
            bottom = -_infer_bound(-high, -low, at_bound=self.replaced_by == "bound")
        above = np.zeros(len(low), dtype=bool) if top is None else high >= top
        below = np.zeros(len(low), dtype=bool) if bottom is None else low <= bottom
        lower = np.where(above, np.minimum(low, top or 0.0), low)
        upper = np.where(below, np.maximum(high, bottom or 0.0), high)
        return np.where(below, -np.inf, lower), np.where(above, np.inf, upper)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace_amounts(data, {name: self._code_tails(amounts(data, name)) for name in self.on})

    def _code_tails(self, x: Array) -> Array:
        if len(known := x[~np.isnan(x)]) == 0:
            return x
        top = self.top if self.top_share is None else float(np.quantile(known, 1 - self.top_share))
        bottom = self.bottom if self.bottom_share is None else float(np.quantile(known, self.bottom_share))
        released = x if top is None else code_tail(x, x > top, top, self.replaced_by)
        if bottom is None:
            return released
        return np.where(x < bottom, code_tail(x, x < bottom, bottom, self.replaced_by), released)


def onto_ellipse(x: Array, scatter: Scatter, squared: float) -> Array:
    """Move records outside the ellipse with this squared distance straight toward its center, onto the ellipse."""
    share = np.sqrt(squared / np.maximum(scatter.distances(x), squared))[:, np.newaxis]
    return np.where(share < 1, scatter.center + share * (x - scatter.center), x)


@dataclass(frozen=True)
class TopCodeJointly(Method):
    """Move records with unusual combinations of several numbers toward the center, onto an ellipse.

    A wage of 90 and a rent of 5 may each be common, but not together. Coding each variable separately misses such records.

    Parameters
    ----------
    on : numeric variables to mask, at least 2.
    alpha : the share of records outside the ellipse if the data were normal, in (0, 1).

    Formula: x becomes c + (x - c) sqrt(q/d) where d > q; c and the scatter S are robust (minimum covariance determinant),
        d = (x - c)' S^-1 (x - c), and q the 1 - alpha quantile of chi-square with as many degrees as variables.
    The ellipse does not depend on outliers, up to half of the file. Infeasible if half of the records lie in a plane, for
    example if a variable is mostly 0. If the data are not normal, more records than alpha may lie outside.
    Records with a missing value in these variables do not change. Weights and households are not used.
    Reference: sdcMicro's mvTopCoding; Rousseeuw and van Driessen (1999).

    Examples
    --------
    >>> TopCodeJointly(on=["wage", "rent"], alpha=0.01).text
    "TopCodeJointly(on=['wage', 'rent'], alpha=0.01)"
    """

    label: ClassVar[str] = "Joint top coding"
    description: ClassVar[str] = "Records with unusual combinations of numbers are moved toward the center of the data."

    revision: ClassVar[int] = 2  # 2: ties are resolved in the same way on every machine
    random: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "every record inside the ellipse"
    distorted: ClassVar[str] = "unusual combinations of these variables, and therefore variances and extreme values"

    on: tuple[str, ...]
    alpha: Annotated[float, Range(0, 1, "()")] = 0.025

    @property
    def action(self) -> str:
        return f"top coded jointly, alpha {format_percent(self.alpha)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        alphas = (0.01, 0.1) if len(roles.numbers) > 1 else ()
        return {f"{cls.__name__} {format_strength(alpha)}": cls(roles.numbers, alpha) for alpha in alphas}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return None: a search does not try it, because it masks only outliers."""
        return None

    def problems(self) -> Iterator[str]:
        if len(set(self.on)) < 2:
            yield ".on must name at least two variables. For one variable use TopCode."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        from scipy.special import gammainccinv

        x = data.matrix(self.on)
        complete = np.isfinite(x).all(axis=1)
        if (scatter := robust_scatter(x[complete])) is None:
            raise Infeasible(
                "no ellipse can be fitted: half of the records lie in a plane, or there are too few records."
            )
        released = x.copy()
        released[complete] = onto_ellipse(x[complete], scatter, 2 * float(gammainccinv(len(self.on) / 2, self.alpha)))
        return data.change(None, dict(zip(self.on, released.T, strict=True)))
