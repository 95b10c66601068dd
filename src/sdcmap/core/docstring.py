"""Parse docstrings for help, forms, schemas, reference pages and reports.

The sentence of a parameter is written once, in the docstring of the class that declares the field. So is a note that
applies to all subclasses. `Value` copies both into the docstrings of subclasses, so that `help()` shows them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECTION, EXAMPLES = "Parameters\n----------\n", "Examples\n--------\n"
PARAMETER_LINES = re.compile(
    r"^(\w[\w, ]*) : (.*(?:\n[ ]+.*)*)", re.MULTILINE
)  # `lower, upper : bounds`, and indented lines
NOTES = re.compile(r"^(?=(?:Formula|Missing|Weights|Reference|Households|Releasing nothing)\b)", re.MULTILINE)
INHERITED = ("Missing", "Weights", "Reference")  # a subclass without its own note inherits notes that begin so


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring: summary, story, the sentence of each parameter, notes, example."""

    summary: str
    story: str
    parameters: dict[str, str]
    notes: list[str]
    example: str


def docstring(thing: Callable[..., Any]) -> Docstring:
    """Split the docstring of a class or function into its parts."""
    head, listed, notes, example = _split(inspect.cleandoc(thing.__doc__ or ""))
    summary, _, story = head.partition("\n\n")
    sentences = {name: one_line(lines) for name, lines in _lines_by_name(listed).items()}
    return Docstring(one_line(summary), story.strip(), sentences, _notes(notes), example)


def parameter_sentences(thing: Callable[..., Any]) -> dict[str, str]:
    """Return the sentence of each parameter of a function, or of a class, those of inherited fields included."""
    return docstring(thing).parameters


def add_inherited(cls: type) -> str:
    """Return the docstring of a class, with the parameters and notes added that only its bases describe."""
    text = inspect.cleandoc(cls.__doc__ or "")
    head, listed, notes, example = whole = _split(text)
    # the docstrings of bases are complete already, because they went through here when they were defined
    for base in cls.__bases__:
        _, base_listed, base_notes, _ = _split(base.__doc__ or "")
        own, labels = _lines_by_name(listed), tuple(label for label in INHERITED if f"\n{label}" not in f"\n{notes}")
        lines = [f"{name} : {words}" for name, words in _lines_by_name(base_listed).items() if name not in own]
        listed = "\n".join(filter(None, [listed, *lines]))
        notes = "\n".join(filter(None, [notes, *(note for note in _notes(base_notes) if note.startswith(labels))]))
    if (head, listed, notes, example) == whole:
        return text
    parts = [head, SECTION + listed if listed else "", notes, EXAMPLES + example if example else ""]
    return "\n\n".join(filter(None, parts))


def one_line(text: str) -> str:
    """Return the text with all white space folded to single spaces."""
    return " ".join(text.split())


def _split(text: str) -> tuple[str, str, str, str]:
    """Return summary and story, the lines of the parameters, notes, and example."""
    text, _, example = text.partition(EXAMPLES)
    head, section, rest = text.partition(SECTION)
    listed, _, notes = rest.partition("\n\n") if section else ("", "", "")
    if not section:
        first = NOTES.search(text)
        head, notes = (text[: first.start()], text[first.start() :]) if first else (text, "")
    return head.strip(), listed.strip(), notes.strip(), example.strip()


def _lines_by_name(listed: str) -> dict[str, str]:
    return {name: lines for names, lines in PARAMETER_LINES.findall(listed) for name in names.split(", ")}


def _notes(notes: str) -> list[str]:
    return [note.strip() for note in NOTES.split(notes) if note.strip()]
