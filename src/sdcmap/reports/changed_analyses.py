"""The analyses of users that a release changes most, and how many lead to another conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from sdcmap.charts.estimate_pairs import EstimatePair
from sdcmap.core import Array, Microdata, PlanError, SchemaError, join_names
from sdcmap.core.audience import MIN_SHOWN_RECORDS, format_significant
from sdcmap.study.plan import Plan
from sdcmap.utility.analyses import Amount, Analysis, FileView, Predictor, Regression
from sdcmap.utility.analysis_change import AnalysisError, ChangedConclusions, Comparison, compare_analyses, saturate
from sdcmap.utility.stated_model import parse_model

ANALYSES_SHOWN = 10
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


def stated_models(plan: Plan) -> tuple[str, ...]:
    """Return the regressions that the measures of a plan name."""
    measures = [measure for measure in plan.measures if isinstance(measure, AnalysisError | ChangedConclusions)]
    return tuple(dict.fromkeys(model for measure in measures for model in measure.models))


def describe_analyses(plan: Plan, original: Microdata, masked: Microdata) -> ChangedAnalyses | None:
    """Return what the release does to stated models and to the half of the analyses that no search has seen."""
    models = stated_models(plan)
    try:
        compared = [one for one in compare_analyses(original, masked, "report", models) if len(one.differences)]
    except (PlanError, SchemaError):  # columns that only an older plan had
        return None
    if not compared:
        return None
    stated = {parse_model(text, original) for text in models}
    first = [one for one in compared if one.analysis in stated]
    others = sorted((one for one in compared if one.analysis not in stated), key=_severity, reverse=True)
    listed = [*first, *others[: max(0, ANALYSES_SHOWN - len(first))]]
    shown = [(one, find_showable(one.analysis, original)) for one in listed]
    worst = [(one, int(np.argmax(np.where(own, _estimate_severity(one), -1.0)))) for one, own in shown if own.any()]
    drawn = [(one, index) for one, index in worst if one.before.has_null]  # means and shares are far from 0
    return ChangedAnalyses(summarize(compared), [_describe(*pair) for pair in worst], [_draw(*pair) for pair in drawn])


def find_showable(analysis: Analysis, original: Microdata) -> Array:
    """Return whether each estimate may be shown: it describes at least as many records as a category that is named."""
    if not isinstance(analysis, Regression):  # the battery has no small categories
        return np.ones(len(analysis.labels), dtype=bool)
    view = FileView(original, original)
    members = [_members(view, predictor) for predictor in analysis.predictors]
    joint = (np.logical_and.reduce(one) for term in analysis.products for one in product(*(members[i] for i in term)))
    counts = [int(np.count_nonzero(own)) for own in (*chain.from_iterable(members), *joint)]
    return np.array(counts) >= MIN_SHOWN_RECORDS


def _members(view: FileView, predictor: Predictor) -> list[Array]:
    """Return the records that each estimate of a predictor describes: all of an amount, those of each category."""
    if isinstance(predictor, Amount):
        return [np.ones(len(view), dtype=bool)]
    return [np.asarray(view.indicator(predictor.name, one) == 1) for one in predictor.categories]


def summarize(compared: Sequence[Comparison]) -> str:
    """Return how many analyses lead to another conclusion, and why."""
    counts = {"lost": 0, "reversed": 0, "new": 0}
    changed = 0
    for one in compared:
        own = {name: int(getattr(one.conclusions, name).sum()) for name in counts}
        changed += any(own.values())
        counts = {name: count + own[name] for name, count in counts.items()}
    start = f"Of {len(compared)} analyses, {changed or 'none'} lead{'s' if changed == 1 else ''} to another conclusion"
    clear = sum(int(one.conclusions.clear.sum()) for one in compared)
    lost, reversed_, new = (counts[name] for name in ("lost", "reversed", "new"))
    reasons = [
        (lost, f"{lost} of {clear} clear findings {'is' if lost == 1 else 'are'} lost"),
        (reversed_, f"{reversed_} of {clear} {'has' if reversed_ == 1 else 'have'} the opposite sign"),
        (new, f"{new} {'appears' if new == 1 else 'appear'} that the original does not have"),
    ]
    words = join_names([reason for count, reason in reasons if count])
    return f"{start}: {words or f'all {clear} clear findings stay'}."


def _severity(one: Comparison) -> tuple[float, float]:
    """Return how serious the change of an analysis is: its most serious estimate, then the mean of all."""
    return float(_estimate_severity(one).max()), float(saturate(one.differences).mean())


def _estimate_severity(one: Comparison) -> Array:
    """Return a number for each estimate: reversed before lost before new before others, by their difference."""
    gap = np.abs(one.after.values - one.before.values) / one.before.errors
    known = np.isfinite(one.before.values) & (one.before.errors > 0)
    difference = saturate(np.where(np.isfinite(gap), gap, np.inf))
    own = one.conclusions
    return np.where(known, difference + 3.0 * own.reversed + 2.0 * own.lost + 1.0 * own.new, -1.0)


def _describe(one: Comparison, index: int) -> ChangedEstimate:
    conclusions = one.conclusions
    words = {"opposite sign": conclusions.reversed, "lost": conclusions.lost, "appears": conclusions.new}
    conclusion = next((word for word, mask in words.items() if mask[index]), "no other conclusion")
    if not np.isfinite(one.after.values[index]):
        conclusion = "cannot be estimated"
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
