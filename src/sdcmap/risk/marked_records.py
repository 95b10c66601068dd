"""Masked records that give themselves away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata
from sdcmap.core.edit_rule import EditMeasure, EditRule
from sdcmap.data.cells import common_codes


@dataclass(frozen=True)
class MarkedRecords(EditMeasure):
    """The share of masked records that are seen to be masked, because they break an edit rule that nobody broke.

    The snooper knows what cannot be: a married child, a pregnant man. Where the released file has one, a value of that
    record was masked, and he trusts the others the more; where it has none, he cannot tell who was. `Repair`, or `edits`
    in the plan, takes these marks away.

    Formula: #{released records that break a rule which no record of the original breaks} / #{released records of which a
    value in the columns of the rules differs from the original}; 0 where none differs.
    `parts`: "masked" and "marked", the shares of all released records above and below the line.
    A missing value neither calls for a rule nor breaks it; a value that was suppressed is no mark of this kind, and does
    not count as masked. Weights and households are not used. Releasing nothing marks nobody: 0.
    Reference: edits as in De Waal, Pannekoek, Scholtus (2011), Handbook of Statistical Data Editing and Imputation,
    chapter 2; the attack is ours.

    Examples
    --------
    >>> MarkedRecords(edits='age < 15 -> marital = "never"').edits
    ('age < 15 -> marital = "never"',)
    """

    label: ClassVar[str] = "Records marked as masked"
    description: ClassVar[str] = "Share of records whose impossible values reveal that they were masked."

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of masked records"
    baseline_value: ClassVar[float | None] = 0.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        self.check_readable(original, masked)
        changed, marked = _changed(original, masked, names), marked_rows(self.rules, original, masked)
        parts = {"masked": float(changed.mean()), "marked": float(marked.mean())} if len(masked) else {}
        return Estimate(value=float(marked[changed].mean()) if changed.any() else 0.0, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record is seen to be masked, 0 where it is not."""
        return marked_rows(self.rules, original, masked).astype(np.float64)


def marked_rows(rules: tuple[EditRule, ...], original: Microdata, masked: Microdata) -> Array:
    """The released records that break a rule which no record of the original breaks."""
    strict = [rule.violations(masked) for rule in rules if not rule.violations(original).any()]
    return np.asarray(np.logical_or.reduce(strict)) if strict else np.zeros(len(masked), dtype=bool)


def _changed(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Array:
    """Where a value of these columns is not what it was, both known."""
    changed = np.zeros(len(masked), dtype=bool)
    rows = np.arange(len(masked)) if masked.origin is None else masked.origin
    for name in names:
        code = common_codes(original, masked, name)
        other = code[: len(original)][rows] != code[len(original) :]
        changed |= other & ~masked.missing(name) & ~original.missing(name)[rows]
    return changed
