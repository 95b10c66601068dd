"""Share of values that were suppressed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.utility._numeric import WeightedMeasure, keys_and_numbers


@dataclass(frozen=True)
class SuppressionLoss(WeightedMeasure):
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

    unit: ClassVar[str] = "share of values"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0
    missing: ClassVar[str] = "counted where masking made them; left out where the original has them"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        rows = slice(None) if masked.origin is None else masked.origin
        weights = self.weights_of(original)[rows]
        known = [weights @ ~original.missing(name)[rows] for name in names]
        lost = [weights @ self._lost(original, masked, name) for name in names]
        if not sum(known) > 0:
            raise Undefined("no measured value is known in the original.")
        parts = {f"on {n}": float(a / b) for n, a, b in zip(names, lost, known, strict=True) if b > 0}
        released = len(masked) if masked.origin is None else len(np.unique(masked.origin))
        return Estimate(value=float(sum(lost) / sum(known)), parts=parts | {"records": 1 - released / len(original)})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The share of each record's known values that were suppressed; NaN where it has none."""
        names = self.checked(original)
        rows = slice(None) if masked.origin is None else masked.origin
        known = sum((~original.missing(name)[rows]).astype(float) for name in names)
        lost = sum(self._lost(original, masked, name).astype(float) for name in names)
        return np.where(known > 0, lost / np.maximum(known, 1.0), np.nan)

    def _lost(self, original: Microdata, masked: Microdata, name: str) -> Array:
        rows = slice(None) if masked.origin is None else masked.origin
        lost: Array = masked.missing(name) & ~original.missing(name)[rows]
        return lost
