"""Several methods in sequence as one candidate, and the file as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, ClassVar

from sdcmap.core import Fields, Generator, Method, Microdata, Roles, Stream, Trials, Undefined, join_names
from sdcmap.core.steps import check_dependencies, redo_steps, split_steps
from sdcmap.data.amounts import snap_to_column_grid
from sdcmap.data.schema import Schema
from sdcmap.methods._composed import composed
from sdcmap.methods.noise import Noise
from sdcmap.methods.pram import PRAM
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.suppress import MOST_TRIED, Suppress

MOST_PHRASES = 4  # in the name of a chain


def in_turn(steps: Sequence[Method]) -> Method:
    """One method that applies the steps: a chain of them, or the only one itself."""
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def _from_steps(name: str, join: Callable[[Iterable[Any]], Any]) -> Any:
    """A property of a chain: what its steps have under this name, joined."""
    return property(lambda chain: join(getattr(step, name) for step in chain.methods))


def _by_step(name: str) -> Any:
    """A property of a chain: what each step says under this name, after the name of the step."""
    return property(lambda chain: "; then ".join(f"{type(s).__name__}: {getattr(s, name)}" for s in chain.methods))


def _first_not_kept(missing: Iterable[str]) -> str:
    """Missing values are kept when every step keeps them."""
    return next((words for words in missing if words != "kept"), "kept")


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _said_once(sentences: Iterable[str]) -> str:
    """What the steps say, one after the other; what most say by default only where no step says more."""
    said = dict.fromkeys(sentences)
    usual = (Method.weights, Method.households)
    return "; then ".join([words for words in said if words not in usual] or said)


def _phrase(words: str, steps: Sequence[Method]) -> str:
    """What some steps do, said once."""
    names = _union(step.masked_names for step in steps)
    return steps[0].title if len(steps) == 1 or not names else f"{join_names(names)} {words}"


@dataclass(frozen=True)
class Chain(Method):
    """Apply `methods` one after the other, each with a random stream of its own.

    Parameters
    ----------
    methods : the steps, at least one; each works on what the step before has left. Where a step changes only some numbers
        of a column, they are moved onto the grid of those before, so that no digit tells which they are.

    Likelihood: steps on different variables add up. Of steps on the same variable, deterministic ones before a random one
    are done again; noise after noise adds its variance, to the components of a mixture too; transitions (PRAM, randomized
    response) multiply; what was rounded, cut, classed, merged or blanked after noise or transitions counts by the chance
    of its cell; and values that changed places and were then rounded count as if they had been rounded before. Other
    steps on one variable state none together.
    Missing values, weights, households and strata: as each step says.

    Examples
    --------
    >>> from sdcmap.methods import Noise, Swap
    >>> Chain([Swap(on="sex"), Noise(on="income")]).text
    "Chain(methods=[Swap(on='sex'), Noise(on='income')])"
    """

    label: ClassVar[str] = "Several methods in sequence"
    description: ClassVar[str] = "Several masking methods are applied one after the other."

    revision: ClassVar[int] = 3  # 3: numbers moved onto a grid are written as those before

    methods: tuple[Method, ...]

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        keys, numbers = roles.keys, roles.numbers
        if not (keys and numbers):
            return {}
        return {
            "Suppress 2 then Noise .05": cls((Suppress(keys[:MOST_TRIED], 2), Noise(numbers, 0.05))),
            "PRAM .9 then RankSwap .05": cls((PRAM(keys, 0.9, alpha=1.0), RankSwap(numbers, 0.05))),
        }

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """A search makes chains of its own."""
        return None

    @property
    def title(self) -> str:
        """The words of its steps; steps that do the same to different variables once."""
        said: dict[str, list[Method]] = {}
        for step in self.steps:
            alone = "" if step.masked_names and not step.within else step.title
            said.setdefault(alone or step.action, []).append(step)
        phrases = [_phrase(words, steps) for words, steps in said.items()]
        more = [f"{len(phrases) - MOST_PHRASES} more"] if len(phrases) > MOST_PHRASES else []
        return "; ".join([*phrases[:MOST_PHRASES], *more])

    def problems(self) -> Iterator[str]:
        if not self.methods:
            yield ".methods must hold at least one method."
        if self.within:
            yield ".within belongs to the steps of a chain."

    random, reweights, mixes_records = (_from_steps(name, any) for name in ("random", "reweights", "mixes_records"))
    missing = _from_steps("missing", _first_not_kept)
    weights, households = (_from_steps(name, _said_once) for name in ("weights", "households"))
    kept, distorted = map(_by_step, ("kept", "distorted"))
    masked_names = _from_steps("masked_names", _union)

    def cost_ratio(self, few: int, rows: int) -> float:
        return max(step.cost_ratio(few, rows) for step in self.methods)

    @property
    def steps(self) -> tuple[Method, ...]:
        return tuple(leaf for step in self.methods for leaf in step.steps)

    def _columns(self) -> tuple[str, ...]:
        return _union(step._columns() for step in self.methods)

    def masks(self, data: Microdata) -> tuple[str, ...]:
        return _union(step.masks(data) for step in self.methods)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        for step in self.methods:
            yield from step.incompatibilities(data)
            after = step.schema_after(data.schema)
            if after is not data.schema:
                data = Microdata(after, data.columns, data.origin, data.base, data.changes, paired=data.paired)

    def schema_after(self, schema: Schema) -> Schema:
        return reduce(lambda before, step: step.schema_after(before), self.methods, schema)

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        for number, step in enumerate(self.methods):
            data = snap_to_column_grid(data, step.apply(data, stream.child(f"step {number}")))
        return data

    def with_steps(self, steps: Sequence[Method]) -> Method:
        return in_turn(steps)

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        again, groups = split_steps(self.steps)
        moved = {name for step in self.steps if step.random for name in step.masked_names}
        for step in self.steps:
            if not moved.issuperset(step.masked_names):
                raise Undefined(f"{type(step).__name__} states no likelihood of its released values.")
        known, failed = redo_steps(known, again, in_chain=True)
        if lost := [why for name, why in failed.items() if name in known.names and name in moved]:
            raise Undefined(f"a step before cannot be done again: {lost[0]}")
        for group in groups:
            check_dependencies(group, self.steps)
        return tuple(field for group in groups for field in composed(group, known, released))


# Identity: release everything.


@dataclass(frozen=True)
class Identity(Method):
    """The file as it is: the end of the map where everything is released. Every plan contains it.

    Missing values, weights and households stay as they are.

    Examples
    --------
    >>> Identity().text
    'Identity'
    """

    label: ClassVar[str] = "Unchanged file"
    description: ClassVar[str] = "The file is released as it is; every other candidate is compared with it."

    in_every_plan: ClassVar[bool] = True
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "everything"
    distorted: ClassVar[str] = "nothing"

    @property
    def title(self) -> str:
        return "the file as it is"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {})
