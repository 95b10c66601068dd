"""Forms for methods, measures and rules, derived from their dataclass fields and docstrings."""

from __future__ import annotations

import inspect
import types
import typing
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Literal, Union

from sdcmap.choose import RULES
from sdcmap.core import Measure, Method, Microdata, PlanError, Roles, SdcmapError
from sdcmap.core.catalog import find_class, plug_in_classes
from sdcmap.core.docstring import docstring, parameter_sentences
from sdcmap.core.rule import Rule
from sdcmap.core.value import Range, Value, decode, field_types, parse, to_plain, type_name
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.study.cost import Cost, price_of_measure, price_of_method
from sdcmap.study.plan import Plan
from sdcmap.utility import UTILITIES

COLUMN_FIELDS = frozenset(  # text fields that name columns of the file
    ("amounts", "area", "blank", "by", "carry", "differ", "given", "importance", "left", "linked", "on", "replicates",
     "right", "risk_on", "same", "secret", "similar", "within")
)  # fmt: skip
GROUPS: dict[type[Value], str] = {Method: "methods", Measure: "measures", Rule: "rules"}
Kind = Literal["flag", "whole number", "number", "text", "choice", "part"]
KINDS: dict[object, Kind] = {bool: "flag", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True)
class Entry:
    """One field of a form.

    kind : flag, whole number, number, text, choice or part (another value, as a table or text).
    nested : whether it is a list of lists.
    columns : whether it names columns of the file.
    group : for a part, the group of forms to choose it from.
    """

    name: str
    kind: Kind
    several: bool  # whether it is a list
    required: bool
    default: object
    range: str
    choices: tuple[str, ...]
    open: bool  # whether values other than the choices are allowed
    help: str
    nested: bool = False
    columns: bool = False
    group: str = ""


@dataclass(frozen=True)
class Form:
    """The form of one class: the summary of its docstring, its unit if it has one, and its fields."""

    type: str
    label: str
    summary: str
    axis: str
    unit: str
    kinds: tuple[str, ...]
    entries: tuple[Entry, ...]


def forms() -> dict[str, list[Form]]:
    """Return the forms of every method, measure and rule, and of values used as parts of others, such as attacks."""
    groups: dict[str, list[type[Value]]] = {
        "methods": [method for method in (*METHODS, *plug_in_classes(Method)) if not method.in_every_plan],
        "measures": [*RISKS, *UTILITIES, *plug_in_classes(Measure)],
        "rules": [*RULES, *plug_in_classes(Rule)],
    }
    every = [cls for classes in groups.values() for cls in classes]
    parts = {part for cls in every for kind in field_types(cls).values() if (part := part_of(kind)) is not None}
    for part in sorted(parts - GROUPS.keys(), key=type_name):
        groups[type_name(part)] = [cls for cls in every if issubclass(cls, part)] or [part]
    return {group: [form_of(cls) for cls in classes] for group, classes in groups.items()}


def part_of(kind: object) -> type[Value] | None:
    """Return the class of the parts that a field takes, single or as a list; None if it takes none."""
    while arguments := [one for one in typing.get_args(kind) if one not in (type(None), ...)]:
        kind = arguments[0]
    return kind if isinstance(kind, type) and issubclass(kind, Value) else None


def normalize_spec(spec: object) -> object:
    """Return a spec in which parts written as text, such as "Linkage(metric='l')", are specs too.

    Parts that cannot be parsed stay unchanged.
    """
    if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
        return spec
    cls = find_class(spec["type"])
    if cls is None or not issubclass(cls, Value):
        return spec
    parts = {
        name: part for name, kind in field_types(cls).items() if name in spec and (part := part_of(kind)) is not None
    }
    return spec | {name: _normalize_part(spec[name], part) for name, part in parts.items()}


def _normalize_part(part: object, base: type[Value]) -> object:
    if isinstance(part, list):
        return [_normalize_part(one, base) for one in part]
    try:
        return parse(part, base).spec() if isinstance(part, str) else normalize_spec(part)
    except PlanError:
        return part


def form_of(cls: type[Value]) -> Form:
    """Return the form of one class.

    >>> from sdcmap import Swap
    >>> [entry.range for entry in form_of(Swap).entries if entry.name == "rate"]
    ['(0, 0.5]']
    """
    sentences = parameter_sentences(cls)
    kinds = field_types(cls)
    own = inspect.get_annotations(cls)
    shown = sorted(fields(cls), key=lambda f: (f.kw_only, f.name not in own))  # own fields first, then inherited ones
    entries = tuple(_entry(f.name, kinds[f.name], f.default, sentences.get(f.name, "")) for f in shown)
    stated = getattr(cls, "kinds", ()) if issubclass(cls, Measure | Method) else ()
    masked_kinds = stated if isinstance(stated, tuple) else ()
    label, summary = getattr(cls, "label", ""), getattr(cls, "description", "") or docstring(cls).summary
    name = type_name(cls)
    return Form(name, label or name, summary, getattr(cls, "axis", ""), getattr(cls, "unit", ""), masked_kinds, entries)


def _entry(name: str, kind: Any, default: object, words: str) -> Entry:
    limits: list[str] = []
    depth, is_open = 0, False
    # Unwrap the annotation: Annotated gives ranges, a tuple a list, a union allows other values beside the choices.
    while True:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is Annotated:
            limits += [str(limit) for limit in arguments[1:] if isinstance(limit, Range)]
        elif origin is tuple:
            depth += 1
        elif origin in (Union, types.UnionType):
            is_open = len([argument for argument in arguments if argument is not type(None)]) > 1
        else:
            break
        kind = next(argument for argument in arguments if argument is not type(None))
    choices = tuple(map(str, typing.get_args(kind))) if typing.get_origin(kind) is Literal else ()
    word: Kind = "choice" if choices else KINDS.get(kind, "part")
    required = default is MISSING
    return Entry(
        name=name,
        kind=word,
        several=depth > 0,
        required=required,
        default=None if required else to_plain(default),
        range=limits[0] if limits else "",
        choices=choices,
        open=is_open,
        help=words,
        nested=depth > 1,
        columns=word == "text" and name in COLUMN_FIELDS,
        group=GROUPS.get(kind, type_name(kind)) if word == "part" and isinstance(kind, type) else "",
    )


# ---- the cost of adding a method or measure to a plan, estimated for an example before the form is filled in ---------
def example_of(cls: type[Value], data: Microdata) -> Value | None:
    """Return an example value of this class for a file; None if there is none.

    For a method it is its first trial. Otherwise required fields that name columns get columns that fit, and all other
    fields their defaults.
    """
    trials = cls.trials(Roles(data)).values() if issubclass(cls, Method) else ()
    for trial in trials:
        if isinstance(trial, cls):
            return trial
    form = form_of(cls)
    given = {entry.name: _fitting_columns(entry, form.kinds, data) for entry in form.entries if entry.required}
    with suppress(SdcmapError):
        return decode({"type": form.type} | {name: value for name, value in given.items() if value}, cls)
    return None


def _fitting_columns(entry: Entry, kinds: tuple[str, ...], data: Microdata) -> tuple[str, ...] | str:
    """Return the columns that a field could name."""
    excluded = {*data.unreleased_columns, data.weight, data.household}
    fit = tuple(v.name for v in data.schema.variables if v.name not in excluded and (not kinds or v.kind in kinds))
    if not entry.columns or not fit:
        return ()
    return fit if entry.several else fit[0]


def price_of(value: Value, data: Microdata, plan: Plan, now: Cost) -> float | None:
    """Return the core seconds that a method or measure would add to a plan that costs `now`; None if unknown."""
    if isinstance(value, Method):
        return price_of_method(data, plan, value, now)
    return price_of_measure(data, plan, value) if isinstance(value, Measure) else None


def price_from_formula(cls: type[Measure], data: Microdata, plan: Plan) -> float | None:
    """Return the core seconds of a measure that has a cost formula; None if it must be timed or does not fit."""
    example = example_of(cls, data)
    if not isinstance(example, Measure) or any(example.incompatibilities(data)):
        return None
    seconds = example.seconds(data)
    return None if seconds is None else plan.count * seconds
