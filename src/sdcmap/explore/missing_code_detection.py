"""Detect values that look like codes for missing values, and columns that mix numbers and texts. They are proposals."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata
from sdcmap.files.missing_codes import Code

NEGATIVE_CODES = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -66, -77, -88, -97, -98, -99, -997, -998, -999, -9999)
NINES_CODES = (97, 98, 99, 997, 998, 999, 9997, 9998, 9999, 99999, 999999, 9999999, 99999999)
NUMBER_COLUMN_CODES = (  # among numbers these texts can only mean that the number is missing
    "na", "n/a", "n.a.", "nan", "null", ".", "..", "?", "#n/a", "(missing)", "missing", "unknown", "not applicable",
    "k.a.", "k. a.", "keine angabe",
)  # fmt: skip
AMBIGUOUS_CODES = (
    "n",
    "none",
    "-",
    "--",
    "*",
    "x",
    "nd",
    "ns",
    "nr",
    "ns/nc",
    "dk",
)  # or a category, or an abbreviation
YES_NO = ("yes", "no", "y", "n", "ja", "nein", "nee", "oui", "non", "si", "s\u00ed", "sim", "n\u00e3o", "true", "false")
MAX_SHARE_OF_CATEGORIES = 0.5  # of the records: among few categories, a more frequent text is a category itself
MAX_CATEGORIES = 20  # numbers with at most so many values are categories
MIN_RECORDS_OF_NINES = 2  # with a code such as 99; a single one may be a value
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
            continue
        known = column.levels.drop_nulls()
        count = np.bincount(column.values, minlength=len(column.levels))[: len(known)]
        if column.levels.dtype.is_numeric():
            numbers = np.repeat(known.cast(pl.Float64).to_numpy(), np.minimum(count, MIN_RECORDS_OF_NINES))
            codes += [Code(variable.name, f"{code:g}") for code in number_codes(numbers)]
        elif column.levels.dtype == pl.String:
            words, others = _text_codes(known, count)
            codes += [Code(variable.name, word) for word in words]
            if others:
                is_other = column.levels.is_in(others).to_numpy()
                mixed[variable.name] = int(np.isin(column.values, np.flatnonzero(is_other)).sum())
    return tuple(map(str, codes)), mixed


def find_codes_among_numbers(data: Microdata) -> dict[str, int]:
    """Return the texts that can only be codes for missing values, because all other values of their column are numbers.

    The result has the number of records with each, such as {"income=.": 12}.
    """
    found: dict[str, int] = {}
    for variable in data.schema.variables:
        column = data.column(variable.name)
        if column.levels is None or column.levels.dtype != pl.String:
            continue
        known = column.levels.drop_nulls()
        is_code = known.str.strip_chars().str.to_lowercase().is_in(NUMBER_COLUMN_CODES)
        rest = known.filter(~is_code)
        if is_code.any() and len(rest) > 1 and rest.str.contains(NUMBER).all() and not _has_leading_zeros(rest):
            count = np.bincount(column.values, minlength=len(column.levels))
            places = np.flatnonzero(is_code.to_numpy())
            found |= {str(Code(variable.name, str(known[int(k)]))): int(count[k]) for k in places}
    return found


def number_codes(values: Array) -> list[float]:
    """Return the numbers of a column that look like codes: negative ones among others that are not, and nines far above.

    A single 99 may be a value, so that nines occur at least twice.
    """
    known = values[np.isfinite(values)]
    if not len(known) or not (known.min() < 0 or known.max() in NINES_CODES):
        return []
    distinct, count = np.unique(known, return_counts=True)
    plain = distinct[~np.isin(distinct, (*NEGATIVE_CODES, *NINES_CODES))]
    if not len(plain):
        return []
    often = distinct[count >= MIN_RECORDS_OF_NINES]
    low = [x for x in NEGATIVE_CODES if x in distinct and plain.min() >= 0]
    high = [x for x in NINES_CODES if x in often and plain.max() <= (1 - MIN_GAP_SHARE) * x]
    return [float(x) for x in (*low, *high)]


def _text_codes(levels: pl.Series, count: Array) -> tuple[list[str], list[str]]:
    """Return texts that look like codes and, if most texts are numbers, the texts that are neither.

    count : how many records have each text.
    """
    plain = levels.str.strip_chars().str.to_lowercase()
    may_be_code = plain.is_in([*NUMBER_COLUMN_CODES, *AMBIGUOUS_CODES])
    rest = levels.filter(~may_be_code)
    if not len(rest):
        return [], []
    is_number = rest.str.contains(NUMBER)
    share = float(is_number.sum()) / len(rest)
    has_numbers = share >= MIN_NUMERIC_SHARE
    words = []
    for text, word, records in zip(levels.to_list(), plain.to_list(), count.tolist(), strict=True):
        is_ambiguous = word in AMBIGUOUS_CODES
        if word not in NUMBER_COLUMN_CODES and not is_ambiguous:
            continue
        # Among categories, N, x or none is a category, unless both yes and no occur beside it.
        is_category = is_ambiguous and not has_numbers and not (len(rest) > 1 and _is_yes_no(rest))
        is_few = len(rest) <= MAX_CATEGORIES
        is_frequent = is_ambiguous and is_few and records > MAX_SHARE_OF_CATEGORIES * max(1, int(count.sum()))
        words += [] if is_category or is_frequent else [text]
    if share == 1:  # numbers that are stored as texts because of the codes
        numbers = (
            pl.Series(rest.to_list()).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False).to_numpy()
        )
        repeats = np.minimum(count[~may_be_code.to_numpy()], MIN_RECORDS_OF_NINES)
        codes = number_codes(np.repeat(numbers, repeats)) if words else []
        words += [text for text, number in zip(rest.to_list(), numbers, strict=True) if number in codes]
    is_mixed = has_numbers and share < 1 and len(rest) > 3
    return words, rest.filter(~is_number).to_list() if is_mixed else []


def _is_yes_no(levels: pl.Series) -> bool:
    return bool(levels.str.strip_chars().str.to_lowercase().is_in(YES_NO).all())


def _has_leading_zeros(levels: pl.Series) -> bool:
    """Return whether some texts are codes such as 007, which are not numbers."""
    return bool(levels.str.contains(r"^0\d").any())


def is_mostly_numbers(data: Microdata, name: str) -> bool:
    """Return whether a column of texts consists mostly, but not only, of numbers."""
    levels = data.column(name).levels
    if levels is None or levels.dtype != pl.String or levels.len() - levels.null_count() < 4:
        return False
    share = levels.drop_nulls().str.contains(NUMBER).mean()
    return not _has_leading_zeros(levels.drop_nulls()) and MIN_NUMERIC_SHARE <= float(share or 0) < 1  # type: ignore[arg-type]
