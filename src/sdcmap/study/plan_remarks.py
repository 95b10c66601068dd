"""What a person should know of a sound plan before it is swept: what it was given unasked, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sdcmap.core.edit_rule import parse_edit
from sdcmap.data.microdata import Microdata
from sdcmap.methods.recode import Recode
from sdcmap.study.cost import count_refits
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import explain_unmeasured


def remarks(data: Microdata, plan: Plan, written: Plan) -> Iterator[str]:
    """Yield sentences on a plan, with its risk measures, beside the plan as it was written."""
    risks = [measure.text for measure in plan.measures if measure.axis == "risk"]
    if plan is not written:
        yield f"It names no risk measure, so it gets {', '.join(risks)}."
    yield from explain_unmeasured(data, plan.measures)
    for text in plan.edits:
        if broken := int(parse_edit(text).violations(data).sum()):
            yield f"{broken:,} records of the file as it is break the edit rule {text!r}: only masked values are repaired."
    yield from _find_idle_merges(data, plan)
    if refits := count_refits(data, plan):
        why = "who is in a synthetic or shuffled file is compared with them."
        yield f"{refits:,} more releases are made, without some of the people each: {why}"
    free = [name for name in risks if name not in plan.limits and name not in plan.risk]
    if plan.limits and free:
        yield f"No limit is stated for {', '.join(free)}: measured, and nothing is held to it."


def _find_idle_merges(data: Microdata, plan: Plan) -> Iterator[str]:
    """Lists of categories to merge of which the file has none, or one: that step of the plan would do nothing."""
    idle: dict[str, None] = {}  # each sentence once
    for step in (step for method in plan.all_methods for step in method.steps if isinstance(step, Recode)):
        known = {name: data.column(name).levels for name in step.on if name in data.names}
        for number, group in enumerate(step.merge, 1):
            held = [levels.cast(pl.String).is_in(group).sum() for levels in known.values() if levels is not None]
            if held and max(held) < (1 if step.labels else 2):
                which = f"list {number} of " if len(step.merge) > 1 else ""
                told = f"Recode.merge: the file has fewer than two of the categories in {which}{', '.join(step.on)}"
                idle[f"{told}, so nothing is merged. Are they written as the file writes them?"] = None
    yield from idle
