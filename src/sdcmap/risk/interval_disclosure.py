"""Records whose true values are close to their masked values: interval disclosure, dRisk and dRiskRMD."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Positive, RiskMeasure, Undefined
from sdcmap.kernels.statistics.robust_scatter import robust_scatter

WIDTH_PERCENTS = np.arange(1, 11)  # interval widths: 1 %, 2 %, ... 10 %


def rank_widths(x: Array, z: Array) -> Array:
    """Return at how many widths p = 1..10 % the value x lies between the masked values with ranks p n from z's rank."""
    n = len(z)
    ordered = np.sort(z)
    # twice the mid-rank of ties, so that it is a whole number
    twice = np.searchsorted(ordered, z, side="left") + np.searchsorted(ordered, z, side="right") - 1
    inside = np.zeros(n)
    for reach in (-(-WIDTH_PERCENTS * n // 100)).tolist():  # rounded up
        low = ordered[np.maximum(-(-twice // 2) - reach, 0)]
        high = ordered[np.minimum(twice // 2 + reach, n - 1)]
        inside += (low <= x) & (x <= high)
    return inside


def spread_widths(x: Array, z: Array, spread: float) -> Array:
    """Return at how many widths p = 1..10 % of the standard deviation s |x - z| <= p s; NaN if one is missing."""
    difference = np.abs(x - z)
    if not spread > 0:
        return np.where(np.isnan(difference), np.nan, np.where(difference == 0, float(len(WIDTH_PERCENTS)), 0.0))
    # in place, for large files: the smallest percent that covers the difference, then how many widths are as wide
    difference *= 100 / spread
    np.ceil(difference, out=difference)
    np.maximum(difference, 1, out=difference)
    np.subtract(len(WIDTH_PERCENTS) + 1, difference, out=difference)
    return np.asarray(np.maximum(difference, 0, out=difference))


def _spread(data: Microdata, name: str) -> float:
    """Return the standard deviation of a variable without its missing values."""
    x = data.numbers(name)
    return float(np.nanstd(x, ddof=1)) if (~np.isnan(x)).sum() > 1 else 0.0


class ValueMeasure(RiskMeasure):
    """Base of the measures that compare numbers with their masked values."""

    baseline_value: ClassVar[float | None] = None
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    columns_by_default: ClassVar = "numeric"
    missing: ClassVar[str] = "values missing before or after are left out"

    def values(self, original: Microdata, masked: Microdata) -> tuple[tuple[str, ...], Array, Array]:
        """Return the variables, and the values of each released record before and after masking."""
        names = self.check_variables(original)
        if any(masked.column(name).levels is not None for name in names):
            raise Undefined("a measured variable was recoded into categories, so it has no interval.")
        x = original.matrix(names)
        return names, x if masked.origin is None else x[masked.origin], masked.matrix(names)


@dataclass(frozen=True)
class IntervalDisclosure(ValueMeasure):
    """Share of true values that lie in a narrow interval around their masked value.

    The attacker has the correct record and takes an interval around its masked value. They succeed if the true value
    lies in it. The measure averages over intervals of 1 % to 10 %.

    Parameters
    ----------
    kind : "rank": between the masked values whose ranks are p % of the records away; "sd": within p % of the original
        variable's standard deviation.
    on : the variables the attacker wants to know; by default the numeric variables.

    Formula: mean over p = 1..10, records and variables of [z_(r - pn/100) <= x <= z_(r + pn/100)], r the rank of the
        masked value z among the masked values (ties: the mid-rank) and pn/100 rounded up; or of [|x - z| <= p/100 s].
        `parts`: the share of each variable.
    Missing: values that are missing before or after masking are left out. Weights and households are not used. There is
    no value for releasing nothing, because there is no interval then.
    Reference: Mateo-Sanz, Sebe, Domingo-Ferrer (2004); Yancey, Winkler, Creecy (2002), section 3.4.

    Examples
    --------
    >>> IntervalDisclosure("sd").text
    "IntervalDisclosure(kind='sd')"
    """

    label: ClassVar[str] = "Interval disclosure"
    description: ClassVar[str] = "Share of true values that lie in a narrow interval around their masked value."

    unit: ClassVar[str] = "share of values"

    kind: Literal["rank", "sd"] = "rank"
    on: tuple[str, ...] = field(default=(), kw_only=True)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        inside = dict(zip(names, self._inside(original, masked, names), strict=True))
        count = {name: len(column) - int(np.isnan(column).sum()) for name, column in inside.items()}
        if not any(count.values()):
            raise Undefined("no value is present both before and after masking.")
        total = {name: float(np.nansum(column)) for name, column in inside.items()}
        each = {name: total[name] / count[name] / len(WIDTH_PERCENTS) for name in names if count[name]}
        return Estimate(value=sum(total.values()) / sum(count.values()) / len(WIDTH_PERCENTS), parts=each)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the share of the record's values, over the ten widths, that lie in their interval; NaN if it has none."""
        inside = np.column_stack(self._inside(original, masked, self.check_variables(original)))
        count = (~np.isnan(inside)).sum(axis=1)
        return np.where(count > 0, np.nansum(inside, axis=1) / np.maximum(count, 1) / len(WIDTH_PERCENTS), np.nan)

    def _inside(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[Array]:
        """Return, for each variable, at how many of the ten widths each value is disclosed; NaN if missing."""
        if masked.origin is None and len(masked) != len(original):
            raise Undefined("the masked file does not state which original record each row came from.")
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


# Records with all values close to their masked values: sdcMicro's dRisk.


@dataclass(frozen=True)
class DRisk(ValueMeasure):
    """Share of records whose true values all lie in an interval around their masked values.

    The attacker has the correct record and takes intervals around its masked values. They succeed if all true values
    lie in them. IntervalDisclosure counts single values, at ten widths.

    Parameters
    ----------
    k : the half-width of the interval in standard deviations, above 0.
    scale : the standard deviation is that of the "released" file, as in sdcMicro, or of the "original", which masking
        cannot change.
    on : the variables the attacker wants to know; by default the numeric variables.

    Formula: #{i: |x_ij - z_ij| <= k s_j for every variable j} / n; `parts`: the share of each variable.
    Missing: a value that is missing before or after masking is left out; a record without values is not counted.
    Weights and households are not used. There is no value for releasing nothing, because there is no interval then.
    Reference: Templ, Kowarik, Meindl (2015), section 3.5; Mateo-Sanz, Sebe, Domingo-Ferrer (2004).

    Examples
    --------
    >>> DRisk(k=0.01).text
    'DRisk(k=0.01)'
    """

    label: ClassVar[str] = "Interval disclosure of whole records"
    description: ClassVar[str] = "Share of records whose true values all lie in an interval around their masked values."

    k: Positive = 0.05
    scale: Literal["released", "original"] = "released"
    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, inside = self._inside(original, masked)
        each = _all_inside(inside)
        if np.isnan(each).all():
            raise Undefined("no value is present both before and after masking.")
        parts = {n: float(np.nanmean(x)) for n, x in zip(names, inside.T, strict=True) if not np.isnan(x).all()}
        return Estimate(value=float(np.nanmean(each)), parts=parts if len(names) > 1 else {})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 if every value of the record lies in its interval, else 0; NaN if the record has no values."""
        return _all_inside(self._inside(original, masked)[1])

    def _inside(self, original: Microdata, masked: Microdata) -> tuple[tuple[str, ...], Array]:
        """Return the variables, and 1 for each value in its interval, 0 outside it, NaN if missing."""
        names, x, z = self.values(original, masked)
        scale_file = z if self.scale == "released" else original.matrix(names)
        difference = np.abs(x - z)
        return names, np.where(np.isnan(difference), np.nan, difference <= self.k * _spreads(scale_file))


def _spreads(x: Array) -> Array:
    """Return the standard deviation of each column, with n - 1; 0 for fewer than 2 values."""
    return np.array([np.std(c[~np.isnan(c)], ddof=1) if (~np.isnan(c)).sum() > 1 else 0.0 for c in x.T])


def _all_inside(inside: Array) -> Array:
    """Return 1 for each record without a value outside its interval, else 0; NaN if all its values are missing."""
    known = ~np.isnan(inside)
    return np.where(known.any(axis=1), (np.nan_to_num(inside, nan=1.0) == 1).all(axis=1).astype(float), np.nan)


# Records with a value close to the original, with wider intervals for outliers: sdcMicro's dRiskRMD.


RMD_SCALE = 0.05  # share of the robust distance that is the unit of k, as in sdcMicro


@dataclass(frozen=True)
class DRiskRMD(ValueMeasure):
    """Share of records with a masked value close to the original, where outliers have wider intervals.

    A person far from the others is recognized from further away, so the interval around their values grows with their
    robust distance from the center. The attacker succeeds if a masked value lies in it and no other released record is
    close by.

    Parameters
    ----------
    k : the half-width of the interval, in twentieths of a robust distance and in standard deviations, above 0.
    k2 : a released record is hidden if another one is closer than this, in standard deviations, above 0.
    on : the variables the attacker wants to know; by default the numeric variables.

    Formula: #{i: |x_ij - z_ij| < 0.05 k D_i for a variable j, and no other z within k2 of z_i} / n; x and z in standard
        deviations of their own file, D the robust Mahalanobis distance (minimum covariance determinant) of x_i from the
        mean.
    `parts`: "near", without the second condition (sdcMicro's risk1; the value is its risk2), and "weighted near" and
    "weighted", both counts times the sums of 0.05 D over n (its wrisk1 and wrisk2). sdcMicro draws its subsets at
    random; here they are fixed for a file, and there is no small-sample factor.
    Missing: records with a missing value before or after masking are left out. Weights and households are not used.
    There is no value for releasing nothing. Undefined if half of the records lie in a plane, as with a variable that is
    mostly 0.
    Reference: Templ and Meindl (2008), methods RMDID1 and RMDID2; Rousseeuw and van Driessen (1999).

    Examples
    --------
    >>> DRiskRMD(k=0.1).text
    'DRiskRMD(k=0.1)'
    """

    label: ClassVar[str] = "Interval disclosure of outliers"
    description: ClassVar[str] = (
        "Share of records whose value stays close to the original in relation to how unusual the record is."
    )

    revision: ClassVar[int] = 2  # 2: ties are broken alike on every machine
    missing: ClassVar[str] = "records with a missing value before or after are left out"

    k: Positive = 0.01
    k2: Positive = 0.05
    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        _, x, z = self.values(original, masked)
        complete = ~(np.isnan(x) | np.isnan(z)).any(axis=1)
        x, z = _standardize(x[complete]), _standardize(z[complete])
        scatter = robust_scatter(x) if len(x) else None
        if scatter is None:
            raise Undefined("half of the records lie in a plane, or there are too few: there is no robust distance.")
        # robust scatter, but distances from the ordinary mean, which is 0 after standardizing
        distance = RMD_SCALE * np.sqrt(scatter._replace(center=np.zeros(x.shape[1])).distances(x))
        near = (np.abs(x - z) < self.k * distance[:, np.newaxis]).any(axis=1)
        disclosed = near & (_nearest(z) > self.k2)
        weighted, weighted_near = (float(rows.sum() * distance[rows].sum()) / len(x) for rows in (disclosed, near))
        parts = {"near": float(near.mean()), "weighted near": weighted_near, "weighted": weighted}
        return Estimate(value=float(disclosed.mean()), parts=parts)


def _standardize(x: Array) -> Array:
    """Return the columns with mean 0 and standard deviation 1; raise `Undefined` for a constant column."""
    spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(x.shape[1])
    if not (spread > 0).all():
        raise Undefined("a measured variable is constant, or fewer than 2 records are complete.")
    return np.asarray((x - x.mean(axis=0)) / spread)


def _nearest(z: Array) -> Array:
    """Return the distance of each record to the nearest other record."""
    from scipy.spatial import KDTree

    return np.asarray(KDTree(z).query(z, k=2)[0][:, 1])
