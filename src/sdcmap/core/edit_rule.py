"""Edit rules: what must hold within a record, such as `age < 15 -> marital = "never"`, and the measures of them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import polars as pl

from sdcmap.core.measure import Measure
from sdcmap.data.amounts import amounts, holds_numbers
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array

MAX_RULE_CHARACTERS = 300  # characters
SYNTAX = 'an edit rule reads age < 15 and sex = "f" -> marital = "never", with < <= > >= = !='

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_COMPARISON = re.compile(
    r"""\s*(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s*(?P<sign><=|>=|!=|=|<|>)\s*
    (?:"(?P<text>[^"]*)"|(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?))\s*(?P<more>and\b|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Comparison:
    """A column compared with a number, or (= and !=) with a text."""

    name: str
    sign: str
    value: float | str

    def holds(self, data: Microdata) -> Array:
        """Where it holds; not where the value is missing."""
        if isinstance(self.value, float):
            return np.asarray(_COMPARE[self.sign](amounts(data, self.name), self.value)) & ~data.missing(self.name)
        column = data.column(self.name)
        assert column.levels is not None
        same = (column.levels.cast(pl.String) == self.value).fill_null(False).to_numpy()[column.values]
        return (same if self.sign == "=" else ~same) & ~data.missing(self.name)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if self.name not in data.schema:
            yield f"no column {self.name!r}.{did_you_mean(self.name, data.names)}"
        elif isinstance(self.value, float) and not holds_numbers(data.column(self.name)):
            yield f"{self.name!r} holds no numbers."
        elif isinstance(self.value, str) and data.column(self.name).levels is None:
            yield f"{self.name!r} holds numbers, not texts."


@dataclass(frozen=True)
class EditRule:
    """Where every comparison of `when` is met, every one of `then` must be.

    >>> parse_edit('age < 15 -> marital = "never"').names
    ('age', 'marital')
    """

    text: str
    when: tuple[Comparison, ...]
    then: tuple[Comparison, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(comparison.name for comparison in (*self.when, *self.then)))

    def violations(self, data: Microdata) -> Array:
        """The records that break it. A missing value neither calls for the rule nor breaks it."""
        called = np.logical_and.reduce([comparison.holds(data) for comparison in self.when])
        wrong = np.logical_or.reduce([~c.holds(data) & ~data.missing(c.name) for c in self.then])
        return np.asarray(called & wrong)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Every reason why the rule does not fit these data, a sentence each."""
        for comparison in (*self.when, *self.then):
            yield from (f"edit rule {self.text!r}: {problem}" for problem in comparison.incompatibilities(data))

    def reading_problems(self, masked: Microdata, original: Microdata) -> Iterator[str]:
        """Every reason why the rule cannot be read in a masked file, whose columns may have been recoded."""
        yield from self.incompatibilities(masked)
        for name in dict.fromkeys(c.name for c in (*self.when, *self.then) if isinstance(c.value, str)):
            if name in masked.names and name in original.names:
                now, before = masked.column(name).levels, original.column(name).levels
                if now is not None and before is not None and now is not before and not set(now) <= {*before, None}:
                    yield f"edit rule {self.text!r}: {name!r} was recoded."


def edit_problems(edits: Sequence[str]) -> Iterator[str]:
    """Everything that is wrong with a list of rules, as the end of a sentence each."""
    if not edits:
        yield "must hold at least one rule."
    for text in edits:
        try:
            parse_edit(text)
        except PlanError as error:
            yield from error.problems


@cache
def parse_edit(text: str) -> EditRule:
    """The rule that a text stands for; a name with other signs than letters and digits stands in `backticks`."""
    when, arrow, then = text.partition("->")
    sides = [_comparisons(side) for side in (when, then)] if arrow and len(text) <= MAX_RULE_CHARACTERS else [(), ()]
    if not all(sides):
        raise PlanError(f"{text[:MAX_RULE_CHARACTERS]!r} cannot be read: {SYNTAX}.")
    return EditRule(text, *sides)


def _comparisons(text: str) -> tuple[Comparison, ...]:
    """The comparisons of one side; none where it cannot be read."""
    made: list[Comparison] = []
    place, more = 0, True
    while more:
        read = _COMPARISON.match(text, place)
        if read is None or (read["text"] is not None and read["sign"] not in ("=", "!=")):
            return ()
        value = read["text"] if read["text"] is not None else float(read["number"])
        made.append(Comparison(read["quoted"] or read["name"], read["sign"], value))
        place, more = read.end(), bool(read["more"])
    return tuple(made)


# What measures of edit rules share: the rules, the variables they name, and whether they can read a released file.


@dataclass(frozen=True)
class EditMeasure(Measure):
    """The base of measures that ask which records break edit rules.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or
        with texts in double quotes (= !=), joined by `and`; other names stand in `backticks`. `sdcmap look --edits`
        proposes some.
    """

    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    missing: ClassVar[str] = "a missing value neither calls for a rule nor breaks it"

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

    def check_readable(self, original: Microdata, masked: Microdata) -> None:
        """Undefined where a rule's categories were recoded: nobody can tell who breaks it."""
        unreadable = [problem for rule in self.rules for problem in rule.reading_problems(masked, original)]
        if unreadable:
            raise Undefined(f"in the released file, {unreadable[0]}")
