"""Build docs/reference, which is not committed.

There is a page for each method and measure, from its docstring, fields and class data; pages for read, Study, Scores and
RUMap; and the pages of make_pages.py.
"""

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
AS_STEPS = "as its steps"
BY_PARAMETERS = "depends on the parameters"


def notes_of(thing: Callable[..., Any]) -> tuple[str, str, str]:
    """Return the formula, the reference and all other notes of a docstring."""
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
    """Describe an annotation: `tuple[str, ...]` is "list of texts"."""
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
    """Describe the values that an annotation allows: its Range or its choices; otherwise ""."""
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
    """Describe class data; a property depends on the parameters."""
    if isinstance(fact, property):
        return BY_PARAMETERS
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, tuple):
        return ", ".join(map(str, fact))
    return str(fact) if fact not in ("", None) else "none"


def note_words(cls: type[Method], name: str) -> str:
    """Return what the method note says; if that depends on the parameters, what it says with their defaults."""
    if isinstance(getattr(cls, name), property) and "on" in field_types(cls):
        return f"with the defaults: {getattr(cls(on=('x',)), name)}"  # type: ignore[call-arg]
    return fact_words(getattr(cls, name))


def bounds_words(bounds: tuple[float | None, float | None]) -> str:
    low, high = bounds
    return f"{'minus infinity' if low is None else f'{low:g}'} to {'infinity' if high is None else f'{high:g}'}"


def facts(cls: type[Value]) -> dict[str, str]:
    """Describe the class data of a class."""
    return method_facts(cls) if issubclass(cls, Method) else measure_facts(typing.cast(type[Measure], cls))


def method_facts(cls: type[Method]) -> dict[str, str]:
    missing = {
        "kept": "stay missing",
        "category": "are one more category",
        "added": "values become missing",
        "refused": "are refused",
    }
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
    nothing = "depends on the data" if cls.baseline is not Measure.baseline else "has no value"
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
    """Return whether the class consists of other methods, whose class data apply."""
    return any(kind in (Method, tuple[Method, ...]) for kind in field_types(cls).values())


def page(cls: type[Value]) -> str:
    """Return the reference page of a method or measure."""
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
    """Return a page: the name, the docstring, the sections that are not empty, and the example."""
    doc = docstring(thing)
    sections = {**sections, "Example": f"```pycon\n{doc.example}\n```" if doc.example else ""}
    body = [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join(filter(None, [f"# {thing.__name__}", doc.summary, doc.story, *body])) + "\n"


# ---- the nouns ------------------------------------------------------------------------------------------------
def noun_page(noun: Callable[..., Any]) -> str:
    """Return the page of a function or class: what it is, its parameters, its members and an example."""
    parameters = [[f"`{name}`", words] for name, words in parameter_sentences(noun).items()]
    sections = {
        "Parameters": table(["name", "meaning"], parameters) if parameters else "",
        "Notes": notes_of(noun)[2],
        "Members": table(["name", "what"], list(members(noun))) if inspect.isclass(noun) else "",
    }
    return page_of(noun, sections)


def members(cls: type) -> Iterator[list[str]]:
    """Yield public methods with their arguments, and properties, each with its first sentence."""
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
    """Return the index page: every method and measure with its first sentence."""
    parts = [
        "# Reference\n\nAll classes, commands and plan fields. `make docs` builds these pages from the source code."
    ]
    for title, members in GROUPS.items():
        rows = [[f"[{cls.__name__}]({cls.__name__}.md)", docstring(cls).summary] for cls in members]
        parts.append(f"## {title}\n\n{table(['name', 'what'], rows)}")
    nouns = [[f"[{noun.__name__}]({noun.__name__}.md)", docstring(noun).summary] for noun in NOUNS]
    parts.append(f"## Reading, studies and maps\n\n{table(['name', 'what'], nouns)}")
    others = [f"[{text.splitlines()[0].removeprefix('# ')}]({name})" for name, text in make_pages.pages().items()]
    parts.append(f"## Commands, plans, errors\n\n{' · '.join(others)}")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return file name -> text of the whole folder."""
    nouns = {f"{noun.__name__}.md": noun_page(noun) for noun in NOUNS}
    classes = {f"{cls.__name__}.md": page(cls) for group in GROUPS.values() for cls in group}
    return {"README.md": index()} | make_pages.pages() | nouns | classes


def write(folder: Path = FOLDER) -> None:
    """Build the folder from scratch."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"{len(pages())} pages in {FOLDER}")
