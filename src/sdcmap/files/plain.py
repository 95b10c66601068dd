"""CSV and Parquet: files that hold values and no labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sdcmap.errors import MOST_PROBLEMS, SchemaError

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.data.microdata import Microdata
    from sdcmap.data.schema import Variable


MOST_COLUMNS = 10_000


def check_width(name: str, columns: int) -> None:
    """SchemaError for a file of more columns than anything here is made for."""
    if columns > MOST_COLUMNS:
        raise SchemaError(
            f"{name} has {columns:,} columns, and at most {MOST_COLUMNS:,} are read: select those needed."
        )


def read_csv(path: Path, missing: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """A CSV file; a column with codes such as 007 stays text, so that it is written back as it was."""
    import polars as pl

    header = pl.read_csv(path, has_header=False, n_rows=1, infer_schema=False).row(0)
    check_width(path.name, len(header))
    times = Counter(header)
    twice = [str(place) for place, name in enumerate(header, 1) if times[name] > 1][:MOST_PROBLEMS]
    if twice:  # the first line of a file without a header is data, so names are not quoted
        raise SchemaError(f"{path.name} has two columns of one name: columns {', '.join(twice)}.")
    padded = pl.scan_csv(path, infer_schema=False).select(pl.all().str.contains(r"^[+-]?0\d").any()).collect()
    texts = {name: pl.String for name, is_padded in zip(padded.columns, padded.row(0), strict=True) if is_padded}
    frame = pl.read_csv(path, infer_schema_length=None, null_values=list(missing) or None, schema_overrides=texts)
    return frame, {}


def read_typed_csv(path: Path, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A CSV file in the types that its codebook states."""
    import polars as pl

    return pl.read_csv(path, schema_overrides=types)


def write_csv(data: Microdata, path: Path) -> None:
    import polars as pl

    frame = data.frame()
    for name, dtype in frame.schema.items():
        if dtype == pl.Duration:
            raise SchemaError(f"column {name!r} is Duration, which a .csv file cannot hold; write a .parquet file.")
    frame.write_csv(path)


def read_parquet(path: Path, missing: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """A Parquet file; it says itself what is missing."""
    import polars as pl

    return pl.read_parquet(path), {}


def write_parquet(data: Microdata, path: Path) -> None:
    data.frame().write_parquet(path)


def scan_parquet(path: Path) -> pl.LazyFrame:
    """A Parquet file that is read when its rows are asked for."""
    import polars as pl

    return pl.scan_parquet(path)


def parquet_cells(path: Path) -> int:
    """Rows times columns, as the footer states them."""
    import polars as pl

    scan = scan_parquet(path)
    return int(scan.select(pl.len()).collect().item()) * len(scan.collect_schema())
