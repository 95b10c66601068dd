"""User-missing codes: set apart when a file is read, put back when it is written, dropped when they no longer occur."""

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
    """User-missing values become null; `reasons` says which code each was, counting from 1 into the codes met."""
    if fact.missing and isinstance(raw.dtype, pl.Enum):
        clean, reasons, codes = split_missing(raw.cast(pl.String), fact)
        return clean.cast(pl.Enum([word for word in raw.dtype.categories if word not in codes])), reasons, codes
    if not fact.missing or not (raw.dtype.is_numeric() or raw.dtype in (pl.String, pl.Object)):
        return raw, np.zeros(len(raw), dtype=np.uint8), ()
    clean, words = _apart(raw) if raw.dtype == pl.Object else (raw, None)
    hit = pl.repeat(False, len(raw), eager=True)
    if clean.dtype.is_numeric() or clean.dtype == pl.String:  # codes and ranges among the valid values
        for code in fact.missing:
            low, high = code if isinstance(code, tuple) else (code, code)
            if isinstance(low, str) == (clean.dtype == pl.String):
                hit |= clean.is_between(low, high).fill_null(False)
    coded, clean = clean.set(~hit, None), clean.set(hit, None)
    places = np.zeros(len(raw), dtype=np.int64)
    found: list[Code] = []
    for part in (coded, words):
        if part is not None and part.count():
            met = part.drop_nulls().unique().sort()
            known = np.arange(len(found) + 1, len(found) + len(met) + 1)
            places += part.replace_strict(met, known, return_dtype=pl.Int64, default=None).fill_null(0).to_numpy()
            found += met.to_list()
    return clean, places.astype(smallest_unsigned(1 + len(found))), tuple(found)


def _apart(raw: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Objects, such as Stata's numbers with letters for special missings: the values, and the words among them."""
    cells = raw.to_list()
    words = pl.Series([cell if isinstance(cell, str) else None for cell in cells], dtype=pl.String)
    rest = [None if isinstance(cell, str) else cell for cell in cells]
    if all(cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) for cell in rest):
        whole = not any(isinstance(cell, float) for cell in rest)
        return pl.Series(raw.name, rest, dtype=pl.Int64 if whole else pl.Float64), words
    return pl.Series(raw.name, rest), words


def code_in(form: str, dtype: pl.DataType, code: Code) -> Code | None:
    """A user-missing code as the format writes it: CSV any, Parquet and SPSS numbers among numbers and texts among texts,
    Stata a to z, SAS A to Z and _."""
    if form == "csv":
        return code
    if form not in ("dta", "xpt"):
        return code if (dtype in (pl.String, pl.Enum) if isinstance(code, str) else dtype.is_numeric()) else None
    if not isinstance(code, str) or not dtype.is_numeric() or (form == "dta" and code == "_"):
        return None
    return code.lower() if form == "dta" else code.upper()


def reason_numbers(variable: Variable, column: Column) -> Array:
    """For each row, which of `variable.reasons` its missing value had, counting from 1; 0: none, or not missing."""
    none = np.zeros(len(column.values), dtype=np.uint8)
    if column.levels is None:
        return none if column.reasons is None else np.where(np.isnan(column.values), column.reasons, 0)
    nulls = column.levels.null_count()
    if nulls != 1 + len(variable.reasons):
        return none
    return np.maximum(column.values.astype(np.int64) - (len(column.levels) - nulls), 0)


def put_back(values: pl.Series, reasons: Array, codes: Sequence[Code | None]) -> pl.Series:
    """User-missing codes in their rows again (None: stays null); texts among other values make an Object column."""
    if not reasons.any():
        return values
    if isinstance(values.dtype, pl.Enum):
        wider = [*values.dtype.categories, *(code for code in codes if isinstance(code, str))]
        return put_back(values.cast(pl.String), reasons, codes).cast(pl.Enum(wider))
    if any(isinstance(code, str) for code in codes) and values.dtype != pl.String:
        cells = values.to_list()
        for row in np.flatnonzero(reasons):
            cells[row] = codes[reasons[row] - 1]
        return pl.Series(values.name, cells, dtype=pl.Object)
    back = pl.Series([None, *codes], strict=False).gather(reasons)
    return pl.select(pl.coalesce(values, back)).to_series().alias(values.name)


def coded_frame(data: Microdata, form: str = "") -> pl.DataFrame:
    """The file as a frame with its user-missing codes in it, as a format holds them (default: as its reader gives it)."""
    columns = []
    for variable in data.schema.variables:
        column = data.column(variable.name)
        values = series(column, variable)
        if variable.reasons and values.dtype == pl.Categorical:
            values = values.cast(pl.String)
        codes = [code_in(form or data.schema.format, values.dtype, code) for code in variable.reasons]
        reasons = reason_numbers(variable, column)
        if form == "csv" and reasons.any():
            values, codes = values.cast(pl.String), [_written(code) for code in codes]
        columns.append(put_back(values, reasons, codes))
    return pl.DataFrame(columns)


def _written(code: Code | None) -> str | None:
    """A code as a text file holds it: a whole number without a point."""
    whole = isinstance(code, float) and code.is_integer()
    return None if code is None else str(int(code)) if whole else str(code)


def rebuilt(variable: Variable, column: Column) -> tuple[Variable, Column]:
    """Both without what no longer occurs: levels, value labels, user-missing codes and reasons."""
    before = reason_numbers(variable, column)
    met = np.flatnonzero(np.bincount(before, minlength=1 + len(variable.reasons))[1:])
    codes = tuple(variable.reasons[place] for place in met)
    renumber = np.zeros(1 + len(variable.reasons), dtype=smallest_unsigned(1 + len(met)))
    renumber[met + 1] = np.arange(1, 1 + len(met))
    reasons = renumber[before]
    if column.levels is None:
        new = Column(column.values, None, reasons if codes else None)
        labeled = [code for code, _ in variable.values if not isinstance(code, str)]
        valid = {code for code, occurs in zip(labeled, np.isin(labeled, column.values), strict=True) if occurs}
    else:
        used = np.unique(column.values)
        null = column.levels.is_null().to_numpy()
        kept = used[~null[used]]
        recode = np.full(len(null), len(kept))  # a missing value's code: the first after the levels
        recode[kept] = np.arange(len(kept))
        levels = column.levels.gather(kept)
        valid = set(levels.to_list())
        levels = levels.extend_constant(None, 1 + len(codes)) if len(kept) < len(used) else levels
        new = Column((recode[column.values] + reasons).astype(smallest_unsigned(len(levels))), levels)
    values = tuple((code, words) for code, words in variable.values if code in valid or code in codes)
    return replace(variable, values=values, missing=_still_missing(variable, codes), reasons=codes), new


def _still_missing(variable: Variable, met: tuple[Code, ...]) -> tuple[Code | tuple[float, float], ...]:
    """The codes met; as the narrowest range where SPSS cannot list them (it lists three, or a range and one more)."""
    ranges = [code for code in variable.missing if isinstance(code, tuple)]
    if not ranges or len(met) <= 3:
        return met
    inside = [code for code in met if not isinstance(code, str) and ranges[0][0] <= code <= ranges[0][1]]
    return ((min(inside), max(inside)), *(code for code in met if code not in inside))


# Special missings in the bytes of a SAS .xpt file (SAS paper TS-140): .A is the letter A and seven zero bytes.


def numeric_bytes(path: Path, facts: Any, rows: int, mode: Literal["r", "r+"]) -> dict[str, Array]:
    """The bytes of each numeric column of an .xpt file, one row per record; none where the layout is not the plain one.

    The records, of fixed width, follow the OBS header; blanks fill the last 80 bytes.
    """
    widths = np.array([facts.variable_storage_width[name] for name in facts.column_names])
    content = np.memmap(path, np.uint8, mode)
    start = content[: 2_000 + 800 * len(widths)].tobytes().find(b"HEADER RECORD*******OBS") + 80
    size = rows * int(widths.sum())
    if not 0 <= len(content) - start - size < 80:
        return {}
    records = content[start : start + size].reshape(rows, -1)
    places = zip(facts.column_names, np.cumsum(widths) - widths, widths, strict=True)
    texts = facts.readstat_variable_types
    return {name: records[:, at : at + width] for name, at, width in places if texts[name] != "string"}


def letters_of(path: Path, frame: pl.DataFrame, facts: Any) -> dict[str, Array]:
    """The letters of special missings in an .xpt file (0: none), of the columns that have some."""
    special = np.isin(np.arange(256), [*range(ord("A"), ord("Z") + 1), ord("_")])
    letters = {}
    for name, cells in numeric_bytes(path, facts, frame.height, "r").items():
        is_letter = special[cells[:, 0]] & ~cells[:, 1:].any(axis=1)
        if is_letter.any():
            letters[name] = np.where(is_letter, cells[:, 0], 0)
    return letters
