"""Run the benchmark: a table on the screen and in docs/benchmarks.md, and bench/results.json beside this file.

    python bench/run.py            every job of every jobs*.py
    python bench/run.py swap png   the jobs whose name holds one of these words; the others keep their rows

Each (job, n) runs in a process of its own, so that its peak memory is its own. `ratio` is the peer's time over ours, in
the same run; `growth` is the exponent of n fitted over the job's sizes (1 is linear). A job that cannot run here says why
and is left out.
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
MARK = "<!-- table -->"  # what stands between two of these is written here
MOST_SECONDS = 300  # for one job at one size
COLUMNS = ("job", "n", "seconds", "peak_mb", "peer", "peer_seconds", "peer_peak_mb", "ratio", "growth")


def modules() -> list[str]:
    """The modules of jobs: jobs.py first, then jobs_*.py in the order of their names."""
    return ["jobs", *sorted(path.stem for path in HERE.glob("jobs_*.py"))]


def jobs() -> Iterator[tuple[str, str, tuple[int, ...], str]]:
    """(module, job, sizes, peer) of every job."""
    for module in modules():
        for name, _, sizes, peer in importlib.import_module(module).JOBS:
            yield module, name, sizes, peer


def one(module: str, name: str, n: int) -> None:
    """Run one job and print its figures as JSON; a peer that ran elsewhere gives its peak memory too."""
    run = next(function for job, function, _, _ in importlib.import_module(module).JOBS if job == name)
    try:
        ours, peer, *peak_of_peer = run(n)
    except SkipTest as reason:
        print(json.dumps({"skipped": str(reason)}))
        return
    who = (resource.RUSAGE_SELF,) if peak_of_peer else (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(one).ru_maxrss for one in who) / 1024
    found = {"seconds": ours, "peak_mb": peak, "peer_seconds": peer, "peer_peak_mb": next(iter(peak_of_peer), None)}
    print(json.dumps(found))


def run_apart(module: str, name: str, n: int) -> dict[str, Any]:
    """Run one job in a process of its own."""
    command = [sys.executable, __file__, "--one", module, name, str(n)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"skipped": f"it took more than {MOST_SECONDS} s"}
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def growth(points: list[tuple[int, float]]) -> float | None:
    """The slope of log seconds on log n."""
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
        made = []
        for n in sizes:
            found = run_apart(module, name, n)
            if "skipped" in found:
                skipped.append(f"{name}, n = {n:,}: {found['skipped']}")
                continue
            ratio = found["peer_seconds"] / found["seconds"]
            made.append({"job": name, "n": n, **found, "peer": peer, "ratio": ratio})
            said = f"{name}, n = {n:,}: {found['seconds']:.3g} s, {ratio:.3g} times {peer}"
            print(f"{time.monotonic() - start:6.0f} s  {said}", file=sys.stderr)
        exponent = growth([(row["n"], row["seconds"]) for row in made])
        rows += [{**row, "growth": exponent} for row in made]
    show(rows)
    for reason in skipped:
        print(f"left out: {reason}")
    print(f"{len(rows)} rows in {(time.monotonic() - start) / 60:.1f} min.")
    store(rows, {name: place for place, (_, name, _, _) in enumerate(known)}, keep=bool(words))
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


def store(rows: list[dict[str, Any]], places: dict[str, int], *, keep: bool) -> None:
    """Write results.json; `keep` the rows of jobs that did not run now."""
    file = HERE / "results.json"
    ran = {row["job"] for row in rows}
    kept = json.loads(file.read_text()) if keep and file.exists() else []
    rows = rows + [row for row in kept if row["job"] not in ran and row["job"] in places]
    results = [{key: row.get(key) for key in COLUMNS} for row in rows]
    results.sort(key=lambda row: (places[row["job"]], row["n"]))
    file.write_text(json.dumps(results, indent=1) + "\n")
    write_page(results)


def write_page(rows: list[dict[str, Any]]) -> None:
    """The table, with machine and date, in docs/benchmarks.md."""
    shown = ("job", "n", "seconds", "peak MB", "peer", "peer seconds", "peer MB", "ratio", "growth")
    lines = [f"| {' | '.join(shown)} |", "|" + "---|" * len(shown)]
    for row in rows:
        figures = [row[key] for key in COLUMNS]
        figures[1] = f"{row['n']:,}"
        figures[3], figures[6] = (
            f"{row['peak_mb']:.0f}",
            "" if row["peer_peak_mb"] is None else f"{row['peer_peak_mb']:.0f}",
        )
        for place in (2, 5, 7):
            figures[place] = f"{figures[place]:.3g}"
        figures[8] = "" if row["growth"] is None else f"{row['growth']:.2f}"
        lines.append(f"| {' | '.join(map(str, figures))} |")
    said = f"{machine()}, {date.today():%d %B %Y}, {len(rows)} rows."
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    PAGE.write_text(f"{before}{MARK}\n{said}\n\n" + "\n".join(lines) + f"\n{MARK}{after}", encoding="utf-8")


def machine() -> str:
    """What the figures were measured on, without naming the machine."""
    try:
        told = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
        model = next(line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("Model name"))
    except (OSError, subprocess.CalledProcessError, StopIteration):
        model = platform.processor() or "unknown processor"
    return f"{os.cpu_count()} cores of {platform.machine()} ({model}), Python {platform.python_version()}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
