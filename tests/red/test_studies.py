"""Red team, stored files: flipped bits, concurrent writers, full disks, file modes, versions."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sdcmap as sm
from samples import KEYS, PROFILE_OVERRIDES, people, plan_of, release_with_overrides
from sdcmap.bundle import Release, releasing
from sdcmap.bundle.ledger import Ledger
from sdcmap.data.private_folder import private_folder, write_atomically
from sdcmap.study.database_repair import repair


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
def test_flipped_bit_is_detected_or_harmless(study: Path, name: str) -> None:
    """71 of 150 flips of one bit changed scores, and two a plan, without a word; no flip may pass for a number."""
    with sm.Study.open(study) as opened:
        before, plan, seed = opened.scores(), opened.plan.toml(), opened.seed
    whole, dice, result = (study / name).read_bytes(), random.Random(9), 0
    used = [place for place, byte in enumerate(whole) if byte]  # most pages of a small database are empty
    for _ in range(40):
        flipped(study / name, dice.choice(used), dice.randrange(8))
        try:
            with sm.Study.open(study) as opened:
                after = opened.scores()
                assert after.score.equals(before.score) and after.candidate.equals(before.candidate)
                assert (opened.plan.toml(), opened.seed) == (plan, seed)
        except sm.errors.SdcmapError:
            result += 1
        (study / name).write_bytes(whole)
    assert result > (20 if name == "scores.sqlite" else 35)  # the other flips change nothing


# ---- 10: two first sweeps -------------------------------------------------------------------------------------
def test_concurrent_first_sweeps_are_serialized(tmp_path: Path, data: sm.Microdata) -> None:
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
        seals = {made.id: made.stream(plan.seed).stream_id for made in plan.candidates}
        assert dict(scores.candidate.select("id", "stream_id").iter_rows()) == seals


# ---- 12: full disks, modes, versions --------------------------------------------------------------------------
def writers(folder: Path, data: sm.Microdata, study: Path) -> list[tuple[Path, object]]:
    """Return every function that overwrites a file."""
    with sm.Study.open(study) as opened:
        plan = opened.plan
        ru = sm.RUMap(opened.scores(), plan.risk, plan.utility)
    report = sm.report(study)  # read before: a full disk stops that too
    hierarchy = sm.data.Hierarchy.prefixes([f"{number:05d}" for number in range(5000)])
    return [
        (folder / "report.html", lambda path: report.save(path)),
        (folder / "map.html", lambda path: ru.draw().save(path)),
        (folder / "map.svg", lambda path: ru.draw().save(path)),
        (folder / "masked.study.csv", lambda path: sm.write(data, path)),
        (folder / "masked.study.parquet", lambda path: sm.write(data, path)),
        (folder / "plan.toml", lambda path: plan.write(path)),
        (folder / "zips.csv", lambda path: hierarchy.write(str(path))),
    ]


def test_full_disk_keeps_the_old_file(tmp_path: Path, data: sm.Microdata, study: Path) -> None:
    """Regression test: a full disk truncated an existing report to 8 kB; every writer must write and rename."""
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


def test_files_that_show_data_are_private(tmp_path: Path, data: sm.Microdata, study: Path) -> None:
    """Regression test: reports, maps, record pages and study files were readable by every user."""
    for path, write in writers(tmp_path, data, study):
        write(path)  # type: ignore[operator]
        assert path.name == "zips.csv" or stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    with sm.Study.open(study) as opened:
        opened.keep(data, "3f2a91")
    files = [path for path in study.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(study.stat().st_mode) == 0o700


def test_study_of_newer_version_is_not_continued_silently(study: Path, data: sm.Microdata) -> None:
    """A newer version may use the same name with another meaning."""
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
releasing.release_folder.put_in_place = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main()
"""


def test_terminated_release_leaves_neither_data_nor_entry(study: Path, tmp_path: Path) -> None:
    """Regression test: SIGTERM left a `.part-*` folder and a ledger entry for a release that did not exist."""
    with sm.Study.open(study) as opened:
        name = next(made.id for made in opened.plan.candidates if made.method.random)
    words = ["release", study, name, "-o", tmp_path / "public", "--ledger", tmp_path / "ledger"]
    words += [word for check, reason in PROFILE_OVERRIDES.items() for word in ("--override", f"{check}={reason}")]
    done = subprocess.run([sys.executable, "-c", TOLD_TO_GO, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 143, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "study"]
    with closing(sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")) as ledger:
        assert ledger.execute("select count(*) from release").fetchone() == (0,)


KILLED = """
import os, signal, sys
import sdcmap as sm
from sdcmap.bundle import releasing, written_draw
from sdcmap.study import sweep as sweep_module

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

where, folder = sys.argv[1:]
study = sm.Study.open(folder + "/study")
data, plan = study.data, study.plan
chosen = next(made for made in plan.candidates if made.method.random)
reasons = dict.fromkeys(("unmasked", "profile"), "made-up people")
release = sm.release(data, plan, chosen, ledger=folder + "/ledger", override=reasons)
if where == "sweep":
    sweep_module.worker_pool = die
    plan = sm.Plan(sm.Swap(on="sex", rate=0.1), plan.measures, replicates=3)
    sm.sweep(data, plan, engine="processes", workers=1)
elif where == "check":
    written_draw.read_released = die
    release.check()
else:
    releasing.release_folder.put_in_place = die
    release.write(folder + "/public")
"""


def killed(where: str, tmp_path: Path) -> None:
    """Run code in a subprocess and kill it; its temporary folder is tmp_path/tmp."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, "-c", KILLED, where, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"TMPDIR": str(tmp_path / "tmp")})
    assert done.returncode == -signal.SIGKILL, done.stderr


def readable(folder: Path) -> list[str]:
    """Return the nonempty files below a folder."""
    return [path.name for path in folder.rglob("*") if path.exists() and path.is_file() and path.stat().st_size]


def another(study: Path, tmp_path: Path) -> Release:
    """Release another draw."""
    with sm.Study.open(study) as opened:
        plan, data = opened.plan, opened.data
    chosen = [made for made in plan.candidates if made.method.random][1]
    return release_with_overrides(data, plan, chosen, ledger=tmp_path / "ledger")


def entries(tmp_path: Path) -> int:
    with closing(sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")) as ledger:
        return int(ledger.execute("select count(*) from release").fetchone()[0])


def test_next_release_removes_entry_of_killed_release(study: Path, tmp_path: Path) -> None:
    """Regression test: a kill left the bundle and a ledger entry, so the next release was rejected as a second one."""
    killed("release", tmp_path)
    assert entries(tmp_path) == 1 and len(list(tmp_path.glob(".part-*"))) == 1
    write_atomically(
        tmp_path / "other.txt", ""
    )  # any other run in that folder takes the data away, and the ledger still knows
    assert list(tmp_path.glob(".part-*/kept/*")) == []
    another(study, tmp_path).write(tmp_path / "public")
    assert entries(tmp_path) == 1 and list(tmp_path.glob(".part-*")) == []


def test_interrupt_after_last_step_keeps_entry(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: the release existed, but its ledger entry was removed."""
    place = releasing.release_folder.put_in_place

    def interrupted(*given: Any) -> None:
        place(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing.release_folder, "put_in_place", interrupted)
    with pytest.raises(KeyboardInterrupt):
        another(study, tmp_path).write(tmp_path / "public")
    assert (tmp_path / "public" / "data.parquet").exists() and entries(tmp_path) == 1


def test_next_run_removes_leftovers_of_killed_check(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression test: the checked file stayed in the temporary folder."""
    killed("check", tmp_path)
    assert readable(tmp_path / "tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    another(study, tmp_path).check()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_command_removes_leftovers_beside_its_output(tmp_path: Path) -> None:
    """A killed release left its file in a private folder beside the output until the next release."""
    (tmp_path / ".part-1").mkdir(mode=0o700)
    (tmp_path / ".part-1" / "lock").touch(mode=0o600)
    (tmp_path / ".part-1" / "kept").mkdir(mode=0o700)
    (tmp_path / ".part-1" / "kept" / "data.csv").write_text("a\n1\n")
    subprocess.run([sys.executable, "-m", "sdcmap.cli", "--version"], cwd=tmp_path, check=True, capture_output=True)
    assert not any(tmp_path.iterdir())


def test_killed_sweep_leaves_no_working_copy(study: Path, tmp_path: Path) -> None:
    """`data.bin`, the original, stayed in the temporary folder; where the system allows, it has no name any more."""
    killed("sweep", tmp_path)
    left = readable(tmp_path / "tmp")
    assert left == [] or sys.platform != "linux", left


def test_folder_of_running_process_is_not_removed(tmp_path: Path) -> None:
    with private_folder(tmp_path) as mine, private_folder(tmp_path) as other:
        assert mine.is_dir() and other.is_dir() and mine != other
        stranger = tmp_path / ".part-of-somebody"
        stranger.mkdir()
        with private_folder(tmp_path):
            assert mine.is_dir() and other.is_dir() and stranger.is_dir()
    assert list(tmp_path.iterdir()) == [stranger]


def test_terminated_program_removes_its_folders(tmp_path: Path) -> None:
    """Regression test: SIGTERM ended scripts and workbench sweeps without cleaning up."""
    code = f"""
import os, pathlib, signal
from sdcmap.data.private_folder import private_folder
with private_folder(pathlib.Path({str(tmp_path)!r})) as folder:
    (folder / "data").write_text("x")
    os.kill(os.getpid(), signal.SIGTERM)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 143
    assert list(tmp_path.iterdir()) == []


# ---- databases of somebody else -------------------------------------------------------------------------------
ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select x as id, x, x, x from n"
HOSTILE = {
    "view": "create view {table} as " + ENDLESS,
    "generated column": "create table {table} (id text, x generated always as (length(zeroblob(900000000))) virtual)",
    "constraint": "create table {table} (id text, check (length(zeroblob(900000000)) > 0))",
    "trigger": "create table {table} (id text); create trigger t after insert on {table} begin delete from {table}; end",
    "virtual table": "create virtual table {table} using fts5(id)",
}


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=HOSTILE)
def test_database_that_computes_is_rejected(study: Path, data: sm.Microdata, tmp_path: Path, sql: str) -> None:
    """A study or a ledger of somebody else with an endless view in place of a table was read without end."""
    (study / "scores.sqlite").unlink()
    with closing(sqlite3.connect(study / "scores.sqlite")) as connection:
        connection.executescript(sql.format(table="score"))
    with pytest.raises(sm.errors.StudyDamaged, match="sdcmap study repair"):
        sm.Study.open(study)
    with Ledger.open_locked(tmp_path / "ledger") as ledger:
        pass
    (tmp_path / "ledger" / "ledger.sqlite").unlink()
    with closing(sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite")) as connection:
        connection.executescript(sql.format(table="release"))
    with pytest.raises(sm.errors.SdcmapError, match="cannot be used"):
        ledger.entries()


@pytest.mark.parametrize("is_missing", [True, False])
def test_lost_scores_are_noticed(study: Path, data: sm.Microdata, is_missing: bool) -> None:
    """An empty or missing database was taken for a study without scores."""
    with sm.Study.open(study) as opened:
        before, plan = opened.scores(), opened.plan
    for file in study.glob("scores.sqlite*"):
        file.unlink()
    if not is_missing:
        (study / "scores.sqlite").touch()
    with pytest.raises(sm.errors.StudyDamaged, match=r"scores\.sqlite is missing or empty, but the study had scores"):
        sm.Study.open(study)
    with pytest.warns(sm.errors.StudyChanged, match=r"All of them are computed again"):
        assert sm.sweep(data, plan, study, workers=1).score.equals(before.score)


def test_repair_of_empty_scores(study: Path) -> None:
    for file in study.glob("scores.sqlite*"):
        file.unlink()
    (study / "scores.sqlite").touch()
    assert str(repair(study)).startswith("0 candidates and 0 scores are intact and were kept.")
    assert len(sm.Study.open(study).scores().candidate) == 0
