"""Records that share their keys with too few others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, distinct_cells, in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._frequencies import FrequencyMeasure

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

    k: Annotated[int, Range(2)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        frequency = self.frequencies(masked)
        few = frequency.records < self.k - ROUNDING
        exposed = int(frequency.met.count[few].sum())
        parts = {"records": exposed, "cells": int(few.sum()), **self._seen(original, masked)}
        return Estimate(value=exposed / len(masked), parts=parts)

    def _seen(self, original: Microdata, masked: Microdata) -> dict[str, float]:
        """The shares that are complete and alone, and truly so."""
        names = self.variables(original)
        met = masked.view(distinct_cells, names)
        alone = ((met.count == 1) & (met.codes >= 0).all(axis=1))[met.code]
        seen = {"complete and alone": float(alone.mean())}
        if masked.paired:
            known = in_released_categories(original, masked, names)
            code = compress([common_codes(known, masked, name) for name in names])[0]
            before, after = np.split(code, [len(known)])
            owner = before if masked.origin is None else before[masked.origin]
            unique = np.bincount(before, minlength=int(code.max(initial=0)) + 1) == 1
            seen["truly alone"] = float((alone & (owner == after) & unique[after]).mean())
        return seen

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where fewer than k records match, 0 elsewhere."""
        self.checked(original)
        frequency = self.frequencies(masked)
        return (frequency.records < self.k - ROUNDING).astype(float)[frequency.met.code]
