"""How both files lie on the card: rows field by field, columns record by record; what their kernels are compiled with."""

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
# as in risk/linkage/field_costs.py
NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE, CELL = range(10)
LIKELIEST = 10  # a mixture by its likeliest component alone, as in risk/linkage/field_links.py
HEAD = 4  # states of a NUMBER before its distances
THREADS, TILE, SEARCHERS, TURNS = 128, 64, 256, 8
BLOCKS, ROUNDS, LANES = 8, 8, 16  # blocks of a multiprocessor at a time; rounds of them, or parts of columns, at most
UNEVEN, BEGIN = 0.1, 32  # by how much of a round blocks end unevenly; columns that a part takes to begin
AT_ONCE = ((8, 4), (24, 2))  # numbers of a row up to which a thread holds so many rows; else one


class Field(NamedTuple):
    """One field of both files, and what two of its values cost; in its place stands also a `Cost` of
    `risk.linkage.field_costs`, which has the same names."""

    kind: int
    known: Array
    released: Array
    scale: float = 1.0
    cap: float = 1.0
    both: float = 0.0  # where both are missing
    one: float = 1.0  # where one is
    table: Array = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Laid:
    """Both files as a kernel sees them."""

    rows: Array  # (field, record)
    columns: Array  # (record, field), filled up to 16 bytes
    files: tuple[str, ...]
    settings: Mapping[str, int | str]
    fused: bool
    constants: Mapping[str, Array] = field(default_factory=dict)
    tables: Array = field(default_factory=lambda: np.zeros(0))


class OnCard:
    """Both files on the card, with the kernels for them."""

    def __init__(self, laid: Laid) -> None:
        cupy = cuda.cupy()
        self.count, self.of = laid.rows.shape[1], len(laid.columns)
        self.laid = laid
        self.rows, self.columns, self.tables = (cupy.asarray(part) for part in (laid.rows, laid.columns, laid.tables))
        self.module = cuda.compiled(laid.files, laid.settings, fused=laid.fused)

    def kernel(self, name: str) -> Any:
        return self.module.get_function(name)

    def ready(self) -> None:
        """Put the constants in place: a module may serve several pairs of files, one after the other."""
        cupy = cuda.cupy()
        constants = dict(self.laid.constants)
        if len(self.tables):
            constants["tables"] = np.array([self.tables.data.ptr], dtype=np.uint64)
        for name, values in constants.items():
            cupy.ndarray(values.shape, values.dtype, self.module.get_global(name)).set(values)


def chunk_of(seen: int, lanes: int) -> int:
    """Columns of each of so many parts, whole tiles of them."""
    return cuda.blocks(cuda.blocks(seen, lanes), TILE) * TILE


@cache
def lanes_for(blocks: int, of: int, slots: int = 0) -> int:
    """Parts of the columns, so that the blocks of all parts fill the card, `slots` blocks at a time."""
    slots = slots or BLOCKS * cuda.processors()
    most = max(1, min(max(ROUNDS * slots // blocks, LANES), cuda.blocks(of, TILE)))
    return max(range(1, most + 1), key=lambda lanes: filled(blocks * lanes / slots, lanes / of))


def filled(rounds: float, lanes: float) -> float:
    """The share of the card that works on pairs: the last round of blocks leaves places empty, and they end unevenly; each
    part of the columns takes as long to begin as some columns."""
    return rounds / (math.ceil(rounds) + UNEVEN) / (1 + BEGIN * lanes)


def settings_of(fields: int, rows: int, wide: int, **more: int | str) -> dict[str, int | str]:
    return {
        "FIELDS": fields, "ROWS": rows, "WIDE": wide, "THREADS": THREADS, "TILE": TILE, "SEARCHERS": SEARCHERS,
        "TURNS": TURNS, **more,
    }  # fmt: skip


# ---- single precision -----------------------------------------------------------------------------------------
def laid_capped(a: Array, slope: Array, cap: Array, b: Array, square: bool) -> Laid:
    """Costs in single precision: the sum over fields of min(cap, slope |a - b|), or of (a - b)^2.

    a, slope : n x F; cap : F; b : m x F. A slope that all rows share is taken into both files.
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
    settings = settings_of(
        fields, next((rows for most, rows in AT_ONCE if per_row <= most), 1), 4 * cuda.blocks(fields, 4),
        SLOPED=int(not shared), SQUARED=int(square),
    )  # fmt: skip
    return Laid(
        np.ascontiguousarray(rows), padded(columns.astype(np.float32), 4), ("capped.cu", "pairs.cu"), settings, True,
        {} if square else {"cap": np.asarray(cap, dtype=np.float32)},
    )  # fmt: skip


def padded(columns: Array, to: int) -> Array:
    """The same with so many more fields of 0 that their number is a multiple of `to`."""
    return np.ascontiguousarray(np.pad(columns, ((0, 0), (0, -columns.shape[1] % to))))


def plain_capped(laid: Laid, rows: Array, columns: Array) -> Array:
    """What capped.cu computes of these rows and columns, in numpy; a fused product is rounded once from float64."""
    fields = int(laid.settings["FIELDS"])
    total = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for f in range(fields):
        x, y = laid.rows[f, rows, np.newaxis], laid.columns[columns, f]
        if laid.settings["SQUARED"]:
            away = (x - y).astype(float)
            total = (away * away + total).astype(np.float32)
            continue
        with np.errstate(over="ignore"):
            if laid.settings["SLOPED"]:
                away = (y.astype(float) * laid.rows[fields + f, rows, np.newaxis] - x).astype(np.float32)
            else:
                away = x - y
        total += np.minimum(np.abs(away), laid.constants["cap"][f])
    return total


# ---- double precision -----------------------------------------------------------------------------------------
def laid_fields(costs: Sequence[Field], *, mean: bool, known_rows: bool = False) -> Laid:
    """Costs of fields of any kind. The rows are the released records and the columns the known ones, or, where
    `known_rows`, the other way round. mean: over the fields that both have (1: none), in place of the sum."""
    # of a category, its code times the number of released ones: the two add up to a place
    known = np.array([cost.known * (cost.scale if cost.kind == CATEGORY else 1) for cost in costs], dtype=float)
    released = np.array([cost.released for cost in costs], dtype=float)
    tables, places = _tables(costs)
    gaps = np.isnan(known).any(axis=1) | np.isnan(released).any(axis=1)
    rows, columns = (known, released) if known_rows else (released, known)
    numbers = np.array([(cost.scale, cost.cap, cost.both, cost.one) for cost in costs], dtype=float).ravel()
    settings = settings_of(
        len(costs), 1, 2 * cuda.blocks(len(costs), 2), KINDS=_listed([cost.kind for cost in costs]),
        GAPS=_listed(gaps.astype(int)), MEAN=int(mean), KNOWN_ROWS=int(known_rows),
    )  # fmt: skip
    return Laid(
        np.ascontiguousarray(rows), padded(columns.T, 2), ("fields.cu", "pairs.cu"), settings, False,
        {"numbers": numbers, "places": places}, tables,
    )  # fmt: skip


def _listed(values: Sequence[int] | Array) -> str:
    return ",".join(str(int(value)) for value in values)


def _tables(costs: Sequence[Field]) -> tuple[Array, Array]:
    """All tables in one, and where each begins (at an even place) with its last pair or how many components it has."""
    parts, places, begin = [np.zeros(2)], [], 2
    for cost in costs:
        table = _steps(cost.table) if cost.kind == NUMBER else np.asarray(cost.table, dtype=float)
        places += [begin, (len(table) - HEAD) // 2 - 1 if cost.kind == NUMBER else (len(table) - 1) // 3]
        parts.append(np.pad(table, (0, len(table) % 2)))
        begin += len(parts[-1])
    return np.concatenate(parts), np.array(places, dtype=np.int32)


def _steps(table: Array) -> Array:
    """A NUMBER's table: its states, then (value, step to the next) of each distance, the ends without a step."""
    cells = np.asarray(table[HEAD:], dtype=float)
    value = np.concatenate([cells[:1], cells])
    step = np.concatenate([[0.0], np.diff(cells), [0.0]])
    return np.concatenate([table[:HEAD], np.column_stack([value, step]).ravel()])


def plain_fields(laid: Laid, rows: Array, columns: Array) -> Array:
    """What fields.cu computes of these rows and columns, in numpy, but for mixtures and cells: those are said in
    `risk.linkage.field_costs` alone."""
    settings, numbers = laid.settings, laid.constants["numbers"].reshape(-1, 4)
    kinds, places = [int(kind) for kind in str(settings["KINDS"]).split(",")], laid.constants["places"].reshape(-1, 2)
    total = np.zeros((len(rows), len(columns)))
    count = np.zeros_like(total)
    for f, kind in enumerate(kinds):
        x, y = laid.rows[f, rows, np.newaxis], laid.columns[columns, f]
        a, b = np.broadcast_arrays(*((x, y) if settings["KNOWN_ROWS"] else (y, x)))
        cost = _field_costs(kind, a, b, numbers[f], laid.tables[places[f, 0] :], places[f, 1])
        absent = np.isnan(a) | np.isnan(b) if settings["MEAN"] else np.zeros(a.shape, dtype=bool)
        total += np.where(absent, 0.0, cost)
        count += ~absent
    return np.where(count > 0, total / np.maximum(count, 1), 1.0) if settings["MEAN"] else total


def _field_costs(kind: int, a: Array, b: Array, numbers: Array, table: Array, last: int) -> Array:
    if kind == CATEGORY:
        return np.asarray(table[(a + b).astype(np.int64)])
    lost, gone = np.isnan(a), np.isnan(b)
    both, one, other = (table[0], table[1], table[2]) if kind == NUMBER else (numbers[2], numbers[3], numbers[3])
    with np.errstate(over="ignore", invalid="ignore"):
        cost = _present_costs(kind, a, b - a, numbers[0], numbers[1], table, last)
    return np.select([lost & gone, lost, gone], [both, one, other], cost)


def _present_costs(kind: int, a: Array, away: Array, scale: float, cap: float, table: Array, last: int) -> Array:
    apart = np.abs(away)
    if kind == NUMBER:
        bits = np.ascontiguousarray(apart * scale).view(np.int64)
        cell = np.clip((bits >> 49) - 1023 * 8 + 1, 0, last)
        rest = ((bits & ((1 << 49) - 1)) << 3 | 0x3FF << 52).view(np.float64) - 1.0
        pairs = table[HEAD : HEAD + 2 * (last + 1)].reshape(-1, 2)
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
