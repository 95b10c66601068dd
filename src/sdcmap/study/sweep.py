"""The sweep: make and score every candidate of a plan. Each number is stored once, whatever the engine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from threadpoolctl import threadpool_limits

from sdcmap.core import Measure, Microdata, PlanError
from sdcmap.files.block_reader import check_memory
from sdcmap.files.working_copy import temporary_copy
from sdcmap.kernels.machine import cores
from sdcmap.kernels.scratch_memory import limit_memory
from sdcmap.study.device_choice import explain_gpu_loss, resolve_device
from sdcmap.study.engines import CHUNK_SECONDS, check_engine, run_all, worker_pool
from sdcmap.study.folder import CandidateState, Study
from sdcmap.study.further_draws import find_further_draws
from sdcmap.study.jobs import CandidateRow, Job, Kind
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Progress, progress_bar
from sdcmap.study.scores import Scores
from sdcmap.study.spared_measures import Sparing
from sdcmap.study.worker import run_here

MissingScores = tuple[Candidate, tuple[Measure, ...]]  # a candidate and its missing measures
NOTHING_STORED = CandidateState()
POOL_START_SECONDS = 2.0  # about the time that worker processes need to start


def sweep(
    data: Microdata, plan: Plan, study: str | Path | None = None, *, workers: int | None = None, engine: str | None = None,
    executor: Executor | None = None, progress: Progress | None = None, memory: int = 0, device: str = "cpu",
) -> Scores:  # fmt: skip
    """Make and score every candidate of `plan`. An interrupted sweep of the study is continued.

    Parameters
    ----------
    study : folder to keep the scores in; None keeps them in memory.
    workers : number of workers; by default one per core that this process may use.
    engine : "serial", "threads", "processes", "dask" (a cluster on this machine) or "dask://HOST:PORT"; by default serial
        with one worker, and otherwise processes as soon as starting them pays off. The results are the same.
    executor : an executor of your own instead, such as a Dask client's `client.get_executor(pure=False)`.
    memory : bytes that the sweep may use on this machine (0: no limit); large arrays are then kept in files of the study.
        Data that do not fit in memory come from `read_in_blocks`.
    device : "cpu"; "gpu" for attacks and groups with GPU kernels, an error without a GPU; "auto": a GPU where one
        is usable, otherwise the CPU, with one line of explanation. Workers of one machine share its GPU.
    progress : called with (candidates done, candidates in all); by default a bar on a terminal.

    A plan to choose by that names no risk measure gets those of `default_risk`. A candidate that cannot be made, and a
    measure that has no value, are stored with the reason; neither ends the sweep. Ctrl-C leaves a valid study.
    """
    workers = workers or cores()
    may_avoid_pool = engine is None and executor is None and workers > 1
    engine = engine or ("serial" if workers == 1 else "processes")
    check_engine(engine)
    asked = resolve_device(device)
    process_count = 1 + workers if engine == "processes" else 1  # on this machine, with this one
    check_memory(memory, len(data), process_count)
    plan = plan.with_risk(data)
    if problems := plan.problems_with(data):
        raise PlanError(problems)
    with (
        Study.begin(study, data, plan) as opened,
        limit_memory(memory // process_count, opened.path or Path(tempfile.gettempdir())),
        threadpool_limits(1),
        explain_gpu_loss(),
        progress_bar(gpu=asked.gpu) if progress is None else nullcontext(progress) as report,
    ):
        plan = opened.bind_plan(plan)
        opened.add_measures(plan.measures, data)
        opened.note_gpu(asked.gpu)
        opened.reopen_spared_scores(plan)
        done = opened.candidate_states()
        finished = plan.count - sum(1 for _ in _missing_scores(done, plan)) if done else 0
        report(finished, plan.count)
        # one candidate of each class first: it compiles the kernels into the cache before workers start
        for job in _make_jobs(_first_of_each_class(done, plan), plan, asked.name):
            opened.add(run_here(data, [job]))
            done[job.candidate.id] = CandidateState("ok", frozenset(measure.id for measure in plan.measures))
            finished += 1
        total = plan.count

        def run_jobs(todo: Iterator[Job]) -> None:
            nonlocal finished
            # small sweeps are finished before a pool would have started
            for batch in _run_before_pool(data, todo, total - finished) if may_avoid_pool else ():
                opened.add(batch)
                finished += len(batch)
                report(finished, total)
            if finished < total:
                here = executor is None and engine in ("serial", "threads")
                with (
                    nullcontext() if here else _working_copy(opened.path, data) as copy,
                    worker_pool(engine, workers, executor, data, copy, memory // process_count) as (make, run),
                ):
                    for batch in run_all(todo, run, make, workers):
                        opened.add(batch)
                        finished += len(batch)
                        report(finished, total)

        run_jobs(_make_jobs(_missing_scores(done, plan), plan, asked.name))
        if further := _missing_further_draws(opened, plan):
            finished, total = plan.count, plan.count + len(further)
            run_jobs(_make_jobs(further, plan, asked.name, kind="fresh"))
        report(total, total)
        return opened.scores(plan)


def _missing_further_draws(study: Study, plan: Plan) -> list[MissingScores]:
    """Return the further draws of candidates that could be released, with the measures that the study lacks."""
    if not (plan.limits or plan.rule):
        return []
    done = study.candidate_states()
    states = (
        (one, measures, done.get(one.id, NOTHING_STORED))
        for one, measures in find_further_draws(plan, study.scores(plan))
    )
    left = (
        (one, tuple(m for m in measures if m.id not in state.measures), state.status) for one, measures, state in states
    )
    return [(one, measures) for one, measures, status in left if measures and status in ("", "ok")]


def _working_copy(study: Path | None, data: Microdata) -> AbstractContextManager[Path]:
    """Return the folder with the data for the workers: the study's copy, or a temporary one."""
    return nullcontext(study.resolve()) if study else temporary_copy(data)


def _missing_scores(done: Mapping[str, CandidateState], plan: Plan) -> Iterator[MissingScores]:
    """Yield each candidate that lacks a score, with the missing measures."""
    # candidates that lack the same measures share one tuple of them, by which they are scored in batches
    ordered = sorted(plan.measures, key=lambda measure: measure.can_be_spared)
    lacking_beside = cache(lambda have: tuple(measure for measure in ordered if measure.id not in have))
    for candidate in plan.candidates:
        status, have = done.get(candidate.id, NOTHING_STORED)
        lacking = lacking_beside(have)
        if status in ("", "ok") and lacking:
            yield candidate, lacking


def _make_jobs(
    lacking: Iterable[MissingScores], plan: Plan, device: str, kind: Kind | None = None
) -> Iterator[Job]:  # fmt: skip
    # the unmasked file is the end of every axis, so all of its values are computed
    sparing = {"candidate": Sparing.of_plan(plan), "identity": None}
    return (
        Job(each, each.stream(plan.seed).key, measures, kind, sparing=sparing[each.kind], device=device)
        for each, measures in lacking
    )


def _first_of_each_class(done: Mapping[str, CandidateState], plan: Plan) -> Iterator[MissingScores]:
    """Yield the first candidate of each class of methods that lacks a score."""
    classes = {type(method) for method in plan.all_methods}
    for candidate, measures in _missing_scores(done, plan):
        if type(candidate.method) in classes:
            classes.remove(type(candidate.method))
            yield candidate, measures
        if not classes:
            return


def _run_before_pool(data: Microdata, todo: Iterator[Job], left: int) -> Iterator[list[CandidateRow]]:
    """Yield rows computed in this process, until the remaining work would take longer than starting worker processes."""
    started, made, size = time.perf_counter(), 0, 1
    while chunk := list(islice(todo, size)):
        yield run_here(data, chunk)
        made += len(chunk)
        spent = time.perf_counter() - started
        if spent > POOL_START_SECONDS / 10 and spent / made * (left - made) > POOL_START_SECONDS:
            return
        size = max(1, int(CHUNK_SECONDS * made / max(spent, 1e-6)))


@dataclass(frozen=True)
class SweepProgress:
    """The progress of a sweep. `refused`: (method, candidates, reason) of those that could not be made."""

    total: int
    done: int
    counts: dict[str, int]
    refused: tuple[tuple[str, int, str], ...]


def read_progress(study: Path, plan: Plan | None = None) -> SweepProgress:
    """Return the progress of a study with its plan, or with a plan that has grown; a sweep may be writing meanwhile."""
    with Study.open(study) as opened:
        plan = plan or opened.plan
        done = opened.candidate_states()
        releases = "kind in ('candidate', 'identity')"
        ask = opened.connection.execute
        counts = dict(ask(f"select status, count(*) from candidate where {releases} group by status"))
        unmade = f"from candidate where status <> 'ok' and {releases} group by method order by 1"
        refused = ask(f"select method, count(*), min(reason) {unmade}").fetchall()
    left, names = sum(1 for _ in _missing_scores(done, plan)), plan.method_names
    named = tuple((names.get(method, method), count, reason) for method, count, reason in refused)
    return SweepProgress(plan.count, plan.count - left, counts, named)
