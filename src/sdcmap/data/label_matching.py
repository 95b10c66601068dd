"""Match people to released records whose labels differ in depth: age 37 can match "37", "(35, 40]" and "*"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.data.cells import common_codes
from sdcmap.data.label_layers import (
    Layers,
    distinct_values,
    format_values,
    read_labels,
    separate_layers,
    spell_out_labels,
)
from sdcmap.data.microdata import Microdata, smallest_unsigned
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress

ANY = -1  # code of a released record in the layers that do not contain its label


class PossibleMatches(NamedTuple):
    """People and released records as columns of codes.

    A person can match a record if in every column their codes are equal, or the record's code is ANY.
    """

    people: Array
    records: Array

    def also_equal(self, codes: Array) -> PossibleMatches:
        """Return the matches with one more column; `codes` holds those of the people, then those of the records."""
        ours, theirs = np.split(codes[:, np.newaxis], [len(self.people)])
        return PossibleMatches(np.hstack([self.people, ours]), np.hstack([self.records, theirs]))

    def can_match(self, person: Array, record: Array) -> Array:
        """Return, pair by pair, whether these people can match these records."""
        theirs = self.records[record]
        return np.asarray(((self.people[person] == theirs) | (theirs == ANY)).all(axis=1))

    def records_of_people(self) -> Array:
        """Return the number of records that each person can match."""
        count = np.zeros(len(self.people), dtype=np.int64)
        for _, person, record in self._by_depth():
            count += np.bincount(record, minlength=int(person.max(initial=0)) + 1)[person]
        return count

    def people_of_records(self) -> Array:
        """Return the number of people who can match each record."""
        count = np.zeros(len(self.records), dtype=np.int64)
        for rows, person, record in self._by_depth():
            count[rows] = np.bincount(person, minlength=int(record.max(initial=0)) + 1)[record]
        return count

    def _by_depth(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the records of each pattern of depths, with codes of all people and of these records.

        Within a pattern, a person can match a record exactly if their codes are equal.
        """
        patterns, pattern = np.unique(self.records == ANY, axis=0, return_inverse=True)
        for k, is_any in enumerate(patterns):
            rows = np.flatnonzero(pattern.ravel() == k)
            both = np.vstack([self.people, self.records[rows]])
            # Columns where the record has ANY exclude nobody, so they do not enter the cell.
            cell = compress([both[:, j] for j in np.flatnonzero(~is_any)])[0]
            yield rows, cell[: len(self.people)], cell[len(self.people) :]


def mixed_depth_names(known: Microdata, released: Microdata, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose labels have several depths, so that a value can lie behind more than one label."""
    read = {name: read_labels(known, released, name) for name in names}
    return tuple(name for name, column in read.items() if column is not None and column.is_mixed)


def check_one_depth(known: Microdata, released: Microdata, names: Sequence[str]) -> None:
    """Raise Undefined if a column has labels of several depths."""
    if mixed := mixed_depth_names(known, released, names):
        raise Undefined(
            f"{mixed[0]!r} has labels of several depths in the release, so a value has more than one category."
        )


def layers_of(known: Microdata, released: Microdata, name: str) -> Layers | None:
    """Return the layers of one column, without a limit on their number; None if the labels cannot be read."""
    read = read_labels(known, released, name)
    return None if read is None else separate_layers(read, read.matches.shape[1] + 1)


def possible_matches(known: Microdata, released: Microdata, names: Sequence[str]) -> PossibleMatches | None:
    """Return who can match which record; None if no column has labels of several depths.

    Missing is a category of its own.
    """
    mixed = mixed_depth_names(known, released, names)
    if not mixed:
        return None
    layers = [layers_of(known, released, name) if name in mixed else None for name in names]
    columns = [layer or _equal(known, released, name) for layer, name in zip(layers, names, strict=True)]
    return PossibleMatches(*(np.column_stack(side) for side in zip(*columns, strict=True)))


def _equal(known: Microdata, released: Microdata, name: str) -> Layers:
    return Layers(*np.split(common_codes(known, released, name).astype(np.int64), [len(known)]))


def spell_out_true_labels(known: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """Return the masked file with opaque labels such as "other" replaced by the list of values behind them.

    Only columns in which every readable label is true are spelled out. If values were also changed, the records that
    carry a label do not show what the label means.
    """
    return spell_out_labels(
        known, masked, [name for name in names if masked.paired and _has_true_labels(known, masked, name)]
    )


def _has_true_labels(known: Microdata, masked: Microdata, name: str) -> bool:
    """Return whether the column has readable labels, and every one is true for its record."""
    read = read_labels(known, masked, name)
    if read is None:
        return False
    original = read.value if masked.origin is None else read.value[masked.origin]
    rows = np.flatnonzero((original >= 0) & (read.label >= 0))
    rows = rows[~read.unreadable[read.label[rows]]]
    return len(rows) > 0 and bool(read.matches[original[rows], read.label[rows]].all())


def numbers_as_labels(known: Microdata, released: Microdata, names: Sequence[str]) -> Microdata:
    """Return the known file with numbers formatted as labels, in the columns where the release has labels."""
    numbers = [n for n in names if known.column(n).levels is None and released.column(n).levels is not None]
    columns, levels = {}, {}
    for name in numbers:
        values, index = distinct_values(known.column(name))
        columns[name] = np.where(index < 0, len(values), index).astype(smallest_unsigned(len(values) + 1))
        levels[name] = pl.Series([*format_values(values), None], dtype=pl.String)
    return known.change(None, columns, levels) if numbers else known
