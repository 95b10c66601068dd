"""What the texts of columns are: numbers, truth, dates, or texts after all.

All columns are tried at once: a query costs as much as a few thousand values, and a file may have thousands of columns.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain

import polars as pl

from sdcmap.files.dialect import NONE, Dialect, number_pattern
from sdcmap.files.missing_codes import Codes, of_column

CODE = r"^(?:\+|-?0\d)"  # texts such as 007 and +49, which would not be written back as they were
DATES = (
    (r"^\d{4}-\d\d-\d\d$", ("%Y-%m-%d",)),
    (r"^\d{4}/\d\d?/\d\d?$", ("%Y/%m/%d",)),
    (r"^\d\d?\.\d\d?\.\d{4}$", ("%d.%m.%Y",)),
    (r"^\d\d?/\d\d?/\d{4}$", ("%d/%m/%Y", "%m/%d/%Y")),  # the day first where both could be meant
    (r"^\d\d?-\d\d?-\d{4}$", ("%d-%m-%Y", "%m-%d-%Y")),
)
TIMES = (
    (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$", ("%Y-%m-%d %H:%M:%S%.f",)),
    (r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$", ("%Y-%m-%dT%H:%M:%S%.f",)),
)


def typed(text: pl.DataFrame, dialect: Dialect, codes: Codes) -> pl.DataFrame:
    """Each column in its type. Where texts that mean "missing" stand among numbers, dates or truth values: as objects."""
    words = {name: own for name in text.columns if (own := [code.code for code in of_column(codes, name)])}
    rest = text.with_columns(pl.when(~pl.col(name).is_in(own)).then(name).alias(name) for name, own in words.items())
    values = _types(rest, dialect)
    columns = []
    for before, after in zip(text.get_columns(), rest.get_columns(), strict=True):
        made = values.get(before.name, before)
        if made is not before and before.null_count() < after.null_count():
            made = with_codes(made, before, before.is_in(words[before.name]), of_column(codes, before.name))
        columns.append(made)
    return pl.DataFrame(columns)


def written_as(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Texts that we wrote, in the type that they had."""
    if dtype == pl.Boolean:
        return text == "true"
    if isinstance(dtype, pl.Date | pl.Time | pl.Datetime):
        date, time = "%Y-%m-%d", "%H:%M:%S%.f"
        form = date if dtype == pl.Date else time if dtype == pl.Time else f"{date}T{time}"
        return text.str.strptime(dtype, form)
    return text.cast(dtype)


def with_codes(values: pl.Series, text: pl.Series, coded: pl.Series, codes: Codes) -> pl.Series:
    """The codes among the values again: numbers among numbers, else each as the text it is."""
    numbers = {code.code: code.number for code in codes if code.number is not None}
    if values.dtype.is_integer() and all(number.is_integer() for number in numbers.values()):
        numbers = {text: int(number) for text, number in numbers.items()}
    if values.dtype.is_numeric() and text.filter(coded).is_in(list(numbers)).all():
        back = pl.Series([numbers.get(word) for word in text.filter(coded)])
        held = values if back.dtype.is_integer() else values.cast(pl.Float64)
        return held.scatter(coded.arg_true(), back)
    kept = numbers if values.dtype.is_numeric() else {}
    triples = zip(values.to_list(), text.to_list(), coded.to_list(), strict=True)
    cells = [kept.get(word, word) if is_code else value for value, word, is_code in triples]
    return pl.Series(text.name, cells, dtype=pl.Object)


def _types(text: pl.DataFrame, dialect: Dialect) -> dict[str, pl.Series]:
    """The columns of which every text is of a type, in the first that holds them; blanks around a number do not count, nor
    do fields of blanks."""
    values: dict[str, pl.Series] = {}
    left = _with_values(text)
    for way in (_numbers, _truth, _dates):
        values |= way(left, dialect)
        left = _without(left, values)
    blank = _where(left, pl.all().str.contains("^ | $|^$").any())
    bare = _with_values(blank.select(pl.all().str.strip_chars().replace("", None))) if blank.width else blank
    for way in (_numbers, _truth, _dates):
        values |= {name: made for name, made in way(bare, dialect).items() if name not in values}
    return values


def _with_values(text: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([column for column in text.get_columns() if column.null_count() < len(column)])


def _where(text: pl.DataFrame, test: pl.Expr) -> pl.DataFrame:
    """The columns for which a test holds."""
    held = text.select(test).row(0) if text.width else ()
    return pl.DataFrame([column for column, holds in zip(text.get_columns(), held, strict=True) if holds])


def _without(text: pl.DataFrame, done: Container[str]) -> pl.DataFrame:
    return pl.DataFrame([column for column in text.get_columns() if column.name not in done])


def _whole(text: pl.DataFrame, values: pl.DataFrame) -> dict[str, pl.Series]:
    """The columns of which every text became a value."""
    pairs = zip(text.get_columns(), values.get_columns(), strict=True)
    return {made.name: made for before, made in pairs if made.null_count() == before.null_count()}


def _numbers(text: pl.DataFrame, dialect: Dialect) -> dict[str, pl.Series]:
    """Whole numbers where all are, else floats."""
    values = {} if dialect.decimal == "," else _plain_numbers(text)
    if dialect.decimal == "," or dialect.thousands not in ("", NONE):
        values |= _plain_numbers(_marks_off(_without(text, values), dialect))
    likely = pl.DataFrame([column for column in text.get_columns() if column.name in values])
    coded = set(_where(likely, pl.all().str.contains(CODE).any()).columns)
    return {name: made for name, made in values.items() if name not in coded}


def _marks_off(text: pl.DataFrame, dialect: Dialect) -> pl.DataFrame:
    """The columns that are numbers in this dialect, in Python's."""
    pattern = number_pattern(dialect.decimal or ".", dialect.thousands or NONE)
    for part in (pl.all().drop_nulls().head(100), pl.all()):  # most texts are told by the first
        text = _where(text, part.str.contains(pattern).all())
    if dialect.thousands not in ("", NONE):
        text = text.select(pl.all().str.replace_all(dialect.thousands, "", literal=True))
    return text.select(pl.all().str.replace(",", ".", literal=True)) if dialect.decimal == "," else text


def _plain_numbers(text: pl.DataFrame) -> dict[str, pl.Series]:
    first = pl.all().drop_nulls().head(100)
    text = _where(text, first.cast(pl.Float64, strict=False).is_not_null().all())
    whole = _where(text, first.str.contains(r"^-?\d+$").all())
    values: dict[str, pl.Series] = {}
    for dtype, likely in ((pl.Int64, whole), (pl.Int128, whole), (pl.Float64, text)):
        left = _without(likely, values)
        values |= _whole(left, left.select(pl.all().cast(dtype, strict=False)))
    return values


def _truth(text: pl.DataFrame, _: Dialect) -> dict[str, pl.Series]:
    likely = _where(text, pl.all().drop_nulls().head(20).str.contains(r"^(?i:true|false)$").all())
    words, lower = {"true": True, "false": False}, pl.all().str.to_lowercase()
    return _whole(likely, likely.select(lower.replace_strict(words, return_dtype=pl.Boolean, default=None)))


def _dates(text: pl.DataFrame, _: Dialect) -> dict[str, pl.Series]:
    values: dict[str, pl.Series] = {}
    for pattern, formats in chain(DATES, TIMES):
        likely = _where(text, pl.all().drop_nulls().head(50).str.contains(pattern).all())
        for form in formats:
            dtype = pl.Datetime if "%H" in form else pl.Date
            likely = _without(likely, values)
            values |= _whole(likely, likely.select(pl.all().str.strptime(dtype, form, strict=False)))
    return values
