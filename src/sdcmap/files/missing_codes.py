"""User-stated codes for missing values, for one column or for all, with an optional label.

In Python they are a mapping, {"income": [-8], "*": ["N"]} or {"income": {-8: "not applicable"}}; in a plan and on the
command line they are texts, "income=-8 (not applicable)", or "N" for every column. Codes stay distinct in the release, and
are listed in its codebook with their labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import PlanError, SchemaError, did_you_mean

EVERY_COLUMN = "*"
StatedCodes = str | Sequence[str] | Mapping[str, "Sequence[float | str] | Mapping[float | str, str]"]
_TEXT = re.compile(r"(?:(?P<column>[^=]*)=)?(?P<code>.*?)(?: \((?P<words>[^()]*)\))?", re.DOTALL)


@dataclass(frozen=True)
class Code:
    """One code: its column ("*": every column), its text in the file, and its label."""

    column: str
    code: str
    words: str = ""

    def __str__(self) -> str:
        column = f"{self.column}=" if self.column != EVERY_COLUMN or "=" in self.code else ""
        return f"{column}{self.code}" + (f" ({self.words})" if self.words else "")

    @property
    def number(self) -> float | None:
        """The code as a number; None if it is not one."""
        try:
            number = float(self.code.replace(",", "."))
        except ValueError:
            return None
        return number if abs(number) < float("inf") else None


Codes = tuple[Code, ...]


def parse_codes(stated: StatedCodes) -> Codes:
    """Return the codes from a mapping or from texts.

    >>> [str(code) for code in parse_codes({"income": {-8: "not applicable"}, "*": ["N"]})]
    ['income=-8 (not applicable)', 'N']
    """
    if isinstance(stated, Mapping):
        pairs = ((column, *pair) for column, given in stated.items() for pair in _pair_labels(given))
        return tuple(Code(column, _format_code(code), words) for column, code, words in pairs)
    return tuple(_parse_text(text) for text in ([stated] if isinstance(stated, str) else stated))


def _pair_labels(given: object) -> Iterable[tuple[object, str]]:
    if isinstance(given, Mapping):
        return [(code, str(words)) for code, words in given.items()]
    return [(code, "") for code in ([given] if isinstance(given, str | int | float) else given)]  # type: ignore[attr-defined]


def _format_code(code: object) -> str:
    if isinstance(code, bool) or not isinstance(code, str | int | float):
        raise PlanError("a code for missing values must be a number or a text.")
    return f"{code:g}" if isinstance(code, float) else str(code)


def _parse_text(text: object) -> Code:
    if not isinstance(text, str):
        raise PlanError("missing must be texts, such as 'N' or 'income=-8', or a mapping of columns to codes.")
    match = _TEXT.fullmatch(text)
    column, code, words = match.groups() if match else (None, text, None)
    return Code(column or EVERY_COLUMN, code, words or "")


def codes_for_column(codes: Codes, name: str) -> Codes:
    """Return the codes that apply to a column."""
    return tuple(code for code in codes if code.column in (EVERY_COLUMN, name))


def check_columns(codes: Codes, names: Sequence[str]) -> None:
    """Raise SchemaError if a code is stated for a column that does not exist."""
    unknown = [code.column for code in codes if code.column != EVERY_COLUMN and code.column not in names]
    if unknown:
        hints = {name: did_you_mean(name, names) for name in unknown}
        raise SchemaError(" ".join(f"no column {name!r}.{hint}" for name, hint in hints.items()))


def add_codes(fact: Variable, dtype: pl.DataType, codes: Codes) -> Variable:
    """Return the metadata of a variable with these codes added: as numbers in a numeric column, else as texts."""
    pairs = [(code, code.number if dtype.is_numeric() or dtype == pl.Object else None) for code in codes]
    own = {(code.code if number is None else number): code.words for code, number in pairs}
    fitting = {key: words for key, words in own.items() if not (dtype.is_numeric() and isinstance(key, str))}
    labels = {key: words for key, words in fitting.items() if words}
    values = (*((c, w) for c, w in fact.values if c not in labels), *labels.items())
    return replace(fact, missing=tuple(dict.fromkeys((*fact.missing, *fitting))), values=values)
