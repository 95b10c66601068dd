"""Numbers of persons, households and other units: recognize them by names, by values, and by what their records share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata
from sdcmap.core.formatting import join_names
from sdcmap.data.identifiers import (
    LARGE_UNIT,
    QUANTITY,
    SMALL_PLACE,
    Mark,
    detect_identifier,
    has_words,
    is_record_number,
    snake_case,
)
from sdcmap.explore.computed_columns import Computed, find_functions
from sdcmap.explore.missing_code_detection import number_codes
from sdcmap.explore.name_patterns import (
    AMOUNT,
    ANY_NUMBER,
    HOUSEHOLD,
    MAYBE_WEIGHT,
    NOT_NUMBERED,
    NUMBERED,
    ORDERED,
    PERSON,
    PERSON_NUMBER,
    PERSON_WORD,
    PSU,
    SEX,
    STRATUM,
    SURVEY_WEIGHT,
    TIME,
    UNORDERED,
    WAVE,
)

MAX_KEY_LEVELS = 50  # a variable with at most so many categories is proposed as a key
MAX_CODE_VALUES = 20  # whole numbers with at most so many values are codes of categories
MIN_DISTINCT_SHARE = 0.98  # of the records: a number that repeats more often numbers groups or persons of a panel
MIN_DISTINCT_NUMBERS = 10  # of persons or households; fewer distinct values are categories
MAX_HOUSEHOLD_SIZE = 25  # records with one household number, if the number is recognized by its values alone
MIN_HOUSEHOLDS = 30  # and on average MIN_HOUSEHOLD_SIZE records each, at most MAX_MEAN_HOUSEHOLD_SIZE
MIN_HOUSEHOLD_SIZE, MAX_MEAN_HOUSEHOLD_SIZE = 1.2, 10
MIN_SHARED_COLUMNS = 2  # in which all records with one number agree: then it numbers households or persons
MAX_COMPARED_COLUMNS = 200  # in which they are compared
MIN_CHANCE_DISAGREEMENTS = 10  # groups that would disagree in a column by chance; with fewer, agreement says nothing
MIN_TURNS = 0.1  # per number: a column that falls and rises more rarely is a function of an amount, as a tax is
PERSON_CLASSES = "GHIJ"  # Safe Harbor classes of numbers of persons: each repeats in all records of its person
MAX_GRID_PER_HOUSEHOLD = 5  # whole numbers between the smallest and the largest household number, per household
NO_NUMBER = (  # words of columns that number no households, although their values might
    f"{AMOUNT}|{ORDERED}|{UNORDERED}|{TIME}|{SMALL_PLACE}|{LARGE_UNIT}|{QUANTITY}|{SURVEY_WEIGHT}|{MAYBE_WEIGHT}"
)
Certainty = Literal["stated", "certain", "likely", "possible"]


class Guess(NamedTuple):
    """A possible role of a column: `kind` "" keeps the kind, `letter` is its Safe Harbor class."""

    role: str
    kind: str
    why: str
    letter: str
    certainty: Certainty


@dataclass(frozen=True)
class UnitNumbers:
    """The columns of a file that number persons, households or other units."""

    data: Microdata

    def roles(self, name: str) -> Iterator[Guess]:
        """Yield the roles of numbers of persons, households and other units, and of what is computed from them."""
        if name == self._number_by_values[0]:
            yield self._number_by_values[1]
        own = list(self._own_roles(name))
        number = self._number_computed_into(name)
        if number and not has_words(AMOUNT, name) and {guess.role for guess in own} <= {"key"}:
            yield Guess("identifier", "", f"a function of {number}, which numbers people or households", "R", "certain")
        yield from own

    def _own_roles(self, name: str) -> Iterator[Guess]:
        """Yield the roles of numbers of persons, households and other units that a column has by itself."""
        rows, distinct = len(self.data), self.distinct(name)
        is_number = distinct > min(MIN_DISTINCT_NUMBERS, rows / 2)
        if self._is_household_number(name) and is_number:
            if distinct < rows and not self.data.household and name == self._first_household:
                yield Guess("household", "", "name", "", "likely")
            yield Guess("identifier", "", "name", "R", "likely")
        is_named = has_words(PERSON, name) and self._is_numbering(name)
        if is_number and (is_named or self._is_person_number(name) or self._is_unit_number(name)):
            yield from self._repeated_number(name)
        if self._is_row_number(name):
            yield Guess("identifier", "", "values: they are record numbers", "R", "likely")

    def is_number(self, name: str) -> bool:
        """Return whether a column numbers persons or units, so that its values measure nothing."""
        mark = self.mark(name)
        roles = {guess.role for guess in self.roles(name)}
        return (mark is not None and mark.role == "identifier") or bool(roles - {"key"})

    @cached_property
    def case(self) -> str:
        """The column that tells which records are of one person: the stated one, else the surest proposal; "" if none."""
        if self.data.case is not None:
            return self.data.case
        guesses = {name: self._first_role(name) for name in self.data.names if self.data.schema[name].role is None}
        cases = {name: guess.certainty for name, guess in guesses.items() if guess is not None and guess.role == "case"}
        return next(iter(sorted(cases, key=lambda name: cases[name] != "likely")), "")

    @cached_property
    def wave_of_panel(self) -> str:
        """The column of times of a panel: the numbers of its persons or units repeat, but not at one time."""
        return self._wave_within(self.case) if self.case else ""

    def is_repeated_person(self, name: str) -> bool:
        """Return whether a column has numbers of persons that repeat, so that it tells which records are of one person."""
        known = len(self.data) - int(self.data.missing(name).sum())
        is_number = MIN_DISTINCT_NUMBERS < self.distinct(name) < MIN_DISTINCT_SHARE * known
        return is_number and self._is_marked_person(name)

    def mark(self, name: str) -> Mark | None:
        """Return what kind of identifier a column seems to be; detected once."""
        if name not in self._marks:
            self._marks[name] = detect_identifier(self.data, name)
        return self._marks[name]

    def _repeated_number(self, name: str) -> Iterator[Guess]:
        """Yield the role of a number of persons or units: it identifies them, unless several records share it."""
        known, distinct = len(self.data) - int(self.data.missing(name).sum()), self.distinct(name)
        mark, is_person = self.mark(name), self._is_person_number(name)
        letter = mark.letter if mark is not None else ""
        if distinct >= MIN_DISTINCT_SHARE * known:
            yield Guess("identifier", "", "name", letter or "R", "likely")
        elif time := self._wave_within(name):
            yield Guess("case", "", f"name; no value repeats within a value of {time}", letter, "likely")
        elif not is_person:
            # the number of a school, a district or a firm: known to others, and no amount
            role = "key" if distinct <= known / 2 else "identifier"
            yield Guess(role, "nominal", "name: a number, not an amount", "", "possible")
        elif any(has_words(WAVE, other) for other in self.data.names):
            yield Guess("case", "", "name: a person number that repeats", letter, "likely")
        elif re.fullmatch(ANY_NUMBER, snake_case(name)) and self._may_be_household(name):
            why = "name: a number that repeats, and people who share it differ in sex"
            yield Guess("household", "", why, "", "possible")
        elif distinct < 0.9 * known:
            yield Guess("case", "", "name: a person number that repeats", letter, "possible")
        else:
            yield Guess("identifier", "", "name", letter or "R", "possible")

    def _may_be_household(self, name: str) -> bool:
        return not self.data.household and not self._first_household and self._differs_within(name)

    def _is_person_number(self, name: str) -> bool:
        """Return whether a column numbers persons by its name; whole words such as `subject` need many numbers."""
        snake = snake_case(name)
        if has_words(QUANTITY, name) or not self._is_numbering(name):
            return False
        is_word = re.fullmatch(PERSON_WORD, snake) is not None and self.distinct(name) > MAX_CODE_VALUES
        by_name = is_word or re.fullmatch(PERSON, snake) is not None or has_words(PERSON_NUMBER, name)
        return by_name or self._is_marked_person(name)

    def _is_marked_person(self, name: str) -> bool:
        """Return whether a column has a number that its person has everywhere, such as that of a patient."""
        mark = self.mark(name)
        return mark is not None and mark.role == "identifier" and mark.letter in PERSON_CLASSES

    def _is_numbering(self, name: str) -> bool:
        """Return whether a column has whole numbers, or texts of which most have a digit."""
        levels = self.data.column(name).levels
        if levels is None or levels.dtype != pl.String:
            return self.is_code(name)
        return float(levels.drop_nulls().str.contains(r"\d").mean() or 0) > 0.5  # type: ignore[arg-type]

    def _first_role(self, name: str) -> Guess | None:
        """Return the first role that a column has as a number of persons, households or other units, if it has one."""
        return next(self.roles(name), None)

    def _is_unit_number(self, name: str) -> bool:
        """Return whether a column numbers units of any kind by its name. Amounts and categories are no numbers of units."""
        snake = snake_case(name)
        if not re.fullmatch(NUMBERED, snake) or re.fullmatch(NOT_NUMBERED, snake) or has_words(AMOUNT, name):
            return False
        column = self.data.column(name)
        is_key = any(has_words(pattern, name) for pattern in (ORDERED, UNORDERED, PSU, STRATUM, SURVEY_WEIGHT))
        return column.levels is None and self.is_code(name) and not is_key

    def _wave_within(self, name: str) -> str:
        """Return a column of times such that a number occurs at most once at each of them; empty if there is none."""
        times = [other for other in self.data.names if has_words(rf"{WAVE}|{TIME}", other) and other != name]
        for time in times:
            if 1 < self.distinct(time) <= MAX_KEY_LEVELS:
                pairs = self.data.codes(name).astype(np.int64) * self.data.level_count(time) + self.data.codes(time)
                if len(np.unique(pairs)) == len(pairs):
                    return time
        return ""

    def _differs_within(self, name: str) -> bool:
        """Return whether people who share a number differ in sex, as the members of households do."""
        sex = next(
            (other for other in self.data.names if has_words(SEX, other) and 1 < self.distinct(other) <= 5), None
        )
        if sex is None:
            return False
        numbers = self.data.codes(name).astype(np.int64)
        pairs = np.unique(numbers * self.data.level_count(sex) + self.data.codes(sex))
        shared = (np.bincount(numbers) > 1).sum()
        return bool(len(pairs) - len(np.unique(numbers)) > 0.1 * shared)

    @cached_property
    def _first_household(self) -> str:
        return next((name for name in self.data.names if self._is_household_number(name)), "")

    @cached_property
    def _number_by_values(self) -> tuple[str, Guess]:
        """A column without a telling name whose values number households or persons; empty if there is none."""
        none = "", Guess("other", "", "", "", "possible")
        if self.data.unit_columns or self._first_household or self._has_named_case:
            return none
        for name in (v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role is None):
            if has_words(NO_NUMBER, name):
                continue
            by_name = {guess.role for guess in self._own_roles(name)}
            if by_name - {"key"} or self._is_unit_number(name):
                continue
            if guess := self._unit_by_values(name):
                return name, guess
        return none

    def _unit_by_values(self, name: str) -> Guess | None:
        """Return the role of numbers that several records share and that agree in other columns, or that stand together."""
        values, shared = self.data.numbers(name), self._shared_columns(name)
        if len(shared) >= MIN_SHARED_COLUMNS:
            listed = join_names(shared)
            if time := self._wave_within(name):
                why = (
                    f"values: records that share a number agree in {listed}, and none repeats within a value of {time}"
                )
                return Guess("case", "", why, "", "possible")
            if any(has_words(SEX, other) for other in shared):
                why = f"values: records that share a number agree in {listed}: they seem to be of one person"
                return Guess("case", "", why, "", "possible")
            return Guess("household", "", f"values: records that share a number agree in {listed}", "", "possible")
        if _numbers_runs(values) and not self._wave_within(name):
            return Guess("household", "", "values: whole numbers, each in one run of rows", "", "possible")
        return None

    def _shared_columns(self, name: str) -> list[str]:
        """Return the columns in which all records with the same value of a number agree, although not by chance.

        They are no functions of an amount, which rise and fall rarely along it, and no texts that stand for the number.
        """
        if not _numbers_groups(self.data.numbers(name)):
            return []
        _, first, code, size = np.unique(
            self.data.numbers(name), return_index=True, return_inverse=True, return_counts=True
        )
        result = []
        for other in (other for other in self.data.names[:MAX_COMPARED_COLUMNS] if other != name):
            values, distinct = self.data.codes(other), self.distinct(other)
            is_code = distinct == len(first) and self.data.column(other).levels is not None
            if distinct < 2 or is_code or (values != values[first][code]).any():
                continue
            share = np.bincount(values) / len(values)
            steps = np.sign(np.diff(values[first].astype(np.int64)))
            turns = int((np.diff(steps[steps != 0]) != 0).sum())
            by_chance = float((1 - (share**2).sum()) * (size > 1).sum())
            if by_chance >= MIN_CHANCE_DISAGREEMENTS and turns >= MIN_TURNS * len(first):
                result.append(other)
        return result

    @cached_property
    def _has_named_case(self) -> bool:
        """Return whether a column numbers persons with several records by its name."""
        guesses = (next(self._own_roles(name), None) for name in self.data.names)
        return any(guess is not None and guess.role == "case" for guess in guesses)

    def _number_computed_into(self, name: str) -> str:
        """Return a number of persons or households of which a column is a function, or the reverse; empty if none."""
        sources = [self.functions[name].source] if name in self.functions else []
        targets = [target for target, computed in self.functions.items() if computed.source == name]
        return next((other for other in (*sources, *targets) if self._numbers_people(other)), "")

    def _numbers_people(self, name: str) -> bool:
        """Return whether a column numbers persons or households by its role, its name or its own values."""
        role = self.data.schema[name].role
        if role is not None:
            return role in ("identifier", "case", "household")
        mark = self.mark(name)
        roles = {guess.role for guess in self._own_roles(name)}
        return (mark is not None and mark.role == "identifier") or bool(roles - {"key"})

    @cached_property
    def functions(self) -> dict[str, Computed]:
        """Powers, logarithms and linear functions of other columns."""
        numeric = tuple(v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role != "drop")
        return self.data.view(find_functions_of_columns, numeric)

    @cached_property
    def _marks(self) -> dict[str, Mark | None]:
        return {}

    def _is_household_number(self, name: str) -> bool:
        return re.fullmatch(rf"({HOUSEHOLD})_?\d*", snake_case(name)) is not None and self.is_code(name)

    def _is_row_number(self, name: str) -> bool:
        """Return whether a column holds distinct whole numbers that identify records rather than measure something."""
        distinct = self.distinct(name)
        if distinct != len(self.data) or distinct < 10 or self.data.column(name).levels is not None:
            return False
        values = self.data.numbers(name)
        return not has_words(AMOUNT, name) and bool((values == np.rint(values)).all()) and is_record_number(values)

    def distinct(self, name: str) -> int:
        """Return the number of values that occur, missing not counted."""
        return self.data.view(count_distinct, name)

    def is_code(self, name: str) -> bool:
        column = self.data.column(name)
        if column.levels is not None:
            return True
        known = column.values[np.isfinite(column.values)]
        return bool((known == np.rint(known)).all())


def blank_codes(values: Array) -> Array:
    """Return numbers with values that look like codes for missing values set to NaN."""
    codes = number_codes(values)
    return np.where(np.isin(values, codes), np.nan, values) if codes else values


def find_functions_of_columns(data: Microdata, names: tuple[str, ...]) -> dict[str, Computed]:
    return find_functions({name: blank_codes(data.numbers(name)) for name in names})


def _numbers_groups(values: Array) -> bool:
    """Return whether whole numbers may number households: there are many, and a few records share each of them."""
    if not len(values) or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return False
    distinct, count = np.unique(values, return_counts=True)
    mean = len(values) / len(distinct)
    is_small = MIN_HOUSEHOLD_SIZE <= mean <= MAX_MEAN_HOUSEHOLD_SIZE and count.max() <= MAX_HOUSEHOLD_SIZE
    return bool(len(distinct) >= MIN_HOUSEHOLDS and is_small)


def _numbers_runs(values: Array) -> bool:
    """Return whether whole numbers without gaps of note number groups of several rows that stand together."""
    if not _numbers_groups(values):
        return False
    distinct, runs = np.unique(values), 1 + int((np.diff(values) != 0).sum())
    return bool(runs == len(distinct) and np.ptp(distinct) <= MAX_GRID_PER_HOUSEHOLD * len(distinct))


def count_distinct(data: Microdata, name: str) -> int:
    occurs = np.bincount(data.codes(name), minlength=1) > 0
    column = data.column(name)
    if column.levels is None:
        return int(occurs.sum()) - int(np.isnan(column.values).any())
    return int((occurs[: len(column.levels)] & ~column.levels.is_null().to_numpy()[: len(occurs)]).sum())
