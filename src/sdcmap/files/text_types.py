"""Infer the types of text columns: numbers, booleans, dates, or text.

All columns are converted in one query, because a query costs as much as a few thousand values and a file may have thousands
of columns.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain

import polars as pl

from sdcmap.files.dialect import NONE, Dialect, number_pattern
from sdcmap.files.missing_codes import Codes, codes_for_column

CODE_PATTERN = r"^(?:\+|-?0\d)"  # texts such as 007 and +49, which would change if they were written as numbers
DATES = (
    (r"^\d{4}-\d\d-\d\d$", ("%Y-%m-%d",)),
    (r"^\d{4}/\d\d?/\d\d?$", ("%Y/%m/%d",)),
    (r"^\d\d?\.\d\d?\.\d{4}$", ("%d.%m.%Y",)),
    (r"^\d\d?/\d\d?/\d{4}$", ("%d/%m/%Y", "%m/%d/%Y")),  # the day first if both are possible
    (r"^\d\d?-\d\d?-\d{4}$", ("%d-%m-%Y", "%m-%d-%Y")),
)
TIMES = (
    (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$", ("%Y-%m-%d %H:%M:%S%.f",)),
    (r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$", ("%Y-%m-%dT%H:%M:%S%.f",)),
)


def infer_types(text: pl.DataFrame, dialect: Dialect, codes: Codes) -> pl.DataFrame:
    """Return each column in its type; columns with text codes among numbers, dates or booleans become objects."""
    words = {name: own for name in text.columns if (own := [code.code for code in codes_for_column(codes, name)])}
    rest = text.with_columns(pl.when(~pl.col(name).is_in(own)).then(name).alias(name) for name, own in words.items())
    values = _infer_all(rest, dialect)
    columns = []
    for before, after in zip(text.get_columns(), rest.get_columns(), strict=True):
        converted = values.get(before.name, before)
        if converted is not before and before.null_count() < after.null_count():
            is_code = before.is_in(words[before.name])
            converted = insert_codes(converted, before, is_code, codes_for_column(codes, before.name))
        columns.append(converted)
    return pl.DataFrame(columns)


def parse_as(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Return texts of a written file in their original type."""
    if dtype == pl.Boolean:
        return text == "true"
    if isinstance(dtype, pl.Date | pl.Time | pl.Datetime):
        date, time = "%Y-%m-%d", "%H:%M:%S%.f"
        form = date if dtype == pl.Date else time if dtype == pl.Time else f"{date}T{time}"
        return text.str.strptime(dtype, form)
    return text.cast(dtype)


def insert_codes(values: pl.Series, text: pl.Series, is_code: pl.Series, codes: Codes) -> pl.Series:
    """Return the values with codes inserted: as numbers among numbers, else as texts."""
    numbers = {code.code: code.number for code in codes if code.number is not None}
    if values.dtype.is_integer() and all(number.is_integer() for number in numbers.values()):
        numbers = {text: int(number) for text, number in numbers.items()}
    if values.dtype.is_numeric() and text.filter(is_code).is_in(list(numbers)).all():
        inserted = pl.Series([numbers.get(word) for word in text.filter(is_code)])
        numeric = values if inserted.dtype.is_integer() else values.cast(pl.Float64)
        return numeric.scatter(is_code.arg_true(), inserted)
    as_numbers = numbers if values.dtype.is_numeric() else {}
    triples = zip(values.to_list(), text.to_list(), is_code.to_list(), strict=True)
    cells = [as_numbers.get(word, word) if coded else value for value, word, coded in triples]
    return pl.Series(text.name, cells, dtype=pl.Object)


def _infer_all(text: pl.DataFrame, dialect: Dialect) -> dict[str, pl.Series]:
    """Return the columns in which every text has one type, converted to the first type that fits.

    Blanks around a number, and fields of blanks only, are ignored.
    """
    values: dict[str, pl.Series] = {}
    left = _drop_empty(text)
    for convert in (_numbers, _booleans, _dates):
        values |= convert(left, dialect)
        left = _exclude(left, values)
    # Try the remaining columns again without blanks at the ends of their texts.
    blank = _select(left, pl.all().str.contains("^ | $|^$").any())
    bare = _drop_empty(blank.select(pl.all().str.strip_chars().replace("", None))) if blank.width else blank
    for convert in (_numbers, _booleans, _dates):
        values |= {name: column for name, column in convert(bare, dialect).items() if name not in values}
    return values


def _drop_empty(text: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([column for column in text.get_columns() if column.null_count() < len(column)])


def _select(text: pl.DataFrame, test: pl.Expr) -> pl.DataFrame:
    """Return the columns that pass a test."""
    results = text.select(test).row(0) if text.width else ()
    return pl.DataFrame([column for column, passes in zip(text.get_columns(), results, strict=True) if passes])


def _exclude(text: pl.DataFrame, done: Container[str]) -> pl.DataFrame:
    return pl.DataFrame([column for column in text.get_columns() if column.name not in done])


def _fully_converted(text: pl.DataFrame, values: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the columns in which every text became a value."""
    pairs = zip(text.get_columns(), values.get_columns(), strict=True)
    return {after.name: after for before, after in pairs if after.null_count() == before.null_count()}


def _numbers(text: pl.DataFrame, dialect: Dialect) -> dict[str, pl.Series]:
    """Return numeric columns: integers if all values are whole, else floats."""
    values = {} if dialect.decimal == "," else _plain_numbers(text)
    if dialect.decimal == "," or dialect.thousands not in ("", NONE):
        values |= _plain_numbers(_normalize_numbers(_exclude(text, values), dialect))
    likely = pl.DataFrame([column for column in text.get_columns() if column.name in values])
    codes = set(_select(likely, pl.all().str.contains(CODE_PATTERN).any()).columns)
    return {name: column for name, column in values.items() if name not in codes}


def _normalize_numbers(text: pl.DataFrame, dialect: Dialect) -> pl.DataFrame:
    """Return the columns that are numbers in this dialect, in the notation of Python."""
    pattern = number_pattern(dialect.decimal or ".", dialect.thousands or NONE)
    for part in (pl.all().drop_nulls().head(100), pl.all()):  # the first values rule out most columns quickly
        text = _select(text, part.str.contains(pattern).all())
    if dialect.thousands not in ("", NONE):
        text = text.select(pl.all().str.replace_all(dialect.thousands, "", literal=True))
    return text.select(pl.all().str.replace(",", ".", literal=True)) if dialect.decimal == "," else text


def _plain_numbers(text: pl.DataFrame) -> dict[str, pl.Series]:
    first = pl.all().drop_nulls().head(100)
    text = _select(text, first.cast(pl.Float64, strict=False).is_not_null().all())
    whole = _select(text, first.str.contains(r"^-?\d+$").all())
    values: dict[str, pl.Series] = {}
    # Integers of any size before floats, so that long identifiers keep all digits.
    for dtype, likely in ((pl.Int64, whole), (pl.Int128, whole), (pl.Float64, text)):
        left = _exclude(likely, values)
        values |= _fully_converted(left, left.select(pl.all().cast(dtype, strict=False)))
    return values


def _booleans(text: pl.DataFrame, _: Dialect) -> dict[str, pl.Series]:
    likely = _select(text, pl.all().drop_nulls().head(20).str.contains(r"^(?i:true|false)$").all())
    words, lower = {"true": True, "false": False}, pl.all().str.to_lowercase()
    return _fully_converted(likely, likely.select(lower.replace_strict(words, return_dtype=pl.Boolean, default=None)))


def _dates(text: pl.DataFrame, _: Dialect) -> dict[str, pl.Series]:
    values: dict[str, pl.Series] = {}
    for pattern, formats in chain(DATES, TIMES):
        # Check the first values before parsing whole columns.
        likely = _select(text, pl.all().drop_nulls().head(50).str.contains(pattern).all())
        for form in formats:
            dtype = pl.Datetime if "%H" in form else pl.Date
            likely = _exclude(likely, values)
            values |= _fully_converted(likely, likely.select(pl.all().str.strptime(dtype, form, strict=False)))
    return values


# ---- formulas -------------------------------------------------------------------------------------------------
# A spreadsheet program runs a text that begins with =, +, -, @, a tab or a carriage return, unless it is a number. An
# apostrophe before it makes it a text. A text that has apostrophes before such a sign gets another one, so that the
# original text can always be restored.
QUOTED_OR_FORMULA = r"^'*[=+\-@\t\r]"
QUOTED = r"^'+[=+\-@\t\r]"
SIGNED_NUMBER = r"^[+-][\d.,]*$"


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
    is_formula = texts.str.contains(QUOTED_OR_FORMULA) & ~texts.str.contains(SIGNED_NUMBER)
    return ("'" + texts).zip_with(is_formula.fill_null(False), texts).alias(texts.name)


def _unquote(texts: pl.Series) -> pl.Series:
    return texts.str.slice(1).zip_with(texts.str.contains(QUOTED).fill_null(False), texts)
