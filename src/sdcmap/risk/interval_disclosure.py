"""Records whose values are near their masked values: intervals of ranks or values, dRisk and dRiskRMD."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Positive, RiskMeasure, Undefined
from sdcmap.kernels.statistics.robust_scatter import robust_scatter

PERCENTS = np.arange(1, 11)  # the width is 1, 2, ... 10 %


def rank_widths(x: Array, z: Array) -> Array:
    """For how many of the widths p = 1..10 % the value x lies between the masked values whose ranks are p n from z's."""
    n = len(z)
    place = np.sort(z)
    twice = np.searchsorted(place, z, side="left") + np.searchsorted(place, z, side="right") - 1  # equal ones: mid-rank
    inside = np.zeros(n)
    for reach in (-(-PERCENTS * n // 100)).tolist():  # rounded up
        low = place[np.maximum(-(-twice // 2) - reach, 0)]
        high = place[np.minimum(twice // 2 + reach, n - 1)]
        inside += (low <= x) & (x <= high)
    return inside


def spread_widths(x: Array, z: Array, spread: float) -> Array:
    """For how many of the widths p = 1..10 % of the standard deviation |x - z| <= p s; NaN where one is missing."""
    apart = np.abs(x - z)
    if not spread > 0:
        return np.where(np.isnan(apart), np.nan, np.where(apart == 0, float(len(PERCENTS)), 0.0))
    apart *= 100 / spread
    np.ceil(apart, out=apart)  # the first percent that reaches
    np.maximum(apart, 1, out=apart)
    np.subtract(len(PERCENTS) + 1, apart, out=apart)
    return np.asarray(np.maximum(apart, 0, out=apart))


def _spread(data: Microdata, name: str) -> float:
    x = data.numbers(name)
    return float(np.nanstd(x, ddof=1)) if (~np.isnan(x)).sum() > 1 else 0.0


class ValueMeasure(RiskMeasure):
    """What the measures share that compare numbers with their masked values."""

    at_nothing: ClassVar[float | None] = None
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    columns_by_default: ClassVar = "numeric"
    missing: ClassVar[str] = "values missing before or after are left out"

    def values(self, original: Microdata, masked: Microdata) -> tuple[tuple[str, ...], Array, Array]:
        """The variables, and the values of each released record before and after masking."""
        names = self.checked(original)
        if any(masked.column(name).levels is not None for name in names):
            raise Undefined("a measured variable was recoded into categories, so that it has no interval.")
        x = original.matrix(names)
        return names, x if masked.origin is None else x[masked.origin], masked.matrix(names)


@dataclass(frozen=True)
class IntervalDisclosure(ValueMeasure):
    """The share of values that lie in a narrow interval around their masked value.

    The snooper has the right record and asks how well the masked value tells the true one. He takes an interval around
    the masked value, and succeeds when the true value is in it; the mean over intervals of 1 % to 10 % is reported.

    Parameters
    ----------
    kind : "rank", between the masked values whose ranks are p % of the records away; "sd", within p % of the original
        variable's standard deviation.
    on : the variables he wants to know; by default the numeric variables.

    Formula: mean over p = 1..10, records and variables of [z_(r - pn/100) <= x <= z_(r + pn/100)], r the rank of the
    masked value z among the masked values (equal ones: the middle) and pn/100 rounded up; or of [|x - z| <= p/100 s].
    Missing: values that are missing before or after are left out. Weights and households are not used.
    It has no level for releasing nothing: the snooper has no interval then.
    Reference: Mateo-Sanz, Sebe, Domingo-Ferrer (2004); Yancey, Winkler, Creecy (2002), section 4.

    Examples
    --------
    >>> IntervalDisclosure("sd").text
    "IntervalDisclosure(kind='sd')"
    """

    unit: ClassVar[str] = "share of values"

    kind: Literal["rank", "sd"] = "rank"
    on: tuple[str, ...] = field(default=(), kw_only=True)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        inside = dict(zip(names, self._inside(original, masked, names), strict=True))
        count = {name: len(column) - int(np.isnan(column).sum()) for name, column in inside.items()}
        if not any(count.values()):
            raise Undefined("no value is there before and after masking.")
        total = {name: float(np.nansum(column)) for name, column in inside.items()}
        each = {name: total[name] / count[name] / len(PERCENTS) for name in names if count[name]}
        return Estimate(value=sum(total.values()) / sum(count.values()) / len(PERCENTS), parts=each)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The share of the record's values, over the ten widths, that lie in their interval; NaN where it has none."""
        inside = np.column_stack(self._inside(original, masked, self.checked(original)))
        count = (~np.isnan(inside)).sum(axis=1)
        return np.where(count > 0, np.nansum(inside, axis=1) / np.maximum(count, 1) / len(PERCENTS), np.nan)

    def _inside(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[Array]:
        """For each variable, at how many of the ten widths each value is disclosed; NaN: missing before or after."""
        if masked.origin is None and len(masked) != len(original):
            raise Undefined("the masked file does not say which record each of its rows was.")
        columns = []
        for name in names:
            raw, z = original.numbers(name), masked.numbers(name)
            x = raw if masked.origin is None else raw[masked.origin]
            if self.kind == "sd":
                columns.append(spread_widths(x, z, original.view(_spread, name)))
                continue
            both = ~(np.isnan(x) | np.isnan(z))
            column = np.full(len(z), np.nan)
            column[both] = rank_widths(x[both], z[both])
            columns.append(column)
        return columns


# Records all of whose values are near their masked values: sdcMicro's dRisk and dRiskRMD.


@dataclass(frozen=True)
class DRisk(ValueMeasure):
    """The share of records whose every value lies in an interval of one width around its masked value.

    The snooper has the right record and takes intervals around its masked values. He succeeds when the true values are
    in all of them. IntervalDisclosure looks at values one by one, and at ten widths.

    Parameters
    ----------
    k : the half width of the interval, in standard deviations; above 0.
    scale : the standard deviation is that of the "released" file, as sdcMicro's, or of the "original", which masking cannot
        move.
    on : the variables he wants to know; by default the numeric variables.

    Formula: #{i: |x_ij - z_ij| <= k s_j for every variable j} / n; `parts`: the share of each variable.
    Missing: a value that is missing before or after is left out; a record without any is not counted. Weights and
    households are not used. It has no level for releasing nothing: the snooper has no interval then.
    Reference: Templ, Kowarik, Meindl (2015), section 3.5; Mateo-Sanz, Sebe, Domingo-Ferrer (2004).

    Examples
    --------
    >>> DRisk(k=0.01).text
    'DRisk(k=0.01)'
    """

    k: Positive = 0.05
    scale: Literal["released", "original"] = "released"
    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, inside = self._inside(original, masked)
        each = _all_of(inside)
        if np.isnan(each).all():
            raise Undefined("no value is there before and after masking.")
        parts = {n: float(np.nanmean(x)) for n, x in zip(names, inside.T, strict=True) if not np.isnan(x).all()}
        return Estimate(value=float(np.nanmean(each)), parts=parts if len(names) > 1 else {})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where every value of the record is in its interval, 0 elsewhere; NaN where it has none."""
        return _all_of(self._inside(original, masked)[1])

    def _inside(self, original: Microdata, masked: Microdata) -> tuple[tuple[str, ...], Array]:
        """The variables; 1 where a value is in its interval, 0 where not, NaN where it is missing before or after."""
        names, x, z = self.values(original, masked)
        like = z if self.scale == "released" else original.matrix(names)
        apart = np.abs(x - z)
        return names, np.where(np.isnan(apart), np.nan, apart <= self.k * _spreads(like))


def _spreads(x: Array) -> Array:
    """The standard deviation of each column, n - 1 in the denominator; 0 where it has fewer than 2 values."""
    return np.array([np.std(c[~np.isnan(c)], ddof=1) if (~np.isnan(c)).sum() > 1 else 0.0 for c in x.T])


def _all_of(inside: Array) -> Array:
    known = ~np.isnan(inside)
    return np.where(known.any(axis=1), (np.nan_to_num(inside, nan=1.0) == 1).all(axis=1).astype(float), np.nan)


# Records with a value near its original, where outliers count as near from further away: sdcMicro's dRiskRMD.


SCALE = 0.05  # of a robust distance, as sdcMicro has it


@dataclass(frozen=True)
class DRiskRMD(ValueMeasure):
    """The share of records of which a value lies near its original, the nearer the middle of the file, the nearer.

    Whoever lies far from the others is known from further away: the interval around his values is as wide as his robust
    distance from the middle. The snooper succeeds when a masked value is in it, and no other released record is about
    there.

    Parameters
    ----------
    k : half the width of the interval, in twentieths of a robust distance and in standard deviations; above 0.
    k2 : a released record with another one nearer than this, in standard deviations, is hidden by it; above 0.
    on : the variables he wants to know; by default the numeric variables.

    Formula: #{i: |x_ij - z_ij| < k .05 D_i for a variable j, and no other z within k2 of z_i} / n; x and z in standard
        deviations of their own file, D the robust Mahalanobis distance (minimum covariance determinant) of x_i from the
        mean. `parts`: "near", without the second condition (sdcMicro's risk1; the value is its risk2), and "weighted
        near" and "weighted", both counts times the sums of .05 D over n (its wrisk1 and wrisk2).
    sdcMicro draws its subsets at random; ours are the same for the same file, and have no factor for small files.
    Missing: records with a missing value before or after are left out. Weights and households are not used. It has no
    level for releasing nothing. Undefined where half of the records lie in a plane, such as of a variable that is mostly 0.
    Reference: Templ and Meindl (2008), methods RMDID1 and RMDID2; Rousseeuw and van Driessen (1999).

    Examples
    --------
    >>> DRiskRMD(k=0.1).text
    'DRiskRMD(k=0.1)'
    """

    revision: ClassVar[int] = 2  # 2: equal distances alike on every machine
    missing: ClassVar[str] = "records with a missing value before or after are left out"

    k: Positive = 0.01
    k2: Positive = 0.05
    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        _, x, z = self.values(original, masked)
        complete = ~(np.isnan(x) | np.isnan(z)).any(axis=1)
        x, z = _standardised(x[complete]), _standardised(z[complete])
        scatter = robust_scatter(x) if len(x) else None
        if scatter is None:
            raise Undefined("half of the records lie in a plane, or there are too few: there is no robust distance.")
        distance = SCALE * np.sqrt(scatter._replace(center=np.zeros(x.shape[1])).distances(x))
        near = (np.abs(x - z) < self.k * distance[:, np.newaxis]).any(axis=1)
        found = near & (_nearest(z) > self.k2)
        weighted, weighted_near = (float(who.sum() * distance[who].sum()) / len(x) for who in (found, near))
        parts = {"near": float(near.mean()), "weighted near": weighted_near, "weighted": weighted}
        return Estimate(value=float(found.mean()), parts=parts)


def _standardised(x: Array) -> Array:
    spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(x.shape[1])
    if not (spread > 0).all():
        raise Undefined("a measured variable is constant, or fewer than 2 records are complete.")
    return np.asarray((x - x.mean(axis=0)) / spread)


def _nearest(z: Array) -> Array:
    """The distance of each record to the nearest other."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(z).query(z, k=2)[0][:, 1])
