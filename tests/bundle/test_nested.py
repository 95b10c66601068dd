"""A public-use file made from the scientific-use file that was released, and from nothing else."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import SEED, chosen, plan_of, release_with_overrides
from sdcmap.bundle import Release
from sdcmap.bundle.nested import LINKAGE, JointLinkage, align_files, find_parent, side_by_side
from sdcmap.core.estimate import Bound, Estimate, SampledShare
from sdcmap.errors import Refused, SchemaError
from sdcmap.methods import Recode
from sdcmap.study.jobs import absent_row, estimate_row

ROLES: dict[str, Any] = {
    "keys": ("region", "sex"), "numeric": ("age", "wage"), "sensitive": ("wage",), "household": ("hh",),
    "nominal": ("sex",),
}  # fmt: skip
FIRST = sm.Chain([Recode("region", merge=[["r3", "r4"]]), sm.Noise(on=["age", "wage"], variance=0.05)])
SECOND = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["age", "wage"], variance=0.4)])
FOUND = sm.risk.NearestRecord(on=["age", "wage"])
MEASURES = [FOUND, sm.Hellinger(on=["region"])]


def people(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(12)
    return pl.DataFrame(
        {
            "hh": np.sort(rng.integers(0, rows // 2, rows)),
            "region": rng.choice(["r1", "r2", "r3", "r4"], rows),
            "sex": rng.choice([1, 2], rows),
            "age": rng.normal(40, 12, rows).round(2),
            "wage": rng.normal(3000, 500, rows).round(1),
        }
    )


def released(study: Path, source: sm.Source, method: sm.Method, out: Path, profile: str, seed: int) -> Release:
    """The release of a method's first draw, by way of a study."""
    plan = plan_of(method, measures=MEASURES, data=source, profile=profile, seed=seed)
    sm.sweep(source.read(), plan, study, workers=1)
    with sm.Study.open(study) as opened:
        return release_with_overrides(opened.data, opened.plan, chosen(opened.plan), study=opened)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study of a scientific-use file, and that file."""
    workdir = tmp_path_factory.mktemp("nested")
    people().write_csv(workdir / "people.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SDCMAP_LEDGER", str(workdir / "ledger"))
        first = sm.Source(str(workdir / "people.csv"), **ROLES)
        going = released(workdir / "suf-study", first, FIRST, workdir / "suf", "scientific-use", SEED)
        going.write(workdir / "suf")
    return workdir


@pytest.fixture
def here(workdir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The same with a ledger of the test's own, which knows the scientific-use file."""
    shutil.copytree(workdir / "ledger", tmp_path / "own-ledger")
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "own-ledger"))
    return workdir


def second_source(workdir: Path, **given: Any) -> sm.Source:
    roles = {**ROLES, "household": (), "drop": ("hh",), **given}
    return sm.Source(
        str(workdir / "suf" / "data.csv"),
        ddi=str(workdir / "suf" / "codebook.xml"),
        within=str(workdir / "suf-study"),
        **roles,
    )


def second(workdir: Path, folder: Path, **given: Any) -> Release:
    return released(
        folder / "puf-study", second_source(workdir, **given), SECOND, folder / "puf", "public-use", SEED + 1
    )


def test_second_file_is_made_from_first_and_ledger_records_both(here: Path, tmp_path: Path) -> None:
    going = second(here, tmp_path)
    reasons: dict[str, list[str]] = {}
    for check in going.check():
        reasons.setdefault(check.name, []).append(check.reason)
    assert "Only the file that this one is made from" in reasons["earlier releases"][0]
    assert "for an attacker with the original records" in reasons["nested"][0]
    assert (
        "from both files held by one attacker" in reasons["joint risk"][0]
        and "side by side:" in reasons["joint risk"][0]
    )
    folder = going.write(tmp_path / "puf")
    assert pl.read_csv(folder / "data.csv").columns == ["region", "sex", "age", "wage"], "a part of the first's columns"
    with sm.Study.open(tmp_path / "puf-study") as study:
        (entry,) = study.manifest["releases"]
        page = sm.report(study).html.split('<h2 id="parent">')[1].split("<h2")[0]
    assert "scientific-use" in page and "(300 records)" in page, "one report for the pair"
    assert "held by one attacker: " in page and "for an attacker with the original records: " in page
    assert entry["nested"]["within"] == str(here / "suf-study") and len(entry["nested"]["reasons"]) == 2
    third = plan_of(sm.Noise(on=["wage"], variance=0.2), measures=MEASURES, seed=SEED + 2)
    data = sm.Source(str(here / "people.csv"), **ROLES).read()
    (known,) = [c for c in release_with_overrides(data, third, chosen(third)).check() if c.name == "earlier releases"]
    assert "2 earlier releases" in known.reason, "the ledger knows the people of both"


def test_aligned_rows_are_the_same_people(here: Path, tmp_path: Path) -> None:
    going = second(here, tmp_path)
    parent = going.parent
    assert parent is not None
    plan = plan_of(SECOND, measures=MEASURES)
    method = plan.all_methods[1]
    from sdcmap.bundle.prepared_file import as_written, prepare

    stream = chosen(plan).stream(plan.seed)
    prepared = prepare(going.data, method, as_written(going.data, method, method.apply(going.data, stream)), stream)
    first, other = align_files(parent, prepared, prepared.data)
    wages = [file.numbers("wage") for file in (first.truth, first.released, other)]
    near, far = (np.corrcoef(wages[0], wage)[0, 1] for wage in wages[1:])
    assert near > 0.95 and 0.7 < far < near, "noise of 5 %, then of 40 %"
    assert sorted(wages[0]) == sorted(people()["wage"])
    both = side_by_side(first.released, other, other)
    assert both.numbers("wage (file 2)").tolist() == wages[2].tolist() == both.numbers("wage (file 3)").tolist()
    assert len(both.names) == 3 * 4, "the household number was drawn anew"


def test_second_file_adds_no_risk(here: Path, tmp_path: Path) -> None:
    """Further noise on the first file adds nothing to what an attacker with the original learns from it."""
    (joint,) = [c for c in second(here, tmp_path).check() if c.name == "joint risk"]
    alone, together = (float(text) for text in re.findall(r"(?:alone|by side): ([\d.]+);", joint.reason))
    assert alone > 0.3, "noise of 5 % finds many"
    assert together <= alone + 3 * np.sqrt(alone * (1 - alone) / 300)
    assert joint.passed and "adds no risk" in joint.reason


def test_nested_release_of_another_file_or_study_is_refused(here: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(here / "suf" / "data.csv")
    with pytest.raises(Refused, match="has released no file in"):
        find_parent(here / "suf-study", tmp_path / "data.csv")
    shutil.copytree(here / "suf-study", tmp_path / "suf-study")
    before = (here / "suf" / "data.csv").read_bytes()
    try:
        frame.with_columns(wage=pl.col("wage") + 1).write_csv(here / "suf" / "data.csv")
        with pytest.raises(Refused, match="is not the file that"):
            find_parent(here / "suf-study", here / "suf" / "data.csv")
    finally:
        (here / "suf" / "data.csv").write_bytes(before)


def test_column_read_as_another_kind_raises_clear_error(here: Path, tmp_path: Path) -> None:
    source = second_source(here, numeric=("wage",), ordinal=("age",), keys=("region", "sex", "age"))
    plan = plan_of(
        sm.Swap(on=["age"], rate=0.3), measures=[sm.SmallCells(on=["age"]), sm.Hellinger(on=["age"])], data=source
    )
    with pytest.raises(SchemaError, match="'age' was read as another kind"):
        release_with_overrides(source.read(), plan, chosen(plan)).check()


def test_other_releases_join_the_joint_risk(here: Path, tmp_path: Path) -> None:
    data = sm.Source(str(here / "people.csv"), **ROLES).read()
    other = plan_of(
        sm.Noise(on=["age", "wage"], variance=0.05), measures=MEASURES, seed=SEED + 3, rule=sm.Threshold(risk=1)
    )
    release_with_overrides(data, other, chosen(other), again=True).write(tmp_path / "other")
    going = second(here, tmp_path)
    (known,) = [c for c in going.check() if c.name == "earlier releases"]
    assert not known.passed and "1 release of the same people beside" in known.reason and "again" in known.reason
    reasons = {check.name: check for check in replace(going, again=True).check()}
    assert (
        reasons["earlier releases"].passed
        and "the joint risk of all was measured" in reasons["earlier releases"].reason
    )
    assert "from all 3 files of these people held by one attacker" in reasons["joint risk"].reason
    alone, together = (
        float(text) for text in re.findall(r"(?:alone|by side): ([\d.]+);", reasons["joint risk"].reason)
    )
    assert together > alone and not reasons["joint risk"].passed, (
        "a second noise of 5 % reveals more than the first alone"
    )


def test_attacker_with_both_files_knows_all_columns_of_first(here: Path, tmp_path: Path) -> None:
    """Without the wage in the second file, the first still reveals it."""
    method = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["age"], variance=0.4)])
    source = second_source(here, drop=("hh", "wage"), numeric=("age",), sensitive=())
    plan = plan_of(
        method, measures=[sm.Hellinger(on=["region"]), sm.SmallCells(on=["sex"])], data=source, seed=SEED + 6
    )
    (joint,) = [c for c in release_with_overrides(source.read(), plan, chosen(plan)).check() if c.name == "joint risk"]
    (whole,) = [c for c in second(here, tmp_path).check() if c.name == "joint risk"]
    first = [re.findall(r"alone: ([\d.]+);", check.reason) for check in (joint, whole)]
    assert first[0] == first[1], "the first file is the same, whatever the second leaves out"


def test_released_file_without_its_study_fails_ledger_check(here: Path) -> None:
    source = replace(second_source(here), within="")
    plan = plan_of(SECOND, measures=MEASURES, data=source, seed=SEED + 4)
    (ledger, lineage) = [
        c for c in release_with_overrides(source.read(), plan, chosen(plan)).check() if c.name == "ledger"
    ]
    assert ledger.passed and not lineage.passed and "Name the study that released it" in lineage.reason
    assert not lineage.is_hard, "a public file of others may be masked further, with a reason"


def test_second_file_with_fewer_rows_is_compared_on_same_rows(here: Path) -> None:
    half = sm.Chain([sm.methods.Sample(rate=0.5), sm.Noise(on=["age", "wage"], variance=0.4)])
    plan = plan_of(half, measures=MEASURES, data=second_source(here), seed=SEED + 5)
    checks = release_with_overrides(second_source(here).read(), plan, chosen(plan)).check()
    (joint,) = [check for check in checks if check.name == "joint risk"]
    alone, together = (float(text) for text in re.findall(r"(?:alone|by side): ([\d.]+);", joint.reason))
    assert alone > 0.3 and 0.2 < together <= 1, "as many of those that are left"


EXACT, SAMPLED = Estimate(value=0.04), Estimate(value=0.04, share=SampledShare(trials=100))
BOUNDED = Estimate(value=0.04, bounds=(Bound(attack="by far", estimate=Estimate(value=0.3)),))


@pytest.mark.parametrize(
    ("alone", "beside", "stated", "passed"),
    [
        (EXACT, EXACT, 0.04, True),
        (EXACT, EXACT, 0.039, False),
        (EXACT, SAMPLED, 0.05, False),  # 0.04 of 100 targets may be more than 0.05
        (EXACT, SAMPLED, 0.2, True),
        (SAMPLED, EXACT, 0.05, False),  # an attacker with both files can use the first alone
        (EXACT, BOUNDED, 0.2, False),
        (EXACT, SAMPLED, None, False),  # it may find more than the 0.05 of the first one's profile
        (SAMPLED, SAMPLED, None, True),  # as much as the first alone, which is out
        (BOUNDED, SAMPLED, None, True),
    ],
)
def test_joint_risk_is_compared_by_confidence_limit(
    alone: Estimate, beside: Estimate, stated: float | None, passed: bool
) -> None:
    hand = JointLinkage(estimate_row(LINKAGE, alone), estimate_row(LINKAGE, beside), 0.05, 0.95, stated)
    assert hand.check.passed == passed and hand.value == 0.04
    assert hand.limit.value == (stated if stated is not None else max(0.05, alone.upper(0.95)))
    assert hand.check.verdict is not None and hand.check.verdict.end == max(alone.upper(0.95), beside.upper(0.95))
    assert ("upper confidence limit" in hand.check.reason) == any(one is not EXACT for one in (alone, beside))


def test_joint_risk_without_value_fails() -> None:
    none = absent_row(LINKAGE, "undefined", "there are too few records.")
    hand = JointLinkage(estimate_row(LINKAGE, EXACT), none, 0.05, 0.95)
    assert hand.value is None and not hand.check.passed and "could not be computed" in hand.check.reason
