"""A masked file from any tool laid beside its original: columns by name, rows by order or by an id."""

from __future__ import annotations

import numpy as np

from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.readable import Readable
from sdcmap.errors import SchemaError
from sdcmap.files.reading import read
from sdcmap.kernels.arrays import Array


def align(original: Microdata, masked: Readable, *, by: str | None = None) -> Microdata:
    """A masked file as changes of the original: columns matched by name, rows by order or by the id column `by`."""
    if isinstance(masked, Microdata) and (masked.base is original or masked.origin is not None):
        return masked
    kinds = {v.name: v.kind for v in original.schema.variables}
    if not isinstance(masked, Microdata):
        raw = read(masked)
        masked = read(raw, kinds={name: kind for name, kind in kinds.items() if name in raw.names})
    if by is not None:
        masked = masked.take(_matching_rows(original[by], masked[by], by))
    if len(masked) != len(original):
        raise SchemaError(
            f"the masked file has {len(masked)} rows and the original {len(original)}: "
            "give files of the same rows, or an id column that matches them."
        )
    columns = {name: masked.column(name) for name in original.names if name in masked.names and name != by}
    if not columns:
        raise SchemaError("the two files have no column in common.")
    return _as_changes(original, columns)


def _as_changes(original: Microdata, columns: dict[str, Column]) -> Microdata:
    changed = original.change(None, {})
    for name, column in columns.items():
        before = original.column(name)
        if before.levels is None or column.levels is None:
            differs = ~np.isclose(before.values, column.values, rtol=0, atol=0, equal_nan=True)
            if differs.any():
                changed = changed.change(None, {name: column.values})
        elif before.levels.equals(column.levels):
            rows = np.flatnonzero(before.values != column.values)
            changed = changed.change(rows, {name: column.values[rows]}) if len(rows) else changed
        else:
            changed = changed.change(None, {name: column.values}, {name: column.levels})
    return changed


def _matching_rows(ours: Array, theirs: Array, by: str) -> Array:
    place = {value: row for row, value in enumerate(theirs.tolist())}
    if len(place) < len(theirs) or len(set(ours.tolist())) < len(ours):
        raise SchemaError(f"the id column {by!r} has a value twice, so it cannot match records.")
    rows = [place.get(value, -1) for value in ours.tolist()]
    lost = sum(row < 0 for row in rows)
    if lost or len(theirs) != len(ours):
        raise SchemaError(f"the id column {by!r} does not match: {lost} records of the original are not in the file.")
    return np.array(rows)
