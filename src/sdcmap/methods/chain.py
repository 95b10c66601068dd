"""Several methods in sequence as one candidate, and the unchanged file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, ClassVar

from sdcmap.core import Fields, Generator, Method, Microdata, Roles, Stream, Trials, Undefined, join_names
from sdcmap.core.method import Origin
from sdcmap.core.steps import check_dependencies, redo_steps, split_steps
from sdcmap.data.amounts import snap_to_column_grid
from sdcmap.data.schema import Schema
from sdcmap.methods._chain_likelihood import compose_fields
from sdcmap.methods.noise import Noise
from sdcmap.methods.pram import PRAM
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.suppress import MAX_KEYS_TRIED, Suppress

MAX_PHRASES = 5  # in the title of a chain; further steps are only counted, to keep it readable


def combine_steps(steps: Sequence[Method]) -> Method:
    """Return one method that applies the steps in order: a chain, or the step itself if there is only one."""
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def _from_steps(name: str, join: Callable[[Iterable[Any]], Any]) -> Any:
    """Return a property of a chain that joins the values of its steps' attribute `name`."""
    return property(lambda chain: join(getattr(step, name) for step in chain.methods))


def _by_step(name: str) -> Any:
    """Return a property of a chain that lists the attribute `name` of each step after the label of the step."""
    return property(lambda chain: "; then ".join(f"{s.label}: {getattr(s, name)}" for s in chain.methods))


def _first_not_kept(missing: Iterable[str]) -> str:
    """Return "kept" if every step keeps missing values, else what the first other step does with them."""
    return next((handling for handling in missing if handling != "kept"), "kept")


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def _join_sentences(sentences: Iterable[str]) -> str:
    """Join the sentences of the steps, each once. Default sentences are left out if any step has its own."""
    distinct = dict.fromkeys(sentences)
    defaults = (Method.weights, Method.households)
    return "; then ".join([sentence for sentence in distinct if sentence not in defaults] or distinct)


def _phrase(action: str, steps: Sequence[Method]) -> str:
    """Describe steps that have the same action in one phrase."""
    names = _union(step.masked_names for step in steps)
    return steps[0].title if len(steps) == 1 or not names else f"{join_names(names)} {action}"


@dataclass(frozen=True)
class Chain(Method):
    """Apply `methods` one after the other, each with a random stream of its own.

    Parameters
    ----------
    methods : the steps, at least one. Each step masks the result of the step before. Where a step changes only some
        numbers of a column, the new numbers are rounded like the others, so that no digit shows which were changed.

    Likelihood: the log-likelihoods of steps on different variables are added. On the same variable, deterministic steps
    before a random one are repeated on the attacker's data; variances of successive noises add up (also for the
    components of a mixture); transition matrices (PRAM, randomized response) are multiplied. Rounding, top coding,
    recoding or suppression after noise or transitions gives the probability of an interval or category. Rounding after
    swapping is treated as rounding before it, which gives the same file. Other combinations have no likelihood.
    Missing values, weights, households and strata: see each step.

    Examples
    --------
    >>> from sdcmap.methods import Noise, Swap
    >>> Chain([Swap(on="sex"), Noise(on="income")]).text
    "Chain(methods=[Swap(on='sex'), Noise(on='income')])"
    """

    label: ClassVar[str] = "Several methods in sequence"
    description: ClassVar[str] = "Several masking methods are applied one after the other."

    revision: ClassVar[int] = 3  # 3: numbers moved onto a grid are written like the original ones

    methods: tuple[Method, ...]

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        keys, numbers = roles.keys, roles.numbers
        if not (keys and numbers):
            return {}
        return {
            "Suppress 2 then Noise .05": cls((Suppress(keys[:MAX_KEYS_TRIED], 2), Noise(numbers, 0.05))),
            "PRAM .9 then RankSwap .05": cls((PRAM(keys, 0.9, alpha=1.0), RankSwap(numbers, 0.05))),
        }

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return None: a search builds its own chains."""
        return None

    @property
    def title(self) -> str:
        """Join the titles of the steps. Steps with the same action on different variables share one phrase."""
        steps_by_action: dict[str, list[Method]] = {}
        for step in self.steps:
            # A step without columns, or with strata, has a title that cannot be shared.
            own_title = "" if step.masked_names and not step.within else step.title
            steps_by_action.setdefault(own_title or step.action, []).append(step)
        phrases = [_phrase(action, steps) for action, steps in steps_by_action.items()]
        more = [f"{len(phrases) - MAX_PHRASES} more"] if len(phrases) > MAX_PHRASES else []
        return "; ".join([*phrases[:MAX_PHRASES], *more])

    def problems(self) -> Iterator[str]:
        if not self.methods:
            yield ".methods must hold at least one method."
        if self.within:
            yield ".within must be set on the steps of the chain, not on the chain."

    random, reweights, mixes_records = (_from_steps(name, any) for name in ("random", "reweights", "mixes_records"))
    missing = _from_steps("missing", _first_not_kept)
    weights, households = (_from_steps(name, _join_sentences) for name in ("weights", "households"))
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

    def keeps_pairs(self, data: Microdata) -> bool:
        """Return whether each row of the result still corresponds to a person.

        After a step that draws every column, a row does so again if a column is computed from its weight.
        """
        keeps = all(step.keeps_pairs(data) for step in self.methods)
        return keeps or not {*data.content_columns}.isdisjoint(self.linkable_columns(data))

    def origins(self, data: Microdata, before: Mapping[str, Origin]) -> Mapping[str, Origin]:
        return reduce(lambda origins, step: step.origins(data, origins), self.methods, before)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        for step in self.methods:
            yield from step.incompatibilities(data)
            after = step.schema_after(data.schema)
            if after is not data.schema:
                data = Microdata(after, data.columns, data.origin, data.base, data.changes, paired=data.paired)

    def schema_after(self, schema: Schema) -> Schema:
        return reduce(lambda before, step: step.schema_after(before), self.methods, schema)

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        original = data
        for number, step in enumerate(self.methods):
            data = snap_to_column_grid(data, step.apply(data, stream.child(f"step {number}")))
        return data if data.paired or not self.keeps_pairs(original) else replace(data, paired=True)

    def with_steps(self, steps: Sequence[Method]) -> Method:
        return combine_steps(steps)

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        repeatable, groups = split_steps(self.steps)
        randomized = {
            name for step in self.steps if step.random and not step.is_simulated for name in step.masked_names
        }
        for step in self.steps:
            if not randomized.issuperset(step.masked_names):
                raise Undefined(f"{type(step).__name__} states no likelihood of its released values.")
        # Deterministic steps before the random ones are repeated on the known values, so that both files are comparable.
        known, failed = redo_steps(known, repeatable, in_chain=True)
        if reasons := [why for name, why in failed.items() if name in known.names and name in randomized]:
            raise Undefined(f"an earlier step cannot be repeated: {reasons[0]}")
        for group in groups:
            check_dependencies(group, self.steps)
        return tuple(field for group in groups for field in compose_fields(group, known, released))


@dataclass(frozen=True)
class Identity(Method):
    """Release the file unchanged: one end of the risk-utility map. Every plan contains it.

    Missing values, weights and households do not change.

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
