"""Propose methods: 24 starts spread over the space; then children of the best so far, each a change of one or two parents.

A child with a point mixes two parents stage by stage and changes at least one choice that has an effect. A method of
the plan has no point; its children have other strengths. Options that could not be made are drawn less often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sdcmap.core import Array, Generator, PlanError
from sdcmap.core.method import Method, strength_parameter
from sdcmap.core.roles import STRENGTH_DIGITS
from sdcmap.methods import Chain
from sdcmap.searches.search_space import Dimension, Point, Space

RANDOM_SHARE = 0.1  # of the children are new random points, so that no region is lost
CROSSOVER_SHARE = 0.5  # of the others have two parents
MEAN_MUTATIONS = 1.5  # choices that a child changes on average
STRENGTH_STEP_SD = 0.12  # standard deviation of a change of strength, which lies in [0, 1]
LOG_STRENGTH_SD = 0.5  # standard deviation of the log factor, for methods without a point
MAX_TRIES = 20  # draws for one new child, before the search space counts as exhausted


@dataclass(frozen=True)
class ProposedMethod:
    """A method and where it came from: ids of its parents, and its point (empty: a method of the plan was changed)."""

    method: Method
    point: Point = ()
    parents: tuple[str, ...] = ()


Parent = tuple[str, Method, Point]  # candidate id, method, and point (empty for a method of the plan)


@dataclass(frozen=True)
class OptionOutcomes:
    """How often each option was tried and could be made: (dimension, option) -> (made, tried)."""

    counts: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def of(space: Space, tried: Sequence[tuple[Point, bool]]) -> OptionOutcomes:
        """Count the outcomes of points, each with whether it could be made."""
        counts: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for point, made in tried:
            for option in space.settings_of(point).items():
                counts[option] = counts[option][0] + made, counts[option][1] + 1
        return OptionOutcomes(counts)

    def shares(self, dimension: Dimension) -> list[float]:
        """Return the probability of drawing each option: (made + 1)/(tried + 1), scaled to sum to 1."""
        counts = [self.counts.get((dimension.name, option), (0, 0)) for option in dimension.options]
        weights = [(made + 1) / (tried + 1) for made, tried in counts]
        return [weight / sum(weights) for weight in weights]


def latin_hypercube(count: int, dimensions: int, rng: Generator) -> Array:
    """Return points of the unit cube, one per row: in every dimension, each of `count` equal intervals contains one point.

    McKay, Beckman, Conover (1979), section 2. scipy.stats.qmc has it too, but takes a second to import.
    """
    return (np.argsort(rng.random((count, dimensions)), axis=0) + rng.random((count, dimensions))) / count


def draw_starts(space: Space, count: int, rng: Generator, taken: frozenset[str]) -> list[ProposedMethod]:
    """Return points spread over the space by a Latin hypercube. A point without a new method is drawn again."""
    proposed: dict[str, ProposedMethod] = {}
    for row in latin_hypercube(count, len(space.dimensions), rng).tolist():
        for _ in range(MAX_TRIES):
            child = _to_proposed(space, tuple(row), ())
            if child is not None and child.method.digest not in {*taken, *proposed}:
                proposed[child.method.digest] = child
                break
            row = rng.random(len(space.dimensions)).tolist()
    return list(proposed.values())


def draw_children(
    space: Space, parents: Sequence[Parent], lessons: OptionOutcomes, count: int, rng: Generator, taken: frozenset[str]
) -> list[ProposedMethod]:
    """Return `count` new methods from these parents, or fewer where no more can be drawn."""
    proposed: dict[str, ProposedMethod] = {}
    for _ in range(count * MAX_TRIES):
        child = _draw_child(space, parents, lessons, rng)
        if child is not None and child.method.digest not in taken:
            proposed.setdefault(child.method.digest, child)
        if len(proposed) == count:
            break
    return list(proposed.values())


def _draw_child(
    space: Space, parents: Sequence[Parent], lessons: OptionOutcomes, rng: Generator
) -> ProposedMethod | None:
    """Return one random child, or None where the draw gives no method."""
    # 1. A few children are random points, whatever the parents.
    if not parents or rng.random() < RANDOM_SHARE:
        return _to_proposed(space, tuple(_draw_coordinate(d, lessons, rng) for d in space.dimensions), ())
    first, method, point = parents[int(rng.integers(len(parents)))]
    # 2. A method of the plan has no coordinates: only its strengths can be changed.
    if not point:
        changed = vary_strength(method, rng)
        return None if changed is None else ProposedMethod(changed, (), (first,))
    # 3. The others are mutated, half of them after crossing with a second parent.
    second, _, other = parents[int(rng.integers(len(parents)))]
    if other and second != first and rng.random() < CROSSOVER_SHARE:
        return _to_proposed(space, _mutate(space, _cross(space, point, other, rng), lessons, rng), (first, second))
    return _to_proposed(space, _mutate(space, point, lessons, rng), (first,))


def _to_proposed(space: Space, point: Point, parents: tuple[str, ...]) -> ProposedMethod | None:
    method = space.method(point)
    return None if method is None else ProposedMethod(method, point, parents)


def _draw_coordinate(dimension: Dimension, lessons: OptionOutcomes, rng: Generator) -> float:
    """Return a random coordinate; among options, those that could be made are drawn more often."""
    if not dimension.options:
        return float(rng.random())
    return dimension.coordinate(str(rng.choice(dimension.options, p=lessons.shares(dimension))))


def _cross(space: Space, first: Point, second: Point, rng: Generator) -> Point:
    """Return a point that takes each stage from one of two parents."""
    # The dimensions of a stage, such as a method and its strength, only make sense together.
    stages = list(dict.fromkeys(dimension.stage for dimension in space.dimensions))
    from_first = dict(zip(stages, rng.random(len(stages)) < 0.5, strict=True))
    both = zip(space.dimensions, first, second, strict=True)
    return tuple(a if from_first[dimension.stage] else b for dimension, a, b in both)


def _mutate(space: Space, point: Point, lessons: OptionOutcomes, rng: Generator) -> Point:
    """Return a point with at least one changed choice that has an effect."""
    # Coordinates without an effect at this point are skipped: changing them would give the same method again.
    active = [space.index_of[name] for name in space.settings_of(point)]
    selected = [index for index in active if rng.random() < MEAN_MUTATIONS / len(active)]
    mutated = list(point)
    for index in selected or [active[int(rng.integers(len(active)))]]:
        dimension = space.dimensions[index]
        step = mutated[index] + STRENGTH_STEP_SD * float(rng.standard_normal())
        mutated[index] = _draw_coordinate(dimension, lessons, rng) if dimension.options else _reflect(step)
    return tuple(mutated)


def _reflect(x: float) -> float:
    """Return a number reflected into [0, 1].

    >>> round(_reflect(1.2), 3), round(_reflect(-0.25), 3)
    (0.8, 0.25)
    """
    x = abs(x) % 2
    return 2 - x if x > 1 else x


def vary_strength(method: Method, rng: Generator) -> Method | None:
    """Return the same method with each step's strength multiplied by a random factor around 1; None: nothing can change."""
    steps = [_scale_step(step, float(np.exp(LOG_STRENGTH_SD * rng.standard_normal()))) for step in method.steps]
    changed = tuple(step or own for step, own in zip(steps, method.steps, strict=True))
    if changed == method.steps:
        return None
    return Chain(changed) if len(changed) > 1 else changed[0]


def _scale_step(step: Method, factor: float) -> Method | None:
    """Return a step with its strength multiplied; None where it has none, or where the new one is not allowed."""
    name = strength_parameter(step)
    before: Any = getattr(step, name) if name else None
    if not before:
        return None
    after: Any = round(before * factor) if isinstance(before, int) else float(f"{before * factor:.{STRENGTH_DIGITS}g}")
    try:
        return replace(step, **{name: after})
    except PlanError:
        return None
