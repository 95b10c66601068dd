"""Read and replace the numbers of a column, including columns whose categories are numbers."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.errors import SchemaError
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import align_changes_to_grid

MIN_DISTINCT_AMOUNTS = 10  # values of a column that is explained as an amount, or whose ordered categories are one


def has_numbers(column: Column) -> bool:
    """Return whether the values of a column, or its categories, are numbers."""
    return column.levels is None or column.levels.dtype.is_numeric()


def has_ordered_numbers(data: Microdata, name: str) -> bool:
    """Return whether a column has numbers, or ordered categories that are numbers; codes are not."""
    column = data.column(name)
    return column.levels is None or (data.schema[name].kind == "ordinal" and has_numbers(column))


def is_amount(data: Microdata, name: str) -> bool:
    """Return whether analysts use a column as an amount: numbers, or ordered categories that are many numbers, as ages."""
    if data.column(name).levels is None:
        return True
    return has_ordered_numbers(data, name) and data.level_count(name) >= MIN_DISTINCT_AMOUNTS


def amounts(data: Microdata, name: str) -> Array:
    """Return the numbers of a variable, NaN where missing; categories that are numbers are converted."""
    column = data.column(name)
    if column.levels is None:
        return data.numbers(name)
    if not has_numbers(column):
        raise SchemaError(f"the categories of {name!r} are not numbers: choose a numeric column.")
    return column.levels.cast(pl.Float64).fill_null(float("nan")).to_numpy()[column.values]


def replace_amounts(data: Microdata, values: dict[str, Array]) -> Microdata:
    """Return the file with new numbers in some columns; a column of categories gets one category for each new number."""
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
    distinct, index = np.unique(new[known], return_inverse=True)
    # Integer categories stay integers while all new numbers are whole.
    whole = old.dtype.is_float() or bool((distinct == np.floor(distinct)).all())
    levels = pl.Series(old.name, distinct).cast(old.dtype if whole else pl.Float64)
    null = old.is_null().to_numpy()
    new_codes = np.empty(len(new), dtype=np.int64)
    new_codes[known] = index
    # Each reason for a missing value has a null level of its own. They come after the numbers, in their old order.
    new_codes[~known] = len(distinct) + (np.cumsum(null) - 1)[codes[~known]]
    levels = levels.extend_constant(None, int(null.sum())) if null.any() else levels
    return new_codes.astype(smallest_unsigned(len(levels))), levels


def snap_to_column_grid(before: Microdata, after: Microdata) -> Microdata:
    """Return the file after a step, with changed numbers rounded to the grid of their column.

    A chain may change only some numbers of a column. If the others lie on a grid (whole dollars, say), numbers off that
    grid would mark the changed records.
    """
    if before.origin is not after.origin or not after.paired:
        return after
    new: dict[str, Array] = {}
    for name in after.changes:
        changed, original = after.column(name), before.column(name)
        are_numbers = changed.levels is None and original.levels is None
        if are_numbers and changed.values is not original.values and name != after.weight:
            rounded = align_changes_to_grid(changed.values, original.values)
            new |= {} if rounded is changed.values else {name: rounded}
    return after.change(None, new) if new else after
