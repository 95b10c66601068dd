"""Utility for the board: losses expressed in records, and the worst subgroups of each mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.reports import user_questions
from sdcmap.reports.user_questions import subgroup_means, subsample_equivalents

PEOPLE = pl.DataFrame(
    {
        "region": np.repeat(["a", "b", "c", "d"], [100, 60, 40, 8]),
        "sex": np.tile(["f", "m"], 104),
        "wage": np.arange(208) % 10 + 1.0,
    }
)


@pytest.fixture
def people() -> sm.Microdata:
    return sm.read(PEOPLE, keys=["region", "sex"], numeric=["wage"])


def raise_wages(people: sm.Microdata) -> sm.Microdata:
    """Wages of c are 3 higher, those of women in b 1 higher, those of the few in d 100."""
    region, woman = np.array(PEOPLE["region"]), np.array(PEOPLE["sex"]) == "f"
    more = np.select([region == "c", (region == "b") & woman, region == "d"], [3.0, 1.0, 100.0], 0.0)
    return people.change(None, {"wage": people["wage"] + more})


def test_subgroup_means_returns_three_worst(people: sm.Microdata) -> None:
    few = people.take(np.flatnonzero(PEOPLE["region"].to_numpy() != "d"))
    few = sm.Microdata(few.schema, few.columns)
    masked = few.change(None, {"wage": raise_wages(people)["wage"][:200]})
    rows = subgroup_means(few, masked)
    assert [(row.what, row.where, row.records) for row in rows] == [
        ("mean of wage", "region = c", 40), ("mean of wage", "sex = f", 100), ("mean of wage", "sex = m", 100),
    ]  # fmt: skip
    wages = few["wage"][PEOPLE["region"].to_numpy()[:200] == "c"]
    assert (rows[0].before, rows[0].after) == pytest.approx((5.5, 8.5))
    assert rows[0].off == pytest.approx(3 / wages.std(ddof=1))


def test_subgroup_means_uses_variables_of_the_plan(people: sm.Microdata) -> None:
    named = sm.utility.WorstSubgroup(sm.IL1s(on="wage"), by=["region", "sex"])
    rows = subgroup_means(people, raise_wages(people), [sm.Hellinger(), named])
    assert [(row.where, row.records) for row in rows] == [("region = b and sex = f", 30)]


def test_subgroup_means_of_synthetic_file_is_empty(people: sm.Microdata) -> None:
    assert subgroup_means(people, sm.Microdata(people.schema, people.columns, paired=False)) == []


def test_report_expresses_utility_scores_in_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sm.demo.population(300, seed=4).only(["Age", "Sex", "Educ", "wage"])
    measures = [sm.SmallCells(n=10), sm.Hellinger(), sm.IL1s(on="wage"), sm.utility.EnergyDistance(on="wage", most=100)]
    plan = sm.Plan([sm.Swap("Age", 0.1)], measures, rule=sm.Threshold(risk=1.0), seed=1 << 200)
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    page = sm.report(tmp_path / "study").html
    assert "The loss expressed in records" in page and "of 300 records" in page
    assert "no reading: leaving records out does not change it." in page
    assert "The loss expressed in records" not in sm.report(tmp_path / "study", audience="external").html
    monkeypatch.setattr(user_questions, "MAX_READING_SECONDS", 1e-9)
    choice = sm.RUMap(scores, *plan.risk, plan.utility).choose(plan.rule)
    sentences = dict(subsample_equivalents(data, scores, choice, seed=1))
    assert sentences[measures[-1].title].startswith("not computed here: it would take")
