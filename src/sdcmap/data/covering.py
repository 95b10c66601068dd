"""Whom a released record may be of, where labels are of several depths: somebody aged 37 fits "37" and "(35, 40]"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.data.cells import common_codes
from sdcmap.data.label_layers import Layers, distinct, layered, read_column, spelled_out, value_texts
from sdcmap.data.microdata import Microdata, smallest_unsigned
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress

ANY = -1


class Fitting(NamedTuple):
    """People and records in columns of codes: they fit where these are equal, or where the record has ANY."""

    people: Array
    records: Array

    def also_equal(self, codes: Array) -> Fitting:
        """The same with one column more, of both files one below the other."""
        ours, theirs = np.split(codes[:, np.newaxis], [len(self.people)])
        return Fitting(np.hstack([self.people, ours]), np.hstack([self.records, theirs]))

    def fits(self, person: Array, record: Array) -> Array:
        """Whether these people fit these records, one by one."""
        theirs = self.records[record]
        return np.asarray(((self.people[person] == theirs) | (theirs == ANY)).all(axis=1))

    def records_of_people(self) -> Array:
        """How many records each person fits."""
        count = np.zeros(len(self.people), dtype=np.int64)
        for _, person, record in self._by_depth():
            count += np.bincount(record, minlength=int(person.max(initial=0)) + 1)[person]
        return count

    def people_of_records(self) -> Array:
        """How many people fit each record."""
        count = np.zeros(len(self.records), dtype=np.int64)
        for rows, person, record in self._by_depth():
            count[rows] = np.bincount(person, minlength=int(record.max(initial=0)) + 1)[record]
        return count

    def _by_depth(self) -> Iterator[tuple[Array, Array, Array]]:
        """Records whose labels are of the same depths: which they are, and codes of all people and of these records that
        are equal where they fit."""
        depths, depth = np.unique(self.records == ANY, axis=0, return_inverse=True)
        for k, hidden in enumerate(depths):
            rows = np.flatnonzero(depth.ravel() == k)
            both = np.vstack([self.people, self.records[rows]])
            cell = compress([both[:, j] for j in np.flatnonzero(~hidden)])[0]
            yield rows, cell[: len(self.people)], cell[len(self.people) :]


def mixed_names(known: Microdata, released: Microdata, names: Sequence[str]) -> tuple[str, ...]:
    """The columns whose labels are of several depths; known: in the categories of the release, where each value has one."""
    read = {name: read_column(known, released, name) for name in names}
    return tuple(name for name, column in read.items() if column is not None and column.mixed)


def check_one_depth(known: Microdata, released: Microdata, names: Sequence[str]) -> None:
    """Undefined where labels are of several depths."""
    if mixed := mixed_names(known, released, names):
        raise Undefined(f"{mixed[0]!r} has labels of several depths, so a value has no one category in the release.")


def layers_of(known: Microdata, released: Microdata, name: str) -> Layers | None:
    """One column of labels of several depths in layers, however many; None where labels cannot be read."""
    read = read_column(known, released, name)
    return None if read is None else layered(read, read.matches.shape[1] + 1)


def fitting(known: Microdata, released: Microdata, names: Sequence[str]) -> Fitting | None:
    """Both files in codes that tell who fits; None where no column has labels of several depths. Missing is a category of
    its own."""
    mixed = mixed_names(known, released, names)
    if not mixed:
        return None
    layers = [layers_of(known, released, name) if name in mixed else None for name in names]
    columns = [layer or _equal(known, released, name) for layer, name in zip(layers, names, strict=True)]
    return Fitting(*(np.column_stack(side) for side in zip(*columns, strict=True)))


def _equal(known: Microdata, released: Microdata, name: str) -> Layers:
    return Layers(*np.split(common_codes(known, released, name).astype(np.int64), [len(known)]))


def explained(known: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """The masked file with labels that only the note of the method explains spelled out, in columns where every label that
    can be read is true; where values were changed too, who has a label does not tell what it means."""
    return spelled_out(known, masked, [name for name in names if masked.paired and _true(known, masked, name)])


def _true(known: Microdata, masked: Microdata, name: str) -> bool:
    """Whether the labels that can be read hold of everybody, and there are some."""
    read = read_column(known, masked, name)
    if read is None:
        return False
    came = read.value if masked.origin is None else read.value[masked.origin]
    rows = np.flatnonzero((came >= 0) & (read.label >= 0))
    rows = rows[~read.unread[read.label[rows]]]
    return len(rows) > 0 and bool(read.matches[came[rows], read.label[rows]].all())


def in_texts(known: Microdata, released: Microdata, names: Sequence[str]) -> Microdata:
    """The known file with numbers written as labels write them, where the release has labels."""
    numbers = [n for n in names if known.column(n).levels is None and released.column(n).levels is not None]
    columns, levels = {}, {}
    for name in numbers:
        values, place = distinct(known.column(name))
        columns[name] = np.where(place < 0, len(values), place).astype(smallest_unsigned(len(values) + 1))
        levels[name] = pl.Series([*value_texts(values), None], dtype=pl.String)
    return known.change(None, columns, levels) if numbers else known
