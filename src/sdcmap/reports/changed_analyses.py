"""The analyses of users that a release changes most, and how many lead to another conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.bundle.note import Relation
from sdcmap.charts.estimate_pairs import EstimatePair
from sdcmap.core import Choice, Microdata
from sdcmap.core.audience import format_significant
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.utility.analyses import Distribution, Regression
from sdcmap.utility.analysis_change import AnalysisError, ChangedConclusions, Comparison, stated_models
from sdcmap.utility.changed_findings import (
    RepeatedAnalyses,
    find_showable,
    measure_severity,
    order_by_change,
    repeat_analyses,
    summarize,
)

ANALYSES_SHOWN = 10
NAMED_IN_DECISION = 3  # changed estimates
TABLE_HEAD = ("analysis", "estimate", "original", "release", "in the release")
CONCLUSION_RULES = (
    "A finding is clear if it is at least 3 standard errors from zero in the original. It is lost below 1.64 in the "
    "release; it appears if it is below 1 in the original and at least 3 in the release. Stated models are always shown, "
    "then the analyses that changed most. Each row is the estimate that changed most, with its standard error. Means and "
    "shares of distributions cannot change a conclusion; the picture shows how far they moved."
)
INTERVAL = 1.96  # standard errors on each side of an estimate, for 95 %
IN_WORDS = {
    "opposite sign": "has the opposite sign",
    "lost": "is lost",
    "appears": "is clear in the release only",
    "cannot be estimated": "cannot be estimated",
}


class ChangedEstimate(NamedTuple):
    """The estimate of an analysis that changed most: both values with their standard errors, and what it means now."""

    analysis: str
    term: str
    before: str
    after: str
    conclusion: str

    @property
    def sentence(self) -> str:
        """Return the change in words; "" where the conclusion stays, or where it does not count."""
        words = IN_WORDS.get(self.conclusion, "")
        values = f"{self.before} in the original, {self.after} in the release"
        return f"{self.term} in {self.analysis} {words}: {values}." if words else ""


class ChangedAnalyses(NamedTuple):
    """A sentence about all analyses, the estimates that changed most with the pairs to draw them, and some in words."""

    sentence: str
    rows: list[ChangedEstimate]
    pairs: list[EstimatePair]
    most_changed: list[str]


def describe_analyses(plan: Plan, original: Microdata, masked: Microdata) -> ChangedAnalyses | None:
    """Return what the release does to stated models and to the half of the analyses that no search has seen.

    Models that a method was told to keep are shown, but not counted.
    """
    found = repeat_for_plan(plan, original, masked)
    if found is None:
        return None
    first = [one for one in found.compared if one.analysis in found.stated]
    others = [one for one in found.compared if one.analysis not in found.stated]
    others.sort(key=measure_severity, reverse=True)
    listed = [*first, *others[: max(0, ANALYSES_SHOWN - len(first))]]
    shown = [(one, find_showable(one.analysis, found.original)) for one in listed]
    worst = [(one, int(np.argmax(np.where(own, order_by_change(one), -1.0)))) for one, own in shown if own.any()]
    rows = {one.analysis: _describe(one, index, is_kept=one.analysis in found.kept) for one, index in worst}
    by_change = sorted(worst, key=lambda pair: float(order_by_change(pair[0])[pair[1]]), reverse=True)
    words = [sentence for one, _ in by_change if (sentence := rows[one.analysis].sentence)]
    pairs = [_draw(one, index) for one, index in worst]
    return ChangedAnalyses(summarize(found.counted), [*rows.values()], pairs, words[:NAMED_IN_DECISION])


def repeat_for_plan(plan: Plan, original: Microdata, masked: Microdata) -> RepeatedAnalyses | None:
    """Repeat the analyses of users, with the models that a plan states or keeps."""
    return repeat_analyses(original, masked, stated_models(plan.measures), plan.kept_models)


def draw_public(relations: Sequence[Relation]) -> list[EstimatePair]:
    """Return the coefficients that may be published as pairs to draw; their numbers are rounded already."""
    pairs = []
    for one in relations:
        share, original, released_error = one["share"], one["original"], one["released_error"]
        if share is None or original is None or released_error is None or not one["error"]:
            continue
        before, half = original / one["error"], INTERVAL * released_error / one["error"]
        name = _name_pair(one["model"].partition(" ~ ")[0], one["term"])
        pairs.append(EstimatePair(name, before, INTERVAL, share * before, half))
    return pairs


def summarize_choice(study: Study, choice: Choice) -> str:
    """Return how many analyses lead to another conclusion in the chosen file.

    Return "" where the plan does not measure it, or the file was made elsewhere and cannot be made again.
    """
    plan = study.plan
    is_measured = any(isinstance(own, AnalysisError | ChangedConclusions) for own in plan.measures)
    if not is_measured or all(own.id != choice.candidate for own in plan.candidates):
        return ""
    found = describe_analyses(plan, study.data, plan.make(study.data, choice))
    return "" if found is None else found.sentence


def _describe(one: Comparison, index: int, *, is_kept: bool) -> ChangedEstimate:
    conclusions = one.conclusions
    words = {"opposite sign": conclusions.reversed, "lost": conclusions.lost, "appears": conclusions.new}
    conclusion = next((word for word, mask in words.items() if mask[index]), "no other conclusion")
    if not np.isfinite(one.after.values[index]):
        conclusion = "cannot be estimated"
    if is_kept:
        conclusion += " (kept by the method, not counted)"
    before, after = (_format(each.values[index], each.errors[index]) for each in (one.before, one.after))
    return ChangedEstimate(one.analysis.title, one.analysis.labels[index], before, after, conclusion)


def _format(value: float, error: float) -> str:
    if not np.isfinite(value):
        return "none"
    return f"{format_significant(value, 3)} ({format_significant(error, 2)})"


def _draw(one: Comparison, index: int) -> EstimatePair:
    """Return the pair in standard errors of the original, so that all fit on one axis.

    Means and shares of a distribution are far from 0, so the pair is how far they are from the original.
    """
    scale = one.before.errors[index]
    start = 0.0 if one.before.has_null else one.before.values[index]
    before, after = (
        ((each.values[index] - start) / scale, INTERVAL * each.errors[index] / scale)
        for each in (one.before, one.after)
    )
    label = one.analysis.labels[index] + ("" if one.before.has_null else " (change)")
    return EstimatePair(_name_pair(_name_analysis(one), label), *map(float, (*before, *after)))


def _name_analysis(one: Comparison) -> str:
    """Return a short name of an analysis: what it explains or describes."""
    match one.analysis:
        case Regression(response=described) | Distribution(amount=described):
            return described.label
        case other:
            return other.title


def _name_pair(analysis: str, label: str) -> str:
    return label if analysis == label else f"{analysis}: {label}"
