"""A search beside a person's cross-grid, random search and Optuna, on the same files, measures and honest ends.

    python bench/search.py run --rows 1000 --seeds 10 -o search.jsonl [--file adult] [--only search cross-grid]
    python bench/search.py table search.jsonl [--markdown]

One line of JSON for each file, seed and contender is appended to the output; what is there already is not run again, so it
can be stopped and gone on with at any time. Files other than the survey are read from $SDCMAP_DATA; of each, a seed takes
its own sample of rows. Risk is WorstLinkage, loss QueryError. Every contender ends as a search does: what it has on its
frontier is drawn again five times to be chosen by and five other times to be reported by, with fresh targets and queries;
all numbers in the table are of the reported draws. Of the search, five further draws say how far the reported ones hold,
and what its time was spent on besides making and scoring is its bookkeeping.
Random search draws points of the same space; with 2.5 times the evaluations it goes on where it was. Optuna's TPE and
NSGA-II (in the extra `bench`) take the same points one at a time.
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
LEVEL = 0.95  # of the intervals in the table
FURTHER = 100  # the number of the first further draw: no purpose of a search has it
Facts = dict[str, Any]


# ---- files ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class File:
    """A file of $SDCMAP_DATA with the columns that are used."""

    name: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]

    def sample(self, rows: int, seed: int) -> Microdata:
        """So many rows at random, or all where there are fewer."""
        frame = pl.read_parquet(Path(os.environ["SDCMAP_DATA"]) / "data" / f"{self.name}.parquet")
        taken = np.sort(np.random.default_rng(seed).permutation(len(frame))[:rows])
        kept = frame[taken].select(*self.keys, *self.numbers)
        return sm.read(kept, keys=self.keys, numeric=self.numbers)


def survey(rows: int, seed: int) -> Microdata:
    """Persons like those of a survey."""
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
    """The chains that a person would write down: 64 where there are keys and numbers, 16 of numbers alone."""
    keys, numbers = data.keys, data.numeric
    swapped: list[sm.Method] = [sm.RankSwap(numbers, p) for p in (0.05, 0.1, 0.2, 0.4)]
    noisy: list[sm.Method] = [sm.Noise(numbers, variance) for variance in (0.1, 0.5, 1.0, 2.0)]
    grouped: list[sm.Method] = [sm.Microaggregate(numbers, size) for size in (3, 10, 25, 50)]
    if not keys:
        both = [sm.Chain((a, b)) for a, b in zip(grouped, noisy, strict=True)]
        return [*swapped, *noisy, *grouped, *both]
    moved = [sm.PRAM(keys, stay, alpha=1.0) for stay in (0.9, 0.7, 0.5, 0.3)]
    blanked = [sm.Suppress(keys, k, unmet="leave") for k in (3, 5, 10, 20)]
    pairs = [(moved, swapped), (moved, noisy), (moved, grouped), (blanked, grouped)]
    return [sm.Chain((a, b)) for first, second in pairs for a, b in itertools.product(first, second)]


# ---- a room in which contenders meet --------------------------------------------------------------------------
@dataclass(frozen=True)
class Workspace:
    """One file, one seed: what every contender is given."""

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
    def opened(self) -> Iterator[tuple[SearchSession, ObjectiveSpace]]:
        """A study of the file as it is, and the plane in which all are measured."""
        with private_folder() as folder:
            sm.sweep(self.data, self.plan, folder, workers=1)
            with open_session(self.data, self.plan, folder, workers=1, engine="serial", executor=None) as shop:
                yield shop, ObjectiveSpace.of(shop.scores(()), shop.plan)

    def ended(self, shop: SearchSession, objectives: ObjectiveSpace, methods: Sequence[sm.Method]) -> Facts:
        """What is told of so many methods that were evaluated."""
        scores = shop.scores(methods)
        table = objectives.table(scores, shop.plan)
        members = FinalDraws(shop, objectives, table, scores).members
        found = hypervolume(table.x[table.sound], table.y[table.sound])
        return told(members, objectives) | {"found area": found, "evaluations": len(methods)}

    def further(self, members: Sequence[Member], objectives: ObjectiveSpace) -> float:
        """The area of the same members by draws, targets and queries that nobody has seen."""
        measures = tuple(measure.resample().resample().resample() for measure in self.plan.measures)
        drawn = [replace(member, **self._drawn(member.method, measures)) for member in members]
        return fresh_area(drawn, objectives)[1]

    def _drawn(self, method: sm.Method, measures: tuple[sm.Measure, ...]) -> dict[str, float]:
        candidates = [Candidate(method, FURTHER + draw) for draw in range(REDRAWS if method.random else 1)]
        rows = [run_job(self.data, Job(c, c.stream(self.seed).key, measures)) for c in candidates]
        risk, loss = np.mean([[score.value for score in row.scores] for row in rows], axis=0)
        return {"fresh_risk": float(risk), "fresh_utility": float(loss)}


def told(members: Sequence[Member], objectives: ObjectiveSpace) -> Facts:
    """What is compared, by the reported draws."""
    both = [(m.fresh_risk, m.fresh_utility) for m in members if m.fresh_risk is not None]
    at = {f"loss at {limit:g}": min((u for r, u in both if r <= limit), default=1.0) for limit in LIMITS}
    return {"area": fresh_area(members, objectives)[1], **at, "members": len(members)}


class Here(Executor):
    """Does at once what it is given, and counts the processor seconds of it."""

    seconds = 0.0

    def submit(self, do: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        began, future = time.process_time(), Future[Any]()
        try:
            future.set_result(do(*given, **named))
        except Exception as error:
            future.set_exception(error)
        self.seconds += time.process_time() - began
        return future


# ---- contenders -----------------------------------------------------------------------------------------------
def searched(room: Workspace) -> Iterator[Facts]:
    began, here = time.process_time(), Here()
    found = sm.search(room.data, room.plan, room.budget, workers=1, executor=here)
    spent = time.process_time()
    facts = told(found.members, found.objectives) | {
        "found area": found.history.areas[-1],
        "evaluations": found.evaluations,
    }
    further = room.further(found.members, found.objectives)
    yield facts | {
        "fresh minus reported": further - facts["area"], "left as beaten": found.dominated_early,
        "stopped": found.history.stopped,
        "share of bookkeeping": 1 - here.seconds / (spent - began), "not its own seconds": time.process_time() - spent,
    }  # fmt: skip


def gridded(room: Workspace) -> Iterator[Facts]:
    methods = cross_grid(room.data)
    with room.opened() as (shop, objectives):
        shop.evaluate(methods, None)
        yield room.ended(shop, objectives, methods)


def drawn(room: Workspace) -> Iterator[Facts]:
    """Random search, and the same with more evaluations; who is beaten by those before is left, as in a search."""
    methods = random_methods(room.space, round(2.5 * room.budget), room.seed)
    made = 0
    with room.opened() as (shop, objectives):
        for count in (room.budget, len(methods)):
            while made < count:
                before = objectives.table(shop.scores(methods[:made]), shop.plan)
                shop.evaluate(methods[made : min(made + GENERATION_SIZE, count)], objectives.early_stop(before))
                made = min(made + GENERATION_SIZE, count)
            yield room.ended(shop, objectives, methods[:count])


def random_methods(space: Space, count: int, seed: int) -> list[sm.Method]:
    """Methods at points drawn at random, each once."""
    rng, methods = np.random.default_rng(seed), {}
    while len(methods) < count:
        point: Point = tuple(map(float, rng.random(len(space.dimensions))))
        method = space.method(point)
        if method is not None:
            methods.setdefault(method.digest, method)
    return list(methods.values())


def by_optuna(room: Workspace, sampler: str) -> Iterator[Facts]:
    """Optuna on the same space, one candidate at a time."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = {"TPE": optuna.samplers.TPESampler, "NSGA-II": optuna.samplers.NSGAIISampler}
    space, methods = room.space, dict[str, sm.Method]()
    with room.opened() as (shop, objectives):

        def objective(trial: Any) -> tuple[float, float]:
            point = tuple(
                dimension.coordinate(trial.suggest_categorical(dimension.name, dimension.options)) if dimension.options
                else trial.suggest_float(dimension.name, 0.0, 1.0) for dimension in space.dimensions
            )  # fmt: skip
            method = space.method(point)
            if method is None:
                return 1.0, 1.0
            methods.setdefault(method.digest, method)
            shop.evaluate([method], None)
            place = objectives.table(shop.scores([method]), shop.plan).select((Candidate(method).id,))
            return float(np.nan_to_num(place.x[0], nan=1.0)), float(np.nan_to_num(place.y[0], nan=1.0))

        study = optuna.create_study(directions=["minimize"] * 2, sampler=kinds[sampler](seed=room.seed))
        study.optimize(objective, n_trials=room.budget)
        yield room.ended(shop, objectives, list(methods.values()))


Run = Callable[[Workspace], Iterator[Facts]]
CONTENDERS: Mapping[tuple[str, ...], Run] = {
    ("search",): searched,
    ("cross-grid",): gridded,
    ("random", "random x 2.5"): drawn,
    ("Optuna TPE",): lambda room: by_optuna(room, "TPE"),
    ("Optuna NSGA-II",): lambda room: by_optuna(room, "NSGA-II"),
}


# ---- running, in pieces ---------------------------------------------------------------------------------------
def read(path: Path) -> list[Facts]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(asked: argparse.Namespace) -> None:
    """Every file, seed and contender that is asked for and not in the output yet."""
    have = {(row["file"], row["rows"], row["budget"], row["seed"], row["contender"]) for row in read(asked.out)}
    for seed, file in itertools.product(range(asked.first, asked.first + asked.seeds), asked.file or FILES):
        room = Workspace(FILES[file](asked.rows, seed), seed, asked.budget)
        for names, contender in CONTENDERS.items():
            label = {"file": file, "rows": asked.rows, "budget": asked.budget, "seed": seed}
            wanted = not asked.only or set(names) & set(asked.only)
            if wanted and any((*label.values(), name) not in have for name in names):
                ran(asked.out, label, names, contender(room))


def ran(out: Path, label: Facts, names: Sequence[str], facts: Iterator[Facts]) -> None:
    """One line for each of a contender's names, with the processor seconds until then."""
    started = time.process_time()
    for name, told_of_it in zip(names, facts, strict=True):
        seconds = time.process_time() - started - told_of_it.pop("not its own seconds", 0.0)
        line = json.dumps({**label, "contender": name, **told_of_it, "seconds": seconds})
        with out.open("a") as lines:
            lines.write(f"{line}\n")
        print(line, flush=True)


# ---- the table ------------------------------------------------------------------------------------------------
def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its interval by Student's t; of one value the whole line."""
    from scipy.special import stdtrit

    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return mean, -np.inf, np.inf
    half = float(stdtrit(count - 1, (1 + LEVEL) / 2) * np.std(values, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half


def compared(rows: Sequence[Facts]) -> Iterator[Facts]:
    """For each file and number: the search less another contender, paired by seed."""
    numbers = ("area", *(f"loss at {limit:g}" for limit in LIMITS))
    by_name: dict[tuple[str, int, int], dict[str, dict[int, Facts]]] = {}
    for row in rows:
        room = row["file"], row["rows"], row["budget"]
        by_name.setdefault(room, {}).setdefault(row["contender"], {})[row["seed"]] = row
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


def in_markdown(rows: Sequence[Facts]) -> Iterator[str]:
    """A line for each file and contender: the search, the other, and the difference with its interval."""
    numbers = ("area", *(f"loss at {limit:g}" for limit in LIMITS))
    lines: dict[tuple[str, str, int], list[str]] = {}
    for row in compared(rows):
        cell = f"{row['search']:.3f}, {row['other']:.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        lines.setdefault((row["file"], row["against"], row["seeds"]), []).append(cell)
    yield f"| file | against | seeds | {' | '.join(numbers)} |"
    yield "|---|---|--:|" + "--:|" * len(numbers)
    for (file, against, seeds), cells in lines.items():
        yield f"| {file} | {against} | {seeds} | {' | '.join(cells)} |"


def table(asked: argparse.Namespace) -> None:
    rows = read(asked.out)
    if asked.markdown:
        print(*in_markdown(rows), sep="\n")
        return
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_hide_column_data_types=True, fmt_str_lengths=30):
        print(pl.DataFrame(list(compared(rows))))
        for name in ("fresh minus reported", "share of bookkeeping", "seconds"):
            own = [(row["file"], row[name]) for row in rows if row["contender"] == "search" and name in row]
            for file in dict.fromkeys(file for file, _ in own):
                mean, low, high = interval([value for where, value in own if where == file])
                print(f"search, {file}: {name} {mean:.4f} [{low:.4f}, {high:.4f}]")


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = ask.add_subparsers(required=True)
    running = verbs.add_parser("run", help="run what is not there yet")
    running.add_argument("--rows", type=int, default=1000)
    running.add_argument("--budget", type=int, default=200)
    running.add_argument("--first", type=int, default=1, help="the first seed")
    running.add_argument("--seeds", type=int, default=10)
    running.add_argument("--file", nargs="*", choices=list(FILES), default=[])
    running.add_argument("--only", nargs="*", default=[], help="contenders")
    running.add_argument("-o", "--out", type=Path, default=Path("search.jsonl"))
    running.set_defaults(verb=run)
    telling = verbs.add_parser("table", help="differences, paired by seed, with intervals")
    telling.add_argument("out", type=Path)
    telling.add_argument("--markdown", action="store_true", help="one line for each file and contender, for the pages")
    telling.set_defaults(verb=table)
    asked = ask.parse_args()
    asked.verb(asked)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
