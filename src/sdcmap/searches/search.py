"""`search`: from a plan to the releases that nothing beats, and how sure that is."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
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

UNLIMITED_BUDGET = 100_000  # evaluations, where only time is stated


def search(
    data: Microdata, plan: Plan, budget: int | None = None, *, minutes: float | None = None,
    study: str | Path | None = None, workers: int | None = None, engine: str | None = None,
    executor: Executor | None = None, device: str = "cpu", progress: Progress | None = None, watch: Watch | None = None,
) -> SearchResult:  # fmt: skip
    """Search for the releases that nothing beats; go on where an earlier search of the study stopped.

    Parameters
    ----------
    data : the file, with roles stated: they say what may be done to it.
    plan : measures, axes, limits and rule; its own methods come first, outside the budget, so that the result is never
        worse than they are. Its `[search]` part says what is fixed (see `Search`).
    budget : full evaluations of new methods, one draw each, at least 24; by default the plan's, else 200.
    minutes : end after the generation in which so many have passed.
    study : folder to keep everything in; None keeps nothing but what is given back.
    workers, engine, executor, device, progress : as in `sweep`; progress tells of the plan's own candidates.
    watch : called after each generation with (evaluations, budget, share of the area); by default a bar.

    First 24 methods spread over all that may be done to the file, then generations of 8: each is picked from 24 children of
    the best so far by what they would add to the area, on a quarter of the rows. The area is that below the reference
    (release everything, lose everything) in log risk and loss. The same seed gives the same candidates, whatever the engine
    and however often it was killed. The frontier is then drawn afresh, to be chosen by and to be reported by.

    Examples
    --------
    >>> import sdcmap as sm
    >>> people = sm.demo.population(120).only(["Age", "Sex", "wage"])
    >>> plan = sm.Plan(sm.PRAM(["Age", "Sex"]), [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)], seed=1)
    >>> found = sm.search(people, plan, budget=24, workers=1)
    >>> found.evaluations, found.growth.stopped
    (24, 'the budget of 24 evaluations is used up')
    """
    plan = _with_settings(plan, budget, minutes)
    settings = plan.search or Search()
    judged = plan.with_risk(data)
    space = Space(data, settings, plan.last_steps, judged.compares_records).check()
    how: dict[str, Any] = {"workers": workers, "engine": engine, "executor": executor, "device": device}
    place: AbstractContextManager[str | Path] = private_folder() if study is None else nullcontext(study)
    with place as folder:
        sweep(data, plan, folder, progress=progress, **how)
        with open_session(data, judged, Path(folder), **how) as session, search_bar(watch) as seen:
            grower = SearchRunner(session, space, ObjectiveSpace.of(session.scores(()), session.plan), settings)
            return _finish(grower, grower.run(seen))


def _finish(grower: SearchRunner, growth: SearchHistory) -> SearchResult:
    """Return what was found, drawn afresh; the study remembers why the search stopped."""
    session, plane = grower.session, grower.plane
    made = session.study.candidate_states()
    methods = tuple(row.method_value for row in growth.full_evaluations if row.candidate in made)
    scores = session.scores(methods)
    table = plane.table(scores, session.plan)
    members = FinalDraws(session, plane, table, scores).members
    session.study.note(search={"search": grower.search, "stopped": growth.stopped})
    choice = choose_member(members, plane, grower.settings.sure, len(growth.full_evaluations))
    left = len(growth.full_evaluations) - len(methods)
    return SearchResult(
        session.plan.with_searched_methods(methods), scores, grower.space, plane, table, growth, members, choice, left
    )


def _with_settings(plan: Plan, budget: int | None, minutes: float | None) -> Plan:
    settings = plan.search or Search(budget=UNLIMITED_BUDGET if minutes and budget is None else 200)
    given: dict[str, Any] = {"budget": budget, "minutes": minutes}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    settings.bounds_of(plan.measures)
    grown = replace(plan, search=settings)
    object.__setattr__(grown, "seed_stated", plan.seed_stated)
    return grown
