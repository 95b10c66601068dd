"""Times of the GPU's kernels on one card, beside plain CuPy in the same run; it needs numpy and CuPy alone.

    python speed.py [worst.npz]        (as parity.py; worst.npz is written by export.py)

The limit of pairs is three instructions a field in single precision: a difference, a minimum, a sum.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src" / "sdcmap" / "kernels")]

from parity import costs_of  # noqa: E402

from gpu import cuda, groups, layout, pair_scan, rival_search  # type: ignore[import-not-found]  # noqa: E402

LANES = 128  # single-precision lanes of a multiprocessor
PAIRS = ((59_315, 50, 7), (59_315, 16, 7), (1_000_000, 16, 3), (10_000_000, 10, 1))  # records, kept, repeats
PARTS = 16  # in which WorstLinkage attacks its targets


def seconds(run: Callable[[], Any], repeats: int, *, warm: bool = True) -> float:
    """The median of so many runs."""
    cupy = cuda.cupy()
    times = []
    for repeat in range(repeats + warm):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        run()
        cupy.cuda.Device().synchronize()
        if repeat >= warm:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def clock() -> float:
    """Cycles a second that the card may reach."""
    return float(cuda.cupy().cuda.Device().attributes["ClockRate"]) * 1e3


def laid(n: int, fields: int = 8, *, sloped: bool = False, square: bool = False) -> Any:
    """A file and the same with noise."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((n, fields), dtype=np.float32)
    b = a + np.float32(0.1) * rng.standard_normal((n, fields), dtype=np.float32)
    slope = rng.uniform(0.5, 2, a.shape).astype(np.float32) if sloped else np.ones_like(a)
    return layout.OnCard(layout.laid_capped(a, slope, np.ones(fields, dtype=np.float32), b, square))


def keys(files: Any, keep: int) -> Any:
    return pair_scan.keys_on_card(files, files.rows, keep, cuda.cupy().zeros(files.count, dtype=np.uint32))


def pair_times(most: int) -> None:
    for n, keep, repeats in PAIRS:
        if n <= most:
            files = laid(n)
            taken = seconds(lambda: keys(files, keep), repeats, warm=n < 5_000_000)  # noqa: B023
            share = n * n * 8 * 3 / (cuda.processors() * LANES * clock()) / taken
            print(f"pairs {n:,}^2 x 8, {keep} kept: {taken:.5f} s, {share:.3f} of the limit", flush=True)
    for words, options in (("a slope of each record", {"sloped": True}), ("squares", {"square": True})):
        files = laid(59_315, **options)
        print(f"pairs 59,315^2 x 8, 50 kept, {words}: {seconds(lambda: keys(files, 50), 5):.5f} s", flush=True)  # noqa: B023
    codes = np.random.default_rng(1).integers(0, 2, (59_315, 4)).astype(np.float32)
    tied = layout.OnCard(layout.laid_capped(codes, np.ones_like(codes), np.ones(4, dtype=np.float32), codes, False))
    print(f"pairs 59,315^2 x 4, 50 kept, 3,700 ties a record: {seconds(lambda: keys(tied, 50), 3):.5f} s", flush=True)


def plain_times(n: int = 59_315, keep: int = 50) -> None:
    """The same by CuPy's own functions, 2,048 rows at a time."""
    cupy = cuda.cupy()
    rng = np.random.default_rng(1)
    a = cupy.asarray(rng.standard_normal((n, 8), dtype=np.float32))
    b = a + cupy.float32(0.1)

    def run() -> None:
        for first in range(0, n, 2048):
            rows = a[first : first + 2048]
            cost = cupy.zeros((len(rows), n), dtype=cupy.float32)
            for f in range(8):
                cost += cupy.minimum(cupy.abs(rows[:, f, None] - b[:, f]), 1.0)
            cupy.argpartition(cost, keep, axis=1)[:, :keep]

    print(f"plain CuPy, {n:,}^2 x 8, {keep} kept: {seconds(run, 2):.3f} s", flush=True)
    x = cupy.asarray(rng.standard_normal((200_000, 8)))

    def scan() -> None:
        for _ in range(100):
            int(((x - x[7]) ** 2).sum(axis=1).argmax())

    print(f"plain CuPy, one scan of 200,000 x 8: {seconds(scan, 3) / 100:.7f} s", flush=True)


def bandwidth() -> float:
    """Bytes a second, read and written, of a copy on the card."""
    cupy = cuda.cupy()
    here, there = cupy.ones(1 << 28), cupy.empty(1 << 28)
    return 16 * (1 << 28) / seconds(lambda: cupy.copyto(there, here), 5)


def group_times() -> None:
    rate = bandwidth()
    print(f"copy: {rate / 1e12:.2f} TB/s", flush=True)
    for n in (20_000, 200_000):
        x = np.random.default_rng(1).standard_normal((n, 8))
        taken = seconds(lambda: groups.mdav_groups(x, 3), 3)  # noqa: B023
        share = (n / 2) * (n / 2) * 64 / rate / taken  # n / 2 scans of half the records in the mean
        print(f"MDAV, groups of 3, {n:,} x 8: {taken:.4f} s, {share:.3f} of the bandwidth", flush=True)
    codes = np.random.default_rng(2).integers(0, 6, (20_000, 4))
    print(
        f"Gower, groups of 3, 20,000 x 4 + 4: {seconds(lambda: groups.gower_groups(x[:20_000, :4], codes, 3), 3):.4f} s"
    )


def worst_times(path: str) -> None:
    """Every attack of WorstLinkage as it runs them, in parts and left early, and the leader's candidates."""
    stored = dict(np.load(path))
    names = [str(name) for name in stored["names"]]
    costs = {name: costs_of(stored, name) for name in names}
    targets, truth = stored["targets"], stored["truth"]
    for _ in range(3):
        start, lead, said = time.perf_counter(), 0.0, []
        for name in names:
            begun = time.perf_counter()
            race = rival_search.RivalSearch(costs[name], truth, mean=bool(stored[f"{name}/mean"]))
            found = np.ones(len(targets))
            for part in np.array_split(np.arange(len(targets)), PARTS):
                beaten, ties = race(targets[part])
                found[part] = np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1))
                if part[-1] + 1 < len(targets) and found.mean() < lead:
                    break
            said.append(f"{name} {time.perf_counter() - begun:.4f}")
            assert abs(found.mean() - float(stored[f"{name}/rate"])) < 1e-12, name
            lead = max(lead, found.mean()) if bool(stored[f"{name}/complete"]) else lead
        begun = time.perf_counter()
        pair_scan.CheapestSearch(costs[names[0]], mean=bool(stored[f"{names[0]}/mean"]))(np.arange(len(truth)), 50)
        said.append(f"50 candidates {time.perf_counter() - begun:.4f}")
        print(f"WorstLinkage, {len(truth):,} x 14: {time.perf_counter() - start:.4f} s ({', '.join(said)})", flush=True)


if __name__ == "__main__":
    print(cuda.name(), f"{cuda.processors()} multiprocessors, {clock() / 1e6:.0f} MHz", flush=True)
    if len(sys.argv) > 1:
        worst_times(sys.argv[1])
    group_times()
    plain_times()
    pair_times(int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000)
