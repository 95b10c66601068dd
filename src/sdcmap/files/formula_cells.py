"""Texts that a spreadsheet program runs as formulas: they begin with =, +, -, @, a tab or a carriage return.

An apostrophe before such a text makes it a text for the spreadsheet. A text that has apostrophes before such a sign gets
another one, so that the original text can always be restored. Numbers are no formulas.
"""

from __future__ import annotations

import polars as pl

QUOTED_OR_FORMULA = r"^'*[=+\-@\t\r]"
QUOTED = r"^'+[=+\-@\t\r]"
NUMBER = r"^[+-][\d.,]*$"


def has_formulas(texts: pl.Series) -> bool:
    """Return whether a spreadsheet program would run one of these texts as a formula."""
    return bool((texts != _quote(texts)).any())


def quote_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with an apostrophe before each formula among its texts and names."""
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    frame = frame.with_columns(_quote(frame[name]) for name, dtype in frame.schema.items() if dtype == pl.String)
    return frame.rename(dict(zip(frame.columns, _quote(pl.Series(frame.columns)), strict=True)))


def unquote_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of texts as it was before `quote_formulas`."""
    frame = frame.with_columns(_unquote(text) for text in frame)
    return frame.rename(dict(zip(frame.columns, _unquote(pl.Series(frame.columns)), strict=True)))


def _quote(texts: pl.Series) -> pl.Series:
    is_formula = texts.str.contains(QUOTED_OR_FORMULA) & ~texts.str.contains(NUMBER)
    return ("'" + texts).zip_with(is_formula.fill_null(False), texts).alias(texts.name)


def _unquote(texts: pl.Series) -> pl.Series:
    return texts.str.slice(1).zip_with(texts.str.contains(QUOTED).fill_null(False), texts)
