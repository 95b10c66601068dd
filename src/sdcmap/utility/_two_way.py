"""The design of a regression with all products of two variables, which is never stored.

A row has one term for each variable that is not at its most common category, and one for each pair of them, no matter
how many categories there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit, own_threads

T = TypeVar("T")


class TwoWay(NamedTuple):
    """Categories and numbers, one row per unit, and the terms that they form.

    The terms are the intercept; a dummy for every category but the first; the numbers; and with order 2 the products of
    two numbers, the squares, and the products of numbers or dummies with dummies of another variable. Terms that are 0
    in every row are left out: `position` maps each possible term to its column.
    """

    codes: Array  # of categories: (rows, variables), from 0
    numbers: Array  # (rows, variables)
    levels: Array  # of each category
    order: int
    position: Array

    @classmethod
    def of(cls, codes: Array, numbers: Array, order: int) -> TwoWay:
        """Find the terms that occur in these rows."""
        codes, numbers = np.ascontiguousarray(codes, dtype=np.int32), np.ascontiguousarray(numbers, dtype=np.float64)
        levels = codes.max(axis=0, initial=0).astype(np.int64) + 1
        amounts = numbers.shape[1]
        nonzero = np.zeros(count_terms([*(levels - 1).tolist(), *[1] * amounts], amounts, order), dtype=np.bool_)
        possible = cls(codes, numbers, levels, order, np.arange(len(nonzero)))
        _mark_nonzero(possible, nonzero)
        return possible._replace(position=np.cumsum(nonzero) - 1)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.codes)

    @property
    def width(self) -> int:
        """The number of terms."""
        return int(self.position[-1]) + 1

    def take(self, rows: Array) -> TwoWay:
        """Return some rows, with the same terms."""
        return self._replace(codes=self.codes[rows], numbers=self.numbers[rows])

    def likelihood(
        self, ones: Array, zeros: Array, slopes: Array, *, with_information: bool = True
    ) -> tuple[float, Array, Array, Array]:
        """Return the log-likelihood of a logit, its gradient, the information (if requested), and the probabilities."""
        p, ones = np.empty(self.rows), np.asarray(ones, dtype=np.float64)

        def part(start: int, stop: int) -> tuple[float, Array, Array]:
            gradient = np.zeros(self.width)
            information = np.zeros((self.width, self.width) if with_information else (0, 0))
            value = _likelihood(start, stop, self, ones, zeros, slopes, gradient, information, p)
            return value, gradient, information

        (value, gradient, information), (more, slope, curve) = self._halves(part)
        gradient += slope
        information += curve
        if with_information:
            _mirror(information)
        return value + more, gradient, information, p

    def predict(self, slopes: Array) -> Array:
        """Return X b for the columns b of a matrix."""
        product, slopes = np.empty((self.rows, slopes.shape[1])), np.ascontiguousarray(slopes)
        self._halves(lambda start, stop: _predict(start, stop, self, slopes, product))
        return product

    def moments(self, residuals: Array) -> Array:
        """Return X'r for the columns r of a matrix."""

        def part(start: int, stop: int) -> Array:
            product = np.zeros((self.width, residuals.shape[1]))
            _moments(start, stop, self, residuals, product)
            return product

        first, second = self._halves(part)
        return first + second

    def _halves(self, part: Callable[[int, int], T]) -> list[T]:
        """Run both halves of the rows, in parallel if a task may use two threads.

        The rows are always split in two, so that sums do not depend on the number of threads.
        """
        with ThreadPoolExecutor(min(2, own_threads())) as pool:
            return list(pool.map(part, (0, self.rows // 2), (self.rows // 2, self.rows)))


def count_terms(widths: Sequence[int], squares: int, order: int) -> int:
    """Return the number of terms of variables with these numbers of columns.

    The terms are the intercept, the columns, and with order 2 the squares and the products of columns of two variables.
    """
    each = 1 + sum(widths)
    pairs = (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
    return each if order == 1 else each + squares + pairs


def sum_squared_differences(before: TwoWay, after: TwoWay, matrix: Array, weights: Array) -> float:
    """Return sum w d'Md, d the differences between the rows of two designs with the same terms."""
    after = before._replace(codes=after.codes, numbers=after.numbers)
    return _sum_squared_differences(before, after, matrix, np.asarray(weights, dtype=np.float64))


# ---- kernels --------------------------------------------------------------------------------------------------
@inner_jit
def _terms(design: TwoWay, row: int, at: Array, value: Array) -> int:
    """Write the nonzero terms of a row in rising order; return how many there are."""
    codes, numbers, levels, order, position = design
    variables, amounts = codes.shape[1], numbers.shape[1]
    # `start` is the number of the first possible term of the current block
    at[0], value[0], nonzero, start = 0, 1.0, 1, 1
    for a in range(variables):
        if codes[row, a] > 0:
            at[nonzero], value[nonzero] = position[start + codes[row, a] - 1], 1.0
            nonzero += 1
        start += levels[a] - 1
    for j in range(amounts):
        if numbers[row, j] != 0:
            at[nonzero], value[nonzero] = position[start + j], numbers[row, j]
            nonzero += 1
    start += amounts
    if order == 1:
        return nonzero
    # products of two numbers, and squares
    for j in range(amounts):
        for k in range(j, amounts):
            if numbers[row, j] != 0 and numbers[row, k] != 0:
                at[nonzero], value[nonzero] = position[start + k - j], numbers[row, j] * numbers[row, k]
                nonzero += 1
        start += amounts - j
    # products of a dummy and a number
    for a in range(variables):
        if codes[row, a] > 0:
            first = start + (codes[row, a] - 1) * amounts
            for j in range(amounts):
                if numbers[row, j] != 0:
                    at[nonzero], value[nonzero] = position[first + j], numbers[row, j]
                    nonzero += 1
        start += (levels[a] - 1) * amounts
    # products of two dummies
    for a in range(variables):
        for b in range(a + 1, variables):
            if codes[row, a] > 0 and codes[row, b] > 0:
                at[nonzero] = position[start + (codes[row, a] - 1) * (levels[b] - 1) + codes[row, b] - 1]
                value[nonzero] = 1.0
                nonzero += 1
            start += (levels[a] - 1) * (levels[b] - 1)
    return nonzero


@jit
def _term_buffers(design: TwoWay) -> tuple[Array, Array]:
    """Return arrays that are large enough for the positions and values of the terms of a row."""
    both = design.codes.shape[1] + design.numbers.shape[1] + 1
    return np.empty(both * (both + 1), np.int64), np.empty(both * (both + 1))


@jit
def _mark_nonzero(design: TwoWay, nonzero: Array) -> None:
    """Mark the possible terms that are not 0 in every row."""
    at, value = _term_buffers(design)
    for row in range(len(design.codes)):
        for a in range(_terms(design, row, at, value)):
            nonzero[at[a]] = True


@jit
def _likelihood(
    start: int,
    stop: int,
    design: TwoWay,
    ones: Array,
    zeros: Array,
    slopes: Array,
    gradient: Array,
    information: Array,
    p: Array,
) -> float:
    """Add the rows' gradient and the lower half of their information; return their log-likelihood."""
    at, value = _term_buffers(design)
    with_information, total = len(information) > 0, 0.0
    for row in range(start, stop):
        nonzero = _terms(design, row, at, value)
        eta = 0.0
        for a in range(nonzero):
            eta += slopes[at[a]] * value[a]
        size = ones[row] + zeros[row]
        chance = 0.5 * (1 + math.tanh(0.5 * eta))
        p[row] = chance
        total += ones[row] * eta - size * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
        residual, weight = ones[row] - size * chance, size * chance * (1 - chance)
        for a in range(nonzero):
            gradient[at[a]] += residual * value[a]
        if with_information:
            for a in range(nonzero):
                share, line = weight * value[a], information[at[a]]
                for b in range(a + 1):
                    line[at[b]] += share * value[b]
    return total


@jit
def _mirror(matrix: Array) -> None:
    """Copy the lower half of a symmetric matrix to the upper half."""
    for a in range(len(matrix)):
        for b in range(a):
            matrix[b, a] = matrix[a, b]


@jit
def _predict(start: int, stop: int, design: TwoWay, slopes: Array, product: Array) -> None:
    """Write X b of these rows."""
    at, value = _term_buffers(design)
    for row in range(start, stop):
        nonzero = _terms(design, row, at, value)
        product[row] = 0.0
        for a in range(nonzero):
            for k in range(slopes.shape[1]):
                product[row, k] += value[a] * slopes[at[a], k]


@jit
def _moments(start: int, stop: int, design: TwoWay, residuals: Array, product: Array) -> None:
    """Add the X'r of these rows."""
    at, value = _term_buffers(design)
    for row in range(start, stop):
        nonzero = _terms(design, row, at, value)
        for a in range(nonzero):
            for k in range(residuals.shape[1]):
                product[at[a], k] += value[a] * residuals[row, k]


@jit
def _sum_squared_differences(before: TwoWay, after: TwoWay, matrix: Array, weights: Array) -> float:
    """Return sum w d'Md over all rows, where d has the terms of both designs."""
    (at, value), (at_after, value_after), total = _term_buffers(before), _term_buffers(after), 0.0
    for row in range(len(weights)):
        old, new = _terms(before, row, at, value), _terms(after, row, at_after, value_after)
        square = 0.0
        for a in range(old + new):
            line = matrix[at[a] if a < old else at_after[a - old]]
            difference = -value[a] if a < old else value_after[a - old]
            for b in range(old):
                square -= difference * value[b] * line[at[b]]
            for b in range(new):
                square += difference * value_after[b] * line[at_after[b]]
        total += weights[row] * square
    return total
