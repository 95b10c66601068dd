"""Measure the web service with 20 clients while a sweep runs: `python bench/web_load.py`.

Each client reads a map of 10,000 points again and again over its own connection. Meanwhile the same server sweeps another
study of the same file. Prints the time until the first page, the number of answers and errors, and the median, the 95 %
quantile and the maximum of the response times. The exit code is 1 if there is an error or the 95 % quantile is 0.5 s or
more.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

import sdcmap as sm

CLIENTS, SECONDS, ROWS, POINTS = 20, 15.0, 1_000, 10_000
KEYS = ("Age", "Sex", "Educ", "Race")


def prepare(folder: Path) -> None:
    """Make a study of 10,000 candidates, and a plan with many more for the sweep."""
    sm.write(sm.demo.population(ROWS, seed=8), folder / "people.csv")
    source = sm.Source("people.csv", keys=KEYS)
    swaps = sm.grid(sm.Swap, on=sm.subsets(KEYS, 1, 2), rate=[0.01, 0.02, 0.05, 0.1])
    plan = sm.Plan(
        swaps, [sm.SmallCells(), sm.Hellinger()], replicates=POINTS // 33, data=source
    )  # 40 methods; some candidates are infeasible
    (folder / "read.toml").write_text(plan.toml())
    sm.sweep(source.read(folder), plan, folder / "read", progress=lambda done, total: None)
    more = sm.Plan(swaps, [sm.SmallCells(), sm.Hellinger()], replicates=20_000, data=source)
    (folder / "swept.toml").write_text(more.toml())


def read(base: str, head: dict[str, str], size: int, until: float, times: list[float], errors: list[str]) -> None:
    with httpx.Client(base_url=base, headers=head, timeout=60) as client:
        while time.monotonic() < until:
            started = time.perf_counter()
            try:
                answer = client.get("/api/studies/read/map")
                if answer.status_code != 200 or len(answer.content) != size:
                    errors.append(f"status {answer.status_code}")
            except httpx.HTTPError as error:
                errors.append(type(error).__name__)
            times.append(time.perf_counter() - started)
            time.sleep(0.2)  # the page of a user asks every 2.5 s; this is twelve times as often


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        prepare(folder)
        command = [sys.executable, "-m", "sdcmap.cli", "serve", "--folder", str(folder), "--workers", "1"]
        started = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        printed = time.perf_counter() - started
        base, token = address.partition("/?")[0], server.stdout.readline().split()[-1]
        head = {"authorization": f"Bearer {token}"}
        try:
            httpx.get(f"{base}/", headers=head, timeout=60).raise_for_status()
            print(f"first page {time.perf_counter() - started - printed:.2f} s after the address, "
                  f"{time.perf_counter() - started:.2f} s after the start of the process")  # fmt: skip
            httpx.put(
                f"{base}/api/studies/swept/sweep", json={"state": "running"}, headers=head, timeout=60
            ).raise_for_status()
            whole = httpx.get(f"{base}/api/studies/read/map", headers=head, timeout=60).raise_for_status()
            points, size = len(whole.json()["points"]["id"]), len(whole.content)
            times: list[float] = []
            errors: list[str] = []
            until = time.monotonic() + SECONDS
            clients = [
                threading.Thread(target=read, args=(base, head, size, until, times, errors)) for _ in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            status = httpx.get(f"{base}/api/studies/swept/sweep", headers=head, timeout=60).json()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
    p95 = statistics.quantiles(times, n=20)[-1]
    load = os.getloadavg()[0]
    print(f"{CLIENTS} clients, {len(times)} maps of {points:,} points, {len(errors)} errors; median "
          f"{1000 * statistics.median(times):.0f} ms, 95 % under {1000 * p95:.0f} ms, longest {1000 * max(times):.0f} ms; "
          f"sweep meanwhile: {status['state']}, {status['done']:,} candidates; load {load:.1f}")  # fmt: skip
    return 0 if not errors and p95 < 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
