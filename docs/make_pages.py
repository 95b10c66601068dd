"""Write docs/cli.md and docs/toml.md, the commands and a plan's TOML, and the table at the end of docs/errors.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import sdcmap
from sdcmap import errors
from sdcmap.cli import app
from sdcmap.explore.plan_schema import plan_schema

FOLDER = Path(__file__).parent
SOURCE = Path(sdcmap.__file__).parent


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def one_line(text: str) -> str:
    return " ".join(text.split())


# ---- commands -------------------------------------------------------------------------------------------------------
CLI = """# Commands

Every command of `sdcmap`, with its arguments and examples; made by `make docs` from the commands themselves.

Exit codes: 0 done; 1 a fault of sdcmap; 2 bad input, in one sentence; 3 nothing may be released; 130 stopped by Ctrl-C;
143 by SIGTERM. `--json` prints one JSON document where a program may read it; notes go to stderr. `sdcmap COMMAND --help`
says the same as this page. What an error means and what to do: [errors](errors.md).

"""


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands below this one, by their full names."""
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

Every part and field of a plan's TOML, and the JSON Schema that lets an editor complete and check it; made by `make docs`.

    sdcmap schema -o plan.schema.json

writes the schema, made from the fields of every method, measure and rule that is installed, plug-ins too. Editors with TOML
support find it by the first line of a plan:

    #:schema ./plan.schema.json

The schema knows names, types, ranges and choices. `sdcmap check plan.toml` knows the file as well, and tells every problem
at once. How a plan is written, with an example: [plan.toml](reference/plan-toml.md); every method and measure has a page in
the [reference](reference/README.md).

"""


def kind_words(schema: dict[str, Any]) -> str:
    """What a part of the schema allows, in words."""
    if "enum" in schema:
        return ", ".join(f'`"{choice}"`' for choice in schema["enum"])
    if "$ref" in schema:
        return f"a {schema['$ref'].rpartition('/')[2]}"
    if "anyOf" in schema:
        kinds = dict.fromkeys(kind_words(part) for part in schema["anyOf"])
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
    told = [f"{words} {schema[name]:g}" for name, words in ends.items() if name in schema]
    return f" {', '.join(told)}" if told else ""


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
        "## [profile]", "A name, or a table of a name and the limits that are not its own.",
        table(head, field_rows(profile)),
        "## [search]", table(head, field_rows(parts["search"])),
    ]  # fmt: skip
    for name in rules:
        rows = field_rows(defs[name])
        sections += [f'## [rule] type = "{name}"', defs[name]["description"], table(head, rows) if rows else ""]
    return TOML + "\n\n".join(section for section in sections if section) + "\n"


# ---- errors -----------------------------------------------------------------------------------------------------------
PLACES = "## Where they are raised\n\n"


def error_classes() -> list[type[BaseException]]:
    """The errors and warnings of sdcmap.errors, in the order of the file."""
    return [thing for thing in vars(errors).values() if inspect.isclass(thing) and issubclass(thing, Exception)]


def raised() -> dict[str, list[str]]:
    """Error -> the rooms that raise it, read from the source."""
    found: dict[str, set[str]] = {cls.__name__: set() for cls in error_classes()}
    for file in SOURCE.rglob("*.py"):
        room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name in re.findall(r"^ +raise (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            if name in found:
                found[name].add(room)
    return {name: sorted(rooms) for name, rooms in found.items() if rooms}


def errors_page() -> str:
    """The page as it is written by hand, with its last table made anew."""
    written = (FOLDER / "errors.md").read_text(encoding="utf-8").partition(PLACES)[0]
    rows = [[f"`{name}`", ", ".join(rooms)] for name, rooms in raised().items()]
    return written + PLACES + table(["error", "rooms"], rows) + "\n"


def pages() -> dict[str, str]:
    """File name -> text."""
    return {"cli.md": cli_page(), "toml.md": toml_page(), "errors.md": errors_page()}


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{', '.join(pages())} in {FOLDER}")
