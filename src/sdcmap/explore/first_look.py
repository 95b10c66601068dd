"""A first look at a file: kinds, unique records, missing values, proposed roles, and a plan to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sdcmap.core import Array, SchemaError
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.data.microdata import Column, Microdata, distinct_codes
from sdcmap.data.schema import NEVER_RELEASED, ROLES
from sdcmap.explore.missing_code_detection import detect_missing_codes, find_codes_among_numbers
from sdcmap.explore.role_proposals import ROLE_INDEPENDENT_VIEWS, Proposal, propose_roles
from sdcmap.files.reader import Source, read
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.identifying_columns import count_unique, count_unique_on_pairs, most_identifying
from sdcmap.study.limits_at_size import LimitAtSize, limits_at_size
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import MeasureLimits, Profile, to_profile

# ---- identifying columns ------------------------------------------------------------------------------------------
MAX_SEARCH_WORK = 250_000_000  # sets of columns times records: a few seconds
SET_OVERHEAD_RECORDS = 20_000  # the fixed cost of counting one set, in records
MAX_PAIRED_COLUMNS = 30  # columns in the matrix of pairs; more cannot be read on a screen


@dataclass(frozen=True)
class IdentifyingSets:
    """The sets of up to three columns on which the most records are unique.

    sets : (columns, unique records), the best sets of one, two and three columns.
    columns : the number of columns that were searched, in all sets of them.
    of : the number of released columns.
    """

    sets: tuple[tuple[tuple[str, ...], int], ...]
    columns: int
    of: int

    @property
    def words(self) -> str:
        if self.columns == self.of:
            return f"exact, over all sets of up to three of the {self.of} released columns"
        return (
            f"exact, over all sets of up to three of the {self.columns} columns with the most values; the other "
            f"{self.of - self.columns} released columns were not searched"
        )


NO_IDENTIFYING_SETS = IdentifyingSets((), 0, 0)  # nothing was searched


@dataclass(frozen=True)
class UniquenessByPair:
    """The number of unique records on each pair of columns; on the diagonal, on one column.

    names : the columns, at most MAX_PAIRED_COLUMNS, those with the most values.
    of : the number of released columns.
    """

    names: tuple[str, ...]
    unique: Array
    of: int
    columns: tuple[Column, ...] = field(repr=False)  # the counted columns, to reuse the counts

    @property
    def words(self) -> str:
        some = f"the {len(self.names)} of {self.of} released columns with the most values"
        return some if len(self.names) < self.of else f"all {self.of} released columns"


def find_identifying_sets(data: Microdata, names: Sequence[str], most: int = 3) -> IdentifyingSets:
    """Return the sets of one, two and three columns on which the most records are unique. The result has counts only.

    If there are too many sets to count, only the columns with the most values are searched, and the result says so.
    """
    ranked = sorted(names, key=lambda name: -data.level_count(name))
    # Drop columns with few values until the number of sets, about width^3 / 6, is affordable.
    width = len(ranked)
    while width > 3 and (width**3 / 6 + width**2 / 2) * (SET_OVERHEAD_RECORDS + len(data)) > MAX_SEARCH_WORK:
        width -= 1
    chosen = [name for name in names if name in set(ranked[:width])]
    best = most_identifying([data.codes(name) for name in chosen], most) if chosen else []
    sets = tuple((tuple(chosen[index] for index in indices), unique) for indices, unique in best if unique)
    return IdentifyingSets(sets, len(chosen), len(names))


def count_unique_by_pair(
    data: Microdata, names: Sequence[str], before: UniquenessByPair | None = None
) -> UniquenessByPair:
    """Return the number of unique records on every pair of columns; counts of `before` are reused for equal columns."""
    ranked = set(sorted(names, key=lambda name: -data.level_count(name))[:MAX_PAIRED_COLUMNS])
    chosen = tuple(name for name in names if name in ranked)
    columns = tuple(data.column(name) for name in chosen)
    known = np.full((len(chosen), len(chosen)), -1, dtype=np.int64)
    if before is not None:
        old_index = {id(column): k for k, column in enumerate(before.columns)}
        shared = [k for k, column in enumerate(columns) if id(column) in old_index]
        old = [old_index[id(columns[k])] for k in shared]
        known[np.ix_(shared, shared)] = before.unique[np.ix_(old, old)]
    return UniquenessByPair(
        chosen, count_unique_on_pairs([data.codes(name) for name in chosen], known), len(names), columns
    )


# ---- the look -----------------------------------------------------------------------------------------------------
SMALL_CELL_SIZES = (2, 3, 5, 10)  # k for which records in key combinations of fewer than k records are counted
CLASS_SIZE_ENDS = (1, 2, 4, 9, 19, 49, 99)  # upper ends of the classes 1, 2, 3-4, 5-9, ... of the k-anonymity histogram


@dataclass(frozen=True)
class ColumnSummary:
    """Facts about one variable. `role` and `kind` are those stated, or else those proposed."""

    name: str
    kind: str
    role: str
    stated: bool
    distinct: int  # values that occur, missing not counted
    missing: int
    once: int  # records whose value no other record has
    why: str = ""  # the reason for the proposed role
    formula: str = ""  # of other columns that determine it in every complete record ...
    rounding: float = 0.0  # ... within this
    safe_harbor: str = ""  # its class among the 18 of HIPAA's Safe Harbor, A to R
    certainty: str = "possible"  # of the proposal: certain, likely or possible; or "stated"
    evidence: str = ""  # what the values show: counts and sums of weights


@dataclass(frozen=True)
class Look:
    """Facts about a file."""

    rows: int
    variables: tuple[ColumnSummary, ...]
    cells: int  # combinations of the key variables that occur
    sizes: dict[str, int]  # records in key combinations of fewer than 2, 3, 5, 10 records
    class_sizes: tuple[tuple[str, int], ...] = ()  # the k-anonymity histogram: records by the size of their combination
    unique: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # by what the attacker knows: (columns, unique records)
    identifying: IdentifyingSets = NO_IDENTIFYING_SETS
    codes: tuple[str, ...] = ()  # values that look like codes for missing values: proposed, not applied
    read_as_missing: dict[str, int] = field(default_factory=dict)  # codes that were applied: how many values are one
    mixed: dict[str, int] = field(default_factory=dict)  # columns of numbers and texts: values that are not numbers
    source: Source | None = field(default=None, compare=False)  # the file and its dialect
    kinds: dict[str, str] = field(default_factory=dict, compare=False)  # as the file was read
    census: bool = False  # whether the file was stated to contain the whole population
    data: Microdata | None = field(default=None, compare=False, repr=False)  # needed for a starting plan

    @property
    def facts(self) -> dict[str, Any]:
        """All facts as plain tables, for JSON."""
        facts = asdict(replace(self, data=None))
        return {name: fact for name, fact in facts.items() if name not in ("kinds", "data")}

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns that a release would contain unchanged; household and stratum are renumbered."""
        return _released_names(self.variables)

    def names_with_role(self, *roles: str) -> tuple[str, ...]:
        """Return the names of the variables with one of these stated or proposed roles."""
        return tuple(summary.name for summary in self.variables if summary.role in roles)

    def plan(self, path: str | Path, profile: Profile | str = "public-use", tables: Sequence[str | Path] = ()) -> Plan:
        """Return a starting plan for the file at `path`.

        It has chains over every released column at several strengths, the limits of the profile, and a rule that chooses
        the least loss within all limits. If tables about the same people were published (`tables`: paths), an attacker
        with these tables is one of the attackers (see `PublishedTables`).
        """
        from sdcmap.explore.starting_plan import starting_plan  # imported here, because it loads all methods

        formulas = {summary.name: summary.formula for summary in self.variables if summary.formula}
        return starting_plan(
            self.data_with_roles, to_profile(profile), self.to_source(path), formulas, [*map(str, tables)]
        )

    def limits(self, profile: Profile | str = "public-use") -> tuple[LimitAtSize, ...]:
        """Return for each limit of a profile whether it can be shown to hold with the records of this file."""
        data, measures = self._measures(profile)
        return limits_at_size(data, [Limit(m, value) for m, value in measures.limits.items()], DEFAULT_POLICY)

    def limits_off(self, profile: Profile | str = "public-use") -> dict[str, str]:
        """Return the measures of a profile that do not fit this file, or that it is too small for, with the reason."""
        return dict(self._measures(profile)[1].off)

    def _measures(self, profile: Profile | str) -> tuple[Microdata, MeasureLimits]:
        """Return the data with stated and proposed roles, and the measures of a profile for them."""
        data = self.data_with_roles
        return data, to_profile(profile).for_rows(self.rows).measures(data)

    @cached_property
    def data_with_roles(self) -> Microdata:
        """The data with stated and proposed roles."""
        if self.data is None:
            raise SchemaError("the roles need the data: call `look` on the file again.")
        return self.to_source("").apply_to(self.data)

    def to_source(self, path: str | Path) -> Source:
        """Return a source with all stated and proposed roles; its `proposed` lists columns with a proposed role."""
        # These roles belong to one column each; further columns with the same proposal have no role.
        first = dict.fromkeys(("weight", "household", "stratum", "psu", "wave", "case"), 1)
        named = self.names_with_role
        roles: dict[str, Any] = {ARGUMENT_OF_ROLE.get(role, role): named(role)[: first.get(role)] for role in ROLES}
        roles["other"] += tuple(name for role, most in first.items() for name in named(role)[most:])
        amounts = [v for v in self.variables if v.kind == "numeric" and v.role in ("numeric", "sensitive", "other")]
        known = self.source or Source("")
        new = [v for v in self.variables if v.kind != self.kinds.get(v.name, v.kind)]
        for kind in ("nominal", "ordinal"):
            roles[kind] = (*getattr(known, kind), *(v.name for v in new if v.kind == kind))
        return replace(
            known,
            path=str(path),
            **roles,
            numeric=tuple(v.name for v in amounts),
            proposed=tuple(v.name for v in self.variables if not v.stated),
            census=self.census,
        )


def look(source: Microdata | Source | str | Path, before: Look | None = None, *, identifying: bool = True) -> Look:
    """Return facts about each variable and about combinations of keys: counts only, no data values.

    Texts such as "NA" or "." in a column whose other values are numbers are read as missing values if a file is given; the
    result lists them (`read_as_missing`), and its `source` states them.

    Parameters
    ----------
    source : microdata, or the file to read; roles that are not stated are proposed.
    before : an earlier look at the same file with other roles; its counts of unchanged columns are reused.
    identifying : whether to search for identifying sets of columns, which takes as long as everything else.

    Examples
    --------
    >>> import sdcmap as sm
    >>> seen = sm.look(sm.demo.population(500))
    >>> seen.rows, seen.cells, seen.sizes["<2"]
    (500, 279, 176)
    >>> [(v.name, v.role, v.stated) for v in seen.variables][-2:]
    [('household', 'household', True), ('weight', 'weight', True)]
    >>> seen.plan("people.csv").count
    17
    """
    known = None if isinstance(source, Microdata) else source if isinstance(source, Source) else Source(str(source))
    known = None if known is None else known.with_dialect()
    data = open_source(known or source)
    read_as_missing = {} if known is None else find_codes_among_numbers(data)
    if known is not None and read_as_missing:
        known = replace(known, missing=(*known.missing, *read_as_missing))
        data = known.read()
    elif known is not None and before is not None:
        read_as_missing = before.read_as_missing
    if before is not None and before.data is not None:
        # Roles changed, values did not: reuse what does not depend on roles.
        data.take_views(before.data, (distinct_codes, *ROLE_INDEPENDENT_VIEWS))
    proposed = propose_roles(data)
    for name in (v.name for v in data.schema.variables if not v.knowable):
        proposed[name] = replace(proposed[name], role="other", why="known by the respondent only")
    earlier = {} if before is None else _earlier_summaries(data, before)
    summaries = tuple(_summarize(data, name, proposed[name], earlier.get(name)) for name in data.names)
    keys = tuple(summary.name for summary in summaries if summary.role == "key")
    # Sizes of the key combinations give the k-anonymity histogram and the small cells.
    sizes = compress([data.codes(name) for name in keys])[1] if keys else np.array([], dtype=np.int64)
    below = {f"<{k}": int(sizes[sizes < k].sum()) for k in SMALL_CELL_SIZES} if keys else {}
    unchanged = before if before is not None and len(earlier) == len(data.names) else None
    codes, mixed = detect_missing_codes(data) if unchanged is None else (unchanged.codes, unchanged.mixed)
    return Look(
        rows=len(data),
        variables=summaries,
        cells=len(sizes),
        sizes=below,
        class_sizes=tuple(_size_classes(sizes)) if keys else (),
        unique=_unique_records(data, summaries),
        identifying=find_identifying_sets(data, _released_names(summaries)) if identifying else NO_IDENTIFYING_SETS,
        codes=codes,
        read_as_missing=read_as_missing,
        mixed=mixed,
        source=known,
        kinds={v.name: v.kind for v in data.schema.variables},
        census=data.schema.census,
        data=data,
    )


def open_source(source: Microdata | Source | str | Path) -> Microdata:
    """Return the microdata, reading them if a path or a source is given."""
    if isinstance(source, Microdata):
        return source
    return source.read() if isinstance(source, Source) else read(source)


def _earlier_summaries(data: Microdata, before: Look) -> dict[str, ColumnSummary]:
    """Return the summaries of an earlier look for columns whose values are unchanged."""
    old = {} if before.data is None else before.data.columns
    summaries = {v.name: v for v in before.variables if v.name in data.names}
    return {name: summary for name, summary in summaries.items() if old.get(name) is data.column(name)}


def _summarize(data: Microdata, name: str, proposal: Proposal, earlier: ColumnSummary | None = None) -> ColumnSummary:
    if earlier is None:
        is_missing = data.missing(name)
        missing = int(is_missing.sum())
        counts = np.bincount(data.codes(name)[~is_missing] if missing else data.codes(name), minlength=1)
        distinct, once = int((counts > 0).sum()), int((counts == 1).sum())
    else:
        missing, distinct, once = earlier.missing, earlier.distinct, earlier.once
    return ColumnSummary(
        name=name,
        kind=proposal.kind,
        role=proposal.role,
        stated=data.schema[name].role is not None,
        distinct=distinct,
        missing=missing,
        once=once,
        why=proposal.why,
        formula=proposal.formula,
        rounding=proposal.rounding,
        safe_harbor=proposal.safe_harbor,
        certainty=proposal.certainty,
        evidence=proposal.evidence,
    )


def _released_names(summaries: Sequence[ColumnSummary]) -> tuple[str, ...]:
    excluded = (*NEVER_RELEASED, "household", "stratum")
    return tuple(summary.name for summary in summaries if summary.role not in excluded)


def _unique_records(data: Microdata, summaries: Sequence[ColumnSummary]) -> dict[str, tuple[int, int]]:
    """Return the number of unique records for an attacker who knows the keys, keys and numbers, or all released columns."""
    released = _released_names(summaries)
    keys = tuple(v.name for v in summaries if v.role == "key")
    amounts = ("numeric", "sensitive", "other")
    numbers = tuple(v.name for v in summaries if v.role == "key" or (v.role in amounts and v.kind == "numeric"))
    known = {"the keys": keys, "keys and numbers": numbers, "all released columns": released}
    return {words: (len(names), count_unique([data.codes(name) for name in names])) for words, names in known.items()}


def _size_classes(sizes: Array) -> list[tuple[str, int]]:
    """Return the k-anonymity histogram: records by the number of records with the same key combination."""
    # Weight each combination by its size, to count records instead of combinations.
    bins = np.bincount(np.searchsorted(CLASS_SIZE_ENDS, sizes), weights=sizes, minlength=len(CLASS_SIZE_ENDS) + 1)
    lows = (1, *(end + 1 for end in CLASS_SIZE_ENDS))
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(lows, CLASS_SIZE_ENDS, strict=False)]
    return list(zip([*words, f"{lows[-1]} or more"], bins.astype(int).tolist(), strict=True))


def source_of(path: str, roles: Mapping[str, str], kinds: Mapping[str, str], missing: Sequence[str] = ()) -> Source:
    """Return a source from statements about columns.

    roles : a role or "numeric" for each column.
    kinds : kinds that differ from the inferred ones.
    missing : codes for missing values, such as "income=-8 (not applicable)".
    """
    named: dict[str, list[str]] = {}
    for name, word in ((name, ARGUMENT_OF_ROLE.get(role, role)) for name, role in roles.items()):
        named.setdefault(word, []).append(name)
    for name, kind in kinds.items():
        named.setdefault(kind, []).append(name)
    unknown = sorted(set(named) - {*ROLE_ARGUMENTS, "nominal", "ordinal"})
    if unknown:
        raise SchemaError(
            f"{len(unknown)} stated role(s) are unknown: a role must be one of {', '.join(ROLE_ARGUMENTS)}."
        )
    stated: dict[str, Any] = {name: tuple(columns) for name, columns in named.items()}
    return Source(path, missing=tuple(missing), **stated)


ARGUMENT_OF_ROLE = {"key": "keys", "identifier": "identifiers"}  # arguments of `read` that differ from the role's name
ROLE_ARGUMENTS = (*(ARGUMENT_OF_ROLE.get(role, role) for role in ROLES), "numeric")
