"""Several releases of the same records: the ledger notices them, and their joint risk decides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import ROLES, SWAP_AND_NOISE, chosen, failed, people, plan_of
from samples import past_the_gate as release
from sdcmap.bundle.earlier import joint_view
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.sketch import SKETCH_SIZE, fingerprints, overlaps, sketch_of
from sdcmap.study.plan import Candidate

KEY = b"k" * 32
MANY = [sm.Noise(on=["income"], variance=v) for v in (0.3, 0.31, 0.32, 0.33)]
SOME = [sm.Noise(on="income", variance=0.3, above=a, variance_above=0.0) for a in (5e4, 7e4)]  # leaves values alone
INCOME: dict[str, Any] = {"measures": [sm.risk.KnownIndex(on="income"), sm.IL1s(on=["income"])]}


def risk_of(persons: sm.Microdata, files: list[sm.Microdata]) -> float:
    return sm.risk.KnownIndex(on="income").score(persons, joint_view(persons, files), np.random.default_rng(0)).value


# ---- another release ------------------------------------------------------------------------------------------
def test_another_release_of_the_same_data_is_refused(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    second = release(persons, plan, Candidate(SWAP_AND_NOISE, 1))
    assert "1 earlier release " in failed(second)["earlier releases"]
    with pytest.raises(sm.errors.Refused, match="again=True"):
        second.write(tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_the_same_release_may_be_written_again(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    folders = [release(persons, plan, chosen(plan)).write(tmp_path / name) for name in ("a", "b")]
    assert len({(folder / "SHA256SUMS").read_text() for folder in folders}) == 1
    checks = {check.name: check.sentence for check in release(persons, plan, chosen(plan)).check()}
    assert "this very release was written before" in checks["earlier releases"]


def test_a_refused_release_is_not_in_the_ledger(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE, rule=sm.Threshold(risk=0.0))
    with pytest.raises(sm.errors.Refused):
        release(persons, plan, chosen(plan)).write(tmp_path / "first")
    assert Ledger.seen(None).earlier() == []


def test_again_is_decided_by_the_joint_risk(persons: sm.Microdata, tmp_path: Path) -> None:
    """Each release alone has R = 1/(0.3 s^2); the average of two has twice that."""
    one = 1 / (0.3 * np.var(persons.numbers("income")))
    plan = plan_of(*MANY, **INCOME, rule=sm.Threshold(risk=2.5 * one))
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    second = release(persons, plan, chosen(plan, 1), again=True)
    (joint,) = [check for check in second.check() if check.name == "joint risk"]
    assert joint.passed
    second.write(tmp_path / "second")
    third = release(persons, plan, chosen(plan, 2), again=True)
    assert set(failed(third)) == {"joint risk"}, "three together are over the line, though each alone is under it"
    with pytest.raises(sm.errors.Refused, match="all releases together"):
        third.write(tmp_path / "third")


def test_a_joint_risk_that_cannot_be_computed_is_refused(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    other_seed = plan_of(SWAP_AND_NOISE, seed=plan.seed + 1)
    found = failed(release(persons, other_seed, chosen(other_seed), again=True))
    assert set(found) == {"earlier releases"} and "cannot be computed" in found["earlier releases"]


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ("other order", True), ("every tenth row", True), ("new rows around old ones", True), ("fewer columns", True),
        ("more columns", True), ("another role", True), ("new weights and households", True), ("other people", False),
    ],
)  # fmt: skip
def test_overlapping_records_are_noticed(persons: sm.Microdata, tmp_path: Path, change: str, noticed: bool) -> None:
    plan = plan_of(sm.Noise(on=["income"], variance=0.3))
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    frame, roles = people(), dict(ROLES)
    if change == "other order":
        frame = frame.sample(fraction=1.0, shuffle=True, seed=4)
    if change == "every tenth row":
        frame = frame[::10]
    if change == "new rows around old ones":
        frame = pl.concat([people(2000, seed=9), frame[:50]])
    if change == "fewer columns":  # in the release; they are still in the data
        roles |= {"identifiers": ["pid", "rent"], "sensitive": ["income"]}
    if change == "more columns":
        frame = frame.with_columns(more=pl.lit(1))
        roles |= {"other": "more"}
    if change == "another role":
        roles |= {"keys": ["age", "sex"], "other": ["region"]}
    if change == "new weights and households":
        frame = frame.with_columns(w=pl.col("w") * 1.25, hh=pl.col("hh") + 1)
    if change == "other people":
        frame = people(seed=2)
    other = sm.read(frame, **roles)
    found = failed(release(other, plan, chosen(plan), again=True))
    assert ("earlier releases" in found) == noticed


# ---- the joint view -------------------------------------------------------------------------------------------
def test_releases_add_up_as_averaging_does(persons: sm.Microdata) -> None:
    plan = plan_of(*MANY, **INCOME)
    files = [plan.make(persons, Candidate(method)) for method in MANY]
    assert risk_of(persons, files) == pytest.approx(4 * risk_of(persons, files[:1]), rel=0.25)


def test_a_weak_release_beside_a_strong_one_does_not_lower_the_risk(persons: sm.Microdata) -> None:
    plan = plan_of(sm.Noise(on="income", variance=0.01), sm.Noise(on="income", variance=5.0), **INCOME)
    strong, weak = (plan.make(persons, chosen(plan, place)) for place in (0, 1))
    assert risk_of(persons, [strong, weak]) >= risk_of(persons, [strong]) * 0.99


def test_what_any_release_left_alone_counts_as_known(persons: sm.Microdata) -> None:
    plan = plan_of(sm.Swap(on=["sex"], rate=0.2), sm.Swap(on=["region"], rate=0.2), sm.Noise(on="income"), *SOME)
    sex, region, income = (plan.make(persons, chosen(plan, place)) for place in (0, 1, 2))
    view = joint_view(persons, [sex, region, income])
    for name in ("sex", "region", "income"):
        assert (view[name] == persons[name]).all(), name
    twice = [plan.make(persons, Candidate(sm.Swap(on=["sex"], rate=0.2), r)) for r in (0, 1)]
    changed = [file["sex"] != persons["sex"] for file in twice]
    some = [plan.make(persons, chosen(plan, place)) for place in (3, 4)]
    view = joint_view(persons, some).numbers("income")
    kept = [file.numbers("income") == persons.numbers("income") for file in some]
    assert ((view == persons.numbers("income")) >= (kept[0] | kept[1])).all() and kept[0].any()
    assert ((joint_view(persons, twice)["sex"] != persons["sex"]) == (changed[0] & changed[1])).all()


# ---- fingerprints ---------------------------------------------------------------------------------------------
def test_fingerprints_do_not_depend_on_kind_type_or_order(persons: sm.Microdata) -> None:
    names = ["age", "sex", "income"]
    plain = sm.read(people().with_columns(pl.col("age").cast(pl.Float32), pl.col("sex").cast(pl.Categorical)))
    assert (fingerprints(persons, names, KEY) == fingerprints(plain, names[::-1], KEY)).all()
    assert (fingerprints(persons, names, KEY) != fingerprints(persons, names, b"x" * 32)).all()


def test_records_so_coarse_that_none_is_alone_are_known_as_a_whole() -> None:
    data = sm.read(pl.DataFrame({"sex": list("fm") * 50, "old": [True, False, False, False] * 25}), keys="all")
    prints = fingerprints(data, data.names, KEY)
    sketch = sketch_of(prints, KEY)
    assert sketch.singles == 0 and overlaps(sketch, prints[::-1], KEY) and not overlaps(sketch, prints[:96], KEY)


def test_a_sketch_of_a_large_file_still_sees_one_percent() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2**63, 1_000_000).astype(np.uint64)
    sketch = sketch_of(first, KEY)
    assert len(sketch.smallest) == SKETCH_SIZE
    fresh = rng.integers(0, 2**63, 100_000).astype(np.uint64)
    assert not overlaps(sketch, fresh, KEY)
    assert overlaps(sketch, np.concatenate([fresh, first[:20_000]]), KEY)
    assert overlaps(sketch, first[:5_000], KEY)
    assert overlaps(sketch, np.concatenate([fresh[:1_000], first[:2_000]]), KEY), "a small file, mostly of old records"


def test_coarse_records_of_other_people_are_no_overlap(cps8d: sm.Microdata) -> None:
    """Eight categories agree by chance between two halves of a file; a part of the same half is still noticed."""
    rows = np.random.default_rng(1).permutation(len(cps8d))
    half = len(rows) // 2
    prints = fingerprints(cps8d, cps8d.names, KEY)
    sketch = sketch_of(prints[rows[:half]], KEY)
    assert not overlaps(sketch, prints[rows[half:]], KEY)
    assert overlaps(sketch, prints[rows[:half]][::-1], KEY)
    assert overlaps(sketch, prints[rows[: half // 2]], KEY)


# ---- the ledger's folder --------------------------------------------------------------------------------------
def test_the_ledger_is_private(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    ledger.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        release(persons, plan, chosen(plan)).write(tmp_path / "public")
    finally:
        os.umask(before)
    assert ledger.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in ledger.iterdir()} == {
        "key": 0o600, "ledger.sqlite": 0o600, "lock": 0o600
    }  # fmt: skip


def test_two_ledgers_know_the_same_data_by_different_names(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    for name in ("a", "b"):
        release(persons, plan, chosen(plan), ledger=tmp_path / f"ledger {name}").write(tmp_path / name)
    (first,), (second,) = (Ledger.seen(tmp_path / f"ledger {name}").earlier() for name in ("a", "b"))
    assert first.data != second.data and first.seed != second.seed
    assert not np.isin(first.sketch.smallest, second.sketch.smallest).any()


def test_a_ledger_that_lost_its_key_is_not_begun_anew(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    (ledger / "key").unlink()
    for act in (lambda found: found.check(), lambda found: found.write(tmp_path / "second")):
        with pytest.raises(sm.errors.SdcmapError, match="no ledger key"):
            act(release(persons, plan, chosen(plan)))


def test_a_damaged_ledger_is_said_in_one_sentence(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    (ledger / "ledger.sqlite").write_bytes(b"not a database " * 1000)
    with pytest.raises(sm.errors.SdcmapError, match="cannot be used"):
        release(persons, plan, chosen(plan)).write(tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_the_users_state_folder_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SDCMAP_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Ledger.seen(None).folder == tmp_path / "sdcmap" / "ledger"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger.seen(None).folder == tmp_path / ".local" / "state" / "sdcmap" / "ledger"
