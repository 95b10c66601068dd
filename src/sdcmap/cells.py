"""Cells of a table: which combination of categories each record falls in, and how masking moves records.

Missing is a category of its own. A masked file is counted by difference from its base: only records whose change
touches the table are looked at again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from sdcmap.errors import SchemaError
from sdcmap.kernels.cells import LARGEST_KEY, compress, count_cells, mixed_radix, move_cells, recount
from sdcmap.microdata import Array, Microdata

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
    code, strides = mixed_radix(codes, shape)
    if space > max(DENSE_CELLS, 2 * len(data)):
        met, code, met_count = np.unique(code, return_inverse=True, return_counts=True)
        return Cells(code, met_count, shape, strides, met.astype(np.int64))
    return Cells(code, count_cells(code, space), shape, strides)


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
        change = changes.get(name)
        if change is not None:
            after = change.values if change.rows is rows else masked.column(name).values[rows]
            move_cells(key, stride, base.codes(name), rows, after)
    new, before = (key, table.count) if table.met is None else _found(key, table.met, table.count)
    moved = old != new
    if not moved.all():
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


def common_codes(original: Microdata, masked: Microdata, name: str) -> Array:
    """One variable of both files, the original's rows first, coded so that equal values have equal codes."""
    first, second = original.column(name), masked.column(name)
    if first.levels is None or second.levels is None:
        both = np.concatenate([first.values, second.values])
        return np.unique(both, return_inverse=True)[1]
    if first.levels is second.levels or first.levels.equals(second.levels):
        return np.concatenate([first.values, second.values])
    alphabet = {level: code for code, level in enumerate(_named(first.levels))}
    renamed = [alphabet.setdefault(level, len(alphabet)) for level in _named(second.levels)]
    return np.concatenate([first.values.astype(np.int64), np.array(renamed)[second.values]])


def _named(levels: pl.Series) -> list[Any]:
    """The levels, with a name of its own for each kind of missing."""
    nulls = count()
    return [("missing", next(nulls)) if level is None else level for level in levels.to_list()]
