"""Edit rules: which records violate them, and which texts are rejected."""

from __future__ import annotations

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.edit_rule import parse_edit
from sdcmap.errors import PlanError

FRAME = pl.DataFrame(
    {
        "age": [10, 14, 15, 40, None, 9],
        "marital": ["never", "married", "married", "never", "married", None],
        "net pay": [0.0, 5.0, -1.0, 2.0, 3.0, 0.0],
    }
)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ('age < 15 -> marital = "never"', [1]),  # a missing value neither triggers nor violates the rule
        ('age<=15->marital!="married"', [1, 2]),
        ('marital = "never" and age > 20 -> `net pay` = 0', [3]),
        ("age >= 0 -> `net pay` >= 0 and `net pay` < 4.5", [1, 2]),
        ('age = 10 -> marital = "and -> never"', [0]),
        ("age > -1e2 -> age < 1e3", []),
        ("age < 15 -> marital is missing", [0, 1]),
        ("marital is missing -> age >= 10", [5]),
        ("marital is not missing -> age is  not missing", [4]),
        ('age is missing and marital = "married" -> `net pay` = 2', [4]),
    ],
)
def test_violations_marks_the_records_that_violate_a_rule(text: str, broken: list[int]) -> None:
    data = sm.read(FRAME, keys="marital", numeric=["age", "net pay"])
    rule = parse_edit(text)
    assert list(rule.incompatibilities(data)) == []
    assert rule.violations(data).nonzero()[0].tolist() == broken


def test_exactly_one_of_several_is_true() -> None:
    """A record with a gap breaks the rule only where two are true."""
    frame = pl.DataFrame({"a": [1, 0, 1, 1, 0, 1], "b": [0, 0, 1, None, None, 1], "the c": [0, 0, 0, 0, 0, None]})
    data = sm.read(frame, keys=["a", "b", "the c"])
    rule = parse_edit("exactly one of a, b,`the c`= 1")
    assert rule.names == ("a", "b", "the c") and rule.violations(data).nonzero()[0].tolist() == [1, 2, 5]


@pytest.mark.parametrize(
    ("comparison", "true", "false"),
    [("< 20", [0, 1], [3, 4]), ("<= 20", [0, 1, 2], [4]), ("> 20", [4], [0, 1, 2]), (">= 20", [3, 4], [0, 1]),
     ("= 20", [], [0, 1, 4]), ("!= 20", [0, 1, 4], []), ("< 15", [0], [2, 3, 4]), ("= 15", [], [0, 3, 4])],
)  # fmt: skip
def test_intervals_decide_comparisons_that_hold_for_all_or_none_of_their_numbers(
    comparison: str, true: list[int], false: list[int]
) -> None:
    labels = ["<= 10", "(10, 20)", "[15, 20]", "[20, 25]", "> 20", None]
    data = sm.read(pl.DataFrame({"age": labels, "x": ["a"] * 6}), keys=["age", "x"])
    (own,) = parse_edit(f'x = "b" -> age {comparison}').comparisons[1:]
    assert own.holds(data).nonzero()[0].tolist() == true and own.fails(data).nonzero()[0].tolist() == false


@pytest.mark.parametrize(
    "text",
    ["", "age < 15", "age < 15 ->", "-> age < 15", "age < b -> age = 1", 'age < "a" -> age = 1', "age << 1 -> age = 1",
     "exactly one of age = 1", "exactly one of age, marital", "exactly one of age, age = 1", "exactly one of a, b < 1",
     "exactly one of a b = 1", "exactly one of a, b = 1 and c = 2", "exactly one of a, b = c",
     "age = 1 and -> age = 2", "age = 1 or age = 2 -> age = 3",
     "age is missing", "age is -> age = 1", "age is nothing -> age = 1", "age missing -> age = 1",
     "age = missing -> age = 1",
     "age = 1 -> age = 2 and", "x" * 400 + " = 1 -> age = 1"],
)  # fmt: skip
def test_parse_edit_rejects_invalid_rules(text: str) -> None:
    with pytest.raises(PlanError, match="an edit rule reads"):
        parse_edit(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aage = 1 -> age = 1", "no column 'aage'. Did you mean 'age'?"),
        ("marital = 1 -> age = 1", "'marital' contains no numbers."),
        ('age = 1 -> age = "one"', "'age' contains numbers, not texts."),
    ],
)
def test_incompatibilities_of_a_rule_name_the_column(text: str, words: str) -> None:
    data = sm.read(FRAME, keys="marital", numeric=["age", "net pay"])
    (problem,) = parse_edit(text).incompatibilities(data)
    assert words in problem
    plan = sm.Plan(sm.Noise(on="age"), sm.utility.EditViolations(text))
    assert problem in plan.problems_with(data)
