"""Run the benchmark; print the table, and write it to docs/benchmarks.md and bench/results.json.

    python bench/run.py            all jobs of all jobs*.py
    python bench/run.py swap PNG   only jobs whose name contains one of these words; the others keep their rows

Each job runs in its own process at each size n, so that its peak memory can be measured. `ratio` is the time of the peer
divided by ours, in the same run. `growth` is the exponent of n, fitted over the sizes of a job (1 is linear). A job that
cannot run here is left out, and the reason is printed.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from unittest import SkipTest

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
MARK = "<!-- table -->"  # the table stands between two of these
MAX_JOB_SECONDS = 300  # for one job at one size
COLUMNS = ("job", "n", "seconds", "peak_mb", "peer", "peer_seconds", "peer_peak_mb", "ratio", "growth")


def modules() -> list[str]:
    """Return the modules with jobs: jobs.py first, then jobs_*.py in alphabetical order."""
    return ["jobs", *sorted(path.stem for path in HERE.glob("jobs_*.py"))]


def jobs() -> Iterator[tuple[str, str, tuple[int, ...], str]]:
    """Return (module, job, sizes, peer) of every job."""
    for module in modules():
        for name, _, sizes, peer in importlib.import_module(module).JOBS:
            yield module, name, sizes, peer


def run_job(module: str, name: str, n: int) -> None:
    """Run one job and print its times and memory as JSON; a peer in another process also reports its peak memory."""
    run = next(function for job, function, _, _ in importlib.import_module(module).JOBS if job == name)
    try:
        ours, peer, *peer_peak = run(n)
    except SkipTest as reason:
        print(json.dumps({"skipped": str(reason)}))
        return
    processes = (resource.RUSAGE_SELF,) if peer_peak else (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(process).ru_maxrss for process in processes) / 1024
    result = {"seconds": ours, "peak_mb": peak, "peer_seconds": peer, "peer_peak_mb": next(iter(peer_peak), None)}
    print(json.dumps(result))


def run_in_process(module: str, name: str, n: int) -> dict[str, Any]:
    """Run one job in its own process and return its result, or the reason why it was skipped."""
    command = [sys.executable, __file__, "--one", module, name, str(n)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_JOB_SECONDS)
    except subprocess.TimeoutExpired:
        return {"skipped": f"it took more than {MAX_JOB_SECONDS} s"}
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def growth(points: list[tuple[int, float]]) -> float | None:
    """Return the slope of log seconds on log n; None with fewer than two sizes."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(n) for n, _ in points], [math.log(s) for _, s in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def main(words: list[str]) -> int:
    known = list(jobs())
    rows, skipped, start = [], [], time.monotonic()
    for module, name, sizes, peer in known:
        if words and not any(word in name for word in words):
            continue
        job_rows = []
        for n in sizes:
            result = run_in_process(module, name, n)
            if "skipped" in result:
                skipped.append(f"{name}, n = {n:,}: {result['skipped']}")
                continue
            ratio = result["peer_seconds"] / result["seconds"]
            job_rows.append({"job": name, "n": n, **result, "peer": peer, "ratio": ratio})
            line = f"{name}, n = {n:,}: {result['seconds']:.3g} s; ratio {ratio:.3g} to {peer}"
            print(f"{time.monotonic() - start:6.0f} s  {line}", file=sys.stderr)
        exponent = growth([(row["n"], row["seconds"]) for row in job_rows])
        rows += [{**row, "growth": exponent} for row in job_rows]
    show(rows)
    for reason in skipped:
        print(f"left out: {reason}")
    print(f"{len(rows)} rows in {(time.monotonic() - start) / 60:.1f} min.")
    store(rows, {name: position for position, (_, name, _, _) in enumerate(known)}, keep=bool(words))
    return 0


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("job", "n", "seconds", "peak MB", "peer", "peer seconds", "peer MB", "ratio", "growth")
    for row in rows:
        memory = "" if row["peer_peak_mb"] is None else f"{row['peer_peak_mb']:.0f}"
        exponent = "" if row["growth"] is None else f"{row['growth']:.2f}"
        table.add_row(
            row["job"], f"{row['n']:,}", f"{row['seconds']:.3g}", f"{row['peak_mb']:.0f}", row["peer"],
            f"{row['peer_seconds']:.3g}", memory, f"{row['ratio']:.3g}", exponent,
        )  # fmt: skip
    Console(width=160).print(table)


def store(rows: list[dict[str, Any]], order: dict[str, int], *, keep: bool) -> None:
    """Write results.json and the page, in the order of the jobs.

    keep : keep the earlier rows of jobs that did not run this time.
    """
    file = HERE / "results.json"
    ran = {row["job"] for row in rows}
    earlier = json.loads(file.read_text()) if keep and file.exists() else []
    rows = rows + [row for row in earlier if row["job"] not in ran and row["job"] in order]
    results = [{key: row.get(key) for key in COLUMNS} for row in rows]
    results.sort(key=lambda row: (order[row["job"]], row["n"]))
    file.write_text(json.dumps(results, indent=1) + "\n")
    write_page(results, ran)


def write_page(rows: list[dict[str, Any]], ran: set[str]) -> None:
    """Write the table, with machine and date, to docs/benchmarks.md. ran : the jobs of this run; others are earlier."""
    header = ("job", "n", "seconds", "peak MB", "peer", "peer seconds", "peer MB", "ratio", "growth")
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for row in rows:
        figures = [row[key] for key in COLUMNS]
        figures[1] = f"{row['n']:,}"
        figures[3], figures[6] = (
            f"{row['peak_mb']:.0f}",
            "" if row["peer_peak_mb"] is None else f"{row['peer_peak_mb']:.0f}",
        )
        for index in (2, 5, 7):
            figures[index] = f"{figures[index]:.3g}"
        figures[8] = "" if row["growth"] is None else f"{row['growth']:.2f}"
        lines.append(f"| {' | '.join(map(str, figures))} |")
    new = sum(row["job"] in ran for row in rows)
    earlier = "" if new == len(rows) else f" The other {len(rows) - new} are from earlier runs, also on other machines."
    caption = f"{new} rows: {machine()}, {date.today():%d %B %Y}.{earlier}"
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{caption}\n\n" + "\n".join(lines) + f"\n{MARK}{after}", encoding="utf-8")


def machine() -> str:
    """Return cores, processor and Python version, without the name of the machine."""
    try:
        output = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
        model = next(line.partition(":")[2].strip() for line in output.splitlines() if line.startswith("Model name"))
    except (OSError, subprocess.CalledProcessError, StopIteration):
        model = platform.processor() or "unknown processor"
    return f"{os.cpu_count()} cores of {platform.machine()} ({model}), Python {platform.python_version()}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_job(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
