"""A comparison on the axes, limits and rule of a plan proposes what to try next."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.explore.method_comparison import Comparison, choose_to_refine, vary_strength
from sdcmap.methods import Chain, Microaggregate, Shuffle


@pytest.fixture(scope="module")
def file() -> sm.Microdata:
    frame = sm.demo.population(160, seed=5).frame().select("Age", "Sex", "wage")
    gone = pl.Series(np.arange(160) % 7 == 0)
    frame = frame.with_columns(wage=pl.when(gone).then(None).otherwise(pl.col("wage")))
    return sm.read(frame, keys=["Age", "Sex"], numeric="wage")


@pytest.fixture(scope="module")
def plan() -> sm.Plan:
    small, error = sm.SmallCells(), sm.Hellinger()
    return sm.Plan(sm.Swap("Age"), [small, error], limits={small: 0.05}, rule=sm.Threshold(risk=0.04))


@pytest.fixture(scope="module")
def compared(file: sm.Microdata, plan: sm.Plan, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return sm.compare(file, tmp_path_factory.mktemp("a") / "b", plan=plan, replicates=1, seed=2, workers=1)


def test_varied_strengths_stay_in_range() -> None:
    assert [m.rate for m in vary_strength(sm.Swap("a", 0.4))] == [0.2, 0.3, 0.4]
    assert [m.size for m in vary_strength(Microaggregate("w", size=3))] == [3, 4, 6]
    assert vary_strength(Shuffle("w")) == [Shuffle("w")]
    both = vary_strength(Chain([sm.Swap("a", 0.2), sm.Noise("w", 0.1)]))
    assert [step.text for step in both[0].steps] == [
        "Swap(on='a', rate=0.1)",
        "Noise(on='w', variance=0.05)",
    ]


def test_compare_uses_measures_axes_limits_and_rule_of_plan(
    compared: Comparison, plan: sm.Plan, file: sm.Microdata
) -> None:
    assert (compared.plan.measures, compared.plan.limits, compared.plan.rule) == (plan.measures, plan.limits, plan.rule)
    assert compared.map.labels[0].startswith(sm.SmallCells.label) and compared.outside is None
    assert len(compared.inside) == len(file) and len(compared.plan.all_methods) > 20
    within = dict(compared.table.select("name", "within").iter_rows())
    risk = dict(compared.table.select("name", "risk").iter_rows())
    assert set(within.values()) == {True, False}
    assert all(risk[name] <= 0.05 for name in within if within[name])  # with the margin of a release
    assert all(not within[name] for name in within if risk[name] > 0.05)
    assert compared.choice is not None and (compared.choice.risk or 0) <= 0.04


def test_refined_methods_are_within_limits(compared: Comparison) -> None:
    table = compared.table.filter(~pl.col("anchor"))
    passing = table.filter(pl.col("risk") <= 0.04).sort("utility")
    assert len(passing) > 3 and set(compared.refine) <= set(passing["name"])
    utility = dict(table.select("name", "utility").iter_rows())
    assert utility[compared.refine[0]] == passing["utility"][0] and len(compared.refine) == 3
    chosen = {
        m.text
        for text in choose_to_refine(compared.map, compared.plan.rule)
        for m in vary_strength(compared.scores.methods[text])
    }
    assert {m.text for m in compared.refined_plan.all_methods} == chosen | {"Identity"}


def test_nearest_methods_are_refined_if_none_is_within_limits(compared: Comparison) -> None:
    strict = sm.RUMap(compared.scores, compared.map.risk, compared.map.utility, {"SmallCells": 1e-9})
    least = compared.table.filter(~pl.col("anchor"))["risk"].min()
    risks = dict(compared.table.select("method", "risk").iter_rows())
    assert risks[choose_to_refine(strict)[0]] == least


def test_alternatives_that_accept_missing_values_are_suggested(file: sm.Microdata) -> None:
    one = sm.read(
        file.frame().with_columns(rent=pl.Series([1.0, 2.0] + [None] * 158)),
        keys=["Age", "Sex"],
        numeric=["wage", "rent"],
    )
    compared = sm.compare(one, replicates=1, seed=3, workers=1)
    lost = {name: why for name, why in compared.not_on_the_map.items() if "in groups of" in name}
    assert lost, compared.not_on_the_map
    for why in lost.values():
        assert re.search("accept missing values in (wage, )?rent: .*Noise", why)


def test_compare_rejects_plan_without_axes(file: sm.Microdata) -> None:
    with pytest.raises(sm.errors.PlanError, match="needs a risk measure and a utility measure"):
        sm.compare(file, plan=sm.Plan(sm.Swap("Age"), sm.SmallCells()), seed=1, workers=1)
