"""Write docs/reference/: one page for each method and measure, made from its docstring and its dataclass fields; and pages
for read, Study, Scores, RUMap and a plan's TOML, made from docstrings and a plan."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from sdcmap.choose import Threshold
from sdcmap.core.grid import grid
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Range, Value, hints
from sdcmap.explore.forms import field_words, parameters
from sdcmap.files.reading import Source, read
from sdcmap.map import RUMap
from sdcmap.methods import METHODS, RankSwap, Swap
from sdcmap.risk import RISKS, SmallCells
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores
from sdcmap.utility import UTILITIES, Hellinger

FOLDER = Path(__file__).parent / "reference"
GROUPS = {"Methods": METHODS, "Risk measures": RISKS, "Utility measures": UTILITIES}
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers", bool: "true or false"}
NOUNS: tuple[Callable[..., Any], ...] = (read, Study, Scores, RUMap)
AS_STEPS = "as its steps say"
NOTE = re.compile(r"(?=^(?:Formula|Reference|Missing|Weights|Households|Releasing nothing)\b)", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """The parts of a method's or measure's docstring."""

    summary: str
    story: str
    parameters: dict[str, str]
    formula: str
    rules: str
    reference: str
    example: str


def docstring(cls: Callable[..., Any]) -> Docstring:
    """The docstring of a class or function, taken apart: first sentence, story, parameters, labelled notes, example."""
    text = inspect.cleandoc(cls.__doc__ or "")
    text, _, example = text.partition("Examples\n--------\n")
    before, _, after = text.partition("Parameters\n----------\n")
    summary, _, story = before.strip().partition("\n\n")
    listed, _, notes = after.partition("\n\n") if after else ("", "", story)
    story = story if after else ""
    found = {"Formula": "", "Reference": ""}
    rules = []
    for note in NOTE.split(notes):
        label, colon, words = note.strip().partition(":")
        if colon and label in found:
            found[label] = words.strip()
        elif note.strip():
            rules.append(one_line(note))
    return Docstring(
        one_line(summary),
        story.strip(),
        parameters(listed),
        found["Formula"],
        " ".join(rules),
        one_line(found["Reference"]),
        example.strip(),
    )


def one_line(text: str) -> str:
    return " ".join(text.split())


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
    if isinstance(getattr(cls, name), property) and "on" in hints(cls):
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
        "kinds": fact_words(cls.kinds) if "on" in hints(cls) else "masks no variable",
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
        "releasing nothing": nothing if cls.at_nothing is None else f"{cls.at_nothing:g}",
        "replicates": "pooled by their parts" if cls.expectation else "averaged",
        "random": fact_words(cls.sampled),
        "missing values": cls.missing,
        "weights": Measure.weights if "weights" in hints(cls) else cls.weights,
        "households": cls.households,
    }


def has_steps(cls: type[Value]) -> bool:
    """Whether the class is made of other methods, and so declares nothing of its own."""
    return any(kind in (Method, tuple[Method, ...]) for kind in hints(cls).values())


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def page(cls: type[Value]) -> str:
    """The reference page of one method or measure."""
    doc = docstring(cls)
    kinds = hints(cls)
    words = field_words(cls)
    rows = [
        [f"`{f.name}`", type_words(kinds[f.name]), range_words(kinds[f.name]), default_words(f), words.get(f.name, "")]
        for f in sorted(fields(cls), key=lambda f: f.kw_only)
        if not (f.name == "within" and has_steps(cls))
    ]
    sections = {
        "Parameters": table(["name", "type", "range", "default", "meaning"], rows) if rows else "None.",
        "Formula": f"```text\n{doc.formula}\n```" if doc.formula else "",
        "Facts": table(["", ""], [[name, fact] for name, fact in facts(cls).items()]),
        "Notes": doc.rules,
        "Reference": doc.reference,
        "Example": f"```pycon\n{doc.example}\n```" if doc.example else "",
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)
    opening = "\n\n".join(text for text in (doc.summary, doc.story) if text)
    return f"# {cls.__name__}\n\n{opening}\n\n{body}\n"


# ---- the nouns ------------------------------------------------------------------------------------------------
def noun_page(noun: Callable[..., Any]) -> str:
    """The page of a function or class: what it is, its parameters, its members, an example."""
    doc = docstring(noun)
    told = [[f"`{name}`", words] for name, words in doc.parameters.items()]
    sections = {
        "Parameters": table(["name", "meaning"], told) if told else "",
        "Notes": doc.rules,
        "Members": table(["name", "what"], list(members(noun))) if inspect.isclass(noun) else "",
        "Example": f"```pycon\n{doc.example}\n```" if doc.example else "",
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items() if text)
    opening = "\n\n".join(text for text in (doc.summary, doc.story) if text)
    return f"# {noun.__name__}\n\n{opening}\n\n{body}\n"


def members(cls: type) -> Iterator[list[str]]:
    """Public methods with their arguments, and properties, each with its first sentence."""
    for name, member in vars(cls).items():
        words = docstring(typing.cast(Any, member)).summary if getattr(member, "__doc__", None) else ""
        if name.startswith("_") or not words:
            continue
        if isinstance(member, property | cached_property):
            yield [f"`.{name}`", words]
        elif inspect.isroutine(made := getattr(cls, name)):
            given = [argument for argument in inspect.signature(made).parameters if argument != "self"]
            yield [f"`.{name}({', '.join(given)})`", words]


def plan_page() -> str:
    """The page of a plan's TOML: its parts, the fields of [data], and an example that is a plan."""
    parts = {name: words for name, words in docstring(Plan).parameters.items() if name not in ("seed", "names")}
    of_read = docstring(read).parameters | SOURCE_WORDS
    swap = Swap("sex", rate=0.1)
    example = Plan(
        [grid(RankSwap, on="income", p=[0.05, 0.1]), swap], [SmallCells(), Hellinger()], replicates=5,
        limits={"SmallCells": 0.02}, rule=Threshold(risk=0.02), data=Source("survey.csv", keys=("age", "sex")),
        names={swap: "sexes swapped"},
    )  # fmt: skip
    return PLAN_TOML.format(
        parts=table(["part", "meaning"], [[f"`{name}`", words] for name, words in parts.items()]),
        source=table(["field", "meaning"], [[f"`{f.name}`", of_read.get(f.name, "")] for f in fields(Source)]),
        example=example.toml().strip(),
    )


SOURCE_WORDS = {
    "path": "The file; a relative path is looked up beside the plan.",
    "proposed": "Columns whose role nobody has confirmed yet: `sdcmap look` wrote it, and a release refuses it.",
    "nominal": "Columns that are categories without an order, where the inferred kind is wrong.",
    "ordinal": "Columns that are categories with an order, where the inferred kind is wrong.",
}
PLAN_TOML = """# plan.toml

A plan as a file: what to make, what to measure, how to choose. `sdcmap look FILE -o plan.toml` writes one to start from,
`sdcmap check plan.toml` tells every problem at once; in Python, `Plan.read` and `Plan.write`. The seed is never in it.

## Parts

{parts}

Each method is a `[[methods]]` table, each measure a `[[measures]]` table: `type` is the class, the rest its parameters
(each class has a page here). A method may have a `name` for maps, reports and the public note; without one it is called by
its own words, such as "income rank swapped 10 %". `grid.PARAMETER = [...]` in a method's table stands for one method a
value, and `{{subsets = [...], sizes = [1, 2]}}` for all sets of so many names.

## [data]

{source}

## Example

```toml
{example}
```
"""


def index() -> str:
    """The front page: every method and measure with its first sentence."""
    parts = ["# Reference\n\nMade by `make docs` from the source; do not edit by hand."]
    for title, members in GROUPS.items():
        rows = [[f"[{cls.__name__}]({cls.__name__}.md)", docstring(cls).summary] for cls in members]
        parts.append(f"## {title}\n\n{table(['name', 'what'], rows)}")
    nouns = [[f"[{noun.__name__}]({noun.__name__}.md)", docstring(noun).summary] for noun in NOUNS]
    nouns.append(["[plan.toml](plan-toml.md)", "A plan as a file."])
    parts.append(f"## Nouns and verbs\n\n{table(['name', 'what'], nouns)}")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """File name -> text, for the whole folder."""
    nouns = {f"{noun.__name__}.md": noun_page(noun) for noun in NOUNS} | {"plan-toml.md": plan_page()}
    return (
        {"README.md": index()} | nouns | {f"{cls.__name__}.md": page(cls) for group in GROUPS.values() for cls in group}
    )


def write(folder: Path = FOLDER) -> None:
    """Write every page, and take away pages of methods and measures that are no more."""
    folder.mkdir(exist_ok=True)
    made = pages()
    for stale in folder.glob("*.md"):
        if stale.name not in made:
            stale.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} pages in {folder}")


if __name__ == "__main__":
    write()
