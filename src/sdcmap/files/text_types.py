"""What the texts of a column are: numbers, truth, dates, or texts after all."""

from __future__ import annotations

from itertools import chain

import polars as pl

from sdcmap.files.dialect import NONE, Dialect, number_pattern
from sdcmap.files.missing_codes import Codes

CODE = r"^(?:\+|-?0\d)"
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


def typed(text: pl.Series, dialect: Dialect, codes: Codes) -> pl.Series:
    """The column in its type. Where texts that mean "missing" stand among numbers, dates or truth values: as objects."""
    words = [code.code for code in codes]
    coded = text.is_in(words) if words else pl.repeat(False, len(text), eager=True)
    rest = text.set(coded, None) if words and coded.any() else text
    values = _typed(rest, dialect)
    if rest is text or values.dtype == pl.String:
        return text if values.dtype == pl.String else values
    return with_codes(values, text, coded, codes)


def with_codes(values: pl.Series, text: pl.Series, coded: pl.Series, codes: Codes) -> pl.Series:
    """The codes among the values again: numbers among numbers, else each as the text it is."""
    numbers = {code.code: code.number for code in codes if code.number is not None}
    if values.dtype.is_integer() and all(number.is_integer() for number in numbers.values()):
        numbers = {text: int(number) for text, number in numbers.items()}
    if values.dtype.is_numeric() and text.filter(coded).is_in(list(numbers)).all():
        back = pl.Series([numbers.get(word) for word in text.filter(coded)])
        return (
            values.scatter(coded.arg_true(), back)
            if back.dtype.is_integer()
            else values.cast(pl.Float64).scatter(coded.arg_true(), back)
        )
    cells = [
        numbers.get(word, word) if is_code and values.dtype.is_numeric() else word if is_code else value
        for value, word, is_code in zip(values.to_list(), text.to_list(), coded.to_list(), strict=True)
    ]
    return pl.Series(text.name, cells, dtype=pl.Object)


def _typed(text: pl.Series, dialect: Dialect) -> pl.Series:
    """The texts in the first type that holds them all; blanks around a number do not count, nor do fields of blanks."""
    if not text.count():
        return text
    values = _in_a_type(text, dialect)
    if values is None and (text.str.starts_with(" ") | text.str.ends_with(" ") | (text == "")).any():
        bare = text.str.strip_chars().replace("", None)
        values = _in_a_type(bare, dialect) if bare.count() else None
    return text if values is None else values


def _in_a_type(text: pl.Series, dialect: Dialect) -> pl.Series | None:
    for way in (_numbers, _truth, _dates):
        values = way(text, dialect)
        if values is not None and (way is _dates or not _holds_codes(text)):
            return values
    return None


def _holds_codes(text: pl.Series) -> bool:
    """Whether some texts are codes, such as 007 and +49, that would not be written back as they were."""
    doubtful = text.str.starts_with("0") | text.str.starts_with("-0") | text.str.starts_with("+")
    return bool(text.filter(doubtful & (text.str.len_bytes() > 1)).str.contains(CODE).any())


def _all(values: pl.Series, text: pl.Series) -> pl.Series | None:
    return values if values.count() == text.count() else None


def _numbers(text: pl.Series, dialect: Dialect) -> pl.Series | None:
    """Whole numbers where all are, else floats; None where some are no numbers."""
    plain = None if dialect.decimal == "," else _plain_numbers(text)
    if plain is not None or (dialect.decimal != "," and dialect.thousands in ("", NONE)):
        return plain
    pattern = number_pattern(dialect.decimal or ".", dialect.thousands or NONE)
    for part in (text.drop_nulls().head(100), text.drop_nulls()):  # most texts are told by the first
        if not (part.str.contains(pattern) & part.str.contains(r"\d")).all():
            return None
    bare = text if dialect.thousands in ("", NONE) else text.str.replace_all(dialect.thousands, "", literal=True)
    return _plain_numbers(bare.str.replace(",", ".", literal=True) if dialect.decimal == "," else bare)


def _plain_numbers(text: pl.Series) -> pl.Series | None:
    whole = text.drop_nulls().head(20).str.contains(r"^-?\d+$").all()
    for dtype in (pl.Int64, pl.Int128) if whole else ():
        values = _all(text.cast(dtype, strict=False), text)
        if values is not None:
            return values
    return _all(text.cast(pl.Float64, strict=False), text)


def _truth(text: pl.Series, _: Dialect) -> pl.Series | None:
    if not text.drop_nulls().head(20).str.contains(r"^(?i:true|false)$").all():
        return None
    truth = {"true": True, "false": False}
    return _all(text.str.to_lowercase().replace_strict(truth, return_dtype=pl.Boolean, default=None), text)


def _dates(text: pl.Series, _: Dialect) -> pl.Series | None:
    first = text.drop_nulls().head(50)
    for pattern, formats in chain(DATES, TIMES):
        if first.str.contains(pattern).all():
            for form in formats:
                read = text.str.to_datetime if "%H" in form else text.str.to_date
                values = _all(read(form, strict=False), text)
                if values is not None:
                    return values
    return None
