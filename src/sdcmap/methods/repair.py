"""Masked records that cannot be are made possible again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Fields, Generator, Infeasible, Method, Microdata, Roles, Trials
from sdcmap.core.edit_rule import Comparison, EditRule, edit_problems, parse_edit
from sdcmap.kernels.masking.granularity import granularity, in_decimals

ROUNDS = 3  # a repair may break another rule, which the next round looks at


@dataclass(frozen=True)
class Repair(Method):
    """Repair the records that earlier steps of a chain made impossible: a married child, a pregnant man.

    Users meet such records in every table, and a snooper reads off them who was masked. A plan states its rules once,
    `edits = ['age < 15 -> marital = "never"']`, and every candidate ends with this step.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or with
        texts in double quotes (= !=), joined by `and`; other names stand in `backticks`. `sdcmap look --edits` proposes
        some.

    Of a record that breaks a rule, one value that an earlier step changed is drawn again: of the columns that the rule
    asks something of, else of those that call for it. Donors are the records whose value obeys, first those that meet the
    same comparisons on the other columns of the rule. Values that no step changed stay, and so does a record that broke
    the rule before. Where several values would have to go together, and where no donor is, the record stays broken;
    the release tells how many. Rules are looked at in turn, three times at most, on numbers rounded as a release is. A
    rule on a column that an earlier step recoded can no longer be read, and is left.
    Missing values neither call for a rule nor break it, stay, and are never drawn. Weights and households are not used;
    every donor counts once. Likelihood: none of its own.
    Reference: donors as in Fellegi and Holt (1976), Journal of the American Statistical Association 71, 17-35, section 6.

    Examples
    --------
    >>> Repair('age < 15 -> marital = "never"').title
    '1 edit rule repaired'
    """

    label: ClassVar[str] = "Repair of impossible records"
    description: ClassVar[str] = "Records that masking made impossible, such as a married child, are repaired."

    mixes_records: ClassVar[bool] = True
    needs_original: ClassVar[bool] = True
    kept: ClassVar[str] = "the edit rules, as far as donors are found"
    distorted: ClassVar[str] = "values that earlier steps changed and that no record can have beside its others"

    edits: tuple[str, ...]

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it repairs what other steps did, and masks nothing by itself."}

    @property
    def title(self) -> str:
        return self.action

    @property
    def action(self) -> str:
        return f"{len(self.edits)} edit rule{'s' if len(self.edits) > 1 else ''} repaired"

    def problems(self) -> Iterator[str]:
        yield from (f".edits {problem}" for problem in edit_problems(self.edits))
        if self.within:
            yield ".within is of no use: a rule is the same in every stratum."

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(parse_edit(text) for text in self.edits)

    @property
    def masked_names(self) -> tuple[str, ...]:
        """None of its own: it changes nothing but what an earlier step masked."""
        return ()

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The columns of the rules."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    def _columns(self) -> tuple[str, ...]:
        return self.looked_at

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from data.schema.unsupported_roles("wave", "case")
        for rule in self.rules:
            yield from rule.incompatibilities(
                data if data.base is None else data.base
            )  # what was recoded since is left

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return ()

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.base is None and data.origin is not None:
            raise Infeasible("Repair must know what was masked: put the step that takes records before the masking.")
        for _ in range(ROUNDS if data.base is not None else 0):
            before = data
            for rule in self.rules:
                data = repaired(rule, data, rng)
            if data is before:
                break
        return data.change(None, {})


def repaired(rule: EditRule, data: Microdata, rng: Generator) -> Microdata:
    """The masked file with its records that break the rule repaired, as far as possible; the same where none can be."""
    assert data.base is not None
    if any(rule.reading_problems(data, data.base)):
        return data
    for name in dict.fromkeys(c.name for c in (*rule.then, *rule.when)):
        seen = _as_released(data, rule.names)
        rows = np.flatnonzero(rule.violations(seen) & _changed(data, name))
        donors = _donors(rule, seen, name, rows, rng)
        rows, donors = rows[donors >= 0], donors[donors >= 0]
        if len(rows):
            data = data.change(rows, {name: data.column(name).values[donors]})
    return data


def _as_released(data: Microdata, names: Sequence[str]) -> Microdata:
    """The file with its masked numbers rounded as the original's are: a rule is held by what is released."""
    assert data.base is not None
    new: dict[str, Array] = {}
    for name in names:
        column, before = data.column(name), data.base.column(name)
        if name in data.changes and column.levels is None and before.levels is None:
            k = granularity(before.values, data.schema[name].storage)
            new |= {} if k is None else {name: in_decimals(column.values, k)}
    return data.change(None, new) if new else data


def _changed(data: Microdata, name: str) -> Array:
    """Where an earlier step changed a value; of a file whose rows are nobody's, any value of a column that it changed."""
    assert data.base is not None
    if name not in data.changes:
        return np.zeros(len(data), dtype=bool)
    column, before = data.column(name), data.base.column(name)
    if column.levels is None or before.levels is None:
        comparable = column.levels is before.levels
    else:
        comparable = column.levels.equals(before.levels)
    is_other = column.values != before.values if data.paired and comparable else True
    return np.asarray(~data.missing(name) & is_other)


def _donors(rule: EditRule, data: Microdata, name: str, rows: Array, rng: Generator) -> Array:
    """For each row a record whose value of `name` repairs it; -1: there is none."""
    chosen = np.full(len(rows), -1)
    if not len(rows):
        return chosen
    calls, asks = [c for c in rule.when if c.name == name], [c for c in rule.then if c.name == name]
    known = ~data.missing(name)
    escapes = known & ~_all_met(calls, data) if calls else np.zeros(len(data), dtype=bool)
    obeys = escapes | (known & _all_met(asks, data)) if asks else escapes
    enough = _all_met([c for c in rule.then if c.name != name], data)  # the rest of what is asked for is met
    alike = np.zeros(len(data), dtype=np.int64)
    for comparison in (*rule.when, *rule.then):
        alike = 2 * alike + comparison.holds(data) if comparison.name != name else alike
    for code in np.unique(alike[rows]):
        own = np.flatnonzero(alike[rows] == code)
        fitting = obeys if enough[rows[own[0]]] else escapes
        near = fitting & (alike == code)
        if len(pool := np.flatnonzero(near if near.any() else fitting)):
            chosen[own] = rng.choice(pool, size=len(own))
    return chosen


def _all_met(comparisons: Sequence[Comparison], data: Microdata) -> Array:
    """Where all are met, or their value is missing."""
    met = [comparison.holds(data) | data.missing(comparison.name) for comparison in comparisons]
    return np.asarray(np.logical_and.reduce(met)) if met else np.ones(len(data), dtype=bool)
