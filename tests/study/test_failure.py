"""Failures around a sweep or a release: a full disk, a read-only folder, no memory, a clock that jumps."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dask_processes import processes
from numpy.random import Generator

import sdcmap as sm
from commands import sdcmap
from samples import same_rows
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.study import cluster, engines
from sdcmap.study import folder as study
from sdcmap.study.database import _connect_read_only
from sdcmap.study.engines import run_all, share_executor, worker_pool
from sdcmap.study.jobs import Job
from sdcmap.study.worker import run_here
from sizes import GUARD, SOAK

SDCMAP = f"{sys.executable} -m sdcmap.cli"
STORES_SOME_SCORES = "220k"  # size of a disk that holds the data of 300 people and some of 800 scores


def mounts_work() -> bool:
    script = "mount -t tmpfs -o size=64k tmpfs /mnt && mount -o remount,size=1m /mnt"
    return shutil.which("unshare") is not None and not _private(script).returncode


def _private(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in its own mount namespace, whose file systems disappear with it."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, check=False)


needs_mounts = pytest.mark.skipif(not mounts_work(), reason="this machine lets nobody mount a small file system")


@pytest.fixture
def plan(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A plan of many people and few scores, or of as many of both as a test asks for."""
    rows, replicates = getattr(request, "param", (2000, 2))
    sm.demo.population(rows, seed=6).frame().write_csv(tmp_path / "people.csv")
    (tmp_path / "plan.toml").write_text(
        f"replicates = {replicates}"
        """
measures = [{type = "SmallCells"}, {type = "Hellinger"}]
[data]
path = "people.csv"
keys = ["Age", "Educ", "Race", "Sex"]
[[methods]]
type = "Swap"
grid.on = ["Age", "Educ", "Race", "Sex"]
grid.rate = [0.01, 0.02]
"""
    )
    return tmp_path / "plan.toml"


@needs_mounts
@pytest.mark.parametrize("plan", [(300, 100)], indirect=True, ids=["many scores"])
@pytest.mark.parametrize("size", ["40k", STORES_SOME_SCORES] if SOAK else [STORES_SOME_SCORES])
def test_full_disk_gets_one_sentence_and_the_sweep_continues_later(plan: Path, tmp_path: Path, size: str) -> None:
    """A real disk of this size: it is full before the data are copied, while they are, or while scores are stored."""
    disk = tmp_path / "disk"
    disk.mkdir()
    sweep = f"{SDCMAP} sweep {plan} -o {disk}/s --workers 1"
    done = _private(
        f"mount -t tmpfs -o size={size} tmpfs {disk} && ({sweep}; echo exit $?; cp -r {disk}/s {tmp_path}/full;"
        f" mount -o remount,size=100m {disk}; {sweep} && cp -r {disk}/s {tmp_path}/copy)"
    )
    assert "exit 2" in done.stdout, done.stderr
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr and "failed:" not in done.stderr
    copy = sm.Study.open(tmp_path / "copy")
    if size == STORES_SOME_SCORES:
        assert 0 < len(sm.Study.open(tmp_path / "full").candidate_states()) < len(copy.candidate_states())
    assert same_rows(copy.scores(), sm.sweep(copy.data, sm.Plan.read(plan, seed=copy.seed), workers=1))


def test_read_only_study_without_a_proposal_table_can_be_read(tmp_path: Path) -> None:
    """The database has no table of proposals, and none can be created."""
    plan = sm.Plan(sm.Swap(on="Sex", rate=0.1), [sm.SmallCells(), sm.Hellinger()], seed=1)
    scores = sm.sweep(sm.demo.population(100, seed=6), plan, tmp_path / "s", workers=1)
    with sm.Study.open(tmp_path / "s") as old:
        old.connection.execute("drop table proposal")
        old.connection.execute("pragma journal_mode = delete")
    with study.Study(tmp_path / "s", _connect_read_only(tmp_path / "s" / "scores.sqlite"), old.manifest) as read_only:
        assert read_only.search_methods() == () and same_rows(read_only.scores(), scores)


@needs_mounts
def test_read_only_folder_gets_one_sentence(plan: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    sdcmap("sweep", plan, "-o", disk / "s", "--workers", 1)
    commands = [
        ["sweep", plan, "-o", disk / "s"], ["sweep", plan, "-o", disk / "new"], ["study", "repair", disk / "s"],
        ["map", disk / "s", "-o", disk / "map.html"], ["report", disk / "s", "-o", disk / "report.html"],
        ["mask", tmp_path / "people.csv", "--method", "Noise(on='wage')", "--seed", 1, "-o", disk / "m.study.csv"],
    ]  # fmt: skip
    (tmp_path / "line.py").write_text(
        "import json, sys\nfrom commands import sdcmap\n"
        "print(json.dumps([sdcmap(*words, code=2).stderr for words in json.loads(sys.argv[1])]))\n"
    )
    words = shlex.quote(json.dumps([list(map(str, command)) for command in commands]))
    frozen = f"mount --bind {disk} {disk} && mount -o remount,ro,bind {disk}"
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = _private(f"{frozen} && {sys.executable} {tmp_path}/line.py {words}", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    for command, sentence in zip(commands, json.loads(done.stdout), strict=True):
        assert sentence.startswith("error: ") and "Read-only" in sentence, (command, sentence)


@needs_mounts
def test_release_on_a_full_disk_leaves_no_files(plan: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    sdcmap("sweep", plan, "-o", tmp_path / "s", "--workers", 1)
    candidate = sm.Study.open(tmp_path / "s").scores().candidate.filter(pl.col("method").str.contains("Swap"))["id"][0]
    done = _private(
        f"mount -t tmpfs -o size=60k tmpfs {disk} && {SDCMAP} release {tmp_path}/s {candidate} -o {disk}/public"
        f" --max-risk 1; echo exit $?; ls -A {disk}"
    )
    assert "exit 2" in done.stdout or "exit 3" in done.stdout, done.stderr
    assert done.stdout.rstrip().endswith(("exit 2", "exit 3")), "nothing lies on the disk"


@dataclass(frozen=True)
class Greedy(Method):
    """Allocates more memory than its worker has, and keeps it."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        taken = [np.ones(2**24) for _ in range(8)]  # 1 GiB
        time.sleep(GUARD)
        return data.change(None, {"wage": data.numbers("wage") + len(taken)})


@pytest.mark.slow
def test_candidate_of_a_killed_dask_worker_is_not_stored_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MAX_DEATHS_ALONE", 2)
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT_SECONDS", GUARD)
    pytest.importorskip("distributed", reason="a Dask cluster needs: pip install 'sdcmap[dask]'")
    data = sm.demo.population(300, seed=1)
    plan = sm.Plan([sm.Swap(on="Age"), Greedy()], [sm.SmallCells()], seed=2**140)
    with sm.Study.begin(tmp_path / "s", data, plan) as begun:
        copy = begun.path
    path = os.pathsep.join([*map(str, Path(__file__).parents[:2]), os.environ.get("PYTHONPATH", "")])
    with processes(tmp_path / "c", 0, "--memory-limit", "600MB", nannies=True, failures=0) as running:
        running.add_worker(PYTHONPATH=path)
        jobs = iter([Job(c, c.stream(plan.seed).key, plan.measures) for c in plan.candidates])
        with worker_pool(running.engine, 1, None, data, copy) as (make, run):
            status = {row.method: row.status for batch in run_all(jobs, run, make, 1) for row in batch}
    greedy = next(ended for method, ended in status.items() if "Greedy" in method)
    assert greedy == "failed" and sorted(status.values()) == ["failed", "ok", "ok"]


def test_shared_executor_serves_several_runs_and_is_replaced_when_broken() -> None:
    data = sm.demo.population(60, seed=1)
    plan = sm.Plan([sm.Swap(on="Age")], [sm.SmallCells()], seed=1)
    made: list[ThreadPoolExecutor] = []

    def make() -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(2))
        return made[-1]

    def rows() -> list[str]:
        jobs = iter([Job(c, c.stream(1).key, plan.measures) for c in plan.candidates])
        return sorted(row.id for batch in run_all(jobs, partial(run_here, data), again, 2) for row in batch)

    with share_executor(make) as again:
        assert rows() == rows() and len(made) == 1
        made[0]._broken = "a worker died"  # type: ignore[attr-defined]
        assert len(rows()) == 2 and len(made) == 2
    with pytest.raises(RuntimeError, match="shutdown"):
        made[1].submit(len, "")


def test_memory_error_is_a_failed_candidate_with_its_line() -> None:
    @dataclass(frozen=True)
    class Endless(Method):
        on: tuple[str, ...] = ("wage",)

        def mask(self, data: Microdata, rng: Generator) -> Microdata:
            return data.change(None, {"wage": np.ones(2**45)})

    plan = sm.Plan([sm.Swap(on="Age"), Endless()], [sm.SmallCells()], seed=2**140)
    found = sm.sweep(sm.demo.population(300, seed=1), plan, workers=1).candidate
    assert found.filter(pl.col("status") == "failed")["reason"].to_list()[0].startswith(("MemoryError", "_ArrayMemory"))


def test_clock_that_jumps_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rule = sm.demo.population(300, seed=1), sm.Threshold(risk=0.1)
    methods, measures = [sm.Swap(on="Age")], [sm.SmallCells(), sm.Hellinger()]
    sm.sweep(data, sm.Plan(methods, measures, seed=2**140), tmp_path / "s", workers=1)
    monkeypatch.setattr(study, "_now", lambda: "1999-01-01T00:00:00+00:00")
    sm.sweep(data, sm.Plan(methods, measures, rule=rule, seed=2**140), tmp_path / "s", workers=1)
    assert not sm.Study.open(tmp_path / "s").rule_was_fixed_first, (
        "it was fixed after the first score, whatever the clock"
    )
    sm.sweep(data, sm.Plan(methods, measures, rule=rule, seed=2**140), tmp_path / "t", workers=1)
    assert sm.Study.open(tmp_path / "t").rule_was_fixed_first
