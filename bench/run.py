"""Run the benchmark: a table on the screen, bench/results.json beside this file.

    python bench/run.py            every job
    python bench/run.py swap png   the jobs whose name holds one of these words; the others keep their rows

Each (job, n) runs in a process of its own, so that its peak memory is its own. `ratio` is the peer's time over ours, in
the same run; `growth` is the exponent of n fitted over the job's sizes (1 is linear).
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jobs import JOBS


def one(name: str, n: int) -> None:
    """Run one job and print its figures as JSON."""
    run = next(function for job, function, _, _ in JOBS if job == name)
    ours, peer = run(n)
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(json.dumps({"seconds": ours, "peak_mb": peak, "peer_seconds": peer}))


def growth(points: list[tuple[int, float]]) -> float | None:
    """The slope of log seconds on log n."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(n) for n, _ in points], [math.log(s) for _, s in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def main(words: list[str]) -> None:
    rows = []
    for name, _, sizes, peer in JOBS:
        if words and not any(word in name for word in words):
            continue
        made = []
        for n in sizes:
            command = [sys.executable, __file__, "--one", name, str(n)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            made.append({"job": name, "n": n, **found, "peer": peer, "ratio": found["peer_seconds"] / found["seconds"]})
        exponent = growth([(row["n"], row["seconds"]) for row in made])
        rows += [{**row, "growth": exponent} for row in made]
    table = Table("job", "n", "seconds", "peak MB", "peer", "peer seconds", "ratio", "growth")
    for row in rows:
        figures = [f"{row[key]:.3g}" for key in ("peer_seconds", "ratio")]
        exponent = "" if row["growth"] is None else f"{row['growth']:.2f}"
        table.add_row(
            row["job"],
            f"{row['n']:,}",
            f"{row['seconds']:.3g}",
            f"{row['peak_mb']:.0f}",
            row["peer"],
            *figures,
            exponent,
        )
    Console(width=150).print(table)
    order = ("job", "n", "seconds", "peak_mb", "peer", "peer_seconds", "ratio", "growth")
    results = [{key: row[key] for key in order} for row in rows]
    file = Path(__file__).parent / "results.json"
    kept = json.loads(file.read_text()) if words and file.exists() else []  # of the jobs that did not run now
    ran = {row["job"] for row in results}
    places = {name: place for place, (name, *_) in enumerate(JOBS)}
    results += [row for row in kept if row["job"] not in ran and row["job"] in places]
    results.sort(key=lambda row: (places[row["job"]], row["n"]))
    file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1:])
