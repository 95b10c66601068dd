"""A release from choice to folder: what is written, what it says, and that nothing secret leaves the room."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from notes import run_example

import sdcmap as sm
from samples import PROFILE_OVERRIDES, ROLES, SEED, SWAP_AND_NOISE, chosen, people, plan_of
from samples import release_with_overrides as release
from sdcmap.bundle import Check, Release
from sdcmap.bundle.checks import CHECK_KINDS, RENAMED_CHECKS
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.bundle.procedure import release_draw
from sdcmap.study.plan import Candidate


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release, which these tests read and none of them changes."""
    folder, plan = tmp_path_factory.mktemp("released"), plan_of(SWAP_AND_NOISE)
    going = release(sm.read(people(), **ROLES), plan, chosen(plan), ledger=folder / "ledger")
    return going.write(folder / "public")


# ---- what is written ------------------------------------------------------------------------------------------
def test_release_contains_only_allowed_names(written: Path) -> None:
    names = {
        "data.parquet", "README.md", "CITATION.cff", "codebook.json", "codebook.md", "codebook.xml", "note.md", "note.json",
        "SHA256SUMS",
    }  # fmt: skip
    assert {path.name for path in written.iterdir()} == names
    assert [path.name for path in written.parent.iterdir() if path.name.startswith(".part")] == []
    assert written.stat().st_mode & 0o077 == 0, "private until its mode is changed"


def test_checksums_match_the_files(written: Path) -> None:
    lines = (written / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {p.name for p in written.iterdir()} - {"SHA256SUMS"}
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((written / name).read_bytes()).hexdigest() == digest


def test_identifiers_are_dropped_and_other_columns_stay(written: Path, persons: sm.Microdata) -> None:
    frame = pl.read_parquet(written / "data.parquet")
    assert frame.columns == [name for name in persons.names if name != "pid"]
    assert frame.height == len(persons)
    assert not re.search(rb"P0\d{4}", (written / "data.parquet").read_bytes())


def test_types_and_granularity_are_those_of_original(written: Path) -> None:
    frame, before = pl.read_parquet(written / "data.parquet"), people()
    assert frame["income"].dtype == before["income"].dtype == pl.Int64
    assert (frame["income"] % 10 == 0).all(), "the original counts in tens"
    assert (frame["rent"] * 100 - (frame["rent"] * 100).round()).abs().max() < 1e-6, "the original counts in cents"
    assert frame["rent"].n_unique() > 100 and set(frame["income"]) != set(before["income"])


def test_category_without_records_is_in_no_file(written: Path) -> None:
    assert pl.read_parquet(written / "data.parquet")["region"].dtype == pl.Enum(["A", "B", "C"])
    for path in written.iterdir():
        assert b"Emptied" not in path.read_bytes(), path.name


def test_households_and_strata_are_renumbered_and_stay_together(written: Path, persons: sm.Microdata) -> None:
    frame, before = pl.read_parquet(written / "data.parquet"), people()
    size = before["hh"].n_unique()
    assert frame["hh"].dtype == pl.Int64 and sorted(frame["hh"].unique()) == list(range(1, size + 1))
    assert sorted(frame["psu"].unique()) == ["1", "2", "3"]
    rows = place_of_each_record(len(before))
    assert frame[rows].select("age", "sex", "w").equals(before.select("age", "sex", "w")), "the same persons"
    pairs = pl.DataFrame({"old": before["hh"], "new": frame["hh"][rows]}).unique()
    assert len(pairs) == size, "one new number for each household"
    assert abs(np.corrcoef(pairs["old"], pairs["new"])[0, 1]) < 0.3, "and not in the old order"
    assert pl.DataFrame({"old": before["psu"], "new": frame["psu"][rows]}).n_unique() == 3


def place_of_each_record(rows: int) -> list[int]:
    """Where each record went: the order is made again with the candidate's own stream."""
    order = release_draw(Candidate(SWAP_AND_NOISE)).stream(SEED).child("release rows").rng().permutation(rows)
    return [int(place) for place in np.argsort(order)]


def test_rows_are_shuffled(written: Path) -> None:
    frame, before = pl.read_parquet(written / "data.parquet"), people()
    together = (frame["age"] == before["age"]) & (frame["sex"] == before["sex"]) & (frame["w"] == before["w"])
    assert together.mean() < 0.1


def test_identity_release_changes_only_row_order(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of()
    folder = release(persons, plan, Candidate(sm.Identity())).write(tmp_path / "public")
    columns = ["age", "sex", "income", "rent", "w"]
    assert (
        pl.read_parquet(folder / "data.parquet")
        .select(columns)
        .sort(columns)
        .equals(people().select(columns).sort(columns))
    )


def test_same_candidate_gives_same_file_and_another_draw_another(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    same = []
    for number, replicate in enumerate([0, 0, 1]):
        draft = release(persons, plan, Candidate(SWAP_AND_NOISE, replicate), ledger=tmp_path / f"l{number}")
        with separate_state(tmp_path / f"state {number}"):
            same.append((draft.write(tmp_path / str(number)) / "data.parquet").read_bytes())
    assert same[0] == same[1] != same[2]


# ---- what it says ---------------------------------------------------------------------------------------------
def test_note_contains_what_users_need(written: Path) -> None:
    note, page = json.loads((written / "note.json").read_text()), (written / "note.md").read_text()
    assert note["method"] == SWAP_AND_NOISE.spec() and SWAP_AND_NOISE.title in page
    assert note["masked"] == ["region", "income", "rent"] and "age" in note["not_masked"]
    assert note["renumbered_at_random"] == ["hh", "psu"]
    assert note["kept_exactly"] == SWAP_AND_NOISE.kept and SWAP_AND_NOISE.distorted in page
    assert [amount["measure"] for amount in note["distorted_by"]] == ["Hellinger", "IL1s(on='income')"]
    assert note["draws_searched"] == 2 and note["made_by"].endswith(sm.__version__)
    assert note["profile"] == "public-use" and len(note["may_not"]) >= 4
    relations = note["relations"]
    assert relations["summary"] in page and relations["others"].startswith("Of ") and relations["others"] in page
    for heading in ("How the file was masked", "What masking preserves", "Conditions of use", "How to use the file"):
        assert f"## {heading}" in page


def test_scores_in_the_note_have_two_significant_digits(written: Path, persons: sm.Microdata) -> None:
    note = json.loads((written / "note.json").read_text())
    for amount in note["distorted_by"]:
        assert len(re.sub(r"^0\.0*|\.0$|\.", "", repr(amount["value"]))) <= 2
    masked = plan_of(SWAP_AND_NOISE).make(persons, Candidate(SWAP_AND_NOISE))
    exact = sm.IL1s(on=["income"]).score(persons, masked, np.random.default_rng(0)).value
    assert note["distorted_by"][1]["value"] == pytest.approx(exact, rel=0.06)


def test_note_counts_draws_of_the_choice(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE, replicates=5)
    scores = sm.sweep(persons, plan, workers=1)
    best = sm.RUMap(scores, risk=plan.risk, utility="IL1s(on='income')").choose(sm.Threshold(risk=0.5))
    assert best.searched == 5
    note = json.loads((release(persons, plan, best).write(tmp_path / "public") / "note.json").read_text())
    assert note["draws_searched"] == 5


@pytest.mark.parametrize("weight", [True, False])
def test_example_in_note_runs(persons: sm.Microdata, tmp_path: Path, weight: bool) -> None:
    data = persons if weight else persons.only([name for name in persons.names if name != "w"])
    plan = plan_of(SWAP_AND_NOISE)
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    assert run_example(folder) > 100


def test_example_without_numbers_counts_categories(tmp_path: Path) -> None:
    data = sm.read(people().select("age", "sex", "region"), keys="all")
    plan = plan_of(sm.Swap(on=["sex"], rate=0.1), measures=[sm.SmallCells(), sm.Hellinger()], rule=sm.Threshold(risk=1))
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    example = json.loads((folder / "note.json").read_text())["example"]
    subprocess.run([sys.executable, "-c", example], cwd=folder, check=True, capture_output=True)


def test_codebook_contains_released_values_only(written: Path) -> None:
    entries = {entry["name"]: entry for entry in json.loads((written / "codebook.json").read_text())}
    assert list(entries) == pl.read_parquet(written / "data.parquet").columns
    assert [category["value"] for category in entries["region"]["categories"]] == ["A", "B", "C"]
    assert "categories" not in entries["hh"] and entries["hh"]["use"] == "household number"
    assert entries["income"]["masked"] and not entries["age"]["masked"]
    assert "## region" in (written / "codebook.md").read_text()


def test_note_of_scientific_use_file_states_its_users(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    folder = release(persons, plan, chosen(plan), profile="scientific-use").write(tmp_path / "suf")
    assert "for researchers under contract" in (folder / "note.md").read_text()
    with pytest.raises(sm.errors.PlanError, match="Did you mean 'public-use'"):
        release(persons, plan, chosen(plan), profile="public")


# ---- nothing secret leaves ------------------------------------------------------------------------------------
def secrets_of(data: sm.Microdata, plan: sm.Plan) -> list[bytes]:
    """What may stand nowhere, in the spellings it could have."""
    seed = plan.seed.to_bytes(32, "big")
    texts = [hex(plan.seed)[2:], hex(plan.seed)[2:].upper(), str(plan.seed), data.digest, plan.digest]
    return [*(text.encode() for text in texts), seed, seed[::-1], bytes.fromhex(data.digest)]


def test_bundle_and_ledger_contain_no_secret(written: Path, persons: sm.Microdata) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    forbidden = [*secrets_of(persons, plan), chosen(plan).id.encode()]
    kept = written.parent / "ledger"
    files = [*written.iterdir(), *(path for path in kept.iterdir() if path.name != "lock")]
    assert len(files) >= 8
    for path in files:
        content = path.read_bytes()
        assert [secret for secret in forbidden if secret in content] == [], path.name
        assert path.parent == kept or b"replicate" not in content, path.name


def test_refusal_contains_no_secret_and_no_value(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(sm.Swap(on=["region"], rate=0.01), rule=sm.Threshold(risk=0.0))
    with pytest.raises(sm.errors.Refused) as caught:
        release(persons, plan, chosen(plan)).write(tmp_path / "public")
    text = (str(caught.value) + repr(caught.value)).encode()
    assert [secret for secret in secrets_of(persons, plan) if secret in text] == []
    assert "north-7" not in str(caught.value) and "Emptied" not in str(caught.value)
    assert str(SEED) not in repr(release(persons, plan, chosen(plan)))


def test_study_files_are_never_copied(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    (tmp_path / "study" / "kept").mkdir()
    (tmp_path / "study" / "kept" / "x.study.parquet").write_text("masked")
    study = sm.Study.open(tmp_path / "study")
    folder = release(persons, plan, chosen(plan), study=study).write(tmp_path / "public")
    assert len(list(folder.rglob("*"))) == 9 and not list(folder.rglob("*study*"))


def test_releases_of_a_method_are_counted_and_the_tries_are_not_renewed(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE, replicates=6)
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    draws = [Candidate(SWAP_AND_NOISE, draw) for draw in range(4)]
    numbers = [release_draw(draw).replicate for draw in draws]
    for draw in (draws[0], *draws[:3]):  # one of them twice: it spends one try
        with sm.Study.open(tmp_path / "study") as study:
            release(persons, plan, draw, study=study).check()
    with sm.Study.open(tmp_path / "study") as study:
        assert list(study.manifest["checked_draws"].values()) == [numbers[:3]]
        with pytest.raises(sm.errors.Refused, match="A try is left .tries.: All 3 tries of these data for the profile"):
            release(persons, plan, draws[3], study=study).write(tmp_path / "public")
        anyway = {"tries": "made-up people"}
        with pytest.raises(sm.errors.Refused, match="No lucky draw .draws.: 3 other releases have tried this method"):
            release(persons, plan, draws[3], study=study, override=anyway).write(tmp_path / "public")
        assert list(study.manifest["checked_draws"].values()) == [numbers[:3]]
        folder = release(persons, plan, draws[1], study=study).write(tmp_path / "public")
    note = json.loads((folder / "note.json").read_text())
    assert note["draws_checked"] == 3 and note["methods_searched"] == 1
    assert [(one["confidence_level"], one["passed"]) for one in note["tries"]] == [(0.99, True)]
    text = (folder / "note.md").read_text()
    assert "3 draws of this method went through the release checks (at most 3 may)" in text
    assert "This procedure writes a file above a limit in at most 5 % of studies." in text


def test_study_records_releases_and_overrides(tmp_path: Path) -> None:
    persons = sm.read(people().with_columns(w=pl.Series(np.random.default_rng(5).random(600) + 1)), **ROLES)
    plan = plan_of(SWAP_AND_NOISE)
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    study = sm.Study.open(tmp_path / "study")
    reason = {"weight": "the weights were drawn at random"}
    release(persons, plan, chosen(plan), study=study, override=reason).write(tmp_path / "public")
    manifest = sm.Study.open(tmp_path / "study").manifest
    (override, published), (entry,) = manifest["overrides"], manifest["releases"]
    assert (published["check"], published["reason"]) == ("profile", PROFILE_OVERRIDES["profile"])
    assert (override["check"], override["reason"]) == ("weight", reason["weight"]) and override["when"].endswith(
        "+00:00"
    )
    assert entry["profile"] == "public-use" and entry["when"].endswith("+00:00")
    note = (tmp_path / "public" / "note.md").read_text()
    assert reason["weight"] not in note and f"(profile): {PROFILE_OVERRIDES['profile']}" in note


def test_study_of_other_data_is_rejected(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    other = sm.read(people(seed=2), **ROLES)
    with pytest.raises(sm.errors.StudyMismatch):
        release(other, plan, chosen(plan), study=sm.Study.open(tmp_path / "study"))


# ---- checks ---------------------------------------------------------------------------------------------------
def test_check_returns_every_check_without_writing(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    checks = release(persons, plan, chosen(plan)).check()
    assert all(isinstance(check, Check) and check.passed and check.reason for check in checks)
    names = {check.name for check in checks}
    assert names == {
        "seed",
        "roles",
        "profile",
        "information",
        "unmasked",
        "identifier",
        "recoverable",
        "weight",
        "missing patterns",
        "limit",
        "risk",
        "draws",
        "round trip",
        "ledger",
        "earlier releases",
        "tries",
    }
    assert list(tmp_path.iterdir()) == [ledger], "only the ledger remembers the try"


@pytest.fixture
def refusals() -> Callable[[Release, Path], tuple[Check, ...]]:
    def refused(found: Release, folder: Path) -> tuple[str, ...]:
        with pytest.raises(sm.errors.Refused) as caught:
            found.write(folder)
        return caught.value.checks

    return refused


def test_refusal_names_every_failed_check_and_writes_nothing(
    tmp_path: Path, refusals: Callable[[Release, Path], tuple[Check, ...]]
) -> None:
    data = sm.read(people(), keys=["age", "region"], other=["sex", "w", "pid"], kinds={"age": "ordinal"})
    plan = plan_of(
        sm.Noise(on="income"), measures=[sm.SmallCells(on=["age", "sex"], n=500), sm.IL1s()], seed=7,
        rule=sm.Threshold(risk=0.1),
    )  # fmt: skip
    checks = refusals(release(data, plan, chosen(plan)), tmp_path / "public")
    assert {check.name for check in checks} == {"seed", "roles", "identifier"}
    assert "'hh', 'psu', 'income', 'rent'" in " ".join(map(str, checks))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]


def test_releasing_nothing_is_refused(persons: sm.Microdata) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    scores = sm.sweep(persons, plan, workers=1)
    ru = sm.RUMap(scores, risk=plan.risk, utility="Hellinger")
    for nothing in (None, ru.choose(sm.Threshold(risk=-1.0))):
        with pytest.raises(sm.errors.Refused, match="elease nothing"):
            release(persons, plan, nothing)


@pytest.mark.parametrize("choice", ["nothing", "", Candidate(sm.Noise(on="rent")), Candidate(SWAP_AND_NOISE, 9)])
def test_choice_of_another_plan_is_rejected(persons: sm.Microdata, choice: Any) -> None:
    with pytest.raises(sm.errors.PlanError, match="of this plan"):
        release(persons, plan_of(SWAP_AND_NOISE), choice)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"risk": "fine"}, "cannot be overridden"),
        ({"seed": "fine"}, "cannot be overridden"),
        ({"wieght": "fine"}, "Did you mean 'weight'"),
        ({"weight": " "}, "needs a reason"),
        ({"gate": "fine"}, "Did you mean 'profile', its new name"),  # the name in version 0.1
    ],
)
def test_only_some_checks_can_be_overridden(persons: sm.Microdata, override: dict[str, str], message: str) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    with pytest.raises(sm.errors.PlanError, match=message):
        release(persons, plan, chosen(plan), override=override)


def test_every_check_has_label_description_and_remedy() -> None:
    assert all(0 < len(kind.label) <= 40 for kind in CHECK_KINDS.values())
    assert all(kind.description.endswith(".") and kind.description.count(". ") == 0 for kind in CHECK_KINDS.values())
    assert {name for name, kind in CHECK_KINDS.items() if not kind.remedy} == {"other risk", "information"}
    assert not CHECK_KINDS.keys() & RENAMED_CHECKS and {*RENAMED_CHECKS.values()} <= CHECK_KINDS.keys()
