"""CSV and Parquet: files that hold values and no labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sdcmap.errors import MAX_PROBLEMS_SHOWN, SchemaError
from sdcmap.files.dialect import OURS, SENSED, Dialect, opened, records, sensed

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.data.microdata import Microdata
    from sdcmap.data.schema import Variable
    from sdcmap.files.missing_codes import Codes

NUMBER = re.compile(r"\s*[+-]?\d[\d.,' ]*\s*")
YEAR = re.compile(r"(19|20)\d\d")
MOST_COLUMNS = 10_000


def check_width(name: str, columns: int) -> None:
    """SchemaError for a file of more columns than anything here is made for."""
    if columns > MOST_COLUMNS:
        most = f"at most {MOST_COLUMNS:,} are read"
        raise SchemaError(f"{name} has {columns:,} columns, and {most}: select those needed.")


@dataclass(frozen=True)
class Asked:
    """What was asked for when a file is read: its dialect, and the codes that mean "missing".

    columns : of a text file that was read before, those to be read again; rows : how many records it had then.
    """

    dialect: Dialect = SENSED
    missing: Codes = ()
    columns: tuple[str, ...] = ()
    rows: int = 0


def read_csv(path: Path, asked: Asked) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """A text file, its dialect sensed where it is not stated; codes such as 007 stay text, dates are dates."""
    from sdcmap.files.text_types import typed

    dialect = sensed(path, asked.dialect)
    if not asked.columns:
        return typed(_texts(path, dialect), dialect, asked.missing), {}
    frame = _fields(path, dialect, asked.columns).select(asked.columns)  # header and rows were looked at before
    if frame.height != asked.rows:
        frame = frame.filter(_record_lengths(path, dialect, frame.height) > 0)
    return typed(frame, dialect, asked.missing), {}


def read_typed_csv(path: Path, types: Mapping[str, pl.DataType], missing: Codes) -> pl.DataFrame:
    """A file that we wrote, in the types that its codebook states."""
    import polars as pl

    from sdcmap.files.missing_codes import of_column
    from sdcmap.files.text_types import with_codes, written_as

    columns = []
    for text in _texts(path, OURS):
        codes = of_column(missing, text.name)
        coded = text.is_in([code.code for code in codes])
        if (dtype := types.get(text.name, pl.String())) != pl.String:
            values = written_as(text.set(coded, None), dtype)
            text = with_codes(values, text, coded, codes) if coded.any() else values
        columns.append(text)
    return pl.DataFrame(columns)


def _texts(path: Path, dialect: Dialect) -> pl.DataFrame:
    """Every field as the text it is; SchemaError where the header or a row's length is wrong."""
    import polars as pl

    with opened(path, dialect) as lines:
        header = next(records(lines, dialect), [])
    check_width(path.name, len(header))
    times = Counter(header)
    twice = [str(place) for place, name in enumerate(header, 1) if times[name] > 1][:MAX_PROBLEMS_SHOWN]
    if twice:  # the first line of a file without a header is data, so names are not quoted
        raise SchemaError(f"{path.name} has two columns of one name: columns {', '.join(twice)}.")
    try:
        frame = _fields(path, dialect)
    except pl.exceptions.ComputeError:
        _record_lengths(path, dialect)
        raise
    if len(header) > 1 and frame.height and frame[:, -1].null_count():  # a row that is too short ends with nothing
        frame = frame.filter(_record_lengths(path, dialect, frame.height) > 0)
    _check_header(path, frame)
    return frame


def _fields(path: Path, dialect: Dialect, columns: tuple[str, ...] | None = None) -> pl.DataFrame:
    import polars as pl

    source = path if dialect.encoding == "utf-8" else path.read_bytes().decode(dialect.encoding).encode()
    how = {"separator": dialect.sep, "quote_char": dialect.quote_char, "infer_schema": False}
    return pl.read_csv(source, columns=None if columns is None else list(columns), **how)  # type: ignore[arg-type]


def _record_lengths(path: Path, dialect: Dialect, rows: int | None = None) -> pl.Series:
    """The number of fields of each record after the header; SchemaError where they differ. An empty line has none."""
    import polars as pl

    with opened(path, dialect) as text:
        width, *lengths = (len(record) for record in records(text, dialect))
    lines = pl.Series(lengths, dtype=pl.Int64)
    ragged = (lines != width) & (lines > 0)
    if ragged.any():
        raise SchemaError(
            f"{path.name} has {width} columns by its header, and {int(ragged.sum())} rows with more or fewer fields, first "
            f"row {(ragged.arg_max() or 0) + 1} after the header: state the separator and the quoting, or repair it."
        ) from None
    if rows is not None and rows != len(lines):
        raise SchemaError(f"{path.name}: it cannot be told where its records end; state its quoting.")
    return lines


def _check_header(path: Path, frame: pl.DataFrame) -> None:
    """SchemaError where most names are numbers, or occur as values below themselves: the file has no header."""
    import polars as pl

    below = frame.head(5000).select((pl.col(name) == name).any() for name in frame.columns).row(0)
    numbers = [bool(NUMBER.fullmatch(name) and not YEAR.fullmatch(name)) for name in frame.columns]
    doubtful = sum(met or number for met, number in zip(below, numbers, strict=True))
    if frame.height and doubtful * 2 > len(frame.columns):
        which = f"{doubtful} of {len(frame.columns)} fields of its first line are numbers or values of their own column"
        raise SchemaError(f"{path.name} seems to have no header: {which}. Add a line with the names of the columns.")


def write_csv(data: Microdata, path: Path) -> None:
    """Commas, decimal points, UTF-8, dates as 2020-02-29; an empty field is missing, a code for it stays that code."""
    import polars as pl

    from sdcmap.files.stat import coded_frame

    frame = coded_frame(data, "csv")
    for name, dtype in frame.schema.items():
        if dtype == pl.Duration:
            raise SchemaError(f"column {name!r} is Duration, which a .csv file cannot hold; write a .parquet file.")
    frame.write_csv(path)


def read_parquet(path: Path, asked: Asked) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """A Parquet file; it says itself what is missing."""
    import polars as pl

    return pl.read_parquet(path), {}


def write_parquet(data: Microdata, path: Path) -> None:
    from sdcmap.files.stat import coded_frame

    coded_frame(data, "parquet").write_parquet(path)


def scan_parquet(path: Path) -> pl.LazyFrame:
    """A Parquet file that is read when its rows are asked for."""
    import polars as pl

    return pl.scan_parquet(path)


def parquet_cells(path: Path) -> int:
    """Rows times columns, as the footer states them."""
    import polars as pl

    scan = scan_parquet(path)
    return int(scan.select(pl.len()).collect().item()) * len(scan.collect_schema())
