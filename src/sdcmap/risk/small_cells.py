"""Rare combinations of keys: small cells, k-anonymity, replicated uniques, and rare combinations of a few keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import DistinctCells, cells, common_codes, distinct_cells, moves, recode_to_released_categories
from sdcmap.kernels.tables.coding import compress, in_small_cells
from sdcmap.kernels.tables.combinations import unsafe_combinations
from sdcmap.risk._frequencies import FrequencyMeasure, KeyMeasure, list_key_sets


@dataclass(frozen=True)
class SmallCells(RiskMeasure):
    """Share of unchanged records that lie in a small cell of the released table.

    The attacker knows the keys of a person and looks up the combination in the released file. They succeed if fewer
    than n records share it and masking did not change the record they find.

    Parameters
    ----------
    n : a cell with fewer than n records is small; at least 2.
    on : the variables that define the table; by default the keys of the file.
    counting : "unchanged" counts, in numerator and denominator, the records whose values of these variables masking did
        not change (nothing else marks a swap, so files made elsewhere can be scored); "all" counts every record.

    Formula: #{unchanged records in cells with 1..n-1 records after masking} / #{unchanged records}.
    Missing is a category. Weights are not used: cells are counted in the file. Households are not used. If every record
    changed, the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1.

    Examples
    --------
    >>> SmallCells(n=5).text
    'SmallCells(n=5)'
    """

    label: ClassVar[str] = "Unchanged records in small cells"
    description: ClassVar[str] = (
        "Share of the records that masking left unchanged that share their keys with few other records."
    )

    n: Annotated[int, Range(2)] = 3
    on: tuple[str, ...] = ()
    counting: Literal["unchanged", "all"] = "unchanged"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        moved = moves(original, masked, self.check_variables(original))
        exposed, exposed_moved = in_small_cells(moved.after, moved.new, self.n)
        counted = len(masked)
        if self.counting == "unchanged":
            exposed, counted = exposed - exposed_moved, counted - len(moved.rows)
        if counted == 0:
            raise Undefined("every record has changed on the measured variables, so none is left to count.")
        return Estimate(value=exposed / counted)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each exposed record and 0 for the others; NaN for changed records if only unchanged ones count."""
        names = self.check_variables(original)
        table = masked.view(cells, names)
        exposed = (table.count[table.code] < self.n).astype(float)
        if self.counting == "unchanged":
            exposed[moves(original, masked, names).rows] = np.nan
        return exposed


# Keys that are unique in the original and occur once in the release: synthpop's repU.


@dataclass(frozen=True)
class ReplicatedUniques(RiskMeasure):
    """Share of original records whose keys are unique in the original and occur exactly once in the release.

    The attacker knows that nobody else has the target's keys. They look for them in the release and succeed if exactly
    one record has them. It appears to be the target's record, whether it is or not, even in a synthetic file.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default the keys of the file.

    Formula: repU = #{original records j: f_j = 1 and s_j = 1} / n, f_j and s_j the original and the released records
        with the keys of j.
    `parts`: "unique in the original", the share with f_j = 1; "of these in the release", the share of these with s_j >=
    1; "unique in the release", the share of released records that no other equals.
    Missing is a category. Recoded variables are compared in the released categories. Weights and households are not
    used.
    Reference: Raab, Nowok, Dibben (2024), section 3, repU; synthpop's replicated.uniques.

    Examples
    --------
    >>> ReplicatedUniques(on=["age", "sex"]).text
    "ReplicatedUniques(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Replicated uniques"
    description: ClassVar[str] = (
        "Share of original records whose keys are unique in the original and occur exactly once in the release."
    )

    paired: ClassVar[bool] = False

    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        before, after, size = _common_cells(recode_to_released_categories(original, masked, names), masked, names)
        original_count, released_count = (np.bincount(side, minlength=size) for side in (before, after))
        unique, released = original_count[before] == 1, released_count[before]
        parts = {
            "unique in the original": float(unique.mean()),
            "of these in the release": float((released[unique] > 0).mean()) if unique.any() else 0.0,
            "unique in the release": float((released_count[after] == 1).mean()),
        }
        return Estimate(value=float((unique & (released == 1)).mean()), parts=parts)


def _common_cells(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Array, Array, int]:
    """Return the combination of each original and of each released record, and how many occur."""
    code, combinations = compress([common_codes(original, masked, name) for name in names])
    before, after = np.split(code, [len(original)])
    return before, after, len(combinations)


# Rare combinations of a few keys.


@dataclass(frozen=True)
class UnsafeCombinations(KeyMeasure):
    """Share of records with a rare combination of values on a few of the keys.

    The attacker does not search for anyone. They recognize a person they know by chance, because a few of the person's
    values rarely occur together. A record with such a combination is exposed, whichever keys form it.

    Parameters
    ----------
    k : a combination is unsafe if fewer than k records have it; at least 2.
    dimension : the largest number of variables in a combination, at least 1; mu-Argus's default is 3.
    missing_is : "any value": a missing value matches every value, and combinations with one are not counted; "a
        category": it matches missing values only.

    Formula: #{i: some set S of 1..dimension variables has f_S(i) < k} / n, f_S(i) the records that agree with i on S.
    `parts`: "cells", the unsafe combinations of all sets (as mu-Argus counts them), "cells of 1", "cells of 2", ... by
    the number of variables, and "records", those with at least one.
    Missing values match according to `missing_is`. Weights and households are not used: the file is counted.
    Reference: Hundepool et al. (2014), mu-Argus manual 5.1; de Waal and Willenborg (1996).

    Examples
    --------
    >>> UnsafeCombinations(dimension=2).text
    'UnsafeCombinations(dimension=2)'
    """

    label: ClassVar[str] = "Rare combinations of a few keys"
    description: ClassVar[str] = (
        "Share of records with a combination of a few key values that is rare enough to be recognized."
    )

    k: Annotated[int, Range(2)] = 3
    dimension: Annotated[int, Range(1)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        combinations, sets, cells, exposed = self._unsafe(original, masked)
        records = int(combinations.count[exposed > 0].sum())
        sizes = np.bitwise_count(sets)
        by_size = {f"cells of {n}": float(cells[sizes == n].sum()) for n in range(1, int(sizes.max()) + 1)}
        parts = {"records": float(records), "cells": float(cells.sum()), **by_size}
        return Estimate(value=records / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        combinations, _, _, exposed = self._unsafe(original, masked)
        return combinations, exposed > 0

    def _unsafe(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        self.check_variables(original)
        combinations, codes = self.cells(masked)
        sets = list_key_sets(codes.shape[1], self.dimension, "dimension")
        return combinations, sets, *unsafe_combinations(codes, combinations.count, sets, self.k)


# k-anonymity: records that share their keys with too few others.


MATCH_COUNT_TOLERANCE = 1e-9  # rounding error of a sum of `alpha` that is compared with k


@dataclass(frozen=True)
class KAnonymity(FrequencyMeasure):
    """Share of records whose combination of keys fewer than k records have.

    The attacker knows the keys of a person and that the person is in the file. They look up the combination and succeed
    if fewer than k records match. Masked values count as if they were true, so for perturbed keys this is an upper
    bound; SmallCells counts unchanged records only.

    Parameters
    ----------
    k : a record is exposed if fewer than k records match it, itself included; at least 2.

    Formula: #{i: f_i < k} / n, f_i the records that agree with i on every variable that neither misses.
    `parts`: the exposed "records" (sdcMicro's count) and "cells" (mu-Argus's: distinct combinations, so that a pair
    counts once); "complete and unique", the share of records without a missing key that no other such record equals;
    and "truly unique", the share of records that are so, unchanged, and unique in the original. The last two describe
    an attacker who accepts only full agreement; suppression that lets a blank match any value does not reduce them.
    Labels of several depths ("37", "(35, 40]") match only equal labels, as in the literature; an attacker who reads
    "(35, 40]" as covering 37 finds more records, never fewer.
    Missing values match according to `missing_is`. Weights and households are not used: the file is counted.
    Reference: Samarati and Sweeney (1998); Templ, Kowarik, Meindl (2015) for missing values.

    Examples
    --------
    >>> KAnonymity(k=5).text
    'KAnonymity(k=5)'
    """

    label: ClassVar[str] = "Records below k-anonymity"
    description: ClassVar[str] = "Share of records whose combination of keys is shared by fewer than k records."

    k: Annotated[int, Range(2)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        combinations, few = self.cell_risks(original, masked)
        exposed = int(combinations.count[few].sum())
        parts = {"records": exposed, "cells": int(few.sum()), **self._complete_uniques(original, masked)}
        return Estimate(value=exposed / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        self.check_variables(original)
        frequency = self.count_frequencies(masked)
        return frequency.cells, frequency.records < self.k - MATCH_COUNT_TOLERANCE

    def _complete_uniques(self, original: Microdata, masked: Microdata) -> dict[str, float]:
        """Return the shares of records that are complete and unique, and truly unique."""
        names = self.variables(original)
        combinations = masked.view(distinct_cells, names)
        unique = ((combinations.count == 1) & (combinations.codes >= 0).all(axis=1))[combinations.code]
        shares = {"complete and unique": float(unique.mean())}
        if masked.paired:
            before, after, size = _common_cells(recode_to_released_categories(original, masked, names), masked, names)
            owner = before if masked.origin is None else before[masked.origin]
            unique_before = np.bincount(before, minlength=size) == 1
            shares["truly unique"] = float((unique & (owner == after) & unique_before[after]).mean())
        return shares
