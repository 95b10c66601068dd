"""R's .rds and .RData: the one data frame in them, with factors, dates, and the labels that package haven keeps.

Package rdata parses the file; the objects are turned into columns here, so that NA, factors and dates stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import MissingExtra, SchemaError

LATIN_1 = 4  # the mark of a text in Latin-1; R writes ASCII and UTF-8 else
SECONDS = 1_000_000  # microseconds


def read_r(path: Path) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """The data frame of the file; SchemaError where it holds none, or several."""
    try:
        from rdata.parser import parse_file
    except ImportError:
        raise MissingExtra("files of R need: pip install 'sdcmap[r]'") from None
    frames = [found for found in _objects(parse_file(path).object) if "data.frame" in _texts_of(found, "class")]
    if len(frames) != 1:
        raise SchemaError(f"{path.name} holds {len(frames)} data frames, and one is read: save it alone, by saveRDS.")
    names = _texts_of(frames[0], "names")
    if len(set(names)) < len(names):
        raise SchemaError(f"{path.name} has two columns of one name.")
    columns = dict(zip(names, frames[0].value, strict=True))
    frame = pl.DataFrame([_column(name, column) for name, column in columns.items()])
    return frame, {name: _fact(name, column) for name, column in columns.items()}


def _objects(first: Any) -> Iterator[Any]:
    """The object of an .rds file; those of an .RData file, which lie in a list of pairs."""
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
    return str(char.value.decode("latin-1" if char.info.gp & LATIN_1 else "utf-8"))


def _texts_of(thing: Any, attribute: str) -> list[str]:
    found = _attributes(thing).get(attribute)
    return [] if found is None or not isinstance(found.value, list) else [_text(char) or "" for char in found.value]


def _column(name: str, thing: Any) -> pl.Series:
    """One vector of R as a column: factors as categories in their order, Date and POSIXct as what they are."""
    kinds, value = _texts_of(thing, "class"), thing.value
    if isinstance(value, list):
        if any(not isinstance(char.value, bytes | None) for char in value):
            raise SchemaError(f"column {name!r} is a list of R; texts, numbers, factors and dates are read.")
        return pl.Series(name, [_text(char) for char in value], dtype=pl.String)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "bif":
        raise SchemaError(f"column {name!r} is of a type of R that is not read: texts, numbers, factors and dates are.")
    gone = np.ma.getmaskarray(value)
    plain = np.ma.getdata(value)
    if "factor" in kinds:
        levels = _texts_of(thing, "levels")
        chosen = pl.Series(name, [None, *levels], dtype=pl.String).gather(np.where(gone | (plain < 1), 0, plain))
        return chosen.cast(pl.Enum(levels))
    numbers = pl.Series(name, plain, nan_to_null=True).set(pl.Series(gone), None)
    if "Date" in kinds:
        return numbers.cast(pl.Float64).floor().cast(pl.Int32).cast(pl.Date)
    if "POSIXct" in kinds:
        return (numbers.cast(pl.Float64) * SECONDS).round().cast(pl.Int64).cast(pl.Datetime("us"))
    return numbers


def _fact(name: str, thing: Any) -> Variable:
    """What haven keeps of a variable: its label, value labels, and SPSS's user-missing values."""
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
