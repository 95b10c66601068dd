"""Values: frozen dataclasses whose fields are their parameters.

Methods, measures and rules are values. Repr, equality, hashing, TOML, grids, documentation and command-line text
are all derived from the dataclass fields. A field is converted and checked by its annotation when a value is created.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import numbers
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, Union, cast

from sdcmap.core.catalog import class_names, find_class
from sdcmap.core.docstring import add_inherited
from sdcmap.core.formatting import MAX_NAMES_IN_PHRASE
from sdcmap.core.named_files import NO_DIGEST, PATH_FIELDS, NamesFiles, digest_problems, fill_digest
from sdcmap.core.plan_text import MAX_INTEGER_BITS, MAX_PLAN_CHARACTERS
from sdcmap.core.renamed_names import suggest_name
from sdcmap.errors import MAX_PROBLEMS_SHOWN, PlanError, quote_text

V = TypeVar("V", bound="Value")
Spec: TypeAlias = dict[str, Any]  # a value as in TOML and JSON: its type and its fields


@dataclass(frozen=True)
class Range:
    """An interval of allowed numbers. `ends` says which ends belong to it, such as "(]"."""

    low: float | None = None
    high: float | None = None
    ends: str = "[]"

    def __contains__(self, number: float) -> bool:
        above = self.low is None or number > self.low or (number == self.low and self.ends[0] == "[")
        below = self.high is None or number < self.high or (number == self.high and self.ends[1] == "]")
        return above and below

    def __str__(self) -> str:
        low = "(-inf" if self.low is None else f"{self.ends[0]}{self.low:g}"
        return f"{low}, " + ("inf)" if self.high is None else f"{self.high:g}{self.ends[1]}")


Share = Annotated[float, Range(0, 1)]
Positive = Annotated[float, Range(0, None, "(]")]


@dataclass(frozen=True)
class Value:
    """The base of every method, measure and rule: a frozen dataclass with checked fields and one spec."""

    example: ClassVar[str] = ""  # of a base class: the name of a member, for error messages
    revision: ClassVar[int] = 1  # raised when the numbers of the class change

    def __init_subclass__(cls) -> None:
        cls.__doc__ = add_inherited(cls)

    def __post_init__(self) -> None:
        problems, names_file = [], "sha256" in field_types(type(self))
        for name, kind in field_types(type(self)).items():
            try:
                object.__setattr__(self, name, coerce(kind, getattr(self, name)))
            except ValueError as problem:
                problems.append(f"{type(self).__name__}.{name} {problem}")
        # rules between fields assume that each field is valid
        if not problems:
            stated = digest_problems(cast(NamesFiles, self)) if names_file else ()
            problems = [f"{type(self).__name__}{problem}" for problem in (*self.problems(), *stated)]
        if problems:
            raise PlanError(problems)
        if names_file:
            fill_digest(cast(NamesFiles, self))

    def problems(self) -> Iterator[str]:
        """Yield problems between fields, such as ".lower must be below .upper."; a subclass overrides it."""
        return iter(())

    def spec(self) -> Spec:
        """Return the class name and the fields that differ from their default, as plain TOML values."""
        given = [(f, getattr(self, f.name)) for f in fields(self)]
        stated = {f.name: to_plain(value) for f, value in given if f.default is MISSING or value != f.default}
        return {"type": type_name(type(self))} | stated

    def identity(self) -> Spec:
        """Return everything that determines the numbers of this value: class, revision and all fields."""
        given = {f.name: to_plain(getattr(self, f.name), whole=True) for f in fields(self)}
        return {"type": type_name(type(self)), "revision": self.revision} | given

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the identity: the same for equal values in every process, another for a new revision or default."""
        identity = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(identity.encode()).hexdigest()

    @cached_property
    def id(self) -> str:
        """Twelve digits of the digest. Stored numbers are keyed by it."""
        return self.digest[:12]

    @cached_property
    def text(self) -> str:
        """The value as a person writes it, such as `Swap(on='Age', rate=0.05)`. `parse` reads it."""
        return text_of(self.spec())

    @cached_property
    def brief(self) -> str:
        """The value as part of a sentence: long lists of columns are counted, and files go by their names.

        >>> from sdcmap import QueryError
        >>> QueryError(on=["age", "sex", "race", "wage"], queries=300).brief
        'QueryError(on 4 columns, queries=300)'
        """
        spec = self.spec()
        given = [_brief(name, spec[name]) for name in spec if name not in ("type", "sha256")]
        return f"{spec['type']}({', '.join(given)})" if given else str(spec["type"])

    def __str__(self) -> str:
        return self.text

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


_FIELD_TYPES: dict[type, dict[str, object]] = {}


def field_types(cls: type) -> dict[str, object]:
    """Return field name -> annotation, with its `Annotated` extras."""
    if cls not in _FIELD_TYPES:
        annotations = typing.get_type_hints(cls, include_extras=True)
        _FIELD_TYPES[cls] = {f.name: annotations[f.name] for f in fields(cls)}
    return _FIELD_TYPES[cls]


def coerce(kind: object, value: object) -> object:
    """Return `value` converted to the annotation `kind`, or raise ValueError with the second part of a sentence."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        value = coerce(arguments[0], value)
        # the range of a list applies to each of its members
        for limit in arguments[1:]:
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(limit, Range) and number is not None and number not in limit:
                    raise ValueError(f"must be in {limit}. Got {number:g}.")
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _coerce_any([choice for choice in arguments if choice is not type(None)], value)
    if origin is Literal:
        for argument in arguments:
            # "1" from a command line or a form, and 1.0, stand for 1; true does not
            is_same = argument == value and isinstance(argument, bool) == isinstance(value, bool)
            if is_same or (isinstance(value, str) and str(argument) == value):
                return argument
        allowed = ", ".join(map(repr, arguments))
        raise ValueError(f"must be one of {allowed}.{suggest_name(str(value), map(str, arguments))}")
    if origin is tuple:
        items = (value,) if isinstance(value, str | numbers.Real | Value | Mapping) else value
        if hasattr(items, "tolist"):  # an array
            items = items.tolist()
        if not isinstance(items, Sequence):
            raise ValueError("must be a list.")
        return tuple(coerce(arguments[0], item) for item in items)
    truth = isinstance(value, bool)
    if kind is bool and truth:
        return value
    if kind is int and isinstance(value, numbers.Integral) and not truth:
        if int(value).bit_length() > MAX_INTEGER_BITS:
            raise ValueError(f"must be a whole number of at most {MAX_INTEGER_BITS} bits.")
        return int(value)
    if kind is float and isinstance(value, numbers.Real) and not truth:
        if not _is_finite(value):
            raise ValueError("must be a finite number.")
        return float(value) + 0.0  # turns -0.0 into 0.0, so that both have the same spec
    if kind is str and isinstance(value, str):
        return str(value)
    if isinstance(kind, type) and issubclass(kind, Value):
        if isinstance(value, kind):
            return value
        if isinstance(value, Mapping):
            return decode(value, kind)
        if isinstance(value, str):  # its text, such as "Linkage(metric='l')"
            return parse(value, kind)
    wanted: dict[object, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    raise ValueError(f"must be {wanted.get(kind, getattr(kind, '__name__', kind))}. Got a {type(value).__name__}.")


def _is_finite(number: numbers.Real) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # whole, and larger than any float
        return False


def _coerce_any(kinds: Sequence[object], value: object) -> object:
    for kind in kinds[:-1]:
        with suppress(ValueError):
            return coerce(kind, value)
    return coerce(kinds[-1], value)


def to_plain(value: object, *, whole: bool = False) -> object:
    """Return a field's value as TOML has it; `whole`: nested values with their whole identity."""
    if isinstance(value, Value):
        return value.identity() if whole else value.spec()
    return [to_plain(item, whole=whole) for item in value] if isinstance(value, tuple) else value


def type_name(cls: type) -> str:
    """Return the name of a class of sdcmap, or "module:Class" of any other."""
    ours = cls.__module__.split(".")[0] == "sdcmap"
    return cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"


def find_type(name: object, base: type[V]) -> type[V]:
    """Return the class that a spec's `type` names: one of ours, or "module:Class" of a loaded module."""
    if not isinstance(name, str):
        raise PlanError(f"a {base.__name__.lower()} needs a type, such as type = {_example(base)!r}.")
    is_itself = name == base.__name__ and not base.__subclasses__()  # a class without subclasses, such as Source
    cls = base if is_itself else find_class(name)
    if cls is None or not issubclass(cls, base):
        raise PlanError(
            f"there is no {base.__name__.lower()} {quote_text(name)}.{suggest_name(name, class_names(base))}"
        )
    return cls


def _example(base: type[Value]) -> str:
    return base.example or base.__name__


def _with_article(base: type) -> str:
    word = base.__name__.lower()
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def decode(spec: Mapping[str, object], base: type[V]) -> V:
    """Return the value that a spec describes, or raise PlanError with every problem of the spec."""
    if not isinstance(spec, Mapping):
        raise PlanError(f"{_with_article(base)} is written as a table with a type, such as {_example(base)!r}.")
    depth = _DEPTH.get()
    if depth >= MAX_VALUE_DEPTH:
        raise PlanError(f"values are nested at most {MAX_VALUE_DEPTH} levels deep.")
    before = _DEPTH.set(depth + 1)
    try:
        return _decode_fields(spec, find_type(spec.get("type"), base))
    finally:
        _DEPTH.reset(before)


MAX_VALUE_DEPTH = 16  # nested values, such as chains of chains; deeper ones would exhaust the stack
_DEPTH: ContextVar[int] = ContextVar("sdcmap depth of a value", default=0)


def _decode_fields(spec: Mapping[str, object], cls: type[V]) -> V:
    given = {name: value for name, value in spec.items() if name not in ("type", "revision")}
    known = field_types(cls)
    kind, unknown = cls.__name__, [name for name in given if name not in known][:MAX_PROBLEMS_SHOWN]
    problems = [f"{kind} has no parameter {quote_text(name)}.{suggest_name(name, known)}" for name in unknown]
    # every problem is collected, so that a plan can be corrected in one go
    needed = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    problems += [f"{kind}.{name} must be given." for name in needed if name not in given]
    coerced: dict[str, Any] = {}
    for name in (name for name in given if name in known):
        try:
            coerced[name] = coerce(known[name], given[name])
        except PlanError as nested:
            problems += nested.problems
        except ValueError as problem:
            problems.append(f"{kind}.{name} {problem}")
    if problems:
        raise PlanError(problems)
    return cls(**coerced)


def parse(text: str, base: type[V]) -> V:
    """Return the value that a text such as `SmallCells(n=5)` describes. Only names and plain literals are allowed.

    >>> from sdcmap.core.measure import Measure
    >>> parse("SmallCells(n=5)", Measure).n
    5
    """
    if len(text) > MAX_PLAN_CHARACTERS:
        raise PlanError(f"{_with_article(base)} as a text has at most {MAX_PLAN_CHARACTERS:,} characters.")
    try:
        return decode(_spec_of(ast.parse(text.strip(), mode="eval").body), base)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # the last: too many brackets
        example = f"{_example(base)} or {_example(base)}(name=value)"
        raise PlanError(f"{quote_text(text)} cannot be read as {_with_article(base)}: write {example}.") from None


def spec_of_text(text: str) -> object:
    """Return the spec that a text such as `SmallCells(n=5)` describes, or the text itself if it describes none."""
    try:
        return _spec_of(ast.parse(text.strip(), mode="eval").body) if len(text) <= MAX_PLAN_CHARACTERS else text
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return text


def _spec_of(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return {"type": node.id}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        return {"type": node.func.id} | {str(word.arg): _spec_of(word.value) for word in node.keywords}
    if isinstance(node, ast.List | ast.Tuple):
        return [_spec_of(item) for item in node.elts]
    return ast.literal_eval(node)


def text_of(spec: object) -> str:
    """Return a spec as a person writes it, without an all-zero digest."""
    if isinstance(spec, dict):
        stated = {name: value for name, value in spec.items() if name != "type" and not _is_no_digest(name, value)}
        given = ", ".join(f"{name}={text_of(value)}" for name, value in stated.items())
        return f"{spec['type']}({given})" if given else str(spec["type"])
    if isinstance(spec, list):
        return text_of(spec[0]) if len(spec) == 1 and isinstance(spec[0], str) else f"[{', '.join(map(text_of, spec))}]"
    return repr(spec)


def _brief(name: str, value: object) -> str:
    """Return one field of a value as part of a sentence."""
    if name == "on" and isinstance(value, list) and len(value) > MAX_NAMES_IN_PHRASE:
        return f"on {len(value)} columns"
    if name in PATH_FIELDS and isinstance(value, str):
        return f"{name}={PurePath(value).name!r}"
    return f"{name}={text_of(value)}"


def _is_no_digest(name: str, value: object) -> bool:
    return name == "sha256" and (value == NO_DIGEST or (isinstance(value, list) and set(value) == {NO_DIGEST}))
