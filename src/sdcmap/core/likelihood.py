"""How likely a released record is if it was a known record before masking, as a reader of the method note can compute it.

log P(released j | known i) is a sum over fields; a field is two arrays and a density. A method states its fields in
`Method.log_likelihood`. Attacks add them up in blocks of known records and need not know the method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.mixtures import log_mixture

IMPOSSIBLE = -np.inf


class Density(Protocol):
    """log p(released | known) of one field, up to a constant that is the same for all pairs. Its arguments broadcast."""

    def __call__(self, known: Array, released: Array, /) -> Array: ...


@dataclass(frozen=True)
class Normal:
    """released - known ~ N(0, sd^2)."""

    sd: float

    def __call__(self, known: Array, released: Array) -> Array:
        return -0.5 * ((released - known) / self.sd) ** 2


@dataclass(frozen=True, eq=False)
class Cells:
    """known + N(0, sd^2) lies between low_k and high_k, where k is the released cell number.

    The density is the log of that probability; where low_k = high_k, the log density at that value.
    """

    sd: float
    low: Array
    high: Array

    def __call__(self, known: Array, released: Array) -> Array:
        from scipy.special import log_ndtr

        cell = released.astype(np.intp)
        low, high = ((side[cell] - known) / self.sd for side in (self.low, self.high))
        # In the upper tail both probabilities are close to 1 and their difference loses all digits, so it is taken in
        # the mirrored lower tail.
        mirrored = low > -high
        upto, below = log_ndtr(np.where(mirrored, -low, high)), log_ndtr(np.where(mirrored, -high, low))
        with np.errstate(divide="ignore"):
            return np.where(low == high, -0.5 * low**2, upto + np.log1p(-np.exp(below - upto)))


@dataclass(frozen=True)
class Mixture:
    """released - known ~ sum_k weights_k N(centers_k, sds_k^2)."""

    weights: tuple[float, ...]
    centers: tuple[float, ...]
    sds: tuple[float, ...]

    def __call__(self, known: Array, released: Array) -> Array:
        parts = (np.array(numbers) for numbers in (self.weights, self.centers, self.sds))
        return log_mixture(released - known, *parts)


@dataclass(frozen=True)
class Window:
    """|released - known| < width, with all such pairs equally likely; known and released are ranks."""

    width: float

    def __call__(self, known: Array, released: Array) -> Array:
        return np.where(np.abs(released - known) < self.width, 0.0, IMPOSSIBLE)


@dataclass(frozen=True)
class Below:
    """released - known < width, with all such pairs equally likely: one side of a window."""

    width: float

    def __call__(self, known: Array, released: Array) -> Array:
        return np.where(released - known < self.width, 0.0, IMPOSSIBLE)


@dataclass(frozen=True)
class Same:
    """The variable was not masked: released equals known."""

    def __call__(self, known: Array, released: Array) -> Array:
        return np.where(released == known, 0.0, IMPOSSIBLE)


@dataclass(frozen=True, eq=False)
class Transition:
    """P(released = b | known = a) = matrix[a, b]; known and released are codes."""

    matrix: Array

    def __call__(self, known: Array, released: Array) -> Array:
        with np.errstate(divide="ignore"):
            table = np.log(self.matrix)
        return table[known.astype(np.intp), released.astype(np.intp)]


@dataclass(frozen=True, eq=False)
class Field:
    """One field of a likelihood: a number for each known and each released record (NaN: missing), and its density.

    A value that is missing on both sides contributes nothing. One that is missing on one side only is impossible,
    because methods do not move missing values.
    """

    known: Array
    released: Array
    density: Density

    def block(self, rows: Array | slice) -> Array:
        """Return log p of every released record (columns) for these known records (rows)."""
        return self._of(self.known[rows][:, np.newaxis], self.released[np.newaxis, :])

    def pairs(self, rows: Array, others: Array) -> Array:
        """Return log p of the released records `others` for the known records `rows`. The two broadcast."""
        return self._of(self.known[rows], self.released[others])

    def _of(self, known: Array, released: Array) -> Array:
        no_known, no_released = np.isnan(known), np.isnan(released)
        if not (no_known.any() or no_released.any()):
            return self.density(known, released)
        log_density = self.density(np.where(no_known, 0.0, known), np.where(no_released, 0.0, released))
        return np.where(no_known & no_released, 0.0, np.where(no_known | no_released, IMPOSSIBLE, log_density))


def block(fields: Sequence[Field], rows: Array | slice) -> Array:
    """Return log P(released j | known i) for these known records i and every released record j."""
    total = fields[0].block(rows).copy()
    for field in fields[1:]:
        total += field.block(rows)
    return total


Fields = tuple[Field, ...]
Part = tuple[Array, Array, Fields]


def join_parts(known: Array, released: Array, parts: Sequence[Part]) -> Fields:
    """Return the fields of a file that consists of parts, such as strata. A pair of records of two parts is impossible.

    known, released : the number of the part of each record. parts : the rows of each part in the known and in the
    released file, and its own fields. Fields of several parts with the same density become one field.
    """
    if len(parts) == 1 and len(parts[0][0]) == len(known) and len(parts[0][1]) == len(released):
        return parts[0][2]
    values_of: dict[tuple[Density, int], tuple[Array, Array]] = {}
    for rows, others, fields in parts:
        # a part may have several fields with the same density: they are distinguished by their number
        seen: Counter[Density] = Counter()
        for field in fields:
            key = (field.density, seen[field.density])
            seen[field.density] += 1
            both = values_of.setdefault(key, (np.full(len(known), np.nan), np.full(len(released), np.nan)))
            both[0][rows], both[1][others] = field.known, field.released
    # makes pairs of different parts impossible
    same = Field(known.astype(float), released.astype(float), Same())
    return (same, *(Field(*both, density) for (density, _), both in values_of.items()))


def fields_by_part(part: Array, count: int, fields_of: Callable[[Array, Array], Fields]) -> Fields:
    """Return the fields of the whole file from those of each part.

    part : the number of the part of each record, the `count` known records first. fields_of : computes the fields of one
    part from its rows in both files.
    """
    known, released = part[:count], part[count:]
    pairs = [
        (np.flatnonzero(known == number), np.flatnonzero(released == number))
        for number in np.intersect1d(known, released)
    ]
    return join_parts(known, released, [(*pair, fields_of(*pair)) for pair in pairs])
