"""Build docs/reference/, which is not committed: a page for each method and measure from its docstring and its fields,
pages for read, Study, Scores and RUMap, and those of make_pages.py."""

from __future__ import annotations

import inspect
import shutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import make_pages
from make_pages import table

from sdcmap.core.docstring import docstring, one_line, parameter_sentences
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Range, Value, field_types
from sdcmap.files.reader import read
from sdcmap.map import RUMap
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.study.folder import Study
from sdcmap.study.scores import Scores
from sdcmap.utility import UTILITIES

FOLDER = Path(__file__).parent / "reference"
GROUPS = {"Methods": METHODS, "Risk measures": RISKS, "Utility measures": UTILITIES}
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers", bool: "true or false"}
NOUNS: tuple[Callable[..., Any], ...] = (read, Study, Scores, RUMap)
AS_STEPS = "as its steps say"


def notes_of(thing: Callable[..., Any]) -> tuple[str, str, str]:
    """The formula, the reference and all other notes of a docstring."""
    found = {"Formula": "", "Reference": ""}
    rules = []
    for note in docstring(thing).notes:
        label, colon, words = note.partition(":")
        if colon and label in found:
            found[label] = words.strip()
        else:
            rules.append(one_line(note))
    return found["Formula"], one_line(found["Reference"]), " ".join(rules)


def type_words(kind: Any) -> str:
    """An annotation in words: `tuple[str, ...]` is "list of texts"."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return type_words(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join("none" if one is type(None) else type_words(one) for one in arguments)
    if origin is Literal:
        return "text"
    if origin is tuple:
        return f"list of {PLURALS.get(arguments[0], f'{type_words(arguments[0])} values')}"
    return WORDS.get(kind, getattr(kind, "__name__", str(kind)))


def range_words(kind: Any) -> str:
    """The values an annotation allows: its Range, its choices, or nothing to say."""
    if typing.get_origin(kind) is Annotated:
        return ", ".join(str(limit) for limit in typing.get_args(kind)[1:] if isinstance(limit, Range))
    if typing.get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(kind))
    return ""


def default_words(f: Field[Any]) -> str:
    if f.default is MISSING:
        return "must be given"
    if f.default is None:
        return "none"
    if isinstance(f.default, bool):
        return f"`{str(f.default).lower()}`"
    if f.default == "":
        return '`""`'
    return f"`{list(f.default) if isinstance(f.default, tuple) else f.default}`"


def fact_words(fact: object) -> str:
    """A piece of class data in words; a property depends on the value it belongs to."""
    if isinstance(fact, property):
        return AS_STEPS
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, tuple):
        return ", ".join(map(str, fact))
    return str(fact) if fact not in ("", None) else "none"


def note_words(cls: type[Method], name: str) -> str:
    """What the method note says; where that depends on the parameters, what it says with their defaults."""
    if isinstance(getattr(cls, name), property) and "on" in field_types(cls):
        return f"with the defaults: {getattr(cls(on=('x',)), name)}"  # type: ignore[call-arg]
    return fact_words(getattr(cls, name))


def bounds_words(bounds: tuple[float | None, float | None]) -> str:
    low, high = bounds
    return f"{'minus infinity' if low is None else f'{low:g}'} to {'infinity' if high is None else f'{high:g}'}"


def facts(cls: type[Value]) -> dict[str, str]:
    """What the class declares of itself, in words."""
    return method_facts(cls) if issubclass(cls, Method) else measure_facts(typing.cast(type[Measure], cls))


def method_facts(cls: type[Method]) -> dict[str, str]:
    missing = {"kept": "stay as they are", "category": "are a category like any other", "refused": "are refused"}
    found = {
        "kinds": fact_words(cls.kinds) if "on" in field_types(cls) else "masks no variable",
        "random": fact_words(cls.random),
        "keeps": note_words(cls, "kept"),
        "distorts": note_words(cls, "distorted"),
        "missing values": missing.get(cls.missing, cls.missing),
        "weights": cls.weights,
        "households": cls.households,
    }
    return dict.fromkeys(found, AS_STEPS) if has_steps(cls) else found


def measure_facts(cls: type[Measure]) -> dict[str, str]:
    nothing = "depends on the data" if cls.nothing is not Measure.nothing else "has no value"
    return {
        "axis": cls.axis,
        "unit": cls.unit,
        "direction": f"{cls.direction} is better",
        "bounds": bounds_words(cls.bounds),
        "releasing nothing": nothing if cls.baseline_value is None else f"{cls.baseline_value:g}",
        "replicates": "pooled by their parts" if cls.expectation else "averaged",
        "random": fact_words(cls.sampled),
        "missing values": cls.missing,
        "weights": Measure.weights if "weights" in field_types(cls) else cls.weights,
        "households": cls.households,
    }


def has_steps(cls: type[Value]) -> bool:
    """Whether the class is made of other methods, and so declares nothing of its own."""
    return any(kind in (Method, tuple[Method, ...]) for kind in field_types(cls).values())


def page(cls: type[Value]) -> str:
    """The reference page of one method or measure."""
    formula, reference, rules = notes_of(cls)
    kinds = field_types(cls)
    words = parameter_sentences(cls)
    rows = [
        [f"`{f.name}`", type_words(kinds[f.name]), range_words(kinds[f.name]), default_words(f), words.get(f.name, "")]
        for f in sorted(fields(cls), key=lambda f: f.kw_only)
        if not (f.name == "within" and has_steps(cls))
    ]
    sections = {
        "Parameters": table(["name", "type", "range", "default", "meaning"], rows) if rows else "None.",
        "Formula": f"```text\n{formula}\n```" if formula else "",
        "Facts": table(["", ""], [[name, fact] for name, fact in facts(cls).items()]),
        "Notes": rules,
        "Reference": reference,
    }
    return page_of(cls, sections)


def page_of(thing: Callable[..., Any], sections: Mapping[str, str]) -> str:
    """A page: the name, what the docstring tells, the sections that are not empty, the example."""
    doc = docstring(thing)
    sections = {**sections, "Example": f"```pycon\n{doc.example}\n```" if doc.example else ""}
    body = [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join(filter(None, [f"# {thing.__name__}", doc.summary, doc.story, *body])) + "\n"


# ---- the nouns ------------------------------------------------------------------------------------------------
def noun_page(noun: Callable[..., Any]) -> str:
    """The page of a function or class: what it is, its parameters, its members, an example."""
    told = [[f"`{name}`", words] for name, words in parameter_sentences(noun).items()]
    sections = {
        "Parameters": table(["name", "meaning"], told) if told else "",
        "Notes": notes_of(noun)[2],
        "Members": table(["name", "what"], list(members(noun))) if inspect.isclass(noun) else "",
    }
    return page_of(noun, sections)


def members(cls: type) -> Iterator[list[str]]:
    """Public methods with their arguments, and properties, each with its first sentence."""
    for name, member in vars(cls).items():
        if name.startswith("_") or not (isinstance(member, property | cached_property) or inspect.isroutine(member)):
            continue
        words = docstring(typing.cast(Any, member)).summary
        if not words:
            continue
        if isinstance(member, property | cached_property):
            yield [f"`.{name}`", words]
        elif inspect.isroutine(made := getattr(cls, name)):
            given = [argument for argument in inspect.signature(made).parameters if argument != "self"]
            yield [f"`.{name}({', '.join(given)})`", words]


def index() -> str:
    """The front page: every method and measure with its first sentence."""
    parts = ["# Reference\n\nMade by `make docs` from the source; do not edit by hand."]
    for title, members in GROUPS.items():
        rows = [[f"[{cls.__name__}]({cls.__name__}.md)", docstring(cls).summary] for cls in members]
        parts.append(f"## {title}\n\n{table(['name', 'what'], rows)}")
    nouns = [[f"[{noun.__name__}]({noun.__name__}.md)", docstring(noun).summary] for noun in NOUNS]
    parts.append(f"## Nouns and verbs\n\n{table(['name', 'what'], nouns)}")
    others = [f"[{text.splitlines()[0].removeprefix('# ')}]({name})" for name, text in make_pages.pages().items()]
    parts.append(f"## Commands, plans, errors\n\n{' · '.join(others)}")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """File name -> text, for the whole folder."""
    nouns = {f"{noun.__name__}.md": noun_page(noun) for noun in NOUNS}
    classes = {f"{cls.__name__}.md": page(cls) for group in GROUPS.values() for cls in group}
    return {"README.md": index()} | make_pages.pages() | nouns | classes


def write(folder: Path = FOLDER) -> None:
    """Make the folder anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"{len(pages())} pages in {FOLDER}")
