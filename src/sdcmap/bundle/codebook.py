"""The codebook: what each released column is, what was done to it and why, and how to read it.

It tells the method, which the note publishes, and what anybody can count in the released file itself; nothing of the
original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NotRequired, TypeAlias, TypedDict, cast

import numpy as np

from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Method, Microdata
from sdcmap.data.schema import Variable
from sdcmap.files.stat import reason_numbers
from sdcmap.methods import Repair

USES = {"weight": "survey weight", "household": "household number", "stratum": "stratum number"}
WHY = {
    "key": "Others may know it of a person, so that the record could be found by it.",
    "sensitive": "It is what somebody who finds a record would learn.",
    "weight": "It follows the rows that are released.",
    "household": "The agency's own numbers could be known.",
    "stratum": "The agency's own numbers could be known.",
}
TOLD_APART = "Together with other columns it could tell a record apart."

Code: TypeAlias = bool | int | float | str


class Category(TypedDict):
    """A value that occurs, and its label."""

    value: Code
    label: str


class MissingCode(TypedDict):
    """A code for missing values, or the two ends of a range of them, and its label; None: a plain missing value."""

    code: Code | list[float] | None
    label: str


class Counts(TypedDict):
    """Records of the release in which the value is missing, suppressed or seen to be recoded."""

    missing: int
    suppressed: int
    recoded: int


class Entry(TypedDict):
    """What codebook.json says of one column."""

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


def codebook(prepared: Prepared, method: Method, public: Method) -> list[Entry]:
    """Return one entry a released column, as codebook.json holds it; `public` is the method as anybody may read it."""
    return [_entry(prepared, method, public, variable) for variable in prepared.data.schema.variables]


def _entry(prepared: Prepared, method: Method, public: Method, variable: Variable) -> Entry:
    name, role = variable.name, variable.role or ""
    steps, own = ([step for step in m.steps if _touches(step, prepared, name)] for m in (public, method))
    done, counts = _done(prepared, public, steps, variable), _counts(prepared, own, variable)
    entry: Entry = {
        "name": name,
        "label": variable.label,
        "kind": variable.kind,
        "type": variable.storage,
        "masked": name in prepared.masked,
        "done": done,
        "why": WHY.get(role, TOLD_APART) if done else "",
        "reading": _reading(prepared, steps, variable, counts),
        "counts": counts,
    }
    more: dict[str, object] = {
        "universe": variable.universe, "range": _range(prepared.data, variable), "use": USES.get(role),
        "categories": _categories(prepared.data, variable), "missing": _missing(prepared.data, variable),
    }  # fmt: skip
    return cast(Entry, entry | {fact: said for fact, said in more.items() if said})


def _touches(step: Method, prepared: Prepared, name: str) -> bool:
    """Whether a step may have changed a column; a repair, where another step masked it."""
    repairs = isinstance(step, Repair) and name in step.looked_at and name in prepared.masked
    return repairs or name in step.masks(prepared.data)


def _range(data: Microdata, variable: Variable) -> list[float]:
    """The smallest and the largest number of a numeric column; nothing where it has none."""
    if data.column(variable.name).levels is not None or variable.role in USES:
        return []
    numbers = data.numbers(variable.name)
    known = numbers[np.isfinite(numbers)]
    return [float(known.min()), float(known.max())] if len(known) else []


def _done(prepared: Prepared, method: Method, steps: Sequence[Method], variable: Variable) -> str:
    """What was done to a column, step by step; empty: nothing."""
    if variable.name in prepared.renumbered:
        return "numbered anew at random"
    if variable.role == "weight" and method.reweights:
        return "adjusted to the rows that are released"
    return ", then ".join(dict.fromkeys(step.action for step in steps))


def _counts(prepared: Prepared, steps: Sequence[Method], variable: Variable) -> Counts:
    data, name = prepared.data, variable.name
    reasons = reason_numbers(variable, data.column(name))
    code = prepared.suppressed.get(name)
    suppressed = int((reasons == 1 + variable.reasons.index(code)).sum()) if code in variable.reasons else 0
    seen = [rows for step in steps if (rows := step.recoded_rows(data, name)) is not None]
    recoded = int(np.logical_or.reduce(seen).sum()) if seen else 0
    return {"missing": int(data.missing(name).sum()) - suppressed, "suppressed": suppressed, "recoded": recoded}


def _reading(prepared: Prepared, steps: Sequence[Method], variable: Variable, counts: Counts) -> str:
    """How to read the values: what may be taken from them and what not."""
    if variable.name in prepared.renumbered:
        return "Equal numbers belong together; the numbers themselves mean nothing."
    if variable.name not in prepared.masked:
        return "Values are as in the file that was masked."
    said = ["A single value says nothing of anybody."] if any(step.random for step in steps) else []
    said += [f"Distorted: {words}." for words in dict.fromkeys(step.distorted for step in steps) if words]
    said += ["A recoded value stands for all values of its class."] if counts["recoded"] else []
    if (code := prepared.suppressed.get(variable.name)) is not None:
        said.append(f"{_whole(code)} is a value blanked to protect, not a missing answer.")
    return " ".join(said)


def _missing(data: Microdata, variable: Variable) -> list[MissingCode]:
    """How a missing value can look: plain, and each code; "suppressed" is what the masking method blanked."""
    labels = dict(variable.values)
    plain = data.missing(variable.name) & (reason_numbers(variable, data.column(variable.name)) == 0)
    codes: list[MissingCode] = [{"code": None, "label": "missing"}] if plain.any() else []
    for code in variable.missing:
        if isinstance(code, tuple):
            codes.append({"code": list(code), "label": ""})
        else:
            codes.append({"code": _whole(code), "label": labels.get(code, "")})
    return codes


def _whole(code: Code) -> Code:
    """A whole number without its point, as files show it."""
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _categories(data: Microdata, variable: Variable) -> list[Category]:
    """The categories that occur, with their labels; of a numeric column, the labeled values that occur."""
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
        use = f", {entry['use']}" if "use" in entry else ""
        lines += [f"## {entry['name']}", "", *([f"{entry['label']}\n"] if entry["label"] else [])]
        lines += [f"{entry['kind']}{use}, {'masked' if entry['masked'] else 'not masked'}", ""]
        lines += [*(f"- {words}" for words in _told(entry)), ""]
        shown: list[tuple[Code, str, str]] = [(c["value"], c["label"], "") for c in entry.get("categories", [])]
        shown += [(_code(c["code"]), c["label"], "missing") for c in entry.get("missing", [])]
        if shown:
            rows = (f"| {_cell(value)} | {_cell(label)} | {mark} |" for value, label, mark in shown)
            lines += ["| value | label | |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def done_words(entry: Entry) -> str:
    """What was done to a column, and why."""
    return f"Done: {entry['done']}. Why: {entry['why']}" if entry["done"] else "Done: nothing."


def _told(entry: Entry) -> Iterator[str]:
    """What was done, why, of whom it was asked, the range, the counts and how to read it, a line each."""
    yield done_words(entry)
    if "universe" in entry:
        yield f"Universe: {entry['universe']}"
    if "range" in entry:
        yield f"Range in the release: {' to '.join(f'{end:,.15g}' for end in entry['range'])}."
    if counted := [f"{count:,} {what}" for what, count in entry["counts"].items() if count]:
        yield f"In the release: {', '.join(counted)}."
    yield entry["reading"]


def _code(code: Code | list[float] | None) -> str:
    if code is None:
        return "(empty)"
    return f"{code[0]} to {code[1]}" if isinstance(code, list) else str(code)


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
