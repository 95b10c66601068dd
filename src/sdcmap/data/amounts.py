"""Numbers of a column, also where a file holds them as ordered categories, and the grid that they lie on."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.errors import SchemaError
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import align_changes_to_grid


def holds_numbers(column: Column) -> bool:
    """Whether the values, or the categories, are numbers."""
    return column.levels is None or column.levels.dtype.is_numeric()


def amounts(data: Microdata, name: str) -> Array:
    """The numbers of one variable, NaN where missing; of categories that are numbers, these."""
    column = data.column(name)
    if column.levels is None:
        return data.numbers(name)
    if not holds_numbers(column):
        raise SchemaError(f"the categories of {name!r} are not numbers.")
    return column.levels.cast(pl.Float64).fill_null(float("nan")).to_numpy()[column.values]


def changed_amounts(data: Microdata, values: dict[str, Array]) -> Microdata:
    """The file with new numbers in place; a variable held as categories gets the categories of the new numbers."""
    columns: dict[str, Array] = {}
    levels: dict[str, pl.Series] = {}
    for name, new in values.items():
        old = data.column(name).levels
        columns[name] = new
        if old is not None:
            columns[name], levels[name] = _as_categories(new, old, data.column(name).values)
    return data.change(None, columns, levels)


def _as_categories(new: Array, old: pl.Series, codes: Array) -> tuple[Array, pl.Series]:
    known = ~np.isnan(new)
    distinct, place = np.unique(new[known], return_inverse=True)
    whole = old.dtype.is_float() or bool((distinct == np.floor(distinct)).all())
    levels = pl.Series(old.name, distinct).cast(old.dtype if whole else pl.Float64)
    null = old.is_null().to_numpy()
    places = np.empty(len(new), dtype=np.int64)
    places[known] = place
    places[~known] = len(distinct) + (np.cumsum(null) - 1)[codes[~known]]  # each kind of missing keeps its place
    levels = levels.extend_constant(None, int(null.sum())) if null.any() else levels
    return places.astype(smallest_unsigned(len(levels))), levels


# The grid that the numbers of a column lie on, kept by what a step of a chain makes of some of them.


def on_one_grid(before: Microdata, after: Microdata) -> Microdata:
    """What a step made, its new numbers on the grid of the others in their column."""
    if before.origin is not after.origin or not after.paired:
        return after
    new: dict[str, Array] = {}
    for name in after.changes:
        made, left = after.column(name), before.column(name)
        if made.levels is None and left.levels is None and made.values is not left.values and name != after.weight:
            moved = align_changes_to_grid(made.values, left.values)
            new |= {} if moved is made.values else {name: moved}
    return after.change(None, new) if new else after
