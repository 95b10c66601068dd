"""The written file as a user reads it, checked against what was meant and aligned with the original for scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from sdcmap.files.missing_codes import codes_of
from sdcmap.files.reading import read


def read_released(path: Path, prepared: Prepared) -> Microdata:
    """The file at `path` in the kinds of the prepared one. A file without types is read in its codebook's."""
    kinds = {v.name: v.kind for v in prepared.data.schema.variables}
    form = format_of(path)
    missing = codes_of(codes_in(prepared.data))
    told = [str(code) for code in missing]
    if form.read_typed is None:
        return read(path, kinds=kinds, missing=told)
    types = {name: dtype for name, dtype in prepared.data.frame().schema.items() if dtype != pl.Null}
    try:
        return read(form.read_typed(path, types, missing), kinds=kinds, missing=told)
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"{path.name} cannot be read back ({type(error).__name__}).") from None


def check_read_back(prepared: Prepared, back: Microdata, rounding: float = 0.0) -> Check:
    """Check that the file holds the released columns and nothing else, value for value.

    rounding : by how much numbers may differ, as a share of the largest of their column. A file that was made on another
        machine may differ in last bits.
    """
    meant = prepared.data
    if back.names != meant.names or len(back) != len(meant):
        return Check("read back", False, "the written file does not have the columns and rows that were released.")
    other = [name for name in meant.names if not _same(meant, back, name, rounding)]
    if other:
        return Check("read back", False, f"the written file reads back other values of {', '.join(map(repr, other))}.")
    return Check("read back", True, "the written file reads back as it was meant.")


def aligned(original: Microdata, back: Microdata, prepared: Prepared) -> Microdata:
    """The file as read back, as changes of the original: what the measures score.

    Rows are matched by the secret origin. Renumbered ids count as known to the snooper: they stay the original's, the
    cautious reading, since a snooper may find out which number is which.
    """
    measured = [name for name in back.names if name not in prepared.renumbered]
    rows = np.argsort(prepared.origin, kind="stable")
    back = _merely_missing(back, prepared.suppressed)
    if not np.array_equal(prepared.origin[rows], np.arange(len(original))):
        other = _other_rows(original, back, measured, prepared)
        return replace(other, paired=prepared.data.paired)
    changed = original.change(None, {})
    for name in measured:
        before, variable = original.column(name), original.schema[name]
        after = back.column(name).take(rows)
        if _became_categories(before, after):
            codes, levels = _in_order(prepared.data, back, name, after)
            changed = changed.change(None, {name: codes}, {name: levels})
            continue
        if before.levels is None:
            if not np.array_equal(before.values, after.values, equal_nan=True):
                changed = changed.change(None, {name: after.values})
        else:
            codes, levels = recoded(variable, before, back.schema[name], after)
            moved = np.flatnonzero(codes != before.values)
            if len(moved):
                new = {name: levels} if len(levels) > len(before.levels) else None
                changed = changed.change(moved, {name: codes[moved]}, new)
    return replace(changed, paired=prepared.data.paired)


def _became_categories(before: Column, after: Column) -> bool:
    """Whether numbers, or categories that were numbers or dates, are released as texts such as "20 to 29"."""
    if after.levels is None or after.levels.dtype != pl.String:
        return False
    return before.levels is None or before.levels.dtype != pl.String


def _merely_missing(back: Microdata, codes: Mapping[str, float | str]) -> Microdata:
    """The same file with suppressed values as plain missing ones, which is what the study measured."""
    columns = dict(back.columns)
    for name, code in codes.items():
        column, variable = back.column(name), back.schema[name]
        place = _place(code, variable.reasons)
        if column.levels is None or place is None:
            continue
        plain = len(column.levels) - column.levels.null_count()
        columns[name] = Column(np.where(column.values == plain + place, plain, column.values), column.levels)
    return replace(back, columns=columns)


def _place(code: float | str, reasons: Sequence[float | str]) -> int | None:
    """Where a code stands among the reasons for missing values, counting from 1; letters in any case."""
    told = [reason.lower() if isinstance(reason, str) else float(reason) for reason in reasons]
    wanted = code.lower() if isinstance(code, str) else float(code)
    return told.index(wanted) + 1 if wanted in told else None


def _in_order(meant: Microdata, back: Microdata, name: str, after: Column) -> tuple[Array, pl.Series]:
    """Texts that were read back, as categories in the order that they have in the prepared file."""
    return recoded(meant.schema[name], meant.column(name), back.schema[name], after)


def _other_rows(original: Microdata, back: Microdata, measured: list[str], prepared: Prepared) -> Microdata:
    """The same for a file that does not hold each record once: a file of its own, with its origin."""
    columns = dict(original.take(prepared.origin).columns)
    made: dict[str, str] = {}  # categories of another type, or of numbers
    for name in measured:
        before, after = original.column(name), back.column(name)
        if _became_categories(before, after):
            columns[name] = Column(*_in_order(prepared.data, back, name, after))
        elif before.levels is None:
            columns[name] = after
        else:
            columns[name] = Column(*recoded(original.schema[name], before, back.schema[name], after))
        levels = columns[name].levels
        if levels is not None and (before.levels is None or levels.dtype != before.levels.dtype):
            made[name] = str(levels.dtype.base_type())
    return Microdata(original.schema.recoded(made), columns, prepared.origin)


def recoded(first: Variable, before: Column, second: Variable, after: Column) -> tuple[Array, pl.Series]:
    """The codes of `after` in the levels of `before`, with levels it alone has at the end. Each user-missing code is a
    category of its own, as in the original. Where numbers became texts, such as ages in intervals, levels are texts."""
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
    """What tells levels apart: (missing?, value or user-missing code)."""
    values = [(False, value) for value in levels.drop_nulls().to_list()]
    return [*values, *((True, code) for code in (None, *variable.reasons)[: levels.null_count()])]


def _same(meant: Microdata, back: Microdata, name: str, rounding: float) -> bool:
    first, second = meant.column(name), back.column(name)
    if first.levels is None or second.levels is None:
        away = rounding * float(np.abs(first.values).max(initial=0.0, where=np.isfinite(first.values)))
        return first.levels is second.levels and np.allclose(first.values, second.values, 0.0, away, equal_nan=True)
    codes, _ = recoded(meant.schema[name], first, back.schema[name], second)
    return bool(np.array_equal(codes, first.values))
