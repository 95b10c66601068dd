"""The benchmark can be run: every module of jobs is found and loaded, and every job has three sizes for its growth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1] / "bench"
LIST = "import run; [print(name, len(sizes), sep='|') for _, name, sizes, _ in run.jobs()]"


def test_every_job_is_found_and_has_three_sizes() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], cwd=BENCH, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    jobs = [line.split("|") for line in done.stdout.splitlines()]
    assert len({name for name, _ in jobs}) == len(jobs) > 40
    assert {sizes for _, sizes in jobs} == {"3"}
