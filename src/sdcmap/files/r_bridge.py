"""The Python side of the R package (r/): data frames in and out, with factors, dates, and the labels of package haven.

Columns are passed as bytes of float64, which all versions of R, reticulate and numpy store alike: numbers unchanged,
booleans as 0 and 1, dates in days and times in seconds since 1970, texts and factors as indices into their levels, counted
from 1. NA is NaN; the letter of a tagged NA (Stata's .a to .z) is in its fifth byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, SchemaError, SdcmapError
from sdcmap.data.microdata import Microdata, series
from sdcmap.data.readable import LabeledFrame
from sdcmap.data.schema import Variable
from sdcmap.files.stat.user_missing import reason_numbers, restore_codes

MICROSECONDS_PER_SECOND = 1_000_000
NA_WORD = 1954  # the low word of R's NA, which distinguishes it from other NaN
NA = np.array([0x7FF00000_000007A2], dtype="<u8").view("<f8")
TAG_BYTE = 4

RColumn: TypeAlias = Mapping[str, Any]  # name, kind, values, levels, ordered, label, codes, words, missing, format


def from_r(columns: Sequence[RColumn]) -> LabeledFrame:
    """Return a data frame from R in a form that `sdcmap.read` accepts."""
    names = [str(column["name"]) for column in columns]
    if len(set(names)) < len(names):
        raise SchemaError("the data frame has two columns with the same name: rename one of them.")
    frame = pl.DataFrame([_series(column) for column in columns])
    return LabeledFrame(frame, {name: _variable(column) for name, column in zip(names, columns, strict=True)})


def to_r(table: Microdata | pl.DataFrame) -> list[dict[str, Any]]:
    """Return microdata with their labels, or any table, as columns for an R data frame."""
    if isinstance(table, pl.DataFrame):
        return [_to_r_column(values, Variable(values.name, "")) for values in table]
    return [_to_r_column(_insert_codes(table, variable), variable) for variable in table.schema.variables]


def call_verb(verb: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Call a verb; return [its result], or [class, message] of its error, because reticulate truncates long messages."""
    try:
        return [verb(*given, **named)]
    except SdcmapError as error:
        return [type(error).__name__, str(error)]


def estimates_table(scored: Mapping[str, Estimate]) -> pl.DataFrame:
    """Return the result of `score` as a table of measure, value and standard error."""
    rows = [(name, float(one.value), None if one.se is None else float(one.se)) for name, one in scored.items()]
    return pl.DataFrame(rows, schema={"measure": pl.String, "value": pl.Float64, "se": pl.Float64}, orient="row")


# ---- from R -----------------------------------------------------------------------------------------------------
def _series(column: RColumn) -> pl.Series:
    name, kind, numbers = str(column["name"]), column["kind"], np.frombuffer(column["values"], dtype="<f8")
    if kind in ("text", "factor"):
        return _gather_levels(name, numbers, column["levels"], pl.Enum if kind == "factor" else None)
    if kind == "number" and (tags := _tags(numbers)).any():  # as in a Stata file
        cells = [chr(tag) if tag else number for tag, number in zip(tags.tolist(), numbers.tolist(), strict=True)]
        return pl.Series(name, [None if cell != cell else cell for cell in cells], dtype=pl.Object)
    values = pl.Series(name, numbers, nan_to_null=True)
    if kind == "date":
        return values.floor().cast(pl.Int32).cast(pl.Date)
    if kind == "time":
        return (values * MICROSECONDS_PER_SECOND).round().cast(pl.Int64).cast(pl.Datetime("us"))
    types = {"number": pl.Float64, "whole": pl.Int64, "truth": pl.Boolean}
    if kind not in types:
        raise SchemaError(f"column {name!r} has an R type that cannot be read: use texts, numbers, factors or dates.")
    return values.cast(types[kind])


def _gather_levels(name: str, indices: Array, levels: Sequence[str], kind: type[pl.Enum] | None) -> pl.Series:
    """Return texts or categories by their indices in the levels, counted from 1."""
    words = pl.Series([None, *levels], dtype=pl.String)
    texts = words.gather(np.nan_to_num(indices).astype(np.int64)).alias(name)
    return texts if kind is None else texts.cast(kind(list(levels)))


def _tags(numbers: Array) -> Array:
    """Return the letter of each tagged NA as a code point; 0 if there is none."""
    low = numbers.view("<u4")[::2]
    return np.where(np.isnan(numbers) & (low == NA_WORD), numbers.view("u1")[TAG_BYTE::8], 0)


def _variable(column: RColumn) -> Variable:
    """Return the metadata from haven: label, value labels, and user-missing values including letters."""
    tags = _tags(np.frombuffer(column["values"], dtype="<f8")) if column["kind"] == "number" else np.array([])
    low_high = _codes(column["na_range"])
    ends = [(low_high[0], low_high[1])] if len(low_high) == 2 else []
    missing = (*_codes(column["na_values"]), *ends, *(chr(tag) for tag in np.unique(tags[tags > 0])))
    values = tuple(zip(_codes(column["codes"]), column["words"], strict=True))
    fact = Variable(str(column["name"]), kind="", label=column["label"], values=values, missing=missing)
    return replace(fact, measure="ordinal" if column["ordered"] else "", format=column["format"])


def _codes(given: bytearray | Sequence[str]) -> list[Any]:
    """Return codes: texts, or numbers, with the letter of a tagged NA."""
    if not isinstance(given, bytes | bytearray):
        return list(given)
    numbers = np.frombuffer(given, dtype="<f8")
    return [chr(tag) if tag else number for tag, number in zip(_tags(numbers).tolist(), numbers.tolist(), strict=True)]


# ---- to R -------------------------------------------------------------------------------------------------------
def _insert_codes(data: Microdata, variable: Variable) -> pl.Series:
    """Return a column with its user-missing codes inserted, as far as its type can store them."""
    column = data.column(variable.name)
    values = series(column, variable)
    if values.dtype == pl.Categorical:
        values = values.cast(pl.Enum(values.drop_nulls().unique().cast(pl.String).sort()))
    texts = values.dtype in (pl.String, pl.Enum)
    codes = [code if isinstance(code, str) == texts or _is_letter(code) else None for code in variable.reasons]
    if not texts and not values.dtype.is_numeric():
        return values
    return restore_codes(values, reason_numbers(variable, column), codes)


def _is_letter(code: float | str) -> bool:
    return isinstance(code, str) and len(code) == 1 and code.isascii() and code.isalpha()


def _to_r_column(values: pl.Series, variable: Variable) -> dict[str, Any]:
    kind, numbers, levels = _to_numbers(values)
    ranges = [code for code in variable.missing if isinstance(code, tuple)]
    single = [code for code in variable.missing if code not in ranges and isinstance(code, str) == bool(levels)]
    return {
        "name": values.name, "kind": kind, "values": bytearray(np.ascontiguousarray(numbers, dtype="<f8").tobytes()),
        "levels": levels, "ordered": kind == "factor" and variable.measure == "ordinal", "label": variable.label,
        "codes": _to_bytes([code for code, _ in variable.values]), "words": [words for _, words in variable.values],
        "na_values": _to_bytes(single), "na_range": _to_bytes([*ranges[0]] if ranges else []), "format": variable.format,
    }  # fmt: skip


def _to_numbers(values: pl.Series) -> tuple[str, Array, list[str]]:
    """Return the R kind of a column, its numbers or indices, and its levels."""
    dtype = values.dtype
    if dtype in (pl.String, pl.Enum, pl.Categorical, pl.Time, pl.Null):
        texts = values.cast(pl.String)
        levels = dtype.categories if isinstance(dtype, pl.Enum) else texts.drop_nulls().unique(maintain_order=True)
        known = np.arange(1, len(levels) + 1)
        places = texts.replace_strict(levels, known, return_dtype=pl.Float64, default=None)
        return ("text" if dtype != pl.Enum else "factor"), _floats(places), levels.to_list()
    if dtype == pl.Object:
        return "number", _tagged_na(values.to_list()), []
    if dtype == pl.Date:
        return "date", _floats(values.to_physical()), []
    if dtype in (pl.Datetime, pl.Duration):
        numbers = values.dt.cast_time_unit("us").to_physical() / MICROSECONDS_PER_SECOND
        return "time" if dtype == pl.Datetime else "number", _floats(numbers), []
    whole = dtype.is_integer() and bool(values.cast(pl.Float64).abs().fill_null(0).max() < 2**31)  # type: ignore[operator]
    kind = "truth" if dtype == pl.Boolean else "whole" if whole else "number"
    return kind, _floats(values), []


def _floats(values: pl.Series) -> Array:
    """Return numbers with missing ones as R's NA."""
    numbers = values.cast(pl.Float64).to_numpy()
    return np.where(np.isnan(numbers), NA, numbers)


def _tagged_na(cells: Sequence[Any]) -> Array:
    """Return numbers with letters as tagged NA."""
    letters = np.array([ord(cell) if isinstance(cell, str) else 0 for cell in cells], dtype=np.uint8)
    numbers = np.array([NA[0] if cell is None or isinstance(cell, str) else cell for cell in cells], dtype="<f8")
    numbers.view("u1")[TAG_BYTE::8] |= letters  # this byte is 0 in a plain NA
    return numbers


def _to_bytes(codes: Sequence[Any]) -> bytearray | list[str]:
    """Return codes for R: bytes of numbers, with letters as tagged NA; or texts."""
    if codes and all(isinstance(code, str) for code in codes) and not all(map(_is_letter, codes)):
        return list(codes)
    return bytearray(_tagged_na(codes).tobytes())
