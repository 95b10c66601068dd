"""DDI-Codebook in: what an archive's codebook.xml says of a study and of its variables.

Read are the title and the universe of the study and, of each variable, label, universe, nature, value labels, and codes and
ranges for missing values (`invalrng`, and categories marked as missing). Versions 1 to 2.6 write these alike.

The file comes from elsewhere, so little is trusted: a DOCTYPE is refused, and with it every entity and everything outside
the file; size and depth are bounded; what is wrong is said in one sentence that quotes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sdcmap.errors import SchemaError
from sdcmap.files.missing_codes import Code, Codes
from sdcmap.files.plain import MOST_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.data.schema import Variable

MOST_BYTES = 64 << 20
DEEPEST = 64  # levels of elements
TITLE = ("codeBook", "stdyDscr", "citation", "titlStmt", "titl")
UNIVERSE = ("codeBook", "stdyDscr", "stdyInfo", "sumDscr", "universe")
VARIABLE = ("codeBook", "dataDscr", "var")
NATURE = {"nominal": "nominal", "ordinal": "ordinal", "interval": "scale", "ratio": "scale", "percent": "scale"}
PLAINLY_MISSING = ("", ".")  # how SAS and Stata write a missing value without a reason


@dataclass(frozen=True)
class Described:
    """What a codebook says of one variable; codes are texts as they stand there."""

    label: str = ""
    universe: str = ""
    measure: str = ""
    labels: tuple[tuple[str, str], ...] = ()  # (code, words)
    missing: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()  # of codes for missing values

    def told(self, fact: Variable, dtype: pl.DataType) -> Variable:
        """The variable with everything that its file does not say itself."""
        missing = dict.fromkeys((*fact.missing, *(self.ranges if dtype.is_numeric() else ())))
        measure = self.measure or fact.measure if fact.measure in ("", "unknown") else fact.measure
        values = fact.values or tuple(_typed(self.labels, dtype))
        label, universe = fact.label or self.label, fact.universe or self.universe
        return replace(fact, label=label, universe=universe, measure=measure, values=values, missing=tuple(missing))


@dataclass(frozen=True)
class DDICodebook:
    """What a codebook says: the study's title and universe, and its variables by name."""

    title: str = ""
    universe: str = ""
    variables: Mapping[str, Described] = field(default_factory=dict)

    @property
    def codes(self) -> Codes:
        """Every code for missing values, with its words."""
        labels = {name: dict(described.labels) for name, described in self.variables.items()}
        coded = ((name, code) for name, described in self.variables.items() for code in described.missing)
        return tuple(Code(name, code, labels[name].get(code, "")) for name, code in coded)


def read_ddi(path: str | Path) -> DDICodebook:
    """The codebook in a file; SchemaError in one sentence where it is none. Of two variables of one name, the first."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            most = f"a codebook of at most {MOST_BYTES >> 20} is read"
            raise SchemaError(f"{path.name} has {size >> 20} MiB, and {most}.")
        content = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"{path.name} cannot be read ({error.strerror}).") from None
    reader = _Reader(path.name)
    try:
        reader.parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError):  # its text may quote the file
        raise SchemaError(f"{path.name} is no well-formed XML.") from None
    return DDICodebook(reader.title, reader.universe, reader.variables)


class _Reader:
    """Goes through the elements, and keeps one variable's at a time."""

    def __init__(self, file: str) -> None:
        self.file, self.title, self.universe = file, "", ""
        self.variables: dict[str, Described] = {}
        self.path: list[str] = []
        self.kept: TreeBuilder | None = None  # of the element that is being kept
        self.depth = 0  # where that element stands
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartDoctypeDeclHandler = self._no_doctype
        self.parser.StartElementHandler = self._start
        self.parser.CharacterDataHandler = self._data
        self.parser.EndElementHandler = self._end

    def _no_doctype(self, *_: object) -> None:
        raise SchemaError(f"{self.file} has a DOCTYPE, and none is read: take the line out.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition("}")[2]
        if not self.path and tag != "codeBook":
            raise SchemaError(f"{self.file} is no DDI-Codebook: its first element must be codeBook.")
        self.path.append(tag)
        if len(self.path) > DEEPEST:
            raise SchemaError(f"{self.file} is nested more than {DEEPEST} levels deep.")
        if self.kept is None and tuple(self.path) in (TITLE, UNIVERSE, VARIABLE):
            self.kept, self.depth = TreeBuilder(), len(self.path)
        if self.kept is not None:
            self.kept.start(tag, {key.rpartition("}")[2]: value for key, value in attributes.items()})

    def _data(self, text: str) -> None:
        if self.kept is not None:
            self.kept.data(text)

    def _end(self, _name: str) -> None:
        tag = self.path.pop()
        if self.kept is not None:
            self.kept.end(tag)
            if len(self.path) < self.depth:
                self._take(tag, self.kept.close())
                self.kept = None

    def _take(self, tag: str, element: Element) -> None:
        if tag == "titl":
            self.title = self.title or _text(element)
        elif tag == "universe":
            self.universe = self.universe or _text(element)
        else:
            self.variables.setdefault(element.get("name", ""), _described(element))
            if len(self.variables) > MOST_COLUMNS:
                raise SchemaError(f"{self.file} describes more than {MOST_COLUMNS:,} variables.")


def _described(var: Element) -> Described:
    categories = [(_first(one, "catValu"), one) for one in var.findall("catgry")]
    gone = [code for code, one in categories if one.get("missing", "N").upper() in ("Y", "YES", "TRUE")]
    gone += [item.get("VALUE", "").strip() for item in var.findall("invalrng/item")]
    missing = tuple(dict.fromkeys(code for code in gone if code not in PLAINLY_MISSING))
    labels = tuple((code, words) for code, one in categories if code and (words := _first(one, "labl")))
    # a range without an end, or of texts, is left out
    ends = [(_number(one.get("min", "")), _number(one.get("max", ""))) for one in var.findall("invalrng/range")]
    ranges = tuple((low, high) for low, high in ends if low is not None and high is not None and low <= high)
    nature = NATURE.get(var.get("nature", ""), "")
    return Described(_first(var, "labl"), _first(var, "universe"), nature, labels, missing, ranges)


def _typed(labels: tuple[tuple[str, str], ...], dtype: pl.DataType) -> Iterator[tuple[float | str, str]]:
    """Value labels with their codes as the column has them."""
    import polars as pl

    if dtype.is_numeric() or dtype == pl.Object:
        yield from ((number, words) for code, words in labels if (number := _number(code)) is not None)
    elif dtype in (pl.String, pl.Categorical, pl.Enum):
        yield from labels


def _number(text: str) -> float | None:
    number = Code("", text).number if text else None
    return None if number is None or number != number else number


def _first(element: Element, tag: str) -> str:
    """The text of the first such element that has some: others are in other languages, or longer."""
    return next(filter(None, map(_text, element.findall(tag))), "")


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
