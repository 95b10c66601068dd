"""A user's own file, read for the analysis of a paper: its data, its roles, and where each role comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from sdcmap import Microdata, Scores, Source
from sdcmap.core import Array, Method, format_percent
from sdcmap.errors import SchemaError, did_you_mean
from sdcmap.explore.first_look import Look, look

OnRole: TypeAlias = Literal["numeric", "keys", "any"]  # what the variables in `on` must be


@dataclass(frozen=True)
class OwnFile:
    """The file of a user with all roles, stated and proposed.

    paper : the name of the paper, for messages. on : the variables that the user stated, or none. stated_keys : the keys
    where the user stated keys, with the variables in `on`; none where `on` alone is stated.
    """

    paper: str
    path: Path
    data: Microdata
    source: Source
    overview: Look
    on: tuple[str, ...]
    stated_keys: tuple[str, ...] = ()

    @property
    def amounts(self) -> tuple[str, ...]:
        """The numeric variables that are no keys, sensitive ones first; all numeric variables where there are none."""
        role = {v.name: v.role for v in self.data.schema.variables}
        amounts = [name for name in self.data.numeric if role[name] != "key"] or [*self.data.numeric]
        return tuple(sorted(amounts, key=lambda name: role[name] != "sensitive"))

    @property
    def categories(self) -> tuple[str, ...]:
        """The keys that have categories."""
        return tuple(name for name in self.data.keys if self.data.schema[name].kind != "numeric")

    def values(self, name: str) -> Array:
        """Return the values of a numeric variable that are not missing."""
        x = self.data.numbers(name)
        return x[np.isfinite(x)]

    def refuse(self, needs: str, problem: str, remedy: str) -> SchemaError:
        """Return the error that says what the paper needs, what this file lacks, and what to do."""
        return SchemaError(f"{self.paper} needs {needs}. {self.path.name}: {problem}. {remedy}")

    def require_numeric(self, name: str, needs: str, at_least: int = 2) -> None:
        """Raise SchemaError unless a variable has so many different numbers."""
        remedy = "State another variable with `on`."
        self.require_columns(name)
        if self.data.schema[name].kind != "numeric":
            raise self.refuse(needs, f"column {name!r} has categories", remedy)
        if (distinct := len(np.unique(self.values(name)))) < at_least:
            what = f"column {name!r} has {distinct:,} different number{'' if distinct == 1 else 's'}"
            raise self.refuse(needs, f"{what}, at least {at_least} are needed", remedy)

    def require_columns(self, *names: str) -> None:
        """Raise SchemaError where a column does not exist, or is no part of a release."""
        for name in names:
            if name not in self.data.names:
                raise SchemaError(f"{self.path.name} has no column {name!r}.{did_you_mean(name, self.data.names)}")
            if name not in self.data.content_columns:
                role = self.data.schema[name].role
                raise SchemaError(f"column {name!r} has the role {role!r}, so it cannot be studied. State its role.")

    def describe_choice(self, names: Sequence[str]) -> str:
        """Return the studied variables with where they come from: "income (stated)"."""
        return f"{', '.join(names)} ({'stated' if self.on else 'proposed from the file'})"

    def roles(self) -> pl.DataFrame:
        """Return the role of each column, and whether it was stated or proposed."""
        rows = [
            (v.name, v.kind, v.role, "stated" if v.stated else f"proposed{f': {v.why}' if v.why else ''}", v.missing)
            for v in self.overview.variables
        ]
        return pl.DataFrame(rows, schema=["column", "kind", "role", "source", "missing"], orient="row")

    def describe(self) -> str:
        """Return the size of the file and how it was read, in a sentence or two."""
        missing = sum(v.missing for v in self.overview.variables)
        proposed = sum(not v.stated for v in self.overview.variables)
        read = self.source.dialect.words
        parts = [
            f"{self.path.name} has {len(self.data):,} records and {len(self.data.names)} columns"
            + (f"; it was read with {read}." if read else "."),
            f"{missing:,} value{' is' if missing == 1 else 's are'} missing." if missing else "No value is missing.",
        ]
        if proposed:
            parts.append(
                f"The role{' of 1 column was' if proposed == 1 else f's of {proposed} columns were'} proposed from names "
                "and values, not stated; the last table lists them."
            )
        return " ".join(parts)


def open_own_file(
    paper: str,
    path: str | Path,
    on: Sequence[str] = (),
    on_role: OnRole = "any",
    given: Mapping[str, Any] | None = None,
) -> OwnFile:
    """Read a file with the stated roles, and propose the others as `look` does.

    on : the variables to study; on_role : what they must be, which is a statement about them, too.
    given : roles and dialect, as the arguments of `read`.
    """
    file = Path(path)
    if not file.is_file():
        raise SchemaError(f"{file} is not a file. Name the file to analyze.")
    stated = dict(given or {})
    every = [role for role, names in stated.items() if names in ("all", ("all",))]
    for role in every:
        del stated[role]
    if on_role != "any" and on and on_role not in every:
        stated[on_role] = tuple(dict.fromkeys([*stated.get(on_role, ()), *on]))
    overview = look(Source(str(file.resolve()), **stated).with_dialect(), identifying=False)
    if every and overview.source is not None:
        rest = tuple(v.name for v in overview.variables if not v.stated)
        others: dict[str, Any] = dict.fromkeys(every, rest)
        overview = look(replace(overview.source, **others), overview, identifying=False)
    source = overview.to_source(file.resolve())
    if overview.data is None:
        raise SchemaError(f"{file.name} has no data.")
    data = source.apply_to(overview.data)
    keys = tuple(v.name for v in overview.variables if v.stated and v.role == "key") if "keys" in (given or {}) else ()
    own = OwnFile(paper, file, data, source, overview, tuple(on), keys)
    own.require_columns(*on)
    return own


def percent(share: float) -> str:
    """Return a share as a percentage with two digits, or three above 10 %.

    >>> percent(0.8712), percent(0.0341), percent(1.0)
    ('87.1 %', '3.4 %', '100 %')
    """
    return format_percent(float(f"{share:.{3 if share >= 0.1 else 2}g}"))


def only_methods(scores: Scores, methods: Sequence[Method]) -> Scores:
    """Return the scores of some methods and of the unmasked file."""
    texts = pl.Series([method.text for method in methods], dtype=pl.String)
    is_chosen = pl.col("method").is_in(texts.implode()) | (pl.col("kind") == "identity")
    candidate = scores.candidate.filter(is_chosen)
    score = scores.score.filter(pl.col("candidate").is_in(candidate["id"].implode()))
    return replace(scores, candidate=candidate, score=score)
