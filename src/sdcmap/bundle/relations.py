"""How well the columns of a release that are mostly as they were tell the original of a masked one.

A relation is learned on half of the records (households stay whole) and judged on the changed values of the other half,
so combinations that are unique tell nothing. The learner knows the original: it stands for a snooper who knows how the
columns hang together (bmi = weight / height^2, a tax table), not for one who must find it out. Beside each share stands
the share that is told without these columns: by the masked column, or by the best single guess.
Time hardly grows with the records: at most 5,000 are learned from and 5,000 judged, by at most 40 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdcmap.bundle.checks import join_names
from sdcmap.bundle.recovery import Target, told_along, told_in_groups
from sdcmap.bundle.tried_relations import FEW, SCREENED, Known, Trials
from sdcmap.core import Array, Column, Floats, Microdata, Stream
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.data.cells import common_codes
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.kernels.statistics.trees import binned
from sdcmap.kernels.tables.coding import compress

NEAR = 0.05  # of the spread of a number: a prediction this near tells it, as one that is exact after rounding does
WORTH_TELLING = 0.1  # of what these leave open
LUCK = 4.0  # standard errors that the best of some hundred trials stays under by chance
LEARNED = JUDGED = 5000  # most records
MOST_SOURCES = 40  # columns that are looked at together, the most telling by themselves where there are more
CLASSES = 32  # of a number, where groups are made
MOSTLY = 0.5  # a column of which so many values are as they were is looked at as a source
ORDER = Stream.of_seed(0, "relations")  # which half a record is in; it decides nothing that is released


@dataclass(frozen=True)
class Relation:
    """Columns `by` tell `share` of `judged` changed values of column `name`; without them `otherwise` are told."""

    name: str
    by: tuple[str, ...]
    share: float
    otherwise: float
    judged: int

    @property
    def beyond(self) -> float:
        """What they tell of the values that are not told otherwise."""
        return (self.share - self.otherwise) / (1 - self.otherwise) if self.otherwise < 1 else 0.0

    @property
    def worth_telling(self) -> bool:
        """Whether they tell a tenth of these, and more than the luckiest of many trials tells by chance."""
        error = np.sqrt(max(self.otherwise * (1 - self.otherwise), 1 / self.judged) / self.judged)
        return self.beyond >= WORTH_TELLING and self.share - self.otherwise >= LUCK * error

    def gives_back(self, policy: ReleasePolicy = DEFAULT_POLICY) -> bool:
        """Whether they tell so much that the column may not be called masked."""
        return self.share >= policy.recovered_share and self.beyond >= policy.recovered_gain

    def __str__(self) -> str:
        verb = "tell" if len(self.by) > 1 else "tells"
        told = f"{self.share:.1%} of the changed values of {self.name!r}"
        return f"{_listed(self.by)} {verb} {told} ({self.otherwise:.1%} are told without)"


def _listed(names: Sequence[str]) -> str:
    quoted = [*map(repr, names)]
    return join_names(quoted if len(names) <= 4 else [*quoted[:3], f"{len(names) - 3} others"])


def relations(data: Microdata, released: Microdata, masked: Sequence[str], ids: Sequence[str] = ()) -> list[Relation]:
    """The most telling relation of each masked column, where it tells at least a tenth of what is not told otherwise.

    data : the original. released : the masked file, its rows in the order they came. masked : names of the masked
    columns. ids : columns that are renumbered at random: their values tell nothing, only who belongs together.
    """
    pair = _Pair.of(data, released, ids)
    found = [one for name in masked for one in (_best_relation(pair, name), *_told_by_group(pair, name, ids))]
    return [relation for relation in found if relation is not None and relation.worth_telling]


class _Pair(NamedTuple):
    """Original and release, row by row, and the two halves of the rows in random order."""

    data: Microdata
    released: Microdata
    rows: Array  # of the original that each released row came from
    halves: tuple[Array, Array]
    sources: tuple[str, ...]  # columns that are mostly as they were, and the weight, which may still tell its cell

    @staticmethod
    def of(data: Microdata, released: Microdata, ids: Sequence[str]) -> _Pair:
        rows = np.arange(len(released)) if released.origin is None else released.origin
        rng = ORDER.rng()
        unit = np.arange(len(released)) if data.household is None else data.codes(data.household)[rows]
        first = rng.random(int(unit.max(initial=0)) + 1)[unit] < 0.5
        order = rng.permutation(len(released))
        pair = _Pair(data, released, rows, (order[first[order]], order[~first[order]]), ())
        named = [n for n in data.names if n in released.names and n not in (*data.unreleased_columns, *ids)]
        kept = [n for n in named if n == data.weight or (len(rows) and pair.changed(n).mean() <= MOSTLY)]
        return pair._replace(sources=tuple(kept))

    def changed(self, name: str) -> Array:
        """Where the released value is not the original's."""
        if self.released.base is not None and name not in self.released.changes:
            return np.zeros(len(self.rows), dtype=bool)
        own, other = self.both(name)
        return np.asarray(own != other)

    def both(self, name: str) -> tuple[Array, Array]:
        """A column of both files in codes that are equal where the values are."""
        codes = common_codes(self.data, self.released, name).astype(np.int64)
        return codes[: len(self.data)][self.rows], codes[len(self.data) :]


def _best_relation(pair: _Pair, name: str) -> Relation | None:
    """Of what was tried for one masked column, what tells most; of two that tell the same, the one of fewer columns."""
    first, second = pair.halves
    known = ~pair.data.missing(name)[pair.rows]
    changed = pair.changed(name) & known
    taught, judged = first[known[first]][:LEARNED], second[changed[second]][:JUDGED]
    compared = len(judged) >= FEW
    if not compared:
        judged = second[known[second]][:JUDGED]
    if min(len(taught), len(judged)) < FEW:
        return None
    rows = np.concatenate([taught, judged])
    target = _target(pair.data, name, pair.rows[taught], pair.rows[judged])
    names = [source for source in pair.sources if source != name]
    if len(names) > MOST_SOURCES:
        names = _most_telling(pair, name, names, taught[:SCREENED], judged[:SCREENED])
    sources = [column for source in names if (column := _known(pair.released, source, rows)).size > 1]
    otherwise = target.share_by_chance()
    if compared and pair.released.paired and sources:
        otherwise = max(otherwise, *_shares_by_itself(pair.released, name, rows, target))
    shares = Trials(target, len(taught), sources).shares()
    return _simplest([Relation(name, by, share, otherwise, len(judged)) for by, share in shares])


def _most_telling(pair: _Pair, name: str, names: Sequence[str], taught: Array, judged: Array) -> list[str]:
    """Of many columns, those that tell most in groups of their own, on some records, in the order of the file."""
    target, rows = _target(pair.data, name, pair.rows[taught], pair.rows[judged]), np.concatenate([taught, judged])
    shares = [target.share(_told_by_groups(_known(pair.released, source, rows), target)) for source in names]
    best = np.argsort(-np.array(shares), kind="stable")[:MOST_SOURCES]
    return [names[place] for place in sorted(best.tolist())]


def _told_by_groups(source: Known, target: Target) -> Floats:
    known, asked = np.split(source.groups, [len(target.taught)])
    return told_in_groups(known, asked, source.size, target)


def _simplest(found: Sequence[Relation]) -> Relation | None:
    """Of the relations that tell as much as the best, within two standard errors, the one of fewest columns."""
    best = max((relation.share for relation in found), default=0.0)
    near = [one for one in found if one.share >= best - 2 * np.sqrt(best * (1 - best) / one.judged)]
    return max(near, key=lambda one: (one.gives_back(), -len(one.by), one.share), default=None)


def _told_by_group(pair: _Pair, name: str, ids: Sequence[str]) -> Iterator[Relation]:
    """A renumbered id still says who belongs together: a changed category is told where most of two or more others have it.

    Where a household moves as a whole nothing is told by it.
    """
    if pair.data.column(name).levels is None or not pair.released.paired:
        return
    own, other = pair.both(name)
    changed = (own != other) & ~pair.data.missing(name)[pair.rows]
    for unit in ids if changed.sum() >= FEW else ():
        group, sizes = compress([pair.released.codes(unit)])
        cell, _ = compress([np.concatenate([group, group]), np.concatenate([other, own])])
        agreeing = np.bincount(cell[: len(own)], minlength=int(cell.max()) + 1)[cell[len(own) :]]
        others = sizes[group] - 1
        told = (others >= 2) & (2 * agreeing > others) & ~pair.released.missing(unit)
        by_chance = np.bincount(own[changed]).max() / changed.sum()
        yield Relation(name, (unit,), float(told[changed].mean()), float(by_chance), int(changed.sum()))


def _target(data: Microdata, name: str, taught: Array, judged: Array) -> Target:
    numbers = numbers_of(data.column(name))
    if numbers is None or data.schema[name].kind == "nominal":
        codes = data.codes(name).astype(float)
        return Target(codes[taught], codes[judged], None)
    low, high = np.quantile(numbers[taught], [0.25, 0.75])
    spread = (high - low) / 1.349 if high > low else float(numbers[taught].std())  # the sd, if it were normal
    k = granularity(numbers[taught], data.schema[name].storage)
    return Target(numbers[taught], numbers[judged], max(NEAR * spread, 0.0 if k is None else 0.5001 * 10.0**k))


def numbers_of(column: Column) -> Floats | None:
    """The values of a numeric column, or of categories that are numbers."""
    if column.levels is None:
        return column.values
    return column.levels.cast(float).to_numpy()[column.values] if column.levels.dtype.is_numeric() else None


def _known(released: Microdata, name: str, rows: Array) -> Known:
    column = released.column(name).take(rows)
    numbers = numbers_of(column)
    codes = np.unique(column.values, return_inverse=True)[1]
    if (
        numbers is not None and int(codes.max(initial=0)) >= 2 * CLASSES
    ):  # classes of about equally many; missing is one
        codes = binned(numbers, np.unique(np.nanquantile(numbers, np.arange(1, CLASSES) / CLASSES)))
    ordered = numbers is not None or released.schema[name].kind == "ordinal"
    return Known(name, numbers, codes, int(codes.max(initial=0)) + 1, ordered)


def _shares_by_itself(released: Microdata, name: str, rows: Array, target: Target) -> Iterator[float]:
    """The shares of the changed values that the masked column tells."""
    itself = _known(released, name, rows)
    yield target.share(_told_by_groups(itself, target))
    if itself.numbers is not None and target.tolerance is not None:
        known, asked = np.split(itself.numbers, [len(target.taught)])
        yield target.share(asked)
        yield target.share(told_along(known, asked, target))
