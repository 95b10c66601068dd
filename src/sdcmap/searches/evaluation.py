"""Evaluate proposals with the engine of a sweep and store each number once, in the study of the plan.

Screenings, bounds and redraws are rows of their own kinds, so none of them is on the map. Losses are measured first,
then attacks from cheap to expensive. A candidate that is already dominated is not measured further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from sdcmap.core import Measure, Method, Microdata, Stream
from sdcmap.kernels.machine import cores
from sdcmap.study.device_choice import explain_gpu_loss, resolve_device
from sdcmap.study.early_stop import EarlyStop
from sdcmap.study.engines import Run, check_engine, run_all, share_executor, worker_pool
from sdcmap.study.folder import CandidateState, Study
from sdcmap.study.jobs import Job, Kind, row_id
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores
from sdcmap.study.sweep import POOL_START_SECONDS

MIN_POOL_SECONDS = 3 * POOL_START_SECONDS  # with less work, starting processes costs more than it saves


@dataclass(frozen=True)
class SearchSession:
    """An open study with the workers of its engine. plan : with the study's seed."""

    data: Microdata
    plan: Plan
    study: Study = field(repr=False)
    make: Callable[[], Executor] = field(repr=False)
    run: Run = field(repr=False)
    workers: int
    device: str = "cpu"

    # ---- scores -------------------------------------------------------------------------------------------------
    def scores(self, methods: Sequence[Method]) -> Scores:
        """Return the scores of the plan's own candidates and of these methods, one draw each."""
        return self.study.scores(self.plan.with_searched_methods(methods))

    def evaluate(self, methods: Sequence[Method], early_stop: EarlyStop | None) -> None:
        """Score one draw of each method by every measure, losses first, unless `early_stop` says that it is dominated."""
        measures, done = order_measures(self.plan, self.data), self.study.candidate_states()
        left = [c for c in map(Candidate, methods) if not self._is_dominated(c, early_stop, done)]
        self._run([self._job(c, measures, early_stop=early_stop) for c in left], done)

    def draw_again(self, candidates: Sequence[Candidate], plan: Plan) -> None:
        """Score new draws by the measures of `plan`."""
        self.study.add_measures(plan.measures, self.data)
        self._run([self._job(c, plan.measures, kind="fresh") for c in candidates], self.study.candidate_states())

    def screen(self, methods: Sequence[Method]) -> Scores:
        """Return the axes of each method, computed on a quarter of the rows: the same rows for all."""
        plan = screening_plan(self.plan, self.data)
        self.study.add_measures(plan.measures, self.data)
        key = Stream.of_seed(self.plan.seed, "screening rows").key
        jobs = [self._job(c, plan.measures, kind="screening", part=key) for c in map(Candidate, methods)]
        self._run(jobs, self.study.candidate_states())
        return self.study.scores_of(plan, [method_id(method, "screening") for method in methods])

    # ---- jobs ---------------------------------------------------------------------------------------------------
    def _job(
        self, candidate: Candidate, measures: tuple[Measure, ...], *, kind: Kind | None = None, part: bytes = b"",
        early_stop: EarlyStop | None = None,
    ) -> Job:  # fmt: skip
        stream = candidate.stream(self.plan.seed)
        key = (stream.child("screening") if part else stream).key
        return Job(candidate, key, measures, kind, part, early_stop, device=self.device)

    def _run(self, jobs: Sequence[Job], done: Mapping[str, CandidateState]) -> None:
        """Run the jobs that are not stored yet, in their order, and store rows as they arrive."""
        lacking = [job for job in jobs if not _is_done(job, done)]
        for rows in run_all(iter(lacking), self.run, self.make, self.workers) if lacking else ():
            self.study.add(rows)

    def _is_dominated(
        self, candidate: Candidate, early_stop: EarlyStop | None, done: Mapping[str, CandidateState]
    ) -> bool:
        """Return whether a stored bound shows that the candidate is dominated."""
        name = row_id(candidate, "bound")
        if early_stop is None or name not in done:
            return False
        return early_stop.is_dominated(
            dict(self.study.scores_of(self.plan, [name]).score.select("measure", "value").iter_rows())
        )


def _is_done(job: Job, done: Mapping[str, CandidateState]) -> bool:
    """Return whether the study has every measure of a job, or the reason why it failed."""
    status, have = done.get(row_id(job.candidate, job.kind or job.candidate.kind), CandidateState())
    return status not in ("", "ok") or (status == "ok" and all(measure.id in have for measure in job.measures))


def method_id(method: Method, kind: Kind) -> str:
    """Return the id of the row of a method's screening, or of its bound."""
    return row_id(Candidate(method), kind)


def order_measures(plan: Plan, data: Microdata) -> tuple[Measure, ...]:
    """Return the measures of a plan in the order of evaluation: losses, then risks on the axis, cheap ones first."""

    # A candidate can be recognized as dominated as soon as its loss and one risk are known. Cheap measures first saves
    # the expensive attacks on such candidates.
    def rank(measure: Measure) -> tuple[bool, bool, bool, float, float]:
        on_axis = measure.text in (*plan.risk, plan.utility)
        return measure.axis == "risk", not on_axis, needs_refits(measure), measure.growth, measure.seconds(data) or 0.0

    return tuple(sorted(plan.measures, key=rank))


def needs_refits(measure: Measure) -> bool:
    """Return whether a measure may request refits of the method, which makes it expensive."""
    return type(measure).refits is not Measure.refits


def screening_plan(plan: Plan, data: Microdata) -> Plan:
    """Return the plan with only the measures of its axes, in their screening variants.

    Measures with refits are left out, unless no other measure is on the risk axis.
    """
    by_text = {measure.text: measure for measure in plan.measures}
    risk = tuple(name for name in plan.risk if not needs_refits(by_text[name])) or plan.risk
    quick = {name: by_text[name].screening_variant(data) for name in (*risk, plan.utility)}
    return replace_measures(plan, quick, risk, [name for name in risk if name in plan.limits])


def replace_measures(plan: Plan, measures: Mapping[str, Measure], risk: Iterable[str], limits: Iterable[str]) -> Plan:
    """Return the plan with these measures in place of those named, with this risk axis and these limits."""
    names = {name: measure.text for name, measure in measures.items()}
    return replace(
        plan, measures=tuple(measures.values()), risk=tuple(names[name] for name in risk), utility=names[plan.utility],
        limits={names[name]: plan.limits[name] for name in limits}, rule=None, profile=None, search=None, search_methods=(),
    )  # fmt: skip


# ---- opening --------------------------------------------------------------------------------------------------
@contextmanager
def open_session(
    data: Microdata, plan: Plan, folder: Path, *, workers: int | None, engine: str | None, executor: Executor | None,
    device: str = "cpu",
) -> Iterator[SearchSession]:  # fmt: skip
    """Open the study of a plan that was swept into `folder`, with workers that serve the whole search."""
    workers = workers or cores()
    with Study.begin(folder, data, plan) as study, threadpool_limits(1):
        bound = study.bind_plan(plan)
        engine = engine or _choose_engine(study, bound, workers)
        check_engine(engine)
        copy = None if executor is None and engine in ("serial", "threads") else folder.resolve()
        with (
            worker_pool(engine, workers, executor, data, copy) as (make, run),
            share_executor(make) as again,
            explain_gpu_loss(),
        ):
            yield SearchSession(data, bound, study, again, run, workers, resolve_device(device).name)


def _choose_engine(study: Study, plan: Plan, workers: int) -> str:
    """Return "processes" where the budget outweighs their start, judged by the plan's own candidates; else "serial"."""
    taken = study.scores(plan).candidate["seconds"].to_list()
    budget = 0 if plan.search is None else plan.search.budget
    return "processes" if workers > 1 and budget * sum(taken) / max(len(taken), 1) > MIN_POOL_SECONDS else "serial"
