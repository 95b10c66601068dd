"""Search for relations that predict one column from others, with the share of its values that each predicts.

- each column alone, and sums, differences, products, ratios, maxima and minima of two numbers, with a look-up of the
  nearest records; this also finds powers, logarithms, ranks, and piecewise or noisy relations of them;
- weighted sums and products of powers of all numbers, fitted to the three quarters of the records that fit best;
- the best of these within each category of another column;
- groups of records with the same values of one, two or three columns, and a tree on the three most predictive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.bundle import value_predictors
from sdcmap.bundle.value_predictors import MAX_DENSE_CELLS, Target, predict_along, predict_by_group
from sdcmap.kernels.arrays import Array, Floats
from sdcmap.kernels.statistics.trees import assign_bins, bin_edges
from sdcmap.kernels.tables.coding import compress

MIN_TEST_VALUES = 50  # a share of fewer values says little
MAX_COLUMN_SETS = 150  # pairs and triples that are tried, extensions of the best smaller sets first
MAX_SPLIT_CATEGORIES = 12  # of a column within whose categories a relation is fitted separately
SCREENING_RECORDS = 500  # on which formulas of two columns are compared by rank correlation
MAX_FORMULAS_TRIED = 5  # of all formulas, those with the best rank correlation
MIN_FINITE_SHARE = 0.9  # of the values of a column that may enter a weighted sum
MAX_MAGNITUDE = 1e100  # of the values of such a column; larger squares overflow
MIN_RELATIVE_COEFFICIENT = 0.02  # of the largest; a column with a smaller coefficient is left out of a weighted sum

Finding = tuple[tuple[str, ...], float]  # columns, and the share of values that they predict
Feature = tuple[tuple[str, ...], Floats]  # columns, and a number computed from them for each record


class SourceColumn(NamedTuple):
    """A released column that may predict another: its numbers (None: it has none), and its `size` groups 0, 1, ..."""

    name: str
    numbers: Floats | None
    groups: Array
    size: int
    ordered: bool


class RelationSearch(NamedTuple):
    """The search for relations of one target; the rows of `sources` are the training records, then the test records."""

    target: Target
    training: int
    sources: Sequence[SourceColumn]

    def shares(self) -> Iterator[Finding]:
        """Yield every set of columns that was tried, and the share that it predicts."""
        if not self.sources:
            return
        along = [(by, values, self._along(values)) for by, values in self._features()]
        yield from ((by, share) for by, _, share in along)
        # The two best numbers are tried again within the categories of every other column.
        for by, values, _ in sorted(along, key=lambda feature: -feature[2])[:2]:
            yield from self._within_categories(by, values)
        yield from self._sets()
        yield from self._tree()

    def _along(self, values: Floats) -> float:
        known, queries = np.split(values, [self.training])
        return self.target.share(predict_along(known, queries, self.target))

    # ---- numbers ----------------------------------------------------------------------------------------------
    def _features(self) -> Iterator[Feature]:
        """Yield numbers that may predict the target, with the columns that they are computed from."""
        numeric = {source.name: source.numbers for source in self.sources if source.numbers is not None}
        yield from (((name,), numbers) for name, numbers in numeric.items())
        yield from self._formulas(numeric)
        yield from self._fit_weighted_sum(numeric, np.copy)
        yield from self._fit_weighted_sum(numeric, _logarithm)

    def _formulas(self, numeric: Mapping[str, Floats]) -> Iterator[Feature]:
        """Yield the formulas of two columns with the best rank correlation with the target."""
        pairs = list(combinations(numeric, 2))
        if not pairs:
            return
        some = slice(0, min(self.training, SCREENING_RECORDS))
        features = np.column_stack([f for a, b in pairs for f in _formulas(numeric[a][some], numeric[b][some])])
        agreement = value_predictors.rank_agreement(features, self.target.training[some])
        for index in np.argsort(-agreement, kind="stable")[:MAX_FORMULAS_TRIED].tolist():
            a, b = pairs[index // FORMULAS_PER_PAIR]
            yield (a, b), _formulas(numeric[a], numeric[b])[index % FORMULAS_PER_PAIR]

    def _fit_weighted_sum(self, numeric: Mapping[str, Floats], scale: Callable[[Floats], Floats]) -> Iterator[Feature]:
        """Yield a weighted sum of numbers, or of their logarithms, fitted to all of them and then to the relevant ones."""
        y = scale(self.target.training)
        if self.target.tolerance is None or not _has_variance(y):
            return
        scaled = {name: scale(numbers) for name, numbers in numeric.items()}
        columns = {name: x for name, x in scaled.items() if _has_variance(x[: self.training])}
        if (weighted := self._fit_trimmed(columns, y)) is not None:
            # Fit again with the relevant columns only: a sum of fewer columns is easier to explain.
            weights = np.abs(weighted[1])
            used = {
                n: x
                for (n, x), weight in zip(columns.items(), weights, strict=True)
                if weight > MIN_RELATIVE_COEFFICIENT * weights.max()
            }
            if (again := self._fit_trimmed(used, y)) is not None:
                yield tuple(used), again[0]

    def _fit_trimmed(self, columns: Mapping[str, Floats], y: Floats) -> tuple[Floats, Floats] | None:
        """Return the sum for every record, and the coefficient of each standardized column; None: too few records."""
        if len(columns) < 2:
            return None
        x = np.column_stack([*columns.values()])
        complete = np.flatnonzero(np.isfinite(x[: self.training]).all(axis=1) & np.isfinite(y))
        if len(complete) < max(MIN_TEST_VALUES, 3 * len(columns)):
            return None
        spread = x[complete].std(axis=0)
        x = (x - x[complete].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        slopes = value_predictors.fit_trimmed_slopes(x[complete], y[complete] - y[complete].mean())
        with np.errstate(invalid="ignore"):  # an incomplete record has no sum
            return x @ slopes, slopes

    def _within_categories(self, by: tuple[str, ...], values: Floats) -> Iterator[Finding]:
        """Yield the same relation, fitted separately in each category of a further column."""
        finite = np.isfinite(values)
        if not finite.any():
            return
        # Shifting each category by 2 keeps the categories apart on one number line.
        low, high = values[finite].min(), values[finite].max()
        scaled = (values - low) / (high - low if high > low else 1.0)
        for source in self.sources:
            if source.size <= MAX_SPLIT_CATEGORIES and source.name not in by:
                yield (*by, source.name), self._along(2.0 * source.groups + scaled)

    # ---- groups -----------------------------------------------------------------------------------------------
    def _sets(self) -> Iterator[Finding]:
        """Yield groups of records with equal values of one to three columns; larger sets extend the best smaller ones."""
        tried: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for size in (1, 2, 3):
            tried.sort(key=lambda finding: -finding[1])
            sets = (tuple(sorted({*indices, more})) for indices, _ in tried for more in range(len(self.sources)))
            larger = [indices for indices in dict.fromkeys(sets) if len(indices) == size]
            tried = [
                (indices, self._in_groups(indices)) for indices in larger[: max(MAX_COLUMN_SETS, len(self.sources))]
            ]
            yield from ((self._names(indices), share) for indices, share in tried)

    def _names(self, indices: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.sources[index].name for index in indices)

    def _in_groups(self, indices: tuple[int, ...]) -> float:
        groups, count = _joint_groups([self.sources[index] for index in indices])
        known, queries = np.split(groups, [self.training])
        return self.target.share(predict_by_group(known, queries, count, self.target))

    def _tree(self) -> Iterator[Finding]:
        """Yield a tree over the three columns whose splits divide most records in a tree over all columns."""
        bins = np.column_stack([_bins(source) for source in self.sources])
        _, divided = self._grow_tree(bins, range(len(self.sources)))
        best = np.argsort(-divided, kind="stable")[:3]
        indices = sorted(best[divided[best] > 0].tolist())
        if indices:
            yield self._names(indices), self.target.share(self._grow_tree(bins, indices)[0])

    def _grow_tree(self, bins: Array, indices: Sequence[int]) -> tuple[Floats, Array]:
        of = bins[:, list(indices)]
        ordered = np.array([self.sources[index].ordered for index in indices])
        return value_predictors.predict_by_tree(
            of[: self.training], of[self.training :], of.max(axis=0) + 1, ordered, self.target
        )


def _joint_groups(sources: Sequence[SourceColumn]) -> tuple[Array, int]:
    """Return the groups of several columns together, and their number: cells of the full table, unless that is large."""
    count = math.prod(source.size for source in sources)
    if count > MAX_DENSE_CELLS:
        groups, sizes = compress([source.groups for source in sources])
        return groups, len(sizes)
    groups = sources[0].groups
    for source in sources[1:]:
        groups = groups * source.size + source.groups
    return groups, count


def _has_variance(values: Floats) -> bool:
    """Return whether a column can enter a weighted sum: mostly finite, and not so large that squares overflow."""
    finite = np.isfinite(values)
    return bool(finite.mean() > MIN_FINITE_SHARE and np.abs(values[finite]).max() < MAX_MAGNITUDE)


def _bins(source: SourceColumn) -> Array:
    """Return the column in classes for a tree: numbers in up to 256 classes, the last for missing values."""
    return source.groups if source.numbers is None else assign_bins(source.numbers, bin_edges(source.numbers))


FORMULAS_PER_PAIR = 7


def _formulas(a: Floats, b: Floats) -> tuple[Floats, ...]:
    """Return formulas of two columns; each also stands for its monotone functions, since only ranks are compared."""
    with np.errstate(all="ignore"):
        return a + b, a - b, a * b, a / b, b / a, np.maximum(a, b), np.minimum(a, b)


def _logarithm(values: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.log(values)
