"""User-missing codes: separated from values when a file is read, restored when it is written, dropped if unused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sdcmap.data.microdata import Column, Microdata, series, smallest_unsigned
from sdcmap.data.schema import Variable
from sdcmap.kernels.arrays import Array

Code = float | str


def split_missing(raw: pl.Series, fact: Variable) -> tuple[pl.Series, Array, tuple[Code, ...]]:
    """Return values with user-missing ones null, the reason of each (counted from 1; 0: none), and the codes that occur."""
    if fact.missing and isinstance(raw.dtype, pl.Enum):
        clean, reasons, codes = split_missing(raw.cast(pl.String), fact)
        return clean.cast(pl.Enum([word for word in raw.dtype.categories if word not in codes])), reasons, codes
    if not fact.missing or not (raw.dtype.is_numeric() or raw.dtype in (pl.String, pl.Object)):
        return raw, np.zeros(len(raw), dtype=np.uint8), ()
    clean, words = _separate_texts(raw) if raw.dtype == pl.Object else (raw, None)
    is_code = pl.repeat(False, len(raw), eager=True)
    if clean.dtype.is_numeric() or clean.dtype == pl.String:  # codes and ranges among the valid values
        for code in fact.missing:
            low, high = code if isinstance(code, tuple) else (code, code)
            if isinstance(low, str) == (clean.dtype == pl.String):
                is_code |= clean.is_between(low, high).fill_null(False)
    coded, clean = clean.set(~is_code, None), clean.set(is_code, None)
    reasons = np.zeros(len(raw), dtype=np.int64)
    occurring: list[Code] = []
    # Number the codes in ascending order: those among the values first, then texts among numbers.
    for part in (coded, words):
        if part is not None and part.count():
            observed = part.drop_nulls().unique().sort()
            numbers = np.arange(len(occurring) + 1, len(occurring) + len(observed) + 1)
            reasons += (
                part.replace_strict(observed, numbers, return_dtype=pl.Int64, default=None).fill_null(0).to_numpy()
            )
            occurring += observed.to_list()
    return clean, reasons.astype(smallest_unsigned(1 + len(occurring))), tuple(occurring)


def _separate_texts(raw: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the values and the texts of an object column, such as Stata's numbers with letters."""
    cells = raw.to_list()
    words = pl.Series([cell if isinstance(cell, str) else None for cell in cells], dtype=pl.String)
    rest = [None if isinstance(cell, str) else cell for cell in cells]
    if all(cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) for cell in rest):
        whole = not any(isinstance(cell, float) for cell in rest)
        return pl.Series(raw.name, rest, dtype=pl.Int64 if whole else pl.Float64), words
    return pl.Series(raw.name, rest), words


def format_code(form: str, dtype: pl.DataType, code: Code) -> Code | None:
    """Return a user-missing code as the format writes it; None if the format cannot store it.

    CSV stores any code, Parquet and SPSS codes of the column's type, Stata the letters a to z, SAS A to Z and _.
    """
    if form == "csv":
        return code
    if form not in ("dta", "xpt"):
        return code if (dtype in (pl.String, pl.Enum) if isinstance(code, str) else dtype.is_numeric()) else None
    if not isinstance(code, str) or not dtype.is_numeric() or (form == "dta" and code == "_"):
        return None
    return code.lower() if form == "dta" else code.upper()


def reason_numbers(variable: Variable, column: Column) -> Array:
    """Return for each row the number of its reason in `variable.reasons`, from 1; 0 if there is none."""
    none = np.zeros(len(column.values), dtype=np.uint8)
    if column.levels is None:
        return none if column.reasons is None else np.where(np.isnan(column.values), column.reasons, 0)
    nulls = column.levels.null_count()
    if nulls != 1 + len(variable.reasons):
        return none
    return np.maximum(column.values.astype(np.int64) - (len(column.levels) - nulls), 0)


def restore_codes(values: pl.Series, reasons: Array, codes: Sequence[Code | None]) -> pl.Series:
    """Return values with user-missing codes in their rows (None stays null); texts among numbers give an Object column."""
    if not reasons.any():
        return values
    if isinstance(values.dtype, pl.Enum):
        wider = [*values.dtype.categories, *(code for code in codes if isinstance(code, str))]
        return restore_codes(values.cast(pl.String), reasons, codes).cast(pl.Enum(wider))
    if any(isinstance(code, str) for code in codes) and values.dtype != pl.String:
        cells = values.to_list()
        for row in np.flatnonzero(reasons):
            cells[row] = codes[reasons[row] - 1]
        return pl.Series(values.name, cells, dtype=pl.Object)
    restored = pl.Series([None, *codes], strict=False).gather(reasons)
    return pl.select(pl.coalesce(values, restored)).to_series().alias(values.name)


def frame_with_codes(data: Microdata, form: str = "") -> pl.DataFrame:
    """Return the file as a frame with user-missing codes, as a format stores them (default: the format of the file)."""
    columns = []
    for variable in data.schema.variables:
        column = data.column(variable.name)
        values = series(column, variable)
        if variable.reasons and values.dtype == pl.Categorical:
            values = values.cast(pl.String)
        codes = [format_code(form or data.schema.format, values.dtype, code) for code in variable.reasons]
        reasons = reason_numbers(variable, column)
        if form == "csv" and reasons.any():
            values, codes = values.cast(pl.String), [_format_text(code) for code in codes]
        columns.append(restore_codes(values, reasons, codes))
    return pl.DataFrame(columns)


def _format_text(code: Code | None) -> str | None:
    """Return a code as a text file stores it: whole numbers without a decimal point."""
    is_whole = isinstance(code, float) and code.is_integer()
    return None if code is None else str(int(code)) if is_whole else str(code)


def drop_unused(variable: Variable, column: Column) -> tuple[Variable, Column]:
    """Return both without unused levels, value labels, user-missing codes and reasons."""
    before = reason_numbers(variable, column)
    observed = np.flatnonzero(np.bincount(before, minlength=1 + len(variable.reasons))[1:])
    codes = tuple(variable.reasons[index] for index in observed)
    renumber = np.zeros(1 + len(variable.reasons), dtype=smallest_unsigned(1 + len(observed)))
    renumber[observed + 1] = np.arange(1, 1 + len(observed))
    reasons = renumber[before]
    if column.levels is None:
        new = Column(column.values, None, reasons if codes else None)
        labeled = [code for code, _ in variable.values if not isinstance(code, str)]
        valid = {code for code, occurs in zip(labeled, np.isin(labeled, column.values), strict=True) if occurs}
    else:
        # Renumber the levels that occur; null levels follow, one for each remaining reason.
        used = np.unique(column.values)
        null = column.levels.is_null().to_numpy()
        values_used = used[~null[used]]
        recode = np.full(len(null), len(values_used))  # missing values get the first code after the levels
        recode[values_used] = np.arange(len(values_used))
        levels = column.levels.gather(values_used)
        valid = set(levels.to_list())
        levels = levels.extend_constant(None, 1 + len(codes)) if len(values_used) < len(used) else levels
        new = Column((recode[column.values] + reasons).astype(smallest_unsigned(len(levels))), levels)
    values = tuple((code, words) for code, words in variable.values if code in valid or code in codes)
    return replace(variable, values=values, missing=_occurring_codes(variable, codes), reasons=codes), new


def _occurring_codes(variable: Variable, codes: tuple[Code, ...]) -> tuple[Code | tuple[float, float], ...]:
    """Return the codes that occur, or the narrowest range that covers them: SPSS lists three, or a range and one more."""
    ranges = [code for code in variable.missing if isinstance(code, tuple)]
    if not ranges or len(codes) <= 3:
        return codes
    inside = [code for code in codes if not isinstance(code, str) and ranges[0][0] <= code <= ranges[0][1]]
    return ((min(inside), max(inside)), *(code for code in codes if code not in inside))


# Special missing values in a SAS .xpt file (SAS paper TS-140): .A is the byte of letter A and seven zero bytes.


def numeric_bytes(path: Path, facts: Any, rows: int, mode: Literal["r", "r+"]) -> dict[str, Array]:
    """Return the bytes of each numeric column of an .xpt file, one row per record; empty if the layout is unusual.

    Records of fixed width follow the OBS header; blanks fill the last 80 bytes.
    """
    widths = np.array([facts.variable_storage_width[name] for name in facts.column_names])
    content = np.memmap(path, np.uint8, mode)
    start = content[: 2_000 + 800 * len(widths)].tobytes().find(b"HEADER RECORD*******OBS") + 80
    size = rows * int(widths.sum())
    if not 0 <= len(content) - start - size < 80:
        return {}
    records = content[start : start + size].reshape(rows, -1)
    columns = zip(facts.column_names, np.cumsum(widths) - widths, widths, strict=True)
    types = facts.readstat_variable_types
    return {name: records[:, start : start + width] for name, start, width in columns if types[name] != "string"}


def read_letters(path: Path, frame: pl.DataFrame, facts: Any) -> dict[str, Array]:
    """Return the letters of special missing values in an .xpt file (0: none), for the columns that have some."""
    special = np.isin(np.arange(256), [*range(ord("A"), ord("Z") + 1), ord("_")])
    letters = {}
    for name, cells in numeric_bytes(path, facts, frame.height, "r").items():
        is_letter = special[cells[:, 0]] & ~cells[:, 1:].any(axis=1)
        if is_letter.any():
            letters[name] = np.where(is_letter, cells[:, 0], 0)
    return letters
