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
from sdcmap.data.amounts import amounts, replace_amounts
from sdcmap.kernels.masking.own_values import CROWD
from sdcmap.kernels.statistics.robust_scatter import Scatter, robust_scatter


def coded(x: Array, beyond: Array, bound: float, replaced_by: str | float) -> Array:
    """The values with those `beyond` the bound replaced by it, by their mean or median, or by a number. The mean of one or
    two would tell them: fewer than three are replaced by the bound."""
    if not beyond.any():
        return x
    if not isinstance(replaced_by, str):
        bound = replaced_by
    elif replaced_by != "bound" and beyond.sum() >= CROWD:
        bound = float(np.mean(x[beyond]) if replaced_by == "mean" else np.median(x[beyond]))
    return np.where(beyond, bound, x)


def _end(low: Array, high: Array, *, at_bound: bool) -> float:
    """The top that was found from the data: the largest value, or, where that stands for the mean of those beyond, the
    largest of the others."""
    largest = float(np.nanmax(low, initial=-np.inf))
    others = high[low < largest]
    return largest if at_bound or len(others) == 0 else float(others.max())


@dataclass(frozen=True)
class TopCode(Method):
    """Replace values above a top, and below a bottom, by one value each.

    Parameters
    ----------
    on : variables to mask: numeric, or ordinal with numbers as categories.
    top, bottom : the bounds, in the variable's unit; values strictly beyond are coded.
    top_share, bottom_share : in their place, the share of the values that is coded, in (0, 1): the bound is a quantile.
    replaced_by : "bound", "mean" or "median" of the coded values of the file, or a number in the variable's unit. The mean
        keeps totals; fewer than three coded values get the bound, since their mean or median would tell them.

    Formula: x > top becomes the replacement, x < bottom likewise; a bound by share is the quantile of the known values (R's
    type 7). Equal values are coded together, so that fewer than the share may be coded.
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
    kept: ClassVar[str] = "every value between the bounds; with means as replacements, unweighted totals"
    distorted: ClassVar[str] = "the tails, and so variances and quantiles beyond the bounds"
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
                yield f" takes {end} or {end}_share, not both."
        if self.top is None and self.bottom is None and self.top_share is None and self.bottom_share is None:
            yield " needs a top, a bottom, or the share of values to code."
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            yield ".bottom must be below .top."
        if (self.top_share or 0) + (self.bottom_share or 0) >= 1:
            yield ".top_share and .bottom_share must sum to less than 1."

    def recoded_rows(self, released: Microdata, name: str) -> Array | None:
        """Values at or beyond a stated bound; of a bound by share, those at the end of the release."""
        x = amounts(released, name)
        known = x[~np.isnan(x)]
        top = self.top if self.top_share is None else known.max(initial=-np.inf)
        bottom = self.bottom if self.bottom_share is None else known.min(initial=np.inf)
        return np.asarray((x >= (np.inf if top is None else top)) | (x <= (-np.inf if bottom is None else bottom)))

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """Beyond a bound anything; a bound by share lies beyond all values that were not coded, or at it where it is what
        they became."""
        if not isinstance(self.replaced_by, str):
            return super().preimage(name, low, high, released)
        top, bottom = self.top, self.bottom
        if self.top_share is not None:
            top = _end(low, high, at_bound=self.replaced_by == "bound")
        if self.bottom_share is not None:
            bottom = -_end(-high, -low, at_bound=self.replaced_by == "bound")
        above = np.zeros(len(low), dtype=bool) if top is None else high >= top
        below = np.zeros(len(low), dtype=bool) if bottom is None else low <= bottom
        least = np.where(above, np.minimum(low, top or 0.0), low)
        most = np.where(below, np.maximum(high, bottom or 0.0), high)
        return np.where(below, -np.inf, least), np.where(above, np.inf, most)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace_amounts(data, {name: self._coded(amounts(data, name)) for name in self.on})

    def _coded(self, x: Array) -> Array:
        if len(known := x[~np.isnan(x)]) == 0:
            return x
        top = self.top if self.top_share is None else float(np.quantile(known, 1 - self.top_share))
        bottom = self.bottom if self.bottom_share is None else float(np.quantile(known, self.bottom_share))
        released = x if top is None else coded(x, x > top, top, self.replaced_by)
        if bottom is None:
            return released
        return np.where(x < bottom, coded(x, x < bottom, bottom, self.replaced_by), released)


# Top coding of several numbers together.


def onto_ellipse(x: Array, scatter: Scatter, squared: float) -> Array:
    """Records beyond the ellipse of this squared distance drawn straight towards its center, until they lie on it."""
    share = np.sqrt(squared / np.maximum(scatter.distances(x), squared))[:, np.newaxis]
    return np.where(share < 1, scatter.center + share * (x - scatter.center), x)


@dataclass(frozen=True)
class TopCodeJointly(Method):
    """Draw records that are outliers of several numbers together towards the middle, until they are outliers no more.

    A wage of 90 and a rent of 5 may each be usual and nobody have both. Coding one number at a time leaves such records as
    they are.

    Parameters
    ----------
    on : numeric variables to mask, at least 2.
    alpha : the share of a normal file beyond the ellipse, in (0, 1).

    Formula: x becomes c + (x - c) sqrt(q/d) where d > q; c and the scatter S are robust (minimum covariance determinant),
        d = (x - c)' S^-1 (x - c), and q the 1 - alpha quantile of chi-square with as many degrees as variables.
    Outliers do not move the ellipse, up to half of the file. Infeasible where half of the records lie in a plane, such as
    of a variable that is mostly 0. Every file far from normal has more than alpha of its records beyond.
    Records with a missing value among these variables stay as they are. Weights and households are not used.
    Reference: sdcMicro's mvTopCoding; Rousseeuw and van Driessen (1999).

    Examples
    --------
    >>> TopCodeJointly(on=["wage", "rent"], alpha=0.01).text
    "TopCodeJointly(on=['wage', 'rent'], alpha=0.01)"
    """

    label: ClassVar[str] = "Joint top coding"
    description: ClassVar[str] = "Records with unusual combinations of numbers are moved toward the center of the data."

    revision: ClassVar[int] = 2  # 2: equal distances alike on every machine
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "every record within the ellipse"
    distorted: ClassVar[str] = "outliers of the numbers together, and so variances and the largest values"

    on: tuple[str, ...]
    alpha: Annotated[float, Range(0, 1, "()")] = 0.025

    @property
    def action(self) -> str:
        return f"drawn onto an ellipse, {format_percent(self.alpha)} beyond"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        alphas = (0.01, 0.1) if len(roles.numbers) > 1 else ()
        return {f"{cls.__name__} {format_strength(alpha)}": cls(roles.numbers, alpha) for alpha in alphas}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """A search does not try it: it masks outliers alone."""
        return None

    def problems(self) -> Iterator[str]:
        if len(set(self.on)) < 2:
            yield ".on must name at least two variables: for one, see TopCode."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        from scipy.special import gammainccinv

        x = data.matrix(self.on)
        complete = np.isfinite(x).all(axis=1)
        if (scatter := robust_scatter(x[complete])) is None:
            raise Infeasible("half of the records lie in a plane, or there are too few, so that there is no ellipse.")
        released = x.copy()
        released[complete] = onto_ellipse(x[complete], scatter, 2 * float(gammainccinv(len(self.on) / 2, self.alpha)))
        return data.change(None, dict(zip(self.on, released.T, strict=True)))
