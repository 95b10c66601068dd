"""Jobs beside packages of the field, each in an environment of its own (bench/.venv-peers, made by `make bench`).

The peer reads the same file in its own process, and its answer must be ours: a job whose answers differ fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import SkipTest

import numpy as np

import sdcmap as sm
from jobs import persons, seconds
from peers import COMPARED, LOOKED_UP
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.risk.exact_match import archive_matches

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("SDCMAP_PEERS", HERE / ".venv-peers")) / "bin" / "python"
Figures = tuple[float, float, float]


def beside(package: str, task: str, data: Microdata, ours: Callable[[], list[int]], repeat: int = 3) -> Figures:
    """Our seconds, the peer's and its peak memory, after both gave the same answer."""
    if not PYTHON.exists():
        raise SkipTest(f"{package} is not installed: `make bench` installs it into bench/.venv-peers")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        data.frame().write_csv(file)
        done = subprocess.run([PYTHON, HERE / "peers.py", task, file], capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        raise SkipTest(f"{package} is not installed in bench/.venv-peers")
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads(done.stdout.splitlines()[-1])
    mine = ours()  # kernels compiled, too
    assert found["answer"][: len(mine)] == mine, (found["answer"], mine)
    return seconds(ours, repeat), found["seconds"], found["peak_mb"]


def groups(n: int) -> Figures:
    """k-anonymity and distinct l-diversity of one sensitive variable in the groups of four keys."""
    frame = persons(n).frame()

    def ours() -> list[int]:
        data = sm.read(frame, keys="all")  # views are kept, so the count is made again for a fresh file
        group, levels = cells(data, tuple(LOOKED_UP)), data.level_count("Income")
        met = group.count > 0
        values = np.zeros((len(met), levels), dtype=bool)
        values[group.code, data.codes("Income")] = True
        return [int(group.count[met].min()), int(values[met].sum(axis=1).min())]

    return beside("pycanon", "pycanon_groups", persons(n), ours)


def linked_with_recordlinkage(n: int) -> Figures:
    """Look up n/2 records in an archive of n/2 by six keys; the peer blocks on four and compares two."""
    return beside("recordlinkage", "recordlinkage_pairs", persons(n), _looked_up(n))


def linked_with_splink(n: int) -> Figures:
    """The same by Splink on DuckDB, with two exact comparisons and its default weights."""
    return beside("splink", "splink_pairs", persons(n), _looked_up(n))


def _looked_up(n: int) -> Callable[[], list[int]]:
    frame = persons(n).frame()
    half = n // 2
    ours, theirs = sm.read(frame[:half], keys="all"), sm.read(frame[half:], keys="all")
    return lambda: [int((archive_matches(ours, theirs, (*LOOKED_UP, *COMPARED)) > 0).sum())]


JOBS: list[tuple[str, Callable[[int], Figures], tuple[int, ...], str]] = [
    ("k-anonymity and l-diversity, 4 keys", groups, (10_000, 100_000, 1_000_000), "pycanon"),
    (
        "look up records in an archive, recordlinkage",
        linked_with_recordlinkage,
        (1_000, 3_000, 10_000),
        "recordlinkage",
    ),
    ("look up records in an archive, Splink", linked_with_splink, (1_000, 3_000, 10_000), "Splink on DuckDB"),
]
