"""The short form of a plan's file: named sets of columns, steps that are stated once, and lists of strengths.

[columns]
all = ["sex", "age", "region", "wage"]

[steps]
coarsen = [{ type = "Recode", on = "age", width = 10 }, { type = "Recode", on = "region", prefix = 2 }]

[[methods]]
type = "Chain"
methods = ["coarsen", { type = "Synthesize", on = "all", leaf = [20, 100] }]

This entry is two candidates. Lists of one entry go together: the first candidate has the first value of each. `expand`
returns the table in full, which is what everything else works with, and `PlanLayout` writes the short form.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from sdcmap.core import Measure, Method, PlanError
from sdcmap.core.catalog import find_class
from sdcmap.core.grid import Grid
from sdcmap.core.value import Value, field_types, spec_of_text, text_of, to_plain, type_name
from sdcmap.errors import quote_text
from sdcmap.files.reader import Source
from sdcmap.methods import Chain

Table: TypeAlias = Mapping[str, Any]
ALL_RISKS = "all"  # as `risk`: every risk measure of the plan
LINE_WIDTH = 120
MAX_SHORT_ITEM = 30  # characters of an item of a list that shares a line with others, such as the name of a step
MAX_EXCLUDED = 8  # a set without so many columns and sets is written as ["all", "-wage", "-keys"]
MIN_NAMED_COLUMNS = 3  # a part of a list with fewer is not written as the name of a set
MAX_STRENGTHS = 1000  # of one entry
MAX_EXPANDED_PARTS = 1_000_000  # columns and steps in all, after names are replaced
TEXT_FIELDS = (
    "labels",
    "edits",
    "tables",
    "sha256",
    "models",
    "keep",
    "missing",
    "known_by",
)  # lists of texts that are no columns


# ---- reading ----------------------------------------------------------------------------------------------------
def expand(table: Table, problems: list[str]) -> dict[str, Any]:
    """Return the table of a plan in full; what is wrong with the names is appended to `problems`.

    >>> plan = {"columns": {"keys": ["sex"]}, "methods": [{"type": "PRAM", "on": "keys", "stay": [0.9, 0.5]}]}
    >>> expand(plan, [])["methods"]
    [{'type': 'PRAM', 'on': ['sex'], 'stay': 0.9}, {'type': 'PRAM', 'on': ['sex'], 'stay': 0.5}]
    """
    expander = _Expander(table, problems)
    full = dict(table)
    full |= {name: getattr(expander, name) for name in ("columns", "steps") if name in full}
    for part in ("methods", "measures"):
        if isinstance(listed := full.get(part), list):
            full[part] = [spec for entry in listed for spec in expander.expand_entry(entry, part)]
    for part in ("risk", "utility"):
        full |= {part: expander.expand_name(full[part])} if part in full else {}
    if isinstance(data := full.get("data"), Mapping):
        full["data"] = expander.expand_roles(data)
    if isinstance(limits := full.get("limits"), Mapping):
        full["limits"] = {expander.expand_name(name): limit for name, limit in limits.items()}
    return full


class _Expander:
    """Replaces the names of sets of columns and of steps, and lists of strengths.

    A plan may not name more than MAX_EXPANDED_PARTS columns and steps in all, so that a short text cannot fill the memory.
    """

    def __init__(self, table: Table, problems: list[str]) -> None:
        self.problems, self.left = problems, MAX_EXPANDED_PARTS
        self.columns: dict[str, list[str]] = {}
        self.steps: dict[str, list[Any]] = {}
        for name, listed in self._items(table, "columns"):
            if not isinstance(listed, list) or not listed or not all(isinstance(own, str) for own in listed):
                problems.append(f"columns.{quote_text(name)} must be a list of column names.")
            else:
                self.columns[name] = self.select(listed)
        members = {own for listed in self.columns.values() for own in listed}
        problems += [
            f"columns.{quote_text(name)} is also the name of a column: choose another name for the set."
            for name in self.columns
            if name in members
        ]
        steps: dict[str, list[Any]] = {}
        for name, listed in self._items(table, "steps"):
            listed = listed if isinstance(listed, list) else [listed]
            if listed and all(isinstance(own, str | Mapping) for own in listed):
                steps[name] = [spec for own in listed for spec in self._expand_step(own)]
            else:
                problems.append(f"steps.{quote_text(name)} must be a list of methods.")
        self.steps = steps  # only now, so that a step cannot name another step

    def _items(self, table: Table, part: str) -> Iterator[tuple[str, Any]]:
        named = table.get(part, {})
        if isinstance(named, Mapping):
            yield from named.items()
        else:
            self.problems.append(f"{part} must be a table of names.")

    def _spend(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise PlanError(f"a plan names at most {MAX_EXPANDED_PARTS:,} columns and steps in all.")

    def expand_entry(self, entry: Any, part: str) -> list[Any]:
        """Return the tables that an entry of `methods` or `measures` stands for."""
        specs = self._expand_step(entry)
        spec: Any = specs[0] if len(specs) == 1 else {"type": "Chain", "methods": specs}
        if not isinstance(spec, Mapping) or "grid" in spec:
            return [spec]
        counts = set(_list_lengths(spec))
        if not counts:
            return [spec]
        if len(counts) > 1 or not 0 < max(counts) <= MAX_STRENGTHS:
            self.problems.append(
                f"{part}: the lists of strengths of {quote_text(str(spec.get('type')))} must have the same length, "
                f"from 1 to {MAX_STRENGTHS:,}."
            )
            return []
        self._spend(max(counts) * _count_parts(spec))
        return [_pick(spec, i) for i in range(max(counts))]

    def _expand_step(self, step: Any) -> list[Any]:
        """Return the methods of a step: a name, the text of a method, or a table."""
        if isinstance(step, str):
            if step in self.steps:
                self._spend(sum(_count_parts(own) for own in self.steps[step]))
                return list(self.steps[step])
            spec = spec_of_text(step)
            # the text of an unknown class stays as it is written, so that the error names it
            step = spec if isinstance(spec, Mapping) and _class_of(spec) is not None else step
        if not isinstance(step, Mapping):
            return [step]
        self._spend(1)
        kinds = _kinds_of(step)
        return [{name: self._expand_field(name, given, kinds.get(name)) for name, given in step.items()}]

    def _expand_field(self, name: str, given: Any, kind: object) -> Any:
        if kind is None or name in ("type", "grid"):
            return given
        if _is_list_of(kind, Method):
            return [
                spec for step in (given if isinstance(given, list) else [given]) for spec in self._expand_step(step)
            ]
        if _is_value(kind) and isinstance(given, str | Mapping):
            return self._expand_step(given)[0]
        return self.select(given) if _is_list_of(kind, str) and name not in TEXT_FIELDS else given

    def select(self, given: Any) -> Any:
        """Return the columns of a list that names sets; any other thing as it is."""
        if not _is_texts(given):
            return given
        listed = list(dict.fromkeys([given] if isinstance(given, str) else given))
        self._spend(sum(len(self.columns.get(name, ())) for name in listed))
        return _select(listed, self.columns) if any(name in self.columns for name in listed) else given

    def expand_roles(self, data: Table) -> dict[str, Any]:
        """Return the `[data]` part with the columns of each role."""
        kinds = field_types(Source)
        return {
            name: self.select(given) if _is_list_of(kinds.get(name), str) and name not in TEXT_FIELDS else given
            for name, given in data.items()
        }

    def expand_name(self, name: Any) -> Any:
        """Return the text of a measure with its sets of columns replaced; a plain name and any other thing as they are."""
        if isinstance(name, list):
            return [self.expand_name(own) for own in name]
        if not isinstance(name, str) or "(" not in name or not isinstance(spec := spec_of_text(name), Mapping):
            return name
        return text_of(self._expand_step(spec)[0])


def _select(listed: Sequence[str], sets: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns of a list that names sets, each once, without the columns and sets that "-name" excludes.

    >>> _select(["all", "-few", "-a", "x"], {"all": ["a", "b", "c", "d"], "few": ["b", "c"]})
    ['d', 'x']
    """
    selected = dict.fromkeys(own for name in listed for own in sets.get(name, (name,)))
    given = {name: sets.get(name[1:], (name[1:],)) for name in listed if name[:1] == "-" and name not in sets}
    excluded = {name: own for name, own in given.items() if any(column in selected for column in own)}
    left_out = {column for own in excluded.values() for column in own}
    return [own for own in selected if own not in excluded and own not in left_out]


def _is_texts(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, list) and all(isinstance(own, str) for own in given))


def _count_parts(spec: Any) -> int:
    """Return how many tables and items of lists a table has."""
    if isinstance(spec, Mapping):
        return 1 + sum(_count_parts(own) for own in spec.values())
    return sum(1 + _count_parts(own) for own in spec) if isinstance(spec, list) else 0


def _kinds_of(spec: Table) -> Mapping[str, object]:
    """Return the annotations of the class that a table names; empty for an unknown one, which is reported later."""
    cls = _class_of(spec)
    return {} if cls is None else field_types(cls)


def _class_of(spec: Table) -> type[Value] | None:
    named = spec.get("type")
    cls = find_class(named) if isinstance(named, str) else None
    return cls if cls is not None and issubclass(cls, Value) else None


def _is_list_of(kind: object, item: type) -> bool:
    if get_origin(kind) is not tuple:
        return any(_is_list_of(part, item) for part in get_args(kind))
    own = get_args(kind)[0]
    return isinstance(own, type) and issubclass(own, item)


def _is_value(kind: object) -> bool:
    if isinstance(kind, type):
        return issubclass(kind, Value)
    return get_origin(kind) is not tuple and any(_is_value(part) for part in get_args(kind))


def is_strength(kind: object) -> bool:
    """Return whether a field can have several strengths: it holds a number or text, or one such thing or a list of them."""
    return _is_scalar(kind) or _is_scalar_or_list(kind)


def _is_scalar(kind: object) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_scalar(parts[0])
    if origin in (Union, UnionType):
        return all(_is_scalar(part) for part in parts)
    return origin is Literal or kind in (bool, int, float, str, type(None))


def _is_scalar_or_list(kind: object) -> bool:
    """Return whether a field holds one number or a list of them, so that strengths are a list of lists."""
    if get_origin(kind) is Annotated:
        return _is_scalar_or_list(get_args(kind)[0])
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    return any(map(_is_scalar, parts)) and any(
        get_origin(part) is tuple and _is_scalar(get_args(part)[0]) for part in parts
    )


def _strengths(spec: Table) -> Iterator[tuple[str, list[Any]]]:
    """Yield the fields of a table with a list where the class has a single value, and their values."""
    kinds = _kinds_of(spec)
    for name, given in spec.items():
        if name not in kinds or not isinstance(given, list):
            continue
        if _is_scalar(kinds[name]):
            yield name, given
        elif given and _is_scalar_or_list(kinds[name]):
            if all(isinstance(own, list) for own in given):
                yield name, [own[0] if len(own) == 1 else own for own in given]
            elif len(given) not in (1, _count_columns(spec)):
                yield name, given


def _count_columns(spec: Table) -> int:
    """Return the number of columns of a method; a list of so many numbers is one for each column, and not of strengths."""
    on = spec.get("on", ())
    return 1 if isinstance(on, str) else len(on)


def _list_lengths(spec: Table) -> Iterator[int]:
    yield from (len(given) for _, given in _strengths(spec))
    for given in spec.values():
        for own in given if isinstance(given, list) else [given]:
            if isinstance(own, Mapping):
                yield from _list_lengths(own)


def _pick(spec: Table, index: int) -> dict[str, Any]:
    """Return the table with the i-th value of each list of strengths."""
    lists = dict(_strengths(spec))
    return {name: lists[name][index] if name in lists else _pick_nested(given, index) for name, given in spec.items()}


def _pick_nested(given: Any, index: int) -> Any:
    if isinstance(given, Mapping):
        return _pick(given, index)
    return [_pick_nested(own, index) for own in given] if isinstance(given, list) else given


# ---- writing ----------------------------------------------------------------------------------------------------
class _Several(list[Any]):
    """The values of a field in several methods that differ in nothing else but strengths."""


@dataclass(frozen=True)
class PlanLayout:
    """How a plan is written: with these sets of columns and these steps by their names."""

    columns: Mapping[str, tuple[str, ...]]
    steps: Mapping[str, tuple[Method, ...]]

    def without_names_of_columns(self, table: object) -> PlanLayout:
        """Return the layout without sets whose name is also that of a column of the plan, which would be ambiguous."""
        in_full = PlanLayout({}, {})  # in the steps too: a set is no column
        steps = [in_full._full(step) for own in self.steps.values() for step in own]
        used = set(_texts_in_lists([table, *map(list, self.columns.values()), steps]))
        return PlanLayout({name: own for name, own in self.columns.items() if name not in used}, self.steps)

    def tables_of(self, methods: Sequence[Method | Grid[Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the tables of methods, with neighbors that differ only in strengths as one. A named one is on its own."""
        tables: list[dict[str, Any]] = []
        group: list[Any] = []  # the full tables of the methods that the last table stands for
        for method in methods:
            if isinstance(method, Grid):
                tables, group = [*tables, dict(method.spec())], []
                continue
            full, name = self._full(method), names.get(method.text)
            merged = None if name or not group or len(group) == MAX_STRENGTHS else _merge([*group, full])
            if merged is None or merged is group[0]:  # the same method twice stays two entries
                tables, group = [*tables, self._short(full) | ({"name": name} if name else {})], [] if name else [full]
            else:
                tables[-1], group = self._short(merged), [*group, full]
        return tables

    def _full(self, value: Any) -> Any:
        """Return a value with all its fields; named steps and sets of columns by their names."""
        if not isinstance(value, Value):
            return value
        table: dict[str, Any] = {"type": type_name(type(value))}
        for own in fields(value):
            given = getattr(value, own.name)
            if isinstance(value, Chain) and own.name == "methods":
                table[own.name] = [step if isinstance(step, str) else self._full(step) for step in self._named(given)]
            elif isinstance(given, Value):
                table[own.name] = self._full(given)
            elif isinstance(given, tuple) and any(isinstance(item, Value) for item in given):
                table[own.name] = [self._full(item) for item in given]
            else:
                table[own.name] = self.name_columns(to_plain(given))
        return table

    def _named(self, steps: Sequence[Method]) -> Iterator[Method | str]:
        """Yield the steps of a chain, with runs of them that have a name as that name, the longest first."""
        known = sorted(self.steps.items(), key=lambda item: -len(item[1]))
        at = 0
        while at < len(steps):
            name = next((n for n, own in known if own and tuple(steps[at : at + len(own)]) == own), None)
            yield steps[at] if name is None else name
            at += 1 if name is None else len(self.steps[name])

    def name_columns(self, given: object) -> object:
        """Return a list of columns with the names of sets, where it is one, one without a few columns, or contains some."""
        if not isinstance(given, list) or len(given) < 2 or not all(isinstance(own, str) for own in given):
            return given
        short = min(self._short_lists(given), key=lambda own: 1 if isinstance(own, str) else len(own), default=given)
        return short if _select([short] if isinstance(short, str) else short, self.columns) == given else given

    def _short_lists(self, given: list[str]) -> Iterator[str | list[str]]:
        yield from (name for name, own in self.columns.items() if list(own) == given)
        for name, own in self.columns.items():
            left = [column for column in own if column not in set(given)]
            kept = [column for column in own if column not in set(left)]
            excluded = self._name_parts(left)
            # a set without some columns, then columns that are not in it
            if len(excluded) <= MAX_EXCLUDED and len(kept) > len(excluded) and given[: len(kept)] == kept:
                yield [name, *(f"-{part}" for part in excluded), *self._name_parts(given[len(kept) :])]
        short = self._name_parts(given)
        if len(short) < len(given):
            yield short

    def _name_parts(self, given: list[str]) -> list[str]:
        """Return a list of columns with its parts that are sets by their names."""
        # the longest set that begins at each column
        longest = sorted(self.columns.items(), key=lambda item: -len(item[1]))
        short, at = list[str](), 0
        while at < len(given):
            found = ((name, len(own)) for name, own in longest if list(own) == given[at : at + len(own)])
            name, length = next((pair for pair in found if pair[1] >= MIN_NAMED_COLUMNS), (given[at], 1))
            short, at = [*short, name], at + length
        return short

    def column_tables(self) -> dict[str, object]:
        """Return the named sets, later ones by the names of earlier ones."""
        names = list(self.columns)
        return {
            name: given if isinstance(given := earlier.name_columns(list(self.columns[name])), list) else [given]
            for i, name in enumerate(names)
            for earlier in [PlanLayout({own: self.columns[own] for own in names[:i]}, {})]  # no set names itself
        }

    def data_table(self, data: Table) -> dict[str, object]:
        """Return the `[data]` part, with sets of columns by their names."""
        return {name: given if name in TEXT_FIELDS else self.name_columns(given) for name, given in data.items()}

    def _short(self, table: Table) -> dict[str, Any]:
        """Return a table without the fields that have their default."""
        cls = _class_of(table)
        defaults = {} if cls is None else {own.name: own.default for own in fields(cls) if own.default is not MISSING}
        short: dict[str, Any] = {"type": table["type"]}
        kinds, on = _kinds_of(table), table.get("on", [])
        columns = _count_columns({"on": _select([on] if isinstance(on, str) else on, self.columns)})
        for name, given in table.items():
            default = defaults.get(name, MISSING)
            if name == "type" or (
                default is not MISSING and not isinstance(given, _Several) and given == to_plain(default)
            ):
                continue
            short[name] = self._short_field(given)
            if isinstance(given, _Several) and len(given) == columns and _is_scalar_or_list(kinds.get(name)):
                short[name] = [[own] for own in given]  # a plain list would be a number for each column
        return short

    def _short_field(self, given: Any) -> Any:
        if isinstance(given, _Several):
            return list(given)
        if isinstance(given, Mapping):
            return self._short(given) if "type" in given else dict(given)
        return [self._short_field(own) for own in given] if isinstance(given, list) else given

    def step_tables(self) -> dict[str, list[Any]]:
        """Return the tables of the named steps."""
        return {name: [self._short(self._full(step)) for step in own] for name, own in self.steps.items()}

    def measure_table(self, measure: Table) -> dict[str, Any]:
        """Return the table of a measure, with sets of columns by their names."""
        return {name: self.name_columns(given) if name != "type" else given for name, given in measure.items()}

    def name_text(self, text: str, measures: Sequence[Measure]) -> str:
        """Return the text of a measure with sets of columns by their names."""
        table = next((own.spec() for own in measures if own.text == text), None)
        return text if table is None or "(" not in text else text_of(self.measure_table(table))


def _texts_in_lists(table: object) -> Iterator[str]:
    """Yield the texts in the lists of a table, among them the names of all columns."""
    if isinstance(table, Mapping):
        yield from (text for own in table.values() for text in _texts_in_lists(own))
    elif isinstance(table, list):
        yield from (own for own in table if isinstance(own, str))
        yield from (text for own in table for text in _texts_in_lists(own))


def _merge(tables: Sequence[Any]) -> Any:
    """Return tables that differ only in strengths as one, with these as `_Several`; None if they differ otherwise.

    A text is a strength only where it differs in each table: a list that repeats it is harder to read than two entries.
    """
    first = tables[0]
    if all(type(own) is type(first) and own == first for own in tables):
        return first
    if isinstance(first, list):
        if any(not isinstance(own, list) or len(own) != len(first) for own in tables):
            return None
        steps = [_merge([own[i] for own in tables]) for i in range(len(first))]
        return None if any(step is None for step in steps) else steps
    if not isinstance(first, Mapping) or any(
        not isinstance(own, Mapping) or own.keys() != first.keys() for own in tables
    ):
        return None
    kinds, merged = _kinds_of(first), dict[str, Any]()
    for name, given in first.items():
        values = [own[name] for own in tables]
        if all(type(own) is type(given) and own == given for own in values):
            merged[name] = given
        elif all(map(_is_number, values)) or (_are_different_texts(values) and _is_scalar(kinds.get(name))):
            merged[name] = _Several(values)
        elif (nested := _merge(values)) is not None:
            merged[name] = nested
        else:
            return None
    return merged


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_different_texts(values: Sequence[object]) -> bool:
    return all(isinstance(own, str) for own in values) and len(set(values)) == len(values)


# ---- TOML ---------------------------------------------------------------------------------------------------------
FIXED_SPACE = "\0"  # where a line must not be broken; texts contain none, because it is escaped
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def format_plan(table: Table) -> str:
    """Return a table as TOML with short lines: lists of names are wrapped, and nested tables are on a line each.

    >>> print(format_plan({"a": 1, "part": {"on": ["x", "y"]}}), end="")
    a = 1
    <BLANKLINE>
    [part]
    on = ["x", "y"]
    """
    table = {name: _Inline(given) if name == "rule" and given else given for name, given in table.items()}
    plain = {name: given for name, given in table.items() if not _is_table(given) and not _is_list_of_tables(given)}
    lines = [_line(name, given) for name, given in plain.items()]
    for name, given in table.items():
        if _is_table(given):
            lines += ["", f"[{_key(name)}]", *(_line(own, part) for own, part in given.items())]
        elif _is_list_of_tables(given) and name != "measures":
            for entry in given:
                lines += ["", f"[[{_key(name)}]]", *(_line(own, part) for own, part in entry.items())]
    if measures := table.get("measures"):  # at the top, so that they are on a line each
        lines = [*lines[: len(plain)], _line("measures", measures), *lines[len(plain) :]]
    return "\n".join(lines).replace(FIXED_SPACE, " ").lstrip("\n") + "\n"


class _Inline(dict[str, Any]):
    """A short table that is written on a line."""


def _is_table(given: Any) -> bool:
    return isinstance(given, Mapping) and not isinstance(given, _Inline)


def _is_list_of_tables(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(own, Mapping) for own in given)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """Return a text in quotes: in single ones where it contains double ones, as edit rules do."""
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _line(name: str, given: Any) -> str:
    line = f"{_key(name)} = {_inline(given)}"
    if len(line) <= LINE_WIDTH or not isinstance(given, list):
        return line
    if any(isinstance(own, Mapping | list) for own in given) or any(
        len(_inline(own)) > LINE_WIDTH // 2 for own in given
    ):
        items = [wrapped for own in _join_short(given) for wrapped in _wrap(f"{own},", "  ", "    ")]
    else:  # names and numbers: as many as fit on a line
        items = _wrap(_inline(given)[1:-1], "  ", "  ")
    return "\n".join([f"{_key(name)} = [", *items, "]"])


def _join_short(given: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of a list: short items share a line with those before and after them, long ones not with another."""
    line, is_long = "", False
    for text in map(_inline, given):
        joined, is_second = f"{line}, {text}" if line else text, is_long and len(text) > MAX_SHORT_ITEM
        if line and (is_second or len(joined) > LINE_WIDTH - len("  ,")):
            yield line
            joined, is_long = text, False
        line, is_long = joined, is_long or len(text) > MAX_SHORT_ITEM
    yield line


def _wrap(text: str, first: str, further: str) -> list[str]:
    """Return a text on lines that are broken at its spaces."""
    return textwrap.wrap(text, LINE_WIDTH, initial_indent=first, subsequent_indent=further,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _inline(given: Any) -> str:
    """Return a value on one line. Only between the items of a list does it have plain spaces: TOML can be broken there."""
    if isinstance(given, Mapping):
        keys = (_key(name).replace(" ", FIXED_SPACE) for name in given)
        equals, comma = f"{FIXED_SPACE}={FIXED_SPACE}", f",{FIXED_SPACE}"
        pairs = comma.join(f"{key}{equals}{_inline(own)}" for key, own in zip(keys, given.values(), strict=True))
        return f"{{{FIXED_SPACE}{pairs}{FIXED_SPACE}}}" if given else "{}"
    if isinstance(given, list | tuple):
        return f"[{', '.join(map(_inline, given))}]"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, str):
        return _text(given).replace(" ", FIXED_SPACE)
    raise PlanError(f"a plan cannot hold a {type(given).__name__}.")
