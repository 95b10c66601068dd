"""Time the GPU kernels on one GPU, next to plain CuPy in the same run; needs only numpy and CuPy.

    python speed.py [worst.npz]        (export.py writes worst.npz)

The limit for pairs is three instructions per field in single precision: a difference, a minimum, a sum.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src" / "sdcmap" / "kernels")]

from parity import costs_of  # noqa: E402

from gpu import cuda, groups, layout, pair_scan, patterns, rival_search  # type: ignore[import-not-found]  # noqa: E402

LANES = 128  # single-precision lanes of a multiprocessor
PAIR_RUNS = ((59_315, 50, 7), (59_315, 16, 7), (1_000_000, 16, 3), (10_000_000, 10, 1))  # records, kept, repeats
TARGET_PARTS = 16  # parts in which WorstLinkage attacks its targets


def seconds(run: Callable[[], Any], repeats: int, *, warm: bool = True) -> float:
    """Return the median time of `repeats` runs."""
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
    """Return the highest clock rate of the GPU, in cycles per second."""
    return float(cuda.cupy().cuda.Device().attributes["ClockRate"]) * 1e3


def upload_files(n: int, fields: int = 8, *, sloped: bool = False, square: bool = False) -> Any:
    """Return a file, and the same file with noise, on the GPU."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((n, fields), dtype=np.float32)
    b = a + np.float32(0.1) * rng.standard_normal((n, fields), dtype=np.float32)
    slope = rng.uniform(0.5, 2, a.shape).astype(np.float32) if sloped else np.ones_like(a)
    return layout.GpuFiles(layout.lay_out_capped(a, slope, np.ones(fields, dtype=np.float32), b, square))


def keys(files: Any, keep: int) -> Any:
    return pair_scan.smallest_keys(files, files.rows, keep, cuda.cupy().zeros(files.row_count, dtype=np.uint32))


def time_pairs(max_records: int) -> None:
    for n, keep, repeats in PAIR_RUNS:
        if n <= max_records:
            files = upload_files(n)
            duration = seconds(lambda: keys(files, keep), repeats, warm=n < 5_000_000)  # noqa: B023
            share = n * n * 8 * 3 / (cuda.processors() * LANES * clock()) / duration
            print(f"pairs {n:,}^2 x 8, {keep} kept: {duration:.5f} s, {share:.3f} of the limit", flush=True)
    for label, options in (("one slope per record", {"sloped": True}), ("squares", {"square": True})):
        files = upload_files(59_315, **options)
        print(f"pairs 59,315^2 x 8, 50 kept, {label}: {seconds(lambda: keys(files, 50), 5):.5f} s", flush=True)  # noqa: B023
    codes = np.random.default_rng(1).integers(0, 2, (59_315, 4)).astype(np.float32)
    tied = layout.GpuFiles(
        layout.lay_out_capped(codes, np.ones_like(codes), np.ones(4, dtype=np.float32), codes, False)
    )
    print(f"pairs 59,315^2 x 4, 50 kept, 3,700 ties per record: {seconds(lambda: keys(tied, 50), 3):.5f} s", flush=True)


def time_plain_cupy(n: int = 59_315, keep: int = 50) -> None:
    """Time the same computation with CuPy's own functions, 2,048 rows at a time."""
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
    """Return the bytes per second, read and written, of a copy on the GPU."""
    cupy = cuda.cupy()
    here, there = cupy.ones(1 << 28), cupy.empty(1 << 28)
    return 16 * (1 << 28) / seconds(lambda: cupy.copyto(there, here), 5)


def time_groups() -> None:
    rate = bandwidth()
    print(f"copy: {rate / 1e12:.2f} TB/s", flush=True)
    for n in (20_000, 200_000):
        x = np.random.default_rng(1).standard_normal((n, 8))
        duration = seconds(lambda: groups.mdav_groups(x, 3), 3)  # noqa: B023
        share = (n / 2) * (n / 2) * 64 / rate / duration  # on average n / 2 scans of half of the records
        print(f"MDAV, groups of 3, {n:,} x 8: {duration:.4f} s, {share:.3f} of the bandwidth", flush=True)
    codes = np.random.default_rng(2).integers(0, 6, (20_000, 4))
    print(
        f"Gower, groups of 3, 20,000 x 4 + 4: {seconds(lambda: groups.gower_groups(x[:20_000, :4], codes, 3), 3):.4f} s"
    )


def time_patterns(n: int = 50_000, fields: int = 6) -> None:
    """Time the agreement patterns of n x n pairs, next to plain CuPy on a part of the records."""
    cupy, rng = cuda.cupy(), np.random.default_rng(1)
    ranks, low = (rng.integers(0, n, (fields, n)).astype(np.uint32) for _ in range(2))
    files = SimpleNamespace(
        ranks=ranks, missing=np.full(fields, n), low=low.T, span=np.full((n, fields), n // 10),
        digit=np.tile(2 ** np.arange(fields), (n, 1)), base=2,
    )  # fmt: skip
    ours = seconds(lambda: patterns.count_pattern_numbers(files), 3)
    columns, first, part = cupy.asarray(ranks), cupy.asarray(low), n // 50

    def plain() -> Any:
        number = cupy.zeros((part, n), dtype=cupy.int32)
        for f in range(fields):
            number += (columns[f] - first[f, :part, None] <= n // 10) << f
        return cupy.bincount(number.ravel(), minlength=2**fields)

    peer = seconds(plain, 3) * 50
    print(f"agreement patterns, {n:,} x {n:,} x {fields}: {ours:.4f} s; plain CuPy, scaled: {peer:.3f} s", flush=True)


def time_worst_linkage(path: str) -> None:
    """Time the attacks of WorstLinkage as it runs them, in parts and stopped early, and the search for candidates."""
    stored = dict(np.load(path))
    names = [str(name) for name in stored["names"]]
    costs = {name: costs_of(stored, name) for name in names}
    targets, truth = stored["targets"], stored["truth"]
    for _ in range(3):
        start, best, lines = time.perf_counter(), 0.0, []
        for name in names:
            attack_start = time.perf_counter()
            search = rival_search.RivalSearch(costs[name], truth, mean=bool(stored[f"{name}/mean"]))
            hits = np.ones(len(targets))
            for part in np.array_split(np.arange(len(targets)), TARGET_PARTS):
                beaten, ties = search(targets[part])
                hits[part] = np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1))
                if part[-1] + 1 < len(targets) and hits.mean() < best:
                    break
            lines.append(f"{name} {time.perf_counter() - attack_start:.4f}")
            assert abs(hits.mean() - float(stored[f"{name}/rate"])) < 1e-12, name
            best = max(best, hits.mean()) if bool(stored[f"{name}/complete"]) else best
        attack_start = time.perf_counter()
        pair_scan.CheapestSearch(costs[names[0]], mean=bool(stored[f"{names[0]}/mean"]))(np.arange(len(truth)), 50)
        lines.append(f"50 candidates {time.perf_counter() - attack_start:.4f}")
        print(
            f"WorstLinkage, {len(truth):,} x 14: {time.perf_counter() - start:.4f} s ({', '.join(lines)})", flush=True
        )


if __name__ == "__main__":
    print(cuda.name(), f"{cuda.processors()} multiprocessors, {clock() / 1e6:.0f} MHz", flush=True)
    if len(sys.argv) > 1:
        time_worst_linkage(sys.argv[1])
    time_patterns()
    time_groups()
    time_plain_cupy()
    time_pairs(int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000)
