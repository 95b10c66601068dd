"""A killed `sdcmap release` leaves the whole bundle or nothing.

The bundle is written into a private sibling `.part-...` and renamed in one step once all of it is on the disk. Killed
before the rename, a release leaves no folder of its name; what may stay is one `.part-...` folder of mode 0700, which the
next release removes. The moments are counted in calls of Python
functions, drawn with seed 6 over all calls of an undisturbed `Release.write`; one just before the rename is hit on
purpose.
"""

from __future__ import annotations

import hashlib
import random
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.bundle.release_folder import DOCUMENTS
from sizes import GUARD, RELEASE_KILLS

pytestmark = pytest.mark.slow
NAMES = {"data.parquet", *DOCUMENTS}
DRIVER = """
import os, signal, sys
from sdcmap.bundle.releasing import Release
from sdcmap.cli import main

last, calls = int(sys.argv[1]), 0  # the call at which it dies; 0: none; -1: when it would rename its folder
write = Release.write

def die(*names):
    os.kill(os.getpid(), signal.SIGKILL)

def count(*call):
    global calls
    calls += 1
    if calls == last:
        die()

def counted(*arguments, **options):
    sys.setprofile(count)
    try:
        return write(*arguments, **options)
    finally:
        sys.setprofile(None)
        print("calls", calls)

if last < 0:
    os.rename = die
else:
    Release.write = counted
sys.argv = ["sdcmap", *sys.argv[2:]]
main()
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    data = sm.demo.population(300, seed=3)
    roles = {"keys": ["Age", "Sex", "Educ", "Race"], "other": "all"}
    data = sm.read(data.only(["Age", "Sex", "Educ", "Race", "WrkTyp", "wage"]), **roles)
    plan = sm.Plan(
        sm.Swap(on="Educ", rate=0.1), [sm.SmallCells(), sm.Hellinger()], rule=sm.Threshold(risk=1.0), seed=2**200 + 1
    )
    sm.sweep(data, plan, folder / "study", workers=1)
    (folder / "drive.py").write_text(DRIVER)
    return folder


PAST = [word for name, reason in PROFILE_OVERRIDES.items() for word in ("--override", f"{name}={reason}")]


def begun(folder: Path, out: Path, ledger: Path, last: int = 0) -> subprocess.Popen[str]:
    """A release that dies at the call with this number (0: never; -1: at the rename)."""
    candidate = next(c.id for c in sm.Study.open(folder / "study").plan.candidates if c.method.random)
    words = [sys.executable, folder / "drive.py", last, "release", folder / "study", candidate, "-o", out, *PAST]
    command = [*map(str, words), "--ledger", str(ledger), "--override", "ledger=each test has its own"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_whole(out: Path) -> bool:
    """Whether every listed file is there and every checksum holds."""
    lines = (out / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    right = all(hashlib.sha256((out / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    return right and {path.name for path in out.iterdir()} == NAMES and set(sums) == NAMES - {"SHA256SUMS"}


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".part-")]


@pytest.fixture(scope="module")
def unnamed(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release leaves that is killed when all files are written and the folder would get its name."""
    workdir = tmp_path_factory.mktemp("killed")
    process = begun(study, workdir / "public", workdir / "ledger", -1)
    process.communicate(timeout=GUARD)
    assert process.returncode == -signal.SIGKILL
    assert not (workdir / "public").exists()
    [part] = parts(workdir)
    assert stat.S_IMODE(part.stat().st_mode) == 0o700
    return workdir


@pytest.fixture(scope="module")
def calls(study: Path, unnamed: Path) -> int:
    """Return how many calls an undisturbed release makes; the run before has compiled the kernels."""
    process = begun(study, unnamed / "public", unnamed / "ledger")
    out, errors = process.communicate(timeout=GUARD)
    assert process.returncode == 0, errors
    return int(re.findall(r"^calls (\d+)$", out, re.MULTILINE)[-1])


def test_killed_release_leaves_all_or_nothing(study: Path, calls: int, tmp_path: Path) -> None:
    dice, nothing = random.Random(6), 0
    for number in range(RELEASE_KILLS):
        workdir = tmp_path / str(number)
        workdir.mkdir()
        last = int(calls * (number + dice.random()) / RELEASE_KILLS)
        process = begun(study, workdir / "public", workdir / "ledger", max(1, last))
        process.communicate(timeout=GUARD)
        out = workdir / "public"
        assert not out.exists() or is_whole(out), "half a release"
        nothing += not out.exists()
        assert {path.name for path in workdir.iterdir()} <= {
            "public",
            "ledger",
            *(path.name for path in parts(workdir)),
        }
    assert nothing, "no kill hit a release"


def test_leftovers_of_killed_release_are_private_and_removed_by_next(unnamed: Path, calls: int) -> None:
    """Killed at the rename, and released again."""
    assert calls and is_whole(unnamed / "public") and parts(unnamed) == []
    with sqlite3.connect(unnamed / "ledger" / "ledger.sqlite") as connection:
        assert connection.execute("select count(*) from release").fetchone()[0] == 1
    connection.close()
