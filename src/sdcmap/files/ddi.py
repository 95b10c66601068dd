"""Read a DDI-Codebook: the metadata of a study and its variables in an archive's codebook.xml.

The title and the universe of the study are read, and for each variable its label, universe, nature, value labels, and the
codes and ranges for missing values (`invalrng`, and categories marked as missing). These are equal in versions 1 to 2.6.

The file comes from outside and is not trusted. A DOCTYPE is rejected, and with it entities and references to other files.
Size and depth are limited. Errors never quote the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sdcmap.errors import SchemaError
from sdcmap.files.csv_parquet import MAX_COLUMNS
from sdcmap.files.missing_codes import Code, Codes

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.data.schema import Variable

MAX_BYTES = 64 << 20  # of a codebook; large ones have a few MB
MAX_DEPTH = 64  # nested elements; a codebook has about ten levels
TITLE = ("codeBook", "stdyDscr", "citation", "titlStmt", "titl")
UNIVERSE = ("codeBook", "stdyDscr", "stdyInfo", "sumDscr", "universe")
VARIABLE = ("codeBook", "dataDscr", "var")
NATURE = {"nominal": "nominal", "ordinal": "ordinal", "interval": "scale", "ratio": "scale", "percent": "scale"}
SYSTEM_MISSING = ("", ".")  # a missing value without a reason, as SAS and Stata write it


@dataclass(frozen=True)
class VariableDescription:
    """The metadata of one variable; codes are texts as in the codebook."""

    label: str = ""
    universe: str = ""
    measure: str = ""
    labels: tuple[tuple[str, str], ...] = ()  # (code, label)
    missing: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()  # of codes for missing values

    def complete(self, fact: Variable, dtype: pl.DataType) -> Variable:
        """Return the variable with all metadata that its own file lacks."""
        missing = dict.fromkeys((*fact.missing, *(self.ranges if dtype.is_numeric() else ())))
        measure = self.measure or fact.measure if fact.measure in ("", "unknown") else fact.measure
        values = fact.values or tuple(_convert_codes(self.labels, dtype))
        label, universe = fact.label or self.label, fact.universe or self.universe
        return replace(fact, label=label, universe=universe, measure=measure, values=values, missing=tuple(missing))


@dataclass(frozen=True)
class DDICodebook:
    """The metadata of a codebook: title and universe of the study, and its variables by name."""

    title: str = ""
    universe: str = ""
    variables: Mapping[str, VariableDescription] = field(default_factory=dict)

    @property
    def codes(self) -> Codes:
        """All codes for missing values, with their labels."""
        labels = {name: dict(variable.labels) for name, variable in self.variables.items()}
        coded = ((name, code) for name, variable in self.variables.items() for code in variable.missing)
        return tuple(Code(name, code, labels[name].get(code, "")) for name, code in coded)


def read_ddi(path: str | Path) -> DDICodebook:
    """Read a codebook; SchemaError if the file is not one. Of two variables with one name, the first is used."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SchemaError(f"{path.name} has {size >> 20} MiB; a codebook may have at most {MAX_BYTES >> 20} MiB.")
        content = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"{path.name} cannot be read ({error.strerror}).") from None
    reader = _Reader(path.name)
    try:
        reader.parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError):  # the parser's message may quote the file
        raise SchemaError(f"{path.name} is not well-formed XML.") from None
    return DDICodebook(reader.title, reader.universe, reader.variables)


class _Reader:
    """Collects metadata while parsing, with only one variable in memory at a time."""

    def __init__(self, file: str) -> None:
        self.file, self.title, self.universe = file, "", ""
        self.variables: dict[str, VariableDescription] = {}
        self.path: list[str] = []
        self.builder: TreeBuilder | None = None  # of the element that is being collected
        self.depth = 0  # the depth of that element
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.StartDoctypeDeclHandler = self._reject_doctype
        self.parser.StartElementHandler = self._start
        self.parser.CharacterDataHandler = self._data
        self.parser.EndElementHandler = self._end

    def _reject_doctype(self, *_: object) -> None:
        raise SchemaError(f"{self.file} has a DOCTYPE, which is not allowed: remove that line.")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition("}")[2]
        if not self.path and tag != "codeBook":
            raise SchemaError(f"{self.file} is not a DDI-Codebook: its first element must be codeBook.")
        self.path.append(tag)
        if len(self.path) > MAX_DEPTH:
            raise SchemaError(f"{self.file} is nested more than {MAX_DEPTH} levels deep.")
        if self.builder is None and tuple(self.path) in (TITLE, UNIVERSE, VARIABLE):
            self.builder, self.depth = TreeBuilder(), len(self.path)
        if self.builder is not None:
            self.builder.start(tag, {key.rpartition("}")[2]: value for key, value in attributes.items()})

    def _data(self, text: str) -> None:
        if self.builder is not None:
            self.builder.data(text)

    def _end(self, _name: str) -> None:
        tag = self.path.pop()
        if self.builder is not None:
            self.builder.end(tag)
            if len(self.path) < self.depth:
                self._take(tag, self.builder.close())
                self.builder = None

    def _take(self, tag: str, element: Element) -> None:
        if tag == "titl":
            self.title = self.title or _text(element)
        elif tag == "universe":
            self.universe = self.universe or _text(element)
        else:
            self.variables.setdefault(element.get("name", ""), _describe(element))
            if len(self.variables) > MAX_COLUMNS:
                raise SchemaError(f"{self.file} describes more than {MAX_COLUMNS:,} variables.")


def _describe(var: Element) -> VariableDescription:
    categories = [(_first(one, "catValu"), one) for one in var.findall("catgry")]
    missing_codes = [code for code, one in categories if one.get("missing", "N").upper() in ("Y", "YES", "TRUE")]
    missing_codes += [item.get("VALUE", "").strip() for item in var.findall("invalrng/item")]
    missing = tuple(dict.fromkeys(code for code in missing_codes if code not in SYSTEM_MISSING))
    labels = tuple((code, words) for code, one in categories if code and (words := _first(one, "labl")))
    # Ranges without an end, or of texts, are ignored.
    ends = [(_number(one.get("min", "")), _number(one.get("max", ""))) for one in var.findall("invalrng/range")]
    ranges = tuple((low, high) for low, high in ends if low is not None and high is not None and low <= high)
    nature = NATURE.get(var.get("nature", ""), "")
    return VariableDescription(_first(var, "labl"), _first(var, "universe"), nature, labels, missing, ranges)


def _convert_codes(labels: tuple[tuple[str, str], ...], dtype: pl.DataType) -> Iterator[tuple[float | str, str]]:
    """Yield value labels with codes in the type of the column."""
    import polars as pl

    if dtype.is_numeric() or dtype == pl.Object:
        yield from ((number, words) for code, words in labels if (number := _number(code)) is not None)
    elif dtype in (pl.String, pl.Categorical, pl.Enum):
        yield from labels


def _number(text: str) -> float | None:
    number = Code("", text).number if text else None
    return None if number is None or number != number else number


def _first(element: Element, tag: str) -> str:
    """Return the text of the first such element that is not empty; later ones are translations or longer texts."""
    return next(filter(None, map(_text, element.findall(tag))), "")


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
