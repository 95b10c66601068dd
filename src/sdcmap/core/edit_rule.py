"""Edit rules within a record, and the base class of measures of them.

`age < 15 -> marital = "never"` says what follows from a condition; `exactly one of car, bus, walk = 1` is about
indicators. A column that was recoded into intervals is compared by these: `age < 15` is true in "(5, 10]", false in
"(20, 30]", and undecided in "(10, 20]". An undecided comparison neither triggers nor violates a rule.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import polars as pl

from sdcmap.core.estimate import Skipped
from sdcmap.core.measure import Measure
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.label_layers import parse_interval
from sdcmap.data.microdata import Column, Microdata
from sdcmap.errors import PlanError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array

MAX_RULE_CHARACTERS = 300  # a longer text is a mistake, and slow to parse
SYNTAX = """an edit rule reads age < 15 and sex = "f" -> marital = "never", with < <= > >= = !=; or age < 15 -> \
wage is missing; or exactly one of car, bus, walk = 1"""

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_COMPARISON = re.compile(
    r"""\s*(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s*(?:(?P<missing>is\s+(?:not\s+)?missing\b)|(?P<sign><=|>=|!=|=|<|>)\s*
    (?:"(?P<text>[^"]*)"|(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?)))\s*(?P<more>and\b|$)""",
    re.VERBOSE,
)
_ONE_OF = re.compile(r"\s*exactly\s+one\s+of\b")
_MEMBER = re.compile(r"\s*(`[^`]+`|\w+)\s*(,|$)")


@dataclass(frozen=True)
class Comparison:
    """A column compared with a number, or (= and !=) with a text or with "missing" (None)."""

    name: str
    sign: str
    value: float | str | None

    def holds(self, data: Microdata) -> Array:
        """Return for each record whether the comparison is true. A missing value is only equal to "missing"."""
        if self.value is None:
            return np.asarray(data.missing(self.name) == (self.sign == "="))
        return np.asarray(self._truth(data)[0] & ~data.missing(self.name))

    def fails(self, data: Microdata) -> Array:
        """Return for each record whether the comparison is false; with a number or text, no missing value fails."""
        if self.value is None:
            return ~self.holds(data)
        return np.asarray(self._truth(data)[1] & ~data.missing(self.name))

    def _truth(self, data: Microdata) -> tuple[Array, Array]:
        """Return for each known value if the comparison is true, and if it is false; of an interval it may be neither."""
        column = data.column(self.name)
        if isinstance(self.value, float) and has_numbers(column):
            is_true = np.asarray(_COMPARE[self.sign](amounts(data, self.name), self.value))
            return is_true, ~is_true
        assert column.levels is not None
        if isinstance(self.value, float):
            labels = column.levels.cast(pl.String).to_list()
            decided = [(False, False) if label is None else self._decide(label) for label in labels]
            is_true, is_false = np.array(decided, dtype=bool).reshape(-1, 2)[column.values].T
            return is_true, is_false
        same = (column.levels.cast(pl.String) == self.value).fill_null(False).to_numpy()[column.values]
        return (same, ~same) if self.sign == "=" else (~same, same)

    def _decide(self, label: str) -> tuple[bool, bool]:
        """Return whether the comparison is true for all numbers of an interval, and whether it is false for all."""
        interval = parse_interval(label)
        assert interval is not None and isinstance(self.value, float)
        low, high, opening, closing = interval
        is_below = high < self.value or (high == self.value and closing == ")")  # all of the interval
        is_above = low > self.value or (low == self.value and opening == "(")
        is_at_most, is_at_least = high <= self.value, low >= self.value
        is_other = is_below or is_above
        return {
            "<": (is_below, is_at_least), "<=": (is_at_most, is_above), ">": (is_above, is_at_most),
            ">=": (is_at_least, is_below), "=": (False, is_other), "!=": (is_other, False),
        }[self.sign]  # fmt: skip

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if self.name not in data.schema:
            yield f"no column {self.name!r}.{did_you_mean(self.name, data.names)}"
        elif isinstance(self.value, float) and not _has_numbers_or_intervals(data.column(self.name)):
            yield f"{self.name!r} contains no numbers."
        elif isinstance(self.value, str) and data.column(self.name).levels is None:
            yield f"{self.name!r} contains numbers, not texts."


def _has_numbers_or_intervals(column: Column) -> bool:
    """Return whether a column has numbers, or was recoded into intervals of them."""
    if has_numbers(column) or column.levels is None:
        return True
    return all(parse_interval(label) for label in column.levels.drop_nulls().cast(pl.String))


@dataclass(frozen=True)
class EditRule(ABC):
    """A rule that the values of a record should satisfy."""

    text: str

    @property
    @abstractmethod
    def comparisons(self) -> tuple[Comparison, ...]:
        """All comparisons of the rule."""

    @abstractmethod
    def violations(self, data: Microdata) -> Array:
        """Return for each record whether it violates the rule."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(comparison.name for comparison in self.comparisons))

    def meets_condition(self, data: Microdata) -> Array:
        """Return for each record whether the rule says something about it."""
        return np.ones(len(data), dtype=bool)

    def undecided(self, data: Microdata) -> Array:
        """Return for each record whether an interval leaves it open if a comparison is true."""
        open_ones = [~(own.holds(data) | own.fails(data) | data.missing(own.name)) for own in self.comparisons]
        return np.asarray(np.logical_or.reduce(open_ones))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why the rule does not fit these data, one sentence each."""
        for comparison in self.comparisons:
            yield from (f"edit rule {self.text!r}: {problem}" for problem in comparison.incompatibilities(data))
        for name in self.names:
            if name in data.unreleased_columns:
                role = data.schema[name].role
                yield f"edit rule {self.text!r}: a rule must not use {name!r}: its role is {role}, so it is not released."

    def reading_problems(self, masked: Microdata, original: Microdata) -> Iterator[str]:
        """Yield every reason why the rule cannot be applied to a masked file, whose columns may have been recoded."""
        yield from self.incompatibilities(masked)
        for name in dict.fromkeys(c.name for c in self.comparisons if isinstance(c.value, str)):
            if name in masked.names and name in original.names:
                now, before = masked.column(name).levels, original.column(name).levels
                if now is not None and before is not None and now is not before and not set(now) <= {*before, None}:
                    yield f"edit rule {self.text!r}: {name!r} was recoded."


@dataclass(frozen=True)
class Implication(EditRule):
    """A rule: where all comparisons of `when` are true, all of `then` must be true.

    >>> parse_edit('age < 15 -> marital = "never"').names
    ('age', 'marital')
    """

    when: tuple[Comparison, ...]
    then: tuple[Comparison, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return (*self.when, *self.then)

    def meets_condition(self, data: Microdata) -> Array:
        return np.asarray(np.logical_and.reduce([comparison.holds(data) for comparison in self.when]))

    def violations(self, data: Microdata) -> Array:
        """Return for each record whether it violates the rule.

        A missing value neither triggers the rule nor violates it, unless the rule says what is missing.
        """
        fails = np.logical_or.reduce([comparison.fails(data) for comparison in self.then])
        return np.asarray(self.meets_condition(data) & fails)


@dataclass(frozen=True)
class ExactlyOne(EditRule):
    """A rule: exactly one of the comparisons must be true.

    >>> parse_edit("exactly one of car, bus, `on foot` = 1").names
    ('car', 'bus', 'on foot')
    """

    members: tuple[Comparison, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.members

    def violations(self, data: Microdata) -> Array:
        """Return for each record whether two are true, or all are false. Where a value is missing, none need be true."""
        count = np.sum([member.holds(data) for member in self.members], axis=0)
        return np.asarray((count > 1) | np.logical_and.reduce([member.fails(data) for member in self.members]))


def edit_problems(edits: Sequence[str]) -> Iterator[str]:
    """Yield everything that is wrong with a list of rules, each as the second part of a sentence."""
    if not edits:
        yield "must contain at least one rule."
    for text in edits:
        try:
            parse_edit(text)
        except PlanError as error:
            yield from error.problems


@cache
def parse_edit(text: str) -> EditRule:
    """Return the rule that a text describes. A name with characters other than letters and digits needs `backticks`."""
    if len(text) > MAX_RULE_CHARACTERS:
        raise _unreadable(text)
    if one_of := _ONE_OF.match(text):
        return ExactlyOne(text, _members(text, one_of.end()))
    when, arrow, then = text.partition("->")
    sides = [_comparisons(side) for side in (when, then)] if arrow else [(), ()]
    if not all(sides):
        raise _unreadable(text)
    return Implication(text, *sides)


def _unreadable(text: str) -> PlanError:
    return PlanError(f"{text[:MAX_RULE_CHARACTERS]!r} cannot be read: {SYNTAX}.")


def _members(text: str, start: int) -> tuple[Comparison, ...]:
    """Return a comparison for each column of `car, bus, walk = 1`, the text from `start` on, with the same value."""
    listed, equals, value = text[start:].partition("=")
    names, position, more = list[str](), 0, True
    while more and (match := _MEMBER.match(listed.rstrip(), position)):
        names, position, more = [*names, match[1]], match.end(), match[2] == ","
    members = tuple(own for name in names for own in _comparisons(f"{name} {equals} {value}"))
    if more or len(members) < 2 or len(members) != len(set(names)):
        raise _unreadable(text)
    return members


def _comparisons(text: str) -> tuple[Comparison, ...]:
    """Return the comparisons of one side, or none where the side cannot be parsed."""
    comparisons: list[Comparison] = []
    position, more = 0, True
    while more:
        match = _COMPARISON.match(text, position)
        if match is None or (match["text"] is not None and match["sign"] not in ("=", "!=")):
            return ()
        name, value = match["quoted"] or match["name"], match["text"]
        if match["missing"]:
            comparisons.append(Comparison(name, "!=" if "not" in match["missing"].split() else "=", None))
        else:
            comparisons.append(Comparison(name, match["sign"], float(match["number"]) if value is None else value))
        position, more = match.end(), bool(match["more"])
    return tuple(comparisons)


@dataclass(frozen=True)
class EditMeasure(Measure):
    """The base of measures that count records violating edit rules.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or
        with texts in double quotes (= !=), or `is missing`, `is not missing`; joined by `and`; or
        `exactly one of car, bus, walk = 1`. Other names are written in `backticks`. `sdcmap look --edits` proposes some.
        A column recoded into intervals is compared where these decide; in a plan, none means the plan's own `edits`.
    """

    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    missing: ClassVar[str] = (
        "a missing value neither triggers a rule nor violates it, unless the rule says `is missing` or `is not missing`"
    )

    edits: tuple[str, ...]

    def problems(self) -> Iterator[str]:
        yield from (f".edits {problem}" for problem in edit_problems(self.edits))

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(map(parse_edit, self.edits))

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        for rule in self.rules:
            yield from rule.incompatibilities(data)

    def readable_rules(
        self, original: Microdata, masked: Microdata
    ) -> tuple[tuple[EditRule, ...], tuple[Skipped, ...]]:
        """Return the rules whose violations can be counted, and those that cannot be read in the released file.

        Raise Undefined where no rule is left.
        """
        problems = {rule: next(rule.reading_problems(masked, original), "") for rule in self.rules}
        readable = tuple(rule for rule, problem in problems.items() if not problem)
        if not readable:
            raise Undefined(f"in the released file, {next(iter(problems.values()))}")
        lost = tuple(
            Skipped(attack=rule.text, reason="its columns were recoded") for rule in self.rules if problems[rule]
        )
        return readable, lost
