"""Cells of a table: the combination of categories of each record, and how masking moves records between cells.

Missing is a category of its own. A masked file is counted as a difference from its base: only records that changed in a
variable of the table are counted again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data.label_layers import assign_categories
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.errors import SchemaError
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import LARGEST_KEY, cell_numbers, compress, count_cells, move_cells, recount
from sdcmap.kernels.tables.wildcards import MISSING

# Tables with more possible cells than this (and than twice the records) store only the cells that occur.
DENSE_CELLS = 1 << 22


@dataclass(frozen=True)
class Cells:
    """The cell of each record, and the number of records in each cell.

    code : the cell number of each record.
    count : records in each cell; 0 for an empty cell of a dense table.
    shape : the number of categories of each variable.
    strides : how much the cell number changes when a variable's code grows by 1; None beyond 2^62 possible cells.
    observed : where only occurring cells are stored, their cell numbers in ascending order; `code` and `count` then
        index this array.
    """

    code: Array
    count: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    observed: Array | None = None


@dataclass(frozen=True)
class Moves:
    """The effect of masking on a table.

    rows : rows of the masked file whose cell changed.
    old, new : the cells of these rows, in the original and in the masked file.
    before, after : counts of all cells in the original and in the masked file.
    shape : the number of categories of each variable if both tables store every possible cell, else None.
    """

    rows: Array
    old: Array
    new: Array
    before: Array
    after: Array
    shape: tuple[int, ...] | None = None


def cells(data: Microdata, names: tuple[str, ...]) -> Cells:
    """Return the table of `names`. Call it as a view, `data.view(cells, names)`, so that it is computed once."""
    if not names:
        raise SchemaError("a table needs at least one variable: state key variables, or name the variables.")
    shape = tuple(data.level_count(name) for name in names)
    codes = [data.codes(name) for name in names]
    space = math.prod(shape)
    if space > LARGEST_KEY:
        # A cell number would not fit 64 bits: number the combinations that occur.
        code, observed_count = compress(codes)
        return Cells(code, observed_count, shape, None)
    code, strides = cell_numbers(codes, shape)
    if space > max(DENSE_CELLS, 2 * len(data)):
        # Most cells are empty: a dense array of counts would cost more than the records themselves.
        observed, code, observed_count = np.unique(code, return_inverse=True, return_counts=True)
        return Cells(code, observed_count, shape, strides, observed.astype(np.int64))
    return Cells(code, count_cells(code, space), shape, strides)


@dataclass(frozen=True)
class DistinctCells:
    """The combinations of values that occur.

    code : the combination of each record.
    codes : one row of category codes for each combination, MISSING where the value is missing for any reason.
    count : records of each combination.
    """

    code: Array
    codes: Array
    count: Array


def distinct_cells(data: Microdata, names: tuple[str, ...]) -> DistinctCells:
    """Return the combinations of `names` that occur, as a view. Loops over these are shorter than loops over records."""
    table = data.view(cells, names)
    # The first record of each cell gives the category codes of the cell.
    first = np.empty(len(table.count), dtype=np.int64)
    first[table.code[::-1]] = np.arange(len(data) - 1, -1, -1)
    observed = np.flatnonzero(table.count)
    index = np.zeros(len(table.count), dtype=np.int64)
    index[observed] = np.arange(len(observed))
    rows = first[observed]
    codes = np.column_stack([_known_codes(data, name, rows) for name in names])
    count, code = table.count[observed], index[table.code]
    levels = [data.column(name).levels for name in names]
    if any(own is not None and own.null_count() > 1 for own in levels):
        # Combinations that differ only in the reason for a missing value count as one.
        codes, merged = np.unique(codes, axis=0, return_inverse=True)
        code, count = merged.ravel()[code], np.bincount(merged.ravel(), count).astype(np.int64)
    return DistinctCells(code, codes, count)


def _known_codes(data: Microdata, name: str, rows: Array) -> Array:
    column, codes = data.column(name), data.codes(name)[rows].astype(np.int32)
    gone = np.isnan(column.values[rows]) if column.levels is None else column.levels.is_null().to_numpy()[codes]
    return np.where(gone, MISSING, codes)


def moves(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """Return how masking moved the records between the cells of the table of `names`."""
    if masked.base is original and masked.origin is None:
        return masked.view(_moves_from_base, names)
    return _moves_between(original, masked, names)


def _moves_from_base(masked: Microdata, names: tuple[str, ...]) -> Moves:
    base = masked if masked.base is None else masked.base
    table = base.view(cells, names)
    changes = {name: masked.changes[name] for name in names if name in masked.changes}
    recoded = any(change.levels is not None or base.column(n).levels is None for n, change in changes.items())
    if table.strides is None or recoded:
        # New categories have no cell number in the base's table.
        return _moves_between(base, masked, names)
    rows = masked.changed_rows(names)
    if rows is None:
        # Without a list of changed rows, compare the columns.
        differ = [masked.column(name).values != base.column(name).values for name in changes]
        rows = np.flatnonzero(np.logical_or.reduce(differ))
    old: Array = table.code.take(rows).astype(np.int64, copy=False)
    key = old.copy() if table.observed is None else table.observed[old]
    for name, stride in zip(names, table.strides, strict=True):
        if (change := changes.get(name)) is not None:
            after = change.values if change.rows is rows else masked.column(name).values[rows]
            move_cells(key, stride, base.codes(name), rows, after)
    if table.observed is None:
        new, before = key, table.count
    else:
        new, before = _locate_cells(key, table.observed, table.count)
    moved = old != new
    if np.count_nonzero(moved) < len(moved):  # faster than `all` for swapped files
        rows, old, new = rows[moved], old[moved], new[moved]
    return Moves(rows, old, new, before, recount(before, old, new), table.shape if table.observed is None else None)


def _locate_cells(key: Array, observed: Array, count: Array) -> tuple[Array, Array]:
    """Return the index of each cell of `key` in the ascending `observed`, and the counts with new cells appended as 0."""
    index = np.searchsorted(observed, key)
    is_new = observed[np.minimum(index, len(observed) - 1)] != key
    added, order = np.unique(key[is_new], return_inverse=True)
    index[is_new] = len(observed) + order
    return index, np.concatenate([count, np.zeros(len(added), dtype=count.dtype)])


def _moves_between(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """Return the moves by counting both files: needed for new categories, numbers, other rows, or very large tables."""
    split = len(original)
    code, _ = compress([common_codes(original, masked, name) for name in names])
    before, after = code[:split], code[split:]
    if masked.origin is None and len(masked) != split:
        raise SchemaError(
            f"the masked file has {len(masked):,} rows and the original {split:,}: both must have the same rows."
        )
    old = before if masked.origin is None else before[masked.origin]
    rows = np.flatnonzero(old != after)
    size = int(code.max()) + 1
    return Moves(rows, old[rows], after[rows], count_cells(before, size), count_cells(after, size))


def rows_by_cell(data: Microdata, names: tuple[str, ...]) -> list[Array]:
    """Return the rows of each cell of the table of `names`, in file order; without names, all rows form one cell."""
    if not names:
        return [np.arange(len(data))]
    code = data.view(cells, names).code
    # A stable sort keeps the file order within each cell.
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def common_codes(original: Microdata, masked: Microdata, name: str) -> Array:
    """Return the codes of a variable in both files, the original's rows first; equal values have equal codes."""
    first, second = original.column(name), masked.column(name)
    if (first.levels is None) != (second.levels is None):
        # Numbers became categories: no value of one file equals a value of the other, except missing.
        before = np.where(original.missing(name), -1, original.codes(name).astype(np.int64))
        after = np.where(masked.missing(name), -1, masked.codes(name).astype(np.int64) + original.level_count(name))
        return np.concatenate([before, after]) + 1
    if first.levels is None or second.levels is None:
        return np.unique(np.concatenate([first.values, second.values]), return_inverse=True)[1]
    if first.levels is second.levels or first.levels.equals(second.levels):
        return np.concatenate([first.values, second.values])
    ours, theirs = first.levels, second.levels
    if ours.dtype != theirs.dtype:
        ours, theirs = ours.cast(pl.String), theirs.cast(pl.String)
    # Give levels of the masked file the code of the equal level, or a new code.
    alphabet = {level: code for code, level in enumerate(_name_nulls(ours))}
    renamed = [alphabet.setdefault(level, len(alphabet)) for level in _name_nulls(theirs)]
    return np.concatenate([first.values.astype(np.int64), np.array(renamed)[second.values]])


def joint_codes(files: Sequence[Microdata], name: str) -> tuple[list[Array], int]:
    """Return the codes of a categorical variable in several files, equal where values are equal, and the number of codes.

    Missing has a code of its own.
    """
    alphabet: dict[object, int] = {}
    codes = []
    for file in files:
        column = file.column(name)
        if column.levels is None:
            raise SchemaError(f"column {name!r} is numeric, but a categorical column is needed here.")
        levels = [None if level is None else str(level) for level in column.levels.to_list()]
        renamed = np.array([alphabet.setdefault(level, len(alphabet)) for level in levels], dtype=np.int64)
        codes.append(renamed[column.values])
    return codes, len(alphabet)


def recode_to_released_categories(original: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """Return the original recoded to the categories of the release.

    An attacker who knows an age does the same when the release has "(20, 29]". The category of a value is the one that
    all its records received. If noise gave one value several categories, the labels decide (see `assign_categories`);
    if they cannot be read, the column stays as it is. A value without any released record becomes missing.
    """
    recoded = {name: _in_new_categories(original, masked, name) for name in names} if masked.paired else {}
    columns = {name: column for name, column in recoded.items() if column is not None}
    levels = {name: column.levels for name, column in columns.items() if column.levels is not None}
    values = {name: column.values for name, column in columns.items()}
    return original.change(None, values, levels) if columns else original


def _in_new_categories(original: Microdata, masked: Microdata, name: str) -> Column | None:
    """Return one recoded column; None if it has no new categories, or if a value has several and labels do not help."""
    before, levels = original.column(name).levels, masked.column(name).levels
    if levels is None or levels is before:  # the usual case: no category is new, and none need be compared
        return None
    if before is not None and set(levels.drop_nulls().cast(pl.String)) <= set(before.drop_nulls().cast(pl.String)):
        return None
    code = original.codes(name)
    known = ~masked.missing(name)
    original_code = (code if masked.origin is None else code[masked.origin])[known]
    released_code = masked.column(name).values[known]
    new_code = np.full(original.level_count(name), -1, dtype=np.int64)
    new_code[original_code] = released_code
    if (new_code[original_code] != released_code).any():
        # One value has several released categories: assign it by what the labels say.
        count = np.bincount(masked.column(name).values, minlength=len(levels))
        observed = np.flatnonzero((count > 0) & levels.is_not_null().to_numpy())
        values = pl.Series(np.unique(original.column(name).values)) if before is None else before
        index = assign_categories(values, levels.gather(observed).cast(pl.String).to_list())
        if index is None:
            return None
        new_code = np.where(index < 0, -1, observed[index])
    # Values without a released category become missing: use the null level, or add one.
    null = levels.is_null().arg_true()
    levels = levels if len(null) else levels.clone().extend_constant(None, 1)
    new_code[new_code < 0] = null[0] if len(null) else len(levels) - 1
    return Column(new_code.astype(smallest_unsigned(len(levels)))[code], levels)


def _name_nulls(levels: pl.Series) -> list[Any]:
    """Return the levels with a distinct name for each null, because each null level stands for another reason."""
    nulls = count()
    return [("missing", next(nulls)) if level is None else level for level in levels.to_list()]


def _stack_reasons(columns: Sequence[Column]) -> Array | None:
    """Return the reasons of columns one below the other; None if no column has any."""
    if all(column.reasons is None for column in columns):
        return None
    return np.concatenate([np.zeros(len(c.values), np.uint8) if c.reasons is None else c.reasons for c in columns])


def stack_columns(columns: Sequence[Column]) -> Column:
    """Return columns one below the other. The categories are the union of theirs, with null levels last."""
    first = columns[0].levels
    if first is None or all(c.levels is first for c in columns):
        return Column(np.concatenate([c.values for c in columns]), first, _stack_reasons(columns))
    levels = [c.levels for c in columns if c.levels is not None]
    known = [categories.drop_nulls() for categories in levels]
    if len({categories.dtype for categories in levels}) > 1:
        known = [categories.cast(pl.String) for categories in known]
    union = pl.concat(known).unique(maintain_order=True)
    codes = {level: code for code, level in enumerate(union.to_list())}
    values = []
    for column, own, mine in zip(columns, levels, known, strict=True):
        recode = np.empty(len(own), dtype=np.int64)
        null = own.is_null().to_numpy()
        recode[~null] = [codes[level] for level in mine.to_list()]
        recode[null] = len(union) + np.arange(int(null.sum()))
        values.append(recode[column.values])
    union = union.extend_constant(None, max(categories.null_count() for categories in levels))
    return Column(np.concatenate(values).astype(smallest_unsigned(len(union))), union)
