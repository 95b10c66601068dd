"""Proposals: 24 starts spread over the space; then children of what is best so far, each a change of one or two parents.

A child of a point mixes two parents stage by stage and changes at least one choice that has an effect. A method of the
plan, which has no point, has children at other strengths. What could not be made teaches: options that failed are drawn
less often.
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
from sdcmap.searches.space import Dimension, Point, Space

RANDOM, CROSSED = 0.1, 0.5  # share of children that are new points, and that have two parents
CHANGED = 1.5  # choices that a child changes, in the mean
STEP = 0.12  # standard deviation of a change of strength
FACTOR = 0.5  # of a method without a point: standard deviation of the logarithm of a change
TRIES = 20  # draws of a child that is new, each


@dataclass(frozen=True)
class Proposed:
    """A method with where it came from: ids of its parents, and its point (empty: a method of the plan was changed)."""

    method: Method
    point: Point = ()
    parents: tuple[str, ...] = ()


Parent = tuple[str, Method, Point]  # a candidate that has children: its id, its method, and its point, where it has one


@dataclass(frozen=True)
class Lessons:
    """How often each option was tried and could be made: (dimension, option) -> (made, tried)."""

    counts: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def of(space: Space, tried: Sequence[tuple[Point, bool]]) -> Lessons:
        """From points and whether each could be made."""
        counts: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for point, made in tried:
            for option in space.settings_of(point).items():
                counts[option] = counts[option][0] + made, counts[option][1] + 1
        return Lessons(counts)

    def shares(self, dimension: Dimension) -> list[float]:
        """How likely each option is drawn: (made + 1)/(tried + 1), scaled to add up to 1."""
        counts = [self.counts.get((dimension.name, option), (0, 0)) for option in dimension.options]
        weights = [(made + 1) / (tried + 1) for made, tried in counts]
        return [weight / sum(weights) for weight in weights]


def latin_hypercube(count: int, dimensions: int, rng: Generator) -> Array:
    """Return points of the unit cube, a row each: in every dimension each of `count` equal intervals holds one of them.

    McKay, Beckman, Conover (1979), section 2. scipy.stats.qmc has it too, and takes a second to import.
    """
    return (np.argsort(rng.random((count, dimensions)), axis=0) + rng.random((count, dimensions))) / count


def starts(space: Space, count: int, rng: Generator, taken: frozenset[str]) -> list[Proposed]:
    """Points spread over the space by a Latin hypercube; one that stands for no new method is drawn again."""
    proposed: dict[str, Proposed] = {}
    for row in latin_hypercube(count, len(space.dimensions), rng).tolist():
        for _ in range(TRIES):
            child = _proposed(space, tuple(row), ())
            if child is not None and child.method.digest not in {*taken, *proposed}:
                proposed[child.method.digest] = child
                break
            row = rng.random(len(space.dimensions)).tolist()
    return list(proposed.values())


def children(
    space: Space, parents: Sequence[Parent], lessons: Lessons, count: int, rng: Generator, taken: frozenset[str]
) -> list[Proposed]:
    """So many new methods from these parents, or fewer where no more are found."""
    proposed: dict[str, Proposed] = {}
    for _ in range(count * TRIES):
        child = _child(space, parents, lessons, rng)
        if child is not None and child.method.digest not in taken:
            proposed.setdefault(child.method.digest, child)
        if len(proposed) == count:
            break
    return list(proposed.values())


def _child(space: Space, parents: Sequence[Parent], lessons: Lessons, rng: Generator) -> Proposed | None:
    if not parents or rng.random() < RANDOM:
        return _proposed(space, tuple(_drawn(d, lessons, rng) for d in space.dimensions), ())
    first, method, point = parents[int(rng.integers(len(parents)))]
    if not point:
        changed = stronger(method, rng)
        return None if changed is None else Proposed(changed, (), (first,))
    second, _, other = parents[int(rng.integers(len(parents)))]
    if other and second != first and rng.random() < CROSSED:
        return _proposed(space, _changed(space, _crossed(space, point, other, rng), lessons, rng), (first, second))
    return _proposed(space, _changed(space, point, lessons, rng), (first,))


def _proposed(space: Space, point: Point, parents: tuple[str, ...]) -> Proposed | None:
    method = space.method(point)
    return None if method is None else Proposed(method, point, parents)


def _drawn(dimension: Dimension, lessons: Lessons, rng: Generator) -> float:
    """A coordinate at random; of options, those that could be made come more often."""
    if not dimension.options:
        return float(rng.random())
    return dimension.coordinate(str(rng.choice(dimension.options, p=lessons.shares(dimension))))


def _crossed(space: Space, first: Point, second: Point, rng: Generator) -> Point:
    """Each stage from one of the two."""
    stages = list(dict.fromkeys(dimension.stage for dimension in space.dimensions))
    from_first = dict(zip(stages, rng.random(len(stages)) < 0.5, strict=True))
    both = zip(space.dimensions, first, second, strict=True)
    return tuple(a if from_first[dimension.stage] else b for dimension, a, b in both)


def _changed(space: Space, point: Point, lessons: Lessons, rng: Generator) -> Point:
    """At least one of the choices that have an effect, changed."""
    active = [space.place[name] for name in space.settings_of(point)]
    chosen = [place for place in active if rng.random() < CHANGED / len(active)]
    moved = list(point)
    for place in chosen or [active[int(rng.integers(len(active)))]]:
        dimension = space.dimensions[place]
        step = moved[place] + STEP * float(rng.standard_normal())
        moved[place] = _drawn(dimension, lessons, rng) if dimension.options else _reflected(step)
    return tuple(moved)


def _reflected(x: float) -> float:
    """A number folded back into [0, 1].

    >>> round(_reflected(1.2), 3), round(_reflected(-0.25), 3)
    (0.8, 0.25)
    """
    x = abs(x) % 2
    return 2 - x if x > 1 else x


def stronger(method: Method, rng: Generator) -> Method | None:
    """The same method with each step's strength multiplied by a factor around 1; None where none can be changed."""
    steps = [_scaled(step, float(np.exp(FACTOR * rng.standard_normal()))) for step in method.steps]
    changed = tuple(step or own for step, own in zip(steps, method.steps, strict=True))
    if changed == method.steps:
        return None
    return Chain(changed) if len(changed) > 1 else changed[0]


def _scaled(step: Method, factor: float) -> Method | None:
    """A step with its strength so many times; None where it has none, or cannot have that one."""
    name = strength_parameter(step)
    before: Any = getattr(step, name) if name else None
    if not before:
        return None
    after: Any = round(before * factor) if isinstance(before, int) else float(f"{before * factor:.{STRENGTH_DIGITS}g}")
    try:
        return replace(step, **{name: after})
    except PlanError:
        return None
