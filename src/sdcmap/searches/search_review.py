"""What a search tells of itself from what is stored: which choices matter, and what random search would have found.

The replay is dry: nothing is made. A point drawn at random takes the scores of a stored candidate that shares a leaf of a
tree with it, a tree of risk and loss on the choices. It is a guess, best where the search has been.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, PlanError
from sdcmap.kernels.decision.pareto import hypervolume
from sdcmap.searches.forest import SEED, Predictors, draw_neighbors, importance_table
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable
from sdcmap.searches.search_space import Point, Space

REPLAY_COUNT = 20
MIN_CANDIDATES = 12  # candidates, below which a forest says nothing
MAX_LATER_SPANS = 3  # colors of generations after the starts
MAX_AXES = 7  # choices shown side by side


@dataclass(frozen=True)
class Choices:
    """The points of a search that could be made and scored, with their place in the plane.

    Sound : within every constraint.
    """

    space: Space
    ids: tuple[str, ...]
    points: tuple[Point, ...]
    x: Array
    y: Array
    sound: Array

    @staticmethod
    def of(space: Space, points: Sequence[tuple[str, Point]], table: ObjectiveTable, plane: ObjectiveSpace) -> Choices:
        """From ids and points; those without a value are left out."""
        own = {name: point for name, point in points if point}
        places = table.select(tuple(own))
        known = np.isfinite(places.risk) & np.isfinite(places.loss)
        ids = tuple(compress(own, known))
        x, y = plane.scale_risk(places.risk[known]), plane.scale_loss(places.loss[known])
        return Choices(space, ids, tuple(own[name] for name in ids), x, y, places.sound[known])

    @property
    def has_enough(self) -> bool:
        return len(self.points) >= MIN_CANDIDATES

    def columns(self, points: Sequence[Point]) -> Array:
        """Return a number for every dimension that has an effect, NaN for others.

        The place of an option, or the strength.
        """
        rows = np.full((len(points), len(self.space.dimensions)), np.nan)
        for row, point in zip(rows, points, strict=True):
            for name, value in self.space.settings_of(point).items():
                at = self.space.index_of[name]
                row[at] = self.space.dimensions[at].options.index(value) if isinstance(value, str) else value
        return rows

    @property
    def predictors(self) -> Predictors:
        ordered = np.array([not dimension.options for dimension in self.space.dimensions])
        return Predictors.of(self.columns(self.points), ordered)

    def importance(self) -> pl.DataFrame:
        """Return which choices matter, by stage.

        The share of the variance of log risk and of loss that is lost without it.
        """
        if not self.has_enough:
            raise PlanError("too few candidates could be made and scored to tell which choices matter.")
        stages: dict[str, list[int]] = defaultdict(list)
        for at, dimension in enumerate(self.space.dimensions):
            stages[dimension.stage].append(at)
        return importance_table(self.predictors, self.x, self.y, stages)

    def replay(self, evaluations: Sequence[int], front: tuple[Array, Array]) -> pl.DataFrame:
        """Random search from a front on.

        Evaluations, and the share of the area, in the mean and from low to high (10 to 90 %) over replays; no row where
        there is too little to replay.
        """
        if not self.has_enough:
            return pl.DataFrame(schema=dict.fromkeys(("evaluations", "area", "low", "high"), pl.Float64))
        rng, x = np.random.default_rng(SEED), self.predictors
        areas = np.array([self._replay(x, evaluations, front, rng) for _ in range(REPLAY_COUNT)])
        low, high = np.quantile(areas, [0.1, 0.9], axis=0)
        return pl.DataFrame({"evaluations": list(evaluations), "area": areas.mean(axis=0), "low": low, "high": high})

    def table(self, names: Mapping[str, str], best: frozenset[str]) -> pl.DataFrame:
        """Return a row a candidate.

        Its name, whether it is among the best, its place in the plane, and those choices that most candidates had, the
        ones that matter first.
        """
        said = [self.space.settings_of(point) for point in self.points]
        stages = self.importance()["stage"].to_list()
        dimensions = sorted(self.space.dimensions, key=lambda dimension: stages.index(dimension.stage))
        had = [d.name for d in dimensions if 2 * sum(d.name in settings for settings in said) > len(said)]
        shown = {name: [settings.get(name) for settings in said] for name in had[:MAX_AXES]}
        facts = {"name": [names[name] for name in self.ids], "front": [name in best for name in self.ids]}
        return pl.DataFrame({**facts, "log risk": self.x, "loss": self.y, **shown})

    def _replay(
        self, x: Predictors, evaluations: Sequence[int], front: tuple[Array, Array], rng: Generator
    ) -> list[float]:
        drawn = [tuple(map(float, p)) for p in rng.random((max(evaluations), len(self.space.dimensions)))]
        rows = draw_neighbors(x, self.x + self.y, self.columns(drawn), rng)
        x_drawn, y_drawn = (np.where(self.sound, axis, 1.0)[rows] for axis in (self.x, self.y))
        return [hypervolume(np.append(front[0], x_drawn[:n]), np.append(front[1], y_drawn[:n])) for n in evaluations]


def name_generations(generations: Mapping[str, int]) -> dict[str, str]:
    """Return method text -> "your plan" (generation 0), "starts" (1), or one of a few spans of later generations, in this order.

    >>> name_generations({"a": 3, "b": 0, "c": 1, "d": 2})
    {'b': 'your plan', 'c': 'starts', 'd': 'generation 2', 'a': 'generation 3'}
    """
    names = {0: "your plan", 1: "starts"}
    for span in filter(len, np.array_split(np.arange(2, max(generations.values(), default=0) + 1), MAX_LATER_SPANS)):
        words = f"generation {span[0]}" if len(span) == 1 else f"generations {span[0]} to {span[-1]}"
        names |= dict.fromkeys(map(int, span), words)
    return {method: names[number] for method, number in sorted(generations.items(), key=lambda pair: pair[1])}
