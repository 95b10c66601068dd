"""What is missing in a release is told apart: suppressed values get a code of their own, and each code its format's form.

Numbers get -97 (or the first such number that is free), texts "*", numbers of Stata and SAS a letter, and there codes that
are numbers become letters too, with the number as their words. A format that cannot hold a code (dates in Parquet, a fourth
code in SPSS) holds a plain missing value, and the codebook names no code.
Measures count a suppressed value as missing, as they did in the study.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sdcmap.core.method import Method
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import Variable
from sdcmap.files.stat import code_in
from sdcmap.kernels.arrays import Array
from sdcmap.methods import Derive

WORDS = "suppressed"
NUMBERS = (-97, -98, -99, -997, -998, -999, -9997, -9998, -9999)
TEXTS = ("*", "**", "***")
LETTERS = "stuvwxyzrqponmlkjihgfedcba"
MOST_IN_SPSS = 3  # codes of one variable

Code = float | str


def suppressed_cells(data: Microdata, method: Method, masked: Microdata, name: str) -> Array:
    """Where a method that blanks values left none, although the original has one. Where missing values are drawn none is
    suppressed: two kinds of missing values would tell who had none."""
    blanks = any(step.missing == "added" for step in method.steps)
    if not blanks or not masked.paired or name in _drawn(data, method):
        return np.zeros(len(masked), dtype=bool)
    before = data.missing(name)
    return masked.missing(name) & ~(before if masked.origin is None else before[masked.origin])


def _drawn(data: Microdata, method: Method) -> set[str]:
    """The columns of which a step draws also whether they are missing, and what is computed of these."""
    names = {name for step in method.steps if step.missing == "category" for name in step.masks(data)}
    for step in method.steps:
        if isinstance(step, Derive) and not names.isdisjoint(step.arithmetic.names):
            names.add(step.on)
    return names


def marked(variable: Variable, column: Column, gone: Array, form: str) -> tuple[Variable, Column, Code | None]:
    """The column with a code of its own in the rows `gone`, and that code; None where the format can hold none."""
    code = _free_code(variable, column, form) if gone.any() else None
    if code is None:
        return variable, column, None
    reasons = (*variable.reasons, code)
    named = replace(
        variable, reasons=reasons, missing=(*variable.missing, code), values=(*variable.values, (code, WORDS))
    )
    if column.levels is None:
        before = np.zeros(len(gone), dtype=np.int64) if column.reasons is None else column.reasons
        held = np.where(gone, len(reasons), before)
        return named, Column(column.values, None, held.astype(smallest_unsigned(1 + len(reasons)))), code
    valid = len(column.levels) - column.levels.null_count()
    levels = column.levels.head(valid).extend_constant(None, 1 + len(reasons))
    values = np.where(gone, valid + len(reasons), column.values)
    return named, Column(values.astype(smallest_unsigned(len(levels))), levels), code


def lettered(variable: Variable, form: str) -> Variable:
    """Codes that are numbers as the letters by which Stata and SAS tell missing values; the number stays as their words."""
    if form not in ("dta", "xpt") or all(isinstance(code, str) for code in variable.reasons):
        return variable
    taken = {str(code).lower() for code in variable.reasons}
    free = (_cased(letter, form) for letter in reversed(LETTERS) if letter not in taken)
    renamed = {code: code if isinstance(code, str) else next(free) for code in variable.reasons}
    words = {code: f"{code:g}" if not isinstance(code, str) else "" for code in variable.reasons} | dict(
        variable.values
    )
    labels = {renamed.get(code, code): label for code, label in words.items() if label}
    return replace(
        variable, reasons=tuple(renamed.values()), missing=tuple(renamed.values()), values=tuple(labels.items())
    )


def _cased(letter: str, form: str) -> str:
    return letter.upper() if form == "xpt" else letter


def _free_code(variable: Variable, column: Column, form: str) -> Code | None:
    """The first code that is no value of the column, and that the format can hold in it."""
    if form == "sav" and len(variable.missing) >= MOST_IN_SPSS:
        return None
    dtype = pl.Float64() if column.levels is None else column.levels.dtype
    choices: tuple[Code, ...] = NUMBERS if dtype.is_numeric() else TEXTS
    if form in ("dta", "xpt"):
        choices = tuple(_cased(letter, form) for letter in LETTERS)
    texts = pl.Series(column.values).unique() if column.levels is None else column.levels.drop_nulls()
    met = {*texts.to_list(), *variable.missing, *(str(code).lower() for code in variable.missing)}
    free = (code for code in choices if code not in met)
    return next((code for code in free if code_in(form, dtype, code) is not None), None)
