"""A masked file from any tool laid beside its original: columns by name, rows by order or by an id."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from sdcmap.core import Array, Column, Microdata
from sdcmap.data.cells import common_codes
from sdcmap.data.readable import Readable
from sdcmap.errors import OtherOrder, SchemaError
from sdcmap.files.reading import read

CHANCE = 5.0  # standard deviations that agreement by chance seldom reaches
FEWEST = 30  # records below which nothing can be said


def align(original: Microdata, masked: Readable, *, by: str | None = None, paired: bool = True) -> Microdata:
    """A masked file as changes of the original: columns matched by name, rows by order or by the id column `by`. What means
    "missing" in the original does so here. A column that the masked file lacks was not released: it is not here either.

    Not paired: the rows are nobody's, as of a synthetic file, whatever their number. Rows that are taken to be in the order
    of the original, and agree with it no more than by chance, get the warning `OtherOrder`.
    """
    if isinstance(masked, Microdata) and (masked.base is original or masked.origin is not None) and paired:
        return masked
    kinds = {v.name: v.kind for v in original.schema.variables}
    if not isinstance(masked, Microdata):
        raw = read(masked)
        codes = _codes(original, raw.names)
        raw = read(masked, missing=codes) if codes else raw
        bands = {v.name for v in raw.schema.variables if v.kind == "nominal" and kinds.get(v.name) == "numeric"}
        masked = read(raw, kinds={n: kind for n, kind in kinds.items() if n in raw.names and n not in bands})
    columns = {name: masked.column(name) for name in original.names if name in masked.names and name != by}
    if not columns:
        raise SchemaError("the two files have no column in common.")
    if not paired:
        if by is not None:
            raise SchemaError("an id column says which record is which, and unpaired files have no such records.")
        held = masked.only(columns)
        roles = {name: role for name in columns if (role := original.schema[name].role) is not None}
        return Microdata(held.schema.with_roles(roles), held.columns, paired=False)
    if by is not None:
        masked = masked.take(_matching_rows(original[by], masked[by], by))
        columns = {name: masked.column(name) for name in columns}
    if len(masked) != len(original):
        remedy = "give files of the same rows, or an id column that matches them, or say that they are unpaired."
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {len(original)}: {remedy}")
    aligned = _as_changes(original, columns)
    if by is None and not _agrees(original, aligned, tuple(columns)):
        remedy = "name an id column that matches the rows, or say that the files are unpaired."
        warnings.warn(f"no column agrees row by row more often than by chance: {remedy}", OtherOrder, stacklevel=3)
    kept = {*columns, *original.unreleased, by}
    return aligned if kept.issuperset(original.names) else aligned.only(n for n in original.names if n in kept)


def without_id(original: Microdata, by: str | None) -> Microdata:
    """The original, the column that matches records being nothing that a snooper knows; a role that was stated stays."""
    if by is None or by not in original.names or original.schema[by].role not in (None, "other"):
        return original
    return original.with_roles(**{by: "identifier"})


def _codes(original: Microdata, names: Sequence[str]) -> dict[str, list[float | str]]:
    """The original's codes for missing values, which mean the same in a masked file."""
    coded = [v for v in original.schema.variables if v.missing and v.name in names]
    return {v.name: [code for code in v.missing if not isinstance(code, tuple)] for v in coded}


def _agrees(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> bool:
    """Whether some column agrees row by row more than chance explains: equal values, or ranks that go together."""
    n = len(original)
    if n < FEWEST:
        return True
    for name in names:
        if original.column(name).levels is None and masked.column(name).levels is None:
            a, b = original.numbers(name), masked.numbers(name)
            both = np.isfinite(a) & np.isfinite(b)
            ranks = np.array([np.unique(side[both], return_inverse=True)[1] for side in (a, b)])
            if both.sum() >= FEWEST:
                if ranks.max(axis=1).min() > 0 and abs(np.corrcoef(ranks)[0, 1]) * np.sqrt(both.sum()) > CHANCE:
                    return True
                continue
        a, b = np.split(common_codes(original, masked, name), [n])
        size = int(max(a.max(), b.max())) + 1
        expected = float((np.bincount(a, minlength=size) / n) @ (np.bincount(b, minlength=size) / n))
        if ((a == b).mean() - expected) > CHANCE * np.sqrt(expected * (1 - expected) / n) or expected > 1 - 1 / n:
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
        else:  # other categories, or numbers that became bands
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
