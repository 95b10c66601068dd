"""What the columns of a file are: names, kinds, roles and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from sdcmap.errors import SchemaError, did_you_mean

KINDS = ("numeric", "ordinal", "nominal")
ROLES = ("identifier", "key", "sensitive", "weight", "household", "stratum", "other")


@dataclass(frozen=True)
class Variable:
    """One column: its name, kind and role, and what its file says about it.

    Parameters
    ----------
    name : the column's name.
    kind : "numeric" (amounts), "ordinal" (ordered categories) or "nominal" (categories).
    role : one of ROLES, or None while nobody has stated one; a column without a stated role cannot be released.
    label : the file's own words for the variable.
    values : value labels, (code, words) each.
    missing : user-missing values of the file: a number, a letter ("a" to "z"), a text, or a (low, high) range.
    reasons : the user-missing codes met in a numeric column; `Column.reasons` counts from 1 into them.
    measure : SPSS measurement level. format : SPSS, Stata or SAS display format.
    storage : the polars type the column came in, such as "Int64"; written back in it.
    """

    name: str
    kind: str
    role: str | None = None
    label: str = ""
    values: tuple[tuple[float | str, str], ...] = ()
    missing: tuple[float | str | tuple[float, float], ...] = ()
    reasons: tuple[float | str, ...] = ()
    measure: str = ""
    format: str = ""
    storage: str = ""


@dataclass(frozen=True)
class Schema:
    """The variables of a file, in file order, and the file's format ("csv", "parquet", "sav", "dta", "xpt")."""

    variables: tuple[Variable, ...]
    format: str = "parquet"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def _by_name(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.variables}

    @cached_property
    def _by_role(self) -> dict[str | None, tuple[str, ...]]:
        return {role: tuple(v.name for v in self.variables if v.role == role) for role in (*ROLES, None)}

    def __getitem__(self, name: str) -> Variable:
        try:
            return self._by_name[name]
        except KeyError:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, self.names)}") from None

    def of_role(self, *roles: str | None) -> tuple[str, ...]:
        """Names of the variables that have one of these roles (None: no stated role)."""
        return tuple(name for role in roles for name in self._by_role[role])

    def with_roles(self, roles: dict[str, str]) -> Schema:
        """The same schema with these roles stated."""
        for name in roles:
            self[name]
        changed = (replace(v, role=roles[v.name]) if v.name in roles else v for v in self.variables)
        return replace(self, variables=tuple(changed))

    def only(self, names: Iterable[str]) -> Schema:
        """The same schema with these variables alone, in file order."""
        kept = set(names)
        return replace(self, variables=tuple(v for v in self.variables if v.name in kept))
