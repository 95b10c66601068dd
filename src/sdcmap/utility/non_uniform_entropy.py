"""The information that recoding and suppression took, where rare values tell more than frequent ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.cells import common_codes
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.utility._numeric import WeightedMeasure, keys_and_numbers


def covered_weight(before: Array, after: Array, weight: Array) -> Array:
    """For each record the summed weight of the original values that its released one stands for; codes of equal values are
    equal. `weight` is that of each original value.

    Where each original value has one released value (a global recoding) that one stands for all that became it. Elsewhere a
    value of the original stands for itself, and a new one for all that it was put in place of.
    """
    size = len(weight)
    pairs = np.unique(before.astype(np.int64) * size + after)
    old, new = np.divmod(pairs, size)
    covered = np.bincount(new, weight[old], minlength=size)
    if len(np.unique(old)) < len(pairs):
        occurs = np.unique(before)
        covered[occurs] = weight[occurs]
    spanned: Array = covered[after]
    return spanned


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

    unit: ClassVar[str] = "share of information"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0
    missing: ClassVar[str] = "a suppressed value lost all information; left out where the original has it missing"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = np.arange(len(original)) if masked.origin is None else masked.origin
        weights = self.weights_of(original)
        lost, whole = {}, {}
        for name in self.checked(original):
            bits, most = self._bits(original, masked, name, weights, rows)
            lost[name], whole[name] = float(weights[rows] @ bits), float(weights[rows] @ most)
        if not sum(whole.values()) > 0:
            raise Undefined(
                "every measured variable is constant in the original, so that there is no information to lose."
            )
        parts = {f"on {name}": lost[name] / whole[name] for name in lost if whole[name] > 0}
        return Estimate(sum(lost.values()) / sum(whole.values()), None, {"bits": sum(lost.values()), **parts})

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
        most = np.where(
            known, np.log2(weight.sum() / np.where(known, own, 1.0), where=known, out=np.zeros(len(rows))), 0.0
        )
        bits = np.where(gone, most, 0.0)
        both = np.flatnonzero(known & ~gone)
        if len(both) and not (masked.base is original and name not in masked.changes):
            spanned = covered_weight(before[rows[both]], after[both], weight)
            bits[both] = np.clip(np.log2(np.maximum(spanned, own[both]) / own[both]), 0.0, most[both])
        return bits, most
