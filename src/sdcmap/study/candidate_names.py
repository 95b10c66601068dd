"""Names of methods, stated in a plan or made of words for people. What a method is stays its digest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sdcmap.core import Method, format_number
from sdcmap.core.grid import Grid
from sdcmap.core.value import field_types, find_type
from sdcmap.errors import PlanError, quote_text

MAX_SUFFIX_CHARACTERS = 40  # characters


def name_methods(methods: Iterable[Method], stated: Mapping[str, str]) -> dict[str, str]:
    """Return method text -> its name: the stated one, else its own words.

    Where two coincide, with a suffix that says in what they differ, or a number.

    >>> from sdcmap import Noise
    >>> noises = [Noise("wage", root="eigen"), Noise("wage", root="cholesky"), Noise("rent")]
    >>> list(name_methods(noises, {noises[2].text: "rents"}).values())
    ['wage with noise 10 % (root eigen)', 'wage with noise 10 % (root cholesky)', 'rents']
    """
    alike: defaultdict[str, list[Method]] = defaultdict(list)
    names: dict[str, str] = {}
    for method in methods:
        names[method.text] = stated.get(method.text) or method.title
        alike[names[method.text]].append(method)
    for words, several in alike.items():
        if len(several) > 1:
            names |= _disambiguate(words, several, set(alike))
    return names


def _disambiguate(words: str, methods: Sequence[Method], taken: set[str]) -> dict[str, str]:
    suffixes = _differences(methods)
    if len(set(suffixes)) < len(methods) or max(map(len, suffixes)) > MAX_SUFFIX_CHARACTERS:
        suffixes = ["", *map(str, range(2, len(methods) + 1))]
    told = [f"{words} ({suffix})" if suffix else words for suffix in suffixes]
    if set(told) & (taken - {words}):  # somebody stated such a name
        told = [f"{words} ({method.id[:6]})" for method in methods]
    return {method.text: name for method, name in zip(methods, told, strict=True)}


def _differences(methods: Sequence[Method]) -> list[str]:
    """Return what each of some methods of one shape has in the parameters in which they differ.

    Nothing for other shapes.
    """
    if len({tuple(map(type, method.steps)) for method in methods}) > 1:
        return [""] * len(methods)
    said: list[list[str]] = []  # by parameter, what each method has
    for steps in zip(*(method.steps for method in methods), strict=True):
        for name in [f.name for f in fields(steps[0])]:
            values = [getattr(step, name) for step in steps]
            if len(set(values)) > 1:
                said.append([f"{name} {format_parameter(value)}".strip() for value in values])
    return [", ".join(words) for words in zip(*said, strict=True)] or [""] * len(methods)


def format_parameter(value: object) -> str:
    """Return the value of a parameter in a few words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, tuple):
        return "+".join(map(format_parameter, value))
    return "none" if value is None else str(value)


def name_draw(name: str, draw: int | None) -> str:
    """Return the name of one draw of a method, its replicate number counted from 1 as people do.

    None: it has only one.
    """
    return name if draw is None else f"{name}, draw {draw + 1}"


# Names that a plan states for its methods: `name = "..."` in a method's table, beside its parameters.


MAX_STATED_NAME_CHARACTERS = 80  # characters
INVALID_NAME = f"the name of a method must be one line of 1 to {MAX_STATED_NAME_CHARACTERS} characters."


def split_names(specs: object) -> tuple[object, list[object]]:
    """Return the tables of methods without their names, and the name of each (None: none stated)."""
    if not isinstance(specs, Sequence) or isinstance(specs, str):
        return specs, []
    named = [isinstance(spec, Mapping) and "name" in spec and not _has_name_field(spec) for spec in specs]
    bare = [{k: v for k, v in s.items() if k != "name"} if n else s for s, n in zip(specs, named, strict=True)]
    return bare, [spec["name"] if n else None for spec, n in zip(specs, named, strict=True)]


def _has_name_field(spec: Mapping[str, Any]) -> bool:
    """Return whether the class of a table has a parameter `name` of its own."""
    try:
        return "name" in field_types(find_type(spec.get("type"), Method))
    except PlanError:  # told when the table is read
        return False


def read_stated_names(
    methods: Sequence[Method | Grid[Method]], names: Sequence[object], problems: list[str]
) -> dict[Method, str]:
    """Return method -> its stated name; a grid has many members, and none is meant."""
    if problems:  # a table that could not be read has no method
        return {}
    pairs = [(method, name) for method, name in zip(methods, names, strict=True) if name is not None]
    grids = [f"methods: {quote_text(str(name))} names a grid" for method, name in pairs if isinstance(method, Grid)]
    problems += [f"{grid}, whose members have words of their own; write one out to name it." for grid in grids]
    if any(not isinstance(name, str) for _, name in pairs):
        problems.append(INVALID_NAME)
    return {method: name for method, name in pairs if isinstance(method, Method) and isinstance(name, str)}


def name_problems(names: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the names of a plan, a sentence each."""
    for name in names.values():
        if (
            not isinstance(name, str)
            or not name.strip()
            or len(name) > MAX_STATED_NAME_CHARACTERS
            or not name.isprintable()
        ):
            yield INVALID_NAME
    said = [str(name) for name in names.values()]
    for name in sorted({name for name in said if said.count(name) > 1}):
        yield f"two methods are named {quote_text(name)}."
