"""Align a masked file from any tool with its original: columns by name, rows by order or by an id column."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from sdcmap.core import Array, Column, Microdata
from sdcmap.data.cells import common_codes
from sdcmap.data.readable import Readable
from sdcmap.errors import OtherOrder, SchemaError
from sdcmap.files.reader import read

MIN_STANDARD_DEVIATIONS = 5.0  # of agreement above its expectation; chance rarely reaches so much
MIN_RECORDS = 30  # with fewer records, agreement cannot be distinguished from chance


def align(original: Microdata, masked: Readable, *, by: str | None = None, paired: bool = True) -> Microdata:
    """Return a masked file as changes of the original.

    Columns are matched by name. A column that the masked file lacks was not released, and is not in the result. Codes for
    missing values in the original have the same meaning in the masked file. Without an id column, the warning
    `OtherOrder` is given if rows agree with the original no more than by chance.

    Parameters
    ----------
    by : an id column that matches the rows; by default rows are matched by order.
    paired : False for a fully synthetic file, whose rows do not correspond to rows of the original.
    """
    if isinstance(masked, Microdata) and (masked.base is original or masked.origin is not None) and paired:
        return masked
    kinds = {v.name: v.kind for v in original.schema.variables}
    if not isinstance(masked, Microdata):
        raw = read(masked)
        codes = _missing_codes(original, raw.names)
        raw = read(masked, missing=codes) if codes else raw
        # A numeric column that became text holds intervals: keep it categorical.
        bands = {v.name for v in raw.schema.variables if v.kind == "nominal" and kinds.get(v.name) == "numeric"}
        masked = read(raw, kinds={n: kind for n, kind in kinds.items() if n in raw.names and n not in bands})
    columns = {name: masked.column(name) for name in original.names if name in masked.names and name != by}
    if not columns:
        raise SchemaError("the two files have no column in common: check that both are the right files.")
    if not paired:
        if by is not None:
            raise SchemaError("unpaired files have no matching records: leave out the id column, or pair the files.")
        released = masked.only(columns)
        roles = {name: role for name in columns if (role := original.schema[name].role) is not None}
        return Microdata(released.schema.with_roles(roles), released.columns, paired=False)
    if by is not None:
        masked = masked.take(_matching_rows(original[by], masked[by], by))
        columns = {name: masked.column(name) for name in columns}
    if len(masked) != len(original):
        remedy = "give files with the same rows, name an id column that matches them, or state that they are unpaired."
        raise SchemaError(f"the masked file has {len(masked):,} rows and the original {len(original):,}: {remedy}")
    aligned = _as_changes(original, columns)
    if by is None and not _agrees_by_row(original, aligned, tuple(columns)):
        remedy = "name an id column that matches the rows, or state that the files are unpaired."
        warnings.warn(f"no column agrees row by row more often than by chance: {remedy}", OtherOrder, stacklevel=3)
    known = {*columns, *original.unreleased_columns, by}
    return aligned if known.issuperset(original.names) else aligned.only(n for n in original.names if n in known)


def without_id(original: Microdata, by: str | None) -> Microdata:
    """Return the original with the id column as identifier, so that attackers do not know it; a stated role stays."""
    if by is None or by not in original.names or original.schema[by].role not in (None, "other"):
        return original
    return original.with_roles(**{by: "identifier"})


def _missing_codes(original: Microdata, names: Sequence[str]) -> dict[str, list[float | str]]:
    """Return the codes for missing values of the original, for the columns of the masked file."""
    coded = [v for v in original.schema.variables if v.missing and v.name in names]
    return {v.name: [code for code in v.missing if not isinstance(code, tuple)] for v in coded}


def _agrees_by_row(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> bool:
    """Return whether some column agrees row by row more than by chance: in equal values, or in correlated ranks."""
    n = len(original)
    if n < MIN_RECORDS:
        return True
    for name in names:
        if original.column(name).levels is None and masked.column(name).levels is None:
            a, b = original.numbers(name), masked.numbers(name)
            known = np.isfinite(a) & np.isfinite(b)
            ranks = np.array([np.unique(side[known], return_inverse=True)[1] for side in (a, b)])
            if known.sum() >= MIN_RECORDS:
                # Without association, the rank correlation times sqrt(n) is about standard normal.
                z = abs(np.corrcoef(ranks)[0, 1]) * np.sqrt(known.sum()) if ranks.max(axis=1).min() > 0 else 0.0
                if z > MIN_STANDARD_DEVIATIONS:
                    return True
                continue
        a, b = np.split(common_codes(original, masked, name), [n])
        # Compare the share of equal values with its expectation under a random order.
        size = int(max(a.max(), b.max())) + 1
        expected = float((np.bincount(a, minlength=size) / n) @ (np.bincount(b, minlength=size) / n))
        if ((a == b).mean() - expected) > MIN_STANDARD_DEVIATIONS * np.sqrt(
            expected * (1 - expected) / n
        ) or expected > 1 - 1 / n:
            return True
    return False


def _as_changes(original: Microdata, columns: dict[str, Column]) -> Microdata:
    changed = original.change(None, {})
    for name, column in columns.items():
        before = original.column(name)
        if column.levels is None:
            if not np.allclose(before.values, column.values, rtol=0, atol=0, equal_nan=True):
                changed = changed.change(None, {name: column.values})
        elif before.levels is not None and before.levels.equals(column.levels):
            rows = np.flatnonzero(before.values != column.values)
            changed = changed.change(rows, {name: column.values[rows]}) if len(rows) else changed
        else:  # other categories, or numbers that became intervals
            changed = changed.change(None, {name: column.values}, {name: column.levels})
    return changed


def _matching_rows(ours: Array, theirs: Array, by: str) -> Array:
    row_of = {value: row for row, value in enumerate(theirs.tolist())}
    if len(row_of) < len(theirs) or len(set(ours.tolist())) < len(ours):
        raise SchemaError(f"the id column {by!r} has the same value twice, so it cannot match records.")
    rows = [row_of.get(value, -1) for value in ours.tolist()]
    lost = sum(row < 0 for row in rows)
    if lost or len(theirs) != len(ours):
        raise SchemaError(f"the id column {by!r} does not match: {lost:,} records of the original are not in the file.")
    return np.array(rows)


def read_row_numbers(file: Microdata, column: str, rows: int, name: str) -> Array:
    """Return the column of a file that states the row of the data, from 0, of each of its records; -1 where missing.

    rows : the number of rows of the data. name : what an error message calls the file.
    """
    stated = read(file.only([column]), kinds={column: "numeric"}).numbers(column)
    known = stated[~np.isnan(stated)]
    if (known != np.rint(known)).any() or (known < 0).any() or (known >= rows).any():
        raise SchemaError(f"{column!r} of {name} must hold whole numbers from 0 to {rows - 1}.")
    if len(np.unique(known)) < len(known):
        raise SchemaError(f"{column!r} of {name} names a row of the data twice.")
    return np.where(np.isnan(stated), -1, stated).astype(np.int64)
