"""What the columns of a file are: names, kinds, roles and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from sdcmap.errors import SchemaError, did_you_mean

KINDS = ("numeric", "ordinal", "nominal")
ROLES = (
    "identifier", "key", "sensitive", "weight", "household", "stratum", "other",
    "drop", "replicate", "psu", "wave", "case",
)  # fmt: skip
NEVER_RELEASED = ("identifier", "drop")
RESPONDENT_ONLY = "respondent only"
UNSERVED = {  # roles that are recognized, and that nothing serves yet: what to say of such columns
    "replicate": "replicate weights are not masked along, and tell the sample's design",
    "psu": "primary sampling units are not masked along, and tell where a record is from",
    "wave": "records of several waves would be taken for several people (keep one wave)",
    "case": "several records of one case would be taken for several people (keep one each)",
}


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
    known_by : who could know it: "register", "acquaintance", or "respondent only: why"; unstated counts as knowable.
    universe : of whom it was asked, in the words of a codebook.
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
    known_by: str = ""
    universe: str = ""

    @property
    def knowable(self) -> bool:
        """Whether somebody beside the respondent could know it."""
        return not self.known_by.startswith(RESPONDENT_ONLY)

    def recoded(self, storage: str) -> Variable:
        """The same variable with categories of this polars type: what the file said of the old values goes."""
        if self.kind != "numeric" and self.storage in ("", "Enum", "Categorical", storage):
            return self
        kind = "ordinal" if self.kind == "numeric" else self.kind
        plain = Variable(self.name, kind, self.role, self.label, storage=storage)
        return replace(plain, known_by=self.known_by, universe=self.universe)


@dataclass(frozen=True)
class Schema:
    """The variables of a file, in file order, the file's format ("csv", "parquet", "sav", "dta", "xpt"), and whether it is
    a census: everybody of its population is in it, so that being in it tells nothing. Title and universe of the study are
    those of its codebook."""

    variables: tuple[Variable, ...]
    format: str = "parquet"
    census: bool = False
    title: str = ""
    universe: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    def __contains__(self, name: object) -> bool:
        """Whether a variable has that name."""
        return name in self._by_name

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

    def recoded(self, types: Mapping[str, str]) -> Schema:
        """The same schema after these variables were given categories of these polars types; numeric become ordinal."""
        changed = {name: self[name].recoded(storage) for name, storage in types.items()}
        if all(variable is self[name] for name, variable in changed.items()):
            return self
        return replace(self, variables=tuple(changed.get(v.name, v) for v in self.variables))

    def unserved(self, *roles: str) -> Iterator[str]:
        """A sentence for each of these roles that some column has and that nothing serves yet."""
        for role in roles:
            if names := self.of_role(role):
                are, it = ("is", "it") if len(names) == 1 else ("are", "them")
                yield f"{', '.join(map(repr, names))} {are} stated as {role}, and {UNSERVED[role]}: state {it} as drop."

    def only(self, names: Iterable[str]) -> Schema:
        """The same schema with these variables alone, in file order."""
        kept = set(names)
        return replace(self, variables=tuple(v for v in self.variables if v.name in kept))


def in_calendar(clean: pl.Series) -> bool:
    """Whether dates lie in the years 1 to 9999, times in a day and durations below 10^9 days, as Python's do."""
    if clean.dtype == pl.Time:
        return bool(clean.to_physical().is_between(0, 86_400 * 10**9 - 1).all())
    units = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
    days = clean.to_physical() // units.get(getattr(clean.dtype, "time_unit", ""), 1)
    return bool((days.abs() < 10**9 if clean.dtype == pl.Duration else days.is_between(-719_161, 2_932_895)).all())
