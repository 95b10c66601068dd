"""The result of a search and its charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from sdcmap.core.catalog import draw_chart
from sdcmap.core.chart import Chart
from sdcmap.map import RUMap
from sdcmap.searches.generations import SearchHistory, point_of
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable, sign_of
from sdcmap.searches.redraws import Member, SearchChoice, class_shares, fresh_area
from sdcmap.searches.search_review import Choices, name_generations
from sdcmap.searches.search_space import Space
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    plan : the plan, with the methods that were evaluated fully. scores : of its candidates. history : proposals, and the
    share of the area after each generation. members : the frontier, with new draws. choice : what to release by the limit;
    None where the plan has none. dominated_early : number of candidates that were dominated before everything was measured.
    """

    plan: Plan
    scores: Scores = field(repr=False)
    space: Space = field(repr=False)
    objectives: ObjectiveSpace = field(repr=False)
    table: ObjectiveTable = field(repr=False)
    history: SearchHistory
    members: tuple[Member, ...] = field(repr=False)
    choice: SearchChoice | None
    dominated_early: int

    @property
    def evaluations(self) -> int:
        """Number of full evaluations of new methods, including failed and dominated ones."""
        return len(self.history.full_evaluations)

    @cached_property
    def map(self) -> RUMap:
        """The R-U map of all candidates that were measured completely."""
        return RUMap.of_plan(self.scores, self.plan)

    @property
    def facts(self) -> dict[str, object]:
        """The report of the search, for JSON."""
        return {
            "evaluations": self.evaluations, "hypervolume": list(self.history.areas),
            "reference": list(self.objectives.reference), "front": [member.facts for member in self.members],
            "stopped": self.history.stopped,
        }  # fmt: skip

    @property
    def fresh_areas(self) -> tuple[float, float]:
        """The frontier's share of the area by the draws it was found with, and by those it is reported with."""
        return fresh_area(self.members, self.objectives)

    @cached_property
    def generation_of(self) -> Mapping[str, int]:
        """Method text -> the generation that proposed it; 0: the plan."""
        own = dict.fromkeys((method.text for method in self.plan.all_methods), 0)
        return own | {row.method_value.text: row.generation for row in self.history.full_evaluations}

    @property
    def losses(self) -> pl.DataFrame:
        """What happened to each loss: its bound (None: watched), the range on the plan's own frontier, and the new range.

        The new range is that of the chosen release, or of the frontier where there is no choice, by reported draws.
        """
        own = self._own_frontier
        shown = self.members if self.choice is None or self.choice.member is None else (self.choice.member,)
        rows = []
        for measure in (m for m in self.plan.measures if m.axis == "utility"):
            bound = self.objectives.bounds.get(measure.text)
            values = self.scores.column(measure.text).filter(pl.col("id").is_in(own.implode()))["value"]
            now = [member.losses[measure.text] for member in shown if measure.text in member.losses]
            most = None if bound is None else sign_of(measure) * bound
            rows.append((measure.text, most, *_extremes(values.to_list()), *_extremes(now)))
        names = ("bound", "plan_low", "plan_high", "found_low", "found_high")
        return pl.DataFrame(rows, schema={"loss": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")

    @property
    def _own_frontier(self) -> pl.Series:
        """Ids on the frontier of the plan's own candidates."""
        stated = [method.text for method in self.plan.with_searched_methods(()).all_methods]
        own = self.map.points.filter(pl.col("method").is_in(stated), ~pl.col("anchor"))
        return own["id"].gather(self.table.select(tuple(own["id"].to_list())).front.tolist())

    @cached_property
    def choices(self) -> Choices:
        """The choices at each point that could be made and scored."""
        points = [(row.candidate, point_of(row)) for row in self.history.full_evaluations]
        return Choices.of(self.space, points, self.table, self.objectives)

    # ---- pictures -----------------------------------------------------------------------------------------------
    def draw(self) -> Chart:
        """Draw the R-U map by generation, with a ring around the plan's own candidates."""
        own = [method for method, generation in self.generation_of.items() if generation == 0]
        return draw_chart("draw_search_map", self.map, name_generations(self.generation_of), own)

    def draw_progress(self) -> Chart:
        """Draw the share of the area against evaluations, beside a replay of random search."""
        numbers = [row.generation for row in self.history.full_evaluations]
        counts = [sum(number <= last for number in numbers) for last in range(len(self.history.areas))]
        own = pl.DataFrame({"evaluations": counts, "area": list(self.history.areas)})
        front = self.table.select(tuple(self._own_frontier.to_list()))
        return draw_chart("draw_progress", own, self.choices.replay(counts, (front.x, front.y)))

    def draw_importance(self) -> Chart:
        """Draw which choices matter for risk and for loss, by stage."""
        return draw_chart("draw_importance", self.choices.importance())

    def draw_choices(self) -> Chart:
        """Draw the most important choices of every candidate as parallel coordinates, starting with log risk and loss."""
        best = frozenset(self.table.ids[row] for row in self.table.front)
        texts = dict(self.scores.candidate.select("id", "method").iter_rows())
        names = {name: self.scores.name_of(texts[name]) for name in self.choices.ids}
        options = {d.name: d.options for d in self.space.dimensions if d.options}
        return draw_chart("draw_choices", self.choices.table(names, best), options)

    def draw_shares(self) -> Chart:
        """Draw which classes of methods are where along the frontier."""
        return draw_chart("draw_method_shares", class_shares(self.members))

    @property
    def pictures(self) -> dict[str, Callable[[], Chart]]:
        """Name -> function that draws it, without charts that need more candidates."""
        drawings = {"map": self.draw, "progress": self.draw_progress}
        drawings |= (
            {"importance": self.draw_importance, "choices": self.draw_choices} if self.choices.has_enough else {}
        )
        return drawings | ({"methods": self.draw_shares} if self.members else {})

    def save_charts(self, folder: str | Path) -> Path:
        """Save every chart as a page of its own, in a private folder."""
        folder = Path(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, draw in self.pictures.items():
            draw().save(folder / f"{name}.html")
        return folder


def _extremes(values: list[float]) -> tuple[float | None, float | None]:
    return (min(values), max(values)) if values else (None, None)
