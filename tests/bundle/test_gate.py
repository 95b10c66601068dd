"""The gate: what a snooper finds in the written file who knows every column that others could know."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import ROLES, SEED, chosen, failed, people, plan_of
from sdcmap.bundle import release
from sdcmap.errors import PlanError, Refused
from sdcmap.study.plan import Candidate

OPEN = sm.Swap(on="region", rate=0.2)  # leaves income and rent as they were
STRONG = sm.Microaggregate(on=["age", "sex", "region", "income", "rent"], size=100, method="gower")


def sentences(found: Any, name: str) -> list[str]:
    return [check.reason for check in found.check() if check.name == name]


def found_exactly(original: pl.DataFrame, released: pl.DataFrame, names: list[str]) -> int:
    """A snooper of a few plain lines: people who are alone with these values, and whose values one released row has."""
    alone = original.select(names).filter(pl.struct(names).is_unique())
    once = released.select(names).filter(pl.struct(names).is_unique())
    return alone.join(once, on=names, how="inner").height


def test_an_open_amount_is_refused_whatever_the_plan_measured(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)  # SmallCells of the keys alone, at most .9
    wrong = failed(release(persons, plan, chosen(plan)))
    assert set(wrong) == {"unmasked", "gate"}
    assert wrong["unmasked"].startswith("'income', 'rent' would be released as they were")


def test_the_unmasked_columns_that_tell_most_are_named(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)
    told = sentences(release(persons, plan, chosen(plan)), "gate")[0]
    frame = persons.frame()
    names = ["age", "sex", "income", "rent"]
    assert told.startswith(
        f"{int(frame.select(pl.struct(names).is_unique().sum()).item())} of 600 records are alone on the 4"
    )
    alone = {name: int(frame[name].is_unique().sum()) for name in names}
    most = max(alone, key=lambda name: alone[name])
    assert f"by {most} ({alone[most]})" in told


def test_three_levels_are_told(persons: sm.Microdata) -> None:
    plan = plan_of(STRONG)
    told = [s for s in sentences(release(persons, plan, chosen(plan)), "told") if s.startswith("who knows")]
    assert [s.partition(":")[0] for s in told] == [
        "who knows the keys (3)", "who knows all columns that others could know (5)",
        "who knows every column but the survey's own, as a yardstick (5)",
    ]  # fmt: skip


ALONE = {name: columns for name, columns in ROLES.items() if name != "household"} | {"drop": "hh"}


def test_who_lives_together_finds_people_that_nothing_else_finds(persons: sm.Microdata) -> None:
    """Groups of 100 equal records hide each person; households as wholes, by their size and who is in them, do not."""
    plan = plan_of(STRONG)
    assert "gate" not in failed(release(sm.read(people(), **ALONE), plan, chosen(plan)))
    assert "WorstLinkage" in failed(release(persons, plan, chosen(plan)))["gate"]


def test_the_gate_decides_on_what_others_could_know() -> None:
    rng = np.random.default_rng(3)
    frame = people().with_columns(**{f"q{i}": rng.integers(1, 6, 600) for i in range(8)})
    opinions = [f"q{i}" for i in range(8)]
    given = {**ALONE, "other": opinions, "kinds": {**ROLES["kinds"], **dict.fromkeys(opinions, "ordinal")}}
    plan = plan_of(STRONG)
    open_items = release(sm.read(frame, **given), plan, chosen(plan))
    assert any(
        "alone on the 8 unmasked columns that others could know, together, more than" in s
        for s in sentences(open_items, "gate")
    )
    reason = dict.fromkeys(opinions, "respondent only: an opinion that was asked once")
    known = release(sm.read(frame, **given, known_by=reason), plan, chosen(plan))
    assert "gate" not in failed(known)
    yardstick = next(s for s in sentences(known, "told") if "yardstick" in s)
    assert float(yardstick.split("unmasked of them ")[1].split(";")[0]) > 0.9


def test_identity_needs_a_written_reason_which_note_report_and_ledger_show(
    persons: sm.Microdata, tmp_path: Path, ledger: Path
) -> None:
    plan = plan_of(OPEN)
    bound = sm.sweep(persons, plan, tmp_path / "study", workers=1).plan
    study = sm.Study.open(tmp_path / "study")
    with pytest.raises(Refused, match="released as it is, unmasked"):
        release(study.data, bound, Candidate(sm.Identity()), study=study).write(tmp_path / "no")
    reason = {"unmasked": "made-up people", "gate": "nobody lives here"}
    release(study.data, bound, Candidate(sm.Identity()), study=study, override=reason).write(tmp_path / "public")
    note = json.loads((tmp_path / "public" / "note.json").read_text())
    assert {entry["check"]: entry["reason"] for entry in note["overrides"]} == reason
    page = (tmp_path / "public" / "note.md").read_text()
    assert "made-up people" in page and "nobody lives here" in page
    sm.report(sm.Study.open(tmp_path / "study")).save(tmp_path / "report.html")
    assert "nobody lives here" in (tmp_path / "report.html").read_text()
    with sqlite3.connect(ledger / "ledger.sqlite") as connection:
        assert "nobody lives here" in connection.execute("select profile from release").fetchone()[0]


def test_an_empty_reason_is_no_reason(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)
    with pytest.raises(PlanError, match="needs a reason in words"):
        release(persons, plan, chosen(plan), override={"gate": " "})


def test_a_slight_change_does_not_make_an_amount_masked(persons: sm.Microdata) -> None:
    method = sm.Chain([sm.methods.TopCode(on=["income"], top_share=0.05), sm.Noise(on=["rent"], variance=0.5)])
    plan = plan_of(method)
    assert failed(release(persons, plan, chosen(plan)))["unmasked"].startswith("'income' would be released as it was")


def test_what_passes_is_not_found_by_an_independent_snooper(tmp_path: Path) -> None:
    persons = sm.read(people(), **ALONE)
    plan = plan_of(STRONG, profile="public-use")
    release(persons, plan, chosen(plan)).write(tmp_path / "public")
    released = pl.read_parquet(tmp_path / "public" / "data.parquet").with_columns(pl.col("region").cast(pl.String))
    original = people().with_columns(pl.col("region").cast(pl.String))
    every = ["age", "sex", "region", "income", "rent"]
    assert found_exactly(original, original, every) == 600
    assert found_exactly(original, released, every) <= 0.05 * 600
    open_plan = plan_of(OPEN)
    candidate = chosen(open_plan)
    seen = (
        candidate.method.apply(persons, candidate.stream(SEED)).frame().with_columns(pl.col("region").cast(pl.String))
    )
    assert found_exactly(original, seen, every) > 0.5 * 600  # he sees what the gate refused


def test_limits_are_the_plans_own_and_another_profile_is_refused(persons: sm.Microdata) -> None:
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])
    loose = {
        "name": "public-use",
        "found": 1.0,
        "membership": 1.0,
        "inferred": 1.0,
        "special": 1.0,
        "small": 1.0,
        "record": 1.0,
    }
    strict, free = plan_of(method), plan_of(method, profile=loose)
    assert "gate" in failed(release(persons, strict, chosen(strict)))
    assert failed(release(persons, free, chosen(free))) == {}
    with pytest.raises(PlanError, match="made for the profile 'public-use'"):
        release(persons, free, chosen(free), profile="teaching")
    with pytest.raises(PlanError, match=r"there is no profile 'publik-use': .* Did you mean 'public-use'"):
        release(persons, strict, chosen(strict), profile="publik-use")


def test_people_and_areas_are_counted(persons: sm.Microdata) -> None:
    loose: dict[str, Any] = {
        "found": 1.0,
        "membership": 1.0,
        "inferred": 1.0,
        "special": 1.0,
        "small": 1.0,
        "record": 1.0,
    }
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])
    few = plan_of(method, profile={**loose, "people": 1, "area": "region", "smallest_area": 10**9})
    wrong = [c.reason for c in release(persons, few, chosen(few)).check() if not c.passed]
    assert len(wrong) == 2 and "people are expected to be found, more than 1." in wrong[0]
    assert wrong[1].startswith("the smallest region has ") and wrong[1].endswith("fewer than 1,000,000,000.")


def test_the_largest_units_of_businesses(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"trade": rng.choice(["a", "b"], 400), "turnover": np.round(np.exp(rng.normal(10, 2, 400)))})
    data = sm.read(frame, keys="trade", sensitive="turnover")
    noisy = sm.Noise(on="turnover", variance=0.01)
    plan = sm.Plan(noisy, [sm.SmallCells(), sm.Hellinger()], rule=sm.Threshold(risk=1.0), seed=SEED, profile="business")
    wrong = [c.reason for c in release(data, plan, Candidate(noisy)).check() if not c.passed]
    assert any(s.startswith("largest units found by turnover (LargestUnits) is ") for s in wrong)


def test_prosecutor_and_journalist_are_both_told_and_doubtful_counts_warned_of(persons: sm.Microdata) -> None:
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])

    def told(**stated: Any) -> list[str]:
        plan = plan_of(method, profile={"name": "public-use", **stated})
        return [c.reason for c in release(persons, plan, chosen(plan)).check() if c.name in ("told", "gate")]

    def found(sentences: list[str], words: str) -> float:
        return float(next(s for s in sentences if words in s).split(words)[1].split()[0].rstrip(";.,"))

    plain = told()
    assert any("journalist, who does not: not told" in s and s.endswith("by the prosecutor.") for s in plain)
    people_known = found(plain, "who knows that his target is in the file: ")
    secret = told(population=60_000, fraction=0.01, taking_part="secret")
    assert found(secret, "who knows that his target is in the file: ") == pytest.approx(people_known, rel=1e-3)
    assert found(secret, "who does not: ") == pytest.approx(0.01 * people_known, rel=1e-3)
    assert found(secret, "best linkage (WorstLinkage) is ") == pytest.approx(0.01 * people_known, rel=1e-3)
    assert any(s.endswith("by the journalist.") for s in secret)
    doubtful = [s for s in told(population=1_000_000, fraction=0.5) if s.startswith("warning: ")]
    assert any("population times fraction is 500,000, and the file has 600 records" in s for s in doubtful)
    assert any("they count no people" in s for s in doubtful)
    assert any("what their weights say of the population is unreliable" in s for s in doubtful)
