"""Every file format, a row each: a new one is a row in FORMATS, a reader, and a writer where it can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdcmap.errors import SchemaError
from sdcmap.files import plain
from sdcmap.files.plain import Asked

if TYPE_CHECKING:  # the table is read where numpy and polars are not needed yet
    import polars as pl

    from sdcmap.data.microdata import Microdata
    from sdcmap.data.schema import Variable
    from sdcmap.files.missing_codes import Codes

    Raw = tuple[pl.DataFrame, Mapping[str, Variable]]  # a file's frame, and what it says of its variables
    Types = Mapping[str, pl.DataType]


@dataclass(frozen=True)
class Format:
    """A file format: how it is told by its ending, read, written, weighed and explained."""

    name: str  # as a schema has it; the ending of a file that we write
    words: str  # as people call it
    endings: tuple[str, ...]  # of file names, lower case, with their dot
    read: Callable[[Path, Asked], Raw]  # path, and what was asked for: the dialect of a text file, codes for "missing"
    write: Callable[[Microdata, Path], object] | None = None
    released_as: str = ""  # the format of a release where this one cannot be written
    read_typed: Callable[[Path, Types, Codes], pl.DataFrame] | None = None  # where the file does not tell its types
    dialects: bool = False  # how it is written differs, and is sensed
    labels: bool = False  # it carries labels and user-missing codes
    packed: bool = False  # few bytes may stand for many: it is weighed before it is decoded
    cells: Callable[[Path], int] = lambda path: 0  # rows times columns, by the header (0: it does not say)
    scan: Callable[[Path], pl.LazyFrame] | None = None  # where it can be read block by block
    beside: tuple[str, ...] = ()  # endings of files that are written beside it
    hint: str = ""  # what such a file must be, for one that cannot be read
    written: str = ""  # how a file that we write is written, for its reader
    code: tuple[str, str] = ("import sdcmap", 'data = sdcmap.read("{file}").frame()')  # how a data user reads it

    @property
    def released(self) -> str:
        """The name of the format that a release of such a file is written in."""
        return self.released_as or self.name


def _read_r(path: Path, asked: Asked) -> Raw:
    from sdcmap.files.r_files import read_r

    return read_r(path)


def _read_stat(form: str, path: Path, asked: Asked) -> Raw:
    from sdcmap.files.stat import read_apart

    return read_apart(path, form)


def _write_stat(form: str, data: Microdata, path: Path) -> None:
    from sdcmap.files.stat import write_statfile

    write_statfile(data, path, form)


def _stat_cells(form: str, path: Path) -> int:
    from sdcmap.files.stat import stat_cells

    return stat_cells(path, form)


def _statistics(name: str, words: str, endings: tuple[str, ...], verb: str = "", **more: Any) -> Format:
    """A format of a statistics package, which pyreadstat reads, and writes where it has a verb to read it back."""
    if verb:
        reading = f'data, facts = pyreadstat.{verb}("{{file}}", output_format="polars")'
        more |= {"write": partial(_write_stat, name), "code": ("import pyreadstat", reading)}
    read, cells = partial(_read_stat, name), partial(_stat_cells, name)
    return Format(name, words, endings, read, labels=True, packed=True, cells=cells, **more)


POLARS = "import polars as pl"
FORMATS = (
    Format(
        "csv", "CSV", (".csv", ".tsv", ".txt"), plain.read_csv, plain.write_csv, read_typed=plain.read_typed_csv,
        dialects=True,
        hint="A text file has a header and as many fields in each row: state its separator, quoting or encoding.",
        written="data.csv is UTF-8 with commas between fields and decimal points, texts in double quotes where they need "
        "them, and dates such as 2020-02-29. An empty field is missing; the codebook names the codes for other reasons.",
        code=(POLARS, 'data = pl.read_csv("{file}", infer_schema_length=None)'),
    ),
    Format(
        "parquet", "Parquet", (".parquet", ".pq"), plain.read_parquet, plain.write_parquet, packed=True,
        cells=plain.parquet_cells, scan=plain.scan_parquet, code=(POLARS, 'data = pl.read_parquet("{file}")'),
    ),
    _statistics("sav", "SPSS", (".sav", ".zsav"), "read_sav"),
    _statistics("dta", "Stata", (".dta",), "read_dta"),
    _statistics("sas7bdat", "SAS", (".sas7bdat",), released_as="xpt"),
    _statistics("xpt", "SAS", (".xpt", ".xport"), "read_xport", beside=(".sas",)),
    Format(
        "rds", "R", (".rds", ".rdata", ".rda"), _read_r, released_as="csv", packed=True, hint="It holds one data frame.",
    ),
)  # fmt: skip


def endings() -> tuple[str, ...]:
    """The endings of all files that can be read."""
    return tuple(ending for form in FORMATS for ending in form.endings)


def words() -> str:
    """The formats as people call them, such as "CSV, Parquet or SAS"."""
    names = list(dict.fromkeys(form.words for form in FORMATS))
    return f"{', '.join(names[:-1])} or {names[-1]}"


def is_data_file(name: str | Path) -> bool:
    """Whether a name ends as one of the formats does."""
    return Path(name).suffix.lower() in endings()


def format_of(path: Path) -> Format:
    """The format that the name's ending tells."""
    for form in FORMATS:
        if path.suffix.lower() in form.endings:
            return form
    raise SchemaError(f"{path.name}: the file's ending must be one of {', '.join(f.endings[0] for f in FORMATS)}.")


def format_named(name: str) -> Format:
    """The format of this name, as a schema has it."""
    return next(form for form in FORMATS if form.name == name)
