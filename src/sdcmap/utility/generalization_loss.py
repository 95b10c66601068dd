"""What recoding took: levels of a hierarchy, sizes of groups of equal records, and entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Column, Estimate, Generator, Measure, Microdata, SchemaError, Undefined
from sdcmap.core.named_files import read_verified
from sdcmap.data.cells import common_codes, distinct_cells
from sdcmap.data.hierarchy import Hierarchy, number_text
from sdcmap.utility._numeric import WeightedMeasure
from sdcmap.utility.category_loss import covered_weight, share_lost


@dataclass(frozen=True)
class Precision(Measure):
    """The share of the levels of its hierarchy that a variable kept: 1 the values themselves, 0 nothing.

    Parameters
    ----------
    on : the variable, of any kind.
    hierarchy : path of its hierarchy, a CSV file as ARX writes it: value;level 1;level 2;... without a header (see
        `Recode`).
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in when left out; another content is refused.

    Formula: 1 - mean over released records of h/H, h the lowest level that has the released label, H the number of
        levels; of a suppressed value h = H. Over several variables of a file Prec is the mean of theirs; ARX's number
        is 1 - Prec.
    Missing in the original is left out where the released value is missing too. Weights and households are not used. Other
    values of the same level (swapping, PRAM) lose nothing here. Undefined where a released label is not in the hierarchy.
    Reference: Sweeney (2002b), section 5, Prec; ARX's precision metric.

    Examples
    --------
    >>> Precision("zip", hierarchy="zip.csv", sha256="9f86d081884c7d65").text
    "Precision(on='zip', hierarchy='zip.csv', sha256='9f86d081884c7d65')"
    """

    label: ClassVar[str] = "Hierarchy levels kept"
    description: ClassVar[str] = "Share of the levels of detail in a hierarchy that the released values keep."

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "share of levels"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.0
    missing: ClassVar[str] = "a suppressed value has no level left; left out where the original has it missing too"

    on: str
    hierarchy: str = field(kw_only=True)
    sha256: str = field(default="", kw_only=True)

    def problems(self) -> Iterator[str]:
        if not self.hierarchy:
            yield ".hierarchy must be given: the path of a file."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if problems := list(super().incompatibilities(data)):
            yield from problems
        else:
            try:
                self._heights(data.column(self.on))
            except (SchemaError, Undefined) as problem:
                yield f"Precision: {problem}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        kept = self.records(original, masked)
        if np.isnan(kept).all():
            raise Undefined("no measured value is known in the original.")
        return Estimate(value=float(np.nanmean(kept)))

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The share of levels that each record kept; NaN where it was missing before and after."""
        self.check_variables(original)
        lost = original.missing(self.on)[slice(None) if masked.origin is None else masked.origin]
        return np.where(lost & masked.missing(self.on), np.nan, 1.0 - self._heights(masked.column(self.on)))

    def _heights(self, column: Column) -> Array:
        """h/H of each value; 1 where it is missing."""
        hierarchy = Hierarchy.parse(read_verified(self.hierarchy, self.sha256), self.hierarchy)
        level_of: dict[str, int] = {}
        for level in range(hierarchy.levels + 1):
            for row in hierarchy.rows:
                level_of.setdefault(row[level], level)
        texts, code = _texts(column)
        lacking = sum(text is not None and text not in level_of for text in texts)
        if lacking:
            gap = f"{lacking} of the {len(texts)} values of {self.on!r}"
            raise Undefined(f"the hierarchy {self.hierarchy} misses {gap}.")
        heights = [hierarchy.levels if text is None else level_of[text] for text in texts]
        return np.asarray(np.array(heights, dtype=float)[code] / max(hierarchy.levels, 1))


def _texts(column: Column) -> tuple[list[str | None], Array]:
    """The distinct values as a hierarchy writes them, None: missing; and the one of each record."""
    if column.levels is not None:
        return [None if level is None else str(level) for level in column.levels.to_list()], column.values
    values, code = np.unique(column.values, return_inverse=True)
    return [None if np.isnan(value) else number_text(value) for value in values.tolist()], code


# How many records can no longer be told apart: discernibility and the average size of groups of equal records.


def group_sizes(data: Microdata, names: tuple[str, ...]) -> tuple[Array, int]:
    """The sizes of the groups of records that are equal on `names`, and how many records miss all of them; as a view."""
    if len(data) == 0:
        raise Undefined("the file has no records.")
    met = data.view(distinct_cells, names)
    blank = (met.codes < 0).all(axis=1)
    return met.count[~blank], int(met.count[blank].sum())


@dataclass(frozen=True)
class _GroupSizes(Measure):
    """A loss that is read off the groups of equal records of each file on its own.

    Parameters
    ----------
    on : variables of any kind; by default the keys.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "missing is a category of its own; a record that misses every variable is suppressed"

    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        """The number of one file."""
        raise TypeError(f"{type(self).__name__} has no number.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        before, after = self.of(original, names), self.of(masked, names)
        return Estimate(value=after - before, parts={"original": before, "released": after})


@dataclass(frozen=True)
class Discernibility(_GroupSizes):
    """How much likelier it became that two records cannot be told apart.

    Formula: DM/n^2 of the released file less that of the original; DM = sum over groups of equal records of size^2, plus n
        for each suppressed record, which cannot be told from any. DM/n^2 is the chance that two records drawn at random,
        with replacement, are equal. `parts`: DM/n^2 of each file; ARX's number is that times n^2.
    Missing is a category of its own; a record that misses every variable is suppressed. Weights and households are not
    used. Below 0 where masking made more kinds of records than there were. Works for sampled and synthetic files.
    Reference: Bayardo and Agrawal (2005), section 2.3; ARX's discernibility metric.

    Examples
    --------
    >>> Discernibility(on=["age", "region"]).text
    "Discernibility(on=['age', 'region'])"
    """

    label: ClassVar[str] = "Discernibility"
    description: ClassVar[str] = "Increase in the probability that two records cannot be told apart."

    unit: ClassVar[str] = "chance of two records"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return float((sizes.astype(np.float64) ** 2).sum() / len(data) ** 2 + suppressed / len(data))

    def baseline(self, original: Microdata) -> float | None:
        return 1.0 - self.of(original, self.check_variables(original))


@dataclass(frozen=True)
class AverageClassSize(_GroupSizes):
    """How much larger groups of equal records became, on average.

    Formula: n/groups of the released file less the same of the original; suppressed records are one group. `parts`:
        n/groups of each file, which is ARX's AECS.
    Missing is a category of its own; a record that misses every variable is suppressed. Weights and households are not
    used. Below 0 where masking made more kinds of records than there were. Works for sampled and synthetic files. Releasing
    nothing has no value.
    Reference: LeFevre, DeWitt, Ramakrishnan (2006), section 2.3 (there over k); ARX's average equivalence class size.

    Examples
    --------
    >>> AverageClassSize().text
    'AverageClassSize'
    """

    label: ClassVar[str] = "Average group size"
    description: ClassVar[str] = "Increase in the average number of records with equal values."

    unit: ClassVar[str] = "records"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return len(data) / (len(sizes) + (suppressed > 0))


# The information that recoding and suppression took, where rare values tell more than frequent ones.


@dataclass(frozen=True)
class NonUniformEntropy(WeightedMeasure):
    """The information that recoding and suppression took: 0 none, 1 every value became "anything".

    Formula: sum over released records and variables of log2(N(B)/N(x)), over the same sum with B everything; N counts
        records of the original, x is the value and B all values that the released one stands for. A record of a
        frequent value in a group with rare ones loses little, a rare one much: CategoryLoss counts both alike. `parts`:
        "bits", the sum itself, which is ARX's number; and each variable's share.
    Which values a released one stands for is read off the records: no hierarchy is needed.
    Missing in the original is left out; a suppressed value may be anything. Weights: used when `weighted`. Households
    are not used. Values that changed into other values of the same detail (noise, swapping, rounding) lose nothing
    here. Undefined for synthetic files, and where every variable is constant. Of a sample, the released records are
    looked at.
    Reference: Gionis and Tassa (2009), section 3; ARX's non-uniform entropy; De Waal and Willenborg (1999).

    Examples
    --------
    >>> NonUniformEntropy(on=["age", "region"]).text
    "NonUniformEntropy(on=['age', 'region'])"
    """

    label: ClassVar[str] = "Loss of information"
    description: ClassVar[str] = "Share of the information in the values that recoding and suppression removed."

    unit: ClassVar[str] = "share of information"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0
    missing: ClassVar[str] = "a suppressed value lost all information; left out where the original has it missing"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = np.arange(len(original)) if masked.origin is None else masked.origin
        weights = self.weights_of(original)
        lost, whole = {}, {}
        for name in self.check_variables(original):
            bits, most = self._bits(original, masked, name, weights, rows)
            lost[name], whole[name] = float(weights[rows] @ bits), float(weights[rows] @ most)
        constant = "every measured variable is constant in the original, so that there is no information to lose."
        share = share_lost(lost, whole, constant)
        return Estimate(value=share.value, parts={"bits": sum(lost.values()), **share.parts})

    def _bits(
        self, original: Microdata, masked: Microdata, name: str, weights: Array, rows: Array
    ) -> tuple[Array, Array]:
        """What each released value lost, and could have lost at most; 0 where the original is missing."""
        codes = common_codes(original, masked, name).astype(np.int64)
        before, after = codes[: len(original)], codes[len(original) :]
        there, gone = ~original.missing(name), masked.missing(name)
        weight = np.bincount(before[there], weights[there], minlength=int(codes.max(initial=0)) + 1)
        own = np.where(there, weight[before], 1.0)[rows]
        known = there[rows] & (own > 0)
        most = np.log2(weight.sum() / np.where(known, own, 1.0), where=known, out=np.zeros(len(rows)))
        bits = np.where(gone, most, 0.0)
        both = np.flatnonzero(known & ~gone)
        if len(both) and not (masked.base is original and name not in masked.changes):
            spanned = covered_weight(before[rows[both]], after[both], weight)
            bits[both] = np.clip(np.log2(np.maximum(spanned, own[both]) / own[both]), 0.0, most[both])
        return bits, most
