"""What a search found, and its pictures."""

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
    """What a search found.

    plan : the plan that was searched from, grown by the methods that were made. scores : of its candidates. growth : what
    was proposed, and the share of the area after each generation. members : the frontier, drawn afresh. choice : what to
    release by the limit; None where the plan has none. left : candidates that were left as beaten before all was measured.
    """

    plan: Plan
    scores: Scores = field(repr=False)
    space: Space = field(repr=False)
    plane: ObjectiveSpace = field(repr=False)
    table: ObjectiveTable = field(repr=False)
    growth: SearchHistory
    members: tuple[Member, ...] = field(repr=False)
    choice: SearchChoice | None
    left: int

    @property
    def evaluations(self) -> int:
        """Full evaluations of new methods, those that could not be made and those left as beaten included."""
        return len(self.growth.full_evaluations)

    @cached_property
    def map(self) -> RUMap:
        """The R-U map of everything that was measured to the end."""
        return RUMap.of_plan(self.scores, self.plan)

    @property
    def facts(self) -> dict[str, object]:
        """The report of the search, as JSON holds it."""
        return {
            "evaluations": self.evaluations, "hypervolume": list(self.growth.areas),
            "reference": list(self.plane.reference), "front": [member.facts for member in self.members],
            "stopped": self.growth.stopped,
        }  # fmt: skip

    @property
    def fresh_areas(self) -> tuple[float, float]:
        """The share of the area that the frontier has by the draws it was found by, and by those it is reported by."""
        return fresh_area(self.members, self.plane)

    @cached_property
    def generation_of(self) -> Mapping[str, int]:
        """Method text -> the generation that proposed it; 0: the plan."""
        own = dict.fromkeys((method.text for method in self.plan.all_methods), 0)
        return own | {row.method_value.text: row.generation for row in self.growth.full_evaluations}

    @property
    def losses(self) -> pl.DataFrame:
        """What happened to each loss: its bound (None.

        Watched), the plan's own frontier from best to worst, and what was chosen, or else the frontier that was found,
        by reported draws.
        """
        own = self._own_frontier
        shown = self.members if self.choice is None or self.choice.member is None else (self.choice.member,)
        rows = []
        for measure in (m for m in self.plan.measures if m.axis == "utility"):
            bound = self.plane.bounds.get(measure.text)
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
        """What was chosen at each point that could be made and scored."""
        points = [(row.candidate, point_of(row)) for row in self.growth.full_evaluations]
        return Choices.of(self.space, points, self.table, self.plane)

    # ---- pictures -----------------------------------------------------------------------------------------------
    def draw(self) -> Chart:
        """Return the R-U map by generation, with a ring around the plan's own candidates."""
        own = [method for method, generation in self.generation_of.items() if generation == 0]
        return draw_chart("draw_search_map", self.map, name_generations(self.generation_of), own)

    def draw_progress(self) -> Chart:
        """Return the share of the area against evaluations, beside random search replayed from what is stored."""
        numbers = [row.generation for row in self.growth.full_evaluations]
        counts = [sum(number <= last for number in numbers) for last in range(len(self.growth.areas))]
        own = pl.DataFrame({"evaluations": counts, "area": list(self.growth.areas)})
        front = self.table.select(tuple(self._own_frontier.to_list()))
        return draw_chart("draw_progress", own, self.choices.replay(counts, (front.x, front.y)))

    def draw_importance(self) -> Chart:
        """Return which choices matter for risk and for loss, by stage."""
        return draw_chart("draw_importance", self.choices.importance())

    def draw_choices(self) -> Chart:
        """Return the choices that matter most, of every candidate: parallel coordinates, from log risk and loss on."""
        best = frozenset(self.table.ids[place] for place in self.table.front)
        texts = dict(self.scores.candidate.select("id", "method").iter_rows())
        names = {name: self.scores.name_of(texts[name]) for name in self.choices.ids}
        options = {d.name: d.options for d in self.space.dimensions if d.options}
        return draw_chart("draw_choices", self.choices.table(names, best), options)

    def draw_shares(self) -> Chart:
        """Return which classes of methods stand where along the frontier."""
        return draw_chart("draw_method_shares", class_shares(self.members))

    @property
    def pictures(self) -> dict[str, Callable[[], Chart]]:
        """Name -> how it is drawn; those that few candidates cannot tell are left out."""
        drawings = {"map": self.draw, "progress": self.draw_progress}
        drawings |= (
            {"importance": self.draw_importance, "choices": self.draw_choices} if self.choices.has_enough else {}
        )
        return drawings | ({"methods": self.draw_shares} if self.members else {})

    def save_charts(self, folder: str | Path) -> Path:
        """Return every picture as a page of its own, in a private folder."""
        folder = Path(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, draw in self.pictures.items():
            draw().save(folder / f"{name}.html")
        return folder


def _extremes(values: list[float]) -> tuple[float | None, float | None]:
    return (min(values), max(values)) if values else (None, None)
