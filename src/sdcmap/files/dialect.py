"""How a text file is written: separator, decimal and thousands mark, quoting and encoding; sensed where not stated.

What is sensed is shown by `look` and kept in the plan, so that a study reads the file the same way ever after.
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

NONE = "none"  # the word for no mark at all
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
DECIMALS = {".": "decimal points", ",": "decimal commas"}
THOUSANDS = {NONE: "", ".": "dots", ",": "commas", " ": "blanks", "'": "apostrophes", "\u00a0": "hard blanks"}
QUOTES = {'"': "", "'": "quoted by apostrophes", NONE: "unquoted"}
ENCODINGS = {"utf-8": "UTF-8", "latin-1": "Latin-1", "cp1252": "CP1252", "utf-16": "UTF-16"}
MARKS = {"sep": SEPARATORS, "decimal": DECIMALS, "thousands": THOUSANDS, "quote": QUOTES, "encoding": ENCODINGS}
SAMPLE = 1 << 16  # characters that are looked at, at the beginning and at three places further on
BLOCK = 1 << 24  # bytes that are decoded at a time
PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
C1 = re.compile(rb"[\x80\x82-\x8c\x8e\x91-\x9c\x9e\x9f]")  # characters in CP1252, control codes in Latin-1
SHAPE = str.maketrans("123456789", "000000000")  # numbers of one shape are numbers by the same marks
UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # in CP1252


@dataclass(frozen=True)
class Dialect:
    r"""How a text file is written; an empty field is sensed.

    Parameters
    ----------
    sep : "," ";" "|" or a tab ("\t", or the word "tab"). decimal : "." or ",". thousands : "." "," "'" a blank, or "none".
    quote : '"' or "'", or "none". encoding : "utf-8", "latin-1", "cp1252" or "utf-16".

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
            problems.append("decimal and thousands must be two marks.")
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
        """The mark itself, as readers want it."""
        return None if self.quote == NONE else self.quote or '"'


OURS = Dialect(",", ".", NONE, '"', "utf-8")  # what we write
SENSED = Dialect()  # nothing stated


def sensed(path: Path, stated: Dialect = SENSED) -> Dialect:
    """The dialect of a file: what is stated, and what its first characters and some further on tell of the rest."""
    if len(stated_fields(stated)) == len(fields(stated)):
        return stated
    refuse_packed(path)
    encoding = stated.encoding or _encoding(path)
    samples = list(_samples(path, encoding))
    head = samples[0]
    found = replace(stated, encoding=encoding, quote=stated.quote or _quote(head))
    found = replace(found, sep=stated.sep or _separator(head, found))
    cells = {cell for sample in samples for row in records(io.StringIO(sample, newline=""), found) for cell in row}
    decimal, thousands = _marks(Counter(cell.translate(SHAPE) for cell in cells), found)
    return replace(found, decimal=decimal, thousands=thousands)


def stated_fields(dialect: Dialect) -> dict[str, Any]:
    """The fields that are not empty."""
    return {f.name: value for f in fields(dialect) if (value := getattr(dialect, f.name))}


def refuse_packed(path: Path) -> None:
    """SchemaError for content that is packed, whatever the name says: a few of its bytes may stand for many."""
    with path.open("rb") as file:
        if file.read(6).startswith(PACKED):
            raise SchemaError(f"{path.name} is packed (gzip, zlib, zstd, bzip2 or xz) and no text: unpack it first.")


def opened(path: Path, dialect: Dialect) -> TextIO:
    """The file as text, without a byte order mark."""
    refuse_packed(path)
    return path.open(encoding="utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding, newline="")


def records(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    """The fields of each record, as Python's own reader splits them."""
    if dialect.quote_char is None:
        return csv.reader(lines, delimiter=dialect.sep or ",", quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=dialect.sep or ",", quotechar=dialect.quote_char)


def number_pattern(decimal: str, thousands: str) -> str:
    """What a number looks like with these marks."""
    point = re.escape(decimal)
    grouped = "" if thousands == NONE else rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|"
    return rf"^\s*[+-]?(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?\s*$"


# ---- sensing ----------------------------------------------------------------------------------------------------
def _encoding(path: Path) -> str:
    """UTF-8 where the whole file is; else CP1252 where it has characters that Latin-1 has not, else Latin-1."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            file.seek(0)
            return _latin(iter(lambda: file.read(BLOCK), b""))
    return "utf-8"


def _latin(blocks: Iterable[bytes]) -> str:
    windows = False
    for block in blocks:
        if UNDEFINED.search(block):
            return "latin-1"
        windows = windows or C1.search(block) is not None
    return "cp1252" if windows else "latin-1"


def _samples(path: Path, encoding: str) -> Iterator[str]:
    """Whole lines from the beginning of a file, and from three places further on."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for place in range(4):
            start = size * place // 4
            if place and start < SAMPLE:
                return
            file.seek(start - start % 2)  # an even place, for encodings of two bytes
            text = file.read(SAMPLE).decode("utf-16-le" if place and encoding == "utf-16" else encoding, "replace")
            lines = text.removeprefix("\ufeff").splitlines(keepends=True)
            whole = lines[1 if place else 0 : -1 if len(lines) > 1 and start + SAMPLE < size else None]
            yield "".join(whole)


def _quote(head: str) -> str:
    if '"' in head:
        return '"'
    marked = re.findall(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|\r\n]|$)", head, re.MULTILINE)
    return "'" if len(marked) >= max(2, head.count("'") // 3) else '"'


def _separator(head: str, dialect: Dialect) -> str:
    """The mark that splits most lines alike, into most fields; a comma where none splits anything."""

    def alike(sep: str) -> tuple[float, int]:
        widths: list[int] = []
        with suppress(csv.Error):
            for row in islice(records(io.StringIO(head, newline=""), replace(dialect, sep=sep)), 200):
                widths += [len(row)] if row else []
        width = widths[0] if widths else 1
        return (widths.count(width) / len(widths), width) if width > 1 else (0.0, 1)

    return max(SEPARATORS, key=alike)


def _marks(shapes: Mapping[str, int], stated: Dialect) -> tuple[str, str]:
    """The decimal and the thousands mark with which most cells are numbers; the plainest where several serve."""

    def count(marks: tuple[str, str]) -> int:
        number = re.compile(number_pattern(*marks))
        return sum(times for shape, times in shapes.items() if number.match(shape))

    decimals = [stated.decimal] if stated.decimal else DECIMALS
    pairs = product(decimals, [stated.thousands] if stated.thousands else THOUSANDS)
    return max((pair for pair in pairs if pair[0] != pair[1]), key=count)
