"""Microdata: immutable columns with a schema, memoized views, and changes against a base."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data import html
from sdcmap.data.schema import NEVER_RELEASED, Schema, Variable
from sdcmap.data.view_cache import Result, Views
from sdcmap.errors import SchemaError, did_you_mean
from sdcmap.kernels.arrays import Array

MOST_NAMED = 8  # columns that a repr names


@dataclass(frozen=True, repr=False)
class Column:
    """One column's values; its text tells how many, and shows none.

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
    """New values of one column in some rows (rows None: in all), with new levels where a method made new ones."""

    rows: Array | None
    values: Array
    levels: pl.Series | None = None

    def __repr__(self) -> str:
        return f"Change({len(self.values):,} values)"


@dataclass(frozen=True, eq=False, repr=False)
class Microdata:
    """A file of records: columns, their schema, and the secret row `origin`.

    A masked file is its base plus changes, so what did not change is the base's own. `origin` holds, for each
    row, the row of the original it came from; it is None while row i is row i, and never leaves the program. A fully
    synthetic file is not `paired`: none of its rows came from a row of the original.
    """

    schema: Schema
    columns: Mapping[str, Column]
    origin: Array | None = None
    base: Microdata | None = None
    changes: Mapping[str, Change] = field(default_factory=dict)
    paired: bool = True
    _views: Views = field(default_factory=Views, init=False)  # of this very file: a changed copy has its own

    # ---- facts ------------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        return 0 if not self.columns else len(next(iter(self.columns.values())).values)

    def __repr__(self) -> str:
        more = f" and {len(self.names) - MOST_NAMED:,} more" if len(self.names) > MOST_NAMED else ""
        return f"Microdata({len(self):,} rows, {len(self.names):,} columns: {', '.join(self.names[:MOST_NAMED])}{more})"

    def _repr_html_(self) -> str:
        """For a notebook: names, kinds, roles and how many values are missing. No value of the data is shown: what stands
        on a screen, or in a notebook that is passed on, is out of the data steward's hands."""
        missing = [int(self.missing(name).sum()) for name in self.names]
        pairs = zip(self.schema.variables, missing, strict=True)
        rows = [(v.name, v.kind, v.role or "not stated", count) for v, count in pairs]
        shape = html.paragraph(f"Microdata: {len(self):,} rows, {len(self.names):,} columns")
        return shape + html.table(["column", "kind", "role", "missing"], rows, "columns")

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the variables a snooper may know."""
        return self.schema.of_role("key")

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self.schema.of_role("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self.schema.of_role("identifier")

    @property
    def unreleased(self) -> tuple[str, ...]:
        """Names of the columns that no release and no working copy carries: identifiers, and those to drop."""
        return self.schema.of_role(*NEVER_RELEASED)

    @property
    def describing(self) -> tuple[str, ...]:
        """Names of the released columns that say something of a record: all but weight, household, stratum and the like."""
        return tuple(v.name for v in self.schema.variables if v.role in ("key", "sensitive", "other", None))

    @property
    def knowable(self) -> tuple[str, ...]:
        """Those of them that somebody beside the respondent could know."""
        return tuple(name for name in self.describing if self.schema[name].knowable)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the numeric variables that are neither weight, household, stratum nor identifier."""
        return tuple(name for name in self.describing if self.schema[name].kind == "numeric")

    @property
    def weight(self) -> str | None:
        return next(iter(self.schema.of_role("weight")), None)

    @property
    def household(self) -> str | None:
        return next(iter(self.schema.of_role("household")), None)

    # ---- values -----------------------------------------------------------------------------------------------
    def column(self, name: str) -> Column:
        """The column as it stands, changes included."""
        if (change := self.changes.get(name)) is not None:
            return self.remember(("column", name), lambda: self._changed(name, change))
        try:
            return self.columns[name]
        except KeyError:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, self.names)}") from None

    def _changed(self, name: str, change: Change) -> Column:
        before = self.columns[name]
        values = change.values if change.rows is None else _with(before.values, change.rows, change.values)
        kept = (before.levels, before.reasons) if change.levels is None else (change.levels,)
        return Column(read_only(values), *kept)

    def __getitem__(self, name: str) -> Array:
        """The values as an array: numbers with NaN for missing, or the categories themselves."""
        column = self.column(name)
        if column.levels is None:
            return read_only(column.values)
        return column.levels.gather(column.values).to_numpy()

    def codes(self, name: str) -> Array:
        """Category codes 0, 1, ... of one variable; of a numeric one, the rank of each distinct value (NaN last)."""
        column = self.column(name)
        if column.levels is not None:
            return read_only(column.values)
        return self.view(distinct_codes, name)[0]

    def level_count(self, name: str) -> int:
        """Number of categories of one variable (missing counts as one); of a numeric one, of distinct values."""
        column = self.column(name)
        return self.view(distinct_codes, name)[1] if column.levels is None else len(column.levels)

    def numbers(self, name: str) -> Array:
        """The values of one numeric variable, NaN for missing."""
        column = self.column(name)
        if column.levels is not None:
            raise SchemaError(f"column {name!r} is {self.schema[name].kind}, and a numeric one is needed.")
        return read_only(column.values)

    def matrix(self, names: Sequence[str]) -> Array:
        """The numeric variables `names` as an n x m array."""
        columns = [self.numbers(name) for name in names]
        return columns[0][:, np.newaxis] if len(columns) == 1 else np.column_stack(columns)

    @property
    def weights(self) -> Array:
        """The survey weights, or ones."""
        return np.ones(len(self)) if self.weight is None else self.numbers(self.weight)

    def missing(self, name: str) -> Array:
        """True where the value is missing."""
        column = self.column(name)
        if column.levels is None:
            return np.isnan(column.values)
        return column.levels.is_null().to_numpy()[column.values]

    def frame(self) -> pl.DataFrame:
        """The file as a polars frame, in the types it came in; missing values are null."""
        return pl.DataFrame([series(self.column(v.name), v) for v in self.schema.variables])

    # ---- views and changes ------------------------------------------------------------------------------------
    def view(self, function: Callable[..., Result], names: str | tuple[str, ...]) -> Result:
        """`function(self, names)`, computed once and kept; of columns that did not change it is the base's own."""
        touched = (names,) if isinstance(names, str) else names
        if self.base is not None and self.origin is None and self.changes.keys().isdisjoint(touched):
            return self.base.view(function, names)
        return self.remember((function, names), lambda: function(self, names))

    def remember(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """What `compute` gives, computed once per `key` and kept with the file (see `Views`)."""
        return self._views.get(key, compute)

    def take_views(self, other: Microdata, functions: Iterable[Callable[..., object]]) -> None:
        """Take over what `functions` of columns alone, whatever their roles, gave for columns that both files share; their
        keys are the function, the names, and whatever else it was given."""
        same = {name for name in self.names if name in other.columns and self.columns[name] is other.columns[name]}
        for key, result in other._views.items():
            function, names = key[:2] if isinstance(key, tuple) else (None, ())
            if function in functions and same.issuperset((names,) if isinstance(names, str) else names):
                self.remember(key, partial(_itself, result))

    def change(
        self, rows: Array | None, values: Mapping[str, Array], levels: Mapping[str, pl.Series] | None = None
    ) -> Microdata:
        """This file with new `values` of some columns in some `rows` (None: all); numbers given `levels` are ordinal."""
        changes = dict(self.changes)
        for name, new in values.items():
            before = changes.get(name)
            new_levels = (levels or {}).get(name, None if before is None else before.levels)
            if rows is None or before is None or before.rows is rows:
                changes[name] = Change(rows, new, new_levels)
                continue
            merged = _with(self.column(name).values, rows, new)
            both = None if before.rows is None else np.union1d(before.rows, rows)
            changes[name] = Change(both, merged if both is None else merged[both], new_levels)
        base = self if self.base is None else self.base
        schema = self.schema
        if levels:
            schema = schema.recoded({name: str(new.dtype.base_type()) for name, new in levels.items()})
        return Microdata(schema, self.columns, self.origin, base, changes, paired=self.paired)

    def changed_rows(self, names: Iterable[str]) -> Array | None:
        """Rows where one of these columns may differ from the base; None: any row."""
        changes = [self.changes[name] for name in names if name in self.changes]
        rows = [change.rows for change in changes if change.rows is not None]
        if len(rows) < len(changes):
            return None
        if not rows:
            return np.empty(0, dtype=np.int64)
        return rows[0] if all(other is rows[0] for other in rows) else np.unique(np.concatenate(rows))

    def take(self, rows: Array) -> Microdata:
        """These rows, in this order, as a file of their own with its `origin`."""
        columns = {name: self.column(name).take(rows) for name in self.names}
        origin = rows if self.origin is None else self.origin[rows]
        return Microdata(self.schema, columns, origin, paired=self.paired)

    def only(self, names: Iterable[str]) -> Microdata:
        """The same records with these columns alone."""
        schema = self.schema.only(names)
        return Microdata(schema, {name: self.column(name) for name in schema.names}, self.origin, paired=self.paired)

    def with_roles(self, **roles: str) -> Microdata:
        """The same file with other roles: `data.with_roles(income="sensitive")`."""
        return replace(self, schema=self.schema.with_roles(roles))

    @property
    def digest(self) -> str:
        """SHA-256 of names, kinds, roles and values, identifiers left out: it tells studies apart. Secret."""
        return self.view(_digest, self.names)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_views"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _views=Views())


def _itself(result: Result) -> Result:
    return result


def _with(old: Array, rows: Array, new: Array) -> Array:
    """The old values with new ones in some rows."""
    values = old.astype(np.result_type(old, new))
    values[rows] = new
    return values


def read_only(values: Array) -> Array:
    """The same array, closed to writing: data are immutable."""
    if values.flags.writeable:
        values = values.view()
        values.flags.writeable = False
    return values


def series(column: Column, variable: Variable) -> pl.Series:
    """One column in the type it came in; numbers that no longer fit that type are written as Float64."""
    if column.levels is not None:
        values = column.levels.gather(column.values).alias(variable.name)
        if variable.storage == "Enum":
            return values.cast(pl.Enum(column.levels.drop_nulls()))
        return values.cast(pl.Categorical) if variable.storage == "Categorical" else values
    numbers = pl.Series(variable.name, column.values, nan_to_null=True)
    name, _, sizes = variable.storage.rstrip(")").partition("(")  # "Int64", or "Decimal(10, 2)"
    stored = getattr(pl, name, pl.Float64)
    typed = numbers.cast(stored(*map(int, sizes.split(","))) if sizes else stored, strict=False)
    return typed if bool(typed.cast(pl.Float64).eq_missing(numbers).all()) else numbers


def smallest_unsigned(count: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest unsigned type that holds `count` codes."""
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32


def distinct_codes(data: Microdata, name: str) -> tuple[Array, int]:
    """The rank of each distinct value of a numeric column (NaN last), and how many there are."""
    distinct, codes = np.unique(data.column(name).values, return_inverse=True)
    return codes.astype(smallest_unsigned(len(distinct))), len(distinct)


def _digest(data: Microdata, _names: tuple[str, ...]) -> str:
    digest = hashlib.sha256(b"census" if data.schema.census else b"")
    for variable in data.schema.variables:
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


def without_reasons(data: Microdata, names: tuple[str, ...]) -> Microdata:
    """The same file without the reasons of missing numbers: they belong to the values of the original."""
    plain = {name: replace(data.columns[name], reasons=None) for name in names}
    base = data if data.base is None else data.base
    return replace(data, columns={**data.columns, **plain}, base=base)
