"""The attacker's own file for the confidentiality plot: its units, and which of them are records of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.core import Array, Microdata, SchemaError
from sdcmap.data.readable import Readable
from sdcmap.files.alignment import read_row_numbers
from sdcmap.files.reader import read


@dataclass(frozen=True, eq=False)
class Archive:
    """The units of an external file, and the unit of each record of the original.

    units : the file, with the compared columns.
    unit : the row of `units` that belongs to each row of the original, -1 where there is none; None where nobody stated
        which unit is which record.
    """

    units: Microdata
    unit: Array | None = None

    def unit_of(self, rows: Array) -> Array:
        """Return the units of these rows of the original; -1 where there is none, or it is not known."""
        return np.full(len(rows), -1) if self.unit is None else self.unit[rows]


def read_archive_units(
    archive: Readable, original: Microdata, names: Sequence[str], *, row: str = "", by: str = ""
) -> Archive:
    """Read the columns `names` of an archive with the kinds of the original, and match its units with the records.

    row : the archive's column with the row number in the original, from 0 (missing: a unit that is not in it).
    by : an id column of both files, instead of `row`.
    """
    whole = archive if isinstance(archive, Microdata) else read(archive)
    if lacking := [name for name in (*names, *([row] if row else [])) if name not in whole.names]:
        raise SchemaError(f"the archive has no column {', '.join(map(repr, lacking))}.")
    kinds = {name: original.schema[name].kind for name in names}
    units = read(whole.only(names), kinds=kinds)
    if len(units) == 0:
        raise SchemaError("the archive has no records.")
    if row:
        return Archive(units, _units_by_row(whole, row, len(original)))
    return Archive(units, _units_by_id(whole, original, by) if by else None)


def _units_by_row(archive: Microdata, row: str, rows: int) -> Array:
    """Return the unit of each row of the original by the archive's column of row numbers."""
    numbers = read_row_numbers(archive, row, rows, "the archive")
    known = np.flatnonzero(numbers >= 0)
    unit = np.full(rows, -1)
    unit[numbers[known]] = known
    return unit


def _units_by_id(archive: Microdata, original: Microdata, by: str) -> Array:
    """Return the unit of each row of the original by an id column of both files."""
    for name, file in (("archive", archive), ("original", original)):
        if by not in file.names:
            raise SchemaError(f"the {name} has no column {by!r} to match records by.")
    ids, ours = ([str(value) for value in file[by].tolist()] for file in (archive, original))
    index = {value: position for position, value in enumerate(ids)}
    if len(index) < len(ids):
        raise SchemaError(f"{by!r} of the archive names a unit twice, so units and records cannot be matched.")
    return np.array([index.get(value, -1) for value in ours], dtype=np.int64)
