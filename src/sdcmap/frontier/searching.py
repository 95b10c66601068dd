"""`search`: from a plan to the releases that nothing beats, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
from sdcmap.frontier.ends import Chosen, Ends, Member, chosen, fresh_area
from sdcmap.frontier.growing import Grower, Growth, point_of
from sdcmap.frontier.making import swept, workshop
from sdcmap.frontier.plane import Plane, Table, map_of
from sdcmap.frontier.space import Space
from sdcmap.map import RUMap
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress, Watch, search_bar
from sdcmap.study.scores import Scores
from sdcmap.study.search_settings import Search

OPEN = 100_000  # evaluations, where only time is stated


@dataclass(frozen=True)
class Found:
    """What a search found.

    plan : the plan that was searched from, grown by the methods that were made. scores : of its candidates. growth : what
    was proposed, and the share of the area after each generation. members : the frontier, drawn afresh. choice : what to
    release by the limit; None where the plan has none. left : candidates that were left as beaten before all was measured.
    """

    plan: Plan
    scores: Scores = field(repr=False)
    space: Space = field(repr=False)
    plane: Plane = field(repr=False)
    table: Table = field(repr=False)
    growth: Growth
    members: tuple[Member, ...] = field(repr=False)
    choice: Chosen | None
    left: int

    @property
    def evaluations(self) -> int:
        """Full evaluations of new methods, those that could not be made and those left as beaten included."""
        return len(self.growth.chosen)

    @cached_property
    def map(self) -> RUMap:
        """The R-U map of everything that was measured to the end."""
        return map_of(self.scores, self.plan)

    @property
    def facts(self) -> dict[str, object]:
        """The report of the search, as JSON holds it."""
        return {
            "evaluations": self.evaluations,
            "hypervolume": list(self.growth.areas),
            "reference": list(self.plane.reference),
            "front": [member.facts for member in self.members],
            "stopped": self.growth.stopped,
        }

    @property
    def fresh_areas(self) -> tuple[float, float]:
        """The share of the area that the frontier has by the draws it was found by, and by those it is reported by."""
        return fresh_area(self.members, self.plane)

    @cached_property
    def generation_of(self) -> Mapping[str, int]:
        """Method text -> the generation that proposed it; 0: the plan."""
        own = dict.fromkeys((method.text for method in self.plan.expanded), 0)
        return own | {row.decoded.text: row.generation for row in self.growth.chosen}

    @property
    def losses(self) -> pl.DataFrame:
        """What happened to each loss: its bound (None: watched), the plan's own frontier from best to worst, and what was
        chosen, or else the frontier that was found, by reported draws."""
        own = self._own_frontier
        shown = self.members if self.choice is None or self.choice.member is None else (self.choice.member,)
        rows = []
        for measure in (m for m in self.plan.measures if m.axis == "utility"):
            sign = 1.0 if measure.direction == "lower" else -1.0
            bound = self.plane.bounds.get(measure.text)
            values = self.scores.column(measure.text).filter(pl.col("id").is_in(own.implode()))["value"]
            now = [member.losses[measure.text] for member in shown if measure.text in member.losses]
            rows.append((measure.text, None if bound is None else sign * bound, *_ends(values.to_list()), *_ends(now)))
        names = ("bound", "plan_low", "plan_high", "found_low", "found_high")
        return pl.DataFrame(rows, schema={"loss": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")

    @property
    def _own_frontier(self) -> pl.Series:
        """Ids on the frontier of the plan's own candidates."""
        stated = [method.text for method in self.plan.grown(()).expanded]
        own = self.map.points.filter(pl.col("method").is_in(stated), ~pl.col("anchor"))
        places = self.table.among(tuple(own["id"].to_list()))
        return own["id"].gather(places.front.tolist())

    @property
    def choices(self) -> pl.DataFrame:
        """One row a candidate that has a point: its generation, risk and loss, and every choice that had an effect."""
        place = {name: at for at, name in enumerate(self.table.ids)}
        rows = []
        for row in self.growth.chosen:
            if row.candidate in place and point_of(row):
                at = place[row.candidate]
                told = {name: _said(value) for name, value in self.space.settings_of(point_of(row)).items()}
                rows.append({"id": row.candidate, "generation": row.generation, "risk": float(self.table.risk[at]),
                             "loss": float(self.table.loss[at]), **told})  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)


def _ends(values: list[float]) -> tuple[float | None, float | None]:
    return (min(values), max(values)) if values else (None, None)


def _said(value: str | float) -> str | float:
    return value if isinstance(value, str) else round(value, 4)


def search(
    data: Microdata, plan: Plan, budget: int | None = None, *, minutes: float | None = None,
    study: str | Path | None = None, workers: int | None = None, engine: str | None = None,
    executor: Executor | None = None, progress: Progress | None = None, watch: Watch | None = None,
) -> Found:  # fmt: skip
    """Search for the releases that nothing beats; go on where an earlier search of the study stopped.

    Parameters
    ----------
    data : the file, with roles stated: they say what may be done to it.
    plan : measures, axes, limits and rule; its own methods come first, outside the budget, so that the result is never
        worse than they are. Its `[search]` part says what is fixed (see `Search`).
    budget : full evaluations of new methods, one draw each, at least 24; by default the plan's, else 200.
    minutes : end after the generation in which so many have passed.
    study : folder to keep everything in; None keeps nothing but what is given back.
    workers, engine, executor, progress : as in `sweep`; progress tells of the plan's own candidates.
    watch : called after each generation with (evaluations, budget, share of the area); by default a bar.

    First 24 methods spread over all that may be done to the file, then generations of 8: each is picked from 24 children of
    the best so far by what they would add to the area, on a quarter of the rows. The area is that below the reference
    (release everything, lose everything) in log risk and loss. The same seed gives the same candidates, whatever the engine
    and however often it was killed. The frontier is then drawn afresh, to be chosen by and to be reported by.

    Examples
    --------
    >>> import sdcmap as sm
    >>> people = sm.demo.population(120).only(["Age", "Sex", "wage"])
    >>> plan = sm.Plan(sm.PRAM(["Age", "Sex"]), [sm.SmallCells(), sm.utility.QueryError(queries=100)], seed=1)
    >>> found = sm.search(people, plan, budget=24, workers=1)
    >>> found.evaluations, found.growth.stopped
    (24, 'the budget of 24 evaluations is used up')
    """
    plan = _with_settings(plan, budget, minutes)
    settings = plan.search or Search()
    space = Space(data, settings, plan.derive).checked()
    how = {"workers": workers, "engine": engine, "executor": executor, "progress": progress}
    with _place(study) as place:
        judged = swept(data, plan, Path(place), **how)
        with (
            workshop(data, judged, Path(place), workers=workers, engine=engine, executor=executor) as shop,
            search_bar(watch) as seen,
        ):
            plane = Plane.of(shop.scores(()), shop.plan)
            grower = Grower(shop, space, plane, settings)
            growth = grower.grow(seen)
            return _ended(grower, growth)


def _ended(grower: Grower, growth: Growth) -> Found:
    """What was found, drawn afresh; the study remembers why the search stopped."""
    shop, plane = grower.shop, grower.plane
    made = {name for name, _ in shop.study.done().items()}
    methods = tuple(row.decoded for row in growth.chosen if row.candidate in made)
    scores = shop.scores(methods)
    table = plane.table(scores, shop.plan)
    members = Ends(shop, plane, table, scores).members
    shop.study.note(search={"search": grower.search, "stopped": growth.stopped})
    choice = chosen(members, plane, grower.settings.sure, len(growth.chosen))
    grown = shop.plan.grown(methods)
    left = len(growth.chosen) - len(methods)
    return Found(grown, scores, grower.space, plane, table, growth, members, choice, left)


def _with_settings(plan: Plan, budget: int | None, minutes: float | None) -> Plan:
    settings = plan.search or Search(budget=OPEN if minutes and budget is None else 200)
    settings = settings if budget is None else replace(settings, budget=budget)
    settings = settings if minutes is None else replace(settings, minutes=minutes)
    settings.bounds_of(plan.measures)
    grown = replace(plan, search=settings)
    object.__setattr__(grown, "seed_stated", plan.seed_stated)
    return grown


def _place(study: str | Path | None) -> AbstractContextManager[str | Path]:
    """The study's folder, or one that is gone afterwards."""
    return private_folder() if study is None else nullcontext(study)
