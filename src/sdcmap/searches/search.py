"""`search`: from a plan to the releases that no other release dominates, and how certain that is."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from sdcmap.choose.by_release import NO_MASKING_NEEDED
from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
from sdcmap.map import RUMap
from sdcmap.searches.evaluation import open_session
from sdcmap.searches.generations import SearchHistory, SearchRunner
from sdcmap.searches.objective_space import ObjectiveSpace
from sdcmap.searches.redraws import FinalDraws, choose_member
from sdcmap.searches.search_results import SearchResult
from sdcmap.searches.search_space import Space
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress, Watch, search_bar
from sdcmap.study.search_settings import Search
from sdcmap.study.sweep import sweep

UNLIMITED_BUDGET = 100_000  # evaluations, where only a time is stated


def search(
    data: Microdata, plan: Plan, budget: int | None = None, *, minutes: float | None = None,
    study: str | Path | None = None, workers: int | None = None, engine: str | None = None,
    executor: Executor | None = None, device: str = "cpu", progress: Progress | None = None, watch: Watch | None = None,
) -> SearchResult:  # fmt: skip
    """Search for undominated releases. An earlier search of the study is continued.

    Parameters
    ----------
    data : the file, with roles stated: they determine what may be done to it.
    plan : measures, axes, limits and rule; its own methods are evaluated first, outside the budget, so that the result is
        never worse than they are. Its `[search]` table says what is fixed (see `Search`).
    budget : full evaluations of new methods, one draw each, at least 24; by default the plan's, else 200.
    minutes : end after the generation in which this time has passed.
    study : folder to keep everything in; None keeps only the returned result.
    workers, engine, executor, device, progress : as in `sweep`; progress reports the plan's own candidates.
    watch : called after each generation with (evaluations, budget, share of the area); by default a bar.

    The search begins with 24 methods spread over everything that may be done to the file. Then follow generations of 8,
    selected from 24 children of the best so far by what they would add to the area, on a quarter of the rows. The area is
    the region dominated in log risk and loss, relative to the reference (the risk of the unmasked file, a total loss). The
    same seed gives the same candidates, whatever the engine and however often the search was interrupted. Finally the
    frontier is drawn again: some draws to choose by, others to report.

    Examples
    --------
    >>> import sdcmap as sm
    >>> people = sm.demo.population(120).only(["Age", "Sex", "wage"])
    >>> plan = sm.Plan(sm.PRAM(["Age", "Sex"]), [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)], seed=1)
    >>> found = sm.search(people, plan, budget=24, workers=1)
    >>> found.evaluations, found.history.stopped
    (24, 'the budget of 24 evaluations is used up')
    """
    plan = _with_settings(plan, budget, minutes)
    settings = plan.search or Search()
    judged = plan.with_risk(data)
    space = Space(data, settings, plan.last_steps, judged.compares_records).check()
    how: dict[str, Any] = {"workers": workers, "engine": engine, "executor": executor, "device": device}
    target: AbstractContextManager[str | Path] = private_folder() if study is None else nullcontext(study)
    with target as folder:
        # The plan's own candidates come first: they set the scales of the objectives, and are the first parents.
        sweep(data, plan, folder, progress=progress, **how)
        with open_session(data, judged, Path(folder), **how) as session, search_bar(watch) as seen:
            runner = SearchRunner(session, space, ObjectiveSpace.of(session.scores(()), session.plan), settings)
            return _finish(runner, runner.run(seen))


def _finish(runner: SearchRunner, history: SearchHistory) -> SearchResult:
    """Draw the frontier again and return the result; record in the study why the search stopped."""
    session, objectives = runner.session, runner.objectives
    # a dominated candidate has a bound instead of a row of its own, so it is not among these
    stored = session.study.candidate_states()
    methods = tuple(row.method_value for row in history.full_evaluations if row.candidate in stored)
    scores = session.scores(methods)
    table = objectives.table(scores, session.plan)
    members = FinalDraws(session, objectives, table, scores).members
    session.study.note(search={"search": runner.search, "stopped": history.stopped})
    choice = choose_member(members, objectives, runner.settings.sure, len(history.full_evaluations))
    if choice is not None and _needs_no_masking(RUMap.of_plan(scores, session.plan), objectives):
        choice = replace(choice, reason=f"{choice.reason} {NO_MASKING_NEEDED}")
    dominated_early = len(history.full_evaluations) - len(methods)
    return SearchResult(
        session.plan.with_searched_methods(methods),
        scores,
        runner.space,
        objectives,
        table,
        history,
        members,
        choice,
        dominated_early,
    )


def _needs_no_masking(ru: RUMap, objectives: ObjectiveSpace) -> bool:
    """Return whether the unmasked file is within the limit of the risk axis and meets every other limit."""
    within = objectives.limit is not None and objectives.most <= objectives.limit
    return within and all(verdict.status == "met" for verdict in ru.unmasked_verdicts)


def _with_settings(plan: Plan, budget: int | None, minutes: float | None) -> Plan:
    settings = plan.search or Search(budget=UNLIMITED_BUDGET if minutes and budget is None else 200)
    given: dict[str, Any] = {"budget": budget, "minutes": minutes}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    settings.bounds_of(plan.measures)
    changed = replace(plan, search=settings)
    object.__setattr__(changed, "seed_stated", plan.seed_stated)
    return changed
