"""The schema of a file: names, kinds, roles and labels of its columns."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from sdcmap.errors import MAX_PROBLEMS_SHOWN, SchemaError, did_you_mean

KINDS = ("numeric", "ordinal", "nominal")
ROLES = (
    "identifier", "key", "sensitive", "weight", "household", "stratum", "other",
    "drop", "replicate", "psu", "wave", "case",
)  # fmt: skip
NEVER_RELEASED = ("identifier", "drop", "case")
NEVER_COPIED = ("identifier", "drop")  # roles of columns that no working copy contains; a case is renumbered there
RESPONDENT_ONLY = "respondent only"
RENUMBERED_ROLES = ("household", "stratum")  # a release has random numbers instead of the values
UNSUPPORTED_ROLES = {  # roles that are recognized but not supported: the reason, for messages
    "replicate": "replicate weights are not masked, and reveal the sample design",
    "psu": "primary sampling units are not masked, and reveal where a record comes from",
    "wave": "records of several waves would be treated as several people",
}
INSTEAD = {"wave": "state the number of the person as case, and {it} as key, or keep one wave"}  # of "state it as drop"
INSTEAD_WITH_CASE = {"wave": "state {it} as key"}  # where the number of the person is stated

NOT_IN_FORMULAS = (*NEVER_RELEASED, *RENUMBERED_ROLES, *UNSUPPORTED_ROLES)

# Control characters, but for tabs and line breaks, and characters that change the direction of the text around them.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Cyrillic and Greek letters that most fonts draw like a Latin letter.
LOOK_ALIKES = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443"  # Cyrillic, small
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"  # Cyrillic, capital
    "\u03bf\u03bd\u03f2\u03f3"  # Greek, small
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",  # Greek, capital
    "acdehijlopqswxyABCEHIJKMOPSTXYovcjABEZHIKMNOPTYX",
)


@dataclass(frozen=True)
class Variable:
    """One column: its name, kind and role, and the metadata of its file.

    Parameters
    ----------
    name : the column's name.
    kind : "numeric" (amounts), "ordinal" (ordered categories) or "nominal" (categories).
    role : one of ROLES, or None if no role was stated; a column without a stated role cannot be released.
    label : the variable label of the file.
    values : value labels, a (code, label) pair each.
    missing : user-missing values of the file: a number, a letter ("a" to "z"), a text, or a (low, high) range.
    reasons : the user-missing codes that occur in a numeric column; `Column.reasons` counts from 1 into them.
    measure : SPSS measurement level. format : SPSS, Stata or SAS display format.
    storage : the original polars type, such as "Int64"; a release is written in this type.
    known_by : who could know it: "register", "acquaintance", or "respondent only: why"; if unstated, others could.
    universe : the people who were asked, as stated in a codebook.
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
        """Return whether somebody other than the respondent could know it."""
        return not self.known_by.startswith(RESPONDENT_ONLY)

    def with_categories(self, storage: str) -> Variable:
        """Return the variable with categories of this polars type; metadata of the old values is dropped."""
        if self.kind != "numeric" and self.storage in ("", "Enum", "Categorical", storage):
            return self
        kind = "ordinal" if self.kind == "numeric" else self.kind
        plain = Variable(self.name, kind, self.role, self.label, storage=storage)
        return replace(plain, known_by=self.known_by, universe=self.universe)


@dataclass(frozen=True)
class Schema:
    """The variables of a file, in file order, and facts about the file.

    format : "csv", "parquet", "sav", "dta" or "xpt".
    census : the file contains the whole population, so membership is not a secret.
    title, universe : of the study, as stated in its codebook.
    excel_safe : texts that a spreadsheet program would run as formulas are written to CSV with an apostrophe before them.
    """

    variables: tuple[Variable, ...]
    format: str = "parquet"
    census: bool = False
    title: str = ""
    universe: str = ""
    excel_safe: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    def __contains__(self, name: object) -> bool:
        """Return whether a variable has that name."""
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
        """Return the names of the variables with one of these roles (None: no stated role)."""
        return tuple(name for role in roles for name in self._by_role[role])

    def with_roles(self, roles: dict[str, str]) -> Schema:
        """Return the schema with these roles."""
        for name in roles:
            self[name]
        changed = (replace(v, role=roles[v.name]) if v.name in roles else v for v in self.variables)
        return replace(self, variables=tuple(changed))

    def with_categories(self, types: Mapping[str, str]) -> Schema:
        """Return the schema with these variables as categories of these polars types; numeric ones become ordinal."""
        changed = {name: self[name].with_categories(storage) for name, storage in types.items()}
        if all(variable is self[name] for name, variable in changed.items()):
            return self
        return replace(self, variables=tuple(changed.get(v.name, v) for v in self.variables))

    def unsupported_roles(self, *roles: str) -> Iterator[str]:
        """Yield a sentence for each of these unsupported roles that a column has."""
        for role in roles:
            if names := self.of_role(role):
                has, it = ("has", "it") if len(names) == 1 else ("have", "them")
                columns = f"{', '.join(map(repr, names))} {has} the role {role}"
                instead = INSTEAD_WITH_CASE if self.of_role("case") else INSTEAD
                advice = instead.get(role, "state {it} as drop").format(it=it)
                yield f"{columns}, but {UNSUPPORTED_ROLES[role]}: {advice}."

    def formula_problems(self, names: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for each of these columns whose values no release contains, so that no formula may use it."""
        for name in names:
            role = self[name].role if name in self else None
            if role in RENUMBERED_ROLES:
                yield f"a formula must not use {name!r}: it is the file's {role}, which is renumbered at random."
            elif role in NOT_IN_FORMULAS:
                yield f"a formula must not use {name!r}: its role is {role}, so it is not released."

    def only(self, names: Iterable[str]) -> Schema:
        """Return the schema with only these variables, in file order."""
        wanted = set(names)
        return replace(self, variables=tuple(v for v in self.variables if v.name in wanted))


def is_in_calendar(clean: pl.Series) -> bool:
    """Return whether dates lie in the years 1 to 9999, times in a day and durations below 10^9 days, as in Python."""
    if clean.dtype == pl.Time:
        return bool(clean.to_physical().is_between(0, 86_400 * 10**9 - 1).all())
    units = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
    days = clean.to_physical() // units.get(getattr(clean.dtype, "time_unit", ""), 1)
    return bool((days.abs() < 10**9 if clean.dtype == pl.Duration else days.is_between(-719_161, 2_932_895)).all())


def check_names(names: Sequence[str]) -> None:
    """Raise SchemaError for names with control characters, and for two names that look the same."""
    if hidden := [number for number, name in enumerate(names, 1) if CONTROL.search(name)]:
        what = "control characters or characters that change the direction of text in their names"
        raise SchemaError(f"columns with {what}: {_list_columns(hidden)}. Rename them.")
    alike: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names, 1):
        alike[_appearance(name)].append(number)
    if pair := next((numbers for numbers in alike.values() if len(numbers) > 1), None):
        what = "look the same, but have other letters, blanks or invisible characters"
        raise SchemaError(f"the names of columns {_list_columns(pair)} {what}. Rename them.")


def _list_columns(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:MAX_PROBLEMS_SHOWN]))


def _appearance(name: str) -> str:
    """Return a text that is the same for names that look the same."""
    visible = "".join(letter for letter in unicodedata.normalize("NFC", name) if unicodedata.category(letter) != "Cf")
    return " ".join(visible.translate(LOOK_ALIKES).split())
