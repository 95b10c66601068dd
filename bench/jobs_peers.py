"""Jobs of the benchmark that compare with other Python packages, installed in bench/.venv-peers by `make bench`.

The peer reads the same file in its own process. A job fails if the answer of the peer differs from ours.
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
from peers import BLOCKING_KEYS, COMPARED_KEYS
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.risk.exact_match import archive_matches

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("SDCMAP_PEERS", HERE / ".venv-peers")) / "bin" / "python"
Figures = tuple[float, float, float]


def compare_with(package: str, task: str, data: Microdata, ours: Callable[[], list[int]], repeat: int = 3) -> Figures:
    """Return our seconds, the seconds of the peer and its peak memory, after checking that both answers are equal."""
    if not PYTHON.exists():
        raise SkipTest(f"{package} is not installed: `make bench` installs it into bench/.venv-peers")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        data.frame().write_csv(file)
        done = subprocess.run([PYTHON, HERE / "peers.py", task, file], capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        raise SkipTest(f"{package} is not installed in bench/.venv-peers")
    assert done.returncode == 0, done.stderr[-500:]
    result = json.loads(done.stdout.splitlines()[-1])
    answer = ours()  # also compiles the kernels
    assert result["answer"][: len(answer)] == answer, (result["answer"], answer)
    return seconds(ours, repeat), result["seconds"], result["peak_mb"]


def groups(n: int) -> Figures:
    """Compute k-anonymity and distinct l-diversity of one sensitive variable in the groups of four keys."""
    frame = persons(n).frame()

    def ours() -> list[int]:
        data = sm.read(frame, keys="all")  # a new object, because views are cached
        group, levels = cells(data, tuple(BLOCKING_KEYS)), data.level_count("Income")
        observed = group.count > 0
        values = np.zeros((len(observed), levels), dtype=bool)
        values[group.code, data.codes("Income")] = True
        return [int(group.count[observed].min()), int(values[observed].sum(axis=1).min())]

    return compare_with("pycanon", "pycanon_groups", persons(n), ours)


def linked_with_recordlinkage(n: int) -> Figures:
    """Look up n/2 records in an archive of n/2 by six keys; the peer blocks on four keys and compares two."""
    return compare_with("recordlinkage", "recordlinkage_pairs", persons(n), _look_up(n))


def linked_with_splink(n: int) -> Figures:
    """Do the same; the peer is Splink on DuckDB, with two exact comparisons and its default weights."""
    return compare_with("splink", "splink_pairs", persons(n), _look_up(n))


def _look_up(n: int) -> Callable[[], list[int]]:
    frame = persons(n).frame()
    half = n // 2
    ours, theirs = sm.read(frame[:half], keys="all"), sm.read(frame[half:], keys="all")
    return lambda: [int((archive_matches(ours, theirs, (*BLOCKING_KEYS, *COMPARED_KEYS)) > 0).sum())]


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
