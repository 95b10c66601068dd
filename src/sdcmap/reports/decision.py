"""What was decided, in three sentences for somebody who has never read a risk measure; the fall of each risk; and what the
report of a file says of the file that it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sdcmap.charts.before_after import Fall
from sdcmap.choose import Threshold
from sdcmap.core.audience import RECORD_SHARES, format_significant
from sdcmap.core.limit import count_verdicts
from sdcmap.core.rule import Choice
from sdcmap.study.folder import Study
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

CHANCES = (*RECORD_SHARES, "probability")  # units that a person says as so many in 100


def three_sentences(plan: Plan, scores: Scores, choice: Choice, rows: int) -> list[str]:
    """What is to be released, what its risk is, and what it costs."""
    if choice.candidate is None:
        return [
            f"Nothing is to be released of these {rows:,} records.",
            "None of the candidates that were tried is within all limits that were stated.",
            "What to do next stands in the reason below.",
        ]
    limits = f" It {count_verdicts(choice.verdicts)}." if choice.verdicts else ""
    what = f"A masked file of these {rows:,} records is to be released: {choice.name or choice.method}."
    return [what, _risk(plan, scores, choice) + limits, _cost(plan, scores, choice)]


def _risk(plan: Plan, scores: Scores, choice: Choice) -> str:
    falls = falls_of(plan, scores, choice)
    name = max(falls, key=lambda name: falls[name].after) if falls else plan.risk[0]
    unit, limit = scores.measure.row(by_predicate=pl.col("name") == name, named=True)["unit"], _limits(plan).get(name)
    before, after = (_told(value, unit) for value in values_of(scores, name, choice))
    by = f"By the most critical of {len(falls)} measures of risk" if len(falls) > 1 else "By its measure of risk"
    line = "" if limit is None else f"; at most {_told(limit, unit)} is tolerated"
    return f"{by}, {scores.title_of(name)}, it is {after}, where the unmasked file has {before}{line}."


def _cost(plan: Plan, scores: Scores, choice: Choice) -> str:
    measure = scores.measure.row(by_predicate=pl.col("name") == plan.utility, named=True)
    nothing, unit = measure["baseline_value"], measure["unit"]
    after = _told(values_of(scores, plan.utility, choice)[1], unit)
    end = "" if nothing is None else f"; releasing nothing would have {_told(nothing, unit)}"
    what = "loss" if measure["direction"] == "lower" else "worth"
    return f"Its {what} for users by {scores.title_of(plan.utility)} is {after}{end}."


def falls_of(plan: Plan, scores: Scores, choice: Choice | None) -> dict[str, Fall]:
    """Each risk measure with a limit, before and after, as multiples of that limit; one where more is safer is left out,
    and so is one without both values."""
    falls: dict[str, Fall] = {}
    if choice is None or choice.candidate is None:
        return falls
    rising = scores.measure.filter((pl.col("axis") == "risk") & (pl.col("direction") == "lower"))["name"].to_list()
    for name, limit in _limits(plan).items():
        before, after = values_of(scores, name, choice) if name in rising and limit > 0 else (None, None)
        if before is not None and after is not None:
            falls[name] = Fall(scores.title_of(name), before / limit, after / limit)
    return falls


def without_value(plan: Plan, scores: Scores, choice: Choice | None) -> list[str]:
    """The risk measures that the original has a value of and the chosen release has none, in words."""
    if choice is None or choice.candidate is None:
        return []
    values = {name: values_of(scores, name, choice) for name in plan.risk}
    return [scores.title_of(name) for name, (before, after) in values.items() if before is not None and after is None]


def values_of(scores: Scores, name: str, choice: Choice) -> tuple[float | None, float | None]:
    """A measure of the original, and of the chosen release; None where it has no value."""
    known = scores.column(name).drop_nulls("value")
    whole = [method for method, kind in scores.kinds.items() if kind == "identity"]
    before = known.filter(pl.col("method").is_in(whole))["value"]
    after = known.filter(pl.col("id") == (choice.candidate or ""))["value"]
    return next(iter(before), None), next(iter(after), None)


def _limits(plan: Plan) -> Mapping[str, float]:
    """The limit of each risk measure in its own unit; that of a single threshold where the plan names none."""
    if plan.limits:
        return plan.limits
    line = getattr(plan.rule, "risk", None)
    return {plan.risk[0]: float(line)} if isinstance(line, int | float) and len(plan.risk) == 1 else {}


def _told(value: float | None, unit: str) -> str:
    """A score as a person says it; a share of records as so many in 100."""
    if value is None:
        return "not known"
    return f"{format_significant(100 * value, 3)} in 100" if unit in CHANCES else format_significant(value, 3)


def pair_of(study: Study) -> dict[str, Any] | None:
    """Of a study whose data are a file that another study released, or may release; None of any other.

    The first file: its profile, when it was released (empty: not yet), its decision in three sentences; what was measured
    of both when the second was released, nothing before that; and, where the two were chosen together, the reason, and
    every pair that was tried: both names, what each loses, what both find in one hand, and what speaks against it.
    """
    source = study.plan.data
    if source is None or not source.within:
        return None
    chosen = study.manifest.get("pair") or {}
    told = [line for entry in study.manifest.get("releases", []) for line in entry.get("nested", {}).get("told", [])]
    tried = [{**pair, "problem": next(iter(pair["problems"]), "")} for pair in chosen.get("pairs", [])]
    said = {"profile": "", "when": "", "decision": [], "told": told, "reason": chosen.get("reason", ""), "tried": tried}
    with Study.open(source.within) as first:
        plan = first.plan
        made, when, profile = _first_of(plan, first, Path(source.path).parent.resolve(), chosen.get("first", ""))
        if made is None:
            return said
        rule, name = plan.rule or Threshold(risk=1.0), plan.name_of(made)
        choice = Choice(made.id, made.method.text, made.replicate, None, None, rule, "", name=name)
        decision = three_sentences(plan, first.scores(), choice, len(first.data))
    return {**said, "profile": profile, "when": when, "decision": decision}


def _first_of(plan: Plan, first: Study, folder: Path, chosen: str) -> tuple[Candidate | None, str, str]:
    """The candidate that the first file is, when it was released, and for whom: the one that was released into this folder,
    or the one that was chosen together with the second."""
    candidates = {(c.method.text, c.replicate): c for c in plan.candidates}
    for entry in first.manifest.get("releases", [])[::-1]:
        made = candidates.get((entry["method"], int(entry["replicate"])))
        if made is not None and (Path(entry["folder"]) == folder or made.id == chosen):
            return made, str(entry["when"])[:10], str(entry["profile"])
    made = next((candidate for candidate in candidates.values() if candidate.id == chosen), None)
    return made, "", plan.profile.name if plan.profile else "scientific-use"
