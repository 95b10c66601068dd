"""Time whole measures, methods and sweeps on the CPU and on a GPU of the same machine, and compare the results.

    python bench/gpu/end_to_end.py [records [measures plot sweeps methods]]

Needs sdcmap with its dependencies and CuPy. The first run of each kind compiles the kernels and is not timed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import sdcmap as sm
from jobs_attacks import masked_mixture
from sdcmap.core.streams import Stream
from sdcmap.kernels.device import use_device
from sdcmap.recordwise.neighborhood import Unsafe, assess

OTHER = os.environ.get("OTHER", "gpu")
DEVICES = ("cpu", OTHER)
SCORE_TOLERANCE = 1e-6  # relative


def compare_devices(
    label: str, run: Callable[[str], Any], warm: Callable[[str], Any], same: Callable[[Any, Any], bool]
) -> None:
    """Run on both devices, each after a small run of the same kind; compare the results and print the times."""
    results, seconds = {}, {}
    for device in DEVICES:
        warm(device)
        start = time.perf_counter()
        results[device] = run(device)
        seconds[device] = time.perf_counter() - start
    equal = "the same" if same(*(results[device] for device in DEVICES)) else "NOT the same"
    times = ", ".join(f"{device} {duration:.3f} s" for device, duration in seconds.items())
    print(f"{label}: {times}, {seconds['cpu'] / seconds[OTHER]:.1f} times, {equal}", flush=True)


def measure_label(measure: Any) -> str:
    return f"{type(measure).__name__} {getattr(measure, 'metric', '')}".strip()


def near(a: float, b: float) -> bool:
    return abs(a - b) <= SCORE_TOLERANCE * max(abs(a), abs(b))


def measures(n: int) -> None:
    """Compare attacks on a file of 14 mixed columns, all masked by a chain."""
    large, small = masked_mixture(n), masked_mixture(400)
    numbers, keys = large[0].numeric, large[0].keys
    for measure in (
        sm.WorstLinkage(), sm.risk.Linkage(on=numbers), sm.risk.Linkage("l", on=numbers), sm.risk.NearestRecord("gower"),
        sm.risk.NearestRecord("standardized", on=numbers), sm.risk.Informed(), sm.risk.Calibrated(),
        sm.risk.ClosestRecord(), sm.risk.AttributeInference(secret=keys[0]),
    ):  # fmt: skip

        def run(device: str, files: Any = large, measure: Any = measure) -> float:
            data, chain, masked = files
            return next(iter(sm.score(data, masked, measure, method=chain, seed=1, device=device).values())).value

        try:
            compare_devices(
                f"{measure_label(measure)}, {n:,} x 14", run, lambda device, run=run: run(device, small), near
            )
        except sm.errors.SdcmapError as reason:
            print(f"{measure_label(measure)}: no value, {reason}", flush=True)


def methods(n: int) -> None:
    x = np.random.default_rng(1).standard_normal((n, 8))
    import polars as pl

    data = sm.read(pl.DataFrame({f"x{j}": x[:, j] for j in range(8)}), numeric=[f"x{j}" for j in range(8)])
    for method in (sm.Microaggregate(data.numeric, 3),):

        def run(device: str, rows: int = n, method: Any = method) -> Any:
            with use_device(device):
                return method.apply(data.take(np.arange(rows)), Stream.of_seed(1)).digest

        compare_devices(f"{method.text}, {n:,} x 8", run, lambda device: run(device, 500), lambda a, b: a == b)


def plot(n: int) -> None:
    """Compare the neighbor counts of the confidentiality plot."""
    data, _, masked = masked_mixture(n)
    rule = Unsafe(on=data.numeric, scale="standardized")

    def run(device: str) -> Any:
        with use_device(device):
            return np.asarray(assess(data, masked, rule).neighbors)

    compare_devices(
        f"neighbors of the confidentiality plot, {n:,} x 6", run, run, lambda a, b: bool(np.array_equal(a, b))
    )


def sweeps(n: int, draws: int = 2) -> None:
    """Compare sweeps over chains; workers share the GPU, and their CPU work overlaps with the pairs of other workers."""
    data, _, _ = masked_mixture(n)
    chains = [
        sm.Chain((sm.methods.RandomizedResponse(data.keys, odds), sm.Noise(data.numeric, share)))
        for odds in (2.0, 4.0) for share in (0.05, 0.2)
    ]  # fmt: skip
    plan = sm.Plan(chains, [sm.WorstLinkage(), sm.utility.IL1s(on=data.numeric)], replicates=draws, seed=1)
    values: dict[str, Any] = {}
    for device, workers in (("cpu", 16), (OTHER, 1), (OTHER, 8)):
        with TemporaryDirectory() as folder:
            start = time.perf_counter()
            scores = sm.sweep(data, plan, Path(folder) / "study", workers=workers, device=device)
            duration = time.perf_counter() - start
            values[f"{device} {workers}"] = scores.score.sort("candidate", "measure")["value"].to_numpy()
        print(
            f"sweep of {len(chains) * draws + 1} candidates, {n:,} x 14, {device}, workers {workers}: {duration:.1f} s",
            flush=True,
        )
    first = next(iter(values.values()))
    print(
        "the same:", all(np.allclose(first, other, rtol=SCORE_TOLERANCE, equal_nan=True) for other in values.values())
    )


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores", flush=True)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    jobs = {"measures": measures, "plot": plot, "sweeps": sweeps, "methods": methods}
    for job in sys.argv[2:] or jobs:
        jobs[job](count)
