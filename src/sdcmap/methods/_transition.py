"""Methods that change categories at random by a known transition matrix, and what its reader can compute from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.random import Generator

from sdcmap.core.likelihood import Field, Transition
from sdcmap.core.method import Method
from sdcmap.data.cells import cells, common_codes, stacked
from sdcmap.data.microdata import Column, Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress, mixed_radix
from sdcmap.methods._transition_matrix import changed, corrected_table

MOST_CELLS = 1 << 22  # of a table that is corrected
MOST_STATES = 1 << 12  # strata times categories of one likelihood


@dataclass(frozen=True)
class TransitionMethod(Method):
    """The base of methods that replace a category a by b with probability matrix[a, b], record by record.

    Parameters
    ----------
    on : categorical variables to mask, each on its own.
    """

    kinds: ClassVar[tuple[str, ...]] = ("ordinal", "nominal")

    on: tuple[str, ...]

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        """The matrix of one variable with these categories and so many records in each; missing values are among
        them only where the method treats missing as a category."""
        raise TypeError(f"{type(self).__name__} has no transitions.")

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        released = {}
        for name in self.on:
            column = data.column(name)
            released[name] = changed(column.values, self._matrix(name, column), rng.random(len(data)))
        return data.change(None, released)

    def _matrix(self, name: str, column: Column) -> Array:
        """The matrix over all codes of a column: kinds of missing that the method keeps stay as they are."""
        levels = column.levels
        if levels is None:
            raise SchemaError(f"{name!r} is numeric, and categories are needed.")
        counts = np.bincount(column.values, minlength=len(levels))
        known = np.flatnonzero(~levels.is_null().to_numpy()) if self.missing == "kept" else np.arange(len(levels))
        whole = np.eye(len(levels))
        whole[np.ix_(known, known)] = self.transitions(name, levels.gather(known).to_list(), counts[known])
        return whole

    def log_likelihood(self, known: Microdata, released: Microdata) -> tuple[Field, ...]:
        """log P(released category | known one), from the shares of the categories in both files together."""
        stratum = np.zeros(len(known) + len(released), dtype=np.int64)
        if self.within:
            stratum = compress([common_codes(known, released, name) for name in self.within])[0]
        strata = int(stratum.max()) + 1
        fields = []
        for name in self.on:
            both = stacked([known.column(name), released.column(name)])
            size = 0 if both.levels is None else len(both.levels)
            if strata * size > MOST_STATES:
                raise Undefined(f"the likelihood of {name!r} in {strata} strata has more than {MOST_STATES:,} states.")
            matrix = np.zeros((strata * size, strata * size))
            for s in range(strata):
                block = slice(s * size, (s + 1) * size)
                matrix[block, block] = self._matrix(name, Column(both.values[stratum == s], both.levels))
            ours, theirs = np.split(stratum * size + both.values.astype(np.int64), [len(known)])
            fields.append(Field(ours.astype(float), theirs.astype(float), Transition(matrix)))
        return tuple(fields)

    def corrected(self, released: Microdata, names: tuple[str, ...] | str, *, weighted: bool = False) -> pl.DataFrame:
        """The table of `names` as a data user would estimate it from the released file: unbiased for the original's.

        One row a cell: the categories, `released` (counts, or sums of weights), and `corrected`, the estimate, which may be
        negative in small cells. Strata of `within` are corrected apart and added up.
        """
        names = (names,) if isinstance(names, str) else tuple(names)
        columns = [released.column(name) for name in names]
        if not names or any(column.levels is None for column in columns):
            raise SchemaError(f"{type(self).__name__}.corrected needs the names of categorical variables.")
        shape = tuple(released.level_count(name) for name in names)
        if math.prod(shape) > MOST_CELLS:
            raise Undefined(f"the table of {', '.join(map(repr, names))} has more than {MOST_CELLS:,} cells.")
        cell = mixed_radix([released.codes(name) for name in names], shape)[0]
        weights = released.weights if weighted else np.ones(len(released))
        tables = {"released": np.zeros(shape), "corrected": np.zeros(shape)}
        for rows in self._strata(released):
            table = np.bincount(cell[rows], weights[rows], minlength=math.prod(shape)).reshape(shape)
            matrices = [
                self._matrix(n, c.take(rows)) if n in self.on else None for n, c in zip(names, columns, strict=True)
            ]
            estimate = corrected_table(table, matrices)
            if estimate is None:
                raise Undefined("a transition matrix has no inverse, so no table can be corrected.")
            tables["corrected"] += estimate
            tables["released"] += table
        places = [axis.ravel() for axis in np.indices(shape)]
        categories = [
            c.levels.gather(p).alias(n) for n, c, p in zip(names, columns, places, strict=True) if c.levels is not None
        ]
        return pl.DataFrame([*categories, *(pl.Series(name, table.ravel()) for name, table in tables.items())])

    def _strata(self, data: Microdata) -> list[Array]:
        if not self.within:
            return [np.arange(len(data))]
        code = data.view(cells, self.within).code
        order = np.argsort(code, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
