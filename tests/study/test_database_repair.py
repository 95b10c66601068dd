"""A damaged database gets one clear sentence, and `repair` keeps every intact row that SQLite can read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from samples import rows
from sdcmap.cli import app
from sdcmap.errors import StudyDamaged
from sdcmap.study.database_repair import repair
from sdcmap.study.jobs import OutsideFile, ScoreRow

PLAN = sm.Plan(
    sm.grid(sm.Swap, on=sm.subsets(("Age", "Educ", "Race"), 1, 2), rate=[0.01, 0.05]),
    [sm.SmallCells(), sm.Hellinger(), sm.Hellinger(on=("Age", "Educ", "Race", "Sex", "MarStat"))],
    replicates=12,
    seed=2**140,
)


@pytest.fixture(scope="module")
def data() -> sm.Microdata:
    return sm.demo.population(400, seed=3)


@pytest.fixture
def study(data: sm.Microdata, tmp_path: Path) -> Path:
    sm.sweep(data, PLAN, tmp_path / "s", workers=1)
    connection = sqlite3.connect(tmp_path / "s" / "scores.sqlite")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    return tmp_path / "s"


def damage(file: Path, how: str) -> int:
    """Damage a database and return the number of lost pages."""
    content = bytearray(file.read_bytes())
    pages = len(content) // 4096
    if how == "header":
        content[:100] = bytes(100)
        return_ = 0
    elif how == "interior":  # every interior page of the tree
        for page in range(pages):
            if content[page * 4096] == 2:
                content[page * 4096 : page * 4096 + 12] = bytes(12)
        return_ = 1
    elif how == "noise":  # garbage in three places of the leaves
        rng = np.random.default_rng(1)
        for page in rng.choice(np.arange(4, pages), 3, replace=False):
            start = page * 4096 + int(rng.integers(100, 3000))
            content[start : start + 200] = rng.bytes(200)
        return_ = 3
    elif how == "zeros":
        content[5 * 4096 : 8 * 4096] = bytes(3 * 4096)
        return_ = 3
    else:
        del content[-3 * 4096 - 1000 :]
        return_ = 4
    file.write_bytes(content)
    return return_


@pytest.mark.parametrize("how", ["header", "interior", "noise", "zeros", "truncated"])
def test_repair_keeps_intact_rows_and_the_next_sweep_completes_the_study(
    data: sm.Microdata, study: Path, how: str
) -> None:
    whole = sm.Study.open(study).scores(PLAN)
    gone = damage(study / "scores.sqlite", how)
    found = repair(study)
    assert found.aside is not None and found.aside.exists()
    after = sm.Study.open(study).scores(PLAN)
    assert after.score.join(whole.score, on=["candidate", "measure"], how="semi").height == after.score.height
    kept = whole.score.join(after.score, on=["candidate", "measure"], how="semi")
    assert kept.sort("candidate", "measure").equals(after.score.sort("candidate", "measure")), "no damaged row got in"
    rows_per_page = 4096 / 60
    assert found.scores >= whole.score.height - (gone + 1) * rows_per_page, "no more is lost than was broken"
    if how == "header":
        assert (found.candidates, found.scores) == (whole.candidate.height, whole.score.height)
    again = sm.sweep(data, PLAN, study, workers=1)
    assert all(a.equals(b) for a, b in zip(rows(again), rows(whole), strict=True))


def test_repair_keeps_rows_of_the_write_ahead_log(data: sm.Microdata, tmp_path: Path) -> None:
    sm.sweep(data, PLAN, tmp_path / "s", workers=1)
    study = sm.Study.open(tmp_path / "s")
    file = OutsideFile("elsewhere", "0" * 64, (ScoreRow("0" * 12, "SmallCells", 0.25, None, "{}", "ok", ""),))
    study.add_file(file)
    log = tmp_path / "s" / "scores.sqlite-wal"
    assert log.stat().st_size > 0
    saved = log.read_bytes()
    study.connection.close()
    log.write_bytes(saved)
    (tmp_path / "s" / "scores.sqlite").write_bytes(b"not a database at all")
    assert repair(tmp_path / "s").candidates >= 1
    assert file.id in sm.Study.open(tmp_path / "s").candidate_states()


def test_repair_leaves_an_undamaged_study_unchanged(study: Path) -> None:
    before = (study / "scores.sqlite").read_bytes()
    said = CliRunner().invoke(app, ["study", "repair", str(study)])
    assert said.exit_code == 0 and "nothing is damaged" in said.stdout
    assert (study / "scores.sqlite").read_bytes() == before


def test_error_of_a_damaged_study_names_the_repair_command(study: Path) -> None:
    (study / "scores.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(StudyDamaged, match="sdcmap study repair s"):
        sm.Study.open(study)
    said = CliRunner().invoke(app, ["study", "repair", str(study)])
    assert said.exit_code == 0 and "0 candidates and 0 scores are intact and were kept" in said.stdout


def test_row_with_a_changed_number_is_not_intact(study: Path) -> None:
    """The checksum detects bit rot in a readable database; an old copy of a row may still be intact."""
    with_all = sm.Study.open(study)
    whole = with_all.scores(PLAN).score
    with_all.connection.close()
    connection = sqlite3.connect(study / "scores.sqlite")
    with connection:
        connection.execute("update score set value = value + 1e-9 where measure = 'SmallCells'")
    connection.close()
    found = repair(study)
    assert found.aside is not None and found.scores >= whole.filter(pl.col("measure") != "SmallCells").height
    after = sm.Study.open(study).scores(PLAN).score
    kept = whole.join(after, on=["candidate", "measure"], how="semi").sort("candidate", "measure")
    assert after.sort("candidate", "measure").equals(kept), "no changed number got in"


def test_study_without_a_manifest_cannot_be_repaired(study: Path) -> None:
    (study / "manifest.json").write_text("{")
    with pytest.raises(StudyDamaged, match="contains the seed"):
        repair(study)


def test_repair_restores_changed_facts_of_a_measure(study: Path) -> None:
    """A reversed direction would reverse the choice."""
    whole = rows(sm.Study.open(study).scores(PLAN))
    connection = sqlite3.connect(study / "scores.sqlite")
    with connection:
        connection.execute("update measure set direction = 'higher' where axis = 'risk'")
    connection.close()
    assert repair(study).aside is not None
    assert all(
        after.equals(before) for after, before in zip(rows(sm.Study.open(study).scores(PLAN)), whole, strict=True)
    )


def test_study_of_an_earlier_version_is_not_reported_as_damaged(study: Path) -> None:
    """A repair would discard all rows of such a study."""
    connection = sqlite3.connect(study / "scores.sqlite")
    connection.executescript("drop table score; create table score (candidate text, measure text, value real)")
    connection.close()
    before = (study / "scores.sqlite").read_bytes()
    for act in (sm.Study.open, repair):
        with pytest.raises(sm.errors.StudyMismatch, match="written by an earlier version"):
            act(study)
    assert (study / "scores.sqlite").read_bytes() == before
