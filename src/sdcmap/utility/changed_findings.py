"""What a released file changes in the findings of users, in words, and which of their estimates may be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Microdata, PlanError, SchemaError, join_names
from sdcmap.core.audience import MIN_SHOWN_RECORDS
from sdcmap.utility.analyses import Amount, Analysis, FileView, Predictor, Regression
from sdcmap.utility.analysis_change import Comparison, compare_analyses, saturate
from sdcmap.utility.stated_model import parse_model

MAX_NAMED = 5  # tables, sets of means and distributions in a sentence
CLEARLY_CHANGED = (
    2.0  # standard errors of the original by which an estimate moves, or a weakened one is smaller, at least
)


class RepeatedAnalyses(NamedTuple):
    """The analyses that readers are told about: stated models, and the half of the others that no candidate was ordered by.

    stated : models that are always shown. kept : those of them that a method was told to keep; they do not count.
    """

    original: Microdata
    compared: list[Comparison]
    stated: frozenset[Analysis]
    kept: frozenset[Analysis]

    @property
    def counted(self) -> list[Comparison]:
        """Return the comparisons that count: not those of kept models, nor those in which no conclusion can change."""
        return [one for one in self.compared if one.analysis not in self.kept and one.conclusions.can_change]


def repeat_analyses(
    original: Microdata, released: Microdata, models: Sequence[str], kept: Sequence[str] = ()
) -> RepeatedAnalyses | None:
    """Repeat the analyses with both files. Only released columns take part.

    Return None where the original gives no estimate, or a model names a column that is not released.
    """
    shared = [name for name in original.names if name in released.names]
    data = original if len(shared) == len(original.names) else original.only(shared)
    try:
        every = compare_analyses(data, released, "report", (*models, *kept), kept)
        not_counted = frozenset(parse_model(text, data) for text in kept)
        stated = not_counted.union(parse_model(text, data) for text in models)
    except (PlanError, SchemaError):
        return None
    compared = [one for one in every if len(one.differences)]
    return RepeatedAnalyses(data, compared, stated, not_counted) if compared else None


class PublicNumbers(NamedTuple):
    """A coefficient that may be published, with what the release makes of it."""

    share: float  # the released coefficient as a share of the original one
    original: float
    error: float  # its standard error
    released_error: float


class ChangedRelation(NamedTuple):
    """A coefficient that a released file weakens, reverses or invents; the numbers are None where they stay secret."""

    model: str
    term: str
    change: str  # "opposite sign", "lost", "weaker" or "not in the original"
    numbers: PublicNumbers | None


def summarize(counted: Sequence[Comparison]) -> str:
    """Return how many analyses lead to another conclusion, and why."""
    if not counted:
        return "No analysis has a conclusion that could change."
    counts = {"lost": 0, "reversed": 0, "new": 0}
    changed = 0
    for one in counted:
        own = {name: int(getattr(one.conclusions, name).sum()) for name in counts}
        changed += any(own.values())
        counts = {name: count + own[name] for name, count in counts.items()}
    start = f"Of {len(counted)} analyses, {changed or 'none'} lead{'s' if changed == 1 else ''} to another conclusion"
    clear = sum(int(one.conclusions.clear.sum()) for one in counted)
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


def measure_severity(one: Comparison) -> tuple[float, float]:
    """Return how serious the change of an analysis is: its most serious estimate, then the mean of all."""
    return float(order_by_change(one).max()), float(saturate(one.differences).mean())


def find_changed_relations(found: RepeatedAnalyses) -> list[ChangedRelation]:
    """Return the coefficients that are weaker, lost, reversed or not in the original, the most serious first.

    Numbers are given only where all coefficients of a model may be published.
    """
    relations: list[tuple[float, ChangedRelation]] = []
    for one in found.compared:
        if not isinstance(one.analysis, Regression):
            continue
        support, order = _Support(one.analysis, found.original), order_by_change(one)
        for index in np.flatnonzero(support.showable & (order >= 0)).tolist():
            if change := _describe_change(one, index):
                values, errors = (
                    [float(part[index]) for part in parts]
                    for parts in ((one.before.values, one.after.values), (one.before.errors, one.after.errors))
                )
                numbers = PublicNumbers(values[1] / values[0], values[0], *errors) if support.is_public else None
                relation = ChangedRelation(one.analysis.title, one.analysis.labels[index], change, numbers)
                relations.append((-float(order[index]), relation))
    return [relation for _, relation in sorted(relations, key=lambda pair: pair[0])]


def describe_other_analyses(found: RepeatedAnalyses) -> str:
    """Return how many tables, means and distributions clearly changed, and their names, without a number of the file."""
    others = [one for one in found.compared if not isinstance(one.analysis, Regression)]
    changed = [one for one in others if one.differences.max() > CLEARLY_CHANGED]
    if not others:
        return ""
    start = f"Of {len(others)} tables, sets of means and distributions, {len(changed) or 'none'}"
    if not changed:
        return f"{start} moved by more than {CLEARLY_CHANGED:g} standard errors."
    named = [one.analysis.title for one in sorted(changed, key=measure_severity, reverse=True)[:MAX_NAMED]]
    most = "most of all " if len(changed) > MAX_NAMED else ""
    return f"{start} moved by more than {CLEARLY_CHANGED:g} standard errors: {most}{', '.join(named)}."


def _describe_change(one: Comparison, index: int) -> str:
    """Return how a coefficient changes; "" where it does not, or where the released file does not give it."""
    own = one.conclusions
    words = {"opposite sign": own.reversed, "lost": own.lost, "not in the original": own.new}
    before, after, error = one.before.values[index], one.after.values[index], one.before.errors[index]
    if not np.isfinite(after):
        return ""
    is_weaker = own.clear[index] and abs(before) - abs(after) > CLEARLY_CHANGED * error
    return next((word for word, mask in words.items() if mask[index]), "weaker" if is_weaker else "")


# ---- what may be shown --------------------------------------------------------------------------------------------
def find_showable(analysis: Analysis, original: Microdata) -> Array:
    """Return whether each estimate may be shown: enough persons or households stand behind it."""
    if not isinstance(analysis, Regression):  # the battery has no small categories
        return np.ones(len(analysis.labels), dtype=bool)
    return _Support(analysis, original).showable


class _Support:
    """The persons or households behind the coefficients of a regression, among its complete records.

    A coefficient compares groups: a category with its reference, or, of an amount, the records that differ from its most
    frequent value with the others. Groups are counted among those whose response differs from its most frequent value; of a
    response with two values, such as that of a logistic regression, for each value.
    """

    def __init__(self, analysis: Regression, original: Microdata) -> None:
        self.analysis, self.view = analysis, FileView(original, original)
        self.design = analysis.design(self.view)
        self.units = np.unique(self.view.units[self.design.rows], return_inverse=True)[1]

    @cached_property
    def showable(self) -> Array:
        """Whether the groups of each coefficient, and of products the records with all factors, are large enough."""
        if not len(self.design.rows):
            return np.zeros(len(self.analysis.labels), dtype=bool)
        own = [[*self._estimate_groups(predictor)] for predictor in self.analysis.predictors]
        single = [groups for estimates in own for groups in estimates]
        joint = [
            [np.logical_and.reduce([groups[-1] for groups in combined])]
            for term in self.analysis.products
            for combined in product(*(own[index] for index in term))
        ]
        return np.array([all(map(self._is_large, groups)) for groups in (*single, *joint)], dtype=bool)

    @cached_property
    def is_public(self) -> bool:
        """Whether all coefficients may be published: no predictors are multiplied, and no small group shapes the model.

        A model with a coefficient for each distinct row of predictors tells the mean of every cell.
        """
        if self.analysis.products or not self.showable.all() or not all(map(self._is_large, self._rest_groups())):
            return False
        x = self.design.x
        return len(np.unique(x, axis=0)) > int(x.any(axis=0).sum())

    def _estimate_groups(self, predictor: Predictor) -> Iterator[list[Array]]:
        """Yield the groups that each estimate of a predictor compares; the last one is what it is named after."""
        if isinstance(predictor, Amount):
            yield self._groups_of(predictor.read(self.view)[self.design.rows])
            return
        codes, groups = self._codes(predictor.name)
        for category in predictor.categories:
            yield [codes == groups[predictor.reference], codes == groups[category]]

    def _rest_groups(self) -> Iterator[Array]:
        """Yield the records whose category is not named, where there are some."""
        for predictor in self.analysis.predictors:
            if not isinstance(predictor, Amount):
                codes, groups = self._codes(predictor.name)
                rest = ~np.isin(codes, [groups[one] for one in (predictor.reference, *predictor.categories)])
                if rest.any():
                    yield rest

    def _codes(self, name: str) -> tuple[Array, dict[str, int]]:
        codes, groups = self.view.groups(name)
        return codes[self.design.rows], groups

    @cached_property
    def _response_groups(self) -> list[Array]:
        return self._groups_of(self.design.y)

    def _groups_of(self, x: Array) -> list[Array]:
        """Return the records away from the value that most units have, and of two values also those with that value."""
        values, codes = np.unique(x, return_inverse=True)
        pairs = np.unique(np.column_stack([codes, self.units]), axis=0)
        away = codes != np.bincount(pairs[:, 0], minlength=len(values)).argmax()
        return [~away, away] if len(values) <= 2 else [away]

    def _is_large(self, group: Array) -> bool:
        """Return whether enough units have a record in a group, with each kind of response."""
        return all(len(np.unique(self.units[group & own])) >= MIN_SHOWN_RECORDS for own in self._response_groups)
