"""A first look at a file: kinds, uniques, missing values, proposed roles, and a plan to start from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sdcmap.core.grid import Grid, grid, subsets
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError
from sdcmap.files.reading import Source, read
from sdcmap.methods import Noise, RankSwap, Swap
from sdcmap.risk import SmallCells, WorstLinkage
from sdcmap.study.plan import Plan
from sdcmap.utility import Hellinger, IL1s

NAME_TELLS = (
    ("weight", r"(^|_)(weights?|wgt|fnlwgt|wt|gewicht)(_|$|\d)"),
    ("household", r"(^|_)(hid|hhid|household(_id)?|hh_id|famid)(_|$)"),
    ("identifier", r"(^|_)(id|name|ssn|phone|email|address|recid|pid|personid)(_|$)"),
)
SIZE_ENDS = (1, 2, 4, 9, 19, 49, 99)  # class sizes 1, 2, 3-4, 5-9, ... of the k-anonymity histogram
MOST_SETS = 200  # sets of keys that are looked at for the telling ones
KEY_LEVELS = 50  # a variable with at most so many categories is proposed as a key


@dataclass(frozen=True)
class Glance:
    """What is seen of one variable; `role` is the stated role, or the proposed one."""

    name: str
    kind: str
    role: str
    stated: bool
    distinct: int
    missing: int
    once: int  # records whose value no other record has


@dataclass(frozen=True)
class Look:
    """What is seen of a file."""

    rows: int
    variables: tuple[Glance, ...]
    cells: int  # combinations of the key variables that occur
    sizes: dict[str, int]  # records in key combinations of fewer than 2, 3, 5, 10 records
    census: bool = False  # whether everybody of the population is in it, as stated

    def named(self, *roles: str) -> tuple[str, ...]:
        """Names of the variables with these stated or proposed roles."""
        return tuple(glance.name for glance in self.variables if glance.role in roles)

    def plan(self, path: str | Path) -> Plan:
        """A plan to change, for the file at `path`: swaps of the keys, noise and rank swaps of the numbers; the rule is the
        user's to state."""
        keys = self.named("key")
        amounts = [v for v in self.variables if v.kind == "numeric" and v.role in ("numeric", "sensitive", "other")]
        numeric = tuple(v.name for v in amounts)
        methods: list[Method | Grid[Method]] = []
        measures: list[Measure] = []
        if keys:
            methods.append(grid(Swap, on=subsets(keys, *range(1, min(2, len(keys)) + 1)), rate=[0.005, 0.01, 0.05]))
            weighted = [Hellinger(weighted=True)] if self.named("weight") else []  # swaps keep unweighted margins only
            measures += [SmallCells(), Hellinger(), *weighted]
        if numeric:
            methods.append(grid(Noise, on=numeric, variance=[0.05, 0.1, 0.2, 0.5]))
            methods.append(grid(RankSwap, on=numeric, p=[0.05, 0.1, 0.15]))
            measures += [*([] if keys else [WorstLinkage()]), IL1s()]
        roles = {
            "keys": keys, "numeric": numeric, "sensitive": self.named("sensitive"),
            "identifiers": self.named("identifier"), "weight": self.named("weight")[:1],
            "household": self.named("household")[:1], "stratum": self.named("stratum")[:1], "other": self.named("other"),
        }  # fmt: skip
        return Plan(methods, measures, replicates=10, data=Source(str(path), **roles, census=self.census))


def look(source: Microdata | Source | str | Path) -> Look:
    """Facts of each variable and of the key combinations; counts only, no data value.

    Parameters
    ----------
    source : microdata, or where they lie; roles that are not stated are proposed.

    Examples
    --------
    >>> import sdcmap as sm
    >>> seen = sm.look(sm.demo.population(500))
    >>> seen.rows, seen.cells, seen.sizes["<2"]
    (500, 279, 176)
    >>> [(v.name, v.role, v.stated) for v in seen.variables][-2:]
    [('household', 'household', True), ('weight', 'weight', True)]
    >>> seen.plan("people.csv").count
    1151
    """
    data = opened(source)
    glances = tuple(_glance(data, name) for name in data.names)
    keys = tuple(glance.name for glance in glances if glance.role == "key")
    if not keys:
        return Look(len(data), glances, 0, {}, data.schema.census)
    table = data.view(cells, keys)
    sizes = table.count[table.count > 0]
    below = {f"<{k}": int(sizes[sizes < k].sum()) for k in (2, 3, 5, 10)}
    return Look(len(data), glances, len(sizes), below, data.schema.census)


def opened(source: Microdata | Source | str | Path) -> Microdata:
    """The microdata themselves, or those that lie there."""
    if isinstance(source, Microdata):
        return source
    return source.read() if isinstance(source, Source) else read(source)


def _glance(data: Microdata, name: str) -> Glance:
    variable = data.schema[name]
    counts = np.bincount(data.codes(name), minlength=1)
    distinct, once = int((counts > 0).sum()), int((counts == 1).sum())
    gone = int(data.missing(name).sum())
    role = variable.role or _proposed(data, name, distinct)
    return Glance(name, variable.kind, role, variable.role is not None, distinct, gone, once)


def _proposed(data: Microdata, name: str, distinct: int) -> str:
    kind, rows = data.schema[name].kind, len(data)
    for role, pattern in NAME_TELLS:
        fits = kind == "numeric" if role == "weight" else distinct > min(10, rows / 2)
        if fits and re.search(pattern, name.lower()):
            return role
    if kind != "numeric" and distinct > max(rows / 2, KEY_LEVELS):
        return "identifier"
    if kind != "numeric" and distinct <= KEY_LEVELS:
        return "key"
    return "numeric" if kind == "numeric" else "other"


def class_sizes(data: Microdata) -> list[tuple[str, int]]:
    """The k-anonymity histogram: records by how many records share their key combination; counts only."""
    if not data.keys:
        return []
    sizes = data.view(cells, data.keys).count
    sizes = sizes[sizes > 0]
    bins = np.bincount(np.searchsorted(SIZE_ENDS, sizes), weights=sizes, minlength=len(SIZE_ENDS) + 1)
    lows = (1, *(end + 1 for end in SIZE_ENDS))
    words = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(lows, SIZE_ENDS, strict=False)]
    return list(zip([*words, f"{lows[-1]} or more"], bins.astype(int).tolist(), strict=True))


def telling_sets(data: Microdata, most: int = 8) -> list[tuple[tuple[str, ...], int]]:
    """The sets of one to three keys that leave the most records alone, with that number; counts only."""
    sets = [(names, int((data.view(cells, names).count == 1).sum())) for names in _key_sets(data.keys)]
    telling = [(names, alone) for names, alone in sets if alone]
    return sorted(telling, key=lambda told: (-told[1], len(told[0]), told[0]))[:most]


def _key_sets(keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    sets = (names for size in (1, 2, 3) for names in combinations(keys, min(size, len(keys))))
    yield from list(dict.fromkeys(names for names in sets if names))[:MOST_SETS]


def source_of(path: str, roles: Mapping[str, str], kinds: Mapping[str, str]) -> Source:
    """Where a file lies and what a person stated of each column: a role, or "numeric"; and kinds other than inferred."""
    argument = {"key": "keys", "identifier": "identifiers"}
    named: dict[str, list[str]] = {}
    for name, role in roles.items():
        named.setdefault(argument.get(role, role), []).append(name)
    for name, kind in kinds.items():
        named.setdefault(kind, []).append(name)
    known = {*STATED, "nominal", "ordinal"}
    strange = sorted(set(named) - known)
    if strange:
        raise SchemaError(f"a role must be one of {', '.join(STATED)}; {len(strange)} other word(s) came.")
    stated: dict[str, Any] = {name: tuple(columns) for name, columns in named.items()}
    return Source(path, **stated)


STATED = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum", "other")
