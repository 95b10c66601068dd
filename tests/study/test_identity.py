"""Every number is keyed by what computed it, and is never mistaken for a number of other code."""

from __future__ import annotations

import json
import random
import sqlite3
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from commands import sdcmap
from samples import rows
from sdcmap.errors import PlanError, SdcmapError, StudyChanged, StudyDamaged
from sdcmap.study.database import RENAMED_COLUMNS, _connect_read_only
from sdcmap.study.database_repair import repair
from sdcmap.study.folder import lock_folder
from sdcmap.study.jobs import score_file


@dataclass(frozen=True)
class Count(sm.Measure):
    """A loss whose value is its revision plus its field, so that the value shows which code computed it."""

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    on: tuple[str, ...] = ("wage",)
    more: float = 0.0

    def score(self, original: sm.Microdata, masked: sm.Microdata, rng: Generator) -> sm.Estimate:
        return sm.Estimate(value=self.revision + self.more)


@pytest.fixture
def people() -> sm.Microdata:
    return sm.demo.population(60, seed=4)


def plan_of(replicates: int = 2, **given: object) -> sm.Plan:
    noises = sm.grid(sm.Noise, on="wage", variance=[0.1, 0.2])
    return sm.Plan(noises, [sm.SmallCells(), Count()], replicates=replicates, **given)  # type: ignore[arg-type]


@pytest.fixture
def study(people: sm.Microdata, tmp_path: Path) -> Path:
    sm.sweep(people, plan_of(), tmp_path / "s", workers=1)
    return tmp_path / "s"


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Count, "revision", 7)
    yield


def counts(scores: sm.Scores) -> list[float]:
    return scores.column(Count().text)["value"].to_list()


# ---- numbers of other code -----------------------------------------------------------------------------------
def test_new_revision_is_computed_again_with_a_warning(people: sm.Microdata, study: Path, raised: None) -> None:
    with pytest.warns(StudyChanged, match="5 numbers of this plan kept; 5 numbers computed again"):
        scores = sm.sweep(people, plan_of(), study, workers=1)
    assert counts(scores) == [7.0] * 5
    with sm.Study.open(study) as opened:
        assert counts(opened.scores()) == [7.0] * 5


def test_outdated_number_is_not_read_as_a_new_one(study: Path, raised: None) -> None:
    with sm.Study.open(study) as opened, pytest.warns(StudyChanged, match="5 numbers left out.*Sweep again"):
        scores = opened.scores()
    assert scores.score["measure"].unique().to_list() == ["SmallCells"]


def test_new_default_is_computed_again(people: sm.Microdata, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Count().text
    monkeypatch.setattr(Count.__init__, "__defaults__", (("wage",), 0.5))
    monkeypatch.setattr(Count.__dataclass_fields__["more"], "default", 0.5)
    assert Count().text == text
    with pytest.warns(StudyChanged, match="5 numbers computed again"):
        assert counts(sm.sweep(people, plan_of(), study, workers=1)) == [1.5] * 5


def test_candidates_of_a_revised_method_are_made_again(
    people: sm.Microdata, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sm.Noise, "revision", sm.Noise.revision + 1)
    with pytest.warns(StudyChanged, match="2 numbers of this plan kept; 4 candidates computed again"):
        scores = sm.sweep(people, plan_of(), study, workers=1)
    assert len(scores.candidate) == 5  # the unmasked file, two methods, two draws each


def test_study_of_another_version_reports_what_is_kept(people: sm.Microdata, study: Path) -> None:
    manifest = json.loads((study / "manifest.json").read_text())
    manifest.pop("checksum")
    (study / "manifest.json").write_text(json.dumps({**manifest, "version": "0.1.9"}))
    with pytest.warns(StudyChanged, match=r"last written by sdcmap 0\.1\.9: 10 numbers of this plan kept\."):
        sm.sweep(people, plan_of(), study, workers=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the warning comes only once
        sm.sweep(people, plan_of(), study, workers=1)


def test_scores_of_an_unreadable_version_are_set_aside(people: sm.Microdata, study: Path) -> None:
    connection = sqlite3.connect(study / "scores.sqlite")
    connection.executescript(
        "drop table score; create table score (candidate text, measure text, value real, primary key (candidate, measure))"
    )
    connection.close()
    with pytest.raises(sm.errors.StudyMismatch, match="computes all of them again"):
        sm.Study.open(study)
    with pytest.warns(StudyChanged) as result:
        scores = sm.sweep(people, plan_of(), study, workers=1)
    sentences = [str(warning.message) for warning in result]
    assert any("All of them are computed again" in sentence for sentence in sentences)
    assert len(scores.score) == 10
    assert [file.name for file in study.glob("scores.*-1.sqlite")] == [f"scores.{sm.__version__}-1.sqlite"]


def name_columns_as_before(study: Path) -> None:
    """Give the columns of a study the names that an earlier version used."""
    connection = sqlite3.connect(study / "scores.sqlite")
    for table, old, new in RENAMED_COLUMNS:
        connection.execute(f"alter table {table} rename column {new} to {old}")
    connection.execute("pragma journal_mode = delete")
    connection.close()


def test_study_with_earlier_column_names_is_opened_and_continued(people: sm.Microdata, study: Path) -> None:
    with sm.Study.open(study) as new:
        before = rows(new.scores())
    name_columns_as_before(study)
    with sm.Study.open(study) as old:
        assert all(a.equals(b) for a, b in zip(rows(old.scores()), before, strict=True))
        assert "stream_id" in old.scores().candidate.columns
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is computed again
        scores = sm.sweep(people, plan_of(), study, workers=1)
    assert all(a.equals(b) for a, b in zip(rows(scores), before, strict=True))


def test_read_only_study_with_earlier_column_names_is_read(study: Path) -> None:
    with sm.Study.open(study) as new:
        before, manifest = rows(new.scores()), new.manifest
    name_columns_as_before(study)
    with sm.Study(study, _connect_read_only(study / "scores.sqlite"), manifest) as old:
        assert all(a.equals(b) for a, b in zip(rows(old.scores()), before, strict=True))


def test_draws_that_an_earlier_version_checked_still_count(study: Path) -> None:
    manifest = json.loads((study / "manifest.json").read_text("utf-8"))
    del manifest["checksum"]
    (study / "manifest.json").write_text(json.dumps(manifest | {"gate": {"abc": [0, 1]}}), "utf-8")
    assert sm.Study.manifest_of(study)["checked_draws"] == {"abc": [0, 1]}


def test_study_whose_plan_names_a_renamed_class_is_refused_with_one_sentence(study: Path) -> None:
    plan = study / "plan.toml"
    plan.write_text(plan.read_text("utf-8").replace('type = "Noise"', 'type = "Synthesise"'), "utf-8")
    with sm.Study.open(study) as old, pytest.raises(PlanError, match="Did you mean 'Synthesize'"):
        old.scores()


def test_smaller_plan_gives_no_warning(people: sm.Microdata, study: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fewer = sm.Plan(sm.Noise(on="wage", variance=0.1), Count())
        assert counts(sm.sweep(people, fewer, study, workers=1)) == [1.0, 1.0]


# ---- damage ---------------------------------------------------------------------------------------------------
def closed(study: Path) -> Path:
    """Write the log back into the database, so that one file contains everything."""
    with sm.Study.open(study) as opened:
        opened.connection.execute("pragma wal_checkpoint(truncate)")
    return study / "scores.sqlite"


def test_flipped_bit_never_changes_a_score_silently(study: Path) -> None:
    """Of 150 single-bit flips 71 changed a score silently before checksums were verified on reading."""
    file = closed(study)
    with sm.Study.open(study) as opened:
        plan, whole = opened.plan, opened.scores()
    content, draw, caught = file.read_bytes(), random.Random(5), 0
    written = [place for place, byte in enumerate(content) if byte]  # most of a small database is empty
    for _ in range(150):
        place, bit = draw.choice(written), 1 << draw.randrange(8)
        file.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        for tail in ("-wal", "-shm"):
            file.with_name(file.name + tail).unlink(missing_ok=True)
        try:
            with sm.Study.open(study) as opened:
                scores = opened.scores(plan)
        except SdcmapError:
            caught += 1
            continue
        for table in ("candidate", "score", "measure"):
            assert getattr(scores, table).equals(getattr(whole, table)), (place, bit)
    assert caught > 20


def test_lost_row_is_detected_and_made_again(people: sm.Microdata, study: Path) -> None:
    connection = sqlite3.connect(closed(study))
    connection.execute("delete from score where measure = 'SmallCells'")
    connection.commit()
    connection.close()
    with sm.Study.open(study) as opened, pytest.raises(StudyDamaged, match="study repair"):
        opened.scores()
    assert repair(study).scores == 5
    assert len(sm.sweep(people, plan_of(), study, workers=1).score) == 10


def test_tables_are_read_again_after_a_write(people: sm.Microdata, study: Path) -> None:
    with sm.Study.open(study) as opened:
        assert len(opened.scores().score) == 10 and len(opened.candidate_states()) == 5
        first, second = opened._tables(), opened._tables()
        assert all(a is b for a, b in zip(first, second, strict=True))  # nothing was written
        sm.sweep(people, plan_of(replicates=3), study, workers=1)  # by another connection
        assert len(opened.candidate_states()) == 7
        opened.connection.execute("delete from score where measure = 'SmallCells'")  # by this one
        with pytest.raises(StudyDamaged, match="study repair"):
            opened.candidate_states()


def test_numbers_of_another_seed_are_rejected(people: sm.Microdata, study: Path, tmp_path: Path) -> None:
    """Two simultaneous first sweeps once left scores of one seed beside the manifest of another."""
    sm.sweep(people, plan_of(), tmp_path / "other", workers=1)
    (tmp_path / "other" / "manifest.json").replace(study / "manifest.json")
    with pytest.raises(StudyDamaged, match="drawn with another seed"):
        sm.sweep(people, plan_of(), study, workers=1)


def test_folder_is_locked_before_the_seed_is_fixed(people: sm.Microdata, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    with lock_folder(folder), pytest.raises(SdcmapError, match="another sweep is writing"):
        sm.sweep(people, plan_of(), folder, workers=1)
    assert not (folder / "manifest.json").exists()


# ---- kinds of rows --------------------------------------------------------------------------------------------
def test_kind_of_a_row_is_a_column(people: sm.Microdata, study: Path) -> None:
    with sm.Study.open(study) as opened:
        opened.add_file(score_file(people, people.frame(), [sm.SmallCells(), Count()], name="a.csv"))
        scores = opened.scores()
    kinds = dict(scores.candidate.group_by("kind").len().iter_rows())
    assert kinds == {"identity": 1, "candidate": 4, "file": 1}
    points = sm.RUMap(scores, "SmallCells", Count()).points
    assert points.filter("anchor")["kind"].to_list() == ["identity"]
    with sm.Study.open(study) as opened, pytest.raises(SdcmapError, match="a method of this study is named"):
        opened.add_file(score_file(people, people.frame(), [sm.SmallCells()], name="Identity"))


def test_file_with_other_content_needs_another_name(people: sm.Microdata, study: Path) -> None:
    other = people.frame().with_columns(Sex=pl.col("Sex").reverse())
    with sm.Study.open(study) as opened:
        for _ in range(2):  # the same file again is the same row
            opened.add_file(score_file(people, people.frame(), [sm.SmallCells()], name="a.csv"))
        with pytest.raises(SdcmapError, match="another file named 'a.csv'"):
            opened.add_file(score_file(people, other, [sm.SmallCells(counting="all")], name="a.csv"))
        assert len(opened.scores().candidate.filter(pl.col("kind") == "file")) == 1


# ---- frozen plans ---------------------------------------------------------------------------------------------
def test_sweep_binds_a_copy_of_the_plan_to_the_studys_seed(people: sm.Microdata, study: Path) -> None:
    plan = plan_of()
    seed = plan.seed
    scores = sm.sweep(people, plan, study, workers=1)
    assert plan.seed == seed
    with sm.Study.open(study) as opened:
        assert scores.plan is not None and scores.plan.seed == opened.seed != seed
        first = opened.scores()
    assert first.score.equals(scores.score)
    choice = sm.RUMap(scores, "SmallCells", Count()).choose(sm.Threshold(risk=1))
    with pytest.raises(PlanError, match="another seed than this plan's"):
        plan.make(people, choice)
    masked = scores.plan.make(people, choice)
    assert np.array_equal(masked["wage"], scores.plan.make(people, choice)["wage"])


def test_study_closes_its_database(study: Path) -> None:
    with sm.Study.open(study) as opened:
        connection = opened.connection
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("select 1")


def test_failing_sweep_closes_its_database(
    people: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sm.Study] = []
    monkeypatch.setattr(sm.Study, "add", lambda self, rows: opened.append(self) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sm.sweep(people, plan_of(), tmp_path / "s", workers=1)
    with pytest.raises(sqlite3.ProgrammingError):
        opened[0].connection.execute("select 1")


def test_sweep_command_reports_what_is_kept(
    people: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sm.write(people, "people.csv")
    plan = plan_of(data=sm.Source("people.csv", keys=("Sex",), numeric=("wage",)))
    plan.write("plan.toml")
    sdcmap("sweep", "plan.toml", "-o", "s", "--workers", "1")
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    manifest.pop("checksum")
    (tmp_path / "s" / "manifest.json").write_text(json.dumps({**manifest, "version": "0.1.9"}))
    said = sdcmap("sweep", "plan.toml", "-o", "s", "--workers", "1")
    assert "s was last written by sdcmap 0.1.9: 10 numbers of this plan kept." in said.stderr
