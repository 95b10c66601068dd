"""Random `kill -9` of drivers and workers: the finished study equals an undisturbed one, nothing lost, nothing twice.

Kills are counted in work, not in time: each comes when so many candidates are stored. A worker dies by our hand while the
driver waits for us; a driver dies by its own, some random number of calls of Python functions later. There are
`sizes.KILLS` of them for each of the two engines, 25 in a soak.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from dask_processes import processes

import sdcmap as sm
from sizes import KILLS, size
from waiting import children, until

pytestmark = pytest.mark.slow
METHODS, REPLICATES = 33, size(12, 400)
CANDIDATES = 1 + METHODS * REPLICATES
DRIVER = f"""
import json, os, signal, sys
import sdcmap as sm

def plan():
    methods = sm.grid(sm.Swap, on=sm.subsets(("Age", "Educ", "Race", "Sex"), 1, 2), rate=[0.01, 0.02, 0.05])
    noise = sm.grid(sm.Noise, on="wage", variance=[0.1, 0.2, 0.5])
    measures = [sm.SmallCells(), sm.Hellinger(), sm.risk.Position(on="wage")]  # the last is scored in batches
    return sm.Plan([methods, noise], measures, replicates={REPLICATES}, seed=2**150 + 1)

def people():
    return sm.demo.population({size(600, 3000)}, seed=4)

def die_after(calls):
    def count(*call):
        nonlocal calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(count)

def meet(kills):
    reports = 0
    def progress(done, total):
        nonlocal reports
        reports += 1
        if reports > 1 and kills and done >= kills[0][0]:  # the first report comes before there are workers
            _, calls = kills.pop(0)
            if calls:
                die_after(calls)
            else:  # a worker is killed now
                print(done, flush=True)
                sys.stdin.readline()
    return progress

if __name__ == "__main__":
    folder, engine, kills = sys.argv[1:]
    sm.sweep(people(), plan(), folder, engine=engine, workers=2, progress=meet(json.loads(kills)))
"""
Kill = tuple[int, int]  # candidates done, and calls until the driver dies (0: a worker dies)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "drive.py"
    path.write_text(DRIVER)
    return path


@pytest.fixture(scope="module")
def undisturbed(script: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "s"
    drive = runpy.run_path(str(script))
    sm.sweep(drive["people"](), drive["plan"](), folder, workers=1)
    return folder


def tables(folder: Path) -> list[pl.DataFrame]:
    """Return the stored tables. Ids are primary keys, so that duplicates are impossible."""
    connection = sqlite3.connect(folder / "scores.sqlite")
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    stored = []
    for name, columns in (("candidate", "id, method, replicate, status, reason"), ("score", "*"), ("measure", "*")):
        rows = connection.execute(f"select {columns} from {name} order by 1, 2").fetchall()
        stored.append(pl.DataFrame(rows, orient="row", infer_schema_length=None))
    connection.close()
    return stored


def planned(dice: random.Random) -> Iterator[Kill]:
    """Return kills spread over the sweep; every fourth one kills the driver."""
    for number in range(KILLS):
        done = CANDIDATES * (number + dice.random()) / (KILLS + 1)
        yield int(done), dice.randrange(1, 4000) if number % 4 == 1 else 0


def disturb(script: Path, folder: Path, engine: str, victims: Callable[[int], list[int]]) -> tuple[int, int]:
    """Run a sweep to its end while its drivers and workers are killed; return how many of each."""
    dice = random.Random(5)
    kills, drivers, workers = list(planned(dice)), 0, 0
    while True:
        command = [sys.executable, str(script), str(folder), engine, json.dumps(kills)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, text=True, **pipes) as driver:  # type: ignore[call-overload]
            for _ in driver.stdout:
                pid = driver.pid
                until(lambda pid=pid: kill(dice.choice(victims(pid) or [0])), "a worker to kill")  # type: ignore[misc]
                workers += 1
                kills.pop(0)
                driver.stdin.write("\n")
                driver.stdin.flush()
        if driver.returncode == 0:
            return drivers, workers
        assert driver.returncode == -signal.SIGKILL, "no driver ends but by its kill"
        drivers += 1
        kills.pop(0)


def kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def the_same(folder: Path, undisturbed: Path) -> bool:
    return all(a.equals(b) for a, b in zip(tables(folder), tables(undisturbed), strict=True))


def test_study_survives_killed_local_workers_and_drivers(script: Path, undisturbed: Path, tmp_path: Path) -> None:
    drivers, workers = disturb(script, tmp_path / "s", "processes", children)
    assert drivers + workers == KILLS and drivers and workers
    assert the_same(tmp_path / "s", undisturbed)


def test_study_survives_killed_dask_workers_and_drivers(script: Path, undisturbed: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="a Dask cluster needs: pip install 'sdcmap[dask]'")
    with processes(tmp_path / "c", 2, nannies=True) as running:
        drivers, workers = disturb(script, tmp_path / "s", running.engine, lambda _: running.working)
    assert drivers + workers == KILLS and drivers and workers
    assert the_same(tmp_path / "s", undisturbed)


def test_undisturbed_study_is_complete(undisturbed: Path) -> None:
    scores = sm.Study.open(undisturbed).scores()
    assert scores.candidate.height == CANDIDATES
    assert set(scores.candidate["status"]) <= {"ok", "infeasible"}, "no candidate failed"
