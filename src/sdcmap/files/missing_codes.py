"""Codes that mean "missing", as a person states them: for one column or for all, with words where they have some.

In Python a mapping, {"income": [-8], "*": ["N"]} or {"income": {-8: "not applicable"}}; in a plan and on the command line
texts, "income=-8 (not applicable)" or "N" for every column. A code stays a code of its own: in the release, and in the
codebook with its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import PlanError, SchemaError, did_you_mean

EVERY = "*"
Stated = str | Sequence[str] | Mapping[str, "Sequence[float | str] | Mapping[float | str, str]"]
_TEXT = re.compile(r"(?:(?P<column>[^=]*)=)?(?P<code>.*?)(?: \((?P<words>[^()]*)\))?", re.DOTALL)


@dataclass(frozen=True)
class Code:
    """One code: the column it belongs to ("*": every), its text in the file, and its words."""

    column: str
    code: str
    words: str = ""

    def __str__(self) -> str:
        column = f"{self.column}=" if self.column != EVERY or "=" in self.code else ""
        return f"{column}{self.code}" + (f" ({self.words})" if self.words else "")

    @property
    def number(self) -> float | None:
        """The code as a number, where it is one."""
        try:
            number = float(self.code.replace(",", "."))
        except ValueError:
            return None
        return number if abs(number) < float("inf") else None


Codes = tuple[Code, ...]


def codes_of(stated: Stated) -> Codes:
    """The codes that were stated, in either form.

    >>> [str(code) for code in codes_of({"income": {-8: "not applicable"}, "*": ["N"]})]
    ['income=-8 (not applicable)', 'N']
    """
    if isinstance(stated, Mapping):
        pairs = ((column, *pair) for column, given in stated.items() for pair in _worded(given))
        return tuple(Code(column, _text(code), words) for column, code, words in pairs)
    return tuple(_parsed(text) for text in ([stated] if isinstance(stated, str) else stated))


def _worded(given: object) -> Iterable[tuple[object, str]]:
    if isinstance(given, Mapping):
        return [(code, str(words)) for code, words in given.items()]
    return [(code, "") for code in ([given] if isinstance(given, str | int | float) else given)]  # type: ignore[attr-defined]


def _text(code: object) -> str:
    if isinstance(code, bool) or not isinstance(code, str | int | float):
        raise PlanError("a code for missing values must be a number or a text.")
    return f"{code:g}" if isinstance(code, float) else str(code)


def _parsed(text: object) -> Code:
    if not isinstance(text, str):
        raise PlanError("missing takes texts, such as 'N' or 'income=-8', or a mapping of columns to codes.")
    match = _TEXT.fullmatch(text)
    column, code, words = match.groups() if match else (None, text, None)
    return Code(column or EVERY, code, words or "")


def of_column(codes: Codes, name: str) -> Codes:
    """The codes that hold for this column."""
    return tuple(code for code in codes if code.column in (EVERY, name))


def check_columns(codes: Codes, names: Sequence[str]) -> None:
    """SchemaError where a code is stated for a column that is not there."""
    unknown = [code.column for code in codes if code.column != EVERY and code.column not in names]
    if unknown:
        hints = {name: did_you_mean(name, names) for name in unknown}
        raise SchemaError(" ".join(f"no column {name!r}.{hint}" for name, hint in hints.items()))


def with_codes(fact: Variable, dtype: pl.DataType, codes: Codes) -> Variable:
    """What a file says of a variable, and these codes too: numbers where the column holds numbers, else texts."""
    held = [(code, code.number if dtype.is_numeric() or dtype == pl.Object else None) for code in codes]
    own = {(code.code if number is None else number): code.words for code, number in held}
    fitting = {key: words for key, words in own.items() if not (dtype.is_numeric() and isinstance(key, str))}
    labels = {key: words for key, words in fitting.items() if words}
    values = (*((c, w) for c, w in fact.values if c not in labels), *labels.items())
    return replace(fact, missing=tuple(dict.fromkeys((*fact.missing, *fitting))), values=values)
