"""What the board reads of utility in plain words: costs in records, and the worst subgroups of each mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.dossier import questions as priced
from sdcmap.dossier.questions import in_records, subgroup_means

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


def raised(people: sm.Microdata) -> sm.Microdata:
    """Wages of c are 3 higher, those of women in b 1 higher, those of the few in d 100."""
    region, woman = np.array(PEOPLE["region"]), np.array(PEOPLE["sex"]) == "f"
    more = np.select([region == "c", (region == "b") & woman, region == "d"], [3.0, 1.0, 100.0], 0.0)
    return people.change(None, {"wage": people["wage"] + more})


def test_the_three_worst_subgroups_of_a_mean(people: sm.Microdata) -> None:
    few = people.take(np.flatnonzero(PEOPLE["region"].to_numpy() != "d"))
    few = sm.Microdata(few.schema, few.columns)
    masked = few.change(None, {"wage": raised(people)["wage"][:200]})
    rows = subgroup_means(few, masked)
    assert [(row.what, row.where, row.records) for row in rows] == [
        ("mean of wage", "region = c", 40), ("mean of wage", "sex = f", 100), ("mean of wage", "sex = m", 100),
    ]  # fmt: skip
    wages = few["wage"][PEOPLE["region"].to_numpy()[:200] == "c"]
    assert (rows[0].before, rows[0].after) == pytest.approx((5.5, 8.5))
    assert rows[0].off == pytest.approx(3 / wages.std(ddof=1))


def test_the_variables_that_the_plan_names_divide_the_people(people: sm.Microdata) -> None:
    named = sm.utility.WorstSubgroup(sm.IL1s(on="wage"), by=["region", "sex"])
    rows = subgroup_means(people, raised(people), [sm.Hellinger(), named])
    assert [(row.where, row.records) for row in rows] == [("region = b and sex = f", 30)]


def test_a_synthetic_file_has_nobodys_subgroups(people: sm.Microdata) -> None:
    assert subgroup_means(people, sm.Microdata(people.schema, people.columns, paired=False)) == []


def test_the_report_reads_every_utility_score_in_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sm.demo.population(300, seed=4).only(["Age", "Sex", "Educ", "wage"])
    measures = [sm.SmallCells(n=10), sm.Hellinger(), sm.IL1s(on="wage"), sm.utility.EnergyDistance(on="wage", most=100)]
    plan = sm.Plan([sm.Swap("Age", 0.1)], measures, rule=sm.Threshold(risk=1.0), seed=1 << 200)
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    page = sm.report(tmp_path / "study").html
    assert "What it costs, in records" in page and "of 300 records" in page
    assert "no reading: leaving records out does not change it." in page
    assert "What it costs, in records" not in sm.report(tmp_path / "study", audience="external").html
    monkeypatch.setattr(priced, "MOST_SECONDS", 1e-9)
    choice = sm.RUMap(scores, *plan.risk, plan.utility).choose(plan.rule)
    told = dict(in_records(data, scores, choice, seed=1))
    assert told["energy distance on wage, most = 100"].startswith("not read here: it would take")
