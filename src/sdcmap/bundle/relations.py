"""How well the mostly unchanged columns of a release predict the original values of a masked column.

A relation is learned on half of the records (people and households stay whole) and tested on the changed values of the
other half, so unique combinations predict nothing. The learner knows the original. It stands for an attacker who knows
how the columns depend on each other (bmi = weight / height^2, a tax table). Each share is compared with a baseline: what
the masked column itself, or the best single guess, predicts.

The time hardly grows with the records: at most 5,000 are used for training and 5,000 for testing, with at most 40 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdcmap.bundle.relation_search import MIN_TEST_VALUES, SCREENING_RECORDS, RelationSearch, SourceColumn
from sdcmap.bundle.value_predictors import Target, predict_along, predict_by_group
from sdcmap.core import Array, Column, Floats, Microdata, Stream
from sdcmap.core.formatting import list_names
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.data.cells import common_codes
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.kernels.statistics.trees import assign_bins
from sdcmap.kernels.tables.coding import compress

CLOSE_SHARE_OF_SPREAD = 0.05  # a prediction this close, in units of the spread of a number, counts as correct
MIN_REPORTED_GAIN = 0.1  # share of the values not predicted by the baseline that a relation must predict to be reported
CHANCE_STANDARD_ERRORS = 4.0  # the best of some hundred trials rarely exceeds the baseline by more, by chance
MAX_TRAINING_RECORDS = MAX_TEST_RECORDS = 5000  # more make the shares hardly more precise
MAX_SOURCES = 40  # columns that are tried; where there are more, those that predict best by themselves
CLASSES_PER_NUMBER = 32  # of a number with many values, where records are grouped
MAX_CHANGED_SHARE = 0.5  # columns with more changed values are not tried as a source
SPLIT_STREAM = Stream.of_seed(0, "relations")  # which half a record is in; no released value depends on it


@dataclass(frozen=True)
class Relation:
    """Columns that predict a share of the changed values of a masked column."""

    name: str  # the masked column
    by: tuple[str, ...]  # the columns that predict it
    share: float  # of the tested values that they predict
    baseline: float  # the share that is predicted without them
    tested: int  # values

    @property
    def gain(self) -> float:
        """The share they predict of the values that the baseline does not predict."""
        return (self.share - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0

    @property
    def is_reportable(self) -> bool:
        """Whether the gain is large enough to matter, and larger than the luckiest of many trials reaches by chance."""
        error = np.sqrt(max(self.baseline * (1 - self.baseline), 1 / self.tested) / self.tested)
        return self.gain >= MIN_REPORTED_GAIN and self.share - self.baseline >= CHANCE_STANDARD_ERRORS * error

    def is_recovered(self, policy: ReleasePolicy = DEFAULT_POLICY) -> bool:
        """Return whether they predict so much that the column is not effectively masked."""
        return self.share >= policy.recovered_share and self.gain >= policy.recovered_gain

    def __str__(self) -> str:
        verb = "predict" if len(self.by) > 1 else "predicts"
        values = f"{100 * self.share:.1f} % of the changed values of {self.name!r}"
        return f"{_quote_names(self.by)} {verb} {values} ({100 * self.baseline:.1f} % without this relation)"


def _quote_names(names: Sequence[str]) -> str:
    quoted = [*map(repr, names)]
    return list_names(quoted if len(names) <= 4 else [*quoted[:3], f"{len(names) - 3} others"])


def relations(data: Microdata, released: Microdata, masked: Sequence[str], ids: Sequence[str] = ()) -> list[Relation]:
    """Return the best relation for each masked column, where it is large enough to report.

    data : the original. released : the masked file in the row order of the original. masked : names of masked columns.
    ids : columns that are renumbered at random; they say only which records belong together.
    """
    pair = _Pair.of(data, released, ids)
    candidates = [one for name in masked for one in (_best_relation(pair, name), *_relations_by_id(pair, name, ids))]
    return [relation for relation in candidates if relation is not None and relation.is_reportable]


class _Pair(NamedTuple):
    """Original and release, row by row, split into a training and a test half."""

    data: Microdata
    released: Microdata
    rows: Array  # of the original, from which each released row came
    halves: tuple[Array, Array]  # rows in random order
    sources: tuple[str, ...]  # mostly unchanged columns, and the weight, which may still reveal its cell

    @staticmethod
    def of(data: Microdata, released: Microdata, ids: Sequence[str]) -> _Pair:
        rows = np.arange(len(released)) if released.origin is None else released.origin
        rng = SPLIT_STREAM.rng()
        unit = data.units[rows]
        first = rng.random(int(unit.max(initial=0)) + 1)[unit] < 0.5
        order = rng.permutation(len(released))
        pair = _Pair(data, released, rows, (order[first[order]], order[~first[order]]), ())
        named = [n for n in data.names if n in released.names and n not in (*data.unreleased_columns, *ids)]
        sources = [
            n for n in named if n == data.weight or (len(rows) and pair.is_changed(n).mean() <= MAX_CHANGED_SHARE)
        ]
        return pair._replace(sources=tuple(sources))

    def is_changed(self, name: str) -> Array:
        """Return where the released value is not that of the original."""
        if self.released.base is not None and name not in self.released.changes:
            return np.zeros(len(self.rows), dtype=bool)
        own, other = self.both(name)
        return np.asarray(own != other)

    def both(self, name: str) -> tuple[Array, Array]:
        """Return a column of both files in common codes: equal values have equal codes."""
        codes = common_codes(self.data, self.released, name).astype(np.int64)
        return codes[: len(self.data)][self.rows], codes[len(self.data) :]


def _best_relation(pair: _Pair, name: str) -> Relation | None:
    """Return the best relation for one masked column; of two equally good ones, that with fewer columns."""
    first, second = pair.halves
    known = ~pair.data.missing(name)[pair.rows]
    changed = pair.is_changed(name) & known
    training, tested = first[known[first]][:MAX_TRAINING_RECORDS], second[changed[second]][:MAX_TEST_RECORDS]
    # With too few changed values to test, test all of them, as if the column were not released.
    has_enough_changes = len(tested) >= MIN_TEST_VALUES
    if not has_enough_changes:
        tested = second[known[second]][:MAX_TEST_RECORDS]
    if min(len(training), len(tested)) < MIN_TEST_VALUES:
        return None
    rows = np.concatenate([training, tested])
    target = _target(pair.data, name, pair.rows[training], pair.rows[tested])
    names = [source for source in pair.sources if source != name]
    if len(names) > MAX_SOURCES:
        names = _most_predictive(pair, name, names, training[:SCREENING_RECORDS], tested[:SCREENING_RECORDS])
    sources = [column for source in names if (column := _source_column(pair.released, source, rows)).size > 1]
    baseline = target.share_by_chance()
    # The baseline: the best single guess, or what the masked column itself predicts.
    if has_enough_changes and pair.released.paired and sources:
        baseline = max(baseline, *_shares_by_itself(pair.released, name, rows, target))
    shares = RelationSearch(target, len(training), sources).shares()
    return _simplest([Relation(name, by, share, baseline, len(tested)) for by, share in shares])


def _most_predictive(pair: _Pair, name: str, names: Sequence[str], training: Array, tested: Array) -> list[str]:
    """Return the columns that predict best by themselves, on some records, in the order of the file."""
    target, rows = _target(pair.data, name, pair.rows[training], pair.rows[tested]), np.concatenate([training, tested])
    shares = [
        target.share(_predict_from_groups(_source_column(pair.released, source, rows), target)) for source in names
    ]
    best = np.argsort(-np.array(shares), kind="stable")[:MAX_SOURCES]
    return [names[index] for index in sorted(best.tolist())]


def _predict_from_groups(source: SourceColumn, target: Target) -> Floats:
    known, queries = np.split(source.groups, [len(target.training)])
    return predict_by_group(known, queries, source.size, target)


def _simplest(candidates: Sequence[Relation]) -> Relation | None:
    """Return, of the relations within two standard errors of the best, the one with fewest columns."""
    best = max((relation.share for relation in candidates), default=0.0)
    near = [one for one in candidates if one.share >= best - 2 * np.sqrt(best * (1 - best) / one.tested)]
    return max(near, key=lambda one: (one.is_recovered(), -len(one.by), one.share), default=None)


def _relations_by_id(pair: _Pair, name: str, ids: Sequence[str]) -> Iterator[Relation]:
    """Yield how well a renumbered id predicts a category: by the majority of two or more others with the same id.

    Where households change as a whole, the majority has the same changed value and predicts nothing.
    """
    if pair.data.column(name).levels is None or not pair.released.paired:
        return
    own, other = pair.both(name)
    changed = (own != other) & ~pair.data.missing(name)[pair.rows]
    for unit in ids if changed.sum() >= MIN_TEST_VALUES else ():
        group, sizes = compress([pair.released.codes(unit)])
        cell, _ = compress([np.concatenate([group, group]), np.concatenate([other, own])])
        # Count how many others with the same id were released with the original value of each record.
        agreeing = np.bincount(cell[: len(own)], minlength=int(cell.max()) + 1)[cell[len(own) :]]
        others = sizes[group] - 1
        is_predicted = (others >= 2) & (2 * agreeing > others) & ~pair.released.missing(unit)
        by_chance = np.bincount(own[changed]).max() / changed.sum()
        yield Relation(name, (unit,), float(is_predicted[changed].mean()), float(by_chance), int(changed.sum()))


def _target(data: Microdata, name: str, training: Array, tested: Array) -> Target:
    numbers = numbers_of(data.column(name))
    if numbers is None or data.schema[name].kind == "nominal":
        codes = data.codes(name).astype(float)
        return Target(codes[training], codes[tested], None)
    low, high = np.quantile(numbers[training], [0.25, 0.75])
    spread = (
        (high - low) / 1.349 if high > low else float(numbers[training].std())
    )  # the standard deviation of a normal distribution
    k = granularity(numbers[training], data.schema[name].storage)
    return Target(
        numbers[training], numbers[tested], max(CLOSE_SHARE_OF_SPREAD * spread, 0.0 if k is None else 0.5001 * 10.0**k)
    )


def numbers_of(column: Column) -> Floats | None:
    """Return the values of a numeric column, or of categories that are numbers; else None."""
    if column.levels is None:
        return column.values
    return column.levels.cast(float).to_numpy()[column.values] if column.levels.dtype.is_numeric() else None


def _source_column(released: Microdata, name: str, rows: Array) -> SourceColumn:
    column = released.column(name).take(rows)
    numbers = numbers_of(column)
    codes = np.unique(column.values, return_inverse=True)[1]
    if numbers is not None and int(codes.max(initial=0)) >= 2 * CLASSES_PER_NUMBER:
        # Classes with about equally many records; missing values are one class.
        codes = assign_bins(
            numbers, np.unique(np.nanquantile(numbers, np.arange(1, CLASSES_PER_NUMBER) / CLASSES_PER_NUMBER))
        )
    ordered = numbers is not None or released.schema[name].kind == "ordinal"
    return SourceColumn(name, numbers, codes, int(codes.max(initial=0)) + 1, ordered)


def _shares_by_itself(released: Microdata, name: str, rows: Array, target: Target) -> Iterator[float]:
    """Yield the shares of the changed values that the masked column itself predicts."""
    itself = _source_column(released, name, rows)
    yield target.share(_predict_from_groups(itself, target))
    if itself.numbers is not None and target.tolerance is not None:
        known, queries = np.split(itself.numbers, [len(target.training)])
        yield target.share(queries)
        yield target.share(predict_along(known, queries, target))
