"""The analyses of users that a release changes most, and how many lead to another conclusion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.charts.estimate_pairs import EstimatePair
from sdcmap.core import Choice, Microdata, PlanError, SchemaError
from sdcmap.core.audience import format_significant
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.utility.analyses import Regression
from sdcmap.utility.analysis_change import (
    AnalysisError,
    ChangedConclusions,
    Comparison,
    compare_analyses,
    saturate,
    stated_models,
)
from sdcmap.utility.changed_findings import find_showable, order_by_change, summarize
from sdcmap.utility.stated_model import parse_model

ANALYSES_SHOWN = 10
TABLE_HEAD = ("analysis", "estimate", "original", "release", "in the release")
CONCLUSION_RULES = (
    "A finding is clear if it is at least 3 standard errors from zero in the original. It is lost below 1.64 in the "
    "release; it appears if it is below 1 in the original and at least 3 in the release. Stated models are always shown, "
    "then the analyses that changed most. Each row is the estimate that changed most, with its standard error."
)
INTERVAL = 1.96  # standard errors on each side of an estimate, for 95 %


class ChangedEstimate(NamedTuple):
    """The estimate of an analysis that changed most: both values with their standard errors, and what it means now."""

    analysis: str
    term: str
    before: str
    after: str
    conclusion: str


class ChangedAnalyses(NamedTuple):
    """A sentence about all analyses, and the estimates that changed most, with the pairs to draw them."""

    sentence: str
    rows: list[ChangedEstimate]
    pairs: list[EstimatePair]


def describe_analyses(plan: Plan, original: Microdata, masked: Microdata) -> ChangedAnalyses | None:
    """Return what the release does to stated models and to the half of the analyses that no search has seen.

    Models that a method was told to keep are shown, but not counted.
    """
    models = (*stated_models(plan.measures), *plan.kept_models)
    try:
        compared = [one for one in compare_analyses(original, masked, "report", models) if len(one.differences)]
        stated = {parse_model(text, original) for text in models}
        kept = {parse_model(text, original) for text in plan.kept_models}
    except (PlanError, SchemaError):  # columns that only an older plan had
        return None
    if not compared:
        return None
    first = [one for one in compared if one.analysis in stated]
    others = sorted((one for one in compared if one.analysis not in stated), key=_severity, reverse=True)
    listed = [*first, *others[: max(0, ANALYSES_SHOWN - len(first))]]
    shown = [(one, find_showable(one.analysis, original)) for one in listed]
    worst = [(one, int(np.argmax(np.where(own, order_by_change(one), -1.0)))) for one, own in shown if own.any()]
    drawn = [(one, index) for one, index in worst if one.before.has_null]  # means and shares are far from 0
    rows = [_describe(one, index, is_kept=one.analysis in kept) for one, index in worst]
    counted = [one for one in compared if one.analysis not in kept]
    return ChangedAnalyses(summarize(counted), rows, [_draw(*pair) for pair in drawn])


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


def _severity(one: Comparison) -> tuple[float, float]:
    """Return how serious the change of an analysis is: its most serious estimate, then the mean of all."""
    return float(order_by_change(one).max()), float(saturate(one.differences).mean())


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
    """Return the pair in standard errors of the original, so that all fit on one axis."""
    scale = one.before.errors[index]
    before, after = (
        (each.values[index] / scale, INTERVAL * each.errors[index] / scale) for each in (one.before, one.after)
    )
    name = one.analysis.response.label if isinstance(one.analysis, Regression) else one.analysis.title
    label = f"{name}: {one.analysis.labels[index]}" if name != one.analysis.labels[index] else name
    return EstimatePair(label, *map(float, (*before, *after)))
