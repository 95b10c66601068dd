"""Tables of categories before and after masking."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sdcmap.data.cells import cells, common_codes, moves
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress, count_cells

MARGIN_CELLS = 1 << 14  # margins are summed from a table of up to so many cells, and counted one by one otherwise
TWO_WAY_CELLS = 1 << 24  # a two-way table with more cells says nothing about association


@dataclass(frozen=True)
class Table:
    """Counts (or sums of survey weights) of the same cells before and after masking; `shape` as in Moves."""

    before: Array
    after: Array
    shape: tuple[int, ...] | None

    def change(self, number: Callable[[Array], float]) -> float:
        """By how much masking changed a number that is read off the table."""
        return abs(number(self.after) - number(self.before))

    def matrix_change(self, number: Callable[[Array], float]) -> float:
        """The same of a number that is read off a matrix."""
        return self.change(lambda count: number(count.reshape(self.shape)))


def table(original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool = False) -> Table:
    """The table of `names` before and after masking."""
    if not masked.paired and len(masked) != len(original):
        return _table_of_other_rows(original, masked, names, weighted=weighted)
    moved = moves(original, masked, names)
    if not weighted:
        return Table(moved.before, moved.after, moved.shape)
    if moved.shape is None:
        return _table_of_other_rows(original, masked, names, weighted=True)
    code = original.view(cells, names).code
    changed = code.copy()
    changed[moved.rows] = moved.new
    size = len(moved.before)
    return Table(_sums(code, original.weights, size), _sums(changed, masked.weights, size), moved.shape)


def _table_of_other_rows(original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool) -> Table:
    """The same by counting each file on its own."""
    code, met = compress([common_codes(original, masked, name) for name in names])
    before, after = np.split(code, [len(original)])
    if not weighted:
        return Table(count_cells(before, len(met)), count_cells(after, len(met)), None)
    return Table(_sums(before, original.weights, len(met)), _sums(after, masked.weights, len(met)), None)


def _sums(code: Array, weights: Array, size: int) -> Array:
    return np.bincount(code, weights, minlength=size)


def tables(
    original: Microdata, masked: Microdata, subsets: Sequence[tuple[str, ...]], *, weighted: bool = False
) -> Iterator[Table]:
    """The tables of several sets of variables; where the table of all of them is small, they are its margins."""
    names = tuple(dict.fromkeys(name for chosen in subsets for name in chosen))
    whole = None
    if len(subsets) > 1 and math.prod(original.level_count(name) for name in names) <= MARGIN_CELLS:
        whole = table(original, masked, names, weighted=weighted)
    for chosen in subsets:
        if whole is None or whole.shape is None:
            yield table(original, masked, chosen, weighted=weighted)
            continue
        rest = tuple(axis for axis, name in enumerate(names) if name not in chosen)
        shape = tuple(size for axis, size in enumerate(whole.shape) if axis not in rest)
        before = whole.before.reshape(whole.shape).sum(axis=rest).ravel()
        untouched = not any(name in masked.changes for name in (*chosen, masked.weight))
        yield Table(before, before if untouched else whole.after.reshape(whole.shape).sum(axis=rest).ravel(), shape)


def two_way_tables(
    original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool = False
) -> Iterator[Table]:
    """The table of each pair of variables, with every cell, before and after masking."""
    pairs = list(combinations(names, 2))
    for pair, counts in zip(pairs, tables(original, masked, pairs, weighted=weighted), strict=True):
        yield counts if counts.shape is not None else _two_way_table(original, masked, pair, weighted=weighted)


def _two_way_table(original: Microdata, masked: Microdata, pair: tuple[str, ...], *, weighted: bool) -> Table:
    """The same for a pair with many possible cells, or new categories: rows and columns that occur alone."""
    rows, columns = (np.unique(common_codes(original, masked, name), return_inverse=True)[1] for name in pair)
    shape = (int(rows.max()) + 1, int(columns.max()) + 1)
    size = math.prod(shape)
    if size > TWO_WAY_CELLS:
        raise Undefined(f"the table of {pair[0]!r} and {pair[1]!r} has more than {TWO_WAY_CELLS:,} cells.")
    before, after = np.split(rows * shape[1] + columns, [len(original)])
    first, second = (original.weights, masked.weights) if weighted else (np.ones(len(before)), np.ones(len(after)))
    return Table(_sums(before, first, size), _sums(after, second, size), shape)


def up_to(names: tuple[str, ...], order: int | None, least: int = 1) -> list[tuple[str, ...]]:
    """All sets of `least` to `order` of these variables; with no order, all of them together.

    >>> up_to(("a", "b", "c"), 2)
    [('a',), ('b',), ('c',), ('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    if order is None:
        return [names]
    return [chosen for size in range(least, min(order, len(names)) + 1) for chosen in combinations(names, size)]
