"""The columns of a file by role: what a method needs to decide how it could be tried on the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import UNSUPPORTED_ROLES


@dataclass(frozen=True)
class Roles:
    """The columns of a file by role. `Method.trials` chooses from them."""

    data: Microdata

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The categorical keys, those with the fewest categories first."""
        keys = [name for name in self.data.keys if self.data.schema[name].kind != "numeric"]
        return tuple(sorted(keys, key=self.data.level_count))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric variables."""
        return self.data.numeric

    @cached_property
    def most_diverse_keys(self) -> tuple[str, ...]:
        """The two keys in which two random records differ most often: a swap needs pairs that differ."""

        def agreeing(name: str) -> float:
            count = np.bincount(self.data.codes(name))
            return float(((count / count.sum()) ** 2).sum())

        return tuple(sorted(self.keys, key=agreeing)[:2])

    @cached_property
    def descriptive_columns(self) -> tuple[str, ...]:
        """All variables that describe a record."""
        excluded = ("identifier", "weight", "household", "drop", "case", *UNSUPPORTED_ROLES)
        return tuple(v.name for v in self.data.schema.variables if v.role not in excluded)

    def of(self, names: Iterable[str]) -> Roles:
        """Return the roles of these columns only."""
        return Roles(self.data.only(names))

    def are_numbers(self, names: Iterable[str]) -> bool:
        """Return whether all of these columns are numeric."""
        return set(names) <= set(self.numbers)

    @cached_property
    def secret(self) -> str:
        """The first sensitive variable, or "" where there is none."""
        return next(iter(self.data.sensitive), "")

    @cached_property
    def known_to_attacker(self) -> tuple[str, ...]:
        """The keys and numeric variables that are not sensitive."""
        both = dict.fromkeys((*self.data.keys, *self.numbers))
        return tuple(name for name in both if name not in self.data.sensitive)

    def spread(self, name: str) -> float:
        """Return the standard deviation of a numeric variable; 0 where it has no value."""
        x = self.data.numbers(name)
        x = x[np.isfinite(x)]
        return float(x.std()) if len(x) else 0.0

    def rare(self, name: str, share: float) -> tuple[str, ...]:
        """Return the categories that fewer than this share of the records have."""
        levels = self.data.column(name).levels
        if levels is None:
            return ()
        count = np.bincount(self.data.codes(name), minlength=len(levels))
        each = zip(levels.to_list(), count, strict=False)
        return tuple(str(level) for level, n in each if level is not None and 0 < n < share * len(self.data))


def format_strength(value: float) -> str:
    """Return a strength as it is written in the name of a trial.

    >>> format_strength(0.05), format_strength(2.0)
    ('.05', '2')
    """
    return f"{value:g}".removeprefix("0")


STRENGTH_DIGITS = 3  # significant digits of a strength in a search; more would not change the result visibly


@dataclass(frozen=True)
class Strengths:
    """The values of one parameter, from the weakest masking worth trying to the strongest.

    parameter : name of the field. weak, strong : its values at strengths 0 and 1; whole numbers where both are. log : equal
    factors between steps, otherwise equal differences. fixed : other fields, the same at every strength. tried : the values
    that a comparison of methods tries.

    >>> Strengths("p", 0.01, 0.9).at(0.5), Strengths("size", 3, 100).at(0.5)
    ({'p': 0.0949}, {'size': 17})
    """

    parameter: str
    weak: float
    strong: float
    log: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tried: tuple[float, ...] = ()

    def at(self, strength: float) -> dict[str, Any]:
        """Return the fields of a method at a strength in [0, 1]."""
        weak, strong = self.weak, self.strong
        value = weak * (strong / weak) ** strength if self.log else weak + (strong - weak) * strength
        whole = isinstance(self.weak, int) and isinstance(self.strong, int)
        return {**self.fixed, self.parameter: round(value) if whole else float(f"{value:.{STRENGTH_DIGITS}g}")}
