"""What a released file changes in the findings of users, in words, and which of their estimates may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Microdata, join_names
from sdcmap.core.audience import MIN_SHOWN_RECORDS
from sdcmap.utility.analyses import Amount, Analysis, Category, FileView, Predictor, Regression
from sdcmap.utility.analysis_change import Comparison, saturate

CLEARLY_WEAKER = 2.0  # standard errors of the original by which a weakened coefficient is smaller, at least


class ChangedRelation(NamedTuple):
    """A coefficient that a released file weakens, reverses or invents; the numbers are None where they stay secret."""

    model: str
    term: str
    change: str  # "opposite sign", "lost", "weaker" or "not in the original"
    share: float | None  # the released coefficient as a share of the original one
    original: float | None
    error: float | None  # its standard error


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


def order_by_change(one: Comparison) -> Array:
    """Return a number for each estimate: reversed before lost before new before others, by their difference."""
    gap = np.abs(one.after.values - one.before.values) / one.before.errors
    known = np.isfinite(one.before.values) & (one.before.errors > 0)
    difference = saturate(np.where(np.isfinite(gap), gap, np.inf))
    own = one.conclusions
    return np.where(known, difference + 3.0 * own.reversed + 2.0 * own.lost + 1.0 * own.new, -1.0)


def find_changed_relations(compared: Sequence[Comparison], original: Microdata) -> list[ChangedRelation]:
    """Return the coefficients that are weaker, lost, reversed or not in the original, the most serious first.

    Numbers are given only for models in which every category has enough records and no predictors are multiplied: a model
    with all products tells the mean of every cell.
    """
    found: list[tuple[float, ChangedRelation]] = []
    for one in compared:
        if not isinstance(one.analysis, Regression):
            continue
        showable, order = find_showable(one.analysis, original), order_by_change(one)
        is_public = bool(showable.all()) and not one.analysis.products
        for index in np.flatnonzero(showable & (order >= 0)).tolist():
            if change := _describe_change(one, index):
                before, after = float(one.before.values[index]), float(one.after.values[index])
                numbers = (after / before, before, float(one.before.errors[index])) if is_public else (None, None, None)
                relation = ChangedRelation(one.analysis.title, one.analysis.labels[index], change, *numbers)
                found.append((-float(order[index]), relation))
    return [relation for _, relation in sorted(found, key=lambda pair: pair[0])]


def _describe_change(one: Comparison, index: int) -> str:
    """Return how a coefficient changes; "" where it does not, or where the released file does not give it."""
    own = one.conclusions
    words = {"opposite sign": own.reversed, "lost": own.lost, "not in the original": own.new}
    before, after, error = one.before.values[index], one.after.values[index], one.before.errors[index]
    if not np.isfinite(after):
        return ""
    is_weaker = own.clear[index] and abs(before) - abs(after) > CLEARLY_WEAKER * error
    return next((word for word, mask in words.items() if mask[index]), "weaker" if is_weaker else "")


# ---- what may be shown --------------------------------------------------------------------------------------------
def find_showable(analysis: Analysis, original: Microdata) -> Array:
    """Return whether each estimate may be shown: it describes at least as many records as a category that is named."""
    if not isinstance(analysis, Regression):  # the battery has no small categories
        return np.ones(len(analysis.labels), dtype=bool)
    view = FileView(original, original)
    members = [_members(view, predictor) for predictor in analysis.predictors]
    joint = (np.logical_and.reduce(one) for term in analysis.products for one in product(*(members[i] for i in term)))
    counts = [int(np.count_nonzero(own)) for own in (*chain.from_iterable(members), *joint)]
    return (np.array(counts) >= MIN_SHOWN_RECORDS) & _has_large_groups(view, analysis.response)


def _has_large_groups(view: FileView, response: Amount | Category) -> bool:
    """Return whether the two groups of a logistic regression have enough records."""
    if isinstance(response, Amount):
        return True
    is_one = view.indicator(response.name, response.category)
    return is_one is not None and min(int((is_one == value).sum()) for value in (0, 1)) >= MIN_SHOWN_RECORDS


def _members(view: FileView, predictor: Predictor) -> list[Array]:
    """Return the records that each estimate of a predictor describes: all of an amount, those of each category."""
    if isinstance(predictor, Amount):
        return [np.ones(len(view), dtype=bool)]
    return [np.asarray(view.indicator(predictor.name, one) == 1) for one in predictor.categories]
