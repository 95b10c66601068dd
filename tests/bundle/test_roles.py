"""Roles at release: proposals need confirmation, dropped columns are never released, unsupported roles fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from samples import ROLES, SEED, SWAP_AND_NOISE, chosen, failed, people, plan_of
from samples import release_with_overrides as release
from sdcmap.study.folder import Study

pytestmark = pytest.mark.usefixtures("read_here")


def proposing(*names: str) -> sm.Plan:
    return replace(plan_of(SWAP_AND_NOISE), data=sm.Source("people.csv", proposed=names), seed=SEED)


def test_proposed_role_needs_confirmation(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = proposing("age", "sex")
    reasons = failed(release(persons, plan, chosen(plan)))
    assert list(reasons) == ["roles"]
    assert "proposed roles of 'age', 'sex'" in reasons["roles"] and "--confirm-roles" in reasons["roles"]
    release(persons, plan, chosen(plan), confirm_roles=True).write(tmp_path / "public")


def test_study_records_confirmation_of_roles(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = proposing("age", "sex")
    bound = sm.sweep(persons, plan, tmp_path / "study", workers=1).plan
    study = Study.open(tmp_path / "study")
    release(study.data, bound, chosen(bound), study=study, confirm_roles=True).write(tmp_path / "public")
    entry = Study.open(tmp_path / "study").manifest["overrides"][-1]
    assert (entry["check"], entry["reason"]) == ("roles", "2 proposed roles confirmed at once")


def test_dropped_column_is_never_released(tmp_path: Path) -> None:
    roles = {
        name: [n for n in given if n != "rent"] if isinstance(given, list) else given for name, given in ROLES.items()
    }
    data = sm.read(people(), **roles, drop="rent")
    method = sm.Swap(on=["region"], rate=0.2)
    plan = plan_of(method, measures=[sm.SmallCells(on=["age", "sex"]), sm.Hellinger(on=["age", "sex"])])
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    assert "rent" not in Study.open(tmp_path / "study").data.names
    folder = release(data, scores.plan, chosen(scores.plan)).write(tmp_path / "public")
    assert "rent" not in pl.read_parquet(folder / "data.parquet").columns
    assert not any(b'rent"' in path.read_bytes() for path in folder.glob("*.json"))
    with pytest.raises(sm.errors.SchemaError, match="cannot mask 'rent': it is the file's drop"):
        sm.mask(data, sm.Noise(on="rent", variance=0.1), seed=1)


def test_unsupported_role_fails_with_reason() -> None:
    frame = people().with_columns(w1=pl.lit(1.5), cluster=pl.lit(3))
    data = sm.read(frame, **ROLES, replicate="w1", psu="cluster")
    plan = plan_of(SWAP_AND_NOISE)
    reason = failed(release(data, plan, chosen(plan)))["roles"]
    assert "'w1' has the role replicate" in reason and "'cluster' has the role psu" in reason and "as drop" in reason


def test_panel_records_are_not_treated_as_people() -> None:
    data = sm.read(people().with_columns(round=pl.lit(1)), **ROLES, wave="round")
    for problem in (
        lambda: sm.mask(data, sm.Swap(on="sex", rate=0.1), seed=1),
        lambda: sm.score(data, data, sm.SmallCells(on=["age", "sex"])),
    ):
        with pytest.raises(sm.errors.SchemaError, match="state the number of the person as case, and it as key"):
            problem()
