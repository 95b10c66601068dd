"""README.md and CITATION.cff of a release: what is in the folder, how to begin and how to cite it, what the masking does to
an analysis and how it is taken off, and what may not be concluded. Every number is computed from the released file."""

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
    """The title of the data, as a person or a codebook states it; whose they are; the release's date, as 2026-02-27."""

    title: str
    owner: str
    date: str


def citation(about: About, note: Note) -> str:
    """The text of CITATION.cff, in the Citation File Format 1.2.0; a text in YAML may be written as one in JSON."""
    words = {
        "cff-version": "1.2.0",
        "message": "Cite this file where you publish what you found in it.",
        "type": "dataset",
        "title": f"{about.title}, {note['profile']} file",
        "abstract": f"{note['for_whom']} It was masked: {note['method_name']}.",
        "date-released": about.date,
    }
    lines = [f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in words.items()]
    name = json.dumps(about.owner or NOT_STATED, ensure_ascii=False)
    return "\n".join([*lines, "authors:", f"  - name: {name}", ""])


def cited(about: About, note: Note) -> str:
    """The same in one line for a list of references."""
    return f"{about.owner or NOT_STATED} ({about.date[:4]}). {about.title}, {note['profile']} file [data set]."


FILES = {
    "codebook.md": "every column: what it is, what was done to it, how to read it",
    "codebook.json": "the same for programs",
    "codebook.xml": "the same as DDI-Codebook 2.5, for archives",
    "note.md": "how the file was masked, and what that keeps and distorts",
    "note.json": "the same for programs, with every parameter",
    "CITATION.cff": "how to cite the file",
    "SHA256SUMS": "to see that nothing was changed: sha256sum --check SHA256SUMS",
}
FEW = 30  # records below which a group says little


def readme(about: About, entries: Sequence[Entry], prepared: Prepared, method: Method, note: Note) -> str:
    """The text of README.md."""
    form = format_named(prepared.data.schema.format)
    labels = "with labels" if form.labels else "the labels stand in the codebook"
    files = {f"data.{form.name}": f"the file ({form.words}; {labels})"}
    files |= {f"data{ending}": "the value labels, as a program" for ending in form.beside} | FILES
    parts = {
        f"# {about.title}": f"{note['for_whom']} {len(prepared.data):,} records, {len(entries)} columns.",
        "## What is in this folder": _bullets(f"`{name}`: {what}" for name, what in files.items()),
        "## Begin": _code(note["example"]),
        "## Corrections": _corrections(prepared.data, method),
        "## What may not be concluded": _bullets(not_concluded(entries, prepared, method)),
        "## What may not be done": _bullets(note["may_not"]),
        "## Cite it": cited(about, note),
    }
    return "\n\n".join(f"{head}\n\n{text}" for head, text in parts.items()) + "\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _code(lines: str, language: str = "python") -> str:
    return f"```{language}\n{lines.rstrip()}\n```"


def _corrections(data: Microdata, method: Method) -> str:
    """Worked corrections with their output, or why there are none."""
    weighted = data.weight is not None
    try:
        estimates = correct(data, method, weighted=weighted)
    except SdcmapError as reason:
        return (
            f"There is no correction for this file: {str(reason).rstrip('.')}. Look at how much the measures in note.md "
            "say was distorted before you rely on a small difference."
        )
    said = [
        "Noise was added. Means stay right, variances become too large, and regressions may be pulled towards 0. "
        "`sm.correct` takes the noise off by the parameters in the note; `released` is what the file says as it is.",
        *(_code(correction(data, method)), _code(repr(estimates), "text")),
    ]
    if regression := _regression(data, method):
        on, model = regression
        estimates = correct(data, method, on=on, regress=model, weighted=weighted)
        said += ["A regression:", _code(correction(data, method, on=on, regress=model)), _code(repr(estimates), "text")]
    return "\n\n".join(said)


def _regression(data: Microdata, method: Method) -> tuple[str, str] | None:
    """A noisy number and a formula that explains it by another number; None where there is none."""
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


def not_concluded(entries: Sequence[Entry], prepared: Prepared, method: Method) -> Iterator[str]:
    """What the file cannot bear, by what was done to it."""
    for step in method.steps:
        names = [name for name in prepared.masked if name in step.masks(prepared.data)]
        if step.distorted and names:
            yield f"In {_names(names)} ({step.action}) masking distorted: {step.distorted}."
    if any(step.random for step in method.steps):
        yield "A single value, and a single record, say nothing of anybody."
    if blanked := [entry["name"] for entry in entries if entry["counts"]["suppressed"]]:
        warning = "leaving such records out makes the rare look rarer still"
        yield f"Values of {_names(blanked)} were blanked where they were rare: {warning}."
    if classed := [entry["name"] for entry in entries if entry["counts"]["recoded"]]:
        yield f"Within a class of {_names(classed)} nothing can be told apart, nor beyond its last bound."
    if not prepared.data.paired:
        yield "No row is a person: the rows were made by a model, and what it does not hold is not in them."
    yield "That a combination of values is not in the file does not mean that nobody has it, nor the reverse."
    yield f"In a group of fewer than {FEW} records the masking may weigh more than the difference you look for."


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
