"""Write SPSS, Stata and SAS files with pyreadstat."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Array, SchemaError
from sdcmap.data.microdata import Microdata, series
from sdcmap.data.schema import Variable
from sdcmap.files.stat.user_missing import (
    Code,
    format_code,
    numeric_bytes,
    reason_numbers,
    restore_codes,
    split_missing,
)

Labels = dict[Any, str]
NAME_PATTERNS = {"sav": r"[^\W\d_][\w.@#$]{0,63}", "dta": r"[^\W\d]\w{0,31}", "xpt": r"[A-Za-z_][A-Za-z0-9_]{0,31}"}
STATA_LONG_RANGE = (-2_147_483_647, 2_147_483_620)  # of a Stata long; larger values mean missing
TIMES = ("Date", "Datetime", "Time")


@dataclass(frozen=True)
class Part:
    """One column in the target format: values without user-missing codes, and the codes with their rows."""

    variable: Variable
    values: pl.Series
    reasons: Array
    codes: tuple[Code | None, ...]
    labels: Labels
    format: str

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def letters(self) -> list[str]:
        """Special missing values of a numeric column that occur or have a label."""
        letters = {code for code in (*self.codes, *self.labels) if isinstance(code, str)}
        return sorted(letters) if self.values.dtype.is_numeric() else []


def write_statfile(data: Microdata, path: Path, form: str) -> None:
    """Write a sav, dta or xpt file; value labels of an .xpt file are written as a SAS program beside it."""
    invalid = [repr(name) for name in data.names if not re.fullmatch(NAME_PATTERNS[form], name)]
    if invalid or (form != "dta" and len({name.lower() for name in data.names}) < len(data.names)):
        rule = f"have at most {64 if form == 'sav' else 32} characters and differ in more than case"
        names = f"names in a .{form} file are letters, digits and _, begin with a letter"
        raise SchemaError(f"{path.name}: {names}, {rule}. Rename {', '.join(invalid) or 'some'}.")
    parts = [_part(data, variable, form) for variable in data.schema.variables]
    labels = {part.name: part.variable.label for part in parts if part.variable.label}
    shared = {"column_labels": labels, "variable_format": {part.name: part.format for part in parts if part.format}}
    try:
        {"sav": _write_sav, "dta": _write_dta, "xpt": _write_xpt}[form](parts, path, shared)
    except Exception as error:  # the message of pyreadstat may quote a value
        path.unlink(missing_ok=True)
        raise SchemaError(f"{path.name} cannot be written as {form} ({type(error).__name__}).") from None


def _part(data: Microdata, variable: Variable, form: str) -> Part:
    column = data.column(variable.name)
    values = _to_supported_type(series(column, variable), form)
    # SPSS would treat a masked value that equals a missing code as missing.
    hits = np.count_nonzero(split_missing(values, variable)[1]) if form == "sav" else 0
    if hits:
        raise SchemaError(f"column {variable.name!r}: {hits:,} valid values equal user-missing codes of the file.")
    codes = tuple(format_code(form, values.dtype, code) for code in variable.reasons)
    keys = ((_label_key(form, values, code, variable), words) for code, words in variable.values)
    labels = {key: words for key, words in keys if key is not None}
    is_unchanged = data.schema.format == form and _type_group(values.dtype) == _type_group(variable.storage) != "text"
    # A user-defined format is not stored in an .xpt file: the SAS program defines it.
    has_own_format = form == "xpt" and labels
    display_format = variable.format.rstrip(".") if is_unchanged and not has_own_format else ""
    return Part(variable, values, reason_numbers(variable, column), codes, labels, display_format)


def _type_group(dtype: pl.DataType | str) -> str:
    name = str(dtype).partition("(")[0]
    return "time" if name in TIMES else "text" if name in ("String", "Categorical", "Enum", "Null") else "number"


def _to_supported_type(values: pl.Series, form: str) -> pl.Series:
    """Return the values in a type that pyreadstat writes correctly."""
    dtype = values.dtype
    if dtype in (pl.Categorical, pl.Enum, pl.String):
        return values.cast(pl.String)
    if dtype.is_integer() and bool(values.cast(pl.Float64).is_between(*STATA_LONG_RANGE).all()):
        return values.cast(pl.Int32)
    if dtype.is_numeric() or dtype == pl.Null:
        return values.cast(pl.Float64)
    if dtype == pl.Boolean or _type_group(dtype) == "time":
        return values
    raise SchemaError(f"column {values.name!r} is {dtype.base_type()}, which a .{form} file cannot store.")


def _label_key(form: str, values: pl.Series, code: Code, variable: Variable) -> Code | None:
    """Return a labeled value as the format writes it; None if it cannot: Stata labels only whole numbers and letters."""
    if isinstance(code, str):
        text = values.dtype == pl.String
        return (None if form == "dta" else code) if text else format_code(form, values.dtype, code)
    if not values.dtype.is_numeric() or (form != "sav" and split_missing(pl.Series([float(code)]), variable)[2]):
        return None
    if float(code).is_integer():
        return int(code)
    return code if form != "dta" and values.dtype == pl.Float64 else None


def _frame(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Return all columns, with "" for missing texts; the formats treat both alike, and pyreadstat fails on null."""
    return pl.DataFrame(list(columns)).with_columns(pl.col(pl.String).fill_null(""))


def _write_sav(parts: list[Part], path: Path, shared: dict[str, Any]) -> None:
    import pyreadstat

    ranges: dict[str, Any] = {}
    for part in parts:
        codes = [code if isinstance(code, tuple) else (code, code) for code in part.variable.missing]
        stored = [{"lo": lo, "hi": hi} for lo, hi in codes if format_code("sav", part.values.dtype, lo) is not None]
        ranges |= {part.name: stored} if stored else {}
    frame = _frame(restore_codes(part.values, part.reasons, part.codes) for part in parts)
    measures = {part.name: part.variable.measure for part in parts if part.variable.measure}
    shared |= {"missing_ranges": ranges, "variable_measure": measures, "compress": path.suffix.lower() == ".zsav"}
    pyreadstat.write_sav(frame, path, variable_value_labels=_labels(parts), **shared)


def _write_dta(parts: list[Part], path: Path, shared: dict[str, Any]) -> None:
    import pyreadstat

    columns = []
    for part in parts:
        column = restore_codes(part.values, part.reasons, part.codes)
        columns.append(pl.Series(part.name, column.to_list(), dtype=pl.Object) if part.letters else column)
    shared |= {"missing_user_values": {part.name: part.letters for part in parts if part.letters}}
    pyreadstat.write_dta(_frame(columns), path, variable_value_labels=_labels(parts), **shared)


def _labels(parts: list[Part]) -> dict[str, Labels]:
    return {part.name: part.labels for part in parts if part.labels}


def _write_xpt(parts: list[Part], path: Path, shared: dict[str, Any]) -> None:
    import pyreadstat

    pyreadstat.write_xport(_frame(part.values for part in parts), path, **shared)
    _, facts = pyreadstat.read_xport(path, metadataonly=True, output_format="polars")
    cells = numeric_bytes(path, facts, len(parts[0].values), "r+")
    for part in parts:
        for number, letter in enumerate(part.codes, 1):
            if isinstance(letter, str):
                cells[part.name][part.reasons == number, 0] = ord(letter)
    if _labels(parts):
        path.with_suffix(".sas").write_text(_format_program(path.name, parts), encoding="utf-8")


def _format_program(file: str, parts: list[Part]) -> str:
    """Return a SAS program with the value labels of the variables."""
    values, formats = [], []
    for number, part in enumerate(parts, 1):
        if part.labels:
            text = "$" if part.values.dtype == pl.String else ""
            name = f"{text}{part.name[:24]}_{number}f"
            pairs = (
                f"    {_sas_literal(code, text)} = {_sas_literal(words, '$')}" for code, words in part.labels.items()
            )
            values.append("\n".join([f"  value {name}", *pairs, "  ;"]))
            formats.append(f"    {part.name} {name}.")
    steps = ["proc format;", *values, "run;", "proc datasets library=work nolist;", "  modify DATASET;", "  format"]
    return "\n".join([f"/* Value labels of {file}, read into work.DATASET. */", *steps, *formats, "  ;", "quit;", ""])


def _sas_literal(code: Code, text: str) -> str:
    if text:
        return "'" + str(code).replace("'", "''") + "'"
    return f".{code}" if isinstance(code, str) else f"{code}"
