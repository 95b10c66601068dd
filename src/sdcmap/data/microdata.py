"""Microdata: immutable columns with a schema, cached views, and changes relative to a base file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data import notebook_html
from sdcmap.data.schema import NEVER_RELEASED, Schema, Variable
from sdcmap.data.view_cache import Result, ViewCache
from sdcmap.errors import SchemaError, did_you_mean
from sdcmap.kernels.arrays import Array

MAX_NAMES_SHOWN = 8  # column names in a repr


@dataclass(frozen=True, repr=False)
class Column:
    """The values of one column. Its repr shows their number, never a value.

    values : numeric: float64 with NaN for missing; else unsigned codes into `levels`.
    levels : the categories in order, in the type they came in; a column with missing values ends with a null level,
        and one more null level for each of `Variable.reasons`, in their order.
    reasons : which user-missing code a missing number had (0: none), counting from 1 into `Variable.reasons`.
    """

    values: Array
    levels: pl.Series | None = None
    reasons: Array | None = None

    def __repr__(self) -> str:
        kind = "numbers" if self.levels is None else f"codes into {len(self.levels):,} levels"
        return f"Column({len(self.values):,} {kind})"

    def take(self, rows: Array) -> Column:
        return Column(self.values[rows], self.levels, None if self.reasons is None else self.reasons[rows])


@dataclass(frozen=True, repr=False)
class Change:
    """New values of one column in some rows (None: all rows), with new levels if a method created categories."""

    rows: Array | None
    values: Array
    levels: pl.Series | None = None

    def __repr__(self) -> str:
        return f"Change({len(self.values):,} values)"


@dataclass(frozen=True, eq=False, repr=False)
class Microdata:
    """A file of records: columns, their schema, and the secret `origin` of its rows.

    A masked file is its base plus changes, so unchanged columns are shared with the base. `origin` holds, for each row,
    the row of the original that it came from. It is None if row i came from row i, and it never leaves the program. A
    fully synthetic file is not `paired`: its rows do not correspond to rows of the original.
    """

    schema: Schema
    columns: Mapping[str, Column]
    origin: Array | None = None
    base: Microdata | None = None
    changes: Mapping[str, Change] = field(default_factory=dict)
    paired: bool = True
    _views: ViewCache = field(default_factory=ViewCache, init=False)  # a copy has its own

    # ---- facts ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return 0 if not self.columns else len(next(iter(self.columns.values())).values)

    def __repr__(self) -> str:
        more = f" and {len(self.names) - MAX_NAMES_SHOWN:,} more" if len(self.names) > MAX_NAMES_SHOWN else ""
        names = ", ".join(self.names[:MAX_NAMES_SHOWN]) + more
        return f"Microdata({len(self):,} rows, {len(self.names):,} columns: {names})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: names, kinds, roles and numbers of missing values.

        No value of the data is shown, because a notebook may be passed on to people who must not see the data.
        """
        missing = [int(self.missing(name).sum()) for name in self.names]
        pairs = zip(self.schema.variables, missing, strict=True)
        rows = [(v.name, v.kind, v.role or "not stated", count) for v, count in pairs]
        shape = notebook_html.paragraph(f"Microdata: {len(self):,} rows, {len(self.names):,} columns")
        return shape + notebook_html.table(["column", "kind", "role", "missing"], rows, "columns")

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key variables, which an attacker may know."""
        return self.schema.of_role("key")

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self.schema.of_role("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self.schema.of_role("identifier")

    @property
    def unreleased_columns(self) -> tuple[str, ...]:
        """Names of the columns that no release contains: identifiers, numbers of cases, and columns to drop."""
        return self.schema.of_role(*NEVER_RELEASED)

    @property
    def content_columns(self) -> tuple[str, ...]:
        """Names of the released columns that describe people: not weight, household, stratum and other survey columns."""
        return tuple(v.name for v in self.schema.variables if v.role in ("key", "sensitive", "other", None))

    @property
    def knowable(self) -> tuple[str, ...]:
        """Names of the content columns that somebody other than the respondent could know."""
        return tuple(name for name in self.content_columns if self.schema[name].knowable)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the numeric variables that are neither weight, household, stratum nor identifier."""
        return tuple(name for name in self.content_columns if self.schema[name].kind == "numeric")

    @property
    def weight(self) -> str | None:
        return next(iter(self.schema.of_role("weight")), None)

    @property
    def household(self) -> str | None:
        return next(iter(self.schema.of_role("household")), None)

    @property
    def case(self) -> str | None:
        """Name of the column with the number of the person, where a person has several records (a panel)."""
        return next(iter(self.schema.of_role("case")), None)

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """Name of the column whose equal values are one unit: the case, else the household; empty if there is neither."""
        name = self.case or self.household
        return () if name is None else (name,)

    @property
    def units(self) -> Array:
        """The unit of each record, as codes: its person (case), else its household, else the record itself.

        Records of one unit depend on each other: they are held out together, and a standard error counts them as one.
        """
        return self.view(_unit_codes, self.unit_columns)

    @property
    def people(self) -> int:
        """The number of people: each is a record, or all records of a case."""
        return len(self) if self.case is None else int(self.units.max(initial=-1)) + 1

    # ---- values -----------------------------------------------------------------------------------------------
    def column(self, name: str) -> Column:
        """Return the column with changes applied."""
        if (change := self.changes.get(name)) is not None:
            return self.remember(("column", name), lambda: self._apply_change(name, change))
        try:
            return self.columns[name]
        except KeyError:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, self.names)}") from None

    def _apply_change(self, name: str, change: Change) -> Column:
        before = self.columns[name]
        values = change.values if change.rows is None else _replace_rows(before.values, change.rows, change.values)
        levels = (before.levels, before.reasons) if change.levels is None else (change.levels,)
        return Column(read_only(values), *levels)

    def __getitem__(self, name: str) -> Array:
        """Return the values as an array: numbers with NaN for missing, or the categories."""
        column = self.column(name)
        if column.levels is None:
            return read_only(column.values)
        return column.levels.gather(column.values).to_numpy()

    def codes(self, name: str) -> Array:
        """Return category codes 0, 1, ... of a variable; for a numeric one, the rank of each distinct value (NaN last)."""
        column = self.column(name)
        if column.levels is not None:
            return read_only(column.values)
        return self.view(distinct_codes, name)[0]

    def level_count(self, name: str) -> int:
        """Return the number of categories of a variable, missing included; for a numeric one, of distinct values."""
        column = self.column(name)
        return self.view(distinct_codes, name)[1] if column.levels is None else len(column.levels)

    def numbers(self, name: str) -> Array:
        """Return the values of a numeric variable, NaN for missing."""
        column = self.column(name)
        if column.levels is not None:
            raise SchemaError(f"column {name!r} is {self.schema[name].kind}, but a numeric column is needed here.")
        return read_only(column.values)

    def matrix(self, names: Sequence[str]) -> Array:
        """Return the numeric variables `names` as an n x m array."""
        columns = [self.numbers(name) for name in names]
        return columns[0][:, np.newaxis] if len(columns) == 1 else np.column_stack(columns)

    @property
    def weights(self) -> Array:
        """The survey weights, or ones if the file has no weight."""
        return np.ones(len(self)) if self.weight is None else self.numbers(self.weight)

    def missing(self, name: str) -> Array:
        """Return True where the value is missing."""
        column = self.column(name)
        if column.levels is None:
            return np.isnan(column.values)
        return column.levels.is_null().to_numpy()[column.values]

    def frame(self) -> pl.DataFrame:
        """Return the file as a polars frame with its original types; missing values are null."""
        return pl.DataFrame([series(self.column(v.name), v) for v in self.schema.variables])

    # ---- views and changes ------------------------------------------------------------------------------------
    def view(self, function: Callable[..., Result], names: str | tuple[str, ...]) -> Result:
        """Return `function(self, names)`, cached. If none of these columns changed, the base's result is reused."""
        touched = (names,) if isinstance(names, str) else names
        if self.base is not None and self.origin is None and self.changes.keys().isdisjoint(touched):
            return self.base.view(function, names)
        return self.remember((function, names), lambda: function(self, names))

    def remember(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return `compute()`, computed once per `key` and cached with the file (see `ViewCache`)."""
        return self._views.get(key, compute)

    def take_views(self, other: Microdata, functions: Iterable[Callable[..., object]]) -> None:
        """Copy cached results of `functions` from another file, for columns that both files share.

        The results of these functions must not depend on roles. A cache key is the function, the names, and any further
        arguments.
        """
        same = {name for name in self.names if name in other.columns and self.columns[name] is other.columns[name]}
        for key, result in other._views.items():
            function, names = key[:2] if isinstance(key, tuple) else (None, ())
            if function in functions and same.issuperset((names,) if isinstance(names, str) else names):
                self.remember(key, partial(_return_result, result))

    def change(
        self, rows: Array | None, values: Mapping[str, Array], levels: Mapping[str, pl.Series] | None = None
    ) -> Microdata:
        """Return the file with new `values` in some `rows` (None: all). Numbers with new `levels` become ordinal."""
        changes = dict(self.changes)
        for name, new in values.items():
            before = changes.get(name)
            new_levels = (levels or {}).get(name, None if before is None else before.levels)
            if rows is None or before is None or before.rows is rows:
                changes[name] = Change(rows, new, new_levels)
                continue
            # The column changed before in other rows: keep one change that covers both sets of rows.
            merged = _replace_rows(self.column(name).values, rows, new)
            both = None if before.rows is None else np.union1d(before.rows, rows)
            changes[name] = Change(both, merged if both is None else merged[both], new_levels)
        base = self if self.base is None else self.base
        schema = self.schema
        if levels:
            schema = schema.with_categories({name: str(new.dtype.base_type()) for name, new in levels.items()})
        return Microdata(schema, self.columns, self.origin, base, changes, paired=self.paired)

    def changed_rows(self, names: Iterable[str]) -> Array | None:
        """Return the rows where one of these columns may differ from the base; None if any row may."""
        changes = [self.changes[name] for name in names if name in self.changes]
        rows = [change.rows for change in changes if change.rows is not None]
        if len(rows) < len(changes):
            return None
        if not rows:
            return np.empty(0, dtype=np.int64)
        return rows[0] if all(other is rows[0] for other in rows) else np.unique(np.concatenate(rows))

    def take(self, rows: Array) -> Microdata:
        """Return these rows, in this order, as a file with its own `origin`."""
        columns = {name: self.column(name).take(rows) for name in self.names}
        origin = rows if self.origin is None else self.origin[rows]
        return Microdata(self.schema, columns, origin, paired=self.paired)

    def only(self, names: Iterable[str]) -> Microdata:
        """Return the same records with only these columns."""
        schema = self.schema.only(names)
        return Microdata(schema, {name: self.column(name) for name in schema.names}, self.origin, paired=self.paired)

    def with_roles(self, **roles: str) -> Microdata:
        """Return the file with other roles: `data.with_roles(income="sensitive")`."""
        return replace(self, schema=self.schema.with_roles(roles))

    @property
    def digest(self) -> str:
        """SHA-256 of names, kinds, roles and values without identifiers. It distinguishes studies, and is secret."""
        return self.view(_digest, self.names)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_views"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _views=ViewCache())


def _return_result(result: Result) -> Result:
    return result


def _replace_rows(old: Array, rows: Array, new: Array) -> Array:
    """Return a copy of the old values with new ones in some rows."""
    values = old.astype(np.result_type(old, new))
    values[rows] = new
    return values


def read_only(values: Array) -> Array:
    """Return a view of the array that cannot be written to, because data are immutable."""
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    return values


def series(column: Column, variable: Variable) -> pl.Series:
    """Return a column in its original type; numbers that no longer fit that type become Float64."""
    if column.levels is not None:
        values = column.levels.gather(column.values).alias(variable.name)
        if variable.storage == "Enum":
            return values.cast(pl.Enum(column.levels.drop_nulls()))
        return values.cast(pl.Categorical) if variable.storage == "Categorical" else values
    numbers = pl.Series(variable.name, column.values, nan_to_null=True)
    name, _, sizes = variable.storage.rstrip(")").partition("(")  # "Int64", or "Decimal(10, 2)"
    stored = getattr(pl, name, pl.Float64)
    # Use the original type only if every number survives the conversion.
    typed = numbers.cast(stored(*map(int, sizes.split(","))) if sizes else stored, strict=False)
    return typed if bool(typed.cast(pl.Float64).eq_missing(numbers).all()) else numbers


def smallest_unsigned(count: int) -> type[np.unsignedinteger[Any]]:
    """Return the narrowest unsigned type for `count` codes."""
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32


def distinct_codes(data: Microdata, name: str) -> tuple[Array, int]:
    """Return the rank of each distinct value of a numeric column (NaN last), and their number."""
    distinct, codes = np.unique(data.column(name).values, return_inverse=True)
    return codes.astype(smallest_unsigned(len(distinct))), len(distinct)


def number_by_appearance(data: Microdata, name: str) -> Array:
    """Return the values of a column as numbers 0, 1, ... in the order in which they first appear; NaN: missing."""
    is_missing = data.missing(name)
    _, first, index = np.unique(data.codes(name)[~is_missing], return_index=True, return_inverse=True)
    number = np.empty(len(first))
    number[np.argsort(first)] = np.arange(len(first))
    numbers = np.full(len(data), np.nan)
    numbers[~is_missing] = number[index]
    return numbers


def _unit_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the unit of each record; records without a number are units of their own."""
    if not names:
        return np.arange(len(data))
    codes = data.codes(names[0]).astype(np.int64)
    without_number = np.flatnonzero(data.missing(names[0]))
    codes[without_number] = int(codes.max(initial=0)) + 1 + np.arange(len(without_number))
    return np.unique(codes, return_inverse=True)[1]


def _digest(data: Microdata, _names: tuple[str, ...]) -> str:
    digest = hashlib.sha256(b"census" if data.schema.census else b"")
    for variable in data.schema.variables:
        if variable.role == "case":
            # the working copy has other numbers of the same cases
            digest.update(b"case|" + np.ascontiguousarray(number_by_appearance(data, variable.name)).data)
        if variable.role in NEVER_RELEASED:
            continue
        column = data.column(variable.name)
        digest.update(f"{variable.name}|{variable.kind}|{variable.role}|{column.values.dtype}".encode())
        digest.update(f"|{variable.known_by}".encode() if variable.known_by else b"")
        digest.update(np.ascontiguousarray(column.values).data)
        if column.levels is not None:
            digest.update(repr(column.levels.to_list()).encode())
        if column.reasons is not None:
            digest.update(np.ascontiguousarray(column.reasons).data)
    return digest.hexdigest()


def with_reasons(data: Microdata, reasons: Mapping[str, Array | None]) -> Microdata:
    """Return the file with these reasons for missing numbers, by column; None: no reasons."""
    changed = {name: replace(data.columns[name], reasons=own) for name, own in reasons.items()}
    base = data if data.base is None else data.base
    return replace(data, columns={**data.columns, **changed}, base=base)


def without_reasons(data: Microdata, names: tuple[str, ...]) -> Microdata:
    """Return the file without the reasons for missing numbers, which belong to the values of the original."""
    return with_reasons(data, dict.fromkeys(names))
