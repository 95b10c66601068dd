"""Compare a search with a hand-written grid, random search and Optuna, on the same files and measures.

    python bench/search.py run --rows 1000 --seeds 10 -o search.jsonl [--file adult] [--only search cross-grid]
    python bench/search.py table search.jsonl [--markdown]

One line of JSON for each file, seed and contender is appended to the output. Results that are already there are not
computed again, so the run can be interrupted and continued. Files other than the survey are read from $SDCMAP_DATA; each
seed takes its own sample of rows. The risk is WorstLinkage, the loss QueryError.

Every contender ends as a search does. The methods on its frontier are drawn again: five draws to choose by, and five
others to report, with new targets and queries. All numbers in the table are those of the reported draws. For the search,
five further draws show how well the reported numbers can be reproduced. Its bookkeeping is the time that it spent on
anything but making and scoring candidates.

Random search draws points of the same space; with 2.5 times the evaluations it continues from there. Optuna's TPE and
NSGA-II (extra `bench`) search the same space, one candidate at a time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
from sdcmap.kernels.decision.pareto import hypervolume
from sdcmap.searches.evaluation import SearchSession, open_session
from sdcmap.searches.generations import GENERATION_SIZE
from sdcmap.searches.objective_space import ObjectiveSpace
from sdcmap.searches.redraws import REDRAWS, FinalDraws, Member, fresh_area
from sdcmap.searches.search_space import Point, Space
from sdcmap.study.jobs import Job, run_job
from sdcmap.study.plan import Candidate
from sdcmap.study.search_settings import Search
from sdcmap.utility import QueryError

LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
CONFIDENCE_LEVEL = 0.95  # of the intervals in the table
FIRST_FURTHER_DRAW = 100  # draw numbers from here on are not used by a search
Facts = dict[str, Any]


# ---- files ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class File:
    """A file of $SDCMAP_DATA and the columns to use."""

    name: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]

    def sample(self, rows: int, seed: int) -> Microdata:
        """Return a random sample of `rows` rows, or all if there are fewer."""
        frame = pl.read_parquet(Path(os.environ["SDCMAP_DATA"]) / "data" / f"{self.name}.parquet")
        sample = np.sort(np.random.default_rng(seed).permutation(len(frame))[:rows])
        return sm.read(frame[sample].select(*self.keys, *self.numbers), keys=self.keys, numeric=self.numbers)


def survey(rows: int, seed: int) -> Microdata:
    """Return artificial persons of a survey."""
    names = ["Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "wage", "interest", "benefits", "total"]
    return sm.demo.population(rows, seed=seed).only(names)


ADULT = File(
    "adult",
    ("workclass", "education", "marital_status", "occupation", "race", "sex"),
    ("age", "hours_per_week", "capital_gain", "capital_loss"),
)
CASC = File(
    "casc_census", (),
    ("AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL"),
)  # fmt: skip
CPS = File(
    "cps_tax_income", ("RETTYPE", "NCHILD", "AGED", "FIPS"),
    ("AGEHEAD", "WAGES", "TAXINT", "DIVID", "BUSFARM", "SOCSEC", "PENSION", "CAPGAIN"),
)  # fmt: skip
FILES: Mapping[str, Callable[[int, int], Microdata]] = {
    "survey": survey, **{file.name: file.sample for file in (ADULT, CASC, CPS)},
}  # fmt: skip


def cross_grid(data: Microdata) -> list[sm.Method]:
    """Return the methods that a person would write down: 64 chains for keys and numbers, 16 methods for numbers only."""
    keys, numbers = data.keys, data.numeric
    swapped: list[sm.Method] = [sm.RankSwap(numbers, p) for p in (0.05, 0.1, 0.2, 0.4)]
    noisy: list[sm.Method] = [sm.Noise(numbers, variance) for variance in (0.1, 0.5, 1.0, 2.0)]
    grouped: list[sm.Method] = [sm.Microaggregate(numbers, size) for size in (3, 10, 25, 50)]
    if not keys:
        both = [sm.Chain((a, b)) for a, b in zip(grouped, noisy, strict=True)]
        return [*swapped, *noisy, *grouped, *both]
    moved = [sm.PRAM(keys, stay, alpha=1.0) for stay in (0.9, 0.7, 0.5, 0.3)]
    suppressed = [sm.Suppress(keys, k, unmet="leave") for k in (3, 5, 10, 20)]
    pairs = [(moved, swapped), (moved, noisy), (moved, grouped), (suppressed, grouped)]
    return [sm.Chain((a, b)) for first, second in pairs for a, b in itertools.product(first, second)]


# ---- what all contenders share --------------------------------------------------------------------------------
@dataclass(frozen=True)
class Problem:
    """One file and one seed: what every contender gets."""

    data: Microdata
    seed: int
    budget: int

    @cached_property
    def plan(self) -> sm.Plan:
        return sm.Plan([], [sm.WorstLinkage(), QueryError(queries=2000)], seed=self.seed)

    @cached_property
    def space(self) -> Space:
        return Space(self.data, Search(), paired=True).check()

    @contextmanager
    def open(self) -> Iterator[tuple[SearchSession, ObjectiveSpace]]:
        """Open a session on a study of the unmasked file; yield it with the objectives by which all are compared."""
        with private_folder() as folder:
            sm.sweep(self.data, self.plan, folder, workers=1)
            with open_session(self.data, self.plan, folder, workers=1, engine="serial", executor=None) as session:
                yield session, ObjectiveSpace.of(session.scores(()), session.plan)

    def result(self, session: SearchSession, objectives: ObjectiveSpace, methods: Sequence[sm.Method]) -> Facts:
        """Return the result for the methods that were evaluated."""
        scores = session.scores(methods)
        table = objectives.table(scores, session.plan)
        members = FinalDraws(session, objectives, table, scores).members
        area = hypervolume(table.x[table.sound], table.y[table.sound])
        return summarize(members, objectives) | {"area during search": area, "evaluations": len(methods)}

    def area_of_further_draws(self, members: Sequence[Member], objectives: ObjectiveSpace) -> float:
        """Return the area of the same members by further draws, with new targets and queries."""
        measures = tuple(measure.resample().resample().resample() for measure in self.plan.measures)
        redrawn = [replace(member, **self._draw_further(member.method, measures)) for member in members]
        return fresh_area(redrawn, objectives)[1]

    def _draw_further(self, method: sm.Method, measures: tuple[sm.Measure, ...]) -> dict[str, float]:
        candidates = [Candidate(method, FIRST_FURTHER_DRAW + draw) for draw in range(REDRAWS if method.random else 1)]
        rows = [run_job(self.data, Job(c, c.stream(self.seed).key, measures)) for c in candidates]
        risk, loss = np.mean([[score.value for score in row.scores] for row in rows], axis=0)
        return {"fresh_risk": float(risk), "fresh_utility": float(loss)}


def summarize(members: Sequence[Member], objectives: ObjectiveSpace) -> Facts:
    """Return the numbers that are compared, by the reported draws: the area, and the smallest loss within each limit."""
    points = [(m.fresh_risk, m.fresh_utility) for m in members if m.fresh_risk is not None]
    at = {f"loss at {limit:g}": min((u for r, u in points if r <= limit), default=1.0) for limit in LIMITS}
    return {"area": fresh_area(members, objectives)[1], **at, "members": len(members)}


class TimedExecutor(Executor):
    """Run each task at once in this process, and add up the processor seconds."""

    seconds = 0.0

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        start, future = time.process_time(), Future[Any]()
        try:
            future.set_result(task(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        self.seconds += time.process_time() - start
        return future


# ---- contenders -----------------------------------------------------------------------------------------------
def run_search(problem: Problem) -> Iterator[Facts]:
    start, executor = time.process_time(), TimedExecutor()
    result = sm.search(problem.data, problem.plan, problem.budget, workers=1, executor=executor)
    end = time.process_time()
    facts = summarize(result.members, result.objectives) | {
        "area during search": result.history.areas[-1],
        "evaluations": result.evaluations,
    }
    further = problem.area_of_further_draws(result.members, result.objectives)
    yield facts | {
        "further minus reported": further - facts["area"], "dominated early": result.dominated_early,
        "stopped": result.history.stopped, "share of bookkeeping": 1 - executor.seconds / (end - start),
        "seconds to subtract": time.process_time() - end,
    }  # fmt: skip


def run_grid(problem: Problem) -> Iterator[Facts]:
    methods = cross_grid(problem.data)
    with problem.open() as (session, objectives):
        session.evaluate(methods, None)
        yield problem.result(session, objectives, methods)


def run_random(problem: Problem) -> Iterator[Facts]:
    """Run random search, then continue it with more evaluations; dominated candidates are stopped early, as in a search."""
    methods = random_methods(problem.space, round(2.5 * problem.budget), problem.seed)
    done = 0
    with problem.open() as (session, objectives):
        for count in (problem.budget, len(methods)):
            while done < count:
                before = objectives.table(session.scores(methods[:done]), session.plan)
                session.evaluate(methods[done : min(done + GENERATION_SIZE, count)], objectives.early_stop(before))
                done = min(done + GENERATION_SIZE, count)
            yield problem.result(session, objectives, methods[:count])


def random_methods(space: Space, count: int, seed: int) -> list[sm.Method]:
    """Return different methods at random points of the space."""
    rng, methods = np.random.default_rng(seed), {}
    while len(methods) < count:
        point: Point = tuple(map(float, rng.random(len(space.dimensions))))
        method = space.method(point)
        if method is not None:
            methods.setdefault(method.digest, method)
    return list(methods.values())


def run_optuna(problem: Problem, sampler: str) -> Iterator[Facts]:
    """Run Optuna on the same space, one candidate at a time."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = {"TPE": optuna.samplers.TPESampler, "NSGA-II": optuna.samplers.NSGAIISampler}
    space, methods = problem.space, dict[str, sm.Method]()
    with problem.open() as (session, objectives):

        def objective(trial: Any) -> tuple[float, float]:
            point = tuple(
                dimension.coordinate(trial.suggest_categorical(dimension.name, dimension.options)) if dimension.options
                else trial.suggest_float(dimension.name, 0.0, 1.0) for dimension in space.dimensions
            )  # fmt: skip
            method = space.method(point)
            if method is None:
                return 1.0, 1.0
            methods.setdefault(method.digest, method)
            session.evaluate([method], None)
            row = objectives.table(session.scores([method]), session.plan).select((Candidate(method).id,))
            return float(np.nan_to_num(row.x[0], nan=1.0)), float(np.nan_to_num(row.y[0], nan=1.0))

        study = optuna.create_study(directions=["minimize"] * 2, sampler=kinds[sampler](seed=problem.seed))
        study.optimize(objective, n_trials=problem.budget)
        yield problem.result(session, objectives, list(methods.values()))


Run = Callable[[Problem], Iterator[Facts]]
CONTENDERS: Mapping[tuple[str, ...], Run] = {
    ("search",): run_search,
    ("cross-grid",): run_grid,
    ("random", "random x 2.5"): run_random,
    ("Optuna TPE",): lambda problem: run_optuna(problem, "TPE"),
    ("Optuna NSGA-II",): lambda problem: run_optuna(problem, "NSGA-II"),
}


# ---- run, in parts --------------------------------------------------------------------------------------------
def read(path: Path) -> list[Facts]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(options: argparse.Namespace) -> None:
    """Run every requested file, seed and contender that is not in the output yet."""
    done = {(row["file"], row["rows"], row["budget"], row["seed"], row["contender"]) for row in read(options.out)}
    for seed, file in itertools.product(range(options.first, options.first + options.seeds), options.file or FILES):
        problem = Problem(FILES[file](options.rows, seed), seed, options.budget)
        for names, contender in CONTENDERS.items():
            label = {"file": file, "rows": options.rows, "budget": options.budget, "seed": seed}
            wanted = not options.only or set(names) & set(options.only)
            if wanted and any((*label.values(), name) not in done for name in names):
                append_results(options.out, label, names, contender(problem))


def append_results(out: Path, label: Facts, names: Sequence[str], results: Iterator[Facts]) -> None:
    """Append one line for each name of a contender, with the processor seconds until then."""
    start = time.process_time()
    for name, facts in zip(names, results, strict=True):
        seconds = time.process_time() - start - facts.pop("seconds to subtract", 0.0)
        line = json.dumps({**label, "contender": name, **facts, "seconds": seconds})
        with out.open("a") as lines:
            lines.write(f"{line}\n")
        print(line, flush=True)


# ---- the table ------------------------------------------------------------------------------------------------
def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its interval by Student's t; the interval of a single value is infinite."""
    from scipy.special import stdtrit

    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return mean, -np.inf, np.inf
    half = float(stdtrit(count - 1, (1 + CONFIDENCE_LEVEL) / 2) * np.std(values, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half


def compare(rows: Sequence[Facts]) -> Iterator[Facts]:
    """Return, for each file and number, the search minus another contender, paired by seed."""
    numbers = ("area", *(f"loss at {limit:g}" for limit in LIMITS))
    by_name: dict[tuple[str, int, int], dict[str, dict[int, Facts]]] = {}
    for row in rows:
        setting = row["file"], row["rows"], row["budget"]
        by_name.setdefault(setting, {}).setdefault(row["contender"], {})[row["seed"]] = row
    for (file, size, budget), contenders in by_name.items():
        own = contenders.get("search", {})
        for (name, others), number in itertools.product(contenders.items(), numbers):
            seeds = sorted(own.keys() & others.keys())
            if name == "search" or not seeds:
                continue
            mine, theirs = ([of[seed][number] for seed in seeds] for of in (own, others))
            mean, low, high = interval(np.subtract(mine, theirs).tolist())
            yield {
                "file": file, "rows": size, "budget": budget, "against": name, "number": number, "seeds": len(seeds),
                "search": np.mean(mine), "other": np.mean(theirs), "difference": mean, "low": low, "high": high,
            }  # fmt: skip


def markdown_lines(rows: Sequence[Facts]) -> Iterator[str]:
    """Return a line for each file and contender: the search, the other, and the difference with its interval."""
    numbers = ("area", *(f"loss at {limit:g}" for limit in LIMITS))
    lines: dict[tuple[str, str, int], list[str]] = {}
    for row in compare(rows):
        cell = f"{row['search']:.3f}, {row['other']:.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        lines.setdefault((row["file"], row["against"], row["seeds"]), []).append(cell)
    yield f"| file | against | seeds | {' | '.join(numbers)} |"
    yield "|---|---|--:|" + "--:|" * len(numbers)
    for (file, against, seeds), cells in lines.items():
        yield f"| {file} | {against} | {seeds} | {' | '.join(cells)} |"


def table(options: argparse.Namespace) -> None:
    rows = read(options.out)
    if options.markdown:
        print(*markdown_lines(rows), sep="\n")
        return
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_hide_column_data_types=True, fmt_str_lengths=30):
        print(pl.DataFrame(list(compare(rows))))
        for name in ("further minus reported", "share of bookkeeping", "seconds"):
            own = [(row["file"], row[name]) for row in rows if row["contender"] == "search" and name in row]
            for file in dict.fromkeys(file for file, _ in own):
                mean, low, high = interval([value for where, value in own if where == file])
                print(f"search, {file}: {name} {mean:.4f} [{low:.4f}, {high:.4f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="run everything that is not in the output yet")
    running.add_argument("--rows", type=int, default=1000)
    running.add_argument("--budget", type=int, default=200)
    running.add_argument("--first", type=int, default=1, help="first seed")
    running.add_argument("--seeds", type=int, default=10)
    running.add_argument("--file", nargs="*", choices=list(FILES), default=[])
    running.add_argument("--only", nargs="*", default=[], help="only these contenders")
    running.add_argument("-o", "--out", type=Path, default=Path("search.jsonl"))
    running.set_defaults(command=run)
    tabulating = commands.add_parser("table", help="print differences, paired by seed, with intervals")
    tabulating.add_argument("out", type=Path)
    tabulating.add_argument("--markdown", action="store_true", help="print the table of docs/benchmarks.md")
    tabulating.set_defaults(command=table)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
