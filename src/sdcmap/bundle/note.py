"""The method note: how the file was masked, what that preserves and distorts, and how to use the file.

Prose (note.md) and JSON (note.json) come from one dictionary. The note never contains the seed, the origin of rows, the
candidate's id, a digest or a value of the original, or a path. Of the ledger it states a count and keyed digests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import sdcmap
from sdcmap.bundle.checks import check_label
from sdcmap.bundle.ledger_chain import Head, HeadFacts
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.bundle.procedure import Try, TryFacts, describe_try
from sdcmap.core import Measure, Method, Microdata, SdcmapError
from sdcmap.core.formatting import format_percent, split_class_name
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.core.value import Spec
from sdcmap.corrections import correct
from sdcmap.files.formats import format_named
from sdcmap.files.missing_codes import parse_codes
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.public_view import PublicView
from sdcmap.utility.changed_findings import (
    CLEARLY_CHANGED,
    ChangedRelation,
    RepeatedAnalyses,
    describe_other_analyses,
    find_changed_relations,
    summarize,
)

FOR_WHOM = {
    "public-use": "This is a public-use file. Anybody may use it.",
    "scientific-use": "This is a scientific-use file for researchers under contract with the agency. Do not pass it on.",
    "teaching": "This is a teaching file for exercises. Do not draw conclusions about real people from it.",
    "business": "This is a public-use file of businesses. Anybody may use it.",
}
MAY_NOT = (
    "Do not try to find out who a record belongs to, and do not link the file with files that name persons or firms.",
    "Do not take a masked value for the true value of a person or firm.",
    "Do not combine the file with another release of the same records to undo the masking.",
    "Do not interpret the order of the rows or the numbers of households and strata: they are random.",
)
CAUTION = "Standard errors computed as usual do not include the error that masking added."
MISSING = {
    "kept": "unchanged",
    "category": "treated as one more category",
    "added": "some values were suppressed; the codebook says how they are coded",
    "refused": "the masked variables have none",
}


CLAIM = """A few candidates were fixed in advance, drawn and measured anew, in this order, until one was within its \
limits. This procedure writes a file above a limit in at most {error} of studies."""


RELATIONS = """The agency repeated regressions, tables, means and distributions with the original and with this file. \
They were chosen from the roles of the columns before anything was masked."""
EXCEL_SAFE = " A text that begins with a sign such as = has an additional apostrophe before it (see the codebook)."
MAX_RELATIONS = 20  # listed in a note, the most serious first
RELATION_HEAD = ("regression", "coefficient of", "change", "released, of the original", "original (standard error)")


class Amount(TypedDict):
    """The value of one utility measure: how much masking distorted."""

    measure: str  # its class and parameters, in their public form
    label: str  # its name for people
    value: float | None
    unit: str
    status: str
    reading: str


class Relation(TypedDict):
    """A relation that the file weakens, reverses or invents; numbers are null where the original must stay secret."""

    model: str
    term: str
    change: str
    share: float | None  # the released coefficient as a share of the original one
    original: float | None
    error: float | None  # standard error of the original coefficient
    released_error: float | None


class Relations(TypedDict):
    """What the file does to the findings of users."""

    summary: str
    others: str  # which tables, means and distributions changed, in a sentence
    changed: list[Relation]
    left_out: int  # changed relations beyond those listed


class Note(TypedDict):
    """The content of note.json."""

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
    relations: Relations | None
    rounded_like_the_original: list[str]
    renumbered_at_random: list[str]
    rows_shuffled: bool
    missing_values: str
    weights: str
    households: str
    draws_searched: int
    methods_searched: int
    draws_checked: int
    draws_allowed: int
    tries: list[TryFacts]
    largest_error: float
    may_not: list[str]
    example: str
    correction: str
    written: str
    missing_codes: list[str]
    overrides: list[dict[str, str]]
    ledger: HeadFacts | None  # how far the chain of the ledger had come when this try began; null in a preview


class SearchEffort(NamedTuple):
    """How much was tried before this release."""

    draws: int  # random draws of the released method that were scored
    methods: int  # methods of the study
    checked: int  # draws of the released method that were checked as written files ...
    allowed: int = DEFAULT_POLICY.draws  # ... and the largest allowed number of them
    error: float = sum(DEFAULT_POLICY.try_errors)  # share of studies in which the procedure writes a file above a limit


def method_note(
    view: PublicView, method: Method, prepared: Prepared, profile: str, effort: SearchEffort,
    losses: Sequence[tuple[Measure, ScoreRow]] = (), overrides: Sequence[dict[str, str]] = (), tries: Sequence[Try] = (),
    relations: Relations | None = None, recorded: Head | None = None,
) -> Note:  # fmt: skip
    """Return the note of a release, with its method, name and measures in their public form.

    recorded : the head of the ledger's chain at the beginning of the try that made the file.
    """
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
        "relations": relations,
        "rounded_like_the_original": numeric,
        "renumbered_at_random": list(prepared.renumbered),
        "rows_shuffled": True,
        "missing_values": MISSING.get(method.missing, method.missing),
        "weights": method.weights,
        "households": method.households,
        "draws_searched": effort.draws,
        "methods_searched": effort.methods,
        "draws_checked": effort.checked,
        "draws_allowed": effort.allowed,
        "tries": [describe_try(one, view.name_of(one.method)) for one in tries if one.passed is not None],
        "largest_error": round(effort.error, 9),
        "may_not": [*MAY_NOT, CAUTION],
        "example": example(data),
        "correction": correction(data, method),
        "written": format_named(data.schema.format).written + (EXCEL_SAFE if data.schema.excel_safe else ""),
        "missing_codes": [str(code) for code in parse_codes(codes_in(data))],
        "overrides": list(overrides),
        "ledger": None if recorded is None else recorded.facts,
    }


def describe_relations(found: RepeatedAnalyses) -> Relations:
    """Return what a released file does to the analyses of users, with the numbers that may be published."""
    changed = find_changed_relations(found)
    return {
        "summary": summarize(found.counted),
        "others": describe_other_analyses(found),
        "changed": [_relation(one) for one in changed[:MAX_RELATIONS]],
        "left_out": max(0, len(changed) - MAX_RELATIONS),
    }


def _relation(one: ChangedRelation) -> Relation:
    share, original, error, released = (None,) * 4 if one.numbers is None else map(two_digits, one.numbers)
    return {
        "model": one.model, "term": one.term, "change": one.change,
        "share": share, "original": original, "error": error, "released_error": released,
    }  # fmt: skip


def relation_cells(one: Relation) -> tuple[str, str, str, str, str]:
    """Return a row of a table of relations, in the order of `RELATION_HEAD`."""
    share = "-" if one["share"] is None else format_percent(one["share"])
    value = "-" if one["original"] is None else f"{one['original']:g} ({one['error']:g})"
    return one["model"], one["term"], one["change"], share, value


def _amount(text: str, measure: Measure, score: ScoreRow) -> Amount:
    value = None if score.value is None else two_digits(score.value)
    better = f"{measure.direction} is closer to the original"
    label = measure.label or split_class_name(type(measure).__name__)
    return {
        "measure": text, "label": label, "value": value, "unit": measure.value_unit, "status": score.status,
        "reading": better,
    }  # fmt: skip


def two_digits(value: float) -> float:
    """Return a score rounded to two significant digits.

    >>> two_digits(0.012345), two_digits(98765.0), two_digits(0.0)
    (0.012, 99000.0, 0.0)
    """
    return float(f"{value:.1e}") if math.isfinite(value) else value


def example(data: Microdata) -> str:
    """Return lines of Python that run in the folder of the release: read the file and estimate a mean or counts."""
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
    """Return the missing-value codes of each column, where the format of the file cannot store them."""
    if format_named(data.schema.format).labels:
        return {}
    coded = {v.name: [code for code in v.missing if not isinstance(code, tuple)] for v in data.schema.variables}
    return {name: codes for name, codes in coded.items() if codes}


def correction(data: Microdata, method: Method, **options: str) -> str:
    """Return lines of Python that remove the noise from estimates; empty where no correction exists."""
    try:
        correct(data, method, weighted=data.weight is not None)
    except SdcmapError:
        return ""
    file, more = f"data.{data.schema.format}", "".join(f", {name}={value!r}" for name, value in options.items())
    if data.weight is None:
        return f'import sdcmap as sm\n\nprint(sm.correct("{file}", "note.json"{more}))\n'
    missing = f", missing={codes}" if (codes := codes_in(data)) else ""
    lines = ["import sdcmap as sm", "", f'data = sm.read("{file}", weight={data.weight!r}{missing})']
    return "\n".join([*lines, f'print(sm.correct(data, "note.json"{more}, weighted=True))', ""])


def note_text(note: Note) -> str:
    """Return the note as a page to read."""
    draws, methods = note["draws_searched"], note["methods_searched"]
    lines = [
        "# Method note", "", note["for_whom"], "",
        "## How the file was masked", "",
        f"Method: {note['method_name']}. The file was made with {note['made_by']}.", "",
        "note.json contains every parameter. The codebook describes what was done to each column.", "",
        f"- Masked columns: {_list(note['masked'])}.",
        f"- Columns that are not masked: {_list(note['not_masked'])}.",
        f"- Missing values: {note['missing_values']}.",
        f"- Survey weights: {note['weights']}.",
        f"- Households: {note['households']}.",
        f"- Rounded to the precision of the original: {_list(note['rounded_like_the_original'])}.",
        f"- Renumbered at random: {_list(note['renumbered_at_random'])}. The rows are in random order.", "",
        "## How the file was selected", "",
        f"The agency compared {_count(methods, 'method')} and scored {_count(draws, 'random draw')} of this method. The "
        f"released file is a new draw. {_count(note['draws_checked'], 'draw')} of this method went through the release "
        f"checks (at most {note['draws_allowed']} may).", "",
        *_try_lines(note["tries"], note["largest_error"]),
        "## What masking preserves and distorts", "",
        f"Preserved: {note['kept_exactly'] or 'nothing is guaranteed'}.", "",
        f"Distorted: {note['distorted'] or 'see the measures below'}.", "",
    ]  # fmt: skip
    if note["distorted_by"]:
        lines += ["How much was distorted, measured on the released file:", ""]
        lines += ["| measure | value | unit | how to read it |", "|---|---|---|---|"]
    for measure in note["distorted_by"]:
        value = f"not tested ({measure['status']})" if measure["value"] is None else f"{measure['value']:g}"
        name = f"{measure['label']}: `{measure['measure']}`"
        lines.append(f"| {name} | {value} | {measure['unit']} | {measure['reading']} |")
    lines += _relation_lines(note["relations"])
    if note["overrides"]:
        lines += ["", "## Release checks that the agency overrode", ""]
        lines += ["The file failed these checks. The agency released it for the reason stated.", ""]
        lines += [f"- {check_label(entry['check'])}: {entry['reason']}" for entry in note["overrides"]]
    lines += ["", "## Conditions of use", "", *(f"- {sentence}" for sentence in note["may_not"])]
    lines += ["", "## How to use the file", "", *([note["written"], ""] if note["written"] else [])]
    lines += _code(note["example"])
    if note["correction"]:
        about = "To estimate means, covariances and regressions without the added noise:"
        lines += [about, "", *_code(note["correction"])]
    return "\n".join(lines)


def _relation_lines(relations: Relations | None) -> list[str]:
    """Return which relations between columns the file weakens, and by how much."""
    if relations is None:
        return []
    words = f"{RELATIONS} {relations['summary']} {relations['others']}".strip()
    lines = ["", "## Relations that masking changes", "", words]
    if not relations["changed"]:
        none = f"No clear coefficient of a regression is smaller by more than {CLEARLY_CHANGED:g} standard errors."
        return [*lines, "", none]
    lines += ["", "Do not publish a result about these relations from this file alone:", ""]
    lines += [f"| {' | '.join(RELATION_HEAD)} |", "|---|---|---|---:|---:|"]
    for model, term, *rest in map(relation_cells, relations["changed"]):
        lines.append(f"| {' | '.join((f'`{model}`', f'`{term}`', *rest))} |")
    if relations["left_out"]:
        lines += ["", f"{_count(relations['left_out'], 'more coefficient')} changed."]
    return lines


def _try_lines(tries: Sequence[TryFacts], error: float) -> list[str]:
    """Return what the procedure guarantees, and its tries."""
    if not tries:
        return []
    outcome = {True: "within every tested limit; this is the released file", False: "above a limit; not released"}
    lines = [
        f"- {one['candidate']}, at the confidence level {one['confidence_level']:g}: {outcome[bool(one['passed'])]}."
        for one in tries
    ]
    return [CLAIM.format(error=format_percent(error)), "", *lines, ""]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _code(program: str) -> tuple[str, ...]:
    return "```python", program.rstrip("\n"), "```", ""
