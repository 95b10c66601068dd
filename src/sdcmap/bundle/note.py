"""The method note: what was done to the file, what it is good for and what not. Prose and JSON from one dictionary.

It never holds the seed, the origin, the candidate's id, a digest of the original, a value of the original, or a file's
path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import sdcmap
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Measure, Method, Microdata, SdcmapError
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.core.value import Spec
from sdcmap.corrections import correct
from sdcmap.files.formats import format_named
from sdcmap.files.missing_codes import parse_codes
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.public_view import PublicView

FOR_WHOM = {
    "public-use": "This is a public-use file: anybody may use it.",
    "scientific-use": "This is a scientific-use file: for researchers under contract with the agency, not to pass on.",
    "teaching": "This is a teaching file: for exercises; it supports no finding about anybody.",
    "business": "This is a public file of businesses: anybody may use it.",
}
MAY_NOT = (
    "Do not try to find out who a record belongs to, and do not link the file with files that name persons or firms.",
    "Do not take a masked value for the true value of a person or firm; single records say nothing about anybody.",
    "Do not combine the file with another release of the same records to undo the masking.",
    "Do not use the order of the rows or the numbers of households and strata: they were drawn at random.",
)
CAUTION = "Standard errors computed as if nothing had been masked leave out the error that masking added."
MISSING = {
    "kept": "they stay as they are",
    "category": "missing is a category like any other",
    "refused": "the masked variables have none",
}


class Amount(TypedDict):
    """How much one utility measure says was distorted."""

    measure: str
    value: float | None
    unit: str
    status: str
    reading: str


class Note(TypedDict):
    """What note.json holds."""

    made_by: str
    profile: str
    for_whom: str
    method: Spec
    method_name: str
    method_text: str
    masked: list[str]
    not_masked: list[str]
    kept_exactly: str
    distorted: str
    distorted_by: list[Amount]
    rounded_like_the_original: list[str]
    renumbered_at_random: list[str]
    rows_shuffled: bool
    missing_values: str
    weights: str
    households: str
    draws_searched: int
    methods_searched: int
    draws_at_gate: int
    draws_allowed: int
    may_not: list[str]
    example: str
    correction: str
    written: str
    missing_codes: list[str]
    overrides: list[dict[str, str]]


class Tried(NamedTuple):
    """How much was tried before a release: random draws of its method, methods of the study, and draws of its method that
    were checked as written, of how many that may be."""

    draws: int
    methods: int
    at_gate: int
    allowed: int = DEFAULT_POLICY.draws


def method_note(
    view: PublicView, method: Method, prepared: Prepared, profile: str, tried: Tried,
    losses: Sequence[tuple[Measure, ScoreRow]] = (), overrides: Sequence[dict[str, str]] = (),
) -> Note:  # fmt: skip
    """Return the note of a release: its method, name and measures in their public form."""
    data, public = prepared.data, view.method(method.text)
    numeric = [n for n in prepared.masked if data.column(n).levels is None and n != data.weight]
    return {
        "made_by": f"sdcmap {sdcmap.__version__}",
        "profile": profile,
        "for_whom": FOR_WHOM[profile],
        "method": public.spec(),
        "method_name": view.name_of(method.text),
        "method_text": public.text,
        "masked": list(prepared.masked),
        "not_masked": [n for n in data.names if n not in prepared.masked and n not in prepared.renumbered],
        "kept_exactly": public.kept,
        "distorted": public.distorted,
        "distorted_by": [_amount(view.texts[measure.text], measure, score) for measure, score in losses],
        "rounded_like_the_original": numeric,
        "renumbered_at_random": list(prepared.renumbered),
        "rows_shuffled": True,
        "missing_values": MISSING.get(method.missing, method.missing),
        "weights": method.weights,
        "households": method.households,
        "draws_searched": tried.draws,
        "methods_searched": tried.methods,
        "draws_at_gate": tried.at_gate,
        "draws_allowed": tried.allowed,
        "may_not": [*MAY_NOT, CAUTION],
        "example": example(data),
        "correction": correction(data, method),
        "written": format_named(data.schema.format).written,
        "missing_codes": [str(code) for code in parse_codes(codes_in(data))],
        "overrides": list(overrides),
    }


def _amount(text: str, measure: Measure, score: ScoreRow) -> Amount:
    value = None if score.value is None else two_digits(score.value)
    better = "closer to the original when " + ("lower" if measure.direction == "lower" else "higher")
    return {"measure": text, "value": value, "unit": measure.unit, "status": score.status, "reading": better}


def two_digits(value: float) -> float:
    """A score rounded to two significant digits.

    >>> two_digits(0.012345), two_digits(98765.0), two_digits(0.0)
    (0.012, 99000.0, 0.0)
    """
    return float(f"{value:.1e}") if math.isfinite(value) else value


def example(data: Microdata) -> str:
    """Lines of Python that a data user can run in the release's folder: read the file, estimate something."""
    file, (imports, reading) = f"data.{data.schema.format}", format_named(data.schema.format).code
    lines = [imports, "", reading.format(file=file)]
    if codes := codes_in(data):
        lines = ["import sdcmap", "", f'data = sdcmap.read("{file}", missing={codes}).frame()']
    if not data.numeric:
        name = next(n for n in (*data.keys, *data.names) if n not in data.schema.of_role("weight"))
        lines += [f"print(data[{name!r}].value_counts(sort=True))"]
    elif data.weight is None:
        lines += [f"print(data[{data.numeric[0]!r}].mean())"]
    else:
        name, weight = data.numeric[0], data.weight
        lines += [f"known = data.drop_nulls([{name!r}, {weight!r}])", f"weight = known[{weight!r}]"]
        lines += [f"print((known[{name!r}] * weight).sum() / weight.sum())"]
    return "\n".join([*lines, ""])


def codes_in(data: Microdata) -> dict[str, list[float | str]]:
    """The codes for missing values of each column that a reader must be told, since the file itself does not say them."""
    if format_named(data.schema.format).labels:
        return {}
    coded = {v.name: [code for code in v.missing if not isinstance(code, tuple)] for v in data.schema.variables}
    return {name: codes for name, codes in coded.items() if codes}


def correction(data: Microdata, method: Method, **options: str) -> str:
    """Lines of Python that take the noise off, with standard errors and these options; empty where that cannot be done."""
    try:
        correct(data, method, weighted=data.weight is not None)
    except SdcmapError:
        return ""
    file, more = f"data.{data.schema.format}", "".join(f", {name}={value!r}" for name, value in options.items())
    if data.weight is None:
        return f'import sdcmap as sm\n\nprint(sm.correct("{file}", "note.json"{more}))\n'
    told = f", missing={codes}" if (codes := codes_in(data)) else ""
    lines = ["import sdcmap as sm", "", f'data = sm.read("{file}", weight={data.weight!r}{told})']
    return "\n".join([*lines, f'print(sm.correct(data, "note.json"{more}, weighted=True))', ""])


def note_text(note: Note) -> str:
    """The note as a page to read."""
    draws = "No other random draw was looked at"
    if note["draws_searched"] > 1:
        draws = f"{note['draws_searched']} random draws of this method were looked at"
    lines = [
        "# Method note", "", note["for_whom"], "",
        "## What was done", "", f"Method: {note['method_name']}. Made by {note['made_by']}.", "",
        "The exact parameters stand in note.json; what was done to each column, and how to read it, in the codebook.", "",
        f"- Masked: {_list(note['masked'])}.",
        f"- Not masked: {_list(note['not_masked'])}.",
        f"- Missing values: {note['missing_values']}. Weights: {note['weights']}. Households: {note['households']}.",
        f"- Rounded as the original is: {_list(note['rounded_like_the_original'])}.",
        f"- Numbered anew at random: {_list(note['renumbered_at_random'])}. Rows are in random order.",
        f"- {draws} before this one was taken.",
        f"- Methods that were tried: {note['methods_searched']}. Draws of this one that were checked as written: "
        f"{note['draws_at_gate']}, of at most {note['draws_allowed']}.", "",
        "## What is kept, and what is distorted", "",
        f"Exactly kept: {note['kept_exactly'] or 'nothing is promised'}.", "",
        f"Distorted: {note['distorted'] or 'see the measures below'}.", "",
    ]  # fmt: skip
    lines += ["| measure | value | unit | reading |", "|---|---|---|---|"] if note["distorted_by"] else []
    for measure in note["distorted_by"]:
        value = measure["status"] if measure["value"] is None else f"{measure['value']:g}"
        lines.append(f"| {measure['measure']} | {value} | {measure['unit']} | {measure['reading']} |")
    if note["overrides"]:
        lines += ["", "## Checks that the agency overrode", ""]
        lines += [f"- {entry['check']}: {entry['reason']}" for entry in note["overrides"]]
    lines += ["", "## What may not be done with it", "", *(f"- {sentence}" for sentence in note["may_not"])]
    lines += ["", "## How to use it", "", *([note["written"], ""] if note["written"] else []), *_code(note["example"])]
    if note["correction"]:
        about = "Means, covariances and regressions with the noise taken off, by the method and its parameters alone:"
        lines += [about, "", *_code(note["correction"])]
    return "\n".join(lines)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "nothing"


def _code(program: str) -> tuple[str, ...]:
    return "```python", program.rstrip("\n"), "```", ""
