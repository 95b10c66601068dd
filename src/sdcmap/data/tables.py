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

MAX_CELLS_FOR_MARGINS = 1 << 14  # up to here, summing margins of one table is faster than counting each table
MAX_TWO_WAY_CELLS = 1 << 24  # memory limit; a larger table is too sparse to show an association


@dataclass(frozen=True)
class Table:
    """Counts, or sums of survey weights, of the same cells before and after masking; `shape` as in `Moves`."""

    before: Array
    after: Array
    shape: tuple[int, ...] | None

    def change(self, statistic: Callable[[Array], float]) -> float:
        """Return the absolute change of a statistic of the table."""
        return abs(statistic(self.after) - statistic(self.before))

    def matrix_change(self, statistic: Callable[[Array], float]) -> float:
        """Return the absolute change of a statistic of the table as a matrix."""
        return self.change(lambda count: statistic(count.reshape(self.shape)))


def table(original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool = False) -> Table:
    """Return the table of `names` before and after masking."""
    if not masked.paired and len(masked) != len(original):
        return _count_separately(original, masked, names, weighted=weighted)
    moved = moves(original, masked, names)
    if not weighted:
        return Table(moved.before, moved.after, moved.shape)
    if moved.shape is None:
        return _count_separately(original, masked, names, weighted=True)
    code = original.view(cells, names).code
    changed = code.copy()
    changed[moved.rows] = moved.new
    size = len(moved.before)
    return Table(_sums(code, original.weights, size), _sums(changed, masked.weights, size), moved.shape)


def _count_separately(original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool) -> Table:
    """Return the table by counting each file separately, for files with other rows or new categories."""
    code, count = compress([common_codes(original, masked, name) for name in names])
    size = len(count)
    before, after = np.split(code, [len(original)])
    if not weighted:
        return Table(count_cells(before, size), count_cells(after, size), None)
    return Table(_sums(before, original.weights, size), _sums(after, masked.weights, size), None)


def _sums(code: Array, weights: Array, size: int) -> Array:
    return np.bincount(code, weights, minlength=size)


def tables(
    original: Microdata, masked: Microdata, subsets: Sequence[tuple[str, ...]], *, weighted: bool = False
) -> Iterator[Table]:
    """Yield the tables of several sets of variables, as margins of the table of all variables if that is small."""
    names = tuple(dict.fromkeys(name for chosen in subsets for name in chosen))
    whole = None
    if len(subsets) > 1 and math.prod(original.level_count(name) for name in names) <= MAX_CELLS_FOR_MARGINS:
        whole = table(original, masked, names, weighted=weighted)
    for chosen in subsets:
        if whole is None or whole.shape is None:
            yield table(original, masked, chosen, weighted=weighted)
            continue
        rest = tuple(axis for axis, name in enumerate(names) if name not in chosen)
        shape = tuple(size for axis, size in enumerate(whole.shape) if axis not in rest)
        before = whole.before.reshape(whole.shape).sum(axis=rest).ravel()
        # Without a change in these variables or the weight, both margins are equal.
        untouched = not any(name in masked.changes for name in (*chosen, masked.weight))
        yield Table(before, before if untouched else whole.after.reshape(whole.shape).sum(axis=rest).ravel(), shape)


def two_way_tables(
    original: Microdata, masked: Microdata, names: tuple[str, ...], *, weighted: bool = False
) -> Iterator[Table]:
    """Yield the table of each pair of variables, with every cell, before and after masking."""
    pairs = list(combinations(names, 2))
    for pair, counts in zip(pairs, tables(original, masked, pairs, weighted=weighted), strict=True):
        yield counts if counts.shape is not None else _two_way_table(original, masked, pair, weighted=weighted)


def _two_way_table(original: Microdata, masked: Microdata, pair: tuple[str, ...], *, weighted: bool) -> Table:
    """Return the table of a pair with many possible cells or new categories, with only categories that occur."""
    rows, columns = (np.unique(common_codes(original, masked, name), return_inverse=True)[1] for name in pair)
    shape = (int(rows.max()) + 1, int(columns.max()) + 1)
    size = math.prod(shape)
    if size > MAX_TWO_WAY_CELLS:
        raise Undefined(f"the table of {pair[0]!r} and {pair[1]!r} has more than {MAX_TWO_WAY_CELLS:,} cells.")
    before, after = np.split(rows * shape[1] + columns, [len(original)])
    first, second = (original.weights, masked.weights) if weighted else (np.ones(len(before)), np.ones(len(after)))
    return Table(_sums(before, first, size), _sums(after, second, size), shape)


def subsets_up_to(names: tuple[str, ...], order: int | None, least: int = 1) -> list[tuple[str, ...]]:
    """Return all sets of `least` to `order` of these variables; without an order, the set of all.

    >>> subsets_up_to(("a", "b", "c"), 2)
    [('a',), ('b',), ('c',), ('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    if order is None:
        return [names]
    return [chosen for size in range(least, min(order, len(names)) + 1) for chosen in combinations(names, size)]
