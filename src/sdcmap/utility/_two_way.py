"""The design of a regression with every product of two variables, which is never stored: a row has as many terms as
variables that are not at their commonest category, and pairs of them, however many categories there are."""

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
    """Categories and numbers, one row a unit, and the terms that they make.

    The intercept; a dummy of every category but the first; the numbers; and with order 2 the products of two numbers, the
    squares, and the products of numbers or dummies and dummies of another variable. Terms that are 0 in every row are
    left out: `place` says where each possible term stands.
    """

    codes: Array  # of categories: (rows, variables), from 0
    numbers: Array  # (rows, variables)
    levels: Array  # of each category
    order: int
    place: Array

    @classmethod
    def of(cls, codes: Array, numbers: Array, order: int) -> TwoWay:
        codes, numbers = np.ascontiguousarray(codes, dtype=np.int32), np.ascontiguousarray(numbers, dtype=np.float64)
        levels = codes.max(axis=0, initial=0).astype(np.int64) + 1
        amounts = numbers.shape[1]
        met = np.zeros(count_terms([*(levels - 1).tolist(), *[1] * amounts], amounts, order), dtype=np.bool_)
        possible = cls(codes, numbers, levels, order, np.arange(len(met)))
        _mark(possible, met)
        return possible._replace(place=np.cumsum(met) - 1)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def width(self) -> int:
        """How many terms there are."""
        return int(self.place[-1]) + 1

    def take(self, rows: Array) -> TwoWay:
        """The same terms of some rows."""
        return self._replace(codes=self.codes[rows], numbers=self.numbers[rows])

    def likelihood(
        self, ones: Array, zeros: Array, slopes: Array, *, informed: bool = True
    ) -> tuple[float, Array, Array, Array]:
        """The log-likelihood of a logit, its gradient, the information (where wanted), and the probabilities."""
        p, ones = np.empty(self.rows), np.asarray(ones, dtype=np.float64)

        def part(start: int, stop: int) -> tuple[float, Array, Array]:
            gradient = np.zeros(self.width)
            information = np.zeros((self.width, self.width) if informed else (0, 0))
            value = _likelihood(start, stop, self, ones, zeros, slopes, gradient, information, p)
            return value, gradient, information

        (value, gradient, information), (more, slope, curve) = self._halves(part)
        gradient += slope
        information += curve
        if informed:
            _mirror(information)
        return value + more, gradient, information, p

    def predicted(self, slopes: Array) -> Array:
        """X b, for the columns b of a matrix."""
        product, slopes = np.empty((self.rows, slopes.shape[1])), np.ascontiguousarray(slopes)
        self._halves(lambda start, stop: _predict(start, stop, self, slopes, product))
        return product

    def moments(self, residuals: Array) -> Array:
        """X'r, for the columns r of a matrix."""

        def part(start: int, stop: int) -> Array:
            product = np.zeros((self.width, residuals.shape[1]))
            _moments(start, stop, self, residuals, product)
            return product

        first, second = self._halves(part)
        return first + second

    def _halves(self, part: Callable[[int, int], T]) -> list[T]:
        """Both halves of the rows, at once where a task may use two threads; sums do not depend on how many."""
        with ThreadPoolExecutor(min(2, own_threads())) as pool:
            return list(pool.map(part, (0, self.rows // 2), (self.rows // 2, self.rows)))


def count_terms(widths: Sequence[int], squares: int, order: int) -> int:
    """How many terms variables of so many columns have: the intercept, the columns, and with order 2 so many squares and
    the products of the columns of two variables."""
    each = 1 + sum(widths)
    pairs = (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
    return each if order == 1 else each + squares + pairs


def squared_differences(before: TwoWay, after: TwoWay, matrix: Array, weights: Array) -> float:
    """sum w d'Md, d the differences between the rows of two designs of the same terms."""
    after = before._replace(codes=after.codes, numbers=after.numbers)
    return _squared_differences(before, after, matrix, np.asarray(weights, dtype=np.float64))


# ---- kernels --------------------------------------------------------------------------------------------------
@inner_jit
def _terms(design: TwoWay, row: int, at: Array, value: Array) -> int:
    """The terms of a row that are not 0, in rising order; returns how many there are."""
    codes, numbers, levels, order, place = design
    variables, amounts = codes.shape[1], numbers.shape[1]
    at[0], value[0], met, start = 0, 1.0, 1, 1
    for a in range(variables):
        if codes[row, a] > 0:
            at[met], value[met] = place[start + codes[row, a] - 1], 1.0
            met += 1
        start += levels[a] - 1
    for j in range(amounts):
        if numbers[row, j] != 0:
            at[met], value[met] = place[start + j], numbers[row, j]
            met += 1
    start += amounts
    if order == 1:
        return met
    for j in range(amounts):
        for k in range(j, amounts):
            if numbers[row, j] != 0 and numbers[row, k] != 0:
                at[met], value[met] = place[start + k - j], numbers[row, j] * numbers[row, k]
                met += 1
        start += amounts - j
    for a in range(variables):
        if codes[row, a] > 0:
            first = start + (codes[row, a] - 1) * amounts
            for j in range(amounts):
                if numbers[row, j] != 0:
                    at[met], value[met] = place[first + j], numbers[row, j]
                    met += 1
        start += (levels[a] - 1) * amounts
    for a in range(variables):
        for b in range(a + 1, variables):
            if codes[row, a] > 0 and codes[row, b] > 0:
                at[met] = place[start + (codes[row, a] - 1) * (levels[b] - 1) + codes[row, b] - 1]
                value[met] = 1.0
                met += 1
            start += (levels[a] - 1) * (levels[b] - 1)
    return met


@jit
def _room(design: TwoWay) -> tuple[Array, Array]:
    """Places and values of the terms of a row, at most."""
    both = design.codes.shape[1] + design.numbers.shape[1] + 1
    return np.empty(both * (both + 1), np.int64), np.empty(both * (both + 1))


@jit
def _mark(design: TwoWay, met: Array) -> None:
    """Mark the possible terms that are not 0 in every row."""
    at, value = _room(design)
    for row in range(len(design.codes)):
        for a in range(_terms(design, row, at, value)):
            met[at[a]] = True


@jit
def _likelihood(
    start: int, stop: int, design: TwoWay, ones: Array, zeros: Array, slopes: Array, gradient: Array, information: Array,
    p: Array,
) -> float:  # fmt: skip
    """Adds the rows' share of the gradient and of the lower half of the information; returns their log-likelihood."""
    at, value = _room(design)
    informed, total = len(information) > 0, 0.0
    for row in range(start, stop):
        met = _terms(design, row, at, value)
        eta = 0.0
        for a in range(met):
            eta += slopes[at[a]] * value[a]
        size = ones[row] + zeros[row]
        chance = 0.5 * (1 + math.tanh(0.5 * eta))
        p[row] = chance
        total += ones[row] * eta - size * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
        residual, weight = ones[row] - size * chance, size * chance * (1 - chance)
        for a in range(met):
            gradient[at[a]] += residual * value[a]
        if informed:
            for a in range(met):
                share, line = weight * value[a], information[at[a]]
                for b in range(a + 1):
                    line[at[b]] += share * value[b]
    return total


@jit
def _mirror(matrix: Array) -> None:
    """The upper half of a symmetric matrix from the lower."""
    for a in range(len(matrix)):
        for b in range(a):
            matrix[b, a] = matrix[a, b]


@jit
def _predict(start: int, stop: int, design: TwoWay, slopes: Array, product: Array) -> None:
    at, value = _room(design)
    for row in range(start, stop):
        met = _terms(design, row, at, value)
        product[row] = 0.0
        for a in range(met):
            for k in range(slopes.shape[1]):
                product[row, k] += value[a] * slopes[at[a], k]


@jit
def _moments(start: int, stop: int, design: TwoWay, residuals: Array, product: Array) -> None:
    at, value = _room(design)
    for row in range(start, stop):
        met = _terms(design, row, at, value)
        for a in range(met):
            for k in range(residuals.shape[1]):
                product[at[a], k] += value[a] * residuals[row, k]


@jit
def _squared_differences(before: TwoWay, after: TwoWay, matrix: Array, weights: Array) -> float:
    (at, value), (at_after, value_after), total = _room(before), _room(after), 0.0
    for row in range(len(weights)):
        old, new = _terms(before, row, at, value), _terms(after, row, at_after, value_after)
        square = 0.0
        for a in range(old + new):
            line = matrix[at[a] if a < old else at_after[a - old]]
            mine = -value[a] if a < old else value_after[a - old]
            for b in range(old):
                square -= mine * value[b] * line[at[b]]
            for b in range(new):
                square += mine * value_after[b] * line[at_after[b]]
        total += weights[row] * square
    return total
