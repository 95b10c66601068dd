"""Detail that merged categories and suppressed values lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.cells import common_codes
from sdcmap.utility._numeric import WeightedMeasure


def covered_weight(before: Array, after: Array, weight: Array) -> Array:
    """For each record the summed weight of the original values that its released one stands for; codes of equal values are
    equal. `weight` is that of each original value.

    Where each original value has one released value (a global recoding) that one stands for all that became it. Elsewhere
    (local recoding, swapping, PRAM) a value of the original stands for itself, and a new one for all that it was put in
    place of.
    """
    size = len(weight)
    pairs = np.unique(before.astype(np.int64) * size + after)
    old, new = np.divmod(pairs, size)
    covered = np.bincount(new, weight[old], minlength=size)
    occurs = np.unique(before)
    if len(occurs) < len(pairs):
        covered[occurs] = weight[occurs]
    return np.asarray(covered[after])


def covered_range(x: Array, after: Array) -> Array:
    """For each record the span of the original numbers that its released category stands for."""
    size = int(after.max()) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, after, x)
    np.maximum.at(high, after, x)
    return np.asarray((high - low)[after])


def share_lost(lost: Mapping[str, float], whole: Mapping[str, float], reason: str) -> Estimate:
    """What was lost over what there was; each variable's own share in `parts`. Undefined, for a reason, of nothing."""
    total = sum(whole.values())
    if not total > 0:
        raise Undefined(reason)
    parts = {f"on {name}": lost[name] / whole[name] for name in lost if whole[name] > 0}
    return Estimate(value=sum(lost.values()) / total, parts=parts)


@dataclass(frozen=True)
class _DetailLoss(WeightedMeasure):
    """The share that the known values of the original lost; by default, of each suppressed value all."""

    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0

    def value_losses(self, original: Microdata, masked: Microdata, name: str) -> Array:
        """The loss of each released value; NaN where the original is missing."""
        rows = slice(None) if masked.origin is None else masked.origin
        return np.where(original.missing(name)[rows], np.nan, masked.missing(name))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        losses = {name: self.value_losses(original, masked, name) for name in self.check_variables(original)}
        weights = self.weights_of(original)[slice(None) if masked.origin is None else masked.origin]
        known = {name: float(weights @ ~np.isnan(loss)) for name, loss in losses.items()}
        lost = {name: float(weights @ np.nan_to_num(loss)) for name, loss in losses.items()}
        return share_lost(lost, known, "no measured value is known in the original.")

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        losses = np.column_stack([self.value_losses(original, masked, name) for name in self.check_variables(original)])
        known = (~np.isnan(losses)).sum(axis=1)
        return np.where(known > 0, np.nansum(losses, axis=1) / np.maximum(known, 1), np.nan)


@dataclass(frozen=True)
class CategoryLoss(_DetailLoss):
    """The detail that recoding and suppression took: 0 none, 1 every value became "anything".

    Formula: the mean over released records and variables of (c - 1)/(C - 1), C the categories the variable has in the
    original and c those that the released category stands for; of a number that became an interval, the span of the
    numbers in it over the span of all; of a suppressed value, 1. It is ARX's loss metric, the NCP of k-anonymity.
    Which categories a released one stands for is read off the records: no hierarchy is needed. `parts`: each variable.
    Missing in the original is left out. Weights: used when `weighted`. Households are not used. Values that changed into
    other values of the same detail (noise, swapping, rounding, top coding) lose nothing here: see IL1s and tables.
    Undefined for synthetic files. Of a sample, the released records are looked at.
    Reference: Iyengar (2002), section 3; Xu et al. (2006), section 3.

    Examples
    --------
    >>> CategoryLoss(on=["age", "region"]).text
    "CategoryLoss(on=['age', 'region'])"
    """

    label: ClassVar[str] = "Loss of detail"
    description: ClassVar[str] = "Share of the detail of values that recoding and suppression removed."

    unit: ClassVar[str] = "share of detail"
    missing: ClassVar[str] = "a suppressed value lost all detail; left out where the original has it missing"

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
            span = covered_range(x[rows[both]], masked.codes(name)[both])
            whole = np.nanmax(x) - np.nanmin(x)
        else:
            codes = common_codes(original, masked, name)
            before, after = codes[: len(original)], codes[len(original) :]
            span = covered_weight(before[rows[both]], after[both], np.ones(int(codes.max()) + 1)) - 1.0
            whole = len(np.unique(before[~original.missing(name)])) - 1
        loss[both] = np.minimum(span / whole, 1.0) if whole > 0 else 0.0
        return loss


# Share of values that were suppressed.


@dataclass(frozen=True)
class SuppressionLoss(_DetailLoss):
    """The share of the known values that masking made missing.

    Formula: #{(i, j): known before, missing after} / #{(i, j): known before}, over released records i and variables j.
    `parts`: the share of each variable, and "records", the share of the original's records that are not released; these
    do not count as suppressed values, since the weights of a sample make up for them.
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
    missing: ClassVar[str] = "counted where masking made them; left out where the original has them"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        share = super().score(original, masked, rng)
        released = len(masked) if masked.origin is None else len(np.unique(masked.origin))
        return Estimate(value=share.value, parts={**share.parts, "records": 1 - released / len(original)})
