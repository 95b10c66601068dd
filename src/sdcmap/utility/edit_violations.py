"""Records that masking made impossible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.edit_rule import EditRule, edit_problems, parse_edit
from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined


@dataclass(frozen=True)
class EditViolations(Measure):
    """The records that break an edit rule, such as a married child, beyond those that did in the original.

    Users meet them in every table, and a snooper reads off them which records were masked.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or with
        texts in double quotes (= !=), joined by `and`; other names stand in `backticks`. `sdcmap look` proposes some.

    Formula: max(0, share of released records that break a rule - the same share of the original).
    `parts`: both shares ("released", "original"), and "marked": the share of released records that break a rule which
    nobody breaks in the original, so that a cell of theirs was masked for certain.
    A missing value neither calls for a rule nor breaks it. Weights and households are not used. Works for synthetic files.
    Reference: De Waal, Pannekoek, Scholtus (2011), Handbook of Statistical Data Editing and Imputation, chapter 2.

    Examples
    --------
    >>> EditViolations(edits='age < 15 -> marital = "never"').edits
    ('age < 15 -> marital = "never"',)
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "a missing value neither calls for a rule nor breaks it"

    revision: ClassVar[int] = 2

    edits: tuple[str, ...]

    def problems(self) -> Iterator[str]:
        yield from (f".edits {problem}" for problem in edit_problems(self.edits))

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(parse_edit(text) for text in self.edits)

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    def misfits(self, data: Microdata) -> Iterator[str]:
        for rule in self.rules:
            yield from rule.misfits(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        unreadable = [problem for rule in self.rules for problem in rule.unreadable(masked, original)]
        if unreadable:
            raise Undefined(f"in the released file, {unreadable[0]}")
        before = [rule.broken(original) for rule in self.rules]
        after = [rule.broken(masked) for rule in self.rules]
        strict = [broken for broken, earlier in zip(after, before, strict=True) if not earlier.any()]
        parts = {
            "released": float(np.logical_or.reduce(after).mean()),
            "original": float(np.logical_or.reduce(before).mean()),
            "marked": float(np.logical_or.reduce(strict).mean()) if strict else 0.0,
        }
        return Estimate(max(0.0, parts["released"] - parts["original"]), None, parts)
