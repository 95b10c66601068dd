"""Cells of a table: which combination of categories each record falls in, and how masking moves records.

Missing is a category of its own. A masked file is counted by difference from its base: only records whose change
touches the table are looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from sdcmap.errors import SchemaError
from sdcmap.kernels.cells import compress, mixed_radix, shift_cells
from sdcmap.microdata import Array, Microdata

DENSE_CELLS = 1 << 22  # tables with more possible cells than this (and than twice the records) hold met cells only


@dataclass(frozen=True)
class Cells:
    """The cell of each record, and how many records each cell has (unmet cells of a dense table: 0)."""

    code: Array
    count: Array
    strides: tuple[int, ...] | None  # how far one step of each variable moves the code; None: met cells only


@dataclass(frozen=True)
class Moves:
    """What masking did to a table: the rows whose cell changed, their old and new cell, counts before and after.

    `old` is the cell of the same record in the original; `after` counts the masked file's records.
    """

    rows: Array
    old: Array
    new: Array
    before: Array
    after: Array


def cells(data: Microdata, names: tuple[str, ...]) -> Cells:
    """The table of `names`, as a view: `data.view(cells, names)`."""
    if not names:
        raise SchemaError("a table needs at least one variable: state keys, or name variables.")
    sizes = [data.level_count(name) for name in names]
    codes = [data.codes(name) for name in names]
    space = float(np.prod([float(size) for size in sizes]))
    if space > max(DENSE_CELLS, 2 * len(data)):
        code, count = compress(codes)
        return Cells(code, count, None)
    code, strides = mixed_radix(codes, sizes)
    return Cells(code, np.bincount(code, minlength=int(space)), strides)


def moves(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """How the records moved between the cells of the table of `names`."""
    if masked.base is original and masked.origin is None:
        return masked.view(_moves_from_base, names)
    return _moves_between(original, masked, names)


def _moves_from_base(masked: Microdata, names: tuple[str, ...]) -> Moves:
    base = masked if masked.base is None else masked.base
    table = base.view(cells, names)
    rows = masked.changed_rows(names)
    touched = [name for name in names if name in masked.changes]
    recoded = any(masked.changes[n].levels is not None or masked.column(n).levels is None for n in touched)
    if rows is None or table.strides is None or recoded:
        return _moves_between(base, masked, names)
    shift = np.zeros(len(rows), dtype=np.int64)
    for name, stride in zip(names, table.strides, strict=True):
        if name in masked.changes:
            change = masked.changes[name]
            after = change.values if change.rows is rows else masked.column(name).values[rows]
            shift += stride * (after.astype(np.int64) - base.codes(name)[rows])
    moved, old, new, after_count = shift_cells(table.code, table.count, rows, shift)
    return Moves(rows[moved], old, new, table.count, after_count)


def _moves_between(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Moves:
    """The same by counting both files: for whole-column changes, new categories, other rows, or huge tables."""
    split = len(original)
    code, _ = compress([common_codes(original, masked, name) for name in names])
    before, after = code[:split], code[split:]
    if masked.origin is None and len(masked) != split:
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {split}.")
    old = before if masked.origin is None else before[masked.origin]
    rows = np.flatnonzero(old != after)
    size = int(code.max()) + 1
    return Moves(rows, old[rows], after[rows], np.bincount(before, minlength=size), np.bincount(after, minlength=size))


def weighted_counts(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """Sum of the survey weights in each cell of the table of `names`, before and after masking."""
    code, count = compress([common_codes(original, masked, name) for name in names])
    before, after = np.split(code, [len(original)])
    return (
        np.bincount(before, original.weights, minlength=len(count)),
        np.bincount(after, masked.weights, minlength=len(count)),
    )


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
