"""Propose edit rules that hold in a file without exception and are unlikely to hold by chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata, PlanError
from sdcmap.core.edit_rule import parse_edit
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.explore.computed_columns import find_indicator_sets

MIN_SUPPORT_SHARE = 0.01  # share of the records that meet the condition of a rule, at the least ...
MIN_SUPPORT_RECORDS = 30  # ... and their number; they are of at least so many people
MIN_EXPECTED_VIOLATIONS = 20.0  # expected if the two columns were independent: fewer could be chance
MAX_LEVELS = 50  # categories of a column; a rule about one of many categories is rarely useful
MIN_CONSTANT_SHARE = 0.05  # share of the records that have one number, such as 0 hours of work
STEPS_OF_BOUNDS = (
    100,
    50,
    20,
)  # between the ends of a column, at most; coarser bounds if too few are next to a finer one
ROUND_DIGITS = (1, 2, 5, 10)  # a step is such a number times a power of ten
MIN_UNITS_AT_BOUND = 10  # persons or households within a step beyond a bound: it tells nobody's value
MAX_RULES_OF_PAIR = 6  # proposed for two columns, such as a district and its region
MAX_RULES = 20  # proposed, those with the most expected violations first; more nobody would review
MAX_RECORDS = 20_000  # on which rules are looked for; they must hold in all records


class _Proposed(NamedTuple):
    """A rule, how many records would violate it if its columns were independent, and the columns.

    records : that meet its condition. implied : what follows from it, as the text says.
    is_skip : whether that is that a value is missing, or not missing, or one number.
    forbidden : the pairs of states that no record may have; none if the condition divides a state.
    """

    expected: float
    records: int
    text: str
    implied: str
    names: frozenset[str]
    is_skip: bool
    forbidden: frozenset[frozenset[tuple[str, int]]]


def propose_edits(data: Microdata, derived: Collection[str] = ()) -> tuple[str, ...]:
    """Return rules of two columns, and of sets of indicators of which exactly one is 1.

    In a rule of two columns, a category, or a bound on a number, implies a category, a number or no value; if it implies
    no value of an amount, rules that imply a value are proposed too.

    derived : columns that are computed from others after the repair, so that no rule is proposed for them.

    At least 30 people and 1 % of the file meet the condition of a rule, no record violates it, and at least 20 would if
    its columns were independent. Bounds are rounded, and at least ten persons or households are within a step beyond a
    bound, so that it tells nobody's value: a release states the rules in its note. No rule implies the category of a
    sensitive column, since it would tell this category of all who meet the condition.

    >>> from sdcmap import read
    >>> import polars as pl
    >>> ages = list(range(10, 70)) * 10
    >>> frame = pl.DataFrame({"age": ages, "marital": ["never" if age < 18 or age % 2 else "married" for age in ages]})
    >>> propose_edits(read(frame, keys="marital", numeric="age"))
    ('age < 18 -> marital = "never"',)
    """
    sample = data.take(np.arange(0, len(data), math.ceil(len(data) / MAX_RECORDS))) if len(data) > MAX_RECORDS else data
    roles = ("key", "sensitive", "other", None)
    names = [v.name for v in data.schema.variables if v.role in roles and v.name not in derived]
    columns = [_Column(sample, name) for name in names]
    least = max(MIN_SUPPORT_RECORDS, MIN_SUPPORT_SHARE * len(sample))
    proposed = [
        rule for condition, implied in permutations(columns, 2) for rule in _propose_by_pair(condition, implied, least)
    ]
    # Of two rules that say the same, the one that empties a value comes first: why it is empty should stay.
    proposed.sort(key=lambda rule: (not rule.is_skip, -round(rule.expected, 6), -rule.records))
    return tuple(_select([*_propose_by_sets(columns), *proposed], data))


def _select(proposed: Iterable[_Proposed], data: Microdata) -> Iterator[str]:
    """Yield the first rules that hold in all records, and say something that those before them do not."""
    count, forbidden = Counter[frozenset[str]](), set[frozenset[tuple[str, int]]]()
    for rule in proposed:
        if count.total() == MAX_RULES:
            return
        is_said = bool(rule.forbidden) and rule.forbidden <= forbidden
        is_said = is_said or any(rule.names < names for names in count if len(names) > 2)  # by a set of indicators
        if not is_said and count[rule.names] < MAX_RULES_OF_PAIR and _holds(rule.text, data):
            count[rule.names] += 1
            forbidden |= rule.forbidden
            yield rule.text


def _holds(text: str, data: Microdata) -> bool:
    """Return whether every record satisfies a rule, and enough people meet its condition.

    A rule that cannot be written does not count: names and categories may have quotes.
    """
    try:
        rule = parse_edit(text)
    except PlanError:
        return False
    if rule.violations(data).any():
        return False
    return data.case is None or len(np.unique(data.units[rule.meets_condition(data)])) >= MIN_SUPPORT_RECORDS


@dataclass(frozen=True)
class _Column:
    """A column as the condition of a rule, or as what it implies."""

    data: Microdata
    name: str

    @cached_property
    def missing(self) -> Array:
        return self.data.missing(self.name)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether conditions are bounds: it has more than two numbers, which are no codes of nominal categories."""
        if not has_numbers(self.data.column(self.name)) or self.data.schema[self.name].kind == "nominal":
            return False
        return len(np.unique(self.numbers[~self.missing])) > 2

    @property
    def has_categories(self) -> bool:
        return self.data.column(self.name).levels is not None

    @cached_property
    def numbers(self) -> Array:
        return amounts(self.data, self.name)

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """Bounds are multiples of one of these numbers, the first for which enough units are next to a bound."""
        span = float(np.ptp(self.numbers[~self.missing]))
        return tuple(_round_up(span / count) for count in STEPS_OF_BOUNDS)

    @property
    def missing_text(self) -> str:
        return f"{_quote(self.name)} is missing"

    @property
    def known_text(self) -> str:
        return f"{_quote(self.name)} is not missing"

    @cached_property
    def states(self) -> tuple[str, ...]:
        """What a rule may imply, as it is written: categories, or frequent numbers, and at last that it is missing."""
        return self._states[0]

    @cached_property
    def codes(self) -> Array:
        """The state of each record; the number of states for any other number."""
        return self._states[1]

    @cached_property
    def _states(self) -> tuple[tuple[str, ...], Array]:
        column, name = self.data.column(self.name), _quote(self.name)
        texts: tuple[str, ...] = ()
        codes = np.full(len(self.data), -1)
        if column.levels is None:
            numbers, count = np.unique(self.numbers[~self.missing], return_counts=True)
            frequent = numbers[count >= max(MIN_SUPPORT_RECORDS, MIN_CONSTANT_SHARE * len(self.data))]
            texts = tuple(f"{name} = {number:.15g}" for number in frequent.tolist())
            codes = np.where(np.isin(self.numbers, frequent), np.searchsorted(frequent, self.numbers), -1)
        elif len(column.levels) <= MAX_LEVELS:
            known = column.levels.is_not_null().to_numpy()
            values = column.levels.drop_nulls()
            if has_numbers(column):
                texts = tuple(f"{name} = {float(value):.15g}" for value in values)
            else:
                texts = tuple(f'{name} = "{value}"' for value in values.cast(pl.String))
            codes = (np.cumsum(known) - 1)[column.values]
        codes = np.where(self.missing, len(texts), np.where(codes < 0, len(texts) + 1, codes))
        return (*texts, self.missing_text), codes

    def may_imply(self, state: int) -> bool:
        """Return whether a rule may say this of a record: of a sensitive column, only that it is missing or 0."""
        if state >= len(self.states):
            return False
        is_empty = state == len(self.states) - 1 or self.states[state].endswith("= 0")
        return is_empty or self.data.schema[self.name].role != "sensitive"


def _propose_by_sets(columns: Iterable[_Column]) -> Iterator[_Proposed]:
    """Yield rules "exactly one of these indicators is 1"."""
    numbers = {column.name: column.numbers for column in columns if has_numbers(column.data.column(column.name))}
    for names in find_indicator_sets(numbers):
        values = np.column_stack([numbers[name] for name in names])
        values = values[np.isfinite(values).all(axis=1)]
        share = values.mean(axis=0)
        others = [np.prod(np.delete(1 - share, k)) for k in range(len(names))]  # that all others are 0, by chance
        expected = float(len(values) * (1 - share @ others))
        if expected >= MIN_EXPECTED_VIOLATIONS:
            text = f"exactly one of {', '.join(map(_quote, names))} = 1"
            yield _Proposed(expected, len(values), text, "", frozenset(names), False, frozenset())


def _propose_by_pair(condition: _Column, implied: _Column, least: float) -> Iterator[_Proposed]:
    """Yield rules with a condition on one column about another; that a value is known, only if others say it is missing."""
    find = _propose_by_bound if condition.is_ordered else _propose_by_category
    rules = list(find(condition, implied, least))
    can_be_missing = any(rule.implied == implied.missing_text for rule in rules)
    yield from (rule for rule in rules if can_be_missing or rule.implied != implied.known_text)


def _propose_by_category(condition: _Column, implied: _Column, least: float) -> Iterator[_Proposed]:
    """Yield rules "category of one column -> state of the other"."""
    width, size = len(implied.states) + 1, len(condition.states) + 1
    table = np.bincount(condition.codes * width + implied.codes, minlength=size * width).reshape(size, width)
    for code, row in enumerate(table[:-2]):  # without "missing" and other numbers
        yield from _propose_rule(condition, implied, row, condition.states[code], [code], least)
        yield from _propose_known(condition, implied, row, condition.states[code], least)


def _propose_by_bound(condition: _Column, implied: _Column, least: float) -> Iterator[_Proposed]:
    """Yield rules "number below (above) a bound -> state of the other"."""
    known = ~condition.missing
    codes, own = implied.codes[known], condition.codes[known]
    is_missing = codes == len(implied.states) - 1
    for state in np.unique(codes).tolist():
        # a missing value violates no rule about a category
        is_other = (codes != state) & (~is_missing | (state == len(implied.states) - 1))
        for text, meets in _bounds(condition, is_other):
            row = np.bincount(codes[meets], minlength=len(implied.states) + 1)
            whole = np.setdiff1d(own[meets], own[~meets]).tolist()
            cut = len(np.intersect1d(own[meets], own[~meets]))
            if row.argmax() == state:
                yield from _propose_rule(condition, implied, row, text, [] if cut else whole, least)
    for text, meets in _bounds(condition, is_missing):
        row = np.bincount(codes[meets], minlength=len(implied.states) + 1)
        yield from _propose_known(condition, implied, row, text, least)


def _bounds(condition: _Column, is_other: Array) -> Iterator[tuple[str, Array]]:
    """Yield the bounds below and above which no record is another one: the text, and the known values that meet it."""
    if not is_other.any():
        return
    known = ~condition.missing
    x, units = condition.numbers[known], condition.data.units[known]
    for sign, end, whole in (("<", x[is_other].min(), math.floor), (">", x[is_other].max(), math.ceil)):
        for step in condition.steps:
            bound = whole(float(end) / step) * step + 0.0  # no -0
            near = is_other & (np.abs(x - bound) < step)
            if len(np.unique(units[near])) >= MIN_UNITS_AT_BOUND:
                yield f"{_quote(condition.name)} {sign} {bound:.15g}", x < bound if sign == "<" else x > bound
                break


def _propose_rule(
    condition: _Column, implied: _Column, row: Array, text: str, met: Sequence[int], least: float
) -> Iterator[_Proposed]:  # fmt: skip
    """Yield the rule that a condition implies a state, if there is one.

    row : the number of records of each state that meet the condition. met : the states of the condition's column that are
    the condition; none if it divides one.
    """
    total = np.bincount(implied.codes, minlength=len(row))
    state, missing = int(row.argmax()), len(row) - 2
    ignored = [] if state == missing else [missing]  # a missing value violates no rule about a category
    counted, everyone = np.delete(row, ignored), np.delete(total, ignored)
    if row[state] < least or counted.sum() > row[state] or not implied.may_imply(state):
        return
    expected = float(row[state] * (1 - total[state] / everyone.sum()))
    if expected >= MIN_EXPECTED_VIOLATIONS:
        others = [k for k in np.flatnonzero(total).tolist() if k not in (state, *ignored)]
        forbidden = frozenset(frozenset({(condition.name, code), (implied.name, k)}) for code in met for k in others)
        is_skip = state == missing or not implied.has_categories
        then, names = implied.states[state], frozenset({condition.name, implied.name})
        yield _Proposed(expected, int(row[state]), f"{text} -> {then}", then, names, is_skip, forbidden)


def _propose_known(condition: _Column, implied: _Column, row: Array, text: str, least: float) -> Iterator[_Proposed]:
    """Yield the rule that a condition implies a known amount. Categories may have been suppressed, and should stay so."""
    missing = len(row) - 2
    share = float((implied.codes == missing).mean())
    if not implied.has_categories and row[missing] == 0 and row.sum() >= least:
        expected = float(row.sum() * share)
        if expected >= MIN_EXPECTED_VIOLATIONS:
            names = frozenset({condition.name, implied.name})
            then = implied.known_text
            yield _Proposed(expected, int(row.sum()), f"{text} -> {then}", then, names, True, frozenset())


def _round_up(number: float) -> float:
    """Return the next number with one digit of ROUND_DIGITS; 1 for 0.

    >>> [_round_up(0.95), _round_up(1.9), _round_up(450)]
    [1.0, 2.0, 500.0]
    """
    unit = 10.0 ** math.floor(math.log10(number)) if number > 0 else 1.0
    return next(digit * unit for digit in ROUND_DIGITS if digit * unit >= number)


def _quote(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
