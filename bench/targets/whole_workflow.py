"""Target: a file goes from look to release in the stated minutes on two idle cores, and `check` foresees the sweep's cost.

Each run writes a made survey file and calls the commands that a user calls, one after the other, each as a process of its
own with all cores: look, check, sweep, choose and release. The guess of `check` for one core is compared with the processor
seconds of the sweep. Run it alone on an idle machine: it measures time.

    python bench/targets/whole_workflow.py --out whole_workflow.jsonl --runs 2
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from resumable_runs import ONE_THREAD, Facts, Figure, Target, main

MAX_GUESS_FACTOR = 1.5  # by which the cost of a sweep may differ from the guess
PR_SET_CHILD_SUBREAPER = 36  # of Linux
TIME = "--time"  # the argument with which this script times one command, in a process of its own
COMMANDS = ("look", "check", "sweep", "choose", "release")


@dataclass(frozen=True)
class Size:
    """A file of so many records and columns, and the minutes from look to release."""

    rows: int
    columns: int
    minutes: float

    @property
    def name(self) -> str:
        return f"{self.rows:,} x {self.columns}"


SIZES = (Size(5_000, 35, 6.0), Size(50_000, 20, 25.0))


def draw_survey(rows: int, columns: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw persons with keys, opinions and amounts that depend on each other; half of the columns are amounts or scores."""
    age, educ = rng.integers(16, 90, rows), rng.integers(1, 7, rows)
    works = rng.random(rows) < np.where(age < 66, 0.7, 0.1)
    base = 0.15 * educ + 0.01 * np.minimum(age, 60) + 0.4 * rng.standard_normal(rows)
    table: dict[str, object] = {
        "region": rng.choice([f"region {i}" for i in range(9)], rows), "sex": rng.choice(["f", "m"], rows), "age": age,
        "education": educ, "works": np.where(works, "yes", "no"),
        "wage": np.where(works, np.exp(6.5 + base).round(-1), 0.0),
        "benefits": np.where(rng.random(rows) < 0.3, np.exp(5 + 0.5 * rng.standard_normal(rows)).round(), 0.0),
    }  # fmt: skip
    for number in range(columns - len(table)):
        leaning = 0.3 * (base - base.mean()) + rng.standard_normal(rows)
        if number % 2:
            table[f"opinion_{number}"] = np.digitize(leaning, [-1.0, 0.0, 1.0]) + 1
        else:
            table[f"spending_{number}"] = np.exp(4 + 0.6 * leaning).round()
    return pl.DataFrame(table)


def call(folder: Path, *words: str) -> tuple[str, float, float]:
    """Run a command with all cores; return its output, the seconds, and those of the processor."""
    environment = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    environment["XDG_STATE_HOME"] = str(folder / "state")  # the ledger of made-up people is not registered
    with tempfile.TemporaryDirectory() as name:
        times = Path(name) / "times.json"
        done = subprocess.run(
            [sys.executable, __file__, TIME, str(times), *words],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"sdcmap {words[0]} ended with exit code {done.returncode}: {done.stderr}{done.stdout}")
        spent = json.loads(times.read_text(encoding="utf-8"))
    return done.stdout, spent["seconds"], spent["processor"]


def time_command(times: Path, words: Sequence[str]) -> int:
    """Run a command and write its times; this process is the parent of all its workers, and waits for them.

    A process whose parent has ended is adopted, so that the processor seconds of every worker are counted.
    """
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", "from sdcmap.cli import main; main()", *words], check=False)
    seconds = time.perf_counter() - start
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = {"seconds": seconds, "processor": used.ru_utime + used.ru_stime}
    times.write_text(json.dumps(facts), encoding="utf-8")
    return done.returncode


def run(number: int, seed: int, sizes: Sequence[Size] = SIZES) -> Facts:
    """Return the seconds of each command for one file, and the guessed and observed cost of its sweep."""
    size = sizes[number % len(sizes)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_survey(size.rows, size.columns, np.random.default_rng(seed)).write_csv(folder / "people.csv")
        calls = {
            "look": call(folder, "look", "people.csv", "-o", "plan.toml"),
            "check": call(folder, "check", "plan.toml", "--json"),
            "sweep": call(folder, "sweep", "plan.toml", "-o", "study"),
            "choose": call(folder, "choose", "study"),
            "release": call(folder, "release", "study", "-o", "public", "--confirm-roles", "--ledger", "ledger"),
        }
    return {
        "file": size.name, "seconds of": {name: round(calls[name][1], 1) for name in COMMANDS},
        "minutes": sum(calls[name][1] for name in COMMANDS) / 60,
        "guess": json.loads(calls["check"][0])["seconds"], "cost": calls["sweep"][2],
    }  # fmt: skip


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the longest time for each file, and the largest factor between guess and cost."""
    for size in SIZES:
        own = [line for line in lines if line["file"] == size.name]
        if not own:
            continue
        minutes = [line["minutes"] for line in own]
        slowest = max(own, key=lambda line: line["minutes"])
        note = ", ".join(f"{name} {seconds:g} s" for name, seconds in slowest["seconds of"].items())
        band = min(minutes), max(minutes)
        yield Figure(f"{size.name}: minutes from look to release", max(minutes), band, size.minutes, len(own), note)
        factors = [math.exp(abs(math.log(line["guess"] / line["cost"]))) for line in own]
        costs = ", ".join(f"{line['guess']:.0f} s guessed, {line['cost']:.0f} s used" for line in own)
        band = min(factors), max(factors)
        yield Figure(f"{size.name}: factor of the guess", max(factors), band, MAX_GUESS_FACTOR, len(own), costs)


TARGET = Target(__doc__, run, find_figures, 2 * len(SIZES))

if __name__ == "__main__":
    if sys.argv[1:2] == [TIME]:
        raise SystemExit(time_command(Path(sys.argv[2]), sys.argv[3:]))
    raise SystemExit(main(TARGET))
