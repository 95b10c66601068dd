"""What a reader of the method note can state about each column.

A column is unchanged, or known after deterministic steps are replayed, or random with a stated likelihood.
Deterministic steps are replayed on the attacker's records as long as no random step has touched their columns. The
remaining steps are stated in groups that mask columns in common (`core/steps.py`). Where such a group states no joint
likelihood, its errors must be learned, and the file before the step that does not fit gives an upper bound of the
risk.
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


class StatedLikelihood(NamedTuple):
    """The likelihood of a released record given a known one, as fields; and the reason for columns without one."""

    fields: tuple[Field, ...]
    unstated: dict[str, str]


def find_certain_columns(pair: Pair, method: Method | None) -> dict[int, tuple[Array, Array]]:
    """Return the columns (by index) whose released values an attacker without errors can predict.

    The result has both sides of each column, as numbers. These are columns that the method does not touch, and columns
    that only its deterministic steps touch, after replaying them. A deterministic step can depend on rows that were
    not released (a sample), or on columns changed before it. So replayed values count only if they equal the released
    ones for all records.
    """
    if method is None or not pair.holds_originals:
        return {}
    masked = method.masked_names
    columns = {p: (pair.known_columns[p], pair.released[:, p]) for p, n in enumerate(pair.names) if n not in masked}
    replayed = replay_deterministic_steps(pair.known_file, method, blanks=True)
    with_truth = np.flatnonzero(pair.truth >= 0)
    for index, name in enumerate(pair.names):
        is_deterministic = all(not step.random for step in method.steps if name in step.masked_names)
        if replayed is not None and name in masked and is_deterministic:
            known_values, released_values = _numbers(replayed, pair.released_file, name)
            known_values, released_values = known_values[pair.known_rows], released_values[pair.released_rows]
            # A file is often written with rounded numbers, so rounded values are tried as well.
            for candidate in (known_values, _round_like(released_values, known_values)):
                a, b = candidate[pair.truth[with_truth]], released_values[with_truth]
                if ((a == b) | (np.isnan(a) & np.isnan(b))).all():
                    columns[index] = candidate, released_values
                    break
    return columns


def _round_like(released: Array, values: Array) -> Array:
    """Return the values rounded to the power of ten of the released ones, as in a written file."""
    power = granularity(released)
    return values if power is None else np.round(values, -power)


def _numbers(known: Microdata, released: Microdata, name: str) -> tuple[Array, Array]:
    """Return a column of both files as numbers that are equal where the values are; NaN: missing."""
    if known.column(name).levels is None and released.column(name).levels is None:
        return known.numbers(name), released.numbers(name)
    both = common_codes(known, released, name).astype(float)
    both[np.concatenate([known.missing(name), released.missing(name)])] = np.nan
    return both[: len(known)], both[len(known) :]


def replay_deterministic_steps(known: Microdata, method: Method | None, *, blanks: bool = False) -> Microdata | None:
    """Return the attacker's records after the deterministic and simulated steps of the method; None without any, or if
    they fail.

    blanks : include steps that only suppress values
    """
    if method is None:
        return None
    steps = [
        step for step in method.steps if (not step.random or step.is_simulated) and (blanks or step.missing != "added")
    ]
    replayed = _replay(known, method, steps)[0]
    return None if replayed is known or len(replayed) != len(known) or replayed.origin is not None else replayed


def _replay(known: Microdata, method: Method, steps: Sequence[Method]) -> tuple[Microdata, dict[str, str]]:
    """Replay deterministic steps of a method on the known records, as they were done in it."""
    return redo_steps(known, steps, in_chain=method.steps != (method,))


def state_likelihood(method: Method, pair: Pair) -> StatedLikelihood:
    """Return the likelihood as far as the method states one; Undefined if it states none.

    Columns that the method does not touch must be equal.
    """
    (fields, unstated), _ = pair.remember(("stated", method), lambda: _state_masked(method, pair))
    if unstated and not fields:
        raise Undefined(next(iter(unstated.values())))
    untouched = [index for index, name in enumerate(pair.names) if name not in method.masked_names]
    same = [Field(pair.known_columns[index], pair.released[:, index], Same()) for index in untouched]
    return StatedLikelihood((*fields, *same), unstated)


def find_overlapping_steps(method: Method, pair: Pair) -> tuple[Method, ...]:
    """Return the steps that mask again what a random step has masked, without a joint likelihood."""
    return pair.remember(("stated", method), lambda: _state_masked(method, pair))[1]


def _state_masked(method: Method, pair: Pair) -> tuple[StatedLikelihood, tuple[Method, ...]]:
    """Return what is stated of the masked columns, and the steps that do not fit."""
    replayed, groups = split_steps(method.steps)
    replayed_file, failed = _replay(pair.known_file, method, replayed)
    masked = method.masked_names
    available = (name for name in replayed_file.names if name in pair.names or name not in masked)
    known = replayed_file.only(available).take(pair.known_rows)
    released = pair.released_file.take(pair.released_rows)
    unstated = {name: f"{type(step).__name__} states no likelihood." for step in replayed for name in step.masked_names}
    fields: list[Field] = []
    unfitting: list[Method] = []
    for group in groups:
        # A group states one joint likelihood. If it cannot, all its columns are learned, and the steps that prevent it
        # are collected for the bound of the file before them.
        names = dict.fromkeys(name for step in group for name in step.masked_names)
        unmoved = names_not_randomized(group)
        try:
            check_dependencies(group, method.steps)
            if problems := [failed[name] for name in names if name in failed]:
                raise Undefined(f"an earlier step cannot be replayed: {problems[0]}")
            fields += _group_likelihood(method, group, known, released)
            unstated = {name: why for name, why in unstated.items() if name not in names or name in unmoved}
            unstated |= {name: f"{type(group[-1]).__name__} states no likelihood." for name in names if name in unmoved}
        except Undefined as reason:
            unstated |= dict.fromkeys(names, str(reason))
            unfitting += _find_unfitting(method, group, known, released)
    unstated = {name: unstated[name] for name in pair.names if name in unstated}
    return StatedLikelihood(tuple(fields), unstated), tuple(unfitting)


def _group_likelihood(
    method: Method, group: Sequence[Method], known: Microdata, released: Microdata
) -> tuple[Field, ...]:
    """Return the joint likelihood of a group of steps."""
    try:
        return method.with_steps(group).log_likelihood(known, released)
    except SchemaError as reason:
        raise Undefined(f"the attacker does not know everything that the method uses: {reason}") from None


def _find_unfitting(method: Method, group: Sequence[Method], known: Microdata, released: Microdata) -> list[Method]:
    """Return the steps of a group that state no joint likelihood with those before them.

    Later steps on the same columns are included. The other steps do not read these columns, so they could as well have
    come first.
    """
    fitting, unfitting = [group[0]], list[Method]()
    for step in group[1:]:
        after = {name for other in unfitting for name in other.masked_names}
        try:
            if not after.isdisjoint(step.masked_names):
                raise Undefined("the step follows one that states no joint likelihood.")
            _group_likelihood(method, [*fitting, step], known, released)
            fitting.append(step)
        except Undefined:
            unfitting.append(step)
    return unfitting
