"""`[[analyses]]` in a plan's file: models that are stated once for the measures that repeat analyses."""

from __future__ import annotations

import pytest

import sdcmap as sm
from sdcmap.errors import PlanError

MODELS = ("log(wage) ~ Educ + Sex", "Income ~ Hours")
METHODS = """
replicates = 1

[[methods]]
type = "Noise"
on = ["wage"]
variance = 0.1

[[measures]]
type = "SmallCells"
"""
STATED = "".join(f'[[analyses]]\nmodel = "{model}"\n\n' for model in MODELS)


def measures_of(plan: sm.Plan) -> dict[str, tuple[str, ...]]:
    return {type(m).__name__: m.models for m in plan.measures if hasattr(m, "models")}


def test_models_are_stated_once_for_all_measures() -> None:
    own = '[[measures]]\ntype = "AnalysisError"\nhalf = "search"\n[[measures]]\ntype = "ChangedConclusions"\n'
    plan = sm.Plan.from_toml('utility = "AnalysisError"' + METHODS + own + STATED, seed=1)
    assert measures_of(plan) == {"AnalysisError": MODELS, "ChangedConclusions": MODELS}
    assert plan.utility.startswith("AnalysisError(models=")
    text = plan.toml()
    assert [line.strip(" ,") for line in text.splitlines() if "model" in line] == [f'model = "{m}"' for m in MODELS]
    assert sm.Plan.from_toml(text, seed=1) == plan


def test_measures_are_added_where_the_plan_has_none() -> None:
    plan = sm.Plan.from_toml(METHODS + STATED, seed=1)
    assert measures_of(plan) == {"AnalysisError": MODELS, "ChangedConclusions": MODELS}


def test_models_of_single_measures_stay_with_them() -> None:
    measures = [sm.SmallCells(), sm.utility.AnalysisError(MODELS), sm.utility.ChangedConclusions(MODELS[:1])]
    plan = sm.Plan([sm.Noise(on="wage", variance=0.1)], measures, seed=1)
    text = plan.toml()
    assert text.count("model = ") == 1 and text.count("models = ") == 1
    assert measures_of(sm.Plan.from_toml(text, seed=1)) == measures_of(plan)


def test_starting_plan_takes_a_model() -> None:
    """A user adds two lines to the plan of `look`; the axis stays the error of analyses."""
    people = sm.demo.population(400)
    plan = sm.Plan.from_toml(sm.look(people).plan(people).toml() + STATED, seed=1)
    assert measures_of(plan)["AnalysisError"] == MODELS and plan.utility.startswith("AnalysisError(models=")
    assert not plan.problems_with(people)
    wrong = sm.Plan.from_toml(sm.look(people).plan(people).toml() + '[[analyses]]\nmodel = "wage ~ Eduk"\n', seed=1)
    (problem,) = [one for one in wrong.problems_with(people) if "AnalysisError" in one]
    assert "'Eduk', which is no released column. Did you mean 'Educ'?" in problem


@pytest.mark.parametrize(
    "part", ["analyses = 3\n", 'analyses = ["wage ~ Educ"]\n', "[[analyses]]\nformula = 'a ~ b'\n"]
)
def test_malformed_analyses_are_explained(part: str) -> None:
    text = part + METHODS if part.startswith("analyses") else METHODS + part
    with pytest.raises(PlanError, match=r"analyses must be a list of tables with one text each"):
        sm.Plan.from_toml(text, seed=1)
