"""What a reader of the method note can state of each column: that it is as it was, what a deterministic step makes of it,
or how likely a random step makes one value of another.

A chain is walked step by step. Deterministic steps are done again on the snooper's records; a random step states its
likelihood where no other step touches its columns. Of the other columns nothing can be stated: their errors must be learnt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core.likelihood import Field, Normal, Rounded, Same
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.cells import common_codes
from sdcmap.data.grid import on_one_grid
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.risk._linking import Pair

TINY = 1e-9  # of a field in units of its standard deviation
AGAIN = Stream.of_seed(0, "redone")  # of steps that draw nothing


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
    columns = {
        place: (pair.known[:, place], pair.released[:, place])
        for place, name in enumerate(pair.names)
        if name not in masked
    }
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
    again = known
    in_chain = method is not None and method.steps != (method,)
    for step in () if method is None else method.steps:
        if step.random or (step.missing == "added" and not blanks):
            continue
        try:
            after = step.apply(again, AGAIN)
            again = on_one_grid(again, after) if in_chain else after
        except (SchemaError, Infeasible):  # the step needs what a step before it makes
            continue
    if again is known or len(again) != len(known) or again.origin is not None:
        return None
    return again


def stated(method: Method, pair: Pair) -> Stated:
    """The likelihood as far as the method states one; columns that it does not touch are equal. Undefined: it has none."""
    masked = method.masked_names
    known = pair.known_file.only(n for n in pair.known_file.names if n in pair.names or n not in masked)
    known, released = known.take(pair.known_rows), pair.released_file.take(pair.released_rows)
    fields: list[Field] = []
    unstated: dict[str, str] = {}
    within: dict[str, float] = {}  # cells to which columns are rounded after a random step that states its likelihood
    for number, step in enumerate(method.steps):
        try:
            if not step.random:
                reason = f"{type(step).__name__} states no likelihood."
                unstated |= {name: reason for name in step.masked_names if name not in within}
                known = step.apply(known, AGAIN)
                continue
            cells = _cells_after(method.steps, number)
            fields += _in_cells(_of_step(step, known, released), step, known, released, cells)
            within |= cells
        except (Undefined, SchemaError, Infeasible) as reason:
            unstated |= dict.fromkeys(step.masked_names, str(reason))
    unstated = {name: unstated[name] for name in pair.names if name in unstated}
    if unstated and not fields:
        raise Undefined(next(iter(unstated.values())))
    same = [
        Field(pair.known[:, place], pair.released[:, place], Same())
        for place, name in enumerate(pair.names)
        if name not in masked
    ]
    return Stated((*fields, *same), unstated)


def _of_step(step: Method, known: Microdata, released: Microdata) -> tuple[Field, ...]:
    try:
        return step.log_likelihood(known, released)
    except SchemaError as reason:
        raise Undefined(f"the snooper does not know all that the method uses: {reason}") from None


def _cells_after(steps: Sequence[Method], number: int) -> dict[str, float]:
    """The columns of a random step that a later one rounds, with the width of the cell; Undefined where another step does
    more: masks what it looks at, or masks after it what it makes."""
    step, cells = steps[number], dict[str, float]()
    for place, other in enumerate(steps):
        if place == number:
            continue
        looked_at = step._columns() if other.random else step.masked_names if place > number else ()
        shared = sorted(set(looked_at) & set(other.masked_names))
        if place > number and other.cell > 0 and not cells.keys() & set(shared):
            cells |= dict.fromkeys(shared, other.cell)
        elif shared:
            what = f"{type(other).__name__} masks what {type(step).__name__} looks at ({', '.join(shared)})"
            raise Undefined(f"{what}: a chain states a likelihood where its steps work on different variables.")
    return cells


def _in_cells(
    fields: Sequence[Field], step: Method, known: Microdata, released: Microdata, cells: dict[str, float]
) -> list[Field]:
    """The fields of a random step whose normal values were rounded after it: the chance of the cell in its density's place.

    A column belongs to the field that moves when the column does. Its variance already has what rounding to a power of ten
    adds to it, a twelfth of the square; here that is taken off.
    """
    cut = list(fields)
    for name in (name for name in cells if name in known.names):
        values, width = released.numbers(name), cells[name]
        moved = _of_step(step, known, released.change(None, {name: values + width}))
        shifts = [after.released - before.released for before, after in zip(fields, moved, strict=True)]
        mine = [place for place, shift in enumerate(shifts) if np.abs(np.nan_to_num(shift)).max(initial=0.0) > TINY]
        field = fields[mine[0]] if len(mine) == 1 else None
        if field is None or not isinstance(field.density, Normal):
            raise Undefined(f"{type(step).__name__} states no likelihood of {name} alone, which was rounded after it.")
        full = float(np.nanmedian(shifts[mine[0]]))
        power = granularity(values)
        allowed = 0.0 if power is None else (10.0**power / width * full) ** 2 / 12
        sd = math.sqrt(max(field.density.sd**2 - allowed, TINY))
        cut[mine[0]] = Field(field.known, field.released, Rounded(sd, abs(full) / 2))
    return cut
