"""Values that look like codes for missing ones, and columns that are numbers but for some texts: proposed only."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata
from sdcmap.files.missing_codes import Code

NEGATIVE = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -66, -77, -88, -97, -98, -99, -997, -998, -999, -9999)
NINES = (97, 98, 99, 997, 998, 999, 9997, 9998, 9999, 99999, 999999, 9999999, 99999999)
TEXTS = (
    "n", "na", "n/a", "n.a.", "nan", "null", "none", ".", "?", "-", "--", "*", "x", "missing", "unknown", "not applicable",
    "k.a.", "k. a.", "keine angabe", "nd", "ns", "nr", "ns/nc", "dk", "#n/a", "(missing)", "-8", "-9", "99", "999",
)  # fmt: skip
GAP = 0.1  # share of a code of nines by which the values must lie below it
NUMBER = r"^[+-]?\d[\d.,' \u00a0]*$"
MOSTLY = 0.5  # share of numbers from which on a column of texts is told to be mixed


def missing_looks(data: Microdata) -> tuple[tuple[str, ...], dict[str, int]]:
    """Codes that look like missing values in each column that no weight or identifier is; and columns of texts most of
    which are numbers, with the number of the others."""
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
                met = column.levels.is_in(others).to_numpy()
                mixed[variable.name] = int(np.isin(column.values, np.flatnonzero(met)).sum())
    return tuple(map(str, codes)), mixed


def number_codes(values: Array) -> list[float]:
    """Numbers of a column that look like codes; they lie at one of its ends."""
    known = values[np.isfinite(values)]
    doubtful = len(known) > 0 and (known.min() < 0 or known.max() in NINES)
    return _number_codes(np.unique(known)) if doubtful else []


def _number_codes(distinct: Array) -> list[float]:
    """Negative codes among numbers that are not negative, and nines far above all other numbers."""
    plain = distinct[~np.isin(distinct, (*NEGATIVE, *NINES))]
    if not len(plain):
        return []
    low = [x for x in NEGATIVE if x in distinct and plain.min() >= 0]
    high = [x for x in NINES if x in distinct and plain.max() <= (1 - GAP) * x]
    return [float(x) for x in (*low, *high)]


def _text_codes(levels: pl.Series) -> tuple[list[str], list[str]]:
    """Texts that look like codes; and, where most texts are numbers, the texts that are neither."""
    words = [word for word in levels.to_list() if word.strip().lower() in TEXTS]
    rest = levels.filter(~levels.is_in(words)) if words else levels
    numbers = rest.str.contains(NUMBER)
    share = float(numbers.sum()) / max(1, len(rest))
    mixed = MOSTLY <= share < 1 and len(rest) > 3
    return words if len(rest) else [], rest.filter(~numbers).to_list() if mixed else []


def mostly_numbers(data: Microdata, name: str) -> bool:
    """Whether a column of texts would be numbers, but for a few of them."""
    levels = data.column(name).levels
    if levels is None or levels.dtype != pl.String or levels.len() - levels.null_count() < 4:
        return False
    share = levels.drop_nulls().str.contains(NUMBER).mean()
    codes = levels.drop_nulls().str.contains(r"^0\d").any()
    return not codes and MOSTLY <= float(share or 0) < 1  # type: ignore[arg-type]
