"""A red team and what is kept: flipped bits, two writers at once, full disks, modes of files, versions."""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

import sdcmap as sm
from samples import KEYS, people, plan_of


@pytest.fixture
def data() -> sm.Microdata:
    return sm.read(people(120), keys=KEYS, sensitive=["income", "rent"], identifiers="pid", other="all")


@pytest.fixture
def study(tmp_path: Path, data: sm.Microdata) -> Path:
    sm.sweep(data, plan_of(sm.Swap(on="region", rate=0.2), rule=sm.Threshold(risk=1.0)), tmp_path / "study", workers=1)
    return tmp_path / "study"


def flipped(path: Path, place: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


# ---- 9: flipped bits ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["scores.sqlite", "plan.toml", "manifest.json"])
def test_a_flipped_bit_is_told_or_changes_nothing(study: Path, name: str) -> None:
    """71 of 150 flips of one bit changed scores, and two a plan, without a word; no flip may pass for a number."""
    with sm.Study.open(study) as opened:
        before, plan, seed = opened.scores(), opened.plan.toml(), opened.seed
    whole, dice, told = (study / name).read_bytes(), random.Random(9), 0
    for _ in range(40):
        flipped(study / name, dice.randrange(len(whole)), dice.randrange(8))
        try:
            with sm.Study.open(study) as opened:
                after = opened.scores()
                assert after.score.equals(before.score) and after.candidate.equals(before.candidate)
                assert (opened.plan.toml(), opened.seed) == (plan, seed)
        except sm.errors.SdcmapError:
            told += 1
        (study / name).write_bytes(whole)
    assert told > (0 if name == "scores.sqlite" else 35)  # most pages of a small database are empty


# ---- 10: two first sweeps -------------------------------------------------------------------------------------
def test_of_two_first_sweeps_one_is_the_first(tmp_path: Path, data: sm.Microdata) -> None:
    """1 of 40 studies held scores of another seed than its manifest's. The lock comes before the seed."""
    for number in range(5):
        study, start, fates = tmp_path / str(number), threading.Barrier(3), []

        def sweep(study: Path = study, start: threading.Barrier = start, fates: list[str] = fates) -> None:
            plan = plan_of(sm.Swap(on="region", rate=0.2), seed=None)
            start.wait()
            try:
                sm.sweep(data, plan, study, workers=1, progress=lambda done, total: None)
                fates.append("swept")
            except sm.errors.SdcmapError as error:
                assert "another sweep is writing" in str(error)
                fates.append("refused")

        threads = [threading.Thread(target=sweep) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(fates) == 3 and "swept" in fates
        with sm.Study.open(study) as opened:
            plan, scores = opened.plan, opened.scores()
        seals = {made.id: made.stream(plan.seed).seal for made in plan.candidates}
        assert dict(scores.candidate.select("id", "seal").iter_rows()) == seals


# ---- 12: full disks, modes, versions --------------------------------------------------------------------------
def writers(folder: Path, data: sm.Microdata, study: Path) -> list[tuple[Path, object]]:
    """Everything that writes a file which may be there already."""
    with sm.Study.open(study) as opened:
        plan = opened.plan
        ru = sm.RUMap(opened.scores(), plan.risk, plan.utility)
    hierarchy = sm.data.Hierarchy.prefixes([f"{number:05d}" for number in range(5000)])
    return [
        (folder / "report.html", lambda path: sm.report(study).save(path)),
        (folder / "map.html", lambda path: ru.draw().save(path)),
        (folder / "map.svg", lambda path: ru.draw().save(path)),
        (folder / "masked.study.csv", lambda path: sm.write(data, path)),
        (folder / "masked.study.parquet", lambda path: sm.write(data, path)),
        (folder / "plan.toml", lambda path: plan.write(path)),
        (folder / "zips.csv", lambda path: hierarchy.write(str(path))),
    ]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, data: sm.Microdata, study: Path) -> None:
    """A full disk cut an existing report to 8 kB; now every writer writes aside and renames."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for path, write in writers(tmp_path, data, study):
            path.write_text("old")
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
            with pytest.raises(sm.errors.SdcmapError, match="cannot be written"):
                write(path)  # type: ignore[operator]
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            assert path.read_text() == "old", path.name
            assert not list(tmp_path.glob(".part*"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_what_shows_data_is_private(tmp_path: Path, data: sm.Microdata, study: Path) -> None:
    """Reports, maps, record pages and study files could be read by every user of the machine."""
    for path, write in writers(tmp_path, data, study):
        write(path)  # type: ignore[operator]
        assert path.name == "zips.csv" or stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    with sm.Study.open(study) as opened:
        opened.keep(data, "3f2a91")
    files = [path for path in study.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(study.stat().st_mode) == 0o700


def test_a_study_of_a_newer_version_is_not_continued_without_a_word(study: Path, data: sm.Microdata) -> None:
    """What a newer version wrote may mean something else by the same name."""
    with sm.Study.open(study) as opened:
        opened.note(version="99.0.0")
        plan = opened.plan
    with pytest.warns(sm.errors.StudyChanged, match="99.0.0, which is newer than this"):
        sm.sweep(data, plan, study, workers=1)


# ---- 11: told to go -------------------------------------------------------------------------------------------
TOLD_TO_GO = """
import os, signal, sys
from sdcmap.bundle import releasing
from sdcmap.cli import main
releasing.put_in_place = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main()
"""


def test_a_release_that_is_told_to_go_leaves_neither_data_nor_an_entry(study: Path, tmp_path: Path) -> None:
    """SIGTERM left the bundle in a `.part-*` folder (7 of 7) and an entry in the ledger for a release that never was."""
    with sm.Study.open(study) as opened:
        name = next(made.id for made in opened.plan.candidates if made.method.random)
    words = ["release", study, name, "-o", tmp_path / "public", "--ledger", tmp_path / "ledger"]
    done = subprocess.run([sys.executable, "-c", TOLD_TO_GO, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 143, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "study"]
    with closing(sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")) as ledger:
        assert ledger.execute("select count(*) from release").fetchone() == (0,)
