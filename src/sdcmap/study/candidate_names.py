"""Names of methods and candidates for people, stated in a plan or derived. A method is identified by its digest."""

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


def name_methods(
    methods: Iterable[Method], stated: Mapping[str, str], last_steps: Sequence[Method] = ()
) -> dict[str, str]:
    """Return method text -> its name: the stated one, or its title without the last steps, which every candidate ends with.

    Equal names get a suffix that says how the methods differ, or a number.

    >>> from sdcmap import Noise
    >>> noises = [Noise("wage", root="eigen"), Noise("wage", root="cholesky"), Noise("rent")]
    >>> list(name_methods(noises, {noises[2].text: "rents"}).values())
    ['wage with 10 % noise (root eigen)', 'wage with 10 % noise (root cholesky)', 'rents']
    """
    alike: defaultdict[str, list[Method]] = defaultdict(list)
    names: dict[str, str] = {}
    for method in methods:
        names[method.text] = stated.get(method.text) or _title_without(method, last_steps)
        alike[names[method.text]].append(method)
    for name, several in alike.items():
        if len(several) > 1:
            names |= _disambiguate(name, several, set(alike))
    return names


def _title_without(method: Method, last_steps: Sequence[Method]) -> str:
    own = method.steps[: len(method.steps) - len(last_steps)]
    is_followed = own and last_steps and method.steps[len(own) :] == tuple(last_steps)
    return method.with_steps(own).title if is_followed else method.title


def _disambiguate(shared: str, methods: Sequence[Method], taken: set[str]) -> dict[str, str]:
    """Return a different name for each of some methods with the same name."""
    suffixes = _differences(methods)
    if len(set(suffixes)) < len(methods) or max(map(len, suffixes)) > MAX_SUFFIX_CHARACTERS:
        suffixes = ["", *map(str, range(2, len(methods) + 1))]
    names = [f"{shared} ({suffix})" if suffix else shared for suffix in suffixes]
    if set(names) & (taken - {shared}):  # the plan states such a name for another method
        names = [f"{shared} ({method.id[:6]})" for method in methods]
    return {method.text: name for method, name in zip(methods, names, strict=True)}


def _differences(methods: Sequence[Method]) -> list[str]:
    """Return for each method the parameters in which they differ; empty where the methods are of different classes."""
    if len({tuple(map(type, method.steps)) for method in methods}) > 1:
        return [""] * len(methods)
    return describe_differences([[field_values(step) for step in method.steps] for method in methods])


def field_values(step: Method) -> dict[str, object]:
    """Return the fields of one step with their values."""
    return {f.name: getattr(step, f.name) for f in fields(step)}


def describe_differences(methods: Sequence[Sequence[Mapping[str, object]]], skip_unset: bool = False) -> list[str]:
    """Return for each method, stated as the fields of its steps, in which of them it differs from the others.

    skip_unset : leave out fields that are None or missing.

    >>> describe_differences([[{"on": "age", "lower": None}], [{"on": "sex", "lower": 0}]], skip_unset=True)
    ['on age', 'on sex, lower 0']
    """
    parts: list[list[str]] = [[] for _ in methods]
    for steps in zip(*methods, strict=True):
        for name in dict.fromkeys(name for step in steps for name in step):
            values = [step.get(name) for step in steps]
            if any(value != values[0] for value in values):
                for own, value in zip(parts, values, strict=True):
                    own += [] if skip_unset and value is None else [f"{name} {format_parameter(value)}".strip()]
    return [*map(", ".join, parts)]


def format_parameter(value: object) -> str:
    """Return the value of a parameter as a short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, tuple):
        return "+".join(map(format_parameter, value))
    return "none" if value is None else str(value)


def name_draw(name: str, draw: int | None) -> str:
    """Return the name of one draw of a method, with replicates counted from 1; None: there is only one."""
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
    """Return whether the class of a table has its own parameter `name`."""
    try:
        return "name" in field_types(find_type(spec.get("type"), Method))
    except PlanError:  # reported when the table is decoded
        return False


def read_stated_names(
    methods: Sequence[Method | Grid[Method]], names: Sequence[object], problems: list[str]
) -> dict[Method, str]:
    """Return method -> its stated name. A grid cannot have a name, because it has many members."""
    if problems:  # a table that could not be read has no method
        return {}
    pairs = [(method, name) for method, name in zip(methods, names, strict=True) if name is not None]
    grids = [f"methods: {quote_text(str(name))} names a grid" for method, name in pairs if isinstance(method, Grid)]
    problems += [f"{grid}, whose members are named one by one: write a member out to name it." for grid in grids]
    if any(not isinstance(name, str) for _, name in pairs):
        problems.append(INVALID_NAME)
    return {method: name for method, name in pairs if isinstance(method, Method) and isinstance(name, str)}


def name_problems(names: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the names of a plan, one sentence each."""
    for name in names.values():
        if (
            not isinstance(name, str)
            or not name.strip()
            or len(name) > MAX_STATED_NAME_CHARACTERS
            or not name.isprintable()
        ):
            yield INVALID_NAME
    stated = [str(name) for name in names.values()]
    for name in sorted({name for name in stated if stated.count(name) > 1}):
        yield f"two methods are named {quote_text(name)}."
