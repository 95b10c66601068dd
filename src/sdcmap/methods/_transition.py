"""Methods that change categories at random by a known transition matrix, and what its reader can compute from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from sdcmap.core import Array, Column, Field, Fields, Generator, Method, Microdata, SchemaError, Undefined
from sdcmap.core.likelihood import Transition
from sdcmap.data.cells import common_codes, rows_by_cell, stack_columns
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.coding import compress, mixed_radix

# Random changes of category by a transition matrix: P(released = b | original = a) = matrix[a, b].


MOST_CONDITION = 1e10  # of a matrix that is inverted


def invariant_matrix(counts: Array, stay: float, alpha: float) -> Array:
    """A matrix R with p R = p for the shares p of the categories, and no diagonal entry below `stay`.

    Two stages: P keeps a category with probability `stay`; Q leads back, Q_kj = P_jk p_j / sum_i P_ik p_i; R = P Q,
    mixed with the identity as a R + (1 - a) I.  Gouweleeuw et al. (1998), section 4; sdcMicro's pram has a = alpha, where
    the diagonal may fall below its pd; here a is the largest value up to alpha that keeps it.
    """
    size = len(counts)
    if size < 2 or counts.sum() == 0:
        return np.eye(size)
    p = counts / counts.sum()
    first = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(first, stay)
    arrived = p @ first
    met = arrived > 0
    back = np.eye(size)
    back[met] = (first * p[:, np.newaxis]).T[met] / arrived[met, np.newaxis]
    both = first @ back
    leaving = 1 - np.diag(both)[p > 0].min()
    mix = min(alpha, (1 - stay) / leaving) if leaving > 0 else alpha
    mixed = mix * both + (1 - mix) * np.eye(size)
    mixed[p == 0] = np.eye(size)[p == 0]
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def response_matrix(categories: int, epsilon: float) -> Array:
    """Keep the category with odds e^epsilon against each other one.  Warner (1965); Kairouz, Oh, Viswanath (2016)"""
    other = 1 / (np.exp(min(epsilon, 700.0)) + categories - 1)
    matrix = np.full((categories, categories), other)
    np.fill_diagonal(matrix, 1 - other * (categories - 1))
    return matrix


def changed(codes: Array, matrix: Array, chance: Array) -> Array:
    """The category of each record after its random change; `chance`: a uniform number in [0, 1) each."""
    size = len(matrix)
    # to stay comes first: most records are looked at once
    target = np.array([[a, *range(a), *range(a + 1, size)] for a in range(size)], dtype=np.int64)
    shares = np.take_along_axis(matrix, target, axis=1)
    reached = np.cumsum(shares, axis=1)
    last = size - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    reached[np.arange(size) >= last[:, np.newaxis]] = 1.0  # a rounded sum below 1 must not lead where the chance is 0
    return _changed(codes, reached, target, chance)


@jit
def _changed(codes: Array, reached: Array, target: Array, chance: Array) -> Array:
    released = codes.copy()
    for i in range(len(codes)):
        a, t = codes[i], 0
        while chance[i] >= reached[a, t]:
            t += 1
        if t > 0 or target[a, 0] != a:
            released[i] = target[a, t]
    return released


def corrected_table(table: Array, matrices: Sequence[Array | None]) -> Array | None:
    """The unbiased estimate of the table before masking, E(estimate) = original, one matrix (or None) for each axis.

    E(released) = P^T original along each masked axis, so the estimate solves that.  Kooiman et al. (1997), eq. 3
    None where a matrix has no inverse to ten digits.
    """
    estimate: Array = table.astype(np.float64)
    for axis, matrix in enumerate(matrices):
        if matrix is None:
            continue
        if not (np.isfinite(matrix).all() and np.linalg.cond(matrix) < MOST_CONDITION):
            return None
        moved = np.moveaxis(estimate, axis, 0)
        flat = np.linalg.solve(matrix.T, moved.reshape(len(matrix), -1))
        estimate = np.moveaxis(flat.reshape(moved.shape), 0, axis)
    return estimate


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
        if (levels := column.levels) is None:
            raise SchemaError(f"{name!r} is numeric, and categories are needed.")
        counts = np.bincount(column.values, minlength=len(levels))
        known = np.flatnonzero(~levels.is_null().to_numpy()) if self.missing == "kept" else np.arange(len(levels))
        whole = np.eye(len(levels))
        whole[np.ix_(known, known)] = self.transitions(name, levels.gather(known).to_list(), counts[known])
        return whole

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        """log P(released category | known one), from the shares of the categories in both files together."""
        stratum = np.zeros(len(known) + len(released), dtype=np.int64)
        if self.within:
            stratum = compress([common_codes(known, released, name) for name in self.within])[0]
        strata = int(stratum.max()) + 1
        fields = []
        for name in self.on:
            both = stack_columns([known.column(name), released.column(name)])
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
        for rows in rows_by_cell(released, self.within):
            table = np.bincount(cell[rows], weights[rows], minlength=math.prod(shape)).reshape(shape)
            parts = zip(names, (column.take(rows) for column in columns), strict=True)
            estimate = corrected_table(table, [self._matrix(*part) if part[0] in self.on else None for part in parts])
            if estimate is None:
                raise Undefined("a transition matrix has no inverse, so no table can be corrected.")
            tables["corrected"] += estimate
            tables["released"] += table
        axes = zip(names, columns, np.indices(shape), strict=True)
        categories = [c.levels.gather(place.ravel()).alias(n) for n, c, place in axes if c.levels is not None]
        return pl.DataFrame([*categories, *(pl.Series(name, table.ravel()) for name, table in tables.items())])
