"""Detect values that look like codes for missing values, and columns that mix numbers and texts. They are proposals."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata
from sdcmap.files.missing_codes import Code

NEGATIVE_CODES = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -66, -77, -88, -97, -98, -99, -997, -998, -999, -9999)
NINES_CODES = (97, 98, 99, 997, 998, 999, 9997, 9998, 9999, 99999, 999999, 9999999, 99999999)
TEXT_CODES = (
    "n", "na", "n/a", "n.a.", "nan", "null", "none", ".", "?", "-", "--", "*", "x", "missing", "unknown", "not applicable",
    "k.a.", "k. a.", "keine angabe", "nd", "ns", "nr", "ns/nc", "dk", "#n/a", "(missing)", "-8", "-9", "99", "999",
)  # fmt: skip
MIN_GAP_SHARE = 0.1  # all other values must lie below a code such as 999 by this share of it
NUMBER = r"^[+-]?\d[\d.,' \u00a0]*$"
MIN_NUMERIC_SHARE = 0.5  # a column of texts with at least this share of numbers is reported as mixed


def detect_missing_codes(data: Microdata) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return values that look like codes for missing values, and columns that mix numbers with texts.

    The codes are texts such as "income=-8". The mixed columns come with the number of values that are not numbers.
    Identifiers, weights and other survey columns are skipped.
    """
    codes: list[Code] = []
    mixed: dict[str, int] = {}
    for variable in data.schema.variables:
        if variable.role in ("identifier", "drop", "weight", "household", "stratum"):
            continue
        column = data.column(variable.name)
        if column.levels is None:
            codes += [Code(variable.name, f"{code:g}") for code in number_codes(column.values)]
        elif column.levels.dtype.is_numeric():
            known = column.levels.drop_nulls().cast(pl.Float64).to_numpy()
            codes += [Code(variable.name, f"{code:g}") for code in _number_codes(np.sort(known))]
        elif column.levels.dtype == pl.String:
            words, others = _text_codes(column.levels.drop_nulls())
            codes += [Code(variable.name, word) for word in words]
            if others:
                is_other = column.levels.is_in(others).to_numpy()
                mixed[variable.name] = int(np.isin(column.values, np.flatnonzero(is_other)).sum())
    return tuple(map(str, codes)), mixed


def number_codes(values: Array) -> list[float]:
    """Return the numbers of a column that look like codes; they are its smallest or largest values."""
    known = values[np.isfinite(values)]
    may_have_codes = len(known) > 0 and (known.min() < 0 or known.max() in NINES_CODES)
    return _number_codes(np.unique(known)) if may_have_codes else []


def _number_codes(distinct: Array) -> list[float]:
    """Return negative codes among nonnegative numbers, and nines far above all other numbers."""
    plain = distinct[~np.isin(distinct, (*NEGATIVE_CODES, *NINES_CODES))]
    if not len(plain):
        return []
    low = [x for x in NEGATIVE_CODES if x in distinct and plain.min() >= 0]
    high = [x for x in NINES_CODES if x in distinct and plain.max() <= (1 - MIN_GAP_SHARE) * x]
    return [float(x) for x in (*low, *high)]


def _text_codes(levels: pl.Series) -> tuple[list[str], list[str]]:
    """Return texts that look like codes and, if most texts are numbers, the texts that are neither."""
    words = [word for word in levels.to_list() if word.strip().lower() in TEXT_CODES]
    rest = levels.filter(~levels.is_in(words)) if words else levels
    numbers = rest.str.contains(NUMBER)
    share = float(numbers.sum()) / max(1, len(rest))
    is_mixed = MIN_NUMERIC_SHARE <= share < 1 and len(rest) > 3
    return words if len(rest) else [], rest.filter(~numbers).to_list() if is_mixed else []


def is_mostly_numbers(data: Microdata, name: str) -> bool:
    """Return whether a column of texts consists mostly, but not only, of numbers."""
    levels = data.column(name).levels
    if levels is None or levels.dtype != pl.String or levels.len() - levels.null_count() < 4:
        return False
    share = levels.drop_nulls().str.contains(NUMBER).mean()
    has_leading_zeros = levels.drop_nulls().str.contains(r"^0\d").any()  # codes such as 007, not numbers
    return not has_leading_zeros and MIN_NUMERIC_SHARE <= float(share or 0) < 1  # type: ignore[arg-type]
