"""Distances between distributions: of single variables, and of whole files (energy distance, MMD)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, Range, Undefined
from sdcmap.data.cells import common_codes
from sdcmap.kernels.jit import jit
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.utility._numeric import NumericMeasure, keys_and_numbers, numbers_of, over_variables, sound_weights

# Means over pairs of records, never stored: of distances, or of a kernel of them.


@jit
def row_means(x: Array, c: Array, y: Array, d: Array, width: float, own: bool) -> Array:
    """For each record of the first file the mean over the second of the distance, or of exp(-distance/width) where a width
    is given (not 0). x, y : numbers; c, d : codes; the distance is Euclid's, a code that differs counting 1: the root of
    sum (x - y)^2 + #{c != d}. A sum of distances of single variables would see their margins alone.

    own : whether record i of both files is a pair too.
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


STEP = 1.5e-9  # seconds: of one variable of a pair


class Points(NamedTuple):
    """Records as numbers, in standard deviations of the original, and codes."""

    number: Array
    code: Array

    def take(self, rows: Array) -> Points:
        return Points(self.number[rows], self.code[rows])


def points_of(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Points, Points]:
    """Both files; a missing number stands at the mean, and that it is missing is a code of its own."""
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
    most : the most records of each file that are compared, at least 100; drawn at random.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    sampled: ClassVar[bool] = True
    missing: ClassVar[str] = "missing is a category of its own; a missing number stands at the mean"

    on: tuple[str, ...] = ()
    most: Annotated[int, Range(100)] = 2000

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def seconds(self, data: Microdata) -> float | None:
        return 4 * float(min(len(data), self.most)) ** 2 * len(self.variables(data)) * STEP

    def width(self, drawn: Points) -> float:
        """Of the kernel, from the original's records; 0: the distance itself."""
        return 0.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        rows = len(masked) == len(original) and masked.origin is None and masked.paired
        if rows and masked.base is original and masked.changes.keys().isdisjoint(names):
            return Estimate(value=0.0, se=0.0, parts={"records": 0.0})
        size = min(len(original), len(masked), self.most)
        if size < 2:
            raise Undefined("fewer than 2 records are left to compare.")
        first, second = points_of(original, masked, names)
        mine = rng.permutation(len(original))[:size]
        theirs = mine if rows else rng.permutation(len(masked))[:size]
        whole = rows and size == len(original)
        each = self._contributions(first.take(mine), second.take(theirs), across=whole or not rows, within=whole)
        error = 0.0 if whole else 2 * float(each.std(ddof=1)) / float(np.sqrt(size))
        return Estimate(value=max(float(each.mean()), 0.0), se=error, parts={"records": float(size)})

    def _contributions(self, first: Points, second: Points, *, across: bool, within: bool) -> Array:
        """What each record adds: its mean distance to the other file, both ways, less that to its own. Whether record i of
        both files is a pair too: of whole files it is, of a draw not, for there it would count too often."""
        width = self.width(first)
        other = row_means(*first, *second, width, across) + row_means(*second, *first, width, across)
        own = row_means(*first, *first, width, within) + row_means(*second, *second, width, within)
        return np.asarray(other - own if width == 0 else own - other)


@dataclass(frozen=True)
class EnergyDistance(_SampleDistance):
    """How far apart the two files are over all variables together, by distances between records.

    Formula: 2 E d(X, Y) - E d(X, X') - E d(Y, Y'), X and X' two original, Y and Y' two released records; d is Euclid's,
        d^2 = sum over numbers of (x - y)^2/S^2, S the standard deviation of the original, plus the categories that differ.
        It is 0 only where both files have one joint distribution. `parts`: how many "records" of each file were
        compared; 0: no variable changed.
    Of one number it is 2 times the integral of (F - G)^2, in standard deviations. Pairs are never stored: 2,000 records
    of 14 variables take a third of a second. The standard error is that of drawing records.
    Missing is a category of its own; a missing number stands at the mean. Weights and households are not used. Works for
    sampled and synthetic files; undefined where numbers were recoded into categories. Releasing nothing has no value.
    Reference: Szekely and Rizzo (2013), eq. 1.

    Examples
    --------
    >>> EnergyDistance(on=["income", "age"]).text
    "EnergyDistance(on=['income', 'age'])"
    """

    label: ClassVar[str] = "Energy distance"
    description: ClassVar[str] = "Distance between the released and the original file over all variables together."

    unit: ClassVar[str] = "mean distance"


@dataclass(frozen=True)
class MMD(_SampleDistance):
    """How far apart the two files are over all variables together: the maximum mean discrepancy, by a kernel.

    Formula: E k(X, X') + E k(Y, Y') - 2 E k(X, Y), X and X' two original, Y and Y' two released records; k = exp(-d/h),
        d as for EnergyDistance and h its mean over the original's records that were drawn. `parts`: how many "records"
        of each file were compared; 0: no variable changed.
    Far records count less than by EnergyDistance: one outlier cannot rule. The standard error is that of drawing records.
    Missing is a category of its own; a missing number stands at the mean. Weights and households are not used. Works for
    sampled and synthetic files; undefined where numbers were recoded into categories. Releasing nothing has no value.
    Reference: Gretton, Borgwardt, Rasch, Schoelkopf, Smola (2012), eq. 3, squared.

    Examples
    --------
    >>> MMD(most=500).text
    'MMD(most=500)'
    """

    label: ClassVar[str] = "Maximum mean discrepancy"
    description: ClassVar[str] = "Discrepancy between the released and the original file over all variables together."

    unit: ClassVar[str] = "squared discrepancy"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)

    def width(self, drawn: Points) -> float:
        return float(row_means(*drawn, *drawn, 0.0, False).mean()) or 1.0


# Distances between the distributions of single variables before and after masking.


# Distances between two distributions of one number, each a sample with weights.


@jit
def distribution_distances(x: Array, w: Array, y: Array, v: Array) -> tuple[float, float]:
    """Of two samples in order with weights w and v: sup |F - G| (Kolmogorov-Smirnov) and the integral of |F - G|, which
    is the Wasserstein distance of order 1.  Vallender (1974)"""
    total_x, total_y = w.sum(), v.sum()
    i, j = 0, 0
    f, g, gap, largest, area, here = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while i < len(x) or j < len(y):
        at = x[i] if j == len(y) or (i < len(x) and x[i] <= y[j]) else y[j]
        area += gap * (at - here) if gap > 0 else 0.0
        here = at
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


def rising(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The known numbers of one variable, rising, and ones; as a view."""
    x = numbers_of(data, names[0])
    known = np.sort(x[~np.isnan(x)])
    return known, np.ones(len(known))


def rising_with_weights(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The same with the weights, whose column is named second; a record of weight 0 is left out."""
    x, weights = numbers_of(data, names[0]), sound_weights(data)
    known = np.flatnonzero(~np.isnan(x) & (weights > 0))
    order = known[np.argsort(x[known], kind="stable")]
    return x[order], weights[order]


@dataclass(frozen=True)
class _DistributionDistance(NumericMeasure):
    """A loss of utility that is read off the distributions of single numeric variables.

    Parameters
    ----------
    summary : the value is the "mean" or the "worst" over the variables; both, and each variable's own, are in
        `parts`.
    """

    summary: Literal["mean", "worst"] = "mean"

    def margin(self, data: Microdata, name: str) -> tuple[Array, Array]:
        """The known numbers, rising, with the weight of each."""
        return data.view(rising_with_weights if self.weighted else rising, self.with_weight(data, name))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        return over_variables({name: self.distance(original, masked, name) for name in names}, self.summary)

    def distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        """Of one variable."""
        raise TypeError(f"{type(self).__name__} has no distance.")

    def distances(self, original: Microdata, masked: Microdata, name: str) -> tuple[float, float] | None:
        """Kolmogorov-Smirnov's and Wasserstein's distance; None where the released file has no value."""
        before, after = self.margin(original, name), self.margin(masked, name)
        if len(before[0]) == 0:
            raise Undefined(f"no value of {name!r} is known in the original.")
        if len(after[0]) == 0:
            return None
        return (0.0, 0.0) if after is before else distribution_distances(*before, *after)


@dataclass(frozen=True)
class KolmogorovSmirnov(_DistributionDistance):
    """The largest difference between the distribution functions of a variable before and after masking.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: KS = sup over t of |F(t) - G(t)|, F and G the distribution functions before and after.
    Missing values are left out, in each file on its own; a variable all of whose values were suppressed has distance 1.
    Weights: used when `weighted`. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories. A shuffle or rank swap of whole columns leaves it 0: relations need other measures.
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
    """The least mean distance that values must move to turn the original distribution into the released one.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.

    Formula: W = 1/S times the integral of |F(t) - G(t)| dt, S the standard deviation of the original.
    Missing values are left out, in each file on its own; undefined where all of a variable were suppressed. Weights: used
    when `weighted`, in S too. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories, and where a constant variable was changed. Releasing nothing has no value.
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
            raise Undefined(f"every value of {name!r} was suppressed, so that it has no distance from the original.")
        if both[1] == 0:
            return 0.0
        x, weights = self.margin(original, name)
        if x[0] == x[-1]:
            raise Undefined(f"{name!r} is constant in the original and was changed, so its distance has no scale.")
        return both[1] / float(np.sqrt(mean_and_variance(x, weights).variance))
