"""Random `kill -9` of drivers and workers: the finished study equals an undisturbed one, nothing lost, nothing twice.

The number of kills is SDCMAP_KILLS for each of the two engines (default 25, so 50 in all).
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from test_cluster import Processes, processes

import sdcmap as sm

KILLS = int(os.environ.get("SDCMAP_KILLS", "25"))
DRIVER = """
import sys
import sdcmap as sm

def plan():
    methods = sm.grid(sm.Swap, on=sm.subsets(("Age", "Educ", "Race", "Sex"), 1, 2), rate=[0.01, 0.02, 0.05])
    return sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()], replicates=400, seed=2**150 + 1)

def people():
    return sm.demo.population(3000, seed=4)

if __name__ == "__main__":
    folder, engine = sys.argv[1:]
    sm.sweep(people(), plan(), folder, engine=engine, workers=2)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "drive.py"
    path.write_text(DRIVER)
    return path


@pytest.fixture(scope="module")
def undisturbed(script: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "s"
    subprocess.run([sys.executable, str(script), str(folder), "serial"], check=True)
    return folder


def tables(folder: Path) -> list[pl.DataFrame]:
    """The tables as they lie in the database; ids are primary keys, so nothing can be there twice unseen."""
    connection = sqlite3.connect(folder / "scores.sqlite")
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    found = []
    for name, columns in (("candidate", "id, method, replicate, status, reason"), ("score", "*"), ("measure", "*")):
        rows = connection.execute(f"select {columns} from {name} order by 1, 2").fetchall()
        found.append(pl.DataFrame(rows, orient="row", infer_schema_length=None))
    connection.close()
    return found


def children(pid: int) -> list[int]:
    """Worker processes below a driver, its forkserver's children included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found += [number, *children(number)]
    return found


def kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def disturb(script: Path, folder: Path, engine: str, victims: Callable[[int], list[int]]) -> tuple[int, int]:
    """Drive a sweep to its end while somebody kills its driver or a worker; how many of each were killed."""
    dice = random.Random(5)
    drivers = workers = 0
    driver = subprocess.Popen([sys.executable, str(script), str(folder), engine], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 400
    while True:
        assert time.monotonic() < end, "the sweep does not end"
        with suppress(subprocess.TimeoutExpired):
            code = driver.wait(dice.uniform(0.05, 0.9) if drivers + workers < KILLS else 5)
            if code == 0:
                return drivers, workers
            driver = subprocess.Popen([sys.executable, str(script), str(folder), engine], stderr=subprocess.DEVNULL)
            continue
        if drivers + workers >= KILLS:
            continue
        pool = victims(driver.pid)
        if dice.random() < 0.75:
            workers += bool(pool) and kill(dice.choice(pool))
        elif (folder / "manifest.json").exists() and kill(driver.pid):
            drivers += 1
            driver.wait()
            driver = subprocess.Popen([sys.executable, str(script), str(folder), engine], stderr=subprocess.DEVNULL)


def the_same(folder: Path, undisturbed: Path) -> bool:
    return all(a.equals(b) for a, b in zip(tables(folder), tables(undisturbed), strict=True))


def test_local_workers_and_drivers_are_killed(script: Path, undisturbed: Path, tmp_path: Path) -> None:
    drivers, workers = disturb(script, tmp_path / "s", "processes", children)
    print(f"killed {drivers} drivers and {workers} workers")
    assert drivers + workers >= min(KILLS, 5) and drivers and workers, "the sweep outran its killer"
    assert the_same(tmp_path / "s", undisturbed)


def test_dask_workers_and_drivers_are_killed(script: Path, undisturbed: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="a Dask cluster needs: pip install 'sdcmap[dask]'")
    with processes(tmp_path / "c", 2) as running:
        drivers, workers = disturb(script, tmp_path / "s", running.engine, lambda _: _workers_of(running))
    print(f"killed {drivers} drivers and {workers} workers")
    assert drivers + workers >= min(KILLS, 5) and drivers and workers, "the sweep outran its killer"
    assert the_same(tmp_path / "s", undisturbed)


def _workers_of(running: Processes) -> list[int]:
    """The processes that do the work; each has a nanny that starts another in its place."""
    return [pid for worker in running.workers for pid in children(worker.pid)]


def test_the_undisturbed_study_is_whole(undisturbed: Path) -> None:
    scores = sm.Study.open(undisturbed).scores()
    assert scores.candidate.height == 1 + 400 * 30
    assert set(scores.candidate["status"]) <= {"ok", "infeasible"}, "no candidate failed"
