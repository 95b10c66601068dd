"""Rare combinations of keys: the n-rule, k-anonymity, replicated uniques, and rare combinations of a few keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import DistinctCells, cells, common_codes, distinct_cells, moves, recode_to_released_categories
from sdcmap.kernels.tables.coding import compress, in_small_cells
from sdcmap.kernels.tables.combinations import unsafe_combinations
from sdcmap.risk._frequencies import FrequencyMeasure, KeyMeasure, key_sets


@dataclass(frozen=True)
class SmallCells(RiskMeasure):
    """The share of unchanged records that sit in a small cell of the released table.

    The snooper knows the key variables of somebody and looks the combination up in the released file. He succeeds when
    fewer than n records share it and the record he finds is one the masking left alone.

    Parameters
    ----------
    n : a cell with fewer than n records is small; at least 2.
    on : the variables that make the table; by default the keys of the file.
    counting : "unchanged" counts, above and below the fraction line, the records that masking left as they were on
        these variables (nothing else marks a swap, so a file made elsewhere can be scored); "all" counts every record.

    Formula: #{unchanged records in cells with 1..n-1 records after masking} / #{unchanged records}.
    Missing is a category of its own. Weights are not used: cells are counted in the file. Households are not used.
    Where every record has changed the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1.

    Examples
    --------
    >>> SmallCells(n=5).text
    'SmallCells(n=5)'
    """

    label: ClassVar[str] = "Unchanged records in small cells"
    description: ClassVar[str] = (
        "Share of records that masking left unchanged and that share their keys with few others."
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
        """1 where the record counts as exposed, 0 elsewhere; a changed record is NaN when only unchanged ones count."""
        names = self.check_variables(original)
        table = masked.view(cells, names)
        exposed = (table.count[table.code] < self.n).astype(float)
        if self.counting == "unchanged":
            exposed[moves(original, masked, names).rows] = np.nan
        return exposed


# People who are alone with their keys, in the original and in the release too: synthpop's repU.


@dataclass(frozen=True)
class ReplicatedUniques(RiskMeasure):
    """The share of original records whose combination of keys nobody else has, in the original and in the release alike.

    The snooper knows that nobody but his target has the target's keys. He looks for them in the release and succeeds when
    exactly one record has them: it looks like the target's, whether it is or not, and of a synthetic file too.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys of the file.

    Formula: repU = #{original records j: f_j = 1 and s_j = 1} / n, f_j and s_j the original and the released records
        with the keys of j. `parts`: "alone", the share with f_j = 1; "found", the share of these with s_j >= 1; "alone
        in the release", the share of released records that no other equals.
    A recoded variable is compared in the categories of the release, where each value became one of them. Missing is a
    category of its own. Weights and households are not used.
    Reference: Raab, Nowok, Dibben (2024), section 3, repU; synthpop's replicated.uniques.

    Examples
    --------
    >>> ReplicatedUniques(on=["age", "sex"]).text
    "ReplicatedUniques(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Replicated uniques"
    description: ClassVar[str] = (
        "Share of original records that are unique on their keys both in the original and in the release."
    )

    paired: ClassVar[bool] = False

    on: tuple[str, ...] = ()

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        before, after, size = _cells_of_both(recode_to_released_categories(original, masked, names), masked, names)
        original_count, released_count = (np.bincount(side, minlength=size) for side in (before, after))
        alone, released = original_count[before] == 1, released_count[before]
        parts = {
            "alone": float(alone.mean()),
            "found": float((released[alone] > 0).mean()) if alone.any() else 0.0,
            "alone in the release": float((released_count[after] == 1).mean()),
        }
        return Estimate(value=float((alone & (released == 1)).mean()), parts=parts)


def _cells_of_both(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Array, Array, int]:
    """The combination of each original and of each released record, and how many occur."""
    code, met = compress([common_codes(original, masked, name) for name in names])
    before, after = np.split(code, [len(original)])
    return before, after, len(met)


# Rare combinations of a few keys.


@dataclass(frozen=True)
class UnsafeCombinations(KeyMeasure):
    """The share of records that have a rare combination of values on a few of the keys.

    The snooper does not search for anybody: he recognizes a person he knows by chance, because a few of the person's
    values are rarely found together. He succeeds with a record that has such a combination, whichever keys make it.

    Parameters
    ----------
    k : a combination is unsafe when fewer than k records have it; at least 2.
    dimension : the most variables in a combination, at least 1; mu-Argus's default is 3.
    missing_is : "any value": a missing value matches every value, and a combination that holds one is none; "a
        category": it matches missing alone.

    Formula: #{i: some set S of 1..dimension variables has f_S(i) < k} / n, f_S(i) the records that agree with i on S.
    `parts`: "cells", the unsafe combinations of all sets (mu-Argus counts these), "cells of 1", "cells of 2", ... by
    the number of variables, and "records", those with at least one.
    Missing values as `missing_is` says. Weights and households are not used: the file is counted.
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
        met, sets, cells, exposed = self._unsafe(original, masked)
        records = int(met.count[exposed > 0].sum())
        sizes = np.bitwise_count(sets)
        by_size = {f"cells of {n}": float(cells[sizes == n].sum()) for n in range(1, int(sizes.max()) + 1)}
        parts = {"records": float(records), "cells": float(cells.sum()), **by_size}
        return Estimate(value=records / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        met, _, _, exposed = self._unsafe(original, masked)
        return met, exposed > 0

    def _unsafe(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        self.check_variables(original)
        met, codes = self.cells(masked)
        sets = key_sets(codes.shape[1], self.dimension, "dimension")
        return met, sets, *unsafe_combinations(codes, met.count, sets, self.k)


# Records that share their keys with too few others.


ROUNDING = 1e-9  # sums of alpha


@dataclass(frozen=True)
class KAnonymity(FrequencyMeasure):
    """The share of records whose combination of keys fewer than k records have.

    The snooper knows the keys of somebody and that the person is in the file. He looks the combination up in the released
    file and succeeds when fewer than k records can be the person's. What masking changed counts as if it were true, so
    for perturbed keys this is an upper bound; SmallCells counts the unchanged records alone.

    Parameters
    ----------
    k : a record is exposed when fewer than k records match it, itself included; at least 2.

    Formula: #{i: f_i < k} / n, f_i the records that agree with i on every variable that neither misses. `parts`: the
    exposed "records" (sdcMicro's count) and "cells" (mu-Argus's: distinct combinations, so that a pair counts once); and as
    a snooper sees it who takes the record that agrees in full, "complete and alone", the share of records without a missing
    key that no other such record equals, and of these "truly alone", where it is right: unchanged, and alone in the
    original. Suppression that lets a blank stand for any value leaves them as they are.
    Labels of several depths ("37", "(35, 40]") are counted by equal labels, as the literature does: who reads "(35, 40]" as
    37 too finds more records, never fewer.
    Missing values as `missing_is` says. Weights and households are not used: the file is counted.
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
        met, few = self.cell_risks(original, masked)
        exposed = int(met.count[few].sum())
        parts = {"records": exposed, "cells": int(few.sum()), **self._seen(original, masked)}
        return Estimate(value=exposed / len(masked), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        self.check_variables(original)
        frequency = self.frequencies(masked)
        return frequency.met, frequency.records < self.k - ROUNDING

    def _seen(self, original: Microdata, masked: Microdata) -> dict[str, float]:
        """The shares that are complete and alone, and truly so."""
        names = self.variables(original)
        met = masked.view(distinct_cells, names)
        alone = ((met.count == 1) & (met.codes >= 0).all(axis=1))[met.code]
        seen = {"complete and alone": float(alone.mean())}
        if masked.paired:
            before, after, size = _cells_of_both(recode_to_released_categories(original, masked, names), masked, names)
            owner = before if masked.origin is None else before[masked.origin]
            unique = np.bincount(before, minlength=size) == 1
            seen["truly alone"] = float((alone & (owner == after) & unique[after]).mean())
        return seen
