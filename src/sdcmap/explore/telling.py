"""Which columns tell the most: sets of up to three that leave records alone, and every pair beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sdcmap.data.microdata import Column, Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.identifying_columns import alone_on_pairs, most_telling

MOST_WORK = 250_000_000  # sets of columns times records that are looked at for the telling ones
SET_COST = 20_000  # records that a set costs beside those that it has
MOST_PAIRED = 30  # columns whose pairs are laid beside each other


@dataclass(frozen=True)
class Telling:
    """Which sets of up to three columns leave the most records alone.

    sets : (columns, records alone), the best of one, of two and of three columns. columns : how many were looked at, in
        all sets of them; of : how many are released.
    """

    sets: tuple[tuple[tuple[str, ...], int], ...]
    columns: int
    of: int

    @property
    def words(self) -> str:
        if self.columns == self.of:
            return f"exact, over all sets of up to three of the {self.of} released columns"
        return (
            f"exact, over all sets of up to three of the {self.columns} columns with most values; sets with one of the "
            f"other {self.of - self.columns} released columns were not looked at"
        )


UNTOLD = Telling((), 0, 0)  # nothing was looked at


@dataclass(frozen=True)
class TellingPairs:
    """Records alone on each pair of columns; on the diagonal, on one column.

    names : the columns, at most MOST_PAIRED, those with most values where there are more. of : how many are released.
    """

    names: tuple[str, ...]
    alone: Array
    of: int
    columns: tuple[Column, ...] = field(repr=False)  # that were counted

    @property
    def words(self) -> str:
        few = f"the {len(self.names)} of {self.of} released columns with most values"
        return few if len(self.names) < self.of else f"all {self.of} released columns"


def telling_sets(data: Microdata, names: Sequence[str], most: int = 3) -> Telling:
    """Of all sets of one, two and three of the columns, those that leave most records alone; counts only.

    Where the sets are too many for the records, only the columns with most values are looked at, and said so.
    """
    ranked = sorted(names, key=lambda name: -data.level_count(name))
    width = len(ranked)
    while width > 3 and (width**3 / 6 + width**2 / 2) * (SET_COST + len(data)) > MOST_WORK:
        width -= 1
    chosen = [name for name in names if name in set(ranked[:width])]
    told = most_telling([data.codes(name) for name in chosen], most) if chosen else []
    sets = tuple((tuple(chosen[place] for place in places), alone) for places, alone in told if alone)
    return Telling(sets, len(chosen), len(names))


def telling_pairs(data: Microdata, names: Sequence[str], before: TellingPairs | None = None) -> TellingPairs:
    """Records alone on every pair of the columns; counts only. What `before` counted of the same columns is taken over."""
    ranked = set(sorted(names, key=lambda name: -data.level_count(name))[:MOST_PAIRED])
    chosen = tuple(name for name in names if name in ranked)
    columns = tuple(data.column(name) for name in chosen)
    known = np.full((len(chosen), len(chosen)), -1, dtype=np.int64)
    if before is not None:
        place = {id(column): k for k, column in enumerate(before.columns)}
        there = [k for k, column in enumerate(columns) if id(column) in place]
        then = [place[id(columns[k])] for k in there]
        known[np.ix_(there, there)] = before.alone[np.ix_(then, then)]
    return TellingPairs(chosen, alone_on_pairs([data.codes(name) for name in chosen], known), len(names), columns)
