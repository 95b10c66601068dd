"""Edit rules within a record, such as `age < 15 -> marital = "never"`, and the base class of measures of them."""

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
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array

MAX_RULE_CHARACTERS = 300  # a longer text is a mistake, and slow to parse
SYNTAX = """an edit rule reads age < 15 and sex = "f" -> marital = "never", with < <= > >= = !=; or age < 15 -> \
wage is missing"""

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_COMPARISON = re.compile(
    r"""\s*(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))\s*(?:(?P<missing>is\s+(?:not\s+)?missing\b)|(?P<sign><=|>=|!=|=|<|>)\s*
    (?:"(?P<text>[^"]*)"|(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?)))\s*(?P<more>and\b|$)""",
    re.VERBOSE,
)


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
        if isinstance(self.value, float):
            return np.asarray(_COMPARE[self.sign](amounts(data, self.name), self.value)) & ~data.missing(self.name)
        column = data.column(self.name)
        assert column.levels is not None
        same = (column.levels.cast(pl.String) == self.value).fill_null(False).to_numpy()[column.values]
        return (same if self.sign == "=" else ~same) & ~data.missing(self.name)

    def fails(self, data: Microdata) -> Array:
        """Return for each record whether the comparison is false; with a number or text, no missing value fails."""
        wrong = ~self.holds(data)
        return wrong if self.value is None else np.asarray(wrong & ~data.missing(self.name))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if self.name not in data.schema:
            yield f"no column {self.name!r}.{did_you_mean(self.name, data.names)}"
        elif isinstance(self.value, float) and not has_numbers(data.column(self.name)):
            yield f"{self.name!r} contains no numbers."
        elif isinstance(self.value, str) and data.column(self.name).levels is None:
            yield f"{self.name!r} contains numbers, not texts."


@dataclass(frozen=True)
class EditRule:
    """A rule: where all comparisons of `when` are true, all of `then` must be true.

    >>> parse_edit('age < 15 -> marital = "never"').names
    ('age', 'marital')
    """

    text: str
    when: tuple[Comparison, ...]
    then: tuple[Comparison, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(comparison.name for comparison in (*self.when, *self.then)))

    def meets_condition(self, data: Microdata) -> Array:
        """Return for each record whether it meets the condition of the rule."""
        return np.asarray(np.logical_and.reduce([comparison.holds(data) for comparison in self.when]))

    def violations(self, data: Microdata) -> Array:
        """Return for each record whether it violates the rule.

        A missing value neither triggers the rule nor violates it, unless the rule says what is missing.
        """
        return np.asarray(
            self.meets_condition(data) & np.logical_or.reduce([comparison.fails(data) for comparison in self.then])
        )

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why the rule does not fit these data, one sentence each."""
        for comparison in (*self.when, *self.then):
            yield from (f"edit rule {self.text!r}: {problem}" for problem in comparison.incompatibilities(data))
        for name in self.names:
            if name in data.unreleased_columns:
                role = data.schema[name].role
                yield f"edit rule {self.text!r}: a rule must not use {name!r}: its role is {role}, so it is not released."

    def reading_problems(self, masked: Microdata, original: Microdata) -> Iterator[str]:
        """Yield every reason why the rule cannot be applied to a masked file, whose columns may have been recoded."""
        yield from self.incompatibilities(masked)
        for name in dict.fromkeys(c.name for c in (*self.when, *self.then) if isinstance(c.value, str)):
            if name in masked.names and name in original.names:
                now, before = masked.column(name).levels, original.column(name).levels
                if now is not None and before is not None and now is not before and not set(now) <= {*before, None}:
                    yield f"edit rule {self.text!r}: {name!r} was recoded."


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
    when, arrow, then = text.partition("->")
    sides = [_comparisons(side) for side in (when, then)] if arrow and len(text) <= MAX_RULE_CHARACTERS else [(), ()]
    if not all(sides):
        raise PlanError(f"{text[:MAX_RULE_CHARACTERS]!r} cannot be read: {SYNTAX}.")
    return EditRule(text, *sides)


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
        with texts in double quotes (= !=), or `is missing`, `is not missing`; joined by `and`. Other names are written in
        `backticks`. `sdcmap look --edits` proposes some.
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

    def check_readable(self, original: Microdata, masked: Microdata) -> None:
        """Raise Undefined where the categories of a rule were recoded, because violations can no longer be counted."""
        unreadable = [problem for rule in self.rules for problem in rule.reading_problems(masked, original)]
        if unreadable:
            raise Undefined(f"in the released file, {unreadable[0]}")
