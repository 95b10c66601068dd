"""Loss by recoding: levels of a hierarchy, sizes of groups of equal records, and entropy."""

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
from sdcmap.utility.category_loss import share_lost, weight_of_merged_values


@dataclass(frozen=True)
class Precision(Measure):
    """Share of the levels of its hierarchy that a variable kept: 1 all of them, 0 none.

    Parameters
    ----------
    on : the variable, of any kind.
    hierarchy : path of its hierarchy, a CSV file in ARX's format: value;level 1;level 2;... without a header (see
        `Recode`).
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in when left out; a file with another digest is
        rejected.

    Formula: 1 - mean over released records of h/H, h the lowest level with the released label, H the number of levels;
        h = H for a suppressed value. For several variables Prec is the mean of theirs; ARX reports 1 - Prec.
    Missing in the original is left out if the released value is missing too. Weights and households are not used. Other
    values of the same level (swapping, PRAM) lose nothing here. Undefined if a released label is not in the hierarchy.
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
    missing: ClassVar[str] = "a suppressed value keeps no level; left out if the original is missing too"

    on: str
    hierarchy: str = field(kw_only=True)
    sha256: str = field(default="", kw_only=True)

    def problems(self) -> Iterator[str]:
        if not self.hierarchy:
            yield ".hierarchy is required: the path of a file."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if problems := list(super().incompatibilities(data)):
            yield from problems
        else:
            try:
                self._heights(data.column(self.on))
            except (SchemaError, Undefined) as problem:
                yield f"Precision: {problem}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        levels = self.records(original, masked)
        if np.isnan(levels).all():
            raise Undefined("no measured value is known in the original.")
        return Estimate(value=float(np.nanmean(levels)))

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the share of levels that each record kept; NaN if it was missing before and after."""
        self.check_variables(original)
        was_missing = original.missing(self.on)[slice(None) if masked.origin is None else masked.origin]
        return np.where(was_missing & masked.missing(self.on), np.nan, 1.0 - self._heights(masked.column(self.on)))

    def _heights(self, column: Column) -> Array:
        """Return h/H of each value; 1 if it is missing."""
        hierarchy = Hierarchy.parse(read_verified(self.hierarchy, self.sha256), self.hierarchy)
        level_of: dict[str, int] = {}
        for level in range(hierarchy.levels + 1):
            for row in hierarchy.rows:
                level_of.setdefault(row[level], level)
        texts, code = _texts(column)
        lacking = sum(text is not None and text not in level_of for text in texts)
        if lacking:
            gap = f"{lacking} of the {len(texts)} values of {self.on!r}"
            raise Undefined(f"the hierarchy {self.hierarchy} lacks {gap}: add them.")
        heights = [hierarchy.levels if text is None else level_of[text] for text in texts]
        return np.asarray(np.array(heights, dtype=float)[code] / max(hierarchy.levels, 1))


def _texts(column: Column) -> tuple[list[str | None], Array]:
    """Return the distinct values, spelled as in a hierarchy (None: missing), and the index of each record's value."""
    if column.levels is not None:
        return [None if level is None else str(level) for level in column.levels.to_list()], column.values
    values, code = np.unique(column.values, return_inverse=True)
    return [None if np.isnan(value) else number_text(value) for value in values.tolist()], code


# Records that can no longer be distinguished: discernibility and the average size of groups of equal records.


def group_sizes(data: Microdata, names: tuple[str, ...]) -> tuple[Array, int]:
    """Return the sizes of the groups of equal records, and the number of records without any value; as a view."""
    if len(data) == 0:
        raise Undefined("the file has no records.")
    cells = data.view(distinct_cells, names)
    blank = (cells.codes < 0).all(axis=1)
    return cells.count[~blank], int(cells.count[blank].sum())


@dataclass(frozen=True)
class _GroupSizes(Measure):
    """A loss from the sizes of the groups of equal records in each file.

    Parameters
    ----------
    on : variables of any kind; by default the keys.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "missing is a category of its own; a record without any value is suppressed"

    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def file_value(self, data: Microdata, names: tuple[str, ...]) -> float:
        """Return the number for one file. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no number.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        before, after = self.file_value(original, names), self.file_value(masked, names)
        return Estimate(value=after - before, parts={"original": before, "released": after})


@dataclass(frozen=True)
class Discernibility(_GroupSizes):
    """Increase in the probability that two records cannot be distinguished.

    Formula: DM/n^2 of the released file minus that of the original; DM = sum over groups of equal records of size^2,
        plus n for each suppressed record, which cannot be distinguished from any. DM/n^2 is the probability that two
        records drawn at random with replacement are equal. `parts`: DM/n^2 of each file; ARX reports DM.
    Missing is a category of its own; a record without any value is suppressed. Weights and households are not used.
    Below 0 if masking increased the variety of records. Works for sampled and synthetic files.
    Reference: Bayardo and Agrawal (2005), section 2.3; ARX's discernibility metric.

    Examples
    --------
    >>> Discernibility(on=["age", "region"]).text
    "Discernibility(on=['age', 'region'])"
    """

    label: ClassVar[str] = "Discernibility"
    description: ClassVar[str] = "Increase in the probability that two records cannot be distinguished."

    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)

    def file_value(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return float((sizes.astype(np.float64) ** 2).sum() / len(data) ** 2 + suppressed / len(data))

    def baseline(self, original: Microdata) -> float | None:
        return 1.0 - self.file_value(original, self.check_variables(original))


@dataclass(frozen=True)
class AverageClassSize(_GroupSizes):
    """Increase in the average size of groups of equal records.

    Formula: n/groups of the released file minus the same of the original; suppressed records are one group. `parts`:
        n/groups of each file, which is ARX's AECS.
    Missing is a category of its own; a record without any value is suppressed. Weights and households are not used.
    Below 0 if masking increased the variety of records. Works for sampled and synthetic files.
    Releasing nothing has no value.
    Reference: LeFevre, DeWitt, Ramakrishnan (2006), section 2.3 (there divided by k); ARX's average equivalence class
    size.

    Examples
    --------
    >>> AverageClassSize().text
    'AverageClassSize'
    """

    label: ClassVar[str] = "Average group size"
    description: ClassVar[str] = "Increase in the average number of records with equal values."

    unit: ClassVar[str] = "records"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)

    def file_value(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return len(data) / (len(sizes) + (suppressed > 0))


# The information that recoding and suppression removed; rare values carry more than frequent ones.


@dataclass(frozen=True)
class NonUniformEntropy(WeightedMeasure):
    """Share of the information in the values that recoding and suppression removed: 0 none, 1 all.

    Formula: sum over released records and variables of log2(N(B)/N(x)), divided by the same sum with B all values; N
        counts records of the original, x is the value and B all values that the released one represents. A frequent
        value merged with rare ones loses little, a rare one much: CategoryLoss counts both alike. `parts`: "bits", the
        sum itself, which is ARX's number; and each variable's share. The values that a released one represents are
        learned from the records, without a hierarchy.
    Missing in the original is left out; a suppressed value may be any value. Weights: used when `weighted`.
    Households are not used. Values that changed into other values of the same detail (noise, swapping, rounding) lose
    nothing here. Undefined for synthetic files, and if every variable is constant. For a sample, only the released
    records count.
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
    missing: ClassVar[str] = "a suppressed value lost all information; left out if the original is missing"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = np.arange(len(original)) if masked.origin is None else masked.origin
        weights = self.weights_of(original)
        lost, whole = {}, {}
        for name in self.check_variables(original):
            bits, most = self._bits(original, masked, name, weights, rows)
            lost[name], whole[name] = float(weights[rows] @ bits), float(weights[rows] @ most)
        constant = "every measured variable is constant in the original, so there is no information to lose."
        share = share_lost(lost, whole, constant)
        return Estimate(value=share.value, parts={"bits": sum(lost.values()), **share.parts})

    def _bits(
        self, original: Microdata, masked: Microdata, name: str, weights: Array, rows: Array
    ) -> tuple[Array, Array]:
        """Return the bits that each released value lost, and the most it could lose; 0 if the original is missing."""
        codes = common_codes(original, masked, name).astype(np.int64)
        before, after = codes[: len(original)], codes[len(original) :]
        present, suppressed = ~original.missing(name), masked.missing(name)
        weight = np.bincount(before[present], weights[present], minlength=int(codes.max(initial=0)) + 1)
        own = np.where(present, weight[before], 1.0)[rows]
        known = present[rows] & (own > 0)
        most = np.log2(weight.sum() / np.where(known, own, 1.0), where=known, out=np.zeros(len(rows)))
        bits = np.where(suppressed, most, 0.0)
        both = np.flatnonzero(known & ~suppressed)
        if len(both) and not (masked.base is original and name not in masked.changes):
            merged = weight_of_merged_values(before[rows[both]], after[both], weight)
            bits[both] = np.clip(np.log2(np.maximum(merged, own[both]) / own[both]), 0.0, most[both])
        return bits, most
