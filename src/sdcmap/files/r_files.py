"""Read the data frame of an R file (.rds, .RData), with factors, dates, and the labels of package haven.

Package rdata parses the file. Its objects are converted to columns here, so that NA, factors and dates are preserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import SchemaError

LATIN_1_FLAG = 4  # marks a text in Latin-1; other texts are ASCII or UTF-8
MICROSECONDS_PER_SECOND = 1_000_000


def read_r(path: Path) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Read the data frame of a file; SchemaError if it contains none, or several."""
    from rdata.parser import parse_file

    try:
        parsed = parse_file(path)
    except MemoryError:
        raise
    except Exception as error:  # its message may quote the file
        problem = f"{path.name} cannot be read as rds ({type(error).__name__})."
        raise SchemaError(f"{problem} An R file must contain one data frame.") from None
    objects = _objects(parsed.object)
    frames = [one for one in objects if "data.frame" in _texts_of(one, "class")]
    if len(frames) != 1:
        raise SchemaError(
            f"{path.name} contains {len(frames)} data frames, but needs exactly one: save it with saveRDS."
        )
    names = _texts_of(frames[0], "names")
    if len(set(names)) < len(names):
        raise SchemaError(f"{path.name} has two columns with the same name: rename one of them.")
    columns = dict(zip(names, frames[0].value, strict=True))
    frame = pl.DataFrame([_column(name, column) for name, column in columns.items()])
    return frame, {name: _variable(name, column) for name, column in columns.items()}


def _objects(first: Any) -> Iterator[Any]:
    """Yield the object of an .rds file, or the objects of an .RData file, which are a linked list."""
    while first is not None and isinstance(first.value, tuple):
        yield first.value[0]
        first = first.value[1]
    if first is not None:
        yield first


def _attributes(thing: Any) -> dict[str, Any]:
    pair, attributes = thing.attributes, {}
    while pair is not None and isinstance(pair.value, tuple):
        attributes[_text((pair.tag.referenced_object or pair.tag).value) or ""] = pair.value[0]
        pair = pair.value[1]
    return attributes


def _text(char: Any) -> str | None:
    if char.value is None:
        return None
    return str(char.value.decode("latin-1" if char.info.gp & LATIN_1_FLAG else "utf-8"))


def _texts_of(thing: Any, attribute: str) -> list[str]:
    texts = _attributes(thing).get(attribute)
    return [] if texts is None or not isinstance(texts.value, list) else [_text(char) or "" for char in texts.value]


def _column(name: str, thing: Any) -> pl.Series:
    """Return an R vector as a column: factors as ordered categories, Date and POSIXct as dates and times."""
    kinds, value = _texts_of(thing, "class"), thing.value
    if isinstance(value, list):
        if any(not isinstance(char.value, bytes | None) for char in value):
            raise SchemaError(f"column {name!r} is an R list: use texts, numbers, factors or dates.")
        return pl.Series(name, [_text(char) for char in value], dtype=pl.String)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "bif":
        raise SchemaError(f"column {name!r} has an R type that cannot be read: use texts, numbers, factors or dates.")
    is_missing = np.ma.getmaskarray(value)
    plain = np.ma.getdata(value)
    if "factor" in kinds:
        levels = _texts_of(thing, "levels")
        texts = pl.Series(name, [None, *levels], dtype=pl.String)
        return texts.gather(np.where(is_missing | (plain < 1), 0, plain)).cast(pl.Enum(levels))
    numbers = pl.Series(name, plain, nan_to_null=True).set(pl.Series(is_missing), None)
    if "Date" in kinds:
        return numbers.cast(pl.Float64).floor().cast(pl.Int32).cast(pl.Date)
    if "POSIXct" in kinds:
        return (numbers.cast(pl.Float64) * MICROSECONDS_PER_SECOND).round().cast(pl.Int64).cast(pl.Datetime("us"))
    return numbers


def _variable(name: str, thing: Any) -> Variable:
    """Return the metadata from haven: label, value labels, and user-missing values of SPSS."""
    attributes = _attributes(thing)
    codes = _numbers_of(attributes.get("labels"))
    words = _texts_of(attributes["labels"], "names") if codes else []
    low_high = _numbers_of(attributes.get("na_range"))
    missing: list[Any] = _numbers_of(attributes.get("na_values"))
    missing += [(low_high[0], low_high[1])] if len(low_high) == 2 else []
    measure = "ordinal" if "ordered" in _texts_of(thing, "class") else ""
    label, values = next(iter(_texts_of(thing, "label")), ""), tuple(zip(codes, words, strict=True))
    return Variable(name, kind="", label=label, values=values, missing=tuple(missing), measure=measure)


def _numbers_of(thing: Any) -> list[float]:
    return thing.value.astype(float).tolist() if thing is not None and isinstance(thing.value, np.ndarray) else []
