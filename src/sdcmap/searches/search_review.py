"""Review a search from its stored scores: which choices matter, and what random search would have reached.

The replay evaluates nothing. A random point gets the scores of a stored candidate in the same leaf of a tree, which
predicts risk and loss from the choices. It is an estimate, most accurate where the search has been.
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

REPLAY_COUNT = 20  # replays of random search, for a band
MIN_CANDIDATES = 12  # with fewer, a forest cannot separate choices
MAX_LATER_SPANS = 3  # colors for generations after the starts
MAX_AXES = 7  # choices shown side by side


@dataclass(frozen=True)
class Choices:
    """The points of a search that could be made and scored, with their objectives. sound : meets every constraint."""

    space: Space
    ids: tuple[str, ...]
    points: tuple[Point, ...]
    x: Array
    y: Array
    sound: Array

    @staticmethod
    def of(
        space: Space, points: Sequence[tuple[str, Point]], table: ObjectiveTable, objectives: ObjectiveSpace
    ) -> Choices:
        """Collect ids and points, without those that have no value."""
        own = {name: point for name, point in points if point}
        selected = table.select(tuple(own))
        known = np.isfinite(selected.risk) & np.isfinite(selected.loss)
        ids = tuple(compress(own, known))
        x, y = objectives.scale_risk(selected.risk[known]), objectives.scale_loss(selected.loss[known])
        return Choices(space, ids, tuple(own[name] for name in ids), x, y, selected.sound[known])

    @property
    def has_enough(self) -> bool:
        """Whether there are enough points for a forest."""
        return len(self.points) >= MIN_CANDIDATES

    def columns(self, points: Sequence[Point]) -> Array:
        """Return a number for every dimension with an effect, else NaN: the index of an option, or the strength."""
        rows = np.full((len(points), len(self.space.dimensions)), np.nan)
        for row, point in zip(rows, points, strict=True):
            for name, value in self.space.settings_of(point).items():
                index = self.space.index_of[name]
                row[index] = self.space.dimensions[index].options.index(value) if isinstance(value, str) else value
        return rows

    @property
    def predictors(self) -> Predictors:
        ordered = np.array([not dimension.options for dimension in self.space.dimensions])
        return Predictors.of(self.columns(self.points), ordered)

    def importance(self) -> pl.DataFrame:
        """Return which choices matter, by stage: the share of variance of log risk and of loss that is lost without it."""
        if not self.has_enough:
            raise PlanError("too few candidates could be made and scored to estimate which choices matter.")
        stages: dict[str, list[int]] = defaultdict(list)
        for index, dimension in enumerate(self.space.dimensions):
            stages[dimension.stage].append(index)
        return importance_table(self.predictors, self.x, self.y, stages)

    def replay(self, evaluations: Sequence[int], front: tuple[Array, Array]) -> pl.DataFrame:
        """Replay random search from a front on: evaluations, and the share of the area as mean, 10 % and 90 % over replays.

        There are no rows where there is too little to replay.
        """
        if not self.has_enough:
            return pl.DataFrame(schema=dict.fromkeys(("evaluations", "area", "low", "high"), pl.Float64))
        rng, x = np.random.default_rng(SEED), self.predictors
        areas = np.array([self._replay(x, evaluations, front, rng) for _ in range(REPLAY_COUNT)])
        low, high = np.quantile(areas, [0.1, 0.9], axis=0)
        return pl.DataFrame({"evaluations": list(evaluations), "area": areas.mean(axis=0), "low": low, "high": high})

    def table(self, names: Mapping[str, str], best: frozenset[str]) -> pl.DataFrame:
        """Return a row per candidate: name, whether it is among the best, objectives, and the most common choices.

        The choices that matter most come first.
        """
        chosen = [self.space.settings_of(point) for point in self.points]
        stages = self.importance()["stage"].to_list()
        dimensions = sorted(self.space.dimensions, key=lambda dimension: stages.index(dimension.stage))
        common = [d.name for d in dimensions if 2 * sum(d.name in settings for settings in chosen) > len(chosen)]
        shown = {name: [settings.get(name) for settings in chosen] for name in common[:MAX_AXES]}
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
    """Return method text -> "your plan" (generation 0), "starts" (1), or a span of later generations, in this order.

    >>> name_generations({"a": 3, "b": 0, "c": 1, "d": 2})
    {'b': 'your plan', 'c': 'starts', 'd': 'generation 2', 'a': 'generation 3'}
    """
    names = {0: "your plan", 1: "starts"}
    for span in filter(len, np.array_split(np.arange(2, max(generations.values(), default=0) + 1), MAX_LATER_SPANS)):
        words = f"generation {span[0]}" if len(span) == 1 else f"generations {span[0]} to {span[-1]}"
        names |= dict.fromkeys(map(int, span), words)
    return {method: names[number] for method, number in sorted(generations.items(), key=lambda pair: pair[1])}
