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
from samples import release_with_overrides as release
from sdcmap.bundle.earlier_releases import joint_view
from sdcmap.bundle.ledger import Ledger, LedgerEntry
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.bundle.limit_checks import check_combined_file
from sdcmap.core.limit import Limit
from sdcmap.kernels.arrays import Array
from sdcmap.study.plan import Candidate

MANY = [sm.Noise(on=["income"], variance=v) for v in (0.3, 0.31, 0.32, 0.33)]
SOME = [sm.Noise(on="income", variance=0.3, above=a, variance_above=0.0) for a in (5e4, 7e4)]  # leaves values alone
INCOME: dict[str, Any] = {"measures": [sm.risk.KnownIndex(on="income"), sm.IL1s(on=["income"])], "replicates": 20}


def all_prints(entry: LedgerEntry) -> Array:
    return np.concatenate([sketch.prints for sketch in entry.sketches])


def risk_of(persons: sm.Microdata, files: list[sm.Microdata]) -> float:
    return sm.risk.KnownIndex(on="income").score(persons, joint_view(persons, files), np.random.default_rng(0)).value


# ---- another release ------------------------------------------------------------------------------------------
def test_second_release_of_same_data_is_refused(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    second = release(persons, plan, Candidate(SWAP_AND_NOISE, 1))
    assert "1 earlier release " in failed(second)["earlier releases"]
    with pytest.raises(sm.errors.Refused, match="again=True"):
        second.write(tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_same_release_can_be_written_again(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    folders = [release(persons, plan, chosen(plan)).write(tmp_path / name) for name in ("a", "b")]
    assert len({(folder / "SHA256SUMS").read_text() for folder in folders}) == 1
    checks = {check.name: check.reason for check in release(persons, plan, chosen(plan)).check()}
    assert "This very release was written before" in checks["earlier releases"]


def test_refused_release_is_not_in_ledger(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE, rule=sm.Threshold(risk=0.0))
    with pytest.raises(sm.errors.Refused):
        release(persons, plan, chosen(plan)).write(tmp_path / "first")
    assert Ledger.open_readonly(None).entries() == []


def test_joint_risk_decides_with_again(persons: sm.Microdata, tmp_path: Path) -> None:
    """Each release alone has R = 1/(0.3 s^2); the average of two has twice that."""
    one = 1 / (0.3 * np.var(persons.numbers("income")))
    plan = plan_of(*MANY, **INCOME, rule=sm.Threshold(risk=2.5 * one))
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    second = release(persons, plan, chosen(plan, 1), again=True)
    (joint,) = [check for check in second.check() if check.name == "joint risk"]
    assert joint.passed
    second.write(tmp_path / "second")
    third = release(persons, plan, chosen(plan, 2), again=True)
    assert set(failed(third)) == {"joint risk"}, "three together exceed the limit, though each alone does not"
    with pytest.raises(sm.errors.Refused, match="all releases together"):
        third.write(tmp_path / "third")


def test_joint_expectation_is_pooled_over_draws(persons: sm.Microdata, tmp_path: Path) -> None:
    """The error of the largest income in one file says little. The mean square of 100 draws is known within 60 %."""
    income = persons.numbers("income")
    measures = [sm.risk.Position(on="income"), sm.IL1s(on=["income"])]
    plan = plan_of(*MANY[:2], measures=measures, rule=sm.Threshold(risk=1.0), replicates=100)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    second = release(persons, plan, chosen(plan, 1), again=True)
    (joint,) = [check for check in second.check() if check.name == "joint risk"]
    rng, sd = np.random.default_rng(1), income.std(ddof=1)
    noise = rng.normal(0, np.sqrt(0.305 / 2) * sd, (2000, len(income)))  # the mean of two files
    exact = 1 / np.mean(((income + noise).max(axis=1) - income.max()) ** 2)
    assert joint.verdict is not None and joint.verdict.estimate is not None and joint.verdict.estimate.se
    assert joint.verdict.estimate.value == pytest.approx(exact, rel=0.6)


def test_expectation_of_nested_files_is_refused(persons: sm.Microdata) -> None:
    method, limit = MANY[0], Limit(sm.risk.Position(on="income"), 1.0)
    masked = method.apply(persons, Candidate(method).stream(1))
    what = persons, masked, Candidate(method).stream(2), method, "for an attacker with both", 0.95
    (refused,) = check_combined_file("nested", [limit], *what, is_random=True)
    assert not refused.passed and "expectation over random draws of both files" in refused.reason
    (exact,) = check_combined_file("nested", [limit], *what, is_random=False)
    assert exact.passed


def test_release_with_another_seed_adds_to_joint_risk(persons: sm.Microdata, tmp_path: Path) -> None:
    """Its errors are others, and as large: the average of two has twice the risk of one."""
    one = 1 / (0.3 * np.var(persons.numbers("income")))
    for limit, passes in ((2.5, True), (1.5, False)):
        plan = plan_of(MANY[0], **INCOME, rule=sm.Threshold(risk=limit * one))
        other = plan_of(MANY[0], **INCOME, rule=sm.Threshold(risk=limit * one), seed=plan.seed + 1)
        ledger = tmp_path / f"ledger {limit}"
        with separate_state(tmp_path / f"state {limit}"):
            release(persons, plan, chosen(plan), ledger=ledger).write(tmp_path / f"first {limit}")
            second = release(persons, other, chosen(other), again=True, ledger=ledger)
            checks = {check.name: check for check in second.check()}
        assert "1 came from another file, seed or version" in checks["earlier releases"].reason
        assert checks["joint risk"].passed == passes


def test_release_that_cannot_be_remade_counts_as_full_disclosure(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(MANY[0], **INCOME, rule=sm.Threshold(risk=1.0))
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    renamed = sm.read(people().rename({"income": "wages"}), **ROLES | {"sensitive": ["wages", "rent"]})
    measures = [sm.risk.KnownIndex(on="wages"), sm.IL1s(on=["wages"])]
    other = plan_of(sm.Noise(on="wages", variance=0.3), measures=measures, rule=sm.Threshold(risk=1.0), replicates=12)
    second = release(renamed, other, chosen(other), again=True)
    assert set(failed(second)) == {"joint risk"}
    sentences = {check.name: check.reason for check in second.check()}
    assert "1 cannot be made again and count as if every value had been disclosed" in sentences["earlier releases"]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that knows of one release of these people."""
    home, plan = tmp_path_factory.mktemp("known"), plan_of(sm.Noise(on=["income"], variance=0.3))
    release(sm.read(people(), **ROLES), plan, chosen(plan), ledger=home / "ledger").write(home / "first")
    return home / "ledger"


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ("other order", True), ("every tenth row", True), ("new rows around old ones", True), ("fewer columns", True),
        ("more columns", True), ("another role", True), ("new weights and households", True), ("other people", False),
    ],
)  # fmt: skip
def test_overlapping_records_are_noticed(known: Path, change: str, noticed: bool) -> None:
    plan = plan_of(sm.Noise(on=["income"], variance=0.3))
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
    assert ("earlier releases" in failed(release(other, plan, chosen(plan), ledger=known))) == noticed


# ---- the joint view -------------------------------------------------------------------------------------------
def test_joint_view_averages_releases(persons: sm.Microdata) -> None:
    plan = plan_of(*MANY, **INCOME)
    files = [plan.make(persons, Candidate(method)) for method in MANY]
    assert risk_of(persons, files) == pytest.approx(4 * risk_of(persons, files[:1]), rel=0.25)


def test_weak_release_does_not_lower_joint_risk(persons: sm.Microdata) -> None:
    plan = plan_of(sm.Noise(on="income", variance=0.01), sm.Noise(on="income", variance=5.0), **INCOME)
    strong, weak = (plan.make(persons, chosen(plan, place)) for place in (0, 1))
    assert risk_of(persons, [strong, weak]) >= risk_of(persons, [strong]) * 0.99


def test_value_unchanged_in_any_release_counts_as_known(persons: sm.Microdata) -> None:
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


# ---- the ledger's folder --------------------------------------------------------------------------------------
def test_ledger_is_private(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
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


def test_two_ledgers_have_different_fingerprints_of_same_data(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    for name in ("a", "b"):
        release(persons, plan, chosen(plan), ledger=tmp_path / f"ledger {name}").write(tmp_path / name)
    (first,), (second,) = (Ledger.open_readonly(tmp_path / f"ledger {name}").entries() for name in ("a", "b"))
    assert first.data != second.data and first.seed != second.seed
    assert not np.isin(all_prints(first), all_prints(second)).any()


def test_damaged_ledger_raises_clear_error(persons: sm.Microdata, tmp_path: Path, ledger: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "first")
    (ledger / "ledger.sqlite").write_bytes(b"not a database " * 1000)
    with pytest.raises(sm.errors.SdcmapError, match="cannot be used"):
        release(persons, plan, chosen(plan)).write(tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_default_ledger_is_in_user_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SDCMAP_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Ledger.open_readonly(None).folder == tmp_path / "sdcmap" / "ledger"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger.open_readonly(None).folder == tmp_path / ".local" / "state" / "sdcmap" / "ledger"
