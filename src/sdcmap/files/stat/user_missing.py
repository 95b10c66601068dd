"""User-missing codes: set apart when a file is read, put back when it is written, dropped when they no longer occur."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sdcmap.data.microdata import Column, Microdata, series, smallest_unsigned
from sdcmap.data.schema import Variable
from sdcmap.kernels.arrays import Array

Code = float | str


def split_missing(raw: pl.Series, fact: Variable) -> tuple[pl.Series, Array, tuple[Code, ...]]:
    """User-missing values become null; `reasons` says which code each was, counting from 1 into the codes met."""
    if not fact.missing or not (raw.dtype.is_numeric() or raw.dtype in (pl.String, pl.Object)):
        return raw, np.zeros(len(raw), dtype=np.uint8), ()
    if raw.dtype == pl.Object:  # Stata and SAS: numbers mixed with the letters of special missings
        cells = raw.to_list()
        coded = pl.Series([cell if isinstance(cell, str) else None for cell in cells], dtype=pl.String)
        rest = [None if isinstance(cell, str) else cell for cell in cells]
        whole = not any(isinstance(cell, float) for cell in rest)
        clean = pl.Series(raw.name, rest, dtype=pl.Int64 if whole else pl.Float64)
    else:  # SPSS: codes and ranges among the valid values
        hit = pl.repeat(False, len(raw), eager=True)
        for code in fact.missing:
            low, high = code if isinstance(code, tuple) else (code, code)
            if isinstance(low, str) == (raw.dtype == pl.String):
                hit |= raw.is_between(low, high).fill_null(False)
        coded, clean = raw.set(~hit, None), raw.set(hit, None)
    met = coded.drop_nulls().unique().sort()
    places = coded.replace_strict(met, np.arange(1, len(met) + 1), return_dtype=pl.UInt32).fill_null(0)
    return clean, places.to_numpy().astype(smallest_unsigned(1 + len(met))), tuple(met.to_list())


def code_in(form: str, dtype: pl.DataType, code: Code) -> Code | None:
    """A user-missing code as the format writes it: SPSS numbers and texts, Stata a to z, SAS A to Z and _."""
    if form == "sav":
        return code if (dtype == pl.String if isinstance(code, str) else dtype.is_numeric()) else None
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
    """User-missing codes in their rows again (None: stays null); letters among numbers make an Object column."""
    if not reasons.any():
        return values
    if any(isinstance(code, str) for code in codes) and values.dtype.is_numeric():
        cells = values.to_list()
        for row in np.flatnonzero(reasons):
            cells[row] = codes[reasons[row] - 1]
        return pl.Series(values.name, cells, dtype=pl.Object)
    back = pl.Series([None, *codes], strict=False).gather(reasons)
    return pl.select(pl.coalesce(values, back)).to_series().alias(values.name)


def coded_frame(data: Microdata) -> pl.DataFrame:
    """The file as a frame with its user-missing codes in it, as `read_statfile` gives it."""
    columns = []
    for variable in data.schema.variables:
        column = data.column(variable.name)
        values = series(column, variable)
        codes = [code_in(data.schema.format, values.dtype, code) for code in variable.reasons]
        columns.append(put_back(values, reason_numbers(variable, column), codes))
    return pl.DataFrame(columns)


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
        labelled = [code for code, _ in variable.values if not isinstance(code, str)]
        valid = {code for code, occurs in zip(labelled, np.isin(labelled, column.values), strict=True) if occurs}
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
