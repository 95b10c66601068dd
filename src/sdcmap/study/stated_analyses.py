"""The `[[analyses]]` of a plan's file: regressions of users, stated once for all measures that repeat analyses.

[[analyses]]
model = "log(wage) ~ educ + exper + union"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sdcmap.core import Measure, Microdata
from sdcmap.core.formula import parse_nested_formula
from sdcmap.errors import quote_text

MEASURES = "AnalysisError", "ChangedConclusions"  # types of the measures that repeat analyses
EXPECTED = 'analyses must be a list of tables with one text each, such as [[analyses]] model = "wage ~ age + sex".'

Table = Mapping[str, Any]


def read_analyses(given: object, measures: object, problems: list[str]) -> object:
    """Return the tables of measures with the stated models, which come first; measures of both types are added if none is.

    given : the part `analyses` of a plan. What is wrong with it is appended to `problems`.
    """
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(map(_is_model, given)):
        problems.append(EXPECTED)
        return measures
    if not given or not isinstance(measures, Sequence) or isinstance(measures, str):
        return measures  # reported when the measures are decoded
    models = [one["model"] for one in given]
    if not any(map(_repeats_analyses, measures)):
        return [*measures, *({"type": name, "models": models} for name in MEASURES)]
    return [
        {**one, "models": list(dict.fromkeys([*models, *_own_models(one)]))} if _repeats_analyses(one) else one
        for one in measures
    ]


def split_analyses(measures: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Return the models that all measures of analyses share as tables of `analyses`, and the tables without them."""
    stated = [_own_models(one) for one in measures if _repeats_analyses(one)]
    shared = [model for model in stated[0] if all(model in own for own in stated)] if stated else []
    bare = []
    for one in measures:
        if _repeats_analyses(one):
            left = [model for model in _own_models(one) if model not in shared]
            one = {name: part for name, part in one.items() if name != "models"} | ({"models": left} if left else {})
        bare.append(one)
    return [{"model": model} for model in shared], bare


def name_without_models(text: str, measures: Sequence[Measure]) -> str:
    """Return the type of a measure of analyses if it is the only one, so that its models can be edited; else its text."""
    types = {measure.text: type(measure).__name__ for measure in measures}
    own = types.get(text)
    return own if own in MEASURES and list(types.values()).count(own) == 1 else text


def kept_model_problems(kept: Sequence[str], measures: Sequence[Measure]) -> Iterator[str]:
    """Yield a sentence for each model that a method keeps and that a measure counts: it would count as utility."""
    stated = {model for own in measures if type(own).__name__ in MEASURES for model in getattr(own, "models", ())}
    counted = {parse_nested_formula(model).key for model in stated}
    for model in kept:
        if parse_nested_formula(model).key in counted:
            yield (
                f"a method keeps the model {quote_text(model)}, so it does not count as utility: remove it from the "
                "analyses. The report shows it all the same."
            )


def kept_battery_problems(kept: Sequence[str], measures: Sequence[Measure], data: Microdata) -> Iterator[str]:
    """Yield a sentence for each kept model that is also one of the automatic analyses of a measure, so that it counts."""
    if not kept:
        return
    # loaded here, because the processes of a sweep need plans but not scipy.special
    from sdcmap.utility.analyses import Regression
    from sdcmap.utility.analysis_change import AnalysisError, ChangedConclusions, find_analyses

    for measure in measures:
        if isinstance(measure, AnalysisError | ChangedConclusions):
            battery = find_analyses(data, measure.half, (), measure.kept)
            counted = {one.key for one in battery if isinstance(one, Regression)}
            for model in kept:
                if parse_nested_formula(model).key in counted:
                    yield (
                        f"{measure.text} counts the model {quote_text(model)}, which a method keeps, because it is one of "
                        f"the automatic analyses: state it as `kept` of {type(measure).__name__}."
                    )


def _is_model(table: object) -> bool:
    return isinstance(table, Mapping) and set(table) == {"model"} and isinstance(table["model"], str)


def _repeats_analyses(table: object) -> bool:
    return isinstance(table, Mapping) and table.get("type") in MEASURES


def _own_models(table: Table) -> list[str]:
    own = table.get("models", [])
    return [own] if isinstance(own, str) else list(own) if isinstance(own, Sequence) else []
