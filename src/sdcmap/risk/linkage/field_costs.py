"""What two records cost as a pair, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

# NUMBER: by the distance, looked up; CATEGORY: by the two codes, looked up; SQUARE: scale (b - a)^2; GAP: cap times
# |b - a| / scale; RELATIVE: the same with scale max(|a|, 0.1) for scale; SAME, WINDOW, BELOW: nothing where b = a,
# |b - a| < scale, b - a < scale, else the cap; MIXTURE: minus the log density of b - a, above its least; CELL: minus the
# log chance that N(a, sd^2) falls into the cell with the number b, above its least
NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE, CELL = range(10)
STEPS = 8  # of an octave of distance, in the table of a NUMBER: the first three binary digits behind the point
DIGITS = 49  # of a float's 52 binary digits behind the point, those within a step
FIRST_CELL, WITHIN = 1023 * STEPS, (1 << DIGITS) - 1  # of the ratio 1; the digits within a step
HEAD = 4  # its cells before the distances: both missing, known missing, released missing, equal
NEAR_ZERO, LEAST_REACH = 0.1, 1e-100  # of RELATIVE: values nearer to 0 count as this; a divisor that never overflows
NONE = np.zeros(0)


class Cost(NamedTuple):
    """One field of both files (NaN: missing), and what two of its values cost."""

    kind: int
    known: Array
    released: Array
    scale: float = 1.0  # of NUMBER: one over the first distance of its table; of CATEGORY: the number of released codes
    cap: float = math.inf
    both: float = 0.0  # the cost where both are missing (NUMBER and CATEGORY: looked up)
    one: float = 0.0  # where one is
    # of MIXTURE: (log(weight / sd), center, half precision) of each component, in a row, then the top; of CELL: 1 / (sd
    # sqrt 2), then (low end, high end, log of its best chance) of each cell; of equal ends the density counts
    table: Array = NONE

    def pairs(self, known: Array | slice, released: Array | slice) -> Array:
        """The costs of these known records and these released ones, which broadcast: the plain formula."""
        a, b = self.known[known], self.released[released]
        if self.kind == NUMBER:
            return table_costs(a, b, self.table, self.scale)
        if self.kind == CATEGORY:
            return self.table[(a * self.scale + b).astype(np.intp)]
        lost, gone = np.isnan(a), np.isnan(b)
        a, b = np.where(lost, 0.0, a), np.where(gone, 0.0, b)
        with np.errstate(over="ignore"):
            cost = self._in_cell(a, b) if self.kind == CELL else self._present(a, b - a)
        return np.where(lost & gone, self.both, np.where(lost | gone, self.one, cost))

    def _present(self, a: Array, away: Array) -> Array:
        cost: Array
        if self.kind == SQUARE:
            cost = np.minimum(self.scale * away**2, self.cap)
        elif self.kind == GAP:
            cost = self.cap * np.minimum(np.abs(away) / self.scale, 1.0)
        elif self.kind == RELATIVE:
            reach = np.maximum(self.scale * np.maximum(np.abs(a), NEAR_ZERO), LEAST_REACH)
            cost = self.cap * np.minimum(np.abs(away) / reach, 1.0)
        elif self.kind == MIXTURE:
            height, center, half = self.table[:-1].reshape(-1, 3).T
            density = np.logaddexp.reduce(height - half * (away[..., np.newaxis] - center) ** 2, axis=-1)
            cost = np.clip(self.table[-1] - density, 0.0, self.cap)
        else:
            inside = {SAME: away == 0, WINDOW: np.abs(away) < self.scale, BELOW: away < self.scale}[self.kind]
            cost = np.where(inside, 0.0, self.cap)
        return cost

    def _in_cell(self, a: Array, b: Array) -> Array:
        place = 1 + 3 * b.astype(np.intp)
        low, high, top = (self.table[place + k] for k in range(3))
        cost: Array = np.vectorize(_cell_cost, otypes=[float])(a, low, high, top, self.table[0])
        return np.clip(cost, 0.0, self.cap)


def table_costs(known: Array, released: Array, table: Array, scale: float) -> Array:
    """The costs of a NUMBER: its states, and straight lines between the cells of the distances. The leading binary digits
    of a distance are its cell (log2, straight between the powers of 2), those that follow its place within."""
    last = len(table) - HEAD - 2
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(released - known)
        bits = np.atleast_1d(apart * scale).view(np.int64).reshape(apart.shape)
    cell = (bits >> DIGITS) - FIRST_CELL
    below = np.clip(cell, 0, last)
    rest = np.where(cell < 0, 0.0, np.where(cell > last, 1.0, (bits & WITHIN) / (WITHIN + 1.0)))
    first, second = table[HEAD + below], table[HEAD + below + 1]
    lost, gone = np.isnan(known), np.isnan(released)
    states = [lost & gone, lost, gone, apart == 0]
    return np.select(states, [table[k] for k in range(HEAD)], first + (second - first) * rest)


@jit
def _cell_cost(a: float, low: float, high: float, top: float, unit: float) -> float:
    """Minus the log chance that a normal value with mean a falls between low and high, and `top`; unit: 1 / (sd sqrt 2)."""
    near, far = (low - a) * unit, (high - a) * unit
    if low == high:
        return near * near
    if near > 0:
        chance = 0.5 * (math.erfc(near) - math.erfc(far))
    elif far < 0:
        chance = 0.5 * (math.erfc(-far) - math.erfc(-near))
    else:
        chance = 0.5 * (math.erf(far) - math.erf(near))
    return top - math.log(chance) if chance > 0 else math.inf


@inner_jit
def cell_of(ratio: float) -> int:
    """The cell of a NUMBER's table below a distance in units of its first; it may lie outside."""
    return int(np.float64(ratio).view(np.int64) >> DIGITS) - FIRST_CELL


@inner_jit
def by_distance(ratio: float, table: Array) -> float:
    """What a NUMBER costs at a distance above 0, in units of its first."""
    bits = np.float64(ratio).view(np.int64)
    cell, last = cell_of(ratio), len(table) - HEAD - 2
    if cell < 0:
        return float(table[HEAD])
    if cell > last:
        return float(table[HEAD + last + 1])
    here = table[HEAD + cell]
    return float(here + (table[HEAD + cell + 1] - here) * ((bits & WITHIN) / (WITHIN + 1.0)))


@inner_jit
def cost_of_values(
    a: float, b: float, kind: int, scale: float, cap: float, both: float, one: float, table: Array
) -> float:  # fmt: skip
    """The cost of two values; what `Cost.pairs` says in plain."""
    if kind == CATEGORY:
        return float(table[int(a) * int(scale) + int(b)])
    lost, gone = math.isnan(a), math.isnan(b)
    if kind == NUMBER:
        if lost or gone:
            return float(table[2] if not lost else table[0] if gone else table[1])
        if a == b:
            return float(table[3])
        return by_distance(abs(b - a) * scale, table)
    if lost or gone:
        return both if lost and gone else one
    away = b - a
    if kind == SQUARE:
        return min(scale * away * away, cap)
    if kind == GAP:
        return cap * min(abs(away) / scale, 1.0)
    if kind == RELATIVE:
        return cap * min(abs(away) / max(scale * max(abs(a), NEAR_ZERO), LEAST_REACH), 1.0)
    if kind == SAME:
        return 0.0 if away == 0 else cap
    if kind == WINDOW:
        return 0.0 if abs(away) < scale else cap
    if kind == BELOW:
        return 0.0 if away < scale else cap
    if kind == CELL:
        place = 1 + 3 * int(b)
        return min(max(_cell_cost(a, table[place], table[place + 1], table[place + 2], table[0]), 0.0), cap)
    top = -np.inf
    for k in range(0, len(table) - 1, 3):
        top = max(top, table[k] - table[k + 2] * (away - table[k + 1]) ** 2)
    total = 0.0
    for k in range(0, len(table) - 1, 3):
        total += math.exp(table[k] - table[k + 2] * (away - table[k + 1]) ** 2 - top)
    return float(min(max(table[len(table) - 1] - top - math.log(total), 0.0), cap))


# ---- all pairs ------------------------------------------------------------------------------------------------
def block_costs(costs: Sequence[Cost], known: Array | slice, released: Array | slice = slice(None)) -> Array:
    """The costs of these known records (rows) against these released ones (columns)."""
    total = np.zeros((len(costs[0].known[known]), len(costs[0].released[released])))
    for field in costs:
        a, b = np.ascontiguousarray(field.known[known]), np.ascontiguousarray(field.released[released])
        _add_costs(a, b, field.kind, field.scale, field.cap, field.both, field.one, field.table, total)
    return total


@jit
def _add_costs(
    a: Array, b: Array, kind: int, scale: float, cap: float, both: float, one: float, table: Array, total: Array
) -> None:
    for i in range(len(a)):
        for j in range(len(b)):
            total[i, j] += cost_of_values(a[i], b[j], kind, scale, cap, both, one, table)


def mean_costs(costs: Sequence[Cost], known: Array | slice, released: Array | slice = slice(None)) -> Array:
    """The same in the mean over the fields that both records have; 1 where they have none."""
    n, m = len(costs[0].known), len(costs[0].released)
    return mean_of_pairs(costs, np.arange(n)[known][:, np.newaxis], np.arange(m)[released])


def mean_of_pairs(costs: Sequence[Cost], known: Array, released: Array) -> Array:
    """The same of these known records and these released ones, which broadcast."""
    shape = np.broadcast_shapes(known.shape, released.shape)
    total, count = np.zeros(shape), np.zeros(shape)
    for field in costs:
        both = ~(np.isnan(field.known[known]) | np.isnan(field.released[released]))
        count += both
        total += np.where(both, field.pairs(known, released), 0.0)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def relative_weights(importance: tuple[float, ...], count: int) -> Array:
    """The weights of so many variables, 1 in the mean."""
    given = np.array(importance or (1.0,) * count)
    return np.asarray(given * (count / given.sum()))


def importance_problems(importance: tuple[float, ...], on: tuple[str, ...]) -> Iterator[str]:
    """The sentence for weights of Gower's distance that do not fit."""
    if importance and (len(importance) != len(on) or not min(importance) > 0):
        yield f".importance must hold a number above 0 for each variable of `on`: {len(on)}. Got {len(importance)}."
