"""What is tried to tell one column from others, with the share of its values that each trial tells.

- each column alone, and sums, differences, products, ratios, maxima and minima of two numbers, along which the nearest
  records are looked up: so powers, logarithms, ranks, piecewise and jittered relations of these are found as well;
- weighted sums and products of powers of all numbers, fitted to the three quarters of the records that they fit best;
- the best of these within each category of another column;
- groups of records that agree in one, two or three columns, and a tree on the three most telling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.bundle import recovery
from sdcmap.bundle.recovery import DENSE, Target, told_along, told_in_groups
from sdcmap.kernels.arrays import Array, Floats
from sdcmap.kernels.statistics.trees import bin_edges, binned
from sdcmap.kernels.tables.coding import compress

FEW = 50  # values that a judgment needs; with fewer changed ones, all are judged, as if the column were not released
MOST_SETS = 150  # pairs and triples of columns that are looked at, those that extend the most telling first
FEW_LEVELS = 12  # most categories of a column within which a relation is looked for
SCREENED = 500  # records on which formulas of two columns are compared by rank correlation
BEST = 5  # formulas that are tried of all
MOSTLY_KNOWN = 0.9  # share of finite values of a column that a weighted sum may have
LARGEST = 1e100  # value of such a column
USED = 0.02  # smallest coefficient, of the largest, of a column that belongs to a weighted sum

Told = tuple[tuple[str, ...], float]  # columns, and the share that they tell
Feature = tuple[tuple[str, ...], Floats]  # columns, and a number made of them for each record


class Known(NamedTuple):
    """One column of some released rows: its numbers (None: it has none), and its groups 0, 1, ... with their number."""

    name: str
    numbers: Floats | None
    groups: Array
    size: int
    ordered: bool


class Trials(NamedTuple):
    """Everything that is tried for one target; rows of `sources` are the taught ones, then the judged ones."""

    target: Target
    taught: int
    sources: Sequence[Known]

    def shares(self) -> Iterator[Told]:
        if not self.sources:
            return
        along = [(by, values, self._along(values)) for by, values in self._features()]
        yield from ((by, share) for by, _, share in along)
        for by, values, _ in sorted(along, key=lambda tried: -tried[2])[:2]:
            yield from self._within_categories(by, values)
        yield from self._sets()
        yield from self._tree()

    def _along(self, values: Floats) -> float:
        known, asked = np.split(values, [self.taught])
        return self.target.share(told_along(known, asked, self.target))

    # ---- numbers ----------------------------------------------------------------------------------------------
    def _features(self) -> Iterator[Feature]:
        """Numbers along which the target may lie, with the columns that they are made of."""
        numeric = {source.name: source.numbers for source in self.sources if source.numbers is not None}
        yield from (((name,), numbers) for name, numbers in numeric.items())
        yield from self._formulas(numeric)
        yield from self._weighted_sum(numeric, np.copy)
        yield from self._weighted_sum(numeric, _logarithm)

    def _formulas(self, numeric: Mapping[str, Floats]) -> Iterator[Feature]:
        """Of all formulas of two columns, those that agree best in rank with the target."""
        pairs = list(combinations(numeric, 2))
        if not pairs:
            return
        some = slice(0, min(self.taught, SCREENED))
        made = np.column_stack([f for a, b in pairs for f in _formulas(numeric[a][some], numeric[b][some])])
        agreement = recovery.rank_agreement(made, self.target.taught[some])
        for place in np.argsort(-agreement, kind="stable")[:BEST].tolist():
            a, b = pairs[place // FORMULAS]
            yield (a, b), _formulas(numeric[a], numeric[b])[place % FORMULAS]

    def _weighted_sum(self, numeric: Mapping[str, Floats], scale: Callable[[Floats], Floats]) -> Iterator[Feature]:
        """A weighted sum of numbers, or of their logarithms, fitted to most records: of all, then of those that count."""
        y = scale(self.target.taught)
        if self.target.tolerance is None or not _has_variance(y):
            return
        scaled = {name: scale(numbers) for name, numbers in numeric.items()}
        columns = {name: x for name, x in scaled.items() if _has_variance(x[: self.taught])}
        if (weighted := self._fitted(columns, y)) is not None:
            weights = np.abs(weighted[1])
            used = {
                n: x for (n, x), weight in zip(columns.items(), weights, strict=True) if weight > USED * weights.max()
            }
            if (again := self._fitted(used, y)) is not None:
                yield tuple(used), again[0]

    def _fitted(self, columns: Mapping[str, Floats], y: Floats) -> tuple[Floats, Floats] | None:
        """The sum for every record, and the weight of each column in units of its spread; None: too few records."""
        if len(columns) < 2:
            return None
        x = np.column_stack([*columns.values()])
        whole = np.flatnonzero(np.isfinite(x[: self.taught]).all(axis=1) & np.isfinite(y))
        if len(whole) < max(FEW, 3 * len(columns)):
            return None
        spread = x[whole].std(axis=0)
        x = (x - x[whole].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        slopes = recovery.trimmed_slopes(x[whole], y[whole] - y[whole].mean())
        with np.errstate(invalid="ignore"):  # a record that lacks a value has no sum
            return x @ slopes, slopes

    def _within_categories(self, by: tuple[str, ...], values: Floats) -> Iterator[Told]:
        """The same relation, another one in each category of a further column."""
        there = np.isfinite(values)
        if not there.any():
            return
        low, high = values[there].min(), values[there].max()
        scaled = (values - low) / (high - low if high > low else 1.0)
        for source in self.sources:
            if source.size <= FEW_LEVELS and source.name not in by:
                yield (*by, source.name), self._along(2.0 * source.groups + scaled)

    # ---- groups -----------------------------------------------------------------------------------------------
    def _sets(self) -> Iterator[Told]:
        """Groups of records that agree in one, two or three columns; larger sets extend the most telling smaller ones."""
        tried: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for size in (1, 2, 3):
            tried.sort(key=lambda told: -told[1])
            sets = (tuple(sorted({*places, more})) for places, _ in tried for more in range(len(self.sources)))
            larger = [places for places in dict.fromkeys(sets) if len(places) == size]
            tried = [(places, self._in_groups(places)) for places in larger[: max(MOST_SETS, len(self.sources))]]
            yield from ((self._names(places), share) for places, share in tried)

    def _names(self, places: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.sources[place].name for place in places)

    def _in_groups(self, places: tuple[int, ...]) -> float:
        groups, count = _joint([self.sources[place] for place in places])
        known, asked = np.split(groups, [self.taught])
        return self.target.share(told_in_groups(known, asked, count, self.target))

    def _tree(self) -> Iterator[Told]:
        """A tree over the three columns whose questions sort most records in a tree over all."""
        bins = np.column_stack([_bins(source) for source in self.sources])
        _, sorted_by = self._grown(bins, range(len(self.sources)))
        telling = np.argsort(-sorted_by, kind="stable")[:3]
        places = sorted(telling[sorted_by[telling] > 0].tolist())
        if places:
            yield self._names(places), self.target.share(self._grown(bins, places)[0])

    def _grown(self, bins: Array, places: Sequence[int]) -> tuple[Floats, Array]:
        of = bins[:, list(places)]
        ordered = np.array([self.sources[place].ordered for place in places])
        return recovery.told_by_tree(of[: self.taught], of[self.taught :], of.max(axis=0) + 1, ordered, self.target)


def _joint(sources: Sequence[Known]) -> tuple[Array, int]:
    """The groups of several columns together: by their place in a table of all, unless that is large."""
    count = math.prod(source.size for source in sources)
    if count > DENSE:
        groups, sizes = compress([source.groups for source in sources])
        return groups, len(sizes)
    groups = sources[0].groups
    for source in sources[1:]:
        groups = groups * source.size + source.groups
    return groups, count


def _has_variance(values: Floats) -> bool:
    """Whether a column can be part of a weighted sum: mostly known, and not so large that its square is infinite."""
    known = np.isfinite(values)
    return bool(known.mean() > MOSTLY_KNOWN and np.abs(values[known]).max() < LARGEST)


def _bins(source: Known) -> Array:
    """The column in classes for a tree: numbers in up to 256, the last for missing ones."""
    return source.groups if source.numbers is None else binned(source.numbers, bin_edges(source.numbers))


FORMULAS = 7


def _formulas(a: Floats, b: Floats) -> tuple[Floats, ...]:
    """Formulas of two columns; with powers, logarithms and any other monotone function of each of them."""
    with np.errstate(all="ignore"):
        return a + b, a - b, a * b, a / b, b / a, np.maximum(a, b), np.minimum(a, b)


def _logarithm(values: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.log(values)
