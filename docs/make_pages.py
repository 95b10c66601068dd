"""Build the pages of docs/reference that are not about one class: commands, plan.toml and its schema, and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import sdcmap
from sdcmap import errors
from sdcmap.choose import Threshold
from sdcmap.cli import app
from sdcmap.core.docstring import one_line
from sdcmap.core.grid import grid
from sdcmap.explore.plan_schema import plan_schema
from sdcmap.files.reader import Source
from sdcmap.methods import RankSwap, Swap
from sdcmap.risk import SmallCells
from sdcmap.study.plan import Plan
from sdcmap.utility import Hellinger

SOURCE = Path(sdcmap.__file__).parent


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# ---- commands -------------------------------------------------------------------------------------------------------
CLI = """# Commands

All commands of `sdcmap` with their arguments and examples. `make docs` builds this page from the commands, and `sdcmap
COMMAND --help` prints the same text.

Exit codes: 0 done; 1 a bug in sdcmap; 2 bad input; 3 nothing may be released; 130 stopped by Ctrl-C; 143 stopped by
SIGTERM. `--json` prints one JSON document for programs; notes go to stderr. For the meaning of an error and what to do,
see [errors](../errors.md).

"""


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands below this one with their full names."""
    if hasattr(command, "commands"):
        for part, below in command.commands.items():
            yield from commands(below, f"{name} {part}")
    else:
        yield name, command


def command_section(name: str, command: Any) -> str:
    text = inspect.cleandoc(command.help or "")
    examples = re.findall(r"^Example: (.*)$", text, re.MULTILINE)
    words = one_line(re.sub(r"^Example: .*$", "", text, flags=re.MULTILINE))
    rows = [row(parameter) for parameter in command.params if parameter.name != "help"]
    shown = "\n".join(f"    {example}" for example in examples)
    parts = [f"## {name}", words, shown, table(["argument", "default", "meaning"], rows) if rows else ""]
    return "\n\n".join(part for part in parts if part)


def row(parameter: Any) -> list[str]:
    words = one_line(getattr(parameter, "help", None) or "")
    if parameter.param_type_name == "argument":
        return [f"`{str(parameter.name).upper()}`", "must be given" if parameter.required else "", words]
    default = parameter.default
    plain = default is not None and not callable(default) and default not in ("", (), [], False)
    return [", ".join(f"`{name}`" for name in parameter.opts), f"`{default}`" if plain else "", words]


def cli_page() -> str:
    found = commands(typer.main.get_command(app), "sdcmap")
    return CLI + "\n\n".join(command_section(name, command) for name, command in found) + "\n"


# ---- plan.toml ------------------------------------------------------------------------------------------------------
TOML = """# plan.toml and its schema

Every part and field of a plan file, and its JSON Schema. A plan states which methods to try, what to measure and how to
choose.

`sdcmap look FILE -o plan.toml` writes a starting plan. `sdcmap check plan.toml` lists every problem at once. In Python,
use `Plan.read` and `Plan.write`. A plan file never contains the seed.

```toml
{example}
```

Each method is a `[[methods]]` table, each measure a `[[measures]]` table. `type` is the class, and the other keys are its
parameters (each class has a page in the [reference](README.md)). A method may have a `name` for maps, reports and the
method note. Without one, its title is used, such as "income rank swapped 10 %".

Plans stay short by names and lists:

```toml
[columns]
answers = ["sex", "age", "region", "income"]

[steps]
coarsen = [{{type = "Recode", on = "age", width = 10}}, {{type = "Recode", on = "region", prefix = 2}}]

[[methods]]
type = "Chain"
methods = ["coarsen", {{type = "Synthesize", on = ["answers", "-sex"], given = "sex", leaf = [20, 100]}}]
```

- `[columns]` names sets of columns. `on = "answers"` stands for all of them, `["answers", "-sex"]` for all but one, in
  methods, measures, axes and limits.
- `[steps]` names steps of methods. A chain uses them by name; a step is stated once.
- A list where a method or measure has one number or text is one method for each: the example is two methods, with 20 and
  with 100 records per leaf. Lists of one entry go together, the first values with the first, so they must be equally
  long. Where a parameter is a number or a list of numbers, such as `p` of RankSwap, strengths are lists: `[[0.05], [0.1]]`.
- `grid.PARAMETER = [...]` in the table of a method makes every combination of the values. `{{subsets = [...], sizes = [1,
  2]}}` adds one for each set of one or two names.
- `risk = "all"` puts every risk measure of the plan on the axis.

Scores, seeds and digests do not depend on how a plan is written.

    sdcmap schema -o plan.schema.json

writes the schema. It contains the fields of every installed method, measure and rule, including plug-ins. Editors with
TOML support find it by the first line of a plan:

    #:schema ./plan.schema.json

The schema checks names, types, ranges and choices. `sdcmap check` also checks that the plan fits the data file.

"""


def example_plan() -> Plan:
    swap = Swap("sex", rate=0.1)
    return Plan(
        [grid(RankSwap, on="income", p=[0.05, 0.1]), swap], [SmallCells(), Hellinger()], replicates=5,
        limits={"SmallCells": 0.02}, rule=Threshold(risk=0.02), data=Source("survey.csv", keys=("age", "sex")),
        names={swap: "sexes swapped"},
    )  # fmt: skip


def kind_words(schema: dict[str, Any]) -> str:
    """Describe what a part of the schema allows."""
    if "const" in schema:
        return f'`"{schema["const"]}"`'
    if "enum" in schema:
        return ", ".join(f'`"{choice}"`' for choice in schema["enum"])
    if "$ref" in schema:
        return f"a {schema['$ref'].rpartition('/')[2]}"
    if "anyOf" in schema:
        # every single value may be a list of strengths, which the page says once
        kinds = dict.fromkeys(kind_words(part) for part in schema["anyOf"] if "minItems" not in part)
        return " or ".join(kinds)
    if schema.get("type") == "array":
        return f"list of {kind_words(schema['items'])}" if "items" in schema else "list"
    names = {
        "string": "text",
        "number": "number",
        "integer": "whole number",
        "boolean": "true or false",
        "object": "table",
    }
    return names[schema["type"]] + range_words(schema)


def range_words(schema: dict[str, Any]) -> str:
    ends = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    bounds = [f"{words} {schema[name]:g}" for name, words in ends.items() if name in schema]
    return f" {', '.join(bounds)}" if bounds else ""


def field_rows(schema: dict[str, Any]) -> list[list[str]]:
    return [
        [f"`{name}`", kind_words(part), part.get("description", "")]
        for name, part in schema["properties"].items()
        if name not in ("type", "revision")
    ]


def toml_page() -> str:
    schema = plan_schema()
    parts, defs = schema["properties"], schema["$defs"]
    profile = parts["profile"]["anyOf"][1]
    rules = list(defs["rule"]["properties"]["type"]["anyOf"][0]["enum"])
    head = ["field", "type", "meaning"]
    sections = [
        "## Parts", table(head, field_rows(schema)),
        "## [data]", table(head, field_rows(parts["data"])),
        "## [profile]", "A name, or a table with a name and the limits that differ from those of the profile.",
        table(head, field_rows(profile)),
        "## [search]", table(head, field_rows(parts["search"])),
    ]  # fmt: skip
    for name in rules:
        rows = field_rows(defs[name])
        sections += [f'## [rule] type = "{name}"', defs[name]["description"], table(head, rows) if rows else ""]
    text = TOML.format(example=example_plan().toml().strip())
    return text + "\n\n".join(section for section in sections if section) + "\n"


# ---- errors -----------------------------------------------------------------------------------------------------------
def error_classes() -> list[type[BaseException]]:
    """Return the errors and warnings of sdcmap.errors, in the order of the file."""
    return [thing for thing in vars(errors).values() if inspect.isclass(thing) and issubclass(thing, Exception)]


def raised() -> dict[str, list[str]]:
    """Return error -> the packages that raise it, from the source code."""
    found: dict[str, set[str]] = {cls.__name__: set() for cls in error_classes()}
    for file in SOURCE.rglob("*.py"):
        package = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name in re.findall(r"^ +raise (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            if name in found:
                found[name].add(package)
    return {name: sorted(packages) for name, packages in found.items() if packages}


def raised_page() -> str:
    rows = [[f"`{name}`", ", ".join(packages)] for name, packages in raised().items()]
    return f"{RAISED}\n\n{table(['error', 'packages'], rows)}\n"


RAISED = """# Where errors are raised

The packages that raise each error of `sdcmap.errors`. For the meaning of an error and what to do, see
[errors](../errors.md)."""


def pages() -> dict[str, str]:
    """Return file name -> text."""
    return {"cli.md": cli_page(), "toml.md": toml_page(), "raised.md": raised_page()}
