"""The list of differences between two plans is complete and contains nothing else."""

from __future__ import annotations

import sdcmap as sm
from sdcmap.explore.first_look import source_of
from sdcmap.explore.plan_differences import MAX_NAMES, plan_differences

MEASURES = [sm.SmallCells(), sm.Hellinger()]


def plan(rates: list[float], **facts: object) -> sm.Plan:
    return sm.Plan(sm.grid(sm.Swap, on="Age", rate=rates), MEASURES, **facts)  # type: ignore[arg-type]


def test_equal_plans_have_no_differences() -> None:
    assert plan_differences(plan([0.1], seed=1), plan([0.1], seed=2)) == []


def test_every_kind_of_difference_is_listed() -> None:
    first = plan([0.1], data=source_of("a.csv", {"Age": "key", "Sex": "key"}, {}), rule=sm.Threshold(risk=0.1))
    second = plan(
        [0.1, 0.2],
        data=source_of("b.csv", {"Age": "key", "Sex": "other"}, {}),
        replicates=3,
        limits={"SmallCells": 0.02},
    )
    result = {difference.what: (difference.first, difference.second) for difference in plan_differences(first, second)}
    assert result == {
        "file": ("a.csv", "b.csv"), "role of Sex": ("key", "other"), "methods": ("", "Age swapped 20 %"),
        "draws of a method": ("1", "3"), "limits": ("", "SmallCells at most 0.02"), "rule": ("Threshold(risk=0.1)", "none"),
    }  # fmt: skip


def test_long_differences_are_shortened_and_counted() -> None:
    (difference,) = plan_differences(plan([0.1]), plan([0.1, *(n / 100 for n in range(20, 40))]))
    assert difference.second.count(";") == MAX_NAMES and difference.second.endswith(f"and {20 - MAX_NAMES} more")
