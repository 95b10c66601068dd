"""Repair of masked records that violate edit rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Fields, Generator, Infeasible, Method, Microdata, Roles, Trials
from sdcmap.core.edit_rule import Comparison, EditRule, ExactlyOne, Implication, edit_problems, parse_edit
from sdcmap.data.microdata import without_reasons
from sdcmap.kernels.masking.granularity import granularity, round_to_decimals

MAX_ROUNDS = 10  # repairing one rule may violate another, which the next round repairs


@dataclass(frozen=True)
class Repair(Method):
    """Repair records that earlier steps of a chain made impossible, such as a married child.

    Impossible records disturb every table, and show an attacker which records were masked. A plan lists its rules once,
    as in `edits = ['age < 15 -> marital = "never"']`; every candidate then ends with this step.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or with
        texts in double quotes (= !=), or `is missing`, `is not missing`; joined by `and`; or
        `exactly one of car, bus, walk = 1`. Unusual names are put in `backticks`. `sdcmap look` proposes rules.

    In a record that violates a rule, one value that an earlier step changed is replaced: first in the columns after the
    arrow, then in those before it. The new value comes from a random donor whose value satisfies the rule, preferably one
    that meets the same comparisons on the other columns. Of indicators of which exactly one must be 1, one that is 1
    stays, or one becomes 1 where none is, drawn so that the share of each stays about the same; the others become 0.
    Values that no step changed are never replaced. A record that needs several changes at once, or has no donor, stays in
    violation, and the release reports how many do. Rules are checked in order, up to ten times, on numbers rounded as in
    the release. On a column that was recoded into intervals, a rule is applied where the interval decides it; a rule on
    merged categories is skipped.
    A missing value is neither replaced nor donated, except by rules such as `age < 15 -> wage is missing`; the reasons for
    missing numbers are dropped where such a rule changes which are missing. Weights and households are not used: every
    donor counts once. The method has no likelihood of its own.
    Reference: donors as in Fellegi and Holt (1976), Journal of the American Statistical Association 71, 17-35, section 6.

    Examples
    --------
    >>> Repair('age < 15 -> marital = "never"').title
    'repaired by 1 edit rule'
    """

    label: ClassVar[str] = "Repair of impossible records"
    description: ClassVar[str] = "Records that masking made impossible, such as a married child, are repaired."

    revision: ClassVar[int] = 3  # 2: up to ten rounds; 3: rules on intervals
    missing: ClassVar[str] = "category"
    mixes_records: ClassVar[bool] = True
    needs_original: ClassVar[bool] = True
    kept: ClassVar[str] = "the edit rules, wherever a suitable donor exists"
    distorted: ClassVar[str] = "values that earlier steps changed and that contradict the rest of their record"

    edits: tuple[str, ...]

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it repairs the results of other steps, and masks nothing by itself."}

    @property
    def title(self) -> str:
        return self.action

    @property
    def action(self) -> str:
        return f"repaired by {len(self.edits)} edit rule{'s' if len(self.edits) > 1 else ''}"

    def problems(self) -> Iterator[str]:
        yield from (f".edits {problem}" for problem in edit_problems(self.edits))
        if self.within:
            yield ".within has no effect: a rule is the same in every stratum. Remove it."

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(parse_edit(text) for text in self.edits)

    @property
    def masked_names(self) -> tuple[str, ...]:
        """Return (): only columns that an earlier step masked are changed."""
        return ()

    @property
    def rule_columns(self) -> tuple[str, ...]:
        """Return the columns that occur in the rules."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    def _columns(self) -> tuple[str, ...]:
        return self.rule_columns

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from data.schema.unsupported_roles("wave")
        for rule in self.rules:
            # Rules are checked against the original columns: a rule on a column that was recoded since is skipped later.
            yield from rule.incompatibilities(data if data.base is None else data.base)

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return ()

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.base is None and data.origin is not None:
            raise Infeasible(
                "Repair needs to know which values were masked: put the step that samples records before the masking."
            )
        for _ in range(MAX_ROUNDS if data.base is not None else 0):
            before = data
            for rule in self.rules:
                data = repair_records(rule, data, rng)
            if data is before:
                break
        return data.change(None, {})


def repair_records(rule: EditRule, data: Microdata, rng: Generator) -> Microdata:
    """Return the masked file with violations of the rule repaired as far as possible; unchanged if none can be."""
    assert data.base is not None
    if any(rule.reading_problems(data, data.base)):
        return data
    if isinstance(rule, ExactlyOne):
        return _repair_indicators(rule, data, rng)
    assert isinstance(rule, Implication)
    return _repair_implication(rule, data, rng)


def _repair_implication(rule: Implication, data: Microdata, rng: Generator) -> Microdata:
    """Return the file with values replaced by those of donors: first in the columns after the arrow, then before it."""
    for name in dict.fromkeys(c.name for c in (*rule.then, *rule.when)):
        seen = _as_released(data, rule.names)
        rows = np.flatnonzero(rule.violations(seen) & _is_changed(data, name, with_missing=_names_missing(rule, name)))
        donors = _donors(rule, seen, name, rows, rng)
        rows, donors = rows[donors >= 0], donors[donors >= 0]
        if len(rows):
            before = data.missing(name)[rows]
            data = data.change(rows, {name: data.column(name).values[donors]})
            if (data.missing(name)[rows] != before).any():
                data = without_reasons(data, (name,))
    return data


def _repair_indicators(rule: ExactlyOne, data: Microdata, rng: Generator) -> Microdata:
    """Return the file with exactly one indicator true in each record, as far as only values that a step changed differ."""
    seen, names = _as_released(data, rule.names), [member.name for member in rule.members]
    violations = rule.violations(seen)
    holds = np.column_stack([member.holds(seen) for member in rule.members])
    fails = np.column_stack([member.fails(seen) for member in rule.members])
    changed = np.column_stack([_is_changed(data, name, with_missing=False) for name in names])
    # A record can have this indicator as its only one if every value that must become another was changed before.
    stuck = holds & ~changed
    can_be = (holds | changed) & (stuck.sum(axis=1, keepdims=True) == stuck)
    # Of several that are true, one stays. In all repaired records, each is true about as often as before; the mean makes
    # one possible that is true only in records that obey.
    count = holds[violations].sum(axis=0) + holds.mean(axis=0)
    rows = np.flatnonzero(violations & (can_be & (count > 0)).any(axis=1))
    chance = count * can_be[rows]
    staying = chance * holds[rows]
    chance = np.where(staying.any(axis=1, keepdims=True), staying, chance).cumsum(axis=1)
    chosen = (rng.random((len(rows), 1)) * chance[:, -1:] >= chance).sum(axis=1)
    for k, name in enumerate(names):
        for is_chosen, fitting in ((True, holds[:, k]), (False, fails[:, k])):
            wrong = rows[((chosen == k) == is_chosen) & changed[rows, k] & ~fitting[rows]]
            if len(wrong) and fitting.any():
                data = data.change(
                    wrong, {name: data.column(name).values[rng.choice(np.flatnonzero(fitting), len(wrong))]}
                )
    return data


def _as_released(data: Microdata, names: Sequence[str]) -> Microdata:
    """Return the file with masked numbers rounded like the original: rules must hold for the released values."""
    assert data.base is not None
    new: dict[str, Array] = {}
    for name in names:
        column, before = data.column(name), data.base.column(name)
        if name in data.changes and column.levels is None and before.levels is None:
            k = granularity(before.values, data.schema[name].storage)
            new |= {} if k is None else {name: round_to_decimals(column.values, k)}
    return data.change(None, new) if new else data


def _names_missing(rule: EditRule, name: str) -> bool:
    """Return whether the rule says that this column is, or is not, missing."""
    return any(own.name == name and own.value is None for own in rule.comparisons)


def _is_changed(data: Microdata, name: str, *, with_missing: bool) -> Array:
    """Return where an earlier step changed a value; missing ones are left out, or count if the original knew them.

    In a fully synthetic file, every value of a changed column counts as changed.
    """
    assert data.base is not None
    if name not in data.changes:
        return np.zeros(len(data), dtype=bool)
    column, before = data.column(name), data.base.column(name)
    if column.levels is None or before.levels is None:
        comparable = column.levels is before.levels
    else:
        comparable = column.levels.equals(before.levels)
    missing, is_paired = data.missing(name), data.paired and comparable
    is_other = column.values != before.values if is_paired else np.ones(len(data), dtype=bool)
    if not with_missing:
        return np.asarray(~missing & is_other)
    return np.asarray(is_other & ~(missing & data.base.missing(name))) if data.paired else is_other


def _donors(rule: Implication, data: Microdata, name: str, rows: Array, rng: Generator) -> Array:
    """Draw for each row a donor whose value of `name` repairs it; -1 if there is none."""
    chosen = np.full(len(rows), -1)
    if not len(rows):
        return chosen
    # A value repairs the record if the condition no longer applies ("escapes") or the consequence holds ("obeys").
    conditions, consequences = [c for c in rule.when if c.name == name], [c for c in rule.then if c.name == name]
    usable = ~data.missing(name) | _names_missing(rule, name)
    escapes = usable & ~_all_hold(conditions, data) if conditions else np.zeros(len(data), dtype=bool)
    obeys = escapes | (usable & _all_hold(consequences, data)) if consequences else escapes
    enough = _all_hold([c for c in rule.then if c.name != name], data)  # the other consequences hold
    # Records are alike if they meet the same comparisons on the other columns of the rule; these are the best donors.
    alike = np.zeros(len(data), dtype=np.int64)
    for comparison in rule.comparisons:
        alike = 2 * alike + comparison.holds(data) if comparison.name != name else alike
    for code in np.unique(alike[rows]):
        own = np.flatnonzero(alike[rows] == code)
        fitting = obeys if enough[rows[own[0]]] else escapes
        near = fitting & (alike == code)
        if len(pool := np.flatnonzero(near if near.any() else fitting)):
            chosen[own] = rng.choice(pool, size=len(own))
    return chosen


def _all_hold(comparisons: Sequence[Comparison], data: Microdata) -> Array:
    """Return where no comparison fails."""
    wrong = [comparison.fails(data) for comparison in comparisons]
    return ~np.asarray(np.logical_or.reduce(wrong)) if wrong else np.ones(len(data), dtype=bool)
