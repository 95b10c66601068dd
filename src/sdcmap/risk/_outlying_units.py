"""The few people who stand out: how outlying each record is, and the units (people or households) that are attacked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.kernels.tables.coding import compress

ROBUST_SD = 1.4826  # times the median absolute deviation: the standard deviation of a normal variable
ORDINARY_SDS = 3.0  # a number within so many robust standard deviations of the median is not far out
MAX_UNITS = 1_000  # in large files, so that the cost grows with the records alone
MAX_SHARE_OF_LARGEST = 0.1  # of the file; smaller files have fewer largest units
SUBJECTS_PER_PERSON = 3  # numbers, and categories or pairs of them, by which a person is most outlying
MIN_RELEASE_REFITS, MAX_RELEASE_REFITS = 40, 100  # with and without the watched units; twice those of a sweep
MAX_PAIRED_CATEGORIES = 20  # so many categorical columns, the first ones, are also taken in pairs


def tail_bits(x: Array) -> Array:
    """Return how many bits it takes to state how far out each number is.

    Formula: -log2 min(1, 2 P(X <= x), 2 P(X >= x)) + log2 max(1, |x - median| / (3 s)), where s is 1.4826 times the median
    absolute deviation, or the mean absolute deviation if that is 0. A missing number has -log2 of the share missing.

    >>> tail_bits(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    known = np.isfinite(x)
    bits = np.full(len(x), -math.log2(max(float(np.mean(~known)), 1 / max(len(x), 1))))
    if not known.any():
        return bits
    v = x[known]
    ordered = np.sort(v)
    up_to = np.searchsorted(ordered, v, side="right") / len(v)
    from_on = 1 - np.searchsorted(ordered, v, side="left") / len(v)
    deviation = np.abs(v - np.median(v))
    far = np.log2(np.maximum(1, deviation / (ORDINARY_SDS * robust_spread(v))))
    bits[known] = far - np.log2(np.minimum(1, 2 * np.minimum(up_to, from_on)))
    return bits


def robust_spread(x: Array) -> float:
    """Return 1.4826 times the median absolute deviation; the mean absolute deviation if that is 0, or 1."""
    deviation = np.abs(x - np.median(x))
    return float(ROBUST_SD * np.median(deviation) or deviation.mean() or 1.0)


def rarity_bits(code: Array) -> Array:
    """Return -log2 of the share of the records with each record's code.

    >>> rarity_bits(np.array([0, 0, 0, 1])).tolist()[-1]
    2.0
    """
    return np.asarray(-np.log2(np.bincount(code)[code] / len(code)))


def outlyingness_terms(data: Microdata, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Array]]:
    """Yield the bits of each number, of each category and of each pair of categories, with the names of the columns."""
    categories = [name for name in names if data.schema[name].kind != "numeric"]
    for name in names:
        yield (name,), rarity_bits(data.codes(name)) if name in categories else tail_bits(data.numbers(name))
    for pair in itertools.combinations(categories[:MAX_PAIRED_CATEGORIES], 2):
        yield pair, rarity_bits(compress([data.codes(name) for name in pair])[0])


def outlyingness(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the root mean square of the bits of each record over columns and pairs of categories."""
    total, terms = np.zeros(len(data)), 0
    for _, bits in outlyingness_terms(data, names):
        total += bits**2
        terms += 1
    return np.sqrt(total / max(terms, 1))


Subjects: TypeAlias = dict[tuple[str, ...], Array]


@dataclass(frozen=True)
class OutlyingUnits:
    """The most outlying units of a file: people with all their records, else households, else records.

    Parameters
    ----------
    names : the columns by which people are outlying; empty: every column that other people could know.
    share, fewest : as many units as this share of the people are chosen, at least `fewest` and at most 1,000.
    most : the largest share of the people who may belong to these units.
    """

    names: tuple[str, ...] = ()
    share: float = 0.01
    fewest: int = 30
    most: float = 0.1

    def __call__(self, data: Microdata) -> Array:
        """Return the number of each record's unit, in the order of outlyingness; -1 for all other records."""
        return self._choose(data)[0]

    def count_units(self, people: int) -> int:
        """Return how many units are chosen in a file of so many people, if they have few enough of its records."""
        return min(max(self.fewest, math.ceil(self.share * people)), max(self.fewest, MAX_UNITS))

    def targets(self, data: Microdata) -> Array:
        """Return the most outlying record of each chosen unit."""
        return self._choose(data)[1]

    def _choose(self, data: Microdata) -> tuple[Array, Array]:
        return data.remember(("outlying units", self), lambda: self._find(data))

    def subjects(self, data: Microdata) -> tuple[list[Subjects], list[Subjects]]:
        """Return by which numbers, and by which categories or pairs of them, each target is most outlying.

        Both lists contain the most outlying one of each target first, then the next. They give the targets, as positions
        in `targets`, of each column or pair.
        """
        return data.remember(("outlying subjects", self), lambda: self._find_subjects(data))

    def _find_subjects(self, data: Microdata) -> tuple[list[Subjects], list[Subjects]]:
        rows = self.targets(data)
        terms: tuple[dict[tuple[str, ...], Array], ...] = ({}, {})
        for subject, bits in outlyingness_terms(data, self.names or data.knowable):
            terms[data.schema[subject[0]].kind != "numeric"][subject] = bits[rows]
        numbers, categories = (_rank_subjects(own) for own in terms)
        return numbers, categories

    def _find(self, data: Microdata) -> tuple[Array, Array]:
        # the records, most outlying first; the first record of a unit represents it
        order = np.argsort(-outlyingness(data, self.names or data.knowable), kind="stable")
        _, first, unit, size = np.unique(data.units[order], return_index=True, return_inverse=True, return_counts=True)
        by_first = np.argsort(first)
        wanted = self.count_units(data.people)
        few = np.cumsum(size[by_first]) <= self.most * len(data)
        chosen = by_first[:wanted][few[:wanted]]
        number = np.full(len(size), -1)
        number[chosen] = np.arange(len(chosen))
        unit_of_record = np.empty(len(data), dtype=np.int64)
        unit_of_record[order] = number[unit]
        return unit_of_record, order[first[chosen]]


def _rank_subjects(bits: dict[tuple[str, ...], Array]) -> list[Subjects]:
    """Return the targets of each subject: of those by which they are most outlying, then by which they are second, ..."""
    if not bits:
        return []
    subjects, table = list(bits), np.stack(list(bits.values()))
    order = np.argsort(-table, axis=0, kind="stable")[:SUBJECTS_PER_PERSON]
    return [{subjects[k]: np.flatnonzero(row == k) for k in np.unique(row).tolist()} for row in order]


@dataclass(frozen=True)
class ExtremeUnits:
    """The units with the `largest` values of each amount, and with the smallest ones where an amount has negative values.

    on : the amounts; empty: every numeric variable.
    """

    on: tuple[str, ...] = ()
    largest: int = 10

    def __call__(self, data: Microdata) -> Array:
        """Return the number of each record's unit; -1 for all other records."""
        amounts = [data.numbers(name) for name in self.on or data.numeric]
        rows = [find_largest(sign * x, data.units, self.largest) for x in amounts for sign in signs_of_ends(x)]
        unit = np.full(len(data), -1)
        chosen = np.isin(data.units, data.units[np.concatenate([np.empty(0, dtype=np.int64), *rows])])
        unit[chosen] = np.unique(data.units[chosen], return_inverse=True)[1]
        return unit


@dataclass(frozen=True)
class WatchedUnits:
    """The outlying units and those with extreme values, as a choice of `HalfIn`.

    The two measures of the few have the same choice, so that they share their refits, which are the largest part of the
    cost of a synthetic candidate.
    """

    outlying: OutlyingUnits = OutlyingUnits()
    extreme: ExtremeUnits = ExtremeUnits()

    def __call__(self, data: Microdata) -> Array:
        """Return the number of each record's unit; -1 for all other records.

        `draw_half_in` gives units 2j and 2j + 1 opposite refits. Two units with extreme values are never such a pair:
        whether one of them is in must not tell which others are, because these determine its rank.
        """
        unit = data.units
        outlying, extreme = (np.unique(unit[choose(data) >= 0]) for choose in (self.outlying, self.extreme))
        others = np.setdiff1d(outlying, extreme)
        partners, rest = np.split(others, [min(len(extreme), len(others))])
        number = np.full(int(unit.max(initial=-1)) + 1, -1)
        number[extreme], number[partners] = 2 * np.arange(len(extreme)), 2 * np.arange(len(partners)) + 1
        number[rest] = 2 * len(extreme) + np.arange(len(rest))
        return np.asarray(number[unit])


def count_release_refits(times: int) -> int:
    """Return how many refits with and without the watched units a release makes, where a sweep makes `times`."""
    return max(times, min(MAX_RELEASE_REFITS, max(MIN_RELEASE_REFITS, 2 * times)))


def signs_of_ends(x: Array) -> tuple[float, ...]:
    """Return by which signs the extreme amounts are the largest ones: by -1 too where some are negative, as losses are.

    >>> signs_of_ends(np.array([5.0, -3.0])), signs_of_ends(np.array([5.0, 0.0]))
    ((1.0, -1.0), (1.0,))
    """
    return (1.0, -1.0) if (x < 0).any() else (1.0,)


def find_largest(x: Array, units: Array, largest: int) -> Array:
    """Return the record with the largest finite value of each of the largest units, largest first.

    They are at most so many units, and a tenth of all units.

    >>> find_largest(np.array([3.0, np.nan, 9.0, 5.0, 8.0] + 16 * [1.0]), np.array([0, 1, 2, 3, 2, *range(4, 20)]), 10)
    array([2, 3])
    """
    present = np.flatnonzero(np.isfinite(x))
    order = present[np.argsort(-x[present], kind="stable")]
    first = np.sort(np.unique(units[order], return_index=True)[1])
    count = min(largest, max(1, math.floor(MAX_SHARE_OF_LARGEST * (int(units.max(initial=-1)) + 1))))
    return np.asarray(order[first[:count]])
