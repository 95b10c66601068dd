"""What a form needs to know of a method, a measure or a rule, read from its dataclass fields and its docstring."""

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

COLUMNS = frozenset(  # fields of text that name columns of the file
    ("area", "blank", "by", "carry", "differ", "given", "importance", "left", "linked", "on", "replicates", "right",
     "risk_on", "same", "secret", "similar", "within")
)  # fmt: skip
GROUPS: dict[type[Value], str] = {Method: "methods", Measure: "measures", Rule: "rules"}
Kind = Literal["flag", "whole number", "number", "text", "choice", "part"]
KINDS: dict[object, Kind] = {bool: "flag", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True)
class Entry:
    """One field of a form. `kind`: flag, whole number, number, text, choice or part (another value, as a table or text).

    nested : a list of lists. columns : it names columns of the file. group : of a part, the group of forms that it is from.
    """

    name: str
    kind: Kind
    several: bool  # a list
    required: bool
    default: object
    range: str
    choices: tuple[str, ...]
    open: bool  # another value than one of the choices may be given
    help: str
    nested: bool = False
    columns: bool = False
    group: str = ""


@dataclass(frozen=True)
class Form:
    """The form of one class: its label and description for people, its unit if it has one, and its fields."""

    type: str
    label: str
    summary: str
    axis: str
    unit: str
    kinds: tuple[str, ...]
    entries: tuple[Entry, ...]


def forms() -> dict[str, list[Form]]:
    """The forms of every method, measure and rule; and those of values that a field takes as a part, such as attacks."""
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
    """The class of the values that a field takes as parts, one or a list of them; None where it takes none."""
    while arguments := [one for one in typing.get_args(kind) if one not in (type(None), ...)]:
        kind = arguments[0]
    return kind if isinstance(kind, type) and issubclass(kind, Value) else None


def formed(spec: object) -> object:
    """The spec of a value in which parts that were written as text, such as "Linkage(metric='l')", are specs too; what
    cannot be read stays as it is."""
    if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
        return spec
    cls = find_class(spec["type"])
    if cls is None or not issubclass(cls, Value):
        return spec
    parts = {
        name: part for name, kind in field_types(cls).items() if name in spec and (part := part_of(kind)) is not None
    }
    return spec | {name: _formed(spec[name], part) for name, part in parts.items()}


def _formed(part: object, base: type[Value]) -> object:
    if isinstance(part, list):
        return [_formed(one, base) for one in part]
    try:
        return parse(part, base).spec() if isinstance(part, str) else formed(part)
    except PlanError:
        return part


def form_of(cls: type[Value]) -> Form:
    """The form of one class.

    >>> from sdcmap import Swap
    >>> [entry.range for entry in form_of(Swap).entries if entry.name == "rate"]
    ['(0, 0.5]']
    """
    sentences = parameter_sentences(cls)
    kinds = field_types(cls)
    own = inspect.get_annotations(cls)
    shown = sorted(fields(cls), key=lambda f: (f.kw_only, f.name not in own))  # what the class adds comes first
    entries = tuple(_entry(f.name, kinds[f.name], f.default, sentences.get(f.name, "")) for f in shown)
    facts = getattr(cls, "kinds", ()) if issubclass(cls, Measure | Method) else ()
    masks = facts if isinstance(facts, tuple) else ()
    label, summary = getattr(cls, "label", ""), getattr(cls, "description", "") or docstring(cls).summary
    name = type_name(cls)
    return Form(name, label or name, summary, getattr(cls, "axis", ""), getattr(cls, "unit", ""), masks, entries)


def _entry(name: str, kind: Any, default: object, words: str) -> Entry:
    limits: list[str] = []
    depth, is_open = 0, False
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
        name, word, depth > 0, required, None if required else to_plain(default), limits[0] if limits else "", choices,
        is_open, words, depth > 1, word == "text" and name in COLUMNS,
        GROUPS.get(kind, type_name(kind)) if word == "part" and isinstance(kind, type) else "",
    )  # fmt: skip


# What a method or a measure would add to a plan, before anybody has filled in its fields: an example of it is priced.


def example_of(cls: type[Value], data: Microdata) -> Value | None:
    """A value of this class for this file: a method's own first trial, else needed fields that name columns filled with
    those that fit, and all others at their defaults; None where that makes none."""
    trials = cls.trials(Roles(data)).values() if issubclass(cls, Method) else ()
    for trial in trials:
        if isinstance(trial, cls):
            return trial
    form = form_of(cls)
    given = {entry.name: _columns(entry, form.kinds, data) for entry in form.entries if entry.required}
    with suppress(SdcmapError):
        return decode({"type": form.type} | {name: value for name, value in given.items() if value}, cls)
    return None


def _columns(entry: Entry, kinds: tuple[str, ...], data: Microdata) -> tuple[str, ...] | str:
    """Columns that a field could name."""
    apart = {*data.unreleased, data.weight, data.household}
    fit = tuple(v.name for v in data.schema.variables if v.name not in apart and (not kinds or v.kind in kinds))
    if not entry.columns or not fit:
        return ()
    return fit if entry.several else fit[0]


def price_of(value: Value, data: Microdata, plan: Plan, now: Cost) -> float | None:
    """Seconds of one core that a method or measure would add to a plan that costs `now`; None where it cannot be told."""
    if isinstance(value, Method):
        return price_of_method(data, plan, value, now)
    return price_of_measure(data, plan, value) if isinstance(value, Measure) else None


def stated_price(cls: type[Measure], data: Microdata, plan: Plan) -> float | None:
    """The same of a measure that states its seconds by a formula; None of those that must be timed, or do not fit."""
    example = example_of(cls, data)
    if not isinstance(example, Measure) or any(example.incompatibilities(data)):
        return None
    seconds = example.seconds(data)
    return None if seconds is None else plan.count * seconds
