"""What holds within records, before and after masking: edit rules, columns computed from others, and whether released
columns give a masked one back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sdcmap.bundle.determines import check_determines
from sdcmap.core.edit_rule import parse_edit
from sdcmap.data.microdata import Microdata
from sdcmap.explore.looking import look
from sdcmap.methods import Derive
from sdcmap.study.plan import Plan

GONE = "can no longer be read"


class Held(NamedTuple):
    """One rule or relation, and how it stands in the original and in the release."""

    words: str
    before: str
    after: str


def what_holds(plan: Plan, original: Microdata, masked: Microdata) -> list[Held]:
    """The plan's edit rules, and the relations that it states or that the original shows."""
    return [*_edits(plan.edits, original, masked), *_formulas(plan, original, masked)]


def given_back(plan: Plan, original: Microdata, masked: Microdata, names: Sequence[str]) -> str:
    """Whether released columns give a masked one back, in a sentence; empty where rows are not those of the original."""
    if masked.origin is not None or not masked.paired:
        return ""
    sentence = check_determines(original, masked, names, plan.policy).reason
    return sentence[:1].upper() + sentence[1:]


def _edits(edits: Sequence[str], original: Microdata, masked: Microdata) -> Iterator[Held]:
    for text in edits:
        rule = parse_edit(text)
        gone = any(rule.unreadable(masked, original))
        after = GONE if gone else _records(int(rule.broken(masked).sum()))
        yield Held(text, _records(int(rule.broken(original).sum())), after)


def _records(count: int) -> str:
    return f"broken by {count:,}" if count else "broken by nobody"


def _formulas(plan: Plan, original: Microdata, masked: Microdata) -> Iterator[Held]:
    shown = {glance.name: glance.formula for glance in look(original).variables if glance.formula}
    stated = {step.on: step.formula for step in plan.derive}
    for name, formula in {**shown, **stated}.items():
        step = Derive(name, formula)
        if not any(step.misfits(original)):
            after = GONE if any(step.misfits(masked)) else f"{step.agreement(masked):.1%} of records"
            yield Held(f"{name} = {formula}", f"{step.agreement(original):.1%} of records", after)
