"""Rare combinations of a few keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import DistinctCells
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.combinations import unsafe_combinations
from sdcmap.risk._frequencies import KeyMeasure, key_sets


@dataclass(frozen=True)
class UnsafeCombinations(KeyMeasure):
    """The share of records that have a rare combination of values on a few of the keys.

    The snooper does not search for anybody: he recognises a person he knows by chance, because a few of the person's
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

    k: Annotated[int, Range(2)] = 3
    dimension: Annotated[int, Range(1)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        met, sets, cells, exposed = self._unsafe(masked)
        records = int(met.count[exposed > 0].sum())
        sizes = np.bitwise_count(sets)
        parts = {"records": float(records), "cells": float(cells.sum())}
        for size in range(1, int(sizes.max()) + 1):
            parts[f"cells of {size}"] = float(cells[sizes == size].sum())
        return Estimate(records / len(masked), None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record has an unsafe combination, 0 elsewhere."""
        self.checked(original)
        met, _, _, exposed = self._unsafe(masked)
        return (exposed > 0).astype(float)[met.code]

    def unsafe(self, data: Microdata) -> Array:
        """How many unsafe combinations each record of a file has."""
        self.checked(data)
        met, _, _, exposed = self._unsafe(data)
        return exposed[met.code]

    def _unsafe(self, data: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        met, codes = self.cells(data)
        sets = key_sets(codes.shape[1], self.dimension, "dimension")
        return met, sets, *unsafe_combinations(codes, met.count, sets, self.k)
