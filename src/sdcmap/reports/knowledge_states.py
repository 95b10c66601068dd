"""The states of attacker knowledge side by side: how far each attacker is from the true value of one person.

Duncan, Keller-McNulty, Stokes (2001), sections 3 and 4: the same release is safe against one attacker and not against
another. R = 1/MSE of each is shown as its typical error, 1/sqrt(R), in the unit of the variable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sdcmap.charts.knowledge_errors import KnowledgeErrors
from sdcmap.core.audience import format_significant
from sdcmap.core.estimate import Estimate
from sdcmap.core.rule import Choice
from sdcmap.risk.position import PrecisionMeasure, describe_target
from sdcmap.study.scores import Scores

MIN_STATES = 2  # with fewer there is nothing to compare
EVERYBODY = "any record"  # the target of a measure that names none
ROUNDING_ERROR = 1e-9  # share of an error; all draws have the same error where it varies less


@dataclass(frozen=True)
class KnowledgeRow:
    """One state of knowledge: what the attacker knows, whom they look for, and their typical errors as text.

    errors : the same errors as numbers, for the chart. is_closest : no other attacker on this target is closer.
    """

    knowledge: str
    target: str
    class_name: str
    risk: str
    release: str
    unmasked: str
    nothing: str
    errors: KnowledgeErrors
    is_closest: bool


@dataclass(frozen=True)
class KnowledgeTable:
    """The states of knowledge about one variable, and which attacker comes closest."""

    variable: str
    rows: list[KnowledgeRow]
    summary: str


def compare_knowledge(scores: Scores, choice: Choice | None) -> list[KnowledgeTable]:
    """Return a table for each variable about which the study measures several states of knowledge."""
    if choice is None or choice.candidate is None:
        return []
    measures = [measure for measure in scores.values.values() if isinstance(measure, PrecisionMeasure)]
    variables = dict.fromkeys(name for measure in measures for name in (getattr(measure, "on", ""),))
    tables = []
    for variable in variables:
        states = [measure for measure in measures if getattr(measure, "on", "") == variable]
        rows = list(_rows(scores, choice, states))
        if len(rows) >= MIN_STATES:
            tables.append(KnowledgeTable(variable, rows, _summarize(variable, rows)))
    return tables


def _rows(scores: Scores, choice: Choice, states: list[PrecisionMeasure]) -> Iterator[KnowledgeRow]:
    """Yield a row for each measure that has a value for the chosen method, those on one target together."""
    pooled = {measure: scores.pooled_estimates(measure.text) for measure in states}
    measured = [measure for measure in states if choice.method in pooled[measure]]
    targets = list(dict.fromkeys(_target_of(measure) for measure in measured))
    for measure in sorted(measured, key=lambda measure: targets.index(_target_of(measure))):
        rivals = [rival for rival in measured if _target_of(rival) == _target_of(measure)]
        release = pooled[measure][choice.method]
        unmasked = next((e for method, e in pooled[measure].items() if scores.kinds[method] == "identity"), None)
        nothing = _baseline(scores, measure)
        errors = [None if risk is None else typical_error(risk) for risk in (release.value, _value(unmasked), nothing)]
        yield KnowledgeRow(
            knowledge=measure.knowledge,
            target=_target_of(measure),
            class_name=type(measure).__name__,
            risk=format_significant(release.value, 3),
            release=_with_error(release),
            unmasked=_in_words(errors[1]),
            nothing=_in_words(errors[2]),
            errors=KnowledgeErrors(f"{_target_of(measure)}: {measure.knowledge}", errors[0] or 0.0, errors[2]),
            is_closest=len(rivals) > 1 and release.value >= max(pooled[m][choice.method].value for m in rivals),
        )


def typical_error(risk: float) -> float:
    """Return 1/sqrt(R), the root mean squared error of an attacker with risk R = 1/MSE.

    >>> print(f"{typical_error(4e-8):.0f}")
    5000
    """
    return 1 / math.sqrt(risk) if risk > 0 else math.inf


def _with_error(estimate: Estimate) -> str:
    """Return the typical error with its standard error, by the delta method: se(R) / (2 R^1.5).

    >>> _with_error(Estimate(value=4e-8, se=4e-10)), _with_error(Estimate(value=4e-8, se=4e-25))
    ('5,000 ± 25', '5,000')
    """
    error = _in_words(typical_error(estimate.value))
    if not 0 < estimate.value < math.inf or (estimate.se or 0.0) <= 2 * ROUNDING_ERROR * estimate.value:
        return error
    return f"{error} ± {format_significant((estimate.se or 0.0) / (2 * estimate.value**1.5), 2)}"


def _in_words(error: float | None) -> str:
    if error is None:
        return "–"
    return "none: exact" if error == 0 else format_significant(error, 3)


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _baseline(scores: Scores, measure: PrecisionMeasure) -> float | None:
    row = scores.measure.filter(name=measure.text).row(0, named=True)
    value: float | None = row["baseline_value"]
    return value


def _target_of(measure: PrecisionMeasure) -> str:
    """Return the target of a measure in words.

    >>> from sdcmap.risk import KnownIndex, Position
    >>> _target_of(Position(on="wage", target=0.99)), _target_of(KnownIndex(on="wage"))
    ('percentile 99', 'any record')
    """
    target = getattr(measure, "target", EVERYBODY)
    return {"sample": EVERYBODY, "population": "a person of the population"}.get(target) or describe_target(target)


def _summarize(variable: str, rows: list[KnowledgeRow]) -> str:
    """Return which attacker comes closest to a target, in words."""
    closest = min(rows, key=lambda row: row.errors.release)
    error = "learns the true value" if closest.errors.release == 0 else f"is typically {closest.release} away"
    return (
        f"Of {len(rows)} attackers who want to know {variable!r}, the closest {error}. This attacker knows "
        f"{closest.knowledge} (target: {closest.target})."
    )
