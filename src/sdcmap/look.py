"""A first look at a file: kinds, uniques, missing values, proposed roles, and a plan to start from."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sdcmap.cells import cells
from sdcmap.grid import Grid, grid, subsets
from sdcmap.io import Source
from sdcmap.measure import Measure
from sdcmap.method import Method
from sdcmap.methods import Noise, RankSwap, Swap
from sdcmap.microdata import Microdata
from sdcmap.plan import Plan
from sdcmap.risk import SmallCells, WorstLinkage
from sdcmap.utility import Hellinger, IL1s

NAME_TELLS = (
    ("weight", r"(^|_)(weights?|wgt|fnlwgt|wt|gewicht)(_|$|\d)"),
    ("household", r"(^|_)(hid|hhid|household(_id)?|hh_id|famid)(_|$)"),
    ("identifier", r"(^|_)(id|name|ssn|phone|email|address|recid|pid|personid)(_|$)"),
)
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

    def named(self, *roles: str) -> tuple[str, ...]:
        """Names of the variables with these stated or proposed roles."""
        return tuple(glance.name for glance in self.variables if glance.role in roles)


def look(data: Microdata) -> Look:
    """Facts of each variable and of the key combinations; counts only, no data value."""
    glances = tuple(_glance(data, name) for name in data.names)
    keys = tuple(glance.name for glance in glances if glance.role == "key")
    if not keys:
        return Look(len(data), glances, 0, {})
    table = data.view(cells, keys)
    sizes = table.count[table.count > 0]
    below = {f"<{k}": int(sizes[sizes < k].sum()) for k in (2, 3, 5, 10)}
    return Look(len(data), glances, len(sizes), below)


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


def starting_plan(path: str, seen: Look) -> Plan:
    """A plan to change: swaps of the keys, noise and rank swaps of the numbers; the rule is the user's to state."""
    keys = seen.named("key")
    numeric = tuple(
        g.name for g in seen.variables if g.kind == "numeric" and g.role in ("numeric", "sensitive", "other")
    )
    methods: list[Method | Grid] = []
    measures: list[Measure] = []
    if keys:
        methods.append(grid(Swap, on=subsets(keys, *range(1, min(2, len(keys)) + 1)), rate=[0.005, 0.01, 0.05]))
        weighted = [Hellinger(weighted=True)] if seen.named("weight") else []  # swaps keep unweighted margins only
        measures += [SmallCells(), Hellinger(), *weighted]
    if numeric:
        methods.append(grid(Noise, on=numeric, variance=[0.05, 0.1, 0.2, 0.5]))
        methods.append(grid(RankSwap, on=numeric, p=[0.05, 0.1, 0.15]))
        measures += [*([] if keys else [WorstLinkage()]), IL1s()]
    roles = {
        "keys": keys, "numeric": numeric, "sensitive": seen.named("sensitive"), "identifiers": seen.named("identifier"),
        "weight": seen.named("weight")[:1], "household": seen.named("household")[:1],
        "stratum": seen.named("stratum")[:1], "other": seen.named("other"),
    }  # fmt: skip
    return Plan(methods, measures, replicates=10, data=Source(path, **roles))
