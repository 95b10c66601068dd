"""Methods that change categories at random with a known transition matrix, P(released = b | original = a) = matrix[a, b].

A user who knows the matrix can estimate the tables of the original without bias, and an attacker can compute likelihoods.
"""

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
from sdcmap.kernels.tables.coding import cell_numbers, compress

MAX_CONDITION_NUMBER = 1e10  # of a transition matrix to invert; above it, fewer than six digits of a table are right


def invariant_matrix(counts: Array, stay: float, alpha: float) -> Array:
    """Return a matrix R with p R = p for the shares p of the categories, and no diagonal entry below `stay`.

    Two stages: P keeps a category with probability `stay`; Q reverses it, Q_kj = P_jk p_j / sum_i P_ik p_i; R = P Q,
    mixed with the identity as a R + (1 - a) I (Gouweleeuw et al. 1998, section 4). sdcMicro's pram uses a = alpha, and
    the diagonal may then fall below its pd. Here a is the largest value up to alpha for which it does not.
    """
    size = len(counts)
    if size < 2 or counts.sum() == 0:
        return np.eye(size)
    p = counts / counts.sum()
    first = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(first, stay)
    # Q is Bayes' theorem: the probability of each original category, given the category after the first stage.
    reached = p @ first
    occurs = reached > 0
    back = np.eye(size)
    back[occurs] = (first * p[:, np.newaxis]).T[occurs] / reached[occurs, np.newaxis]
    both = first @ back
    # Mix with the identity just enough that every category that occurs stays with probability `stay` or more.
    leaving = 1 - np.diag(both)[p > 0].min()
    mix = min(alpha, (1 - stay) / leaving) if leaving > 0 else alpha
    mixed = mix * both + (1 - mix) * np.eye(size)
    mixed[p == 0] = np.eye(size)[p == 0]
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def response_matrix(categories: int, epsilon: float) -> Array:
    """Return the matrix that keeps a category with odds e^epsilon against each other one.

    Warner (1965); Kairouz, Oh, Viswanath (2016)
    """
    other = 1 / (np.exp(min(epsilon, 700.0)) + categories - 1)
    matrix = np.full((categories, categories), other)
    np.fill_diagonal(matrix, 1 - other * (categories - 1))
    return matrix


def randomize_codes(codes: Array, matrix: Array, chance: Array) -> Array:
    """Draw the released category of each record. chance : a uniform number in [0, 1) for each record."""
    size = len(matrix)
    # List the category itself first: most records stay, and then need only one comparison.
    target = np.array([[a, *range(a), *range(a + 1, size)] for a in range(size)], dtype=np.int64)
    shares = np.take_along_axis(matrix, target, axis=1)
    reached = np.cumsum(shares, axis=1)
    last = size - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    # A cumulative sum rounded below 1 must not lead to a category of probability 0.
    reached[np.arange(size) >= last[:, np.newaxis]] = 1.0
    return _randomize_codes(codes, reached, target, chance)


@jit
def _randomize_codes(codes: Array, reached: Array, target: Array, chance: Array) -> Array:
    released = codes.copy()
    for i in range(len(codes)):
        a, t = codes[i], 0
        while chance[i] >= reached[a, t]:
            t += 1
        if t > 0 or target[a, 0] != a:
            released[i] = target[a, t]
    return released


def invert_transitions(table: Array, matrices: Sequence[Array | None]) -> Array | None:
    """Return the unbiased estimate of the table before masking, with one matrix (or None) for each axis.

    E(released) = P^T original along each masked axis, and the estimate solves this equation (Kooiman et al. 1997, eq. 3).
    Return None if a matrix is too close to singular.
    """
    estimate: Array = table.astype(np.float64)
    for axis, matrix in enumerate(matrices):
        if matrix is None:
            continue
        if not (np.isfinite(matrix).all() and np.linalg.cond(matrix) < MAX_CONDITION_NUMBER):
            return None
        moved = np.moveaxis(estimate, axis, 0)
        flat = np.linalg.solve(matrix.T, moved.reshape(len(matrix), -1))
        estimate = np.moveaxis(flat.reshape(moved.shape), 0, axis)
    return estimate


MAX_TABLE_CELLS = 1 << 22  # cells of a table to correct; keeps it below about 100 MB
MAX_LIKELIHOOD_STATES = 1 << 12  # strata times categories; the matrix of a likelihood has this number squared


@dataclass(frozen=True)
class TransitionMethod(Method):
    """Base class of methods that replace category a by b with probability matrix[a, b], independently for each record.

    Parameters
    ----------
    on : categorical variables to mask, each independently.
    """

    kinds: ClassVar[tuple[str, ...]] = ("ordinal", "nominal")

    on: tuple[str, ...]

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        """Return the matrix of one variable, given its categories and their counts.

        Missing values are among the categories only if the method treats missing as a category.
        """
        raise TypeError(f"{type(self).__name__} has no transitions.")

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        released = {}
        for name in self.on:
            column = data.column(name)
            released[name] = randomize_codes(column.values, self._matrix(name, column), rng.random(len(data)))
        return data.change(None, released)

    def _matrix(self, name: str, column: Column) -> Array:
        """Return the matrix over all codes of a column. Missing values stay missing if the method keeps them."""
        if (levels := column.levels) is None:
            raise SchemaError(f"{name!r} is numeric; {type(self).__name__} needs a categorical variable.")
        counts = np.bincount(column.values, minlength=len(levels))
        known = np.flatnonzero(~levels.is_null().to_numpy()) if self.missing == "kept" else np.arange(len(levels))
        whole = np.eye(len(levels))
        whole[np.ix_(known, known)] = self.transitions(name, levels.gather(known).to_list(), counts[known])
        return whole

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        """Return log P(released category | known category), using the category shares of both files together."""
        stratum = np.zeros(len(known) + len(released), dtype=np.int64)
        if self.within:
            stratum = compress([common_codes(known, released, name) for name in self.within])[0]
        strata = int(stratum.max()) + 1
        fields = []
        for name in self.on:
            both = stack_columns([known.column(name), released.column(name)])
            size = 0 if both.levels is None else len(both.levels)
            if strata * size > MAX_LIKELIHOOD_STATES:
                raise Undefined(
                    f"the likelihood of {name!r} in {strata} strata has more than {MAX_LIKELIHOOD_STATES:,} states."
                )
            matrix = np.zeros((strata * size, strata * size))
            for s in range(strata):
                block = slice(s * size, (s + 1) * size)
                matrix[block, block] = self._matrix(name, Column(both.values[stratum == s], both.levels))
            ours, theirs = np.split(stratum * size + both.values.astype(np.int64), [len(known)])
            fields.append(Field(ours.astype(float), theirs.astype(float), Transition(matrix)))
        return tuple(fields)

    def correct_table(
        self, released: Microdata, names: tuple[str, ...] | str, *, weighted: bool = False
    ) -> pl.DataFrame:
        """Return an unbiased estimate of the original's table of `names`, from the released file alone.

        The result has one row for each cell: the categories; "released", the count (or sum of weights) in the
        released file; and "corrected", the estimate, which may be negative in small cells. Each stratum of `within`
        is corrected separately, and the estimates are added up.
        """
        names = (names,) if isinstance(names, str) else tuple(names)
        columns = [released.column(name) for name in names]
        if not names or any(column.levels is None for column in columns):
            raise SchemaError(f"{type(self).__name__}.correct_table needs the names of categorical variables.")
        shape = tuple(released.level_count(name) for name in names)
        if math.prod(shape) > MAX_TABLE_CELLS:
            raise Undefined(f"the table of {', '.join(map(repr, names))} has more than {MAX_TABLE_CELLS:,} cells.")
        cell = cell_numbers([released.codes(name) for name in names], shape)[0]
        weights = released.weights if weighted else np.ones(len(released))
        tables = {"released": np.zeros(shape), "corrected": np.zeros(shape)}
        for rows in rows_by_cell(released, self.within):
            table = np.bincount(cell[rows], weights[rows], minlength=math.prod(shape)).reshape(shape)
            parts = zip(names, (column.take(rows) for column in columns), strict=True)
            estimate = invert_transitions(
                table, [self._matrix(*part) if part[0] in self.on else None for part in parts]
            )
            if estimate is None:
                raise Undefined("a transition matrix is singular, so the table cannot be corrected.")
            tables["corrected"] += estimate
            tables["released"] += table
        axes = zip(names, columns, np.indices(shape), strict=True)
        categories = [c.levels.gather(index.ravel()).alias(n) for n, c, index in axes if c.levels is not None]
        return pl.DataFrame([*categories, *(pl.Series(name, table.ravel()) for name, table in tables.items())])
