"""The codebook: what each released column is, how and why it was masked, and how to read it.

It contains the method, which the note publishes, and counts from the released file; nothing from the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypeAlias, TypedDict, cast

import numpy as np
import polars as pl

from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Method, Microdata
from sdcmap.data.schema import Variable
from sdcmap.files.stat import reason_numbers
from sdcmap.files.text_types import has_formulas
from sdcmap.methods import Repair

USES = {"weight": "survey weight", "household": "household number", "stratum": "stratum number"}
REASONS = {  # why a column was changed, by its role
    "key": "Others may know this value, so it could re-identify a record.",
    "sensitive": "This is what an attacker would learn about a re-identified person.",
    "weight": "Weights must match the released rows.",
    "household": "The agency's own numbers may be known to others.",
    "stratum": "The agency's own numbers may be known to others.",
}
OTHER_REASON = "Combined with other columns, it could re-identify a record."
FORMULAS = (
    "Spreadsheet programs run texts of this column that begin with a sign such as = as formulas. Import it as text."
)
QUOTED_FORMULAS = (
    "The apostrophe before texts that begin with a sign such as = is for spreadsheet programs, not part of the text."
)

Code: TypeAlias = bool | int | float | str


class Category(TypedDict):
    """A value that occurs in the file, and its label."""

    value: Code
    label: str


class MissingCode(TypedDict):
    """A code for missing values (a list: both ends of a range; None: an empty cell), and its label."""

    code: Code | list[float] | None
    label: str


class Counts(TypedDict):
    """How many released records have a missing, a suppressed, or a visibly recoded value."""

    missing: int
    suppressed: int
    recoded: int


class Entry(TypedDict):
    """One column in codebook.json."""

    name: str
    label: str
    kind: str
    type: str
    masked: bool
    done: str
    why: str
    reading: str
    counts: Counts
    universe: NotRequired[str]
    range: NotRequired[list[float]]
    use: NotRequired[str]
    categories: NotRequired[list[Category]]
    missing: NotRequired[list[MissingCode]]
    formulas: NotRequired[str]


def codebook(prepared: Prepared, method: Method, public: Method) -> list[Entry]:
    """Return the entries of codebook.json, one for each released column; `public` is the method in its public form."""
    return [_entry(prepared, method, public, variable) for variable in prepared.data.schema.variables]


def _entry(prepared: Prepared, method: Method, public: Method, variable: Variable) -> Entry:
    name, role = variable.name, variable.role or ""
    steps, own = ([step for step in m.steps if _touches(step, prepared, name)] for m in (public, method))
    treatment, counts = _treatment(prepared, public, steps, variable), _counts(prepared, own, variable)
    entry: Entry = {
        "name": name,
        "label": variable.label,
        "kind": variable.kind,
        "type": variable.storage,
        "masked": name in prepared.masked,
        "done": treatment,
        "why": REASONS.get(role, OTHER_REASON) if treatment else "",
        "reading": _reading(prepared, steps, variable, counts),
        "counts": counts,
    }
    optional: dict[str, object] = {
        "universe": variable.universe, "range": _range(prepared.data, variable), "use": USES.get(role),
        "categories": _categories(prepared.data, variable), "missing": _missing(prepared.data, variable),
        "formulas": _warn_of_formulas(prepared.data, variable),
    }  # fmt: skip
    return cast(Entry, entry | {name: fact for name, fact in optional.items() if fact})


def _touches(step: Method, prepared: Prepared, name: str) -> bool:
    """Return whether a step may have changed a column; a repair changes only columns that another step masked."""
    repairs = isinstance(step, Repair) and name in step.rule_columns and name in prepared.masked
    return repairs or name in step.masks(prepared.data)


def _range(data: Microdata, variable: Variable) -> list[float]:
    """Return the smallest and the largest number of a numeric column; empty for other columns."""
    if data.column(variable.name).levels is not None or variable.role in USES:
        return []
    numbers = data.numbers(variable.name)
    finite = numbers[np.isfinite(numbers)]
    return [float(finite.min()), float(finite.max())] if len(finite) else []


def _treatment(prepared: Prepared, method: Method, steps: Sequence[Method], variable: Variable) -> str:
    """Return what was done to a column, step by step; empty where nothing was done."""
    if variable.name in prepared.renumbered:
        return "renumbered at random"
    if variable.role == "weight" and method.reweights:
        return "adjusted to the released rows"
    return ", then ".join(dict.fromkeys(step.action for step in steps))


def _counts(prepared: Prepared, steps: Sequence[Method], variable: Variable) -> Counts:
    data, name = prepared.data, variable.name
    reasons = reason_numbers(variable, data.column(name))
    code = prepared.suppressed.get(name)
    suppressed = int((reasons == 1 + variable.reasons.index(code)).sum()) if code in variable.reasons else 0
    by_step = [rows for step in steps if (rows := step.recoded_rows(data, name)) is not None]
    recoded = int(np.logical_or.reduce(by_step).sum()) if by_step else 0
    return {"missing": int(data.missing(name).sum()) - suppressed, "suppressed": suppressed, "recoded": recoded}


def _reading(prepared: Prepared, steps: Sequence[Method], variable: Variable, counts: Counts) -> str:
    """Return how to read the values of a column: what they mean, and what they do not mean."""
    if variable.name in prepared.renumbered:
        return "Records with the same number belong together. The number itself has no meaning."
    if variable.name not in prepared.masked:
        return "Not changed by masking."
    sentences = ["A single value may have been changed at random."] if any(step.random for step in steps) else []
    sentences += [f"Distorted: {words}." for words in dict.fromkeys(step.distorted for step in steps) if words]
    sentences += ["A recoded value stands for all values of its class."] if counts["recoded"] else []
    if (code := prepared.suppressed.get(variable.name)) is not None:
        sentences.append(f"{_whole(code)} marks a value that was suppressed to protect people, not a missing answer.")
    return " ".join(sentences)


def _missing(data: Microdata, variable: Variable) -> list[MissingCode]:
    """Return how missing values are coded in a column; the label "suppressed" marks values that masking removed."""
    labels = dict(variable.values)
    plain = data.missing(variable.name) & (reason_numbers(variable, data.column(variable.name)) == 0)
    codes: list[MissingCode] = [{"code": None, "label": "missing"}] if plain.any() else []
    for code in variable.missing:
        if isinstance(code, tuple):
            codes.append({"code": list(code), "label": ""})
        else:
            codes.append({"code": _whole(code), "label": labels.get(code, "")})
    return codes


def _warn_of_formulas(data: Microdata, variable: Variable) -> str:
    """Return how to read texts that a spreadsheet program would run as formulas; empty where there are none."""
    levels = data.column(variable.name).levels
    texts = pl.Series(variable.name, [variable.name])
    if levels is not None and levels.dtype in (pl.String, pl.Categorical, pl.Enum):
        texts = pl.concat([texts, levels.cast(pl.String).drop_nulls()])
    if data.schema.format != "csv" or not has_formulas(texts):
        return ""
    return QUOTED_FORMULAS if data.schema.excel_safe else FORMULAS


def _whole(code: Code) -> Code:
    """Return a whole number without its decimal point, as files show it."""
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _categories(data: Microdata, variable: Variable) -> list[Category]:
    """Return the categories that occur, with labels; for a numeric column, the values that have labels."""
    labels = dict(variable.values)
    levels = data.column(variable.name).levels
    if levels is None:
        return [{"value": c, "label": words} for c, words in variable.values if c not in variable.reasons]
    if variable.role in USES:
        return []
    values = [v if isinstance(v, bool | int | float | str) else str(v) for v in levels.drop_nulls().to_list()]
    return [{"value": value, "label": labels.get(value, "")} for value in values]


def codebook_text(entries: Sequence[Entry]) -> str:
    """Return the codebook as a page to read."""
    lines = ["# Codebook", ""]
    for entry in entries:
        use = f", {entry['use']}" if "use" in entry else ""
        lines += [f"## {entry['name']}", "", *([f"{entry['label']}\n"] if entry["label"] else [])]
        lines += [f"{entry['kind']}{use}, {'masked' if entry['masked'] else 'not masked'}", ""]
        lines += [*(f"- {fact}" for fact in _facts(entry)), ""]
        values: list[tuple[Code, str, str]] = [(c["value"], c["label"], "") for c in entry.get("categories", [])]
        values += [(_code(c["code"]), c["label"], "missing") for c in entry.get("missing", [])]
        if values:
            rows = (f"| {_cell(value)} | {_cell(label)} | {mark} |" for value, label, mark in values)
            lines += ["| value | label | |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def describe_treatment(entry: Entry) -> str:
    """Return how a column was masked, and why."""
    return f"Masking: {entry['done']}. Reason: {entry['why']}" if entry["done"] else "Masking: none."


def _facts(entry: Entry) -> Iterator[str]:
    """Yield the facts about a column, a sentence each: masking, universe, range, counts and how to read it."""
    yield describe_treatment(entry)
    if "universe" in entry:
        yield f"Universe: {entry['universe']}"
    if "range" in entry:
        yield f"Range in the released file: {' to '.join(f'{end:,.15g}' for end in entry['range'])}."
    if counts := [f"{count:,} {what}" for what, count in entry["counts"].items() if count]:
        yield f"Records in the released file: {', '.join(counts)}."
    yield f"How to read it: {entry['reading']}"
    if "formulas" in entry:
        yield entry["formulas"]


def _code(code: Code | list[float] | None) -> str:
    if code is None:
        return "(empty)"
    return f"{code[0]} to {code[1]}" if isinstance(code, list) else str(code)


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
