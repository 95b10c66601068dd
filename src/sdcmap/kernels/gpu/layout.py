"""The layout of both files in GPU memory, and the settings their kernels are compiled with.

Rows are stored field by field, columns record by record: neighboring threads hold neighboring rows, and all threads of a
block read the same column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import cuda

Array = NDArray[Any]
# Kinds of fields, numbered as in risk/linkage/field_costs.py.
NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE, CELL = range(10)
LIKELIEST = 10  # a mixture represented by its likeliest component, as in risk/linkage/field_links.py
STATES = 4  # entries of a NUMBER's table before its distances: both, known, released value missing; equal values

THREADS = 128  # threads of a block
TILE = 64  # columns that a block loads into shared memory at a time
SEARCH_THREADS = 256  # threads of a block that searches a single row
BISECTION_STEPS = 8  # of the bound of the k-th smallest cost; eight leave it a little too large, which is safe

# How the columns are divided among blocks.
BLOCKS_PER_PROCESSOR = 8  # blocks that a multiprocessor runs at the same time
MAX_WAVES = 8  # rounds of blocks, at most
MAX_PARTS = 16  # parts of the columns that are always allowed, whatever the rounds
UNEVEN_END = 0.1  # share of a round that is lost because blocks end at different times
START_COLUMNS = 32  # a part takes as long to start as this many columns take to compute
ROWS_PER_THREAD = ((8, 4), (24, 2))  # (numbers per row up to, rows per thread); beyond, one row per thread


class Field(NamedTuple):
    """One field of both files, and the cost of two of its values.

    A `Cost` of `risk.linkage.field_costs` has the same attributes and can be used instead.
    """

    kind: int
    known: Array
    released: Array
    scale: float = 1.0
    cap: float = 1.0
    both: float = 0.0  # cost if both values are missing
    one: float = 1.0  # cost if one value is missing
    table: Array = np.zeros(0)


@dataclass(frozen=True, eq=False)
class DeviceLayout:
    """Both files as a kernel reads them."""

    rows: Array  # (field, record)
    columns: Array  # (record, field), padded to 16 bytes
    files: tuple[str, ...]  # CUDA sources
    settings: Mapping[str, int | str]  # macros
    fused: bool
    constants: Mapping[str, Array] = field(default_factory=dict)
    tables: Array = field(default_factory=lambda: np.zeros(0))


class GpuFiles:
    """Both files in GPU memory, with the kernels compiled for them."""

    def __init__(self, layout: DeviceLayout) -> None:
        cupy = cuda.cupy()
        self.row_count, self.column_count = layout.rows.shape[1], len(layout.columns)
        self.layout = layout
        self.rows, self.columns, self.tables = (
            cupy.asarray(part) for part in (layout.rows, layout.columns, layout.tables)
        )
        self.module = cuda.compile_kernels(layout.files, layout.settings, fused=layout.fused)

    def kernel(self, name: str) -> Any:
        return self.module.get_function(name)

    def upload_constants(self) -> None:
        """Write the constants of these files; one compiled module may serve several pairs of files in turn."""
        cupy = cuda.cupy()
        constants = dict(self.layout.constants)
        if len(self.tables):
            constants["tables"] = np.array([self.tables.data.ptr], dtype=np.uint64)
        for name, values in constants.items():
            cupy.ndarray(values.shape, values.dtype, self.module.get_global(name)).set(values)


def chunk_size(columns: int, parts: int) -> int:
    """Return how many columns each of `parts` parts has, in whole tiles."""
    return cuda.blocks(cuda.blocks(columns, parts), TILE) * TILE


@cache
def column_parts(blocks: int, columns: int, slots: int = 0) -> int:
    """Return into how many parts to divide the columns so that the blocks of all parts fill the GPU.

    blocks : blocks that cover the rows. slots : blocks that run at the same time; 0 for a typical kernel.
    """
    slots = slots or BLOCKS_PER_PROCESSOR * cuda.processors()
    most = max(1, min(max(MAX_WAVES * slots // blocks, MAX_PARTS), cuda.blocks(columns, TILE)))
    return max(range(1, most + 1), key=lambda parts: utilization(blocks * parts / slots, parts / columns))


def utilization(rounds: float, parts_per_column: float) -> float:
    """Return the share of the GPU's time that goes into pairs.

    The last round of blocks leaves slots empty, blocks end unevenly, and each part of the columns takes time to start.
    """
    return rounds / (math.ceil(rounds) + UNEVEN_END) / (1 + START_COLUMNS * parts_per_column)


def common_settings(fields: int, rows: int, wide: int, **more: int | str) -> dict[str, int | str]:
    """Return the macros of every pair kernel: `rows` per thread, `wide` numbers per padded column."""
    return {
        "FIELDS": fields,
        "ROWS": rows,
        "WIDE": wide,
        "THREADS": THREADS,
        "TILE": TILE,
        "SEARCH_THREADS": SEARCH_THREADS,
        "BISECTION_STEPS": BISECTION_STEPS,
        **more,
    }


# ---- single precision -----------------------------------------------------------------------------------------
def lay_out_capped(a: Array, slope: Array, cap: Array, b: Array, square: bool) -> DeviceLayout:
    """Lay out two files for costs in single precision: the sum over fields of min(cap, slope |a - b|), or of (a - b)^2.

    a, slope : n x F; cap : F; b : m x F. A slope that all rows share is multiplied into both files.
    """
    fields = a.shape[1]
    shared = square or bool((slope == slope[:1]).all())
    if square:
        parts, columns = [a], b
    elif shared:
        with np.errstate(over="ignore"):
            parts, columns = [a * slope[:1]], b * slope[:1]
    else:
        parts, columns = [a * slope, slope], b
    rows = np.concatenate([np.asarray(part, dtype=np.float32).T for part in parts])
    per_row = fields * (1 if shared else 2)
    rows_per_thread = next((count for most, count in ROWS_PER_THREAD if per_row <= most), 1)
    wide = 4 * cuda.blocks(fields, 4)
    settings = common_settings(fields, rows_per_thread, wide, SLOPED=int(not shared), SQUARED=int(square))
    constants = {} if square else {"cap": np.asarray(cap, dtype=np.float32)}
    columns = pad_columns(columns.astype(np.float32), 4)
    return DeviceLayout(np.ascontiguousarray(rows), columns, ("capped.cu", "pairs.cu"), settings, True, constants)


def pad_columns(columns: Array, to: int) -> Array:
    """Add fields of 0 until their number is a multiple of `to`."""
    return np.ascontiguousarray(np.pad(columns, ((0, 0), (0, -columns.shape[1] % to))))


def plain_capped(layout: DeviceLayout, rows: Array, columns: Array) -> Array:
    """Return what capped.cu computes for these rows and columns, in numpy.

    A fused product is computed in float64 and rounded once.
    """
    fields = int(layout.settings["FIELDS"])
    total = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for f in range(fields):
        x, y = layout.rows[f, rows, np.newaxis], layout.columns[columns, f]
        if layout.settings["SQUARED"]:
            away = (x - y).astype(float)
            total = (away * away + total).astype(np.float32)
            continue
        with np.errstate(over="ignore"):
            if layout.settings["SLOPED"]:
                away = (y.astype(float) * layout.rows[fields + f, rows, np.newaxis] - x).astype(np.float32)
            else:
                away = x - y
        total += np.minimum(np.abs(away), layout.constants["cap"][f])
    return total


# ---- double precision -----------------------------------------------------------------------------------------
def lay_out_fields(costs: Sequence[Field], *, mean: bool, known_rows: bool = False) -> DeviceLayout:
    """Lay out two files for costs of fields of any kind, in double precision.

    known_rows : the rows are the known records and the columns the released ones; by default the other way round.
    mean : the cost is the mean over the fields that both records have (1 if there is none), not the sum.
    """
    # A category is stored as its code times the number of released codes: the sum of both codes is then an index.
    known = np.array([cost.known * (cost.scale if cost.kind == CATEGORY else 1) for cost in costs], dtype=float)
    released = np.array([cost.released for cost in costs], dtype=float)
    tables, offsets = _tables(costs)
    gaps = np.isnan(known).any(axis=1) | np.isnan(released).any(axis=1)
    rows, columns = (known, released) if known_rows else (released, known)
    numbers = np.array([(cost.scale, cost.cap, cost.both, cost.one) for cost in costs], dtype=float).ravel()
    settings = common_settings(
        len(costs),
        1,
        2 * cuda.blocks(len(costs), 2),
        KINDS=_macro_list([cost.kind for cost in costs]),
        GAPS=_macro_list(gaps.astype(int)),
        MEAN=int(mean),
        KNOWN_ROWS=int(known_rows),
    )
    constants = {"numbers": numbers, "offsets": offsets}
    rows, columns = np.ascontiguousarray(rows), pad_columns(columns.T, 2)
    return DeviceLayout(rows, columns, ("fields.cu", "pairs.cu"), settings, False, constants, tables)


def _macro_list(values: Sequence[int] | Array) -> str:
    return ",".join(str(int(value)) for value in values)


def _tables(costs: Sequence[Field]) -> tuple[Array, Array]:
    """Return all tables in one array, and two numbers per field: where its table begins, and its size.

    A table begins at an even index. Its size is the last pair of a NUMBER, or the number of components of a mixture.
    """
    parts, offsets, begin = [np.zeros(2)], [], 2
    for cost in costs:
        table = _with_steps(cost.table) if cost.kind == NUMBER else np.asarray(cost.table, dtype=float)
        offsets += [begin, (len(table) - STATES) // 2 - 1 if cost.kind == NUMBER else (len(table) - 1) // 3]
        parts.append(np.pad(table, (0, len(table) % 2)))
        begin += len(parts[-1])
    return np.concatenate(parts), np.array(offsets, dtype=np.int32)


def _with_steps(table: Array) -> Array:
    """Return a NUMBER's table as its states, then (value, step to the next value) of each distance.

    Both ends have no step: shorter and longer distances cost the same as the first and the last one.
    """
    cells = np.asarray(table[STATES:], dtype=float)
    value = np.concatenate([cells[:1], cells])
    step = np.concatenate([[0.0], np.diff(cells), [0.0]])
    return np.concatenate([table[:STATES], np.column_stack([value, step]).ravel()])


def plain_fields(layout: DeviceLayout, rows: Array, columns: Array) -> Array:
    """Return what fields.cu computes for these rows and columns, in numpy.

    MIXTURE and CELL are not covered; their formulas are in `risk.linkage.field_costs` only.
    """
    settings, numbers = layout.settings, layout.constants["numbers"].reshape(-1, 4)
    kinds, offsets = (
        [int(kind) for kind in str(settings["KINDS"]).split(",")],
        layout.constants["offsets"].reshape(-1, 2),
    )
    total = np.zeros((len(rows), len(columns)))
    count = np.zeros_like(total)
    for f, kind in enumerate(kinds):
        x, y = layout.rows[f, rows, np.newaxis], layout.columns[columns, f]
        a, b = np.broadcast_arrays(*((x, y) if settings["KNOWN_ROWS"] else (y, x)))
        cost = _field_costs(kind, a, b, numbers[f], layout.tables[offsets[f, 0] :], offsets[f, 1])
        absent = np.isnan(a) | np.isnan(b) if settings["MEAN"] else np.zeros(a.shape, dtype=bool)
        total += np.where(absent, 0.0, cost)
        count += ~absent
    return np.where(count > 0, total / np.maximum(count, 1), 1.0) if settings["MEAN"] else total


def _field_costs(kind: int, a: Array, b: Array, numbers: Array, table: Array, last: int) -> Array:
    if kind == CATEGORY:
        return np.asarray(table[(a + b).astype(np.int64)])
    no_a, no_b = np.isnan(a), np.isnan(b)
    both, one, other = (table[0], table[1], table[2]) if kind == NUMBER else (numbers[2], numbers[3], numbers[3])
    with np.errstate(over="ignore", invalid="ignore"):
        cost = _present_costs(kind, a, b - a, numbers[0], numbers[1], table, last)
    return np.select([no_a & no_b, no_a, no_b], [both, one, other], cost)


def _present_costs(kind: int, a: Array, away: Array, scale: float, cap: float, table: Array, last: int) -> Array:
    apart = np.abs(away)
    if kind == NUMBER:
        # The exponent and the top three bits of the ratio are the cell: eight per octave. The rest interpolates in it.
        bits = np.ascontiguousarray(apart * scale).view(np.int64)
        cell = np.clip((bits >> 49) - 1023 * 8 + 1, 0, last)
        rest = ((bits & ((1 << 49) - 1)) << 3 | 0x3FF << 52).view(np.float64) - 1.0
        pairs = table[STATES : STATES + 2 * (last + 1)].reshape(-1, 2)
        return np.asarray(np.where(apart == 0, table[3], pairs[cell, 0] + pairs[cell, 1] * rest))
    if kind == SQUARE:
        return np.asarray(np.minimum(scale * away * away, cap))
    if kind == GAP:
        return np.asarray(cap * np.minimum(apart / scale, 1.0))
    if kind == RELATIVE:
        return np.asarray(cap * np.minimum(apart / np.maximum(scale * np.maximum(np.abs(a), 0.1), 1e-100), 1.0))
    if kind == LIKELIEST:
        cost, center, half = table[: 3 * last].reshape(-1, 3).T
        parts = cost + (away[..., np.newaxis] - center) ** 2 * half
        return np.asarray(np.minimum(parts.min(axis=-1), cap))
    inside = {SAME: apart == 0, WINDOW: apart < scale, BELOW: away < scale}
    return np.where(inside[kind], 0.0, cap)
