"""Run jobs in batches: several candidates are made together, and a measure scores all of them at once.

With small files most of the time goes into calls and not into numbers. A batch makes one call for many candidates. It
gives the same rows as one job at a time. If anything goes wrong in a batch, its jobs run one by one, so that a failure
belongs to one candidate.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sdcmap.core import Measure, Method, Microdata, Stream
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.kernels.device import use_device
from sdcmap.study.jobs import (
    CandidateRow,
    Job,
    ScoreRow,
    candidate_row,
    estimate_rows,
    make_refitter,
    run_job,
    score_row,
)

MAX_BATCH_BYTES = 1 << 20  # masked values of one batch, so that they stay in the cache of the processor


def run_jobs(data: Microdata, jobs: Sequence[Job]) -> list[CandidateRow]:
    """Make and score candidates. The rows are those of `run_job`, in the order of the jobs, except for their seconds."""
    rows: dict[int, CandidateRow] = {}
    for batch in _split_into_batches(data, jobs):
        if len(batch) == 1:
            rows[batch[0]] = run_job(data, jobs[batch[0]])
        else:
            with _pause_garbage_collection():
                rows |= _run_batch(data, {index: jobs[index] for index in batch})
    return [rows[index] for index in range(len(jobs))]


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Let the garbage collector wait for the end of a batch, whose many small rows stay and form no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _split_into_batches(data: Microdata, jobs: Sequence[Job]) -> Iterator[Sequence[int]]:
    """Yield the indices of jobs that can run together: those with the same measures."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        # the jobs of a chunk share the objects of their methods and measures, so that these are compared by identity
        alone = bool(job.part) or job.early_stop is not None or job.sparing is not None
        groups[index if alone else (id(job.measures), job.device)].append(index)
    for group in groups.values():
        size = _batch_size(data, [jobs[index] for index in group])
        yield from (group[start : start + size] for start in range(0, len(group), size))


def _batch_size(data: Microdata, jobs: Sequence[Job]) -> int:
    """Return how many of these jobs run together; 1 where no measure scores several files at once."""
    if len(jobs) == 1 or not any(measure.can_score_batch for measure in jobs[0].measures):
        return 1
    methods = {id(job.candidate.method): job.candidate.method for job in jobs}
    columns = max(len(method.masked_names) or len(data.names) for method in methods.values())
    return max(1, MAX_BATCH_BYTES // (8 * columns * max(len(data), 1)))


@dataclass(frozen=True)
class _Draws:
    """The draws of one method in a batch: their jobs by index, the masked files, and the seconds to make one."""

    method: Method
    jobs: dict[int, Job]
    masked: MaskedBatch
    seconds: float


def _run_batch(data: Microdata, jobs: dict[int, Job]) -> dict[int, CandidateRow]:
    """Return the rows of jobs that can run together, by index. The time of scoring is divided equally."""
    rows: dict[int, CandidateRow] = {}
    with use_device(next(iter(jobs.values())).device):
        made = list(_make_draws(data, jobs))
        started = time.perf_counter()
        try:
            scores = iter(_score_together(data, made) if made else ())
        except Exception:
            made = []
        seconds = (time.perf_counter() - started) / len(jobs)
    for draws in made:
        for index, job in draws.jobs.items():
            rows[index] = candidate_row(job, "ok", "", draws.seconds + seconds, next(scores))
    # what failed runs alone: the candidate at fault gets the reason, the others their scores
    return rows | {index: run_job(data, job) for index, job in jobs.items() if index not in rows}


def _make_draws(data: Microdata, jobs: dict[int, Job]) -> Iterator[_Draws]:
    """Make the candidates, method by method. Those of a method that fails are left out."""
    by_method: defaultdict[int, dict[int, Job]] = defaultdict(dict)
    for index, job in jobs.items():
        by_method[id(job.candidate.method)][index] = job
    for own in by_method.values():
        method, started = next(iter(own.values())).candidate.method, time.perf_counter()
        try:
            masked = method.apply_batch(data, [Stream(job.key) for job in own.values()])
        except Exception:
            continue
        yield _Draws(method, own, masked, (time.perf_counter() - started) / len(own))


def _score_together(data: Microdata, made: Sequence[_Draws]) -> list[tuple[ScoreRow, ...]]:
    """Return the scores of each candidate, in the order of the draws."""
    measures = next(iter(made[0].jobs.values())).measures
    masked = MaskedBatch.join([draws.masked for draws in made])
    methods = [draws.method for draws in made]
    columns = [_score_column(measure, data, methods, masked) for measure in measures]
    whole = [column for column in columns if column is not None]
    if len(whole) == len(columns):
        return [*zip(*whole, strict=True)]
    # the other measures look at one file at a time
    scores = []
    for index, (method, job) in enumerate((draws.method, job) for draws in made for job in draws.jobs.values()):
        file, stream = masked.file(index), Stream(job.key)
        refit = make_refitter(data, method, stream)
        scores.append(
            tuple(
                score_row(measure, data, file, stream, method, refit) if column is None else column[index]
                for measure, column in zip(measures, columns, strict=True)
            )
        )
    return scores


def _score_column(
    measure: Measure, data: Microdata, methods: Sequence[Method], masked: MaskedBatch
) -> list[ScoreRow] | None:
    """Return one measure of every file, or None where it has to look at each file on its own."""
    # an attacker who knows the method makes each method a measure of its own
    if not measure.can_score_batch or any(measure.for_informed_attacker(method) is not measure for method in methods):
        return None
    estimates = measure.score_batch(data, masked)
    return None if estimates is None else estimate_rows(measure, estimates)
