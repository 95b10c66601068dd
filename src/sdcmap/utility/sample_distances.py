"""Distances between distributions: of single variables, and of whole files (energy distance, MMD)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, Range, Undefined
from sdcmap.data.cells import common_codes
from sdcmap.kernels.jit import jit
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.utility._numeric import NumericMeasure, check_weights, keys_and_numbers, numbers_of, summarize_variables

# Means over pairs of records of distances, or of a kernel of them. The pairs are never stored.


@jit
def row_means(x: Array, c: Array, y: Array, d: Array, width: float, own: bool) -> Array:
    """Return, for each record of the first file, the mean over the second of the distance or of a kernel of it.

    The distance is Euclidean with 1 for each different code: sqrt(sum (x - y)^2 + #{c != d}). With a width other than
    0, the mean is of exp(-distance/width). A sum of distances of single variables would depend on their margins only.

    x, y : numbers of both files
    c, d : codes of both files
    own : whether record i is also compared with record i of the other file
    """
    means = np.zeros(len(x))
    for i in range(len(x)):
        for r in range(len(y)):
            if r == i and not own:
                continue
            away = 0.0
            for j in range(x.shape[1]):
                away += (x[i, j] - y[r, j]) ** 2
            for j in range(c.shape[1]):
                away += c[i, j] != d[r, j]
            away = np.sqrt(away)
            means[i] += away if width == 0 else np.exp(-away / width)
        means[i] /= len(y) - (not own)
    return means


SECONDS_PER_PAIR = 1.5e-9  # of one variable of one pair of records


class Points(NamedTuple):
    """Records as numbers, in standard deviations of the original, and codes."""

    number: Array
    code: Array

    def take(self, rows: Array) -> Points:
        """Return some rows."""
        return Points(self.number[rows], self.code[rows])


def points_of(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Points, Points]:
    """Return both files as points; a missing number is put at the mean, with a code that marks it as missing."""
    numbers, codes = [], []
    for name in names:
        if original.column(name).levels is not None:
            codes.append(common_codes(original, masked, name).astype(np.int64))
            continue
        before, after = numbers_of(original, name), numbers_of(masked, name)
        known = before[~np.isnan(before)]
        if len(known) == 0:
            continue
        both = (np.concatenate([before, after]) - known.mean()) / (known.std() or 1.0)
        numbers.append(np.nan_to_num(both))
        if np.isnan(both).any():
            codes.append(np.isnan(both).astype(np.int64))
    n = len(original)
    none = np.empty((n + len(masked), 0), dtype=np.int64)  # so that there may be no numbers, or no codes
    x, c = np.column_stack([none.astype(np.float64), *numbers]), np.column_stack([none, *codes])
    if not np.isfinite(x).all():
        raise Undefined("the numbers are too large to have a distance: divide them by a constant.")
    return Points(x[:n], c[:n]), Points(x[n:], c[n:])


@dataclass(frozen=True)
class _SampleDistance(Measure):
    """A distance between two files that is a mean over pairs of records.

    Parameters
    ----------
    on : variables of any kind; by default the keys and the numeric variables.
    most : the largest number of records of each file to compare, at least 100; drawn at random.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    sampled: ClassVar[bool] = True
    missing: ClassVar[str] = "missing is a category of its own; a missing number is put at the mean"

    on: tuple[str, ...] = ()
    most: Annotated[int, Range(100)] = 2000

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def seconds(self, data: Microdata) -> float | None:
        return 4 * float(min(len(data), self.most)) ** 2 * len(self.variables(data)) * SECONDS_PER_PAIR

    def width(self, sample: Points) -> float:
        """Return the width of the kernel, from the original's records; 0 for the distance itself."""
        return 0.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        same_rows = len(masked) == len(original) and masked.origin is None and masked.paired
        if same_rows and masked.base is original and masked.changes.keys().isdisjoint(names):
            return Estimate(value=0.0, se=0.0, parts={"records": 0.0})
        if min(len(original), len(masked)) < 2:
            raise Undefined("fewer than 2 records are left to compare.")
        first, second = points_of(original, masked, names)
        sizes = len(original), len(masked)
        # sample the same records from both files if they are paired: this removes most of the sampling error
        rows = rng.permutation(sizes[0])[: self.most]
        other_rows = rows if same_rows else rng.permutation(sizes[1])[: self.most]
        each = self._contributions(first.take(rows), second.take(other_rows), sizes, same_rows=same_rows)
        parts = [each[0] + each[1]] if same_rows else each
        errors = [2 * float(part.std(ddof=1)) / math.sqrt(len(part)) for part in parts if len(part) == self.most]
        is_whole = max(sizes) <= self.most
        value = float(each[0].mean() + each[1].mean())
        error = 0.0 if is_whole else math.hypot(*errors)
        return Estimate(value=max(value, 0.0), se=error, parts={"records": float(min(len(rows), len(other_rows)))})

    def _contributions(
        self, first: Points, second: Points, sizes: tuple[int, int], *, same_rows: bool
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return what each record of both samples adds: its mean distance to the other file minus that within its own.

        The means are over all pairs of the whole files, estimated from the samples: a pair of a record with itself, or
        with its own released record, is one of n, and in a sample it would count too often.

        sizes : of the whole files. same_rows : whether record i of both samples is the same person.
        """
        width = self.width(first)
        itself = 0.0 if width == 0 else 1.0
        n, m = sizes

        def within(points: Points, size: int) -> Array:
            return row_means(*points, *points, width, False) * (1 - 1 / size) + itself / size

        def across(own: Points, other: Points) -> Array:
            means = row_means(*own, *other, width, True)
            count = len(other.number)
            if not same_rows or count == n:
                return means
            others = row_means(*own, *other, width, False)
            return np.asarray(others * (1 - 1 / n) + (count * means - (count - 1) * others) / n)

        sign = 1.0 if width == 0 else -1.0
        return (
            sign * (across(first, second) - within(first, n)),
            sign * (across(second, first) - within(second, m)),
        )


@dataclass(frozen=True)
class EnergyDistance(_SampleDistance):
    """How far apart the two files are over all variables together, by distances between records.

    Formula: 2 E d(X, Y) - E d(X, X') - E d(Y, Y'), X and X' two original, Y and Y' two released records; Euclidean d,
        d^2 = sum over numbers of (x - y)^2/S^2, S the standard deviation of the original, plus the number of categories
        that differ. It is 0 only if both files have the same joint distribution. For one number it is 2 times the
        integral of (F - G)^2, in standard deviations. `parts`: "records", how many of each file were compared; 0: no
        variable changed. Pairs are never stored: 2,000 records of 14 variables take a third of a second. All means are
        over the pairs of whole files, so that rows in another order, or a file whose rows do not correspond, give the
        same value. Of larger files records are drawn; the standard error is that of drawing.
    Missing is a category of its own; a missing number is put at the mean. Weights and households are not used. Works
    for sampled and synthetic files; undefined if numbers were recoded into categories.
    Releasing nothing has no value.
    Reference: Szekely and Rizzo (2013), eq. 1.

    Examples
    --------
    >>> EnergyDistance(on=["income", "age"]).text
    "EnergyDistance(on=['income', 'age'])"
    """

    revision: ClassVar[int] = 2  # 2: one estimator for files with and without corresponding rows
    label: ClassVar[str] = "Energy distance"
    description: ClassVar[str] = "Distance between the released and the original file over all variables together."

    unit: ClassVar[str] = "mean distance"


@dataclass(frozen=True)
class MMD(_SampleDistance):
    """How far apart the two files are over all variables together: maximum mean discrepancy with a kernel.

    Formula: E k(X, X') + E k(Y, Y') - 2 E k(X, Y), X and X' two original, Y and Y' two released records; k = exp(-d/h),
        d as in EnergyDistance and h its mean over the drawn records of the original. Distant records count less than in
        EnergyDistance, so that one outlier cannot dominate. `parts`: "records", how many of each file were compared; 0:
        no variable changed. Pairs and standard error as in EnergyDistance.
    Missing is a category of its own; a missing number is put at the mean. Weights and households are not used. Works
    for sampled and synthetic files; undefined if numbers were recoded into categories.
    Releasing nothing has no value.
    Reference: Gretton, Borgwardt, Rasch, Schoelkopf, Smola (2012), eq. 3, squared.

    Examples
    --------
    >>> MMD(most=500).text
    'MMD(most=500)'
    """

    revision: ClassVar[int] = 2  # 2: one estimator for files with and without corresponding rows
    label: ClassVar[str] = "Maximum mean discrepancy"
    description: ClassVar[str] = "Discrepancy between the released and the original file over all variables together."

    unit: ClassVar[str] = "squared discrepancy"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)

    def width(self, sample: Points) -> float:
        return float(row_means(*sample, *sample, 0.0, False).mean()) or 1.0


# Distances between the distributions of single variables before and after masking.


# Each distribution is a sorted sample with weights.


@jit
def distribution_distances(x: Array, w: Array, y: Array, v: Array) -> tuple[float, float]:
    """Return sup |F - G| (Kolmogorov-Smirnov) and the integral of |F - G| of two sorted samples with weights w and v.

    The integral is the Wasserstein distance of order 1. Vallender (1974)
    """
    total_x, total_y = w.sum(), v.sum()
    i, j = 0, 0
    f, g, gap, largest, area, previous = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # merge both samples; between two neighboring values |F - G| is constant
    while i < len(x) or j < len(y):
        at = x[i] if j == len(y) or (i < len(x) and x[i] <= y[j]) else y[j]
        area += gap * (at - previous) if gap > 0 else 0.0
        previous = at
        while i < len(x) and x[i] == at:
            f += w[i]
            i += 1
        while j < len(y) and y[j] == at:
            g += v[j]
            j += 1
        gap = abs(f / total_x - g / total_y)
        if i == len(x) and j == len(y):
            gap = 0.0
        largest = max(largest, gap)
    return largest, area


def sort_values(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Return the known numbers of one variable in rising order, with weights of one; as a view."""
    x = numbers_of(data, names[0])
    known = np.sort(x[~np.isnan(x)])
    return known, np.ones(len(known))


def sort_with_weights(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Return the known numbers in rising order with their positive weights; the second name is the weight."""
    x, weights = numbers_of(data, names[0]), check_weights(data)
    known = np.flatnonzero(~np.isnan(x) & (weights > 0))
    order = known[np.argsort(x[known], kind="stable")]
    return x[order], weights[order]


@dataclass(frozen=True)
class _DistributionDistance(NumericMeasure):
    """A loss from the distributions of single numeric variables.

    Parameters
    ----------
    summary : the value is the "mean" or the "worst" over the variables; both, and the value of each variable, are in
        `parts`.
    """

    summary: Literal["mean", "worst"] = "mean"

    def margin(self, data: Microdata, name: str) -> tuple[Array, Array]:
        """Return the known numbers in rising order, with the weight of each."""
        return data.view(sort_with_weights if self.weighted else sort_values, self.with_weight(data, name))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        return summarize_variables({name: self.distance(original, masked, name) for name in names}, self.summary)

    def distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        """Return the distance of one variable. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no distance.")

    def distances(self, original: Microdata, masked: Microdata, name: str) -> tuple[float, float] | None:
        """Return the Kolmogorov-Smirnov and the Wasserstein distance; None if the released file has no value."""
        before, after = self.margin(original, name), self.margin(masked, name)
        if len(before[0]) == 0:
            raise Undefined(f"no value of {name!r} is known in the original.")
        if len(after[0]) == 0:
            return None
        return (0.0, 0.0) if after is before else distribution_distances(*before, *after)


@dataclass(frozen=True)
class KolmogorovSmirnov(_DistributionDistance):
    """Largest difference between the distribution functions of a variable before and after masking.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: KS = sup over t of |F(t) - G(t)|, F and G the distribution functions before and after.
    Missing values are left out, in each file separately; a variable with all values suppressed has distance 1.
    Weights: used when `weighted`. Households are not used. Works for sampled and synthetic files; undefined if numbers
    were recoded into categories. Shuffling or rank swapping whole columns leaves it at 0: relations need other
    measures.
    Reference: Kolmogorov (1933); Smirnov (1948).

    Examples
    --------
    >>> KolmogorovSmirnov(on="income", weighted=True).text
    "KolmogorovSmirnov(on='income', weighted=True)"
    """

    label: ClassVar[str] = "Kolmogorov-Smirnov distance"
    description: ClassVar[str] = "Largest difference between the distribution of a variable before and after masking."

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0

    def distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        both = self.distances(original, masked, name)
        return 1.0 if both is None else both[0]


@dataclass(frozen=True)
class Wasserstein(_DistributionDistance):
    """Smallest mean distance that values must move to turn the original distribution into the released one.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: W = 1/S times the integral of |F(t) - G(t)| dt, S the standard deviation of the original.
    Missing values are left out, in each file separately; undefined if all values of a variable were suppressed.
    Weights: used when `weighted`, also in S. Households are not used. Works for sampled and synthetic files; undefined
    if numbers were recoded into categories, or if a constant variable was changed.
    Releasing nothing has no value.
    Reference: Vallender (1974).

    Examples
    --------
    >>> Wasserstein(on="income").text
    "Wasserstein(on='income')"
    """

    label: ClassVar[str] = "Wasserstein distance"
    description: ClassVar[str] = (
        "Average distance that values must move to turn the original distribution into the released one."
    )

    unit: ClassVar[str] = "standard deviations"

    def distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        both = self.distances(original, masked, name)
        if both is None:
            raise Undefined(f"every value of {name!r} was suppressed, so it has no distance from the original.")
        if both[1] == 0:
            return 0.0
        x, weights = self.margin(original, name)
        if x[0] == x[-1]:
            raise Undefined(f"{name!r} is constant in the original and was changed, so its distance has no scale.")
        return both[1] / float(np.sqrt(mean_and_variance(x, weights).variance))
