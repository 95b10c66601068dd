"""Remarks on a valid plan before it is swept: what was added by default, what it costs, and what has no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl

from sdcmap.core.edit_rule import parse_edit
from sdcmap.core.formatting import join_names
from sdcmap.core.limit import Limit, strictest
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.methods import ProtectTails, Recode, Synthesize, TopCode, TopCodeJointly
from sdcmap.study.cost import count_refits
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import explain_unmeasured
from sdcmap.utility import ChangedConclusions
from sdcmap.utility.analysis_change import MIN_CLEAR_FINDINGS, count_clear_findings

PROTECTS_EXTREMES = (ProtectTails, Recode, Synthesize, TopCode, TopCodeJointly)  # of the amounts that they mask


def remarks(data: Microdata, plan: Plan, written: Plan) -> Iterator[str]:
    """Yield remarks on `plan`, one sentence each.

    written : the plan as the user wrote it, before default risk measures were added.
    """
    risks = [measure.text for measure in plan.measures if measure.axis == "risk"]
    if plan is not written:
        yield f"The plan names no risk measure. These were added: {', '.join(risks)}."
    yield from explain_unmeasured(data, plan.measures, plan.profile)
    yield from describe_people(data)
    for text in plan.edits:
        if broken := int(parse_edit(text).violations(data).sum()):
            yield f"{broken:,} original records violate the edit rule {text!r}. Only masked values are repaired."
    yield from _explain_recoded_rules(plan)
    yield from _find_idle_merges(data, plan)
    yield from _explain_unlimited_conclusions(data, plan)
    if refits := count_refits(data, plan):
        why = "Attacks on synthetic and shuffled files compare people inside with people outside"
        yield f"{why}: {refits:,} more releases (refits) are made, each without some of the people."
    yield from _find_limits_below_prior(data, plan)
    free = [name for name in risks if name not in plan.limits and name not in plan.risk]
    if plan.limits and free:
        yield f"No limit is stated for {', '.join(free)}: measured, but not compared with a limit."
    yield from _find_kept_extremes(data, plan)


def _find_kept_extremes(data: Microdata, plan: Plan) -> Iterator[str]:
    """Yield a remark on the candidates that change amounts but release their extremes, or values near them."""
    keeping: dict[str, int] = {}  # how many methods, by the classes of the steps that mask these amounts
    amounts: dict[str, None] = {}
    for method in plan.all_methods:
        protected = {name for step in method.steps if isinstance(step, PROTECTS_EXTREMES) for name in step.masks(data)}
        steps = {step: set(step.masks(data)) & {*data.numeric} - protected for step in method.steps}
        if kept := [name for name in data.numeric if any(name in own for own in steps.values())]:
            amounts |= dict.fromkeys(kept)
            classes = " and ".join(dict.fromkeys(type(step).__name__ for step, own in steps.items() if own))
            keeping[classes] = keeping.get(classes, 0) + 1
    if keeping:
        count, names = sum(keeping.values()), [name for name in data.numeric if name in amounts]
        yield (
            f"{count:,} candidate{'s' if count > 1 else ''} (with {join_names([*keeping])}) may release the largest values "
            f"of {join_names(names)}, or values near them. Add ProtectTails on them as the first step of each."
        )


def describe_people(data: Microdata) -> Iterator[str]:
    """Yield of how many people the records are; without a case, a remark on each identifier that repeats."""
    if data.case is not None:
        yield (
            f"The {len(data):,} records are of {data.people:,} people ({data.case}): people are held out with all their "
            "records, and shares count records. So do the group and leaf sizes of methods: a group may be one person, so "
            "state sizes larger than the records of a person."
        )
        return
    for name in data.schema.of_role("identifier"):
        known = data.codes(name)[~data.missing(name)]
        if (distinct := len(np.unique(known))) < len(known):
            yield (
                f"Identifier {name} repeats: {distinct:,} values in {len(known):,} records. If its values are people, "
                f"state it as case (--case {name}, or `case` in the plan): else their records count as different people."
            )


def _explain_recoded_rules(plan: Plan) -> Iterator[str]:
    """Yield a remark on each column that edit rules compare and some candidates recode."""
    rules = [parse_edit(text) for text in plan.edits]
    users = Counter(name for rule in rules for name in {own.name for own in rule.comparisons if own.value is not None})
    recoded = [
        {name for step in method.steps if isinstance(step, Recode) for name in step.on} for method in plan.all_methods
    ]
    for name, used in users.items():
        if count := sum(name in names for names in recoded):
            yield (
                f"{count} of {len(recoded)} methods recode {name!r}, which {used} of the edit rules compare. There these "
                "rules are applied where an interval decides them, and not where categories were merged."
            )


def _explain_unlimited_conclusions(data: Microdata, plan: Plan) -> Iterator[str]:
    """Yield a remark on changed conclusions that have no limit because the file has too few clear ones."""
    for measure in plan.measures:
        if not isinstance(measure, ChangedConclusions) or measure.statistic != "share":
            continue
        if plan.profile is not None and measure.text not in plan.limits:
            clear = count_clear_findings(data, measure.half, measure.models, measure.kept)
            if clear < MIN_CLEAR_FINDINGS:
                few = f"the file has only {clear} clear findings, so a single one would decide"
                yield f"{measure.text} has no limit: {few}."


def _find_limits_below_prior(data: Microdata, plan: Plan) -> Iterator[str]:
    """Yield a remark on each risk limit that is exceeded before any release."""
    stated = [*plan.limits.items(), *(plan.rule.limits.items() if plan.rule else ())]
    risks = {measure.text: measure for measure in plan.measures if measure.axis == "risk"}
    limits = strictest(Limit(risks[name], value) for name, value in stated if name in risks)
    for limit in limits:
        try:
            before = limit.measure.baseline(data)
        except (SchemaError, Undefined):  # reported where the measure is checked
            continue
        if before is not None and not limit.admits(before):
            numbers = f"{before:.4g} before any release, limit {limit.value:g}"
            yield (
                f"The prior is already above the limit of {limit.measure.text}: {numbers}. Even releasing nothing breaks "
                "it. Review the limit, or the prior that the measure states."
            )


def _find_idle_merges(data: Microdata, plan: Plan) -> Iterator[str]:
    """Yield a remark on each list of categories to merge of which the file has at most one, so that nothing is merged."""
    idle: dict[str, None] = {}  # each sentence once
    for step in (step for method in plan.all_methods for step in method.steps if isinstance(step, Recode)):
        known = {name: data.column(name).levels for name in step.on if name in data.names}
        for number, group in enumerate(step.merge, 1):
            present = [levels.cast(pl.String).is_in(group).sum() for levels in known.values() if levels is not None]
            if present and max(present) < (1 if step.labels else 2):
                which = f"list {number} of " if len(step.merge) > 1 else ""
                problem = f"Recode.merge: the file has fewer than two of the categories in {which}{', '.join(step.on)}"
                idle[f"{problem}, so nothing is merged. Are they spelled as in the file?"] = None
    yield from idle
