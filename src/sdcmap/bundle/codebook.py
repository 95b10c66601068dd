"""The codebook: what each released column is, told from the released values alone. It holds no counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypeAlias, TypedDict

from sdcmap.bundle.prepare import Prepared
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import Variable
from sdcmap.files.stat import reason_numbers

USES = {"weight": "survey weight", "household": "household number", "stratum": "stratum number"}

Code: TypeAlias = bool | int | float | str


class Category(TypedDict):
    """A value that occurs, and its label."""

    value: Code
    label: str


class MissingCode(TypedDict):
    """A code for missing values, or the two ends of a range of them, and its label; None: a plain missing value."""

    code: Code | list[float] | None
    label: str


class Entry(TypedDict):
    """What codebook.json says of one column."""

    name: str
    label: str
    kind: str
    type: str
    masked: bool
    use: NotRequired[str]
    categories: NotRequired[list[Category]]
    missing: NotRequired[list[MissingCode]]


def codebook(prepared: Prepared) -> list[Entry]:
    """One entry a released column, as codebook.json holds it."""
    return [_entry(prepared, variable) for variable in prepared.data.schema.variables]


def _entry(prepared: Prepared, variable: Variable) -> Entry:
    entry: Entry = {
        "name": variable.name,
        "label": variable.label,
        "kind": variable.kind,
        "type": variable.storage,
        "masked": variable.name in prepared.masked,
    }
    if variable.role in USES:
        entry["use"] = USES[variable.role]
    categories = _categories(prepared.data, variable)
    if categories:
        entry["categories"] = categories
    missing = _missing(prepared.data, variable)
    if missing:
        entry["missing"] = missing
    return entry


def _missing(data: Microdata, variable: Variable) -> list[MissingCode]:
    """How a missing value can look: plain, and each code; "suppressed" is what the masking method blanked."""
    labels = dict(variable.values)
    plain = data.missing(variable.name) & (reason_numbers(variable, data.column(variable.name)) == 0)
    codes: list[MissingCode] = [{"code": None, "label": "missing"}] if plain.any() else []
    return codes + [
        {"code": list(code), "label": ""}
        if isinstance(code, tuple)
        else {"code": _whole(code), "label": labels.get(code, "")}
        for code in variable.missing
    ]


def _whole(code: Code) -> Code:
    """A whole number without its point, as files show it."""
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _categories(data: Microdata, variable: Variable) -> list[Category]:
    """The categories that occur, with their labels; of a numeric column, the labelled values that occur."""
    labels = dict(variable.values)
    levels = data.column(variable.name).levels
    if levels is None:
        return [{"value": c, "label": words} for c, words in variable.values if c not in variable.reasons]
    if variable.role in USES:
        return []
    values = [v if isinstance(v, bool | int | float | str) else str(v) for v in levels.drop_nulls().to_list()]
    return [{"value": value, "label": labels.get(value, "")} for value in values]


def codebook_text(entries: Sequence[Entry]) -> str:
    """The same as a page to read."""
    lines = ["# Codebook", ""]
    for entry in entries:
        lines += [f"## {entry['name']}", ""]
        lines += [f"{entry['label']}\n"] if entry["label"] else []
        use = f", {entry['use']}" if "use" in entry else ""
        lines += [f"{entry['kind']}{use}, {'masked' if entry['masked'] else 'not masked'}", ""]
        shown: list[tuple[Code, str, str]] = [(c["value"], c["label"], "") for c in entry.get("categories", [])]
        shown += [(_code(c["code"]), c["label"], "missing") for c in entry.get("missing", [])]
        if shown:
            lines += ["| value | label | |", "|---|---|---|"]
            lines += [f"| {_cell(value)} | {_cell(label)} | {mark} |" for value, label, mark in shown] + [""]
    return "\n".join(lines)


def _code(code: Code | list[float] | None) -> str:
    if code is None:
        return "(empty)"
    return f"{code[0]} to {code[1]}" if isinstance(code, list) else str(code)


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
