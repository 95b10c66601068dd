"""What the R package (r/) calls: data frames in and out, with factors, dates, and the labels that package haven keeps.

Columns are handed over one by one, as bytes of float64, which every version of R, reticulate and numpy writes alike:
numbers as they are, truth values as 0 and 1, dates in days and times in seconds since 1970, texts and factors as places in
their levels, counted from 1. NA is NaN; the letter of a tagged NA (Stata's .a to .z) lies in its fifth byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, SchemaError, SdcmapError
from sdcmap.data.microdata import Microdata, series
from sdcmap.data.readable import Labeled
from sdcmap.data.schema import Variable
from sdcmap.files.stat.user_missing import put_back, reason_numbers

SECONDS = 1_000_000  # microseconds
NA_WORD = 1954  # the low word of R's NA, which tells it from other NaN
NA = np.array([0x7FF00000_000007A2], dtype="<u8").view("<f8")
TAG_BYTE = 4

RColumn: TypeAlias = Mapping[str, Any]  # name, kind, values, levels, ordered, label, codes, words, missing, format


def from_r(columns: Sequence[RColumn]) -> Labeled:
    """A data frame that R hands over, as `sdcmap.read` takes it."""
    names = [str(column["name"]) for column in columns]
    if len(set(names)) < len(names):
        raise SchemaError("the data frame has two columns of one name.")
    frame = pl.DataFrame([_series(column) for column in columns])
    return Labeled(frame, {name: _fact(column) for name, column in zip(names, columns, strict=True)})


def to_r(table: Microdata | pl.DataFrame) -> list[dict[str, Any]]:
    """Microdata with their labels, or any table, as the columns that R makes a data frame of."""
    if isinstance(table, pl.DataFrame):
        return [_handed(values, Variable(values.name, "")) for values in table]
    return [_handed(_coded(table, variable), variable) for variable in table.schema.variables]


def called(verb: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """[what the verb gives]; or the class and the sentence of its error: reticulate cuts long ones, or fails on them."""
    try:
        return [verb(*given, **named)]
    except SdcmapError as error:
        return [type(error).__name__, str(error)]


def estimates(scored: Mapping[str, Estimate]) -> pl.DataFrame:
    """What `score` gives, as a table: measure, value and standard error."""
    rows = [(name, float(one.value), None if one.se is None else float(one.se)) for name, one in scored.items()]
    return pl.DataFrame(rows, schema={"measure": pl.String, "value": pl.Float64, "se": pl.Float64}, orient="row")


# ---- in ---------------------------------------------------------------------------------------------------------
def _series(column: RColumn) -> pl.Series:
    name, kind, numbers = str(column["name"]), column["kind"], np.frombuffer(column["values"], dtype="<f8")
    if kind in ("text", "factor"):
        return _chosen(name, numbers, column["levels"], pl.Enum if kind == "factor" else None)
    if kind == "number" and (tags := _tags(numbers)).any():  # as the reader of Stata files gives them
        cells = [chr(tag) if tag else number for tag, number in zip(tags.tolist(), numbers.tolist(), strict=True)]
        return pl.Series(name, [None if cell != cell else cell for cell in cells], dtype=pl.Object)
    values = pl.Series(name, numbers, nan_to_null=True)
    if kind == "date":
        return values.floor().cast(pl.Int32).cast(pl.Date)
    if kind == "time":
        return (values * SECONDS).round().cast(pl.Int64).cast(pl.Datetime("us"))
    types = {"number": pl.Float64, "whole": pl.Int64, "truth": pl.Boolean}
    if kind not in types:
        raise SchemaError(f"column {name!r} is of a type of R that is not read: texts, numbers, factors and dates are.")
    return values.cast(types[kind])


def _chosen(name: str, places: Array, levels: Sequence[str], kind: type[pl.Enum] | None) -> pl.Series:
    """Texts or categories by their places in the levels, counted from 1."""
    words = pl.Series([None, *levels], dtype=pl.String)
    chosen = words.gather(np.nan_to_num(places).astype(np.int64)).alias(name)
    return chosen if kind is None else chosen.cast(kind(list(levels)))


def _tags(numbers: Array) -> Array:
    """The letter of each tagged NA as its code point; 0: none."""
    low = numbers.view("<u4")[::2]
    return np.where(np.isnan(numbers) & (low == NA_WORD), numbers.view("u1")[TAG_BYTE::8], 0)


def _fact(column: RColumn) -> Variable:
    """What haven keeps of a variable: its label, value labels, and user-missing values, letters included."""
    tags = _tags(np.frombuffer(column["values"], dtype="<f8")) if column["kind"] == "number" else np.array([])
    low_high = _codes(column["na_range"])
    ends = [(low_high[0], low_high[1])] if len(low_high) == 2 else []
    missing = (*_codes(column["na_values"]), *ends, *(chr(tag) for tag in np.unique(tags[tags > 0])))
    values = tuple(zip(_codes(column["codes"]), column["words"], strict=True))
    fact = Variable(str(column["name"]), kind="", label=column["label"], values=values, missing=missing)
    return replace(fact, measure="ordinal" if column["ordered"] else "", format=column["format"])


def _codes(given: bytearray | Sequence[str]) -> list[Any]:
    """Codes of values: texts, or numbers among which a tagged NA is its letter."""
    if not isinstance(given, bytes | bytearray):
        return list(given)
    numbers = np.frombuffer(given, dtype="<f8")
    return [chr(tag) if tag else number for tag, number in zip(_tags(numbers).tolist(), numbers.tolist(), strict=True)]


# ---- out --------------------------------------------------------------------------------------------------------
def _coded(data: Microdata, variable: Variable) -> pl.Series:
    """A column with its user-missing codes in it, where its type holds them."""
    column = data.column(variable.name)
    values = series(column, variable)
    if values.dtype == pl.Categorical:
        values = values.cast(pl.Enum(values.drop_nulls().unique().cast(pl.String).sort()))
    texts = values.dtype in (pl.String, pl.Enum)
    held = [code if isinstance(code, str) == texts or _is_letter(code) else None for code in variable.reasons]
    if not texts and not values.dtype.is_numeric():
        return values
    return put_back(values, reason_numbers(variable, column), held)


def _is_letter(code: float | str) -> bool:
    return isinstance(code, str) and len(code) == 1 and code.isascii() and code.isalpha()


def _handed(values: pl.Series, variable: Variable) -> dict[str, Any]:
    kind, numbers, levels = _plain(values)
    ranges = [code for code in variable.missing if isinstance(code, tuple)]
    single = [code for code in variable.missing if code not in ranges and isinstance(code, str) == bool(levels)]
    return {
        "name": values.name, "kind": kind, "values": bytearray(np.ascontiguousarray(numbers, dtype="<f8").tobytes()),
        "levels": levels, "ordered": kind == "factor" and variable.measure == "ordinal", "label": variable.label,
        "codes": _told([code for code, _ in variable.values]), "words": [words for _, words in variable.values],
        "na_values": _told(single), "na_range": _told([*ranges[0]] if ranges else []), "format": variable.format,
    }  # fmt: skip


def _plain(values: pl.Series) -> tuple[str, Array, list[str]]:
    """The kind of a column in R's terms, its numbers or places, and its levels."""
    dtype = values.dtype
    if dtype in (pl.String, pl.Enum, pl.Categorical, pl.Time, pl.Null):
        texts = values.cast(pl.String)
        levels = dtype.categories if isinstance(dtype, pl.Enum) else texts.drop_nulls().unique(maintain_order=True)
        known = np.arange(1, len(levels) + 1)
        places = texts.replace_strict(levels, known, return_dtype=pl.Float64, default=None)
        return ("text" if dtype != pl.Enum else "factor"), _floats(places), levels.to_list()
    if dtype == pl.Object:
        return "number", _tagged(values.to_list()), []
    if dtype == pl.Date:
        return "date", _floats(values.to_physical()), []
    if dtype in (pl.Datetime, pl.Duration):
        numbers = values.dt.cast_time_unit("us").to_physical() / SECONDS
        return "time" if dtype == pl.Datetime else "number", _floats(numbers), []
    whole = dtype.is_integer() and bool(values.cast(pl.Float64).abs().fill_null(0).max() < 2**31)  # type: ignore[operator]
    kind = "truth" if dtype == pl.Boolean else "whole" if whole else "number"
    return kind, _floats(values), []


def _floats(values: pl.Series) -> Array:
    """The numbers, missing ones as R's NA."""
    numbers = values.cast(pl.Float64).to_numpy()
    return np.where(np.isnan(numbers), NA, numbers)


def _tagged(cells: Sequence[Any]) -> Array:
    """Numbers, with letters as tagged NA."""
    letters = np.array([ord(cell) if isinstance(cell, str) else 0 for cell in cells], dtype=np.uint8)
    numbers = np.array([NA[0] if cell is None or isinstance(cell, str) else cell for cell in cells], dtype="<f8")
    numbers.view("u1")[TAG_BYTE::8] |= letters  # where the byte of NA is 0
    return numbers


def _told(codes: Sequence[Any]) -> bytearray | list[str]:
    """Codes as R takes them: numbers, with letters as tagged NA; or texts."""
    if codes and all(isinstance(code, str) for code in codes) and not all(map(_is_letter, codes)):
        return list(codes)
    return bytearray(_tagged(codes).tobytes())
