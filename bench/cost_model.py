"""Fit a cost model of a sweep: processor seconds per candidate as a function of records, variables and measures.

    python bench/cost_model.py            fit on a grid of runs, check on other runs, predict a census
    python bench/cost_model.py --short    fit on a third of the grid

Two families cover the extremes. "Counting" is a swap with measures of the table of all keys: integer operations, a few per
record. "Arithmetic" is independent noise with measures of numbers: floating-point operations. For each family,

    seconds = fixed + records * (mask + mask_log * log2(records) + mask_each * variables
                                 + measures * (score + score_each * variables))

is fitted by least squares on relative errors, with no coefficient below zero. The value of a run is the smallest processor
time of four candidates, after the base table was counted. It does not include waiting for other programs, the start of
workers, and storage.
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
FIT_POINTS = [(n, k, m) for n in (30_000, 200_000, 1_500_000) for k in (4, 6, 8) for m in (1, 2, 4)]
CHECK_POINTS = [(100_000, 5, 3), (700_000, 7, 2), (3_000_000, 5, 1)]
CENSUS, CANDIDATES, CORES = 330_000_000, 1_000, 256


def counting(n: int, variables: int) -> Microdata:
    return generated_census(n, {f"v{index}": 2 + index % 4 for index in range(variables)})


def arithmetic(n: int, variables: int) -> Microdata:
    rng = np.random.default_rng(1)
    return sm.read(pl.DataFrame({f"v{index}": rng.lognormal(9, 1, n) for index in range(variables)}), numeric="all")


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
        known = tuple(
            sm.IL1s(on=names[index:] + names[:index]) for index in range(4)
        )  # four measures with the same cost
    plan = sm.Plan(method, known[:measures], replicates=4, seed=2**130)
    return [Job(c, c.stream(1).key, plan.measures) for c in plan.candidates if c.method.random]


def run_seconds(family: str, n: int, variables: int, measures: int) -> float:
    """Return the smallest processor time of a candidate."""
    data = {"counting": counting, "arithmetic": arithmetic}[family](n, variables)
    jobs = jobs_of(family, data.names, measures)
    run_here(data, jobs[:1])  # compiles the kernels and counts the base table
    best = float("inf")
    for job in jobs:
        start = time.process_time()
        run_here(data, [job])
        best = min(best, time.process_time() - start)
    return best


def terms(n: int, variables: int, measures: int) -> list[float]:
    return [1.0, n, n * math.log2(n), n * variables, n * measures, n * measures * variables]


def fit(points: list[tuple[tuple[int, int, int], float]]) -> np.ndarray:
    """Return the coefficients with the least squares of relative errors, none below zero."""
    weights = np.array([1 / seconds for _, seconds in points])
    design = np.array([terms(*point) for point, _ in points]) * weights[:, None]
    scale = design.max(axis=0)
    return nnls(design / scale, np.ones(len(points)))[0] / scale


def main(short: bool = False) -> None:
    grid = FIT_POINTS[::3] if short else FIT_POINTS
    results = {}
    for family in ("counting", "arithmetic"):
        points = [(point, run_seconds(family, *point)) for point in grid]
        model = fit(points)
        errors = [terms(*point) @ model / seconds - 1 for point, seconds in points]
        print(f"\n{family}: fitted on {len(points)} runs, median relative error {np.median(np.abs(errors)):.0%}")
        print("  " + ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, model, strict=True)))
        print("   records variables measures  predicted  measured  ratio   (runs that were not fitted)")
        checks = []
        for point in CHECK_POINTS:
            seconds, predicted = run_seconds(family, *point), float(terms(*point) @ model)
            checks.append({"point": point, "predicted": predicted, "measured": seconds})
            print(
                f"{point[0]:>10,} {point[1]:>9} {point[2]:>8} {predicted:>10.4f} {seconds:>9.4f} "
                f"{predicted / seconds:>6.2f}"
            )
        census = float(terms(CENSUS, 8, 2) @ model)
        hours = census * CANDIDATES / 3600
        print(f"  a census of {CENSUS:,} records, 8 variables, 2 measures: {census:.2f} s per candidate;")
        print(f"  {CANDIDATES:,} candidates: {hours:.2f} core hours, {60 * hours / CORES:.1f} min on {CORES} cores")
        results[family] = {
            "model": dict(zip(NAMES, map(float, model), strict=True)),
            "checked": checks,
            "census_seconds": census,
        }
    (Path(__file__).parent / "cost_model.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main("--short" in sys.argv)
