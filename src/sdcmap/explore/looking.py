"""A first look at a file: kinds, uniques, missing values, proposed roles, and a plan to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sdcmap.core import Array, SchemaError
from sdcmap.data.microdata import Column, Microdata, distinct_codes
from sdcmap.data.schema import NEVER_RELEASED, ROLES
from sdcmap.explore.missing_looks import missing_looks
from sdcmap.explore.role_proposals import OF_COLUMNS, Proposal, proposals
from sdcmap.files.reading import Source, read
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.identifying_columns import count_unique, count_unique_on_pairs, most_identifying
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import Profile, to_profile

# Which columns tell the most: sets of up to three that leave records alone, and every pair beside each other.


MOST_WORK = 250_000_000  # sets of columns times records that are looked at for the telling ones
SET_COST = 20_000  # records that a set costs beside those that it has
MOST_PAIRED = 30  # columns whose pairs are laid beside each other


@dataclass(frozen=True)
class Telling:
    """Which sets of up to three columns leave the most records alone.

    sets : (columns, records alone), the best of one, of two and of three columns. columns : how many were looked at, in
        all sets of them; of : how many are released.
    """

    sets: tuple[tuple[tuple[str, ...], int], ...]
    columns: int
    of: int

    @property
    def words(self) -> str:
        if self.columns == self.of:
            return f"exact, over all sets of up to three of the {self.of} released columns"
        return (
            f"exact, over all sets of up to three of the {self.columns} columns with most values; sets with one of the "
            f"other {self.of - self.columns} released columns were not looked at"
        )


UNTOLD = Telling((), 0, 0)  # nothing was looked at


@dataclass(frozen=True)
class TellingPairs:
    """Records alone on each pair of columns; on the diagonal, on one column.

    names : the columns, at most MOST_PAIRED, those with most values where there are more. of : how many are released.
    """

    names: tuple[str, ...]
    alone: Array
    of: int
    columns: tuple[Column, ...] = field(repr=False)  # that were counted

    @property
    def words(self) -> str:
        few = f"the {len(self.names)} of {self.of} released columns with most values"
        return few if len(self.names) < self.of else f"all {self.of} released columns"


def telling_sets(data: Microdata, names: Sequence[str], most: int = 3) -> Telling:
    """Of all sets of one, two and three of the columns, those that leave most records alone; counts only.

    Where the sets are too many for the records, only the columns with most values are looked at, and said so.
    """
    ranked = sorted(names, key=lambda name: -data.level_count(name))
    width = len(ranked)
    while width > 3 and (width**3 / 6 + width**2 / 2) * (SET_COST + len(data)) > MOST_WORK:
        width -= 1
    chosen = [name for name in names if name in set(ranked[:width])]
    told = most_identifying([data.codes(name) for name in chosen], most) if chosen else []
    sets = tuple((tuple(chosen[place] for place in places), alone) for places, alone in told if alone)
    return Telling(sets, len(chosen), len(names))


def telling_pairs(data: Microdata, names: Sequence[str], before: TellingPairs | None = None) -> TellingPairs:
    """Records alone on every pair of the columns; counts only. What `before` counted of the same columns is taken over."""
    ranked = set(sorted(names, key=lambda name: -data.level_count(name))[:MOST_PAIRED])
    chosen = tuple(name for name in names if name in ranked)
    columns = tuple(data.column(name) for name in chosen)
    known = np.full((len(chosen), len(chosen)), -1, dtype=np.int64)
    if before is not None:
        place = {id(column): k for k, column in enumerate(before.columns)}
        there = [k for k, column in enumerate(columns) if id(column) in place]
        then = [place[id(columns[k])] for k in there]
        known[np.ix_(there, there)] = before.alone[np.ix_(then, then)]
    return TellingPairs(
        chosen, count_unique_on_pairs([data.codes(name) for name in chosen], known), len(names), columns
    )


SMALL_CELLS = (2, 3, 5, 10)  # records in combinations of fewer than so many are counted
SIZE_ENDS = (1, 2, 4, 9, 19, 49, 99)  # class sizes 1, 2, 3-4, 5-9, ... of the k-anonymity histogram


@dataclass(frozen=True)
class ColumnSummary:
    """What is seen of one variable; `role` is the stated role, or the proposed one, `kind` likewise."""

    name: str
    kind: str
    role: str
    stated: bool
    distinct: int  # values that occur, missing not counted
    missing: int
    once: int  # records whose value no other record has
    why: str = ""  # by what the role was told
    formula: str = ""  # of other columns that give it, within rounding
    safe_harbor: str = ""  # its class among the 18 of HIPAA's Safe Harbor, A to R


@dataclass(frozen=True)
class Look:
    """What is seen of a file."""

    rows: int
    variables: tuple[ColumnSummary, ...]
    cells: int  # combinations of the key variables that occur
    sizes: dict[str, int]  # records in key combinations of fewer than 2, 3, 5, 10 records
    class_sizes: tuple[tuple[str, int], ...] = ()  # the k-anonymity histogram: records by the size of their combination
    alone: dict[str, tuple[int, int]] = field(default_factory=dict)  # by what is known: columns, records alone on them
    telling: Telling = UNTOLD
    codes: tuple[str, ...] = ()  # that look like missing values: proposed, not applied
    mixed: dict[str, int] = field(default_factory=dict)  # columns of numbers and texts: values that are no numbers
    source: Source | None = field(default=None, compare=False)  # where the file lies and how it is written
    kinds: dict[str, str] = field(default_factory=dict, compare=False)  # as the file was read
    census: bool = False  # whether everybody of the population is in it, as stated
    data: Microdata | None = field(default=None, compare=False, repr=False)  # as read; a starting plan needs them

    @property
    def facts(self) -> dict[str, Any]:
        """What is seen, as plain tables."""
        seen = asdict(replace(self, data=None))
        return {name: fact for name, fact in seen.items() if name not in ("kinds", "data")}

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns that a release would carry as they are: household and stratum are numbered anew."""
        return _released(self.variables)

    def named(self, *roles: str) -> tuple[str, ...]:
        """Names of the variables with these stated or proposed roles."""
        return tuple(glance.name for glance in self.variables if glance.role in roles)

    def plan(self, path: str | Path, profile: Profile | str = "public-use", tables: Sequence[str | Path] = ()) -> Plan:
        """A plan to change, for the file at `path`: chains over every released column, at several strengths, the limits of
        the profile, and a rule that takes the least loss within all of them. `tables` were published of the same people:
        who holds them is one of the snoopers (see `PublishedTables`)."""
        from sdcmap.explore.starting_plan import starting_plan  # a look without a plan need not load methods

        source = self.stated(path)
        if self.data is None:
            raise SchemaError("a starting plan needs the data that were looked at.")
        formulas = {glance.name: glance.formula for glance in self.variables if glance.formula}
        return starting_plan(source.applied(self.data), to_profile(profile), source, formulas, [*map(str, tables)])

    def stated(self, path: str | Path) -> Source:
        """The source with every role as seen; `proposed` names the columns whose role nobody has stated yet."""
        first = dict.fromkeys(("weight", "household", "stratum", "psu", "wave", "case"), 1)
        roles: dict[str, Any] = {ARGUMENT.get(role, role): self.named(role)[: first.get(role)] for role in ROLES}
        roles["other"] += tuple(name for role, most in first.items() for name in self.named(role)[most:])
        amounts = [v for v in self.variables if v.kind == "numeric" and v.role in ("numeric", "sensitive", "other")]
        known = self.source or Source("")
        new = [v for v in self.variables if v.kind != self.kinds.get(v.name, v.kind)]
        for kind in ("nominal", "ordinal"):
            roles[kind] = (*getattr(known, kind), *(v.name for v in new if v.kind == kind))
        return replace(
            known, path=str(path), **roles, numeric=tuple(v.name for v in amounts),
            proposed=tuple(v.name for v in self.variables if not v.stated), census=self.census,
        )  # fmt: skip


def look(source: Microdata | Source | str | Path, before: Look | None = None, *, telling: bool = True) -> Look:
    """Facts of each variable and of the key combinations; counts only, no data value.

    Parameters
    ----------
    source : microdata, or where they lie; roles that are not stated are proposed.
    before : an earlier look at the same file with other roles: what it counted in columns that both share is taken over.
    telling : whether the telling sets of columns are looked for, which costs as much as all the rest.

    Examples
    --------
    >>> import sdcmap as sm
    >>> seen = sm.look(sm.demo.population(500))
    >>> seen.rows, seen.cells, seen.sizes["<2"]
    (500, 279, 176)
    >>> [(v.name, v.role, v.stated) for v in seen.variables][-2:]
    [('household', 'household', True), ('weight', 'weight', True)]
    >>> seen.plan("people.csv").count
    25
    """
    known = None if isinstance(source, Microdata) else source if isinstance(source, Source) else Source(str(source))
    known = None if known is None else known.sensed()
    data = opened(known or source)
    if before is not None and before.data is not None:
        data.take_views(before.data, (distinct_codes, *OF_COLUMNS))
    proposed = proposals(data)
    for name in (v.name for v in data.schema.variables if not v.knowable):
        proposed[name] = replace(proposed[name], role="other", why="known by the respondent only")
    counted = {} if before is None else _counted(data, before)
    glances = tuple(_glance(data, name, proposed[name], counted.get(name)) for name in data.names)
    keys = tuple(glance.name for glance in glances if glance.role == "key")
    sizes = compress([data.codes(name) for name in keys])[1] if keys else np.array([], dtype=np.int64)
    below = {f"<{k}": int(sizes[sizes < k].sum()) for k in SMALL_CELLS} if keys else {}
    kept = before if before is not None and len(counted) == len(data.names) else None
    codes, mixed = (kept.codes, kept.mixed) if kept is not None else missing_looks(data)
    return Look(
        len(data), glances, len(sizes), below, tuple(_size_classes(sizes)) if keys else (), _alone(data, glances),
        telling_sets(data, _released(glances)) if telling else UNTOLD, codes, mixed, known,
        {v.name: v.kind for v in data.schema.variables}, data.schema.census, data,
    )  # fmt: skip


def opened(source: Microdata | Source | str | Path) -> Microdata:
    """The microdata themselves, or those that lie there."""
    if isinstance(source, Microdata):
        return source
    return source.read() if isinstance(source, Source) else read(source)


def _counted(data: Microdata, before: Look) -> dict[str, ColumnSummary]:
    """What an earlier look saw of each column that is still coded as it was."""
    old = {} if before.data is None else before.data.columns
    seen = {g.name: g for g in before.variables if g.name in data.names}
    return {name: glance for name, glance in seen.items() if old.get(name) is data.column(name)}


def _glance(data: Microdata, name: str, proposal: Proposal, counted: ColumnSummary | None = None) -> ColumnSummary:
    if counted is None:
        missing = data.missing(name)
        gone = int(missing.sum())
        counts = np.bincount(data.codes(name)[~missing] if gone else data.codes(name), minlength=1)
        distinct, once = int((counts > 0).sum()), int((counts == 1).sum())
    else:
        gone, distinct, once = counted.missing, counted.distinct, counted.once
    return ColumnSummary(
        name, proposal.kind, proposal.role, data.schema[name].role is not None, distinct, gone, once, proposal.why,
        proposal.formula, proposal.safe_harbor,
    )  # fmt: skip


def _released(glances: Sequence[ColumnSummary]) -> tuple[str, ...]:
    apart = (*NEVER_RELEASED, "household", "stratum")
    return tuple(glance.name for glance in glances if glance.role not in apart)


def _alone(data: Microdata, glances: Sequence[ColumnSummary]) -> dict[str, tuple[int, int]]:
    """Records that are alone by what a snooper knows: the keys; the keys and the numbers; every released column."""
    released = _released(glances)
    keys = tuple(g.name for g in glances if g.role == "key")
    amounts = ("numeric", "sensitive", "other")
    numbers = tuple(g.name for g in glances if g.role == "key" or (g.role in amounts and g.kind == "numeric"))
    known = {"the keys": keys, "keys and numbers": numbers, "all released columns": released}
    return {words: (len(names), count_unique([data.codes(name) for name in names])) for words, names in known.items()}


def _size_classes(sizes: Array) -> list[tuple[str, int]]:
    """The k-anonymity histogram: records by how many records share their key combination; counts only."""
    bins = np.bincount(np.searchsorted(SIZE_ENDS, sizes), weights=sizes, minlength=len(SIZE_ENDS) + 1)
    lows = (1, *(end + 1 for end in SIZE_ENDS))
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(lows, SIZE_ENDS, strict=False)]
    return list(zip([*words, f"{lows[-1]} or more"], bins.astype(int).tolist(), strict=True))


def source_of(path: str, roles: Mapping[str, str], kinds: Mapping[str, str], missing: Sequence[str] = ()) -> Source:
    """Where a file lies and what a person stated of each column: a role, or "numeric"; kinds other than inferred; and codes
    for missing values, such as "income=-8 (not applicable)"."""
    named: dict[str, list[str]] = {}
    for name, word in ((name, ARGUMENT.get(role, role)) for name, role in roles.items()):
        named.setdefault(word, []).append(name)
    for name, kind in kinds.items():
        named.setdefault(kind, []).append(name)
    strange = sorted(set(named) - {*STATED, "nominal", "ordinal"})
    if strange:
        raise SchemaError(f"a role must be one of {', '.join(STATED)}; {len(strange)} other word(s) came.")
    stated: dict[str, Any] = {name: tuple(columns) for name, columns in named.items()}
    return Source(path, missing=tuple(missing), **stated)


ARGUMENT = {"key": "keys", "identifier": "identifiers"}  # of `read`, where it is not the role's own name
STATED = (*(ARGUMENT.get(role, role) for role in ROLES), "numeric")
