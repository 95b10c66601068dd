"""The written file as a user reads it: checked against the prepared file, and aligned with the original for scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.note import codes_in
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Array, Column, Microdata, SchemaError
from sdcmap.data.schema import Variable
from sdcmap.files.formats import format_of
from sdcmap.files.missing_codes import parse_codes
from sdcmap.files.reader import read


def read_released(path: Path, prepared: Prepared) -> Microdata:
    """Read the written file with the kinds of the prepared one; a format without types gets those of the codebook."""
    kinds, form = {v.name: v.kind for v in prepared.data.schema.variables}, format_of(path)
    missing = parse_codes(codes_in(prepared.data))
    types = {name: dtype for name, dtype in prepared.data.frame().schema.items() if dtype != pl.Null}
    try:
        source: Path | pl.DataFrame = path
        if form.read_typed is not None:
            source = form.read_typed(path, types, missing, excel_safe=prepared.data.schema.excel_safe)
        return read(source, kinds=kinds, missing=[str(code) for code in missing])
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"{path.name} cannot be read back ({type(error).__name__}).") from None


def check_round_trip(prepared: Prepared, back: Microdata, rounding: float = 0.0) -> Check:
    """Check that the file contains the released columns and nothing else, value for value.

    rounding : by how much numbers may differ, as a share of the largest number of their column. A file made on another
        machine may differ in last bits.
    """
    expected = prepared.data
    if back.names != expected.names or len(back) != len(expected):
        return Check("round trip", False, "The written file does not have the columns and rows that were released.")
    different = [name for name in expected.names if not _is_same(expected, back, name, rounding)]
    if different:
        names = ", ".join(map(repr, different))
        return Check("round trip", False, f"The written file has other values of {names} than were released.")
    return Check("round trip", True, "The written file reads back unchanged.")


def align_with_original(original: Microdata, back: Microdata, prepared: Prepared) -> Microdata:
    """Return the file as read back, as changes of the original, which is what measures score.

    Rows are matched by the secret origin. Renumbered ids count as known to the attacker, who may find out which number is
    which: they stay those of the original. A file that does not contain each record once is a file of its own, with its
    origin.
    """
    back = _drop_suppression_codes(back, prepared.suppressed)
    measured = [name for name in back.names if name not in prepared.renumbered]
    columns = {name: _match_levels(original, prepared.data, back, name) for name in measured}
    # If the file contains each record once, it is a change of the original; rows go back to their order.
    rows = np.argsort(prepared.origin, kind="stable")
    if np.array_equal(prepared.origin[rows], np.arange(len(original))):
        released = original.change(None, {})
        for name, column in columns.items():
            released = _change(released, name, original.column(name), column.take(rows))
    else:
        before = {name: original.column(name).levels for name in columns}
        new_types = {  # categories of another type, or numbers that became categories
            name: str(column.levels.dtype.base_type()) for name, column in columns.items()
            if column.levels is not None and column.levels.dtype != getattr(before[name], "dtype", None)
        }  # fmt: skip
        every = {**original.take(prepared.origin).columns, **columns}
        released = Microdata(original.schema.with_categories(new_types), every, prepared.origin)
    return replace(released, paired=prepared.data.paired)


def _match_levels(original: Microdata, expected: Microdata, back: Microdata, name: str) -> Column:
    """Return a column that was read back, in the categories of the original.

    Numbers or dates that became texts ("20 to 29") are categories in the order of the prepared file.
    """
    after = back.column(name)
    like = expected if _became_texts(original.column(name), after) else original
    if like.column(name).levels is None:
        return after
    return Column(*recode_levels(like.schema[name], like.column(name), back.schema[name], after))


def _change(file: Microdata, name: str, before: Column, after: Column) -> Microdata:
    """Return the file with one column as it was read back, if that differs."""
    if before.levels is None or after.levels is None or _became_texts(before, after):
        new = None if after.levels is None or not _became_texts(before, after) else {name: after.levels}
        same = new is None and np.array_equal(before.values, after.values, equal_nan=True)
        return file if same else file.change(None, {name: after.values}, new)
    moved = np.flatnonzero(after.values != before.values)
    new = {name: after.levels} if len(after.levels) > len(before.levels) else None
    return file.change(moved, {name: after.values[moved]}, new) if len(moved) else file


def _became_texts(before: Column, after: Column) -> bool:
    was_text, is_text = (c.levels is not None and c.levels.dtype == pl.String for c in (before, after))
    return is_text and not was_text


def _drop_suppression_codes(back: Microdata, codes: Mapping[str, float | str]) -> Microdata:
    """Return the file with suppressed values as plain missing values, as the study measured them."""
    columns = dict(back.columns)
    for name, code in codes.items():
        column, reasons = back.column(name), [_caseless(reason) for reason in back.schema[name].reasons]
        if column.levels is not None and _caseless(code) in reasons:
            plain = len(column.levels) - column.levels.null_count()
            suppressed = column.values == plain + 1 + reasons.index(_caseless(code))
            columns[name] = Column(np.where(suppressed, plain, column.values), column.levels)
    return replace(back, columns=columns)


def _caseless(code: float | str) -> float | str:
    return code.lower() if isinstance(code, str) else float(code)


def recode_levels(first: Variable, before: Column, second: Variable, after: Column) -> tuple[Array, pl.Series]:
    """Return the codes of `after` in the levels of `before`, and those levels with new ones at the end.

    Each user-missing code is a category of its own, as in the original. Where numbers became texts, such as ages in
    intervals, the levels are texts.
    """
    if before.levels is None or after.levels is None:
        raise SchemaError(f"column {first.name!r} is categorical in one file and numeric in the other.")
    ours, theirs = before.levels, after.levels
    if ours.dtype.is_numeric() != theirs.dtype.is_numeric():
        ours, theirs = ours.cast(pl.String), theirs.cast(pl.String)
    alphabet = {key: code for code, key in enumerate(_keys(first, ours))}
    known = len(alphabet)
    renamed = np.array([alphabet.setdefault(key, len(alphabet)) for key in _keys(second, theirs)], dtype=np.int64)
    new = [value for _, value in list(alphabet)[known:]]
    more = pl.Series(new, dtype=ours.dtype, strict=False)
    levels = pl.concat([ours, more]) if new else before.levels
    return renamed[after.values] if len(renamed) else after.values, levels


def _keys(variable: Variable, levels: pl.Series) -> list[tuple[bool, object]]:
    """Return what identifies each level: (is it missing?, value or user-missing code)."""
    values = [(False, value) for value in levels.drop_nulls().to_list()]
    return [*values, *((True, code) for code in (None, *variable.reasons)[: levels.null_count()])]


def _is_same(expected: Microdata, back: Microdata, name: str, rounding: float) -> bool:
    first, second = expected.column(name), back.column(name)
    if first.levels is None or second.levels is None:
        tolerance = rounding * float(np.abs(first.values).max(initial=0.0, where=np.isfinite(first.values)))
        return first.levels is second.levels and np.allclose(
            first.values, second.values, 0.0, tolerance, equal_nan=True
        )
    return bool(np.array_equal(recode_levels(expected.schema[name], first, back.schema[name], second)[0], first.values))
