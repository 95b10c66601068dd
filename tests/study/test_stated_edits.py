"""Measures of edit rules without rules of their own count by those of the plan."""

from __future__ import annotations

import pytest

import sdcmap as sm
from sdcmap.errors import PlanError
from sdcmap.risk import MarkedRecords
from sdcmap.utility import EditViolations

RULES = ('age < 15 -> marital = "never"', "age < 15 -> wage is missing")
TEXT = """
edits = ['age < 15 -> marital = "never"', "age < 15 -> wage is missing"]
measures = ["MarkedRecords", { type = "EditViolations" }]

[[methods]]
type = "PRAM"
on = "marital"
"""


def test_measures_count_by_the_rules_of_the_plan() -> None:
    plan = sm.Plan.from_toml(TEXT, seed=1)
    assert plan.measures == (MarkedRecords(RULES), EditViolations(RULES))
    text = plan.toml()
    assert text.count("wage is missing") == 1 and 'utility = "EditViolations"' in text
    assert sm.Plan.from_toml(text, seed=1) == plan
    fewer = sm.Plan.from_toml(text.replace(', "age < 15 -> wage is missing"', ""))
    assert fewer.measures == (MarkedRecords(RULES[:1]), EditViolations(RULES[:1]))


def test_measures_keep_their_own_rules() -> None:
    plan = sm.Plan.from_toml(
        TEXT.replace('"EditViolations"', '"EditViolations", edits = ["age < 99 -> age > 0"]'), seed=1
    )
    assert plan.measures == (MarkedRecords(RULES), EditViolations("age < 99 -> age > 0"))
    assert sm.Plan.from_toml(plan.toml(), seed=1) == plan


def test_a_plan_without_rules_has_none_to_count() -> None:
    with pytest.raises(PlanError, match=r"EditViolations.edits must be given"):
        sm.Plan.from_toml(TEXT.replace(TEXT.splitlines()[1], ""))
