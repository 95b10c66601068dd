"""What a reader of the method note can state of each column: that it is as it was, what a deterministic step makes of it,
or how likely random steps make one value of another.

Deterministic steps are done again on the snooper's records while no random step has touched their columns. The steps that
are left are stated in groups that mask columns in common (`core/steps.py`); where such a group states no likelihood
together, its errors must be learned, and the file before the step that does not fit bounds what can be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Method, Microdata, SchemaError, Undefined
from sdcmap.core.likelihood import Field, Same
from sdcmap.core.steps import check_dependencies, names_not_randomized, redo_steps, split_steps
from sdcmap.data.cells import common_codes
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.risk.linkage.file_pair import Pair


class Stated(NamedTuple):
    """The likelihood of a released record, had it been a known one, as fields; and why some columns have none."""

    fields: tuple[Field, ...]
    unstated: dict[str, str]


def certain_columns(pair: Pair, method: Method | None) -> dict[int, tuple[Array, Array]]:
    """Columns, by their place, whose released values a snooper without errors can tell: those that the method does not
    touch, and those that only its deterministic steps do, after he has done them again. Both sides, as numbers.

    A deterministic step can depend on rows that were not released (a sample) or on columns that were changed before it:
    what he redoes counts only where it is what was released, for everybody.
    """
    if method is None or not pair.originals:
        return {}
    masked = method.masked_names
    columns = {p: (pair.known_columns[p], pair.released[:, p]) for p, n in enumerate(pair.names) if n not in masked}
    again = redone(pair.known_file, method, blanks=True)
    held = np.flatnonzero(pair.truth >= 0)
    for place, name in enumerate(pair.names):
        if again is not None and name in masked and all(not s.random for s in method.steps if name in s.masked_names):
            ours, theirs = _numbers(again, pair.released_file, name)
            ours, theirs = ours[pair.known_rows], theirs[pair.released_rows]
            for mine in (ours, _rounded_as(theirs, ours)):
                a, b = mine[pair.truth[held]], theirs[held]
                if ((a == b) | (np.isnan(a) & np.isnan(b))).all():
                    columns[place] = mine, theirs
                    break
    return columns


def _rounded_as(released: Array, values: Array) -> Array:
    """Values rounded to the power of ten of the released ones, as a file that is written has them."""
    power = granularity(released)
    return values if power is None else np.round(values, -power)


def _numbers(known: Microdata, released: Microdata, name: str) -> tuple[Array, Array]:
    """A column of both files as numbers, equal where the values are; NaN: missing."""
    if known.column(name).levels is None and released.column(name).levels is None:
        return known.numbers(name), released.numbers(name)
    both = common_codes(known, released, name).astype(float)
    both[np.concatenate([known.missing(name), released.missing(name)])] = np.nan
    return both[: len(known)], both[len(known) :]


def redone(known: Microdata, method: Method | None, *, blanks: bool = False) -> Microdata | None:
    """The snooper's records after the deterministic steps of the method; those that only blank values where `blanks`. None:
    there are none, or they cannot be done."""
    if method is None:
        return None
    steps = [step for step in method.steps if not step.random and (blanks or step.missing != "added")]
    again = _again(known, method, steps)[0]
    return None if again is known or len(again) != len(known) or again.origin is not None else again


def _again(known: Microdata, method: Method, steps: Sequence[Method]) -> tuple[Microdata, dict[str, str]]:
    """Some deterministic steps of a method done again, as they were done in it."""
    return redo_steps(known, steps, in_chain=method.steps != (method,))


def stated(method: Method, pair: Pair) -> Stated:
    """The likelihood as far as the method states one; columns that it does not touch are equal. Undefined: it has none."""
    (fields, unstated), _ = pair.remember(("stated", method), lambda: _stated(method, pair))
    if unstated and not fields:
        raise Undefined(next(iter(unstated.values())))
    untouched = [place for place, name in enumerate(pair.names) if name not in method.masked_names]
    same = [Field(pair.known_columns[place], pair.released[:, place], Same()) for place in untouched]
    return Stated((*fields, *same), unstated)


def overlapping(method: Method, pair: Pair) -> tuple[Method, ...]:
    """The steps that mask again what a random step has masked, and state no likelihood together with those before them."""
    return pair.remember(("stated", method), lambda: _stated(method, pair))[1]


def _stated(method: Method, pair: Pair) -> tuple[Stated, tuple[Method, ...]]:
    """What is stated of the masked columns, and the steps that do not fit."""
    again, groups = split_steps(method.steps)
    whole, failed = _again(pair.known_file, method, again)
    masked = method.masked_names
    known = whole.only(n for n in whole.names if n in pair.names or n not in masked).take(pair.known_rows)
    released = pair.released_file.take(pair.released_rows)
    unstated = {name: f"{type(step).__name__} states no likelihood." for step in again for name in step.masked_names}
    fields: list[Field] = []
    beyond: list[Method] = []
    for group in groups:
        names = dict.fromkeys(name for step in group for name in step.masked_names)
        still = names_not_randomized(group)
        try:
            check_dependencies(group, method.steps)
            if problems := [failed[name] for name in names if name in failed]:
                raise Undefined(f"a step before cannot be done again: {problems[0]}")
            fields += _of_group(method, group, known, released)
            unstated = {name: why for name, why in unstated.items() if name not in names or name in still}
            unstated |= {name: f"{type(group[-1]).__name__} states no likelihood." for name in names if name in still}
        except Undefined as reason:
            unstated |= dict.fromkeys(names, str(reason))
            beyond += _beyond(method, group, known, released)
    return Stated(tuple(fields), {name: unstated[name] for name in pair.names if name in unstated}), tuple(beyond)


def _of_group(method: Method, group: Sequence[Method], known: Microdata, released: Microdata) -> tuple[Field, ...]:
    try:
        return method.with_steps(group).log_likelihood(known, released)
    except SchemaError as reason:
        raise Undefined(f"the snooper does not know all that the method uses: {reason}") from None


def _beyond(method: Method, group: Sequence[Method], known: Microdata, released: Microdata) -> list[Method]:
    """The steps of a group that state no likelihood together with those before them, and those that mask again what such a
    step has masked. The others do not look at these: they might as well have come before them."""
    kept, beyond = [group[0]], list[Method]()
    for step in group[1:]:
        after = {name for other in beyond for name in other.masked_names}
        try:
            if not after.isdisjoint(step.masked_names):
                raise Undefined("it comes after a step that does not fit.")
            _of_group(method, [*kept, step], known, released)
            kept.append(step)
        except Undefined:
            beyond.append(step)
    return beyond
