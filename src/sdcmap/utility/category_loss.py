"""Detail lost by merged categories and suppressed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.cells import common_codes
from sdcmap.utility._numeric import WeightedMeasure


def weight_of_merged_values(before: Array, after: Array, weight: Array) -> Array:
    """Return, for each record, the summed weight of the original values that its released value represents.

    If each original value has one released value (a global recoding), the released value represents all values that
    became it. Otherwise (local recoding, swapping, PRAM) an original value represents itself, and a new value all that
    it replaced.

    before, after : codes of the original and the released values; equal values have equal codes
    weight : of each original value
    """
    size = len(weight)
    pairs = np.unique(before.astype(np.int64) * size + after)
    old, new = np.divmod(pairs, size)
    merged = np.bincount(new, weight[old], minlength=size)
    occurs = np.unique(before)
    # some original value has several released ones, so this is no global recoding
    if len(occurs) < len(pairs):
        merged[occurs] = weight[occurs]
    return np.asarray(merged[after])


def range_of_merged_values(x: Array, after: Array) -> Array:
    """Return, for each record, the range of the original numbers that its released category represents."""
    size = int(after.max()) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, after, x)
    np.maximum.at(high, after, x)
    return np.asarray((high - low)[after])


def share_lost(lost: Mapping[str, float], whole: Mapping[str, float], reason: str) -> Estimate:
    """Return what was lost as a share of the whole, with the share of each variable in `parts`.

    Raises `Undefined` with the reason if there was nothing to lose.
    """
    total = sum(whole.values())
    if not total > 0:
        raise Undefined(reason)
    parts = {f"on {name}": lost[name] / whole[name] for name in lost if whole[name] > 0}
    return Estimate(value=sum(lost.values()) / total, parts=parts)


@dataclass(frozen=True)
class _DetailLoss(WeightedMeasure):
    """Share of the detail of known values that was lost; by default all of each suppressed value."""

    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0

    def value_losses(self, original: Microdata, masked: Microdata, name: str) -> Array:
        """Return the loss of each released value; NaN if the original is missing."""
        rows = slice(None) if masked.origin is None else masked.origin
        return np.where(original.missing(name)[rows], np.nan, masked.missing(name))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        losses = {name: self.value_losses(original, masked, name) for name in self.check_variables(original)}
        weights = self.weights_of(original)[slice(None) if masked.origin is None else masked.origin]
        known = {name: float(weights @ ~np.isnan(loss)) for name, loss in losses.items()}
        lost = {name: float(weights @ np.nan_to_num(loss)) for name, loss in losses.items()}
        return share_lost(lost, known, "no measured value is known in the original.")

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the mean loss of each record; NaN if all its values are missing in the original."""
        losses = np.column_stack([self.value_losses(original, masked, name) for name in self.check_variables(original)])
        known = (~np.isnan(losses)).sum(axis=1)
        return np.where(known > 0, np.nansum(losses, axis=1) / np.maximum(known, 1), np.nan)


@dataclass(frozen=True)
class CategoryLoss(_DetailLoss):
    """Share of detail that recoding and suppression removed: 0 none, 1 all.

    Formula: the mean over released records and variables of (c - 1)/(C - 1), C the categories of the variable in the
        original and c those that the released category represents; for a number that became an interval, the range of
        the numbers in it over the range of all; for a suppressed value, 1. This is ARX's loss metric, the NCP of
        k-anonymity. The categories that a released one represents are learned from the records, without a hierarchy.
        `parts`: each variable.
    Missing in the original is left out. Weights: used when `weighted`. Households are not used. Values that changed
    into other values of the same detail (noise, swapping, rounding, top coding) lose nothing here: see IL1s and the
    table measures. Undefined for synthetic files. For a sample, only the released records count.
    Reference: Iyengar (2002), section 3; Xu et al. (2006), section 3.

    Examples
    --------
    >>> CategoryLoss(on=["age", "region"]).text
    "CategoryLoss(on=['age', 'region'])"
    """

    label: ClassVar[str] = "Loss of detail"
    description: ClassVar[str] = "Share of the detail of values that recoding and suppression removed."

    unit: ClassVar[str] = "share of detail"
    missing: ClassVar[str] = "a suppressed value lost all detail; left out if the original is missing"

    def value_losses(self, original: Microdata, masked: Microdata, name: str) -> Array:
        loss = super().value_losses(original, masked, name)
        rows = np.arange(len(masked)) if masked.origin is None else masked.origin
        both = np.flatnonzero(loss == 0)  # known before and after
        if (masked.base is original and name not in masked.changes) or len(both) == 0:
            return loss
        if original.column(name).levels is None:
            if has_numbers(masked.column(name)):
                return loss
            x = amounts(original, name)
            span = range_of_merged_values(x[rows[both]], masked.codes(name)[both])
            whole = np.nanmax(x) - np.nanmin(x)
        else:
            codes = common_codes(original, masked, name)
            before, after = codes[: len(original)], codes[len(original) :]
            span = weight_of_merged_values(before[rows[both]], after[both], np.ones(int(codes.max()) + 1)) - 1.0
            whole = len(np.unique(before[~original.missing(name)])) - 1
        loss[both] = np.minimum(span / whole, 1.0) if whole > 0 else 0.0
        return loss


# Share of values that were suppressed.


@dataclass(frozen=True)
class SuppressionLoss(_DetailLoss):
    """Share of the known values that masking made missing.

    Formula: #{(i, j): known before, missing after} / #{(i, j): known before}, over released records i and variables j.
        `parts`: the share of each variable, and "records not released", the share of original records without a
        released one; these do not count as suppressed values, because the weights of a sample compensate for them.
    Missing in the original is no loss. Weights: used when `weighted`. Households are not used. A recoded value is not
    missing: see CategoryLoss. Undefined for synthetic files.
    Reference: Hundepool et al. (2012), section 3.3.4.

    Examples
    --------
    >>> SuppressionLoss(on=["age", "sex"]).text
    "SuppressionLoss(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Suppressed values"
    description: ClassVar[str] = "Share of known values that masking made missing."

    unit: ClassVar[str] = "share of values"
    missing: ClassVar[str] = "counted if masking made them; left out if the original is missing"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        share = super().score(original, masked, rng)
        released = len(masked) if masked.origin is None else len(np.unique(masked.origin))
        return Estimate(value=share.value, parts={**share.parts, "records not released": 1 - released / len(original)})
