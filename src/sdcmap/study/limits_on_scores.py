"""The limits of a map, read for the measures of its scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sdcmap.core import PlanError
from sdcmap.core.limit import EfficiencyLimit, Limit, limit_problem, read_limit
from sdcmap.study.scores import Scores


def limits_on_scores(
    scores: Scores, risk: Sequence[str], stated: Iterable[float | Limit] | Mapping[Any, float]
) -> tuple[Limit, ...]:
    """Return the limits of a map, each for a measure of its scores; a list has one for each measure on the axis."""
    if isinstance(stated, Mapping):
        named = [(str(name), value) for name, value in stated.items()]
        pairs = [(name, _read_limit_on(scores, name, value)) for name, value in named]
    else:
        given = tuple(stated)
        limits = tuple(limit for limit in given if isinstance(limit, Limit))
        if len(limits) == len(given):
            return limits
        if len(given) != len(risk):
            raise PlanError(f"limits must contain one limit for each of {len(risk)} risk measures. Got {len(given)}.")
        pairs = [(name, value) for name, value in zip(risk, given, strict=True) if not isinstance(value, Limit)]
    for name, value in pairs:
        low, high = (scores.measure[end][scores.index_of(name)] for end in ("low", "high"))
        if not isinstance(value, EfficiencyLimit) and (problem := limit_problem((low, high), float(value))):
            raise PlanError(f"the limit of {name!r} {problem}")
    return tuple(Limit(scores.measure_named(name), value) for name, value in pairs)


def _read_limit_on(scores: Scores, name: str, stated: object) -> float:
    """Return a stated limit as a number; an efficiency is relative to the score of the unmasked file."""
    limit = read_limit(name, stated, scores.measure_named(name))
    return limit.relative_to(scores.unmasked_value(name)) if isinstance(limit, EfficiencyLimit) else limit
