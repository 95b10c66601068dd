"""A killed `sdcmap release` leaves the whole bundle or nothing.

The bundle is written into a private sibling `.part-...` and renamed in one step once all of it is on the disk. Killed
before the rename, a release leaves no folder of its name; what may stay is one `.part-...` folder of mode 0700, which no
later release reads, copies or trips over, and which its owner may delete. The moments are drawn with seed 6 over the time
of an undisturbed release, and one moment just before the rename is hit on purpose.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import sdcmap as sm

KILLS = int(os.environ.get("SDCMAP_RELEASE_KILLS", "20"))
NAMES = {"data.parquet", "codebook.json", "codebook.md", "note.json", "note.md", "SHA256SUMS"}
SERVER = """
import os, sys
import sdcmap as sm
from sdcmap.cli import main
import sdcmap.bundle.releasing, sdcmap.choose, sdcmap.map, sdcmap.study  # so that a kill hits the release, not its imports

sys.argv = ["sdcmap", *sys.argv[1:]]
print("ready", flush=True)
main()
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    data = sm.demo.population(4000, seed=3)
    roles = {"keys": ["Age", "Sex", "Educ", "Race"], "other": "all"}
    data = sm.read(data.only(["Age", "Sex", "Educ", "Race", "WrkTyp", "wage"]), **roles)
    plan = sm.Plan(
        sm.Swap(on="Educ", rate=0.1), [sm.SmallCells(), sm.Hellinger()], rule=sm.Threshold(risk=1.0), seed=2**200 + 1
    )
    sm.sweep(data, plan, folder / "study", workers=1)
    (folder / "drive.py").write_text(SERVER)
    return folder


def begun(folder: Path, out: Path, ledger: Path) -> subprocess.Popen[bytes]:
    """A release that has loaded its modules and begins now."""
    candidate = next(c.id for c in sm.Study.open(folder / "study").plan.candidates if c.method.random)
    command = [
        sys.executable,
        folder / "drive.py",
        "release",
        folder / "study",
        candidate,
        "-o",
        out,
        "--ledger",
        ledger,
    ]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def is_whole(out: Path) -> bool:
    """Whether every listed file is there and every checksum holds."""
    lines = (out / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    right = all(hashlib.sha256((out / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    return right and {path.name for path in out.iterdir()} == NAMES and set(sums) == NAMES - {"SHA256SUMS"}


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".part-")]


@pytest.fixture(scope="module")
def seconds(study: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long an undisturbed release takes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    process = begun(study, folder / "public", folder / "ledger")
    start = time.monotonic()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert is_whole(folder / "public") and not parts(folder)
    return time.monotonic() - start


def test_a_killed_release_leaves_all_or_nothing(study: Path, seconds: float, tmp_path: Path) -> None:
    dice, whole, nothing, left = random.Random(6), 0, 0, 0
    for number in range(KILLS):
        room = tmp_path / str(number)
        room.mkdir()
        process = begun(study, room / "public", room / "ledger")
        with suppress(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0, 1.2 * seconds))
        process.kill()
        process.communicate()
        out = room / "public"
        assert not out.exists() or is_whole(out), "half a release"
        whole, nothing, left = whole + out.exists(), nothing + (not out.exists()), left + len(parts(room))
        assert {path.name for path in room.iterdir()} <= {"public", "ledger", *(path.name for path in parts(room))}
    print(f"{KILLS} kills over {seconds:.1f} s: {whole} whole, {nothing} nothing, {left} private folders left")
    assert nothing, "no kill hit a release"


def test_what_a_killed_release_leaves_is_private_and_in_nobodys_way(study: Path, tmp_path: Path) -> None:
    """Stopped as soon as all files are written, killed there, and released again."""
    process = begun(study, tmp_path / "public", tmp_path / "ledger")
    end = time.monotonic() + 120
    while not any((part / "SHA256SUMS").exists() for part in parts(tmp_path)):
        assert time.monotonic() < end and process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    [part] = parts(tmp_path)
    assert not (tmp_path / "public").exists()
    assert stat.S_IMODE(part.stat().st_mode) == 0o700
    again = begun(study, tmp_path / "public", tmp_path / "ledger")
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert is_whole(tmp_path / "public") and parts(tmp_path) == [part]
    with sqlite3.connect(tmp_path / "ledger" / "ledger.sqlite") as connection:
        assert connection.execute("select count(*) from release").fetchone()[0] in (1, 2)  # an entry too many is safe
    connection.close()
