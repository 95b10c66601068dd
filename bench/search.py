"""A search beside a person's cross-grid and beside random search, on the same file and measures.

    python bench/search.py --rows 1000 --budget 200 --seeds 3 -o search.json

Risk is WorstLinkage, loss QueryError. For each seed: the share of the area (log risk, loss; release everything, lose
everything) after the budget, the loss at five limits of risk, and processor seconds. Random search draws points of the same
space; it is given 1 and 2.5 times the evaluations. Optuna's TPE and NSGA-II join where Optuna is installed. The numbers are
those of one draw each; of the search also those of fresh draws.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.frontier.plane import Plane, Table
from sdcmap.frontier.space import Point, Space
from sdcmap.kernels.decision.hypervolume import hypervolume
from sdcmap.study.search_settings import Search
from sdcmap.utility import QueryError

LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
COLUMNS = ("Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "wage", "interest", "benefits", "total")


def people(rows: int) -> Microdata:
    """Persons like those of a survey."""
    return sm.demo.population(rows, seed=1).only(COLUMNS)


def plan_of(methods: Sequence[sm.Method], seed: int) -> sm.Plan:
    return sm.Plan(methods, [sm.WorstLinkage(), QueryError(queries=2000)], seed=seed)


def cross_grid(data: Microdata) -> list[sm.Method]:
    """64 chains that a person would write down."""
    keys, numbers = data.keys, data.numeric
    moved = [sm.PRAM(keys, stay, alpha=1.0) for stay in (0.9, 0.7, 0.5, 0.3)]
    blanked = [sm.Suppress(keys, k, unmet="leave") for k in (3, 5, 10, 20)]
    swapped = [sm.RankSwap(numbers, p) for p in (0.05, 0.1, 0.2, 0.4)]
    noisy = [sm.Noise(numbers, variance) for variance in (0.1, 0.5, 1.0, 2.0)]
    grouped = [sm.Microaggregate(numbers, size) for size in (3, 10, 25, 50)]
    pairs = [(moved, swapped), (moved, noisy), (moved, grouped), (blanked, grouped)]
    return [sm.Chain((a, b)) for first, second in pairs for a in first for b in second]


def random_methods(space: Space, count: int, seed: int) -> list[sm.Method]:
    """Methods at points drawn at random, each once."""
    rng, methods = np.random.default_rng(seed), {}
    while len(methods) < count:
        point: Point = tuple(map(float, rng.random(len(space.dimensions))))
        method = space.method(point)
        if method is not None:
            methods.setdefault(method.digest, method)
    return list(methods.values())


def told(table: Table, seconds: float, evaluations: int) -> dict[str, Any]:
    """What is compared."""
    at = {f"loss at {limit:g}": float(np.min(table.loss[table.risk <= limit], initial=1.0)) for limit in LIMITS}
    area = hypervolume(table.x[table.sound], table.y[table.sound])
    return {"area": area, **at, "seconds": seconds, "evaluations": evaluations}


def swept(data: Microdata, plane: Plane, methods: Sequence[sm.Method], seed: int) -> dict[str, Any]:
    started = cpu()
    plan = plan_of(methods, seed)
    return told(plane.table(sm.sweep(data, plan, workers=1), plan), cpu() - started, len(methods))


def searched(data: Microdata, plane: Plane, budget: int, seed: int) -> dict[str, Any]:
    started = cpu()
    found = sm.search(data, plan_of([], seed), budget, workers=1)
    before, after = found.fresh_areas
    facts = told(plane.table(found.scores, found.plan), cpu() - started, found.evaluations)
    return facts | {
        "fresh minus found": after - before,
        "areas": list(found.growth.areas),
        "stopped": found.growth.stopped,
    }


def optuna_run(data: Microdata, plane: Plane, space: Space, budget: int, seed: int, sampler: str) -> dict[str, Any]:
    """Optuna on the same space, one candidate at a time."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = {"TPE": optuna.samplers.TPESampler, "NSGA-II": optuna.samplers.NSGAIISampler}
    methods: list[sm.Method] = []

    def objective(trial: Any) -> tuple[float, float]:
        point = tuple(
            space.dimensions[i].coordinate(trial.suggest_categorical(d.name, d.options)) if d.options
            else trial.suggest_float(d.name, 0.0, 1.0) for i, d in enumerate(space.dimensions)
        )  # fmt: skip
        method = space.method(point)
        if method is None:
            return 1.0, 1.0
        methods.append(method)
        plan = plan_of([method], seed)
        table = plane.table(sm.sweep(data, plan, workers=1), plan)
        return (float(table.x[0]), float(table.y[0])) if len(table) else (1.0, 1.0)

    started = cpu()
    optuna.create_study(directions=["minimize"] * 2, sampler=kinds[sampler](seed=seed)).optimize(
        objective, n_trials=budget
    )
    return swept(data, plane, methods, seed) | {"seconds": cpu() - started}


def contenders(data: Microdata, budget: int, seed: int) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    space = Space(data, Search()).checked()
    empty = plan_of([], seed)
    plane = Plane.of(sm.sweep(data, empty, workers=1), empty)
    yield "search", lambda: searched(data, plane, budget, seed)
    yield "cross-grid", lambda: swept(data, plane, cross_grid(data), seed)
    yield "random", lambda: swept(data, plane, random_methods(space, budget, seed), seed)
    yield "random x 2.5", lambda: swept(data, plane, random_methods(space, round(2.5 * budget), seed), seed)
    try:
        import optuna  # noqa: F401
    except ImportError:
        return
    for sampler in ("TPE", "NSGA-II"):
        yield f"Optuna {sampler}", lambda s=sampler: optuna_run(data, plane, space, budget, seed, s)  # type: ignore[misc]


def cpu() -> float:
    return time.process_time()


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=1000)
    ask.add_argument("--budget", type=int, default=200)
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--only", nargs="*", default=[])
    ask.add_argument("-o", "--out", type=Path, default=Path("search.json"))
    asked = ask.parse_args()
    data, rows = people(asked.rows), []
    for seed in range(1, asked.seeds + 1):
        for name, run in contenders(data, asked.budget, seed):
            if not asked.only or name in asked.only:
                rows.append({"contender": name, "seed": seed, "rows": asked.rows, **run()})
                print(json.dumps(rows[-1]), flush=True)
                asked.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
