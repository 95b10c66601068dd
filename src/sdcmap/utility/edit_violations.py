"""Records that masking made impossible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Estimate, Generator, Microdata
from sdcmap.core.edit_rule import EditMeasure


@dataclass(frozen=True)
class EditViolations(EditMeasure):
    """Share of records that break an edit rule, such as a married child, beyond those that did in the original.

    Users meet such records in every table, and an attacker recognizes by them which records were masked.

    Formula: max(0, share of released records that break a rule - the same share of the original).
    `parts`: both shares ("released", "original"), and "marked": the share of released records that break a rule which
    no original record breaks, so that one of their values was certainly masked. A missing value neither triggers nor
    breaks a rule, and neither does an interval that does not decide it. Rules on merged categories are left out. Weights
    and households are not used. Works for synthetic files.
    Reference: De Waal, Pannekoek, Scholtus (2011), Handbook of Statistical Data Editing and Imputation, chapter 2.

    Examples
    --------
    >>> EditViolations(edits='age < 15 -> marital = "never"').edits
    ('age < 15 -> marital = "never"',)
    """

    label: ClassVar[str] = "Impossible records"
    description: ClassVar[str] = (
        "Share of records that break a consistency rule, beyond those that did in the original."
    )

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "share of records"
    paired: ClassVar[bool] = False

    revision: ClassVar[int] = 3  # 3: rules on intervals are counted, and a rule that cannot be is left out

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        rules, skipped = self.readable_rules(original, masked)
        before, after = ([rule.violations(data) for rule in rules] for data in (original, masked))
        never_broken = [broken for broken, earlier in zip(after, before, strict=True) if not earlier.any()]
        broken = {"released": after, "original": before, "marked": never_broken}
        parts = {name: float(np.logical_or.reduce(own).mean()) if own else 0.0 for name, own in broken.items()}
        return Estimate(value=max(0.0, parts["released"] - parts["original"]), parts=parts, skipped=skipped)
