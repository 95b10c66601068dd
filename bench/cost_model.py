"""A cost model of a sweep: processor seconds a candidate as a function of records, variables and measures.

    python bench/cost_model.py            fit on a grid of runs, check on runs it was not fitted on, plan a census

Two families cover the extremes. Counting (a swap, with measures of the table of all keys) touches each record a few times
with integers; arithmetic (correlated noise, with measures of numbers) with floats. For each,

    seconds = fixed + records * (mask + mask_log * log2(records) + mask_each * variables
                                 + measures * (score + score_each * variables))

is fitted by least squares on relative errors, with no coefficient below zero. A run's figure is the least processor time of
four candidates, the base already counted: waiting for other programs is not in it, nor are worker start and storage.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import nnls

import sdcmap as sm
from jobs import generated_census
from sdcmap.data.microdata import Microdata
from sdcmap.study.jobs import Job
from sdcmap.study.worker import run_here

NAMES = ("fixed", "mask", "mask_log", "mask_each", "score", "score_each")
FITTED = [(n, k, m) for n in (30_000, 200_000, 1_500_000) for k in (4, 6, 8) for m in (1, 2, 4)]
CHECKED = [(100_000, 5, 3), (700_000, 7, 2), (3_000_000, 5, 1)]
CENSUS, CANDIDATES, CORES = 330_000_000, 1_000, 256


def counting(n: int, variables: int) -> Microdata:
    return generated_census(n, {f"v{place}": 2 + place % 4 for place in range(variables)})


def arithmetic(n: int, variables: int) -> Microdata:
    rng = np.random.default_rng(1)
    return sm.read(pl.DataFrame({f"v{place}": rng.lognormal(9, 1, n) for place in range(variables)}), numeric="all")


def jobs_of(family: str, names: tuple[str, ...], measures: int) -> list[Job]:
    if family == "counting":
        method: sm.Method = sm.Swap(on=names[:1], rate=0.02)
        known = (
            sm.SmallCells(on=names),
            sm.Hellinger(on=names),
            sm.utility.TotalVariation(on=names),
            sm.SmallCells(on=names, n=5),
        )
    else:
        method = sm.Noise(on=names, variance=0.1)
        known = tuple(sm.IL1s(on=names[place:] + names[:place]) for place in range(4))  # four of one cost
    plan = sm.Plan(method, known[:measures], replicates=4, seed=2**130)
    return [Job(c, c.stream(1).key, plan.measures) for c in plan.candidates if c.method.random]


def measured(family: str, n: int, variables: int, measures: int) -> float:
    """The least processor seconds of a candidate."""
    data = {"counting": counting, "arithmetic": arithmetic}[family](n, variables)
    jobs = jobs_of(family, data.names, measures)
    run_here(data, jobs[:1])  # kernels compiled, the base counted
    best = float("inf")
    for job in jobs:
        start = time.process_time()
        run_here(data, [job])
        best = min(best, time.process_time() - start)
    return best


def terms(n: int, variables: int, measures: int) -> list[float]:
    return [1.0, n, n * math.log2(n), n * variables, n * measures, n * measures * variables]


def fit(points: list[tuple[tuple[int, int, int], float]]) -> np.ndarray:
    """Least squares of relative errors, no coefficient below zero."""
    weights = np.array([1 / seconds for _, seconds in points])
    design = np.array([terms(*point) for point, _ in points]) * weights[:, None]
    scale = design.max(axis=0)
    return nnls(design / scale, np.ones(len(points)))[0] / scale


def main(short: bool = False) -> None:
    grid = FITTED[::3] if short else FITTED
    results = {}
    for family in ("counting", "arithmetic"):
        points = [(point, measured(family, *point)) for point in grid]
        model = fit(points)
        errors = [terms(*point) @ model / seconds - 1 for point, seconds in points]
        print(f"\n{family}: fitted on {len(points)} runs, median relative error {np.median(np.abs(errors)):.0%}")
        print("  " + ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, model, strict=True)))
        print("   records variables measures  predicted  measured  ratio   (not fitted on)")
        checks = []
        for point in CHECKED:
            seconds, predicted = measured(family, *point), float(terms(*point) @ model)
            checks.append({"point": point, "predicted": predicted, "measured": seconds})
            print(
                f"{point[0]:>10,} {point[1]:>9} {point[2]:>8} {predicted:>10.4f} {seconds:>9.4f} "
                f"{predicted / seconds:>6.2f}"
            )
        census = float(terms(CENSUS, 8, 2) @ model)
        hours = census * CANDIDATES / 3600
        print(f"  a census of {CENSUS:,} records, 8 variables, 2 measures: {census:.2f} s a candidate;")
        print(f"  {CANDIDATES:,} candidates: {hours:.2f} core hours, {60 * hours / CORES:.1f} min of {CORES} cores")
        results[family] = {
            "model": dict(zip(NAMES, map(float, model), strict=True)),
            "checked": checks,
            "census_seconds": census,
        }
    (Path(__file__).parent / "cost_model.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main("--short" in sys.argv)
