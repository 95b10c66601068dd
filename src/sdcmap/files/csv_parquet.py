"""Read and write CSV and Parquet, the formats without labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sdcmap.errors import MAX_PROBLEMS_SHOWN, SchemaError
from sdcmap.files.dialect import OUTPUT_DIALECT, UNSPECIFIED, Dialect, detect_dialect, open_text, split_records

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.data.microdata import Microdata
    from sdcmap.data.schema import Variable
    from sdcmap.files.missing_codes import Codes

NUMBER = re.compile(r"\s*[+-]?\d[\d.,' ]*\s*")
YEAR = re.compile(r"(19|20)\d\d")
MAX_COLUMNS = 10_000  # of any file; more make every measure too slow


def check_width(name: str, columns: int) -> None:
    """Raise SchemaError if a file has too many columns."""
    if columns > MAX_COLUMNS:
        raise SchemaError(f"{name} has {columns:,} columns; at most {MAX_COLUMNS:,} can be read. Select those needed.")


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file: its dialect, and the codes for missing values.

    columns : the columns to read again from a text file that was read before.
    rows : the number of records of that file.
    """

    dialect: Dialect = UNSPECIFIED
    missing: Codes = ()
    columns: tuple[str, ...] = ()
    rows: int = 0


def read_csv(path: Path, asked: ReadOptions) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Read a text file with a stated or detected dialect; codes such as 007 stay text, dates become dates."""
    from sdcmap.files.text_types import infer_types

    dialect = detect_dialect(path, asked.dialect)
    if not asked.columns:
        return infer_types(_texts(path, dialect), dialect, asked.missing), {}
    frame = _fields(path, dialect, asked.columns).select(asked.columns)  # header and rows were checked before
    if frame.height != asked.rows:
        frame = frame.filter(_record_lengths(path, dialect, frame.height) > 0)
    return infer_types(frame, dialect, asked.missing), {}


def read_typed_csv(path: Path, types: Mapping[str, pl.DataType], missing: Codes, *, excel_safe: bool) -> pl.DataFrame:
    """Read a file that was written by `write_csv`, in the types of its codebook."""
    import polars as pl

    from sdcmap.files.missing_codes import codes_for_column
    from sdcmap.files.text_types import insert_codes, parse_as, unquote_formulas

    columns, texts = [], _texts(path, OUTPUT_DIALECT)
    for text in unquote_formulas(texts) if excel_safe else texts:
        codes = codes_for_column(missing, text.name)
        is_code = text.is_in([code.code for code in codes])
        if (dtype := types.get(text.name, pl.String())) != pl.String:
            values = parse_as(text.set(is_code, None), dtype)
            text = insert_codes(values, text, is_code, codes) if is_code.any() else values
        columns.append(text)
    return pl.DataFrame(columns)


def _texts(path: Path, dialect: Dialect) -> pl.DataFrame:
    """Return every field as text; SchemaError if the header or the length of a row is wrong."""
    import polars as pl

    header = _header(path, dialect)
    check_width(path.name, len(header))
    times = Counter(header)
    repeated = [str(number) for number, name in enumerate(header, 1) if times[name] > 1][:MAX_PROBLEMS_SHOWN]
    if repeated:  # without a header the first line is data, so the error does not quote names
        raise SchemaError(f"{path.name} has columns with the same name: columns {', '.join(repeated)}. Rename them.")
    try:
        frame = _fields(path, dialect)
    except pl.exceptions.ComputeError:
        _record_lengths(path, dialect)
        raise
    if frame.height and frame[:, -1].null_count():  # rows that are too short end with null
        is_empty = _record_lengths(path, dialect, frame.height) == 0
        if len(header) == 1 and is_empty.any():
            raise SchemaError(
                f"{path.name} has one column and empty lines, the first in row {(is_empty.arg_max() or 0) + 1:,} after the "
                "header: they may be missing values or nothing. Write a code for missing values, and delete the others."
            )
        frame = frame.filter(~is_empty)
    _check_header(path, frame)
    return frame


def _header(path: Path, dialect: Dialect) -> list[str]:
    with open_text(path, dialect) as lines:
        return next(split_records(lines, dialect), [])


def _fields(path: Path, dialect: Dialect, columns: tuple[str, ...] | None = None) -> pl.DataFrame:
    """Return every field as text, of all columns or of these.

    polars keeps the quotes that are doubled within a quoted name, so the names are those of Python's reader.
    """
    import polars as pl

    header = _header(path, dialect)
    indices = range(len(header)) if columns is None else sorted(map(header.index, columns))
    # polars reads UTF-8 only; other encodings are converted in memory.
    source = path if dialect.encoding == "utf-8" else path.read_bytes().decode(dialect.encoding).encode()
    how = {"separator": dialect.sep, "quote_char": dialect.quote_char, "infer_schema": False}
    frame = pl.read_csv(source, columns=None if columns is None else [*indices], **how)  # type: ignore[arg-type]
    if frame.width == len(indices):
        frame.columns = [header[index] for index in indices]
    return frame


def _record_lengths(path: Path, dialect: Dialect, rows: int | None = None) -> pl.Series:
    """Return the number of fields of each record after the header, 0 for an empty line; SchemaError if they differ."""
    import polars as pl

    with open_text(path, dialect) as text:
        width, *lengths = (len(record) for record in split_records(text, dialect))
    fields = pl.Series(lengths, dtype=pl.Int64)
    ragged = (fields != width) & (fields > 0)
    if count := int(ragged.sum()):
        rows_have = "1 row has" if count == 1 else f"{count:,} rows have"
        raise SchemaError(
            f"{path.name} has {width:,} columns in its header, but {rows_have} more or fewer fields, "
            f"the first in row {(ragged.arg_max() or 0) + 1:,} after the header. State the separator and the quoting, or "
            "repair the file."
        ) from None
    if rows is not None and rows != len(fields):
        raise SchemaError(f"{path.name}: the ends of its records are ambiguous. State its quoting.")
    return fields


def _check_header(path: Path, frame: pl.DataFrame) -> None:
    """Raise SchemaError if most names are numbers or values of their own column, as in a file without a header."""
    import polars as pl

    below = frame.head(5000).select((pl.col(name) == name).any() for name in frame.columns).row(0)
    numbers = [bool(NUMBER.fullmatch(name) and not YEAR.fullmatch(name)) for name in frame.columns]
    suspicious = sum(is_value or is_number for is_value, is_number in zip(below, numbers, strict=True))
    if frame.height and suspicious * 2 > len(frame.columns):
        why = f"{suspicious} of {len(frame.columns)} fields of its first line are numbers or values of their own column"
        raise SchemaError(f"{path.name} seems to have no header: {why}. Add a line with the names of the columns.")


def write_csv(data: Microdata, path: Path) -> None:
    """Write a CSV file: commas, decimal points, UTF-8, dates such as 2020-02-29; missing is empty or its code."""
    import polars as pl

    from sdcmap.files.stat import frame_with_codes
    from sdcmap.files.text_types import quote_formulas

    frame = frame_with_codes(data, "csv")
    if data.schema.excel_safe:
        frame = quote_formulas(frame)
    for name, dtype in frame.schema.items():
        if dtype == pl.Duration:
            raise SchemaError(f"column {name!r} is a Duration, which CSV cannot store. Write a .parquet file.")
    missing = None
    if frame.width == 1 and frame[:, 0].null_count():
        # An empty line would be a record to some programs, and nothing to others. In texts "" is not missing.
        if frame.dtypes[0] in (pl.String, pl.Categorical, pl.Enum, pl.Null):
            raise SchemaError("CSV cannot store missing texts in a file of one column. Write a .parquet file.")
        missing = '""'
    frame.write_csv(path, null_value=missing)


def read_parquet(path: Path, asked: ReadOptions) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Read a Parquet file, which stores missing values itself."""
    import polars as pl

    return pl.read_parquet(path), {}


def write_parquet(data: Microdata, path: Path) -> None:
    from sdcmap.files.stat import frame_with_codes

    frame_with_codes(data, "parquet").write_parquet(path)


def scan_parquet(path: Path) -> pl.LazyFrame:
    """Return a Parquet file as a lazy frame."""
    import polars as pl

    return pl.scan_parquet(path)


def parquet_cells(path: Path) -> int:
    """Return rows times columns from the footer of a Parquet file."""
    import polars as pl

    scan = scan_parquet(path)
    return int(scan.select(pl.len()).collect().item()) * len(scan.collect_schema())
