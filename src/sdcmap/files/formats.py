"""The table of file formats. A new format needs a row in FORMATS, a reader, and a writer if it can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sdcmap.errors import MissingExtra, SchemaError
from sdcmap.files import csv_parquet
from sdcmap.files.csv_parquet import ReadOptions

if TYPE_CHECKING:  # the table must not import numpy and polars
    import polars as pl

    from sdcmap.data.microdata import Microdata
    from sdcmap.data.schema import Variable
    from sdcmap.files.missing_codes import Codes

    Raw = tuple[pl.DataFrame, Mapping[str, Variable]]  # the frame of a file, and the metadata of its variables
    Types = Mapping[str, pl.DataType]

    class ReadTyped(Protocol):
        """Read a written file in the types of its codebook."""

        def __call__(self, path: Path, types: Types, missing: Codes, *, excel_safe: bool) -> pl.DataFrame: ...


@dataclass(frozen=True)
class Format:
    """A file format: its file endings, and how it is read, written, checked and explained."""

    name: str  # as in a schema; also the ending of written files
    words: str  # the name for people
    endings: tuple[str, ...]  # of file names, in lower case, with the dot
    read: Callable[
        [Path, ReadOptions], Raw
    ]  # path, and what was asked for: the dialect of a text file, codes for "missing"
    write: Callable[[Microdata, Path], object] | None = None
    released_as: str = ""  # the format of a release if this one cannot be written
    read_typed: ReadTyped | None = None  # if the file does not store types
    dialects: bool = False  # whether it is text in one of several dialects
    labels: bool = False  # whether it has labels and user-missing codes
    packed: bool = False  # whether it is compressed: its size in memory is checked before it is decoded
    cells: Callable[[Path], int] = lambda path: 0  # rows times columns, from the header (0: unknown)
    scan: Callable[[Path], pl.LazyFrame] | None = None  # if it can be read in blocks
    beside: tuple[str, ...] = ()  # endings of files that are written with it
    hint: str = ""  # what a valid file looks like, for errors
    written: str = ""  # a description of written files, for data users
    code: tuple[str, str] = (
        "import sdcmap",
        'data = sdcmap.read("{file}").frame()',
    )  # how a data user reads it in Python

    @property
    def released(self) -> str:
        """The name of the format in which a release of such a file is written."""
        return self.released_as or self.name


def _read_r(path: Path, asked: ReadOptions) -> Raw:
    if not find_spec("rdata"):
        raise MissingExtra("reading R files needs an extra package: pip install 'sdcmap[r]'")
    from sdcmap.files.stat import read_in_subprocess

    return read_in_subprocess(path, "rds")


def _read_stat(form: str, path: Path, asked: ReadOptions) -> Raw:
    from sdcmap.files.stat import read_in_subprocess

    return read_in_subprocess(path, form)


def _write_stat(form: str, data: Microdata, path: Path) -> None:
    from sdcmap.files.stat import write_statfile

    write_statfile(data, path, form)


def _stat_cells(form: str, path: Path) -> int:
    from sdcmap.files.stat import stat_cells

    return stat_cells(path, form)


def _statistics(name: str, words: str, endings: tuple[str, ...], verb: str = "", **more: Any) -> Format:
    """Return a format of a statistics package, which pyreadstat reads, and writes if `verb` names its reader."""
    if verb:
        reading = f'data, facts = pyreadstat.{verb}("{{file}}", output_format="polars")'
        more |= {"write": partial(_write_stat, name), "code": ("import pyreadstat", reading)}
    read, cells = partial(_read_stat, name), partial(_stat_cells, name)
    return Format(name, words, endings, read, labels=True, packed=True, cells=cells, **more)


POLARS = "import polars as pl"
FORMATS = (
    Format(
        "csv", "CSV", (".csv", ".tsv", ".txt"), csv_parquet.read_csv, csv_parquet.write_csv,
        read_typed=csv_parquet.read_typed_csv, dialects=True,
        hint="A text file needs a header and equally many fields in each row: state its separator, quoting or encoding.",
        written="data.csv is UTF-8 with commas between fields and decimal points, texts in double quotes where needed, "
        "and dates such as 2020-02-29. An empty field is missing; the codebook lists codes for other reasons.",
        code=(POLARS, 'data = pl.read_csv("{file}", infer_schema_length=None)'),
    ),
    Format(
        "parquet", "Parquet", (".parquet", ".pq"), csv_parquet.read_parquet, csv_parquet.write_parquet, packed=True,
        cells=csv_parquet.parquet_cells, scan=csv_parquet.scan_parquet, code=(POLARS, 'data = pl.read_parquet("{file}")'),
    ),
    _statistics("sav", "SPSS", (".sav", ".zsav"), "read_sav"),
    _statistics("dta", "Stata", (".dta",), "read_dta"),
    _statistics("sas7bdat", "SAS", (".sas7bdat",), released_as="xpt"),
    _statistics("xpt", "SAS", (".xpt", ".xport"), "read_xport", beside=(".sas",)),
    Format(
        "rds", "R", (".rds", ".rdata", ".rda"), _read_r, released_as="csv", packed=True,
    ),
)  # fmt: skip


def endings() -> tuple[str, ...]:
    """Return the endings of all files that can be read."""
    return tuple(ending for form in FORMATS for ending in form.endings)


def words() -> str:
    """Return the formats in words, such as "CSV, Parquet or SAS"."""
    names = list(dict.fromkeys(form.words for form in FORMATS))
    return f"{', '.join(names[:-1])} or {names[-1]}"


def is_data_file(name: str | Path) -> bool:
    """Return whether a file name has the ending of a known format."""
    return Path(name).suffix.lower() in endings()


def format_of(path: Path) -> Format:
    """Return the format of a file by the ending of its name."""
    for form in FORMATS:
        if path.suffix.lower() in form.endings:
            return form
    raise SchemaError(f"{path.name}: the file's ending must be one of {', '.join(f.endings[0] for f in FORMATS)}.")


def format_named(name: str) -> Format:
    """Return the format with this name, as in a schema."""
    return next(form for form in FORMATS if form.name == name)
