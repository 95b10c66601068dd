"""Docstrings taken apart: what help, forms, schemas, reference pages and reports say of a class or function.

A parameter's sentence stands once, in the docstring of the class that declares the field. `Value` copies the sentences of
inherited fields into the docstring of each subclass, so that `help()` shows them all.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECTION, EXAMPLES = "Parameters\n----------\n", "Examples\n--------\n"
LISTED = re.compile(r"^(\w[\w, ]*) : (.*(?:\n[ ]+.*)*)", re.MULTILINE)  # `lower, upper : bounds`, and indented lines
NOTES = re.compile(r"\n\n(?=(?:Formula|Missing|Weights|Examples)\b)")  # what follows the parameters


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring: first sentence, story, sentence of each parameter, notes, example."""

    summary: str
    story: str
    parameters: dict[str, str]
    notes: str
    example: str


def docstring(thing: Callable[..., Any]) -> Docstring:
    """Take the docstring of a class or function apart."""
    text, _, example = inspect.cleandoc(thing.__doc__ or "").partition(EXAMPLES)
    before, listed, notes = _split(text)
    summary, _, story = before.partition("\n\n")
    sentences = {name: one_line(lines) for name, lines in _lines_by_name(listed).items()}
    return Docstring(one_line(summary), story.strip(), sentences, notes.strip(), example.strip())


def parameter_sentences(thing: Callable[..., Any]) -> dict[str, str]:
    """Return the sentence of each parameter of a function, or of a class, those of inherited fields included."""
    return docstring(thing).parameters


def with_inherited_parameters(cls: type) -> str:
    """Return the docstring of a class, with the parameters that only its bases describe added to its own."""
    text = inspect.cleandoc(cls.__doc__ or "")
    before, listed, after = _split(text)
    added: dict[str, str] = {}
    for base in reversed(cls.__bases__):
        added |= _lines_by_name(_split(base.__doc__ or "")[1])
    own = _lines_by_name(listed)
    lines = [f"{name} : {words}" for name, words in added.items() if name not in own]
    if not lines:
        return text
    return f"{before}\n\n{SECTION}" + "\n".join(filter(None, [listed, *lines])) + after


def one_line(text: str) -> str:
    """Fold white space."""
    return " ".join(text.split())


def _split(text: str) -> tuple[str, str, str]:
    """The text before the section of parameters, the lines of the section, and the text after it."""
    before, section, after = text.partition(SECTION)
    if not section:
        place = NOTES.search(text)
        cut = place.start() if place else len(text)
        return text[:cut], "", text[cut:]
    listed, gap, notes = after.partition("\n\n")
    return before.rstrip(), listed.rstrip(), gap + notes


def _lines_by_name(listed: str) -> dict[str, str]:
    return {name: lines for names, lines in LISTED.findall(listed) for name in names.split(", ")}
