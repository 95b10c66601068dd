"""The JSON Schema of plan.toml, for editors with completion and checks, derived from the fields of all classes.

The schema checks the form of a plan. `sdcmap check` checks more, because it reads the data file.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, Union

from sdcmap.choose import RULES
from sdcmap.core import Measure, Method
from sdcmap.core.catalog import plug_in_classes
from sdcmap.core.docstring import docstring, parameter_sentences
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.core.rule import Rule
from sdcmap.core.value import Range, Value, field_types, type_name
from sdcmap.files.reader import Source, read
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.study.plan import MAX_REPLICATES, Plan
from sdcmap.study.plan_layout import is_strength
from sdcmap.study.profiles import NO_LIMIT, PROFILES, Profile
from sdcmap.study.search_settings import Search
from sdcmap.utility import UTILITIES

JSONSchema: TypeAlias = dict[str, Any]
PLAIN: Mapping[object, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
GROUPS: Mapping[type[Value], str] = {Method: "method", Measure: "measure", Rule: "rule"}
TEXT: JSONSchema = {"type": "string"}
TEXTS: JSONSchema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
SUBSETS: JSONSchema = {
    "type": "object", "required": ["subsets", "sizes"], "additionalProperties": False,
    "properties": {"subsets": {"type": "array", "items": TEXT}, "sizes": {"type": "array", "items": {"type": "integer"}}},
}  # fmt: skip
AXIS: JSONSchema = {"anyOf": [{"type": "array"}, SUBSETS]}  # of a grid: a list of values, or all subsets of some names


def plan_schema() -> JSONSchema:
    """Return the schema of plan.toml (JSON Schema 2020-12).

    >>> plan_schema()["$defs"]["Swap"]["properties"]["rate"]["anyOf"][0]["maximum"]
    0.5
    """
    classes: dict[type[Value], list[type[Value]]] = {
        Method: [*METHODS, *plug_in_classes(Method)],
        Measure: [*RISKS, *UTILITIES, *plug_in_classes(Measure)],
        Rule: [*RULES, *plug_in_classes(Rule)],
    }
    sentences = parameter_sentences(Plan)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plan.toml",
        "description": "A plan of sdcmap: candidate methods, measures, and the rule of choice.",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {"description": sentences.get(name, ""), **part} for name, part in _parts().items()},
        "$defs": {
            **{GROUPS[base]: _one_of(members) for base, members in classes.items()},
            **{type_name(cls): _class(cls) for members in classes.values() for cls in members},
        },
    }


def _parts() -> dict[str, JSONSchema]:
    number = {"type": "number"}
    tables = [_exact_table({unit: number}) for unit in ("error", "efficiency")]
    limit = {"anyOf": [number, *tables]}
    return {
        "methods": {"type": "array", "items": {"anyOf": [TEXT, {"$ref": "#/$defs/method"}]}},
        "measures": {"type": "array", "items": {"anyOf": [TEXT, {"$ref": "#/$defs/measure"}]}},
        "columns": {"type": "object", "additionalProperties": {"type": "array", "items": TEXT, "minItems": 1}},
        "steps": {"type": "object", "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/method"}}},
        "replicates": {"type": "integer", "minimum": 1, "maximum": MAX_REPLICATES},
        "risk": TEXTS,
        "limits": {"anyOf": [{"type": "array", "items": number}, {"type": "object", "additionalProperties": limit}]},
        "utility": TEXT,
        "rule": {"$ref": "#/$defs/rule"},
        "analyses": {
            "description": "regressions that users will run, for AnalysisError and ChangedConclusions.",
            "type": "array",
            "items": _exact_table({"model": TEXT}),
        },
        "edits": TEXTS,
        "derive": {"type": "object", "additionalProperties": TEXT},
        "data": _table(Source, parameter_sentences(read)),
        "profile": {"anyOf": [{"enum": [*PROFILES]}, _profile_table()]},
        "policy": _table(ReleasePolicy),
        "search": _table(Search),
    }


def _profile_table() -> JSONSchema:
    """Return the schema of a profile, whose optional limits may be switched off."""
    table = _table(Profile)
    for name, kind in field_types(Profile).items():
        if type(None) in (
            kind,
            *typing.get_args(kind),
            *(a for k in typing.get_args(kind) for a in typing.get_args(k)),
        ):
            own = table["properties"][name]
            table["properties"][name] = {"description": own.pop("description"), "anyOf": [own, {"const": NO_LIMIT}]}
    return table


def _exact_table(parts: Mapping[str, JSONSchema]) -> JSONSchema:
    """Return the schema of a table that has all these parts and no other."""
    return {"type": "object", "properties": dict(parts), "required": [*parts], "additionalProperties": False}


def _one_of(classes: Iterable[type[Value]]) -> JSONSchema:
    """Return the schema of a table whose `type` names a class. "module:Class" of an uninstalled plug-in is not checked."""
    names = [type_name(cls) for cls in classes]
    cases = [{"if": {"properties": {"type": {"const": n}}}, "then": {"$ref": f"#/$defs/{n}"}} for n in names]
    kind = {"anyOf": [{"enum": names}, {"type": "string", "pattern": ":"}]}
    return {"type": "object", "required": ["type"], "properties": {"type": kind}, "allOf": cases}


def _class(cls: type[Value]) -> JSONSchema:
    """Return the schema of one class: several strengths may be given as a list, and those of a method as a grid."""
    table = _table(cls)
    if issubclass(cls, Method | Measure):
        kinds = field_types(cls)
        table["properties"] |= {
            n: _or_list(part) for n, part in table["properties"].items() if is_strength(kinds.get(n))
        }
    table["description"] = docstring(cls).summary
    table["properties"] = {"type": {"const": type_name(cls)}, "revision": {"type": "integer"}, **table["properties"]}
    if issubclass(cls, Method):
        axes = {"type": "object", "properties": dict.fromkeys(field_types(cls), AXIS), "additionalProperties": False}
        table["properties"] = {"name": TEXT} | table["properties"] | {"grid": axes}
        table["if"], table["then"] = {"not": {"required": ["grid"]}}, {"required": table.pop("required")}
    return table


def _or_list(part: JSONSchema) -> JSONSchema:
    """Return the schema of a parameter that may also be a list of strengths."""
    own = {name: given for name, given in part.items() if name != "description"}
    return {"description": part["description"], "anyOf": [own, {"type": "array", "items": own, "minItems": 1}]}


def _table(cls: type[Value], sentences: Mapping[str, str] = MappingProxyType({})) -> JSONSchema:
    sentences, kinds = {**sentences, **parameter_sentences(cls)}, field_types(cls)
    shown = {f.name: {"description": sentences.get(f.name, ""), **schema_of(kinds[f.name])} for f in fields(cls)}
    needed = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    return {"type": "object", "properties": shown, "required": needed, "additionalProperties": False}


def schema_of(kind: object) -> JSONSchema:
    """Return the schema of an annotation, as `coerce` accepts it: one value for a list of one, a table or text for a part.

    >>> schema_of(tuple[str, ...])["anyOf"][0]
    {'type': 'string'}
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _within(schema_of(arguments[0]), [limit for limit in arguments[1:] if isinstance(limit, Range)])
    if origin in (Union, types.UnionType):
        several = [schema_of(choice) for choice in arguments if choice is not type(None)]
        return several[0] if len(several) == 1 else {"anyOf": several}
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin is tuple:
        item = schema_of(arguments[0])
        return {"anyOf": [item, {"type": "array", "items": item}]}
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    group = next((name for base, name in GROUPS.items() if isinstance(kind, type) and issubclass(kind, base)), None)
    return {"anyOf": [TEXT, {"type": "object"} if group is None else {"$ref": f"#/$defs/{group}"}]}


def _within(schema: JSONSchema, limits: Iterable[Range]) -> JSONSchema:
    """Return the schema with the ends of its ranges, also for numbers in a list."""
    if "anyOf" in schema:
        return {"anyOf": [_within(part, limits) for part in schema["anyOf"]]}
    if "items" in schema:
        return {**schema, "items": _within(schema["items"], limits)}
    for limit in limits if schema.get("type") in ("number", "integer") else ():
        low = {"minimum" if limit.ends[0] == "[" else "exclusiveMinimum": limit.low}
        high = {"maximum" if limit.ends[1] == "]" else "exclusiveMaximum": limit.high}
        schema = schema | {name: end for name, end in (low | high).items() if end is not None}
    return schema
