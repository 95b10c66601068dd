"""Sweep a file that is three times larger than the memory limit.

    python bench/large.py [rows in millions]

Makes a Parquet file of 8 keys and 20 amounts, which takes 168 bytes per row in the working copy. Limits the private memory
of the sweep to a third of that (RLIMIT_DATA; mapped files do not count). Compares the scores with those of a sweep in
memory. Prints sizes, seconds and the peak of private memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

AMOUNTS = 20
CHILD = """
import resource, sys, threading, time
from pathlib import Path
limit = int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
import sdcmap as sm
from sdcmap.files.block_reader import read_in_blocks
from sdcmap.study.sweep import sweep

peak = [0]
def watch():
    while True:
        status = Path("/proc/self/status").read_text()
        peak[0] = max(peak[0], int(status.partition("RssAnon:")[2].split()[0]))
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
folder = Path(sys.argv[2])
plan = sm.Plan.read(folder / "plan.toml", seed=2**140)
if limit:
    data = read_in_blocks(plan.data, folder / "study" / "incoming", memory=limit)
    scores = sweep(data, plan, folder / "study", workers=1, memory=limit)
else:
    data = plan.data.read()
    scores = sweep(data, plan, workers=1)
scores.score.write_parquet(folder / sys.argv[1])
print(peak[0] * 1024)
"""


def make(folder: Path, rows: int) -> Path:
    """Write the file, in row groups of a million rows, and a plan for it; return the path of the file."""
    import sdcmap as sm

    step, parts = 1_000_000, []
    for number, start in enumerate(range(0, rows, step)):
        count = min(step, rows - start)
        people = sm.demo.population(count, seed=number)
        keys = people.only(people.keys).frame()
        rng = np.random.default_rng(number)
        amounts = {f"amount{j}": rng.lognormal(3, 1, count) for j in range(AMOUNTS)}
        part = folder / f"part{number}.parquet"
        pl.concat([keys, pl.DataFrame(amounts)], how="horizontal").write_parquet(part)
        parts.append(part)
    whole = folder / "people.parquet"
    pl.scan_parquet(parts).sink_parquet(whole, row_group_size=step)
    source = sm.Source(str(whole), keys=people.keys, numeric=tuple(f"amount{j}" for j in range(AMOUNTS)))
    plan = sm.Plan(
        sm.grid(sm.Swap, on=people.keys[:3], rate=[0.01, 0.05]), [sm.SmallCells(), sm.Hellinger()], data=source
    )
    (folder / "plan.toml").write_text(plan.toml())
    return whole


def main() -> None:
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 8_000_000
    with tempfile.TemporaryDirectory(prefix="sdcmap-") as name:
        folder = Path(name)
        file = make(folder, rows)
        size = rows * (8 + 8 * AMOUNTS)
        print(f"{rows:,} rows; Parquet {file.stat().st_size >> 20:,} MB, working copy {size >> 20:,} MB")
        for what, limit in (("limited", size // 3), ("in memory", 0)):
            started = time.perf_counter()
            run = [sys.executable, "-c", CHILD, f"{what}.parquet", str(folder), str(limit)]
            one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS"), "1")
            peak = int(subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | one).stdout)
            seconds = time.perf_counter() - started
            print(f"{what:10} limit {limit >> 20:6,} MB   peak {peak >> 20:6,} MB   {seconds:6.1f} s")
        same = pl.read_parquet(folder / "limited.parquet").equals(pl.read_parquet(folder / "in memory.parquet"))
        print("the scores are " + ("the same" if same else "NOT the same"))
        sys.exit(not same)


if __name__ == "__main__":
    main()
