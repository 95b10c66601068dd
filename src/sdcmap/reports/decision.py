"""The decision of a study for readers without statistics, the reduction of each risk, and the facts about a parent file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sdcmap.charts.before_after import RiskChange
from sdcmap.choose import Threshold
from sdcmap.choose.by_release import NO_MASKING_NEEDED
from sdcmap.core.audience import RECORD_SHARES, TARGET_SHARE, format_significant
from sdcmap.core.estimate import Estimate
from sdcmap.core.limit import Limit, Verdict, count_verdicts
from sdcmap.core.readable_units import SHOWN_LEVEL, describe_error, describe_pooled, describe_readably
from sdcmap.core.rule import Choice
from sdcmap.study.folder import Study
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

SHARE_UNITS = (*RECORD_SHARES, TARGET_SHARE, "probability")  # values in these units are shown in percent
TESTED = ("met", "exceeded")  # statuses of a limit that was compared with an estimate


class LimitRow(NamedTuple):
    """One risk limit on the first page: what it means, the limit, the original, the release, and the result.

    result : "met", "exceeded", "not tested" or "no value". reason : why it was not tested. note : how the value of the
    release was pooled, in readable units. limit_note : the limit in readable units.
    """

    title: str
    description: str
    class_name: str
    limit: str
    before: str
    after: str
    compared: str
    result: str
    reason: str
    note: str = ""
    limit_note: str = ""


def decision_sentences(plan: Plan, scores: Scores, choice: Choice, rows: int) -> list[str]:
    """Return three sentences: what is released, its risk, and its utility loss."""
    if choice.candidate is None:
        return [
            f"The recommendation is to release nothing from these {rows:,} records.",
            "No candidate is within all stated risk limits.",
            "The reason below says what to do next.",
            *([NO_MASKING_NEEDED] if choice.no_masking_needed else []),
        ]
    limits = f" The release {count_verdicts(choice.verdicts)}." if choice.verdicts else ""
    # The heading above these sentences names the method.
    what = f"The recommendation is to release a masked version of the file ({rows:,} records)."
    if scores.is_synthetic(choice.method):
        what = (
            f"The recommendation is to release a fully synthetic version of the file ({rows:,} records). A model generated "
            "its rows; they do not correspond to people."
        )
    sentences = [what, _risk_sentence(plan, scores, choice) + limits, _utility_sentence(plan, scores, choice)]
    return [*sentences, NO_MASKING_NEEDED] if choice.no_masking_needed else sentences


def _risk_sentence(plan: Plan, scores: Scores, choice: Choice) -> str:
    # The most critical measure is the one that uses the largest part of its limit.
    changes = risk_changes(plan, scores, choice)
    name = max(changes, key=lambda name: changes[name].after) if changes else plan.risk[0]
    unit, limit = scores.measure.row(by_predicate=pl.col("name") == name, named=True)["unit"], _limits(plan).get(name)
    before, after = (format_score(value, unit) for value in values_of(scores, name, choice))
    which = f"the most critical of {len(changes)} risk measures" if len(changes) > 1 else "the risk measure"
    measure = scores.measure_named(name)
    allowed = (
        ""
        if limit is None
        else f" The limit is {_with_note(format_score(limit, unit), describe_error(measure, limit))}."
    )
    risk = _with_note(after, describe_pooling(scores, name, choice))
    return f"By {which} ({scores.title_of(name)}), the risk is {risk}; for the unmasked file it is {before}.{allowed}"


def _utility_sentence(plan: Plan, scores: Scores, choice: Choice) -> str:
    measure = scores.measure.row(by_predicate=pl.col("name") == plan.utility, named=True)
    baseline, unit = measure["baseline_value"], measure["unit"]
    after = format_score(values_of(scores, plan.utility, choice)[1], unit)
    after = _with_note(after, describe_pooling(scores, plan.utility, choice))
    comparison = "" if baseline is None else f"; if nothing were released, it would be {format_score(baseline, unit)}"
    what = "utility loss" if measure["direction"] == "lower" else "utility"
    return f"The {what} for users ({scores.title_of(plan.utility)}) is {after}{comparison}."


def limit_rows(scores: Scores, choice: Choice | None) -> list[LimitRow]:
    """Return one row for each risk limit, whether it was tested or not; none if nothing was chosen."""
    if choice is None or choice.candidate is None:
        return []
    return [_limit_row(scores, choice, verdict) for verdict in choice.verdicts]


def _limit_row(scores: Scores, choice: Choice, verdict: Verdict) -> LimitRow:
    measure, unit = verdict.limit.measure, verdict.limit.measure.value_unit
    before = values_of(scores, measure.text, choice)[0] if measure.text in scores.values else None
    estimate = None if verdict.estimate is None else verdict.estimate.value
    return LimitRow(
        title=measure.title,
        description=measure.description,
        class_name=type(measure).__name__,
        limit=("at most " if verdict.limit.is_upper else "at least ") + format_score(verdict.limit.value, unit),
        before=format_score(before, unit),
        after=format_score(estimate, unit) if verdict.status in TESTED else verdict.status,
        compared=format_score(verdict.end, unit) if verdict.status in TESTED else "",
        result=verdict.status,
        reason=verdict.reason,
        note=describe_pooling(scores, measure.text, choice) if verdict.status in TESTED else "",
        limit_note=describe_readably(measure, verdict.limit.value, before),
    )


def release_measurement(study: Study, scores: Scores, choice: Choice | None) -> dict[str, Any] | None:
    """Return what was measured when the choice was released: its tries, and a row for each measure; None before that.

    These figures are those of the released file. The study's own are too low on average, because the choice used them.
    """
    if choice is None or choice.candidate is None:
        return None
    own = choice.method, choice.replicate
    entries = [e for e in study.manifest.get("releases", []) if (e["method"], e.get("chosen")) == own]
    if not entries or not entries[-1].get("measured"):
        return None
    last, rows = entries[-1], []
    for row in last["measured"]:
        if row["measure"] not in scores.values:  # measures of the profile that the plan does not have
            continue
        measure, limit = scores.values[row["measure"]], _limits(study.plan).get(row["measure"])
        known = row["value"] is not None
        end, note = "", row["reason"]
        if known:
            estimate = Estimate.from_details(row["value"], row["se"], row["details"])
            compared = Limit(measure, 0.0 if limit is None else limit).confidence_limit(estimate, last["level"])
            end, note = format_score(compared, measure.value_unit), measure.describe_parts(estimate)
        rows.append({
            "title": measure.title, "axis": measure.axis, "value": format_score(row["value"], measure.value_unit),
            "compared": end, "limit": "" if limit is None else format_score(limit, measure.value_unit),
            "note": note,
        })  # fmt: skip
    return {"when": str(last["when"])[:10], "level": last["level"], "tries": last["tries"], "rows": rows}


def risk_changes(plan: Plan, scores: Scores, choice: Choice | None) -> dict[str, RiskChange]:
    """Return each limited risk measure before and after masking, as multiples of its limit.

    Measures for which higher values are safer are left out, and so are measures without both values.
    """
    changes: dict[str, RiskChange] = {}
    if choice is None or choice.candidate is None:
        return changes
    lower_is_safer = scores.measure.filter((pl.col("axis") == "risk") & (pl.col("direction") == "lower"))[
        "name"
    ].to_list()
    for name, limit in _limits(plan).items():
        before, after = values_of(scores, name, choice) if name in lower_is_safer and limit > 0 else (None, None)
        if before is not None and after is not None:
            pooled = pooled_estimate(scores, name, choice)
            interval = None if pooled is None else pooled.interval(SHOWN_LEVEL)
            ends = None if interval is None else (interval[0] / limit, interval[1] / limit)
            changes[name] = RiskChange(scores.title_of(name), before / limit, after / limit, ends)
    return changes


def measures_without_value(plan: Plan, scores: Scores, choice: Choice | None) -> list[str]:
    """Return the titles of the risk measures that have a value for the original but none for the chosen release."""
    if choice is None or choice.candidate is None:
        return []
    values = {name: values_of(scores, name, choice) for name in plan.risk}
    return [scores.title_of(name) for name, (before, after) in values.items() if before is not None and after is None]


def values_of(scores: Scores, name: str, choice: Choice) -> tuple[float | None, float | None]:
    """Return a measure's value for the original and for the chosen release; None if it has no value.

    The value of an expectation is pooled over the draws of the chosen method: that is what the rule and the limits compare.
    """
    before, pooled = scores.unmasked_value(name), pooled_estimate(scores, name, choice)
    return before, release_value(scores, name, choice) if pooled is None else pooled.value


def release_value(scores: Scores, name: str, choice: Choice) -> float | None:
    """Return a measure's value for the chosen release alone; None if it has no value."""
    values = scores.column(name).filter(pl.col("id") == (choice.candidate or ""))["value"]
    return next(iter(values), None)


def pooled_estimate(scores: Scores, name: str, choice: Choice) -> Estimate | None:
    """Return the pooled estimate of the chosen method if the measure is an expectation, else None."""
    if name not in scores.values or not scores.values[name].expectation or choice.candidate is None:
        return None
    return scores.pooled_estimates(name).get(choice.method)


def describe_pooling(scores: Scores, name: str, choice: Choice) -> str:
    """Return how to read the value of a release: draws, interval, readable units, and which value decides.

    It is empty for a measure that is exact for one file and has no readable unit.
    """
    measure, pooled = scores.measure_named(name), pooled_estimate(scores, name, choice)
    before, after = values_of(scores, name, choice)
    if pooled is None:
        return describe_readably(measure, after, before)
    draws = len(scores.column(name).filter(pl.col("method") == choice.method))
    own = release_value(scores, name, choice)
    return describe_pooled(measure, pooled, draws, unmasked=before, release_value=own)


def _with_note(value: str, note: str) -> str:
    return f"{value} ({note})" if note else value


def _limits(plan: Plan) -> Mapping[str, float]:
    """Return the limit of each risk measure in its own unit; without any, that of a single threshold rule."""
    if plan.limits:
        return plan.limits
    threshold = getattr(plan.rule, "risk", None)
    is_single = isinstance(threshold, int | float) and len(plan.risk) == 1
    return {plan.risk[0]: float(threshold)} if is_single and threshold is not None else {}


def format_score(value: float | None, unit: str) -> str:
    """Return a score for readers: shares in percent, everything with three significant digits.

    >>> format_score(0.03171, "share of records"), format_score(0.5, "distance"), format_score(None, "")
    ('3.17 %', '0.500', 'no value')
    """
    if value is None:
        return "no value"
    return f"{format_significant(100 * value, 3)} %" if unit in SHARE_UNITS else format_significant(value, 3)


def parent_file(study: Study) -> dict[str, Any] | None:
    """Return the facts about the file that this study's data were made from; None if they are an original file.

    The data may be a file that another study released or may release. The facts are its profile, when it was released
    (empty: not yet) and its decision; what was measured for both files together when the second was released; and, if the
    two files were chosen together, the reason and every pair that was tried.
    """
    source = study.plan.data
    if source is None or not source.within:
        return None
    pair = study.manifest.get("pair") or {}
    releases = study.manifest.get("releases", [])
    nested = [entry.get("nested", {}) for entry in releases]
    # "told" is the name of this entry in studies of version 0.1.
    joint_risks = [line for entry in nested for line in entry.get("reasons", entry.get("told", []))]
    tried = [{**row, "problem": next(iter(row["problems"]), "")} for row in pair.get("pairs", [])]
    facts = {"profile": "", "when": "", "decision": [], "joint_risks": joint_risks}
    facts |= {"reason": pair.get("reason", ""), "tried": tried}
    with Study.open(source.within) as first:
        plan = first.plan
        folder = Path(source.path).parent.resolve()
        candidate, when, profile = _find_parent(plan, first, folder, pair.get("first", ""))
        if candidate is None:
            return facts
        rule, name = plan.rule or Threshold(risk=1.0), plan.name_of(candidate)
        choice = Choice(candidate.id, candidate.method.text, candidate.replicate, None, None, rule, "", name=name)
        decision = decision_sentences(plan, first.scores(), choice, len(first.data))
    return {**facts, "profile": profile, "when": when, "decision": decision}


def _find_parent(plan: Plan, first: Study, folder: Path, chosen: str) -> tuple[Candidate | None, str, str]:
    """Return the candidate that is the parent file, when it was released, and its profile.

    It is the candidate that was released into this folder, or the one that was chosen together with the second file.
    """
    candidates = {(c.method.text, c.replicate): c for c in plan.candidates}
    for entry in first.manifest.get("releases", [])[::-1]:
        candidate = candidates.get((entry["method"], int(entry.get("chosen", entry["replicate"]))))
        if candidate is not None and (Path(entry["folder"]) == folder or candidate.id == chosen):
            return candidate, str(entry["when"])[:10], str(entry["profile"])
    candidate = next((candidate for candidate in candidates.values() if candidate.id == chosen), None)
    return candidate, "", plan.profile.name if plan.profile else "scientific-use"
