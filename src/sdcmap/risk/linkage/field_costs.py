"""The cost of a pair of records, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit

# Kinds of costs; a is the known value and b the released one.
#   NUMBER    looked up by the distance |b - a|
#   CATEGORY  looked up by the two codes
#   SQUARE    scale * (b - a)^2, at most the cap
#   GAP       cap * |b - a| / scale, at most the cap
#   RELATIVE  as GAP, with scale * max(|a|, 0.1) instead of scale
#   SAME      0 if b = a, else the cap
#   WINDOW    0 if |b - a| < scale, else the cap
#   BELOW     0 if b - a < scale, else the cap
#   MIXTURE   minus the log density of b - a, shifted so that the best is 0
#   CELL      minus the log probability that N(a, sd^2) falls into the cell with number b, shifted so that the best is 0
NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE, CELL = range(10)
# The table of a NUMBER has a cell for each step of distance. The exponent and the first three mantissa bits of a float64
# are the number of its cell, so that finding the cell needs no logarithm.
STEPS_PER_OCTAVE = 8  # cells per doubling of the distance
BITS_WITHIN_STEP = 49  # mantissa bits (of 52) that give the position within a cell
FIRST_CELL = 1023 * STEPS_PER_OCTAVE  # the cell of the ratio 1 (1023 is the exponent bias)
WITHIN_STEP_MASK = (1 << BITS_WITHIN_STEP) - 1
STATE_CELLS = 4  # cells before the distances: both missing, known missing, released missing, equal
NEAR_ZERO = 0.1  # RELATIVE: the smallest |a| that the difference is divided by (Yancey, Winkler, Creecy 2002)
MIN_REACH = 1e-100  # the smallest divisor, so that a ratio does not overflow
NO_TABLE = np.zeros(0)


class Cost(NamedTuple):
    """One field of both files (NaN: missing), and the cost of a pair of its values."""

    kind: int
    known: Array
    released: Array
    scale: float = 1.0  # NUMBER: one over the first distance of the table; CATEGORY: the number of released codes
    cap: float = math.inf
    both: float = 0.0  # the cost if both values are missing (NUMBER and CATEGORY look it up in the table)
    one: float = 0.0  # the cost if one value is missing
    # MIXTURE: (log(weight / sd), center, half precision) of each component, then the highest log density. CELL: 1 / (sd
    # sqrt 2), then (low end, high end, log of its highest probability) of each cell; equal ends stand for a density.
    table: Array = NO_TABLE

    def pairs(self, known: Array | slice, released: Array | slice) -> Array:
        """Return the costs of these known and released records, which broadcast; the reference for the compiled
        kernels.
        """
        a, b = self.known[known], self.released[released]
        if self.kind == NUMBER:
            return table_costs(a, b, self.table, self.scale)
        if self.kind == CATEGORY:
            return self.table[(a * self.scale + b).astype(np.intp)]
        known_missing, released_missing = np.isnan(a), np.isnan(b)
        a, b = np.where(known_missing, 0.0, a), np.where(released_missing, 0.0, b)
        with np.errstate(over="ignore"):
            cost = self._cost_by_cell(a, b) if self.kind == CELL else self._cost_by_difference(a, b - a)
        return np.where(
            known_missing & released_missing, self.both, np.where(known_missing | released_missing, self.one, cost)
        )

    def _cost_by_difference(self, a: Array, difference: Array) -> Array:
        """Return the costs of kinds that depend on the difference b - a."""
        cost: Array
        if self.kind == SQUARE:
            cost = np.minimum(self.scale * difference**2, self.cap)
        elif self.kind == GAP:
            cost = self.cap * np.minimum(np.abs(difference) / self.scale, 1.0)
        elif self.kind == RELATIVE:
            reach = np.maximum(self.scale * np.maximum(np.abs(a), NEAR_ZERO), MIN_REACH)
            cost = self.cap * np.minimum(np.abs(difference) / reach, 1.0)
        elif self.kind == MIXTURE:
            height, center, half = self.table[:-1].reshape(-1, 3).T
            density = np.logaddexp.reduce(height - half * (difference[..., np.newaxis] - center) ** 2, axis=-1)
            cost = np.clip(self.table[-1] - density, 0.0, self.cap)
        else:
            inside = {SAME: difference == 0, WINDOW: np.abs(difference) < self.scale, BELOW: difference < self.scale}[
                self.kind
            ]
            cost = np.where(inside, 0.0, self.cap)
        return cost

    def _cost_by_cell(self, a: Array, b: Array) -> Array:
        """Return the costs of the kind CELL."""
        start = 1 + 3 * b.astype(np.intp)
        low, high, top = (self.table[start + k] for k in range(3))
        cost: Array = np.vectorize(_cell_cost, otypes=[float])(a, low, high, top, self.table[0])
        return np.clip(cost, 0.0, self.cap)


def table_costs(known: Array, released: Array, table: Array, scale: float) -> Array:
    """Return the costs of the kind NUMBER: of its states, and by linear interpolation between the cells of distances.

    The leading binary digits of a distance are its cell (a logarithm, linear between powers of 2). The digits that
    follow are its position within the cell.
    """
    last = len(table) - STATE_CELLS - 2
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.abs(released - known)
        bits = np.atleast_1d(distance * scale).view(np.int64).reshape(distance.shape)
    cell = (bits >> BITS_WITHIN_STEP) - FIRST_CELL
    below = np.clip(cell, 0, last)
    fraction = np.where(cell < 0, 0.0, np.where(cell > last, 1.0, (bits & WITHIN_STEP_MASK) / (WITHIN_STEP_MASK + 1.0)))
    first, second = table[STATE_CELLS + below], table[STATE_CELLS + below + 1]
    known_missing, released_missing = np.isnan(known), np.isnan(released)
    states = [known_missing & released_missing, known_missing, released_missing, distance == 0]
    return np.select(states, [table[k] for k in range(STATE_CELLS)], first + (second - first) * fraction)


@jit
def _cell_cost(a: float, low: float, high: float, top: float, unit: float) -> float:
    """Return `top` minus the log probability that N(a, sd^2) falls between low and high; unit: 1 / (sd sqrt 2)."""
    near, far = (low - a) * unit, (high - a) * unit
    if low == high:
        return near * near
    # Use the tail that is not close to 1, or the difference would cancel.
    if near > 0:
        chance = 0.5 * (math.erfc(near) - math.erfc(far))
    elif far < 0:
        chance = 0.5 * (math.erfc(-far) - math.erfc(-near))
    else:
        chance = 0.5 * (math.erf(far) - math.erf(near))
    return top - math.log(chance) if chance > 0 else math.inf


@inner_jit
def cell_of(ratio: float) -> int:
    """Return the cell of a NUMBER's table for a distance in units of its first; it may lie outside the table."""
    return int(np.float64(ratio).view(np.int64) >> BITS_WITHIN_STEP) - FIRST_CELL


@inner_jit
def look_up_distance(ratio: float, table: Array) -> float:
    """Return the cost of a NUMBER at a distance above 0, in units of its first distance."""
    bits = np.float64(ratio).view(np.int64)
    cell, last = cell_of(ratio), len(table) - STATE_CELLS - 2
    if cell < 0:
        return float(table[STATE_CELLS])
    if cell > last:
        return float(table[STATE_CELLS + last + 1])
    value = table[STATE_CELLS + cell]
    return float(
        value + (table[STATE_CELLS + cell + 1] - value) * ((bits & WITHIN_STEP_MASK) / (WITHIN_STEP_MASK + 1.0))
    )


@inner_jit
def cost_of_values(
    a: float, b: float, kind: int, scale: float, cap: float, both: float, one: float, table: Array
) -> float:
    """Return the cost of two values; the compiled twin of `Cost.pairs`."""
    if kind == CATEGORY:
        return float(table[int(a) * int(scale) + int(b)])
    known_missing, released_missing = math.isnan(a), math.isnan(b)
    if kind == NUMBER:
        if known_missing or released_missing:
            return float(table[2] if not known_missing else table[0] if released_missing else table[1])
        if a == b:
            return float(table[3])
        return look_up_distance(abs(b - a) * scale, table)
    if known_missing or released_missing:
        return both if known_missing and released_missing else one
    difference = b - a
    if kind == SQUARE:
        return min(scale * difference * difference, cap)
    if kind == GAP:
        return cap * min(abs(difference) / scale, 1.0)
    if kind == RELATIVE:
        return cap * min(abs(difference) / max(scale * max(abs(a), NEAR_ZERO), MIN_REACH), 1.0)
    if kind == SAME:
        return 0.0 if difference == 0 else cap
    if kind == WINDOW:
        return 0.0 if abs(difference) < scale else cap
    if kind == BELOW:
        return 0.0 if difference < scale else cap
    if kind == CELL:
        start = 1 + 3 * int(b)
        return min(max(_cell_cost(a, table[start], table[start + 1], table[start + 2], table[0]), 0.0), cap)
    # log-sum-exp over the components of the mixture, shifted by the largest term against underflow
    top = -np.inf
    for k in range(0, len(table) - 1, 3):
        top = max(top, table[k] - table[k + 2] * (difference - table[k + 1]) ** 2)
    total = 0.0
    for k in range(0, len(table) - 1, 3):
        total += math.exp(table[k] - table[k + 2] * (difference - table[k + 1]) ** 2 - top)
    return float(min(max(table[len(table) - 1] - top - math.log(total), 0.0), cap))


# ---- all pairs ------------------------------------------------------------------------------------------------
def block_costs(costs: Sequence[Cost], known: Array | slice, released: Array | slice = slice(None)) -> Array:
    """Return the costs of these known records (rows) against these released records (columns)."""
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
    """Return the mean cost over the fields present in both records; 1 where there are none."""
    n, m = len(costs[0].known), len(costs[0].released)
    return mean_of_pairs(costs, np.arange(n)[known][:, np.newaxis], np.arange(m)[released])


def mean_of_pairs(costs: Sequence[Cost], known: Array, released: Array) -> Array:
    """Return the mean costs of these known and released records, which broadcast."""
    shape = np.broadcast_shapes(known.shape, released.shape)
    total, count = np.zeros(shape), np.zeros(shape)
    for field in costs:
        both = ~(np.isnan(field.known[known]) | np.isnan(field.released[released]))
        count += both
        total += np.where(both, field.pairs(known, released), 0.0)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def relative_weights(importance: tuple[float, ...], count: int) -> Array:
    """Return the weights of `count` variables, scaled to a mean of 1."""
    given = np.array(importance or (1.0,) * count)
    return np.asarray(given * (count / given.sum()))


def importance_problems(importance: tuple[float, ...], on: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the weights of Gower's distance."""
    if importance and (len(importance) != len(on) or not min(importance) > 0):
        yield f".importance needs a number above 0 for each of the {len(on)} variables of `on`; it has {len(importance)}."
