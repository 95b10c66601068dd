"""Checks of the written file against its release profile, for an attacker who knows what others could know."""

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
OF_ALL = {"name": "public-use", "outlier_membership": "none"}  # outlying people stand out in STRONG: an AUC of 0.63


def sentences(found: Any, name: str) -> list[str]:
    return [check.reason for check in found.check() if check.name == name]


def count_exact_matches(original: pl.DataFrame, released: pl.DataFrame, names: list[str]) -> int:
    """Return how many people an attack of a few plain lines re-identifies: unique people with one equal released row."""
    unique = original.select(names).filter(pl.struct(names).is_unique())
    once = released.select(names).filter(pl.struct(names).is_unique())
    return unique.join(once, on=names, how="inner").height


def test_unmasked_amount_fails_whatever_the_plan_measured(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)  # only SmallCells of the keys, at most 0.9
    wrong = failed(release(persons, plan, chosen(plan)))
    assert set(wrong) == {"unmasked", "profile"}
    assert wrong["unmasked"].startswith("'income', 'rent' would be released unmasked.")


def test_most_identifying_unmasked_columns_are_named(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)
    reason = sentences(release(persons, plan, chosen(plan)), "profile")[0]
    frame = persons.frame()
    names = ["age", "sex", "income", "rent"]
    assert reason.startswith(
        f"{int(frame.select(pl.struct(names).is_unique().sum()).item())} of 600 records are unique on the 4"
    )
    unique = {name: int(frame[name].is_unique().sum()) for name in names}
    most = max(unique, key=lambda name: unique[name])
    assert f"the most identifying are {most} ({unique[most]} unique records)" in reason


def test_three_levels_of_knowledge_are_reported(persons: sm.Microdata) -> None:
    plan = plan_of(STRONG, profile=OF_ALL)
    start = "An attacker who knows "
    reasons = [s for s in sentences(release(persons, plan, chosen(plan)), "information") if s.startswith(start)]
    assert [s.removeprefix(start).partition(":")[0] for s in reasons] == [
        "the keys (3 columns)", "all columns that others could know (5 columns)",
        "every column except weights, households and strata, as a yardstick (5 columns)",
    ]  # fmt: skip


ALONE = {name: columns for name, columns in ROLES.items() if name != "household"} | {"drop": "hh"}


def test_household_linkage_fails_where_person_linkage_passes(persons: sm.Microdata) -> None:
    """Groups of 100 equal records hide each person; households as wholes, by their size and who is in them, do not."""
    plan = plan_of(STRONG, profile=OF_ALL)
    assert "profile" not in failed(release(sm.read(people(), **ALONE), plan, chosen(plan)))
    assert "WorstLinkage" in failed(release(persons, plan, chosen(plan)))["profile"]


def test_profile_decides_on_columns_that_others_could_know() -> None:
    rng = np.random.default_rng(3)
    frame = people().with_columns(**{f"q{i}": rng.integers(1, 6, 600) for i in range(8)})
    opinions = [f"q{i}" for i in range(8)]
    given = {**ALONE, "other": opinions, "kinds": {**ROLES["kinds"], **dict.fromkeys(opinions, "ordinal")}}
    plan = plan_of(STRONG, profile=OF_ALL)
    open_items = release(sm.read(frame, **given), plan, chosen(plan))
    assert any(
        "unique on the 8 unmasked columns that others could know, taken together, more than" in s
        for s in sentences(open_items, "profile")
    )
    reason = dict.fromkeys(opinions, "respondent only: an opinion that was asked once")
    known = release(sm.read(frame, **given, known_by=reason), plan, chosen(plan))
    assert "profile" not in failed(known)
    yardstick = next(s for s in sentences(known, "information") if "yardstick" in s)
    assert float(yardstick.split("unmasked columns among them ")[1].rstrip(".")) > 0.9


def test_releasing_original_needs_reason_shown_in_note_report_and_ledger(
    persons: sm.Microdata, tmp_path: Path, ledger: Path
) -> None:
    plan = plan_of(OPEN)
    bound = sm.sweep(persons, plan, tmp_path / "study", workers=1).plan
    study = sm.Study.open(tmp_path / "study")
    with pytest.raises(Refused, match="released as it is, unmasked"):
        release(study.data, bound, Candidate(sm.Identity()), study=study).write(tmp_path / "no")
    reason = {"unmasked": "made-up people", "profile": "nobody lives here"}
    release(study.data, bound, Candidate(sm.Identity()), study=study, override=reason).write(tmp_path / "public")
    note = json.loads((tmp_path / "public" / "note.json").read_text())
    assert {entry["check"]: entry["reason"] for entry in note["overrides"]} == reason
    page = (tmp_path / "public" / "note.md").read_text()
    assert "made-up people" in page and "nobody lives here" in page
    sm.report(sm.Study.open(tmp_path / "study")).save(tmp_path / "report.html")
    assert "nobody lives here" in (tmp_path / "report.html").read_text()
    with sqlite3.connect(ledger / "ledger.sqlite") as connection:
        assert "nobody lives here" in connection.execute("select profile from release").fetchone()[0]


def test_override_with_empty_reason_is_rejected(persons: sm.Microdata) -> None:
    plan = plan_of(OPEN)
    with pytest.raises(PlanError, match="needs a reason in words"):
        release(persons, plan, chosen(plan), override={"profile": " "})


def test_slightly_changed_amount_counts_as_unmasked(persons: sm.Microdata) -> None:
    method = sm.Chain([sm.methods.TopCode(on=["income"], top_share=0.05), sm.Noise(on=["rent"], variance=0.5)])
    plan = plan_of(method)
    assert failed(release(persons, plan, chosen(plan)))["unmasked"].startswith("'income' would be released unmasked")


def test_independent_attack_fails_on_file_that_passes(tmp_path: Path) -> None:
    persons = sm.read(people(), **ALONE)
    plan = plan_of(STRONG, profile=OF_ALL)
    release(persons, plan, chosen(plan)).write(tmp_path / "public")
    released = pl.read_parquet(tmp_path / "public" / "data.parquet").with_columns(pl.col("region").cast(pl.String))
    original = people().with_columns(pl.col("region").cast(pl.String))
    every = ["age", "sex", "region", "income", "rent"]
    assert count_exact_matches(original, original, every) == 600
    assert count_exact_matches(original, released, every) <= 0.05 * 600
    open_plan = plan_of(OPEN)
    candidate = chosen(open_plan)
    seen = (
        candidate.method.apply(persons, candidate.stream(SEED)).frame().with_columns(pl.col("region").cast(pl.String))
    )
    assert count_exact_matches(original, seen, every) > 0.5 * 600  # the attack succeeds on what the check refused


def test_profile_of_plan_applies_and_another_is_rejected(persons: sm.Microdata) -> None:
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])
    loose = {
        "name": "public-use",
        "reidentification": 1.0,
        "membership": 1.0,
        "inference": 1.0,
        "surest": 1.0,
        "reconstruction": 1.0,
        "extremes": 1.0,
        "special": 1.0,
        "small": 1.0,
        "record": 1.0,
    }
    strict, free = plan_of(method), plan_of(method, profile=loose)
    assert "profile" in failed(release(persons, strict, chosen(strict)))
    assert failed(release(persons, free, chosen(free))) == {}
    with pytest.raises(PlanError, match="made for the profile 'public-use'"):
        release(persons, free, chosen(free), profile="teaching")
    with pytest.raises(PlanError, match=r"there is no profile 'publik-use': .* Did you mean 'public-use'"):
        release(persons, strict, chosen(strict), profile="publik-use")


def test_number_of_people_and_area_size_are_limited(persons: sm.Microdata) -> None:
    loose: dict[str, Any] = {
        "reidentification": 1.0,
        "membership": 1.0,
        "inference": 1.0,
        "surest": 1.0,
        "reconstruction": 1.0,
        "extremes": 1.0,
        "special": 1.0,
        "small": 1.0,
        "record": 1.0,
    }
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])
    small = plan_of(method, profile={**loose, "people": 1, "area": "region", "smallest_area": 10**9})
    (wrong,) = [c.reason for c in release(persons, small, chosen(small)).check() if not c.passed]  # nothing is measured
    assert wrong.startswith("The smallest region has ") and wrong.endswith("fewer than the required 1,000,000,000.")
    few = plan_of(method, profile={**loose, "people": 1})
    (wrong,) = [c.reason for c in release(persons, few, chosen(few)).check() if not c.passed]
    assert "people are expected to be re-identified, more than the 1 of the profile." in wrong


def test_largest_units_of_businesses_are_limited(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"trade": rng.choice(["a", "b"], 400), "turnover": np.round(np.exp(rng.normal(10, 2, 400)))})
    data = sm.read(frame, keys="trade", sensitive="turnover")
    noisy = sm.Noise(on="turnover", variance=0.01)
    plan = sm.Plan(noisy, [sm.SmallCells(), sm.Hellinger()], rule=sm.Threshold(risk=1.0), seed=SEED, profile="business")
    wrong = [c.reason for c in release(data, plan, Candidate(noisy)).check() if not c.passed]
    assert any(s.startswith("Largest units re-identified") and " (LargestUnits): " in s for s in wrong)


def test_both_attack_scenarios_and_doubtful_counts_are_reported(
    persons: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])

    def reasons(**stated: Any) -> list[str]:
        monkeypatch.setenv(
            "SDCMAP_LEDGER", str(tmp_path / f"ledger {len(stated)}")
        )  # so that each release is the first
        plan = plan_of(method, profile={"name": "public-use", **stated})
        return [c.reason for c in release(persons, plan, chosen(plan)).check() if c.name in ("information", "profile")]

    def number_after(sentences: list[str], words: str) -> float:
        return float(next(s for s in sentences if words in s).split(words)[1].split()[0].rstrip(";.,"))

    plain = reasons()
    assert any("(journalist): not tested" in s and s.endswith("The prosecutor scenario decides.") for s in plain)
    prosecutor = number_after(plain, "(prosecutor): ")
    secret = reasons(population=60_000, fraction=0.01, taking_part="secret")
    assert number_after(secret, "(prosecutor): ") == pytest.approx(prosecutor, rel=1e-3)
    assert number_after(secret, "(journalist): ") == pytest.approx(0.01 * prosecutor, rel=1e-3)
    assert number_after(secret, "(WorstLinkage): ") == pytest.approx(0.01 * prosecutor, rel=1e-3)
    assert any(s.endswith("The journalist scenario decides.") for s in secret)
    doubtful = [s for s in reasons(population=1_000_000, fraction=0.5) if s.startswith("Warning: ")]
    assert any("population times the fraction is 500,000, but the file has 600 records" in s for s in doubtful)
    assert any("Weights must be population weights" in s for s in doubtful)
    assert any("estimated from their weights are unreliable" in s for s in doubtful)
