"""Cells of a table: which combination of categories each record falls in, and how masking moves records.

Missing is a category of its own. A masked file is counted by difference from its base: only records whose change
touches the table are looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data.label_layers import categories_of
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.errors import SchemaError
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import LARGEST_KEY, cell_numbers, compress, count_cells, move_cells, recount
from sdcmap.kernels.tables.wildcards import MISSING

DENSE_CELLS = 1 << 22  # tables with more possible cells than this (and than twice the records) hold met cells only


@dataclass(frozen=True)
class Cells:
    """The cell of each record, and how many records each cell has (unmet cells of a dense table: 0).

    shape : the number of categories of each variable. strides : how far one step of each variable moves the number of a
        cell; None where there are more than 2^62 possible cells.
    met : the numbers of the cells that occur, rising, where only these are held; `code` and `count` then go by place.
    """

    code: Array
    count: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    met: Array | None = None


@dataclass(frozen=True)
class Moves:
    """What masking did to a table: the rows whose cell changed, their old and new cell, counts before and after.

    `old` is the cell of the same record in the original; `after` counts the masked file's records. `shape`: the number
    of categories of each variable where both tables hold every possible cell, else None.
    """

    rows: Array
    old: Array
    new: Array
    before: Array
    after: Array
    shape: tuple[int, ...] | None = None


def cells(data: Microdata, names: tuple[str, ...]) -> Cells:
    """The table of `names`, as a view: `data.view(cells, names)`."""
    if not names:
        raise SchemaError("a table needs at least one variable: state keys, or name variables.")
    shape = tuple(data.level_count(name) for name in names)
    codes = [data.codes(name) for name in names]
    space = math.prod(shape)
    if space > LARGEST_KEY:
        code, met_count = compress(codes)
        return Cells(code, met_count, shape, None)
    code, strides = cell_numbers(codes, shape)
    if space > max(DENSE_CELLS, 2 * len(data)):
        met, code, met_count = np.unique(code, return_inverse=True, return_counts=True)
        return Cells(code, met_count, shape, strides, met.astype(np.int64))
    return Cells(code, count_cells(code, space), shape, strides)


@dataclass(frozen=True)
class DistinctCells:
    """The combinations of values that occur: which one each record has, and the records that have it.

    codes : a row of category codes for each combination, MISSING where the value is missing, of whatever reason.
    """

    code: Array
    codes: Array
    count: Array


def distinct_cells(data: Microdata, names: tuple[str, ...]) -> DistinctCells:
    """The combinations of `names` that occur, as a view; work on these costs what they are, not what the file is."""
    table = data.view(cells, names)
    first = np.empty(len(table.count), dtype=np.int64)
    first[table.code[::-1]] = np.arange(len(data) - 1, -1, -1)
    met = np.flatnonzero(table.count)
    place = np.zeros(len(table.count), dtype=np.int64)
    place[met] = np.arange(len(met))
    rows = first[met]
    codes = np.column_stack([_known_codes(data, name, rows) for name in names])
    count, code = table.count[met], place[table.code]
    levels = [data.column(name).levels for name in names]
    if any(own is not None and own.null_count() > 1 for own in levels):  # several kinds of missing are one
        codes, merged = np.unique(codes, axis=0, return_inverse=True)
        code, count = merged.ravel()[code], np.bincount(merged.ravel(), count).astype(np.int64)
    return DistinctCells(code, codes, count)


def _known_codes(data: Microdata, name: str, rows: Array) -> Array:
    column, codes = data.column(name), data.codes(name)[rows].astype(np.int32)
    gone = np.isnan(column.values[rows]) if column.levels is None else column.levels.is_null().to_numpy()[codes]
    return np.where(gone, MISSING, codes)


def moves(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """How the records moved between the cells of the table of `names`."""
    if masked.base is original and masked.origin is None:
        return masked.view(_moves_from_base, names)
    return _moves_between(original, masked, names)


def _moves_from_base(masked: Microdata, names: tuple[str, ...]) -> Moves:
    base = masked if masked.base is None else masked.base
    table = base.view(cells, names)
    changes = {name: masked.changes[name] for name in names if name in masked.changes}
    recoded = any(change.levels is not None or base.column(n).levels is None for n, change in changes.items())
    if table.strides is None or recoded:
        return _moves_between(base, masked, names)
    rows = masked.changed_rows(names)
    if rows is None:
        differ = [masked.column(name).values != base.column(name).values for name in changes]
        rows = np.flatnonzero(np.logical_or.reduce(differ))
    old: Array = table.code.take(rows).astype(np.int64, copy=False)
    key = old.copy() if table.met is None else table.met[old]
    for name, stride in zip(names, table.strides, strict=True):
        if (change := changes.get(name)) is not None:
            after = change.values if change.rows is rows else masked.column(name).values[rows]
            move_cells(key, stride, base.codes(name), rows, after)
    new, before = (key, table.count) if table.met is None else _found(key, table.met, table.count)
    moved = old != new
    if np.count_nonzero(moved) < len(moved):  # faster than `all` on what is swapped
        rows, old, new = rows[moved], old[moved], new[moved]
    return Moves(rows, old, new, before, recount(before, old, new), table.shape if table.met is None else None)


def _found(key: Array, met: Array, count: Array) -> tuple[Array, Array]:
    """The places of the cells `key` among the rising `met`, and the counts, new cells appended with none."""
    place = np.searchsorted(met, key)
    unmet = met[np.minimum(place, len(met) - 1)] != key
    added, order = np.unique(key[unmet], return_inverse=True)
    place[unmet] = len(met) + order
    return place, np.concatenate([count, np.zeros(len(added), dtype=count.dtype)])


def _moves_between(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """The same by counting both files: for new categories or numbers, other rows, or endless tables."""
    split = len(original)
    code, _ = compress([common_codes(original, masked, name) for name in names])
    before, after = code[:split], code[split:]
    if masked.origin is None and len(masked) != split:
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {split}.")
    old = before if masked.origin is None else before[masked.origin]
    rows = np.flatnonzero(old != after)
    size = int(code.max()) + 1
    return Moves(rows, old[rows], after[rows], count_cells(before, size), count_cells(after, size))


def rows_by_cell(data: Microdata, names: tuple[str, ...]) -> list[Array]:
    """The rows of each cell of the table of `names`, in file order; all in one without names."""
    if not names:
        return [np.arange(len(data))]
    code = data.view(cells, names).code
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def common_codes(original: Microdata, masked: Microdata, name: str) -> Array:
    """One variable of both files, the original's rows first, coded so that equal values have equal codes."""
    first, second = original.column(name), masked.column(name)
    if (first.levels is None) != (second.levels is None):  # numbers became categories: only missing is equal in both
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
    alphabet = {level: code for code, level in enumerate(_named(ours))}
    renamed = [alphabet.setdefault(level, len(alphabet)) for level in _named(theirs)]
    return np.concatenate([first.values.astype(np.int64), np.array(renamed)[second.values]])


def joint_codes(files: Sequence[Microdata], name: str) -> tuple[list[Array], int]:
    """One categorical variable of several files in codes 0, 1, ... that are equal where values are, and their number;
    missing is one of them."""
    alphabet: dict[object, int] = {}
    codes = []
    for file in files:
        column = file.column(name)
        if column.levels is None:
            raise SchemaError(f"column {name!r} is numeric, and categories are needed.")
        levels = [None if level is None else str(level) for level in column.levels.to_list()]
        renamed = np.array([alphabet.setdefault(level, len(alphabet)) for level in levels], dtype=np.int64)
        codes.append(renamed[column.values])
    return codes, len(alphabet)


def in_released_categories(original: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """The original in the categories that masking made, where each value became one of them, or where their labels say
    which (after noise one value became several); else as it is.

    It is what a snooper does who knows an age and reads "(20, 29]" in the release. A value that has no released record
    is missing.
    """
    recoded = {name: _in_new_categories(original, masked, name) for name in names} if masked.paired else {}
    made = {name: column for name, column in recoded.items() if column is not None}
    levels = {name: column.levels for name, column in made.items() if column.levels is not None}
    return original.change(None, {name: column.values for name, column in made.items()}, levels) if made else original


def _in_new_categories(original: Microdata, masked: Microdata, name: str) -> Column | None:
    """One column of these; None where there are no new categories, or one value became several."""
    before, levels = original.column(name).levels, masked.column(name).levels
    if levels is None:
        return None
    if before is not None and set(levels.drop_nulls().cast(pl.String)) <= set(before.drop_nulls().cast(pl.String)):
        return None
    code = original.codes(name)
    known = ~masked.missing(name)
    came = (code if masked.origin is None else code[masked.origin])[known]
    released = masked.column(name).values[known]
    became = np.full(original.level_count(name), -1, dtype=np.int64)
    became[came] = released
    if (became[came] != released).any():
        count = np.bincount(masked.column(name).values, minlength=len(levels))
        met = np.flatnonzero((count > 0) & levels.is_not_null().to_numpy())
        values = pl.Series(np.unique(original.column(name).values)) if before is None else before
        place = categories_of(values, levels.gather(met).cast(pl.String).to_list())  # as the labels say; -1: none
        if place is None:
            return None
        became = np.where(place < 0, -1, met[place])
    null = levels.is_null().arg_true()
    levels = levels if len(null) else levels.clone().extend_constant(None, 1)
    became[became < 0] = null[0] if len(null) else len(levels) - 1
    return Column(became.astype(smallest_unsigned(len(levels)))[code], levels)


def _named(levels: pl.Series) -> list[Any]:
    """The levels, with a name of its own for each kind of missing."""
    nulls = count()
    return [("missing", next(nulls)) if level is None else level for level in levels.to_list()]


def stacked(columns: Sequence[Column]) -> Column:
    """Columns one below the other; their categories are those of any of them, those of missing values last."""
    first = columns[0].levels
    if first is None or all(c.levels is first for c in columns):
        return Column(np.concatenate([c.values for c in columns]), first)
    levels = [c.levels for c in columns if c.levels is not None]
    known = [categories.drop_nulls() for categories in levels]
    if len({categories.dtype for categories in levels}) > 1:
        known = [categories.cast(pl.String) for categories in known]
    union = pl.concat(known).unique(maintain_order=True)
    place = {level: code for code, level in enumerate(union.to_list())}
    values = []
    for column, own, mine in zip(columns, levels, known, strict=True):
        recode = np.empty(len(own), dtype=np.int64)
        null = own.is_null().to_numpy()
        recode[~null] = [place[level] for level in mine.to_list()]
        recode[null] = len(union) + np.arange(int(null.sum()))
        values.append(recode[column.values])
    union = union.extend_constant(None, max(categories.null_count() for categories in levels))
    return Column(np.concatenate(values).astype(smallest_unsigned(len(union))), union)
