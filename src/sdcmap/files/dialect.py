"""The dialect of a text file: separator, decimal and thousands mark, quoting and encoding; detected if not stated.

`look` shows the detected dialect and stores it in the plan, so that a study always reads the file the same way.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, TextIO

from sdcmap.errors import PlanError, SchemaError, did_you_mean

NONE = "none"  # stands for no mark
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
DECIMALS = {".": "decimal points", ",": "decimal commas"}
THOUSANDS = {NONE: "", ".": "dots", ",": "commas", " ": "blanks", "'": "apostrophes", "\u00a0": "hard blanks"}
QUOTES = {'"': "", "'": "quoted by apostrophes", NONE: "unquoted"}
ENCODINGS = {"utf-8": "UTF-8", "latin-1": "Latin-1", "cp1252": "CP1252", "utf-16": "UTF-16"}
MARKS = {"sep": SEPARATORS, "decimal": DECIMALS, "thousands": THOUSANDS, "quote": QUOTES, "encoding": ENCODINGS}
SAMPLE_CHARACTERS = 1 << 16  # read at the beginning and at three later positions, to detect marks
DECODE_BLOCK_BYTES = 1 << 24  # decoded at a time, to detect the encoding of the whole file
COMPRESSED_SIGNATURES = (
    b"\x1f\x8b",
    b"\x78\x01",
    b"\x78\x5e",
    b"\x78\x9c",
    b"\x78\xda",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"\xfd7zXZ",
)
CP1252_ONLY = re.compile(rb"[\x80\x82-\x8c\x8e\x91-\x9c\x9e\x9f]")  # characters in CP1252, control codes in Latin-1
DIGITS_TO_ZERO = str.maketrans(
    "123456789", "000000000"
)  # cells such as 1.234,5 and 6.789,0 have the same shape, and are counted together
UNDEFINED_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # in CP1252


@dataclass(frozen=True)
class Dialect:
    r"""The dialect of a text file; empty fields are detected.

    Parameters
    ----------
    sep : "," ";" "|" or a tab ("\t", or the word "tab").
    decimal : "." or ",".
    thousands : "." "," "'" a blank, or "none".
    quote : '"' or "'", or "none".
    encoding : "utf-8", "latin-1", "cp1252" or "utf-16".

    >>> Dialect(sep=";", decimal=",").words
    'semicolons, decimal commas'
    """

    sep: str = ""
    decimal: str = ""
    thousands: str = ""
    quote: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        if self.sep.lower() in ("tab", "\\t"):
            object.__setattr__(self, "sep", "\t")
        given = [(name, getattr(self, name), known) for name, known in MARKS.items()]
        wrong = [(f"{name} must be one of", mark, known) for name, mark, known in given if mark and mark not in known]
        problems = [f"{must} {', '.join(map(repr, known))}.{did_you_mean(mark, known)}" for must, mark, known in wrong]
        if self.decimal and self.decimal == self.thousands:
            problems.append("decimal and thousands must be different marks.")
        if problems:
            raise PlanError(problems)

    @property
    def words(self) -> str:
        """The dialect in words, such as "semicolons, decimal commas, CP1252"."""
        thousands = THOUSANDS.get(self.thousands, "")
        marks = (SEPARATORS.get(self.sep), DECIMALS.get(self.decimal), f"thousands by {thousands}" if thousands else "")
        return ", ".join(filter(None, (*marks, QUOTES.get(self.quote), ENCODINGS.get(self.encoding))))

    @property
    def quote_char(self) -> str | None:
        """The quote character for a CSV reader; None if fields are not quoted."""
        return None if self.quote == NONE else self.quote or '"'


OUTPUT_DIALECT = Dialect(",", ".", NONE, '"', "utf-8")  # of files that are written
UNSPECIFIED = Dialect()


def detect_dialect(path: Path, stated: Dialect = UNSPECIFIED) -> Dialect:
    """Return the dialect of a file: the stated fields, and the others as detected from samples of the file."""
    if len(explicit_fields(stated)) == len(fields(stated)):
        return stated
    reject_compressed(path)
    encoding = stated.encoding or _detect_encoding(path)
    # Samples of four positions, because decimals may first occur late in a file.
    samples = list(_read_samples(path, encoding))
    head = samples[0]
    dialect = replace(stated, encoding=encoding, quote=stated.quote or _detect_quote(head))
    dialect = replace(dialect, sep=stated.sep or _detect_separator(head, dialect))
    cells = {
        cell for sample in samples for row in split_records(io.StringIO(sample, newline=""), dialect) for cell in row
    }
    decimal, thousands = _number_marks(Counter(cell.translate(DIGITS_TO_ZERO) for cell in cells), dialect)
    return replace(dialect, decimal=decimal, thousands=thousands)


def explicit_fields(dialect: Dialect) -> dict[str, Any]:
    """Return the fields that are not empty."""
    return {f.name: value for f in fields(dialect) if (value := getattr(dialect, f.name))}


def reject_compressed(path: Path) -> None:
    """Raise SchemaError for compressed content, whatever the file name: a few bytes may expand to gigabytes."""
    with path.open("rb") as file:
        if file.read(6).startswith(COMPRESSED_SIGNATURES):
            raise SchemaError(
                f"{path.name} is compressed (gzip, zlib, zstd, bzip2 or xz), not text: decompress it first."
            )


def open_text(path: Path, dialect: Dialect) -> TextIO:
    """Open a file as text, without its byte order mark."""
    reject_compressed(path)
    return path.open(encoding="utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding, newline="")


def split_records(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """Return the fields of each record, as split by Python's csv reader."""
    if dialect.quote_char is None:
        return csv.reader(lines, delimiter=dialect.sep or ",", quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=dialect.sep or ",", quotechar=dialect.quote_char)


def number_pattern(decimal: str, thousands: str) -> str:
    """Return the pattern of a number with these marks."""
    point = re.escape(decimal)
    grouped = "" if thousands == NONE else rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|"
    return rf"^\s*[+-]?(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?\s*$"


# ---- detection --------------------------------------------------------------------------------------------------
def _detect_encoding(path: Path) -> str:
    """Return UTF-8 if the whole file is valid; else CP1252 if it has characters that Latin-1 lacks, else Latin-1."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        try:
            while block := file.read(DECODE_BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            file.seek(0)
            return _detect_latin(iter(lambda: file.read(DECODE_BLOCK_BYTES), b""))
    return "utf-8"


def _detect_latin(blocks: Iterable[bytes]) -> str:
    windows = False
    for block in blocks:
        if UNDEFINED_IN_CP1252.search(block):
            return "latin-1"
        # Bytes 0x80 to 0x9f are control characters in Latin-1, but letters and signs in CP1252.
        windows = windows or CP1252_ONLY.search(block) is not None
    return "cp1252" if windows else "latin-1"


def _read_samples(path: Path, encoding: str) -> Iterator[str]:
    """Yield samples of complete lines from the beginning of a file and from three later positions."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for quarter in range(4):
            start = size * quarter // 4
            if quarter and start < SAMPLE_CHARACTERS:
                return
            file.seek(start - start % 2)  # an even position, for encodings with two bytes per character
            text = file.read(SAMPLE_CHARACTERS).decode(
                "utf-16-le" if quarter and encoding == "utf-16" else encoding, "replace"
            )
            lines = text.removeprefix("\ufeff").splitlines(keepends=True)
            # The first and the last line of a sample may be incomplete.
            complete = lines[1 if quarter else 0 : -1 if len(lines) > 1 and start + SAMPLE_CHARACTERS < size else None]
            yield "".join(complete)


def _detect_quote(head: str) -> str:
    if '"' in head:
        return '"'
    quoted = re.findall(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|\r\n]|$)", head, re.MULTILINE)
    return "'" if len(quoted) >= max(2, head.count("'") // 3) else '"'


def _detect_separator(head: str, dialect: Dialect) -> str:
    """Return the mark that splits the most lines into equal numbers of fields; a comma if none splits anything."""

    def uniformity(sep: str) -> tuple[float, int]:
        widths: list[int] = []
        with suppress(csv.Error):
            for row in islice(split_records(io.StringIO(head, newline=""), replace(dialect, sep=sep)), 200):
                widths += [len(row)] if row else []
        width = widths[0] if widths else 1
        return (widths.count(width) / len(widths), width) if width > 1 else (0.0, 1)

    return max(SEPARATORS, key=uniformity)


def _number_marks(shapes: Mapping[str, int], stated: Dialect) -> tuple[str, str]:
    """Return the decimal and thousands marks with which the most cells are numbers; of equal ones, the simplest."""

    def count(marks: tuple[str, str]) -> int:
        number = re.compile(number_pattern(*marks))
        return sum(times for shape, times in shapes.items() if number.match(shape))

    decimals = [stated.decimal] if stated.decimal else DECIMALS
    pairs = product(decimals, [stated.thousands] if stated.thousands else THOUSANDS)
    return max((pair for pair in pairs if pair[0] != pair[1]), key=count)
