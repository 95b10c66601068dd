"""Names that a plan states for its methods: `name = "..."` in a method's table, beside its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sdcmap.core.grid import Grid
from sdcmap.core.method import Method
from sdcmap.core.value import find, hints
from sdcmap.errors import PlanError, shortened

LONGEST_NAME = 80  # characters
NOT_A_LINE = f"the name of a method must be one line of 1 to {LONGEST_NAME} characters."


def without_names(specs: object) -> tuple[object, list[object]]:
    """The tables of methods without their names, and the name of each (None: none stated)."""
    if not isinstance(specs, Sequence) or isinstance(specs, str):
        return specs, []
    named = [isinstance(spec, Mapping) and "name" in spec and not _has_own(spec) for spec in specs]
    bare = [{k: v for k, v in s.items() if k != "name"} if n else s for s, n in zip(specs, named, strict=True)]
    return bare, [spec["name"] if n else None for spec, n in zip(specs, named, strict=True)]


def _has_own(spec: Mapping[str, Any]) -> bool:
    """Whether the class of a table has a parameter `name` of its own."""
    try:
        return "name" in hints(find(spec.get("type"), Method))
    except PlanError:  # told when the table is read
        return False


def stated_names(
    methods: Sequence[Method | Grid[Method]], names: Sequence[object], problems: list[str]
) -> dict[Method, str]:
    """Method -> its stated name; a grid has many members, and none is meant."""
    if problems:  # a table that could not be read has no method
        return {}
    pairs = [(method, name) for method, name in zip(methods, names, strict=True) if name is not None]
    problems += [
        f"methods: {shortened(str(name))} names a grid, whose members have words of their own; write one out to name it."
        for method, name in pairs
        if isinstance(method, Grid)
    ]
    if any(not isinstance(name, str) for _, name in pairs):
        problems.append(NOT_A_LINE)
    return {method: name for method, name in pairs if isinstance(method, Method) and isinstance(name, str)}


def problems_of_names(names: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the names of a plan, a sentence each."""
    for name in names.values():
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            yield NOT_A_LINE
    said = [str(name) for name in names.values()]
    for name in sorted({name for name in said if said.count(name) > 1}):
        yield f"two methods are named {shortened(name)}."
