"""README.md and CITATION.cff of a release.

The README says what is in the folder, how to start and how to cite the file, how to correct estimates for the masking, and
what cannot be concluded from the file. Every number in it is computed from the released file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sdcmap.bundle.codebook import Entry
from sdcmap.bundle.note import Note, correction
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Method, Microdata, SdcmapError
from sdcmap.corrections import correct
from sdcmap.files.formats import format_named

NOT_STATED = "owner not stated"


@dataclass(frozen=True)
class About:
    """What a person states about the data."""

    title: str  # as stated, or from the codebook of the data
    owner: str  # empty: not stated
    date: str  # of the release, such as 2026-02-27


def citation(about: About, note: Note) -> str:
    """Return the text of CITATION.cff, in the Citation File Format 1.2.0."""
    fields = {
        "cff-version": "1.2.0",
        "message": "Please cite this data file when you publish results from it.",
        "type": "dataset",
        "title": f"{about.title}, {note['profile']} file",
        "abstract": f"{note['for_whom']} Masking method: {note['method_name']}.",
        "date-released": about.date,
    }
    lines = [f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in fields.items()]  # JSON is YAML
    name = json.dumps(about.owner or NOT_STATED, ensure_ascii=False)
    return "\n".join([*lines, "authors:", f"  - name: {name}", ""])


def cite(about: About, note: Note) -> str:
    """Return the citation as one line for a list of references."""
    return f"{about.owner or NOT_STATED} ({about.date[:4]}). {about.title}, {note['profile']} file [data set]."


FILES = {
    "codebook.md": "every column: what it is, how it was masked, how to read it",
    "codebook.json": "the codebook for programs",
    "codebook.xml": "the codebook as DDI-Codebook 2.5, for archives",
    "note.md": "how the file was masked, and what that preserves and distorts",
    "note.json": "the method note for programs, with every parameter",
    "CITATION.cff": "how to cite the file",
    "SHA256SUMS": "checksums; `sha256sum --check SHA256SUMS` verifies that no file was changed",
}
MIN_GROUP_RECORDS = 30  # in smaller groups the error of masking is often larger than the differences of interest
MAX_NAMES_LISTED = 8  # columns that a sentence names


def readme(about: About, entries: Sequence[Entry], prepared: Prepared, method: Method, note: Note) -> str:
    """Return the text of README.md."""
    form = format_named(prepared.data.schema.format)
    labels = "with labels" if form.labels else "the codebook contains the labels"
    files = {f"data.{form.name}": f"the data ({form.words}; {labels})"}
    files |= {f"data{ending}": "a program that sets the value labels" for ending in form.beside} | FILES
    sections = {
        f"# {about.title}": f"{note['for_whom']} {len(prepared.data):,} records, {len(entries)} columns.",
        "## What is in this folder": _bullets(f"`{name}`: {what}" for name, what in files.items()),
        "## Getting started": _code(note["example"]),
        "## Correcting estimates for the masking": _corrections(prepared.data, method),
        "## What the file cannot tell you": _bullets(list_caveats(entries, prepared, method)),
        "## Conditions of use": _bullets(note["may_not"]),
        "## How to cite": cite(about, note),
    }
    return "\n\n".join(f"{head}\n\n{text}" for head, text in sections.items()) + "\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _code(lines: str, language: str = "python") -> str:
    return f"```{language}\n{lines.rstrip()}\n```"


def _corrections(data: Microdata, method: Method) -> str:
    """Return worked corrections with their output, or why there are none."""
    weighted = data.weight is not None
    try:
        estimates = correct(data, method, weighted=weighted)
    except SdcmapError as reason:
        return (
            f"There is no correction for this file: {str(reason).rstrip('.')}. Before you rely on a small difference, look "
            "up in note.md how much masking distorted."
        )
    paragraphs = [
        "Random noise was added to this file. Means remain unbiased, variances are too large, and regression coefficients "
        "may be biased toward 0. `sm.correct` removes the effect of the noise with the parameters in note.json. In its "
        "output, `released` is the estimate without correction.",
        *(_code(correction(data, method)), _code(repr(estimates), "text")),
    ]
    if regression := _regression(data, method):
        on, model = regression
        estimates = correct(data, method, on=on, regress=model, weighted=weighted)
        paragraphs += [
            "The same for a regression:",
            _code(correction(data, method, on=on, regress=model)),
            _code(repr(estimates), "text"),
        ]
    return "\n\n".join(paragraphs)


def _regression(data: Microdata, method: Method) -> tuple[str, str] | None:
    """Return a noisy variable and a formula that regresses it on another one; None where there is none."""
    noisy = [name for name in method.added_noise().on if name in data.numeric]
    others = [name for name in data.numeric if name not in noisy[:1] and name != data.weight]
    if not noisy or not others:
        return None
    model = f"{noisy[0]} ~ {min(others, key=lambda name: name not in noisy)}"
    try:
        correct(data, method, regress=model)
    except SdcmapError:
        return None
    return noisy[0], model


def list_caveats(entries: Sequence[Entry], prepared: Prepared, method: Method) -> Iterator[str]:
    """Yield what cannot be concluded from the file, by what was done to it."""
    for step in method.steps:
        names = [name for name in prepared.masked if name in step.masks(prepared.data)]
        if step.distorted and names:
            yield f"{_names(names)} ({step.action}). Distorted: {step.distorted}."
    if any(step.random for step in method.steps):
        yield "A single value or a single record says nothing about a person: it may have been changed at random."
    if suppressed := [entry["name"] for entry in entries if entry["counts"]["suppressed"]]:
        warning = "If you drop these records, rare groups look even rarer"
        yield f"Rare values of {_names(suppressed)} were suppressed. {warning}."
    if recoded := [entry["name"] for entry in entries if entry["counts"]["recoded"]]:
        yield f"Values within a class of {_names(recoded)}, or beyond its last bound, cannot be distinguished."
    if not prepared.data.paired:
        yield (
            "The file is fully synthetic: its rows do not correspond to people. A model generated them, and relationships "
            "that the model does not contain are not in the file."
        )
    yield "If a combination of values is not in the file, people may still have it. The reverse is true as well."
    yield (
        f"In a group of fewer than {MIN_GROUP_RECORDS} records, the error of masking may be larger than the difference you "
        "are looking for."
    )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMES_LISTED])
    more = len(names) - MAX_NAMES_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
