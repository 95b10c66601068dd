"""Masked records that can be recognized as masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata
from sdcmap.core.edit_rule import EditMeasure, EditRule
from sdcmap.data.cells import common_codes


@dataclass(frozen=True)
class MarkedRecords(EditMeasure):
    """Share of masked records that can be recognized as masked because they break an edit rule.

    The attacker knows which combinations are impossible: a married child, a pregnant man. A released record with one
    was masked, so they trust its other values more; without one, they cannot tell which records were masked. `Repair`,
    or `edits` in the plan, removes these marks.

    Formula: #{released records that break a rule which no original record breaks} / #{released records with a value in
        the columns of the rules that differs from the original}; 0 if none differs. `parts`: "masked" and "marked", the
        denominator and the numerator as shares of all released records. A missing value neither triggers nor breaks a
        rule; a suppressed value does not count as masked. Weights and households are not used. Releasing nothing marks
        nobody: 0.
    Reference: edits as in De Waal, Pannekoek, Scholtus (2011), Handbook of Statistical Data Editing and Imputation,
    chapter 2; the attack is ours.

    Examples
    --------
    >>> MarkedRecords(edits='age < 15 -> marital = "never"').edits
    ('age < 15 -> marital = "never"',)
    """

    label: ClassVar[str] = "Masked records marked by edit rules"
    description: ClassVar[str] = "Share of masked records whose impossible values reveal that they were masked."

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of masked records"
    baseline_value: ClassVar[float | None] = 0.0

    revision: ClassVar[int] = 2  # 2: rules on intervals are counted, and a rule that cannot be is left out

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        rules, skipped = self.readable_rules(original, masked)
        changed, marked = _find_changed(original, masked, names), find_marked_rows(rules, original, masked)
        parts = {"masked": float(changed.mean()), "marked": float(marked.mean())} if len(masked) else {}
        return Estimate(value=float(marked[changed].mean()) if changed.any() else 0.0, parts=parts, skipped=skipped)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each record that can be recognized as masked, else 0."""
        return find_marked_rows(self.readable_rules(original, masked)[0], original, masked).astype(np.float64)


def find_marked_rows(rules: tuple[EditRule, ...], original: Microdata, masked: Microdata) -> Array:
    """Return the released records that break a rule which no record of the original breaks."""
    strict = [rule.violations(masked) for rule in rules if not rule.violations(original).any()]
    return np.asarray(np.logical_or.reduce(strict)) if strict else np.zeros(len(masked), dtype=bool)


def _find_changed(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Array:
    """Return the released records with a value of these columns that differs from the original, both being known."""
    changed = np.zeros(len(masked), dtype=bool)
    rows = np.arange(len(masked)) if masked.origin is None else masked.origin
    for name in names:
        code = common_codes(original, masked, name)
        other = code[: len(original)][rows] != code[len(original) :]
        changed |= other & ~masked.missing(name) & ~original.missing(name)[rows]
    return changed
