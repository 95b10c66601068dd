"""Propose roles and kinds from names, labels, values and formulas. Stated roles are never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata, PlanError
from sdcmap.data.column_formulas import find_formulas, rounding
from sdcmap.data.identifiers import Mark, detect_identifier, has_words, is_record_number, snake_case
from sdcmap.data.schema import NOT_IN_FORMULAS
from sdcmap.explore.computed_columns import CodedColumn, Computed, find_indicator_sets, find_powers, find_recodes
from sdcmap.explore.missing_code_detection import is_mostly_numbers, number_codes
from sdcmap.explore.name_patterns import (
    AMOUNT,
    BODY,
    FINITE_POPULATION,
    HOUSEHOLD,
    INCLUSION,
    MAYBE_WEIGHT,
    NOT_NUMBERED,
    NUMBERED,
    ORDERED,
    PERSON,
    PERSON_NUMBER,
    PSU,
    REPLICATE,
    SEX,
    STRATUM,
    SURVEY_WEIGHT,
    TIME,
    UNORDERED,
    WAVE,
)
from sdcmap.methods.derive import parse_arithmetic

MAX_KEY_LEVELS = 50  # a variable with at most so many categories is proposed as a key
MAX_CODE_VALUES = 20  # whole numbers with at most so many values are codes of categories ...
MAX_NAMED_CODE_VALUES = 5000  # ... or so many if the name is that of a categorical variable
MIN_REPLICATES = 4  # so many numbered columns of one name are a set of replicate weights
MIN_DISTINCT_SHARE = 0.98  # of the records: a number that repeats more often numbers groups or persons of a panel
MIN_DISTINCT_NUMBERS = 10  # of persons or households; fewer distinct values are categories
MAX_HOUSEHOLD_SIZE = 25  # records with one household number, if the number is recognized by its values alone
MAX_GRID_PER_HOUSEHOLD = 5  # whole numbers between the smallest and the largest household number, per household
MAX_WEIGHT_SPREAD = 0.01  # relative standard deviation of a product or ratio that counts as constant
Certainty = Literal["stated", "certain", "likely", "possible"]


class Guess(NamedTuple):
    """A possible role of a column: `kind` "" keeps the kind, `letter` is its Safe Harbor class."""

    role: str
    kind: str
    why: str
    letter: str
    certainty: Certainty


@dataclass(frozen=True)
class Proposal:
    """The proposed role and kind of one column, the reason, how sure it is, and what was seen."""

    role: str  # a role, or "numeric" for an amount
    kind: str
    why: str = ""
    formula: str = ""
    rounding: float = 0.0  # the formula gives every known value within this
    safe_harbor: str = ""  # the letter of its class, A to R
    certainty: Certainty = "possible"
    evidence: str = ""  # counts and sums, no data value


def propose_roles(data: Microdata) -> dict[str, Proposal]:
    """Return a proposal for each column; a stated role is returned unchanged."""
    proposer = _Proposer(data)
    proposals = {name: proposer.proposal(name) for name in data.names}
    return {name: _without_wrong_formula(name, proposal, proposals) for name, proposal in proposals.items()}


def _without_wrong_formula(name: str, proposal: Proposal, proposals: Mapping[str, Proposal]) -> Proposal:
    """Return the proposal without its formula, if that uses a column of which a release has no values, or if no plan
    could contain it.
    """
    if not proposal.formula:
        return proposal
    try:
        names = (name, *parse_arithmetic(proposal.formula).names)
    except PlanError:  # it is too long, or a name has a backtick
        return replace(proposal, formula="", rounding=0.0)
    unusable = any(proposals[other].role in NOT_IN_FORMULAS for other in names)
    return replace(proposal, formula="", rounding=0.0) if unusable else proposal


@dataclass(frozen=True)
class _Proposer:
    data: Microdata

    def proposal(self, name: str) -> Proposal:
        variable = self.data.schema[name]
        formula = self.formulas.get(name, "")
        within = rounding(_blank_codes(self.data.numbers(name))) if formula else 0.0
        if variable.role is not None:
            mark = self._mark(name)
            letter = mark.letter if mark else ""
            return Proposal(variable.role, variable.kind, "stated", formula, within, letter, "stated")
        role, kind, why, letter, certainty = next(self._candidate_roles(name))
        evidence = self._evidence(name, role)
        if role == "drop":  # a column that is left out is not computed again
            formula, within = "", 0.0
        return Proposal(role, kind or variable.kind, why, formula, within, letter, certainty, evidence)

    def _evidence(self, name: str, role: str) -> str:
        """Return what the values show, without a value: how many are distinct, missing and shared, and sums of weights."""
        distinct, rows = self._distinct(name), len(self.data)
        missing = int(self.data.missing(name).sum())
        seen = [f"{distinct:,} distinct value{'' if distinct == 1 else 's'}"]
        if missing:
            seen.append(f"{missing:,} missing")
        if role in ("identifier", "household", "case", "psu", "stratum", "wave") and distinct:
            most = int(np.bincount(self.data.codes(name)[~self.data.missing(name)]).max())
            seen.append("none repeats" if most == 1 else f"up to {most:,} of {rows:,} rows share one")
        if role == "weight":
            seen.append(f"all above 0, they sum to {format_total(float(self.data.numbers(name).sum()))}")
        return ", ".join(seen)

    @cached_property
    def formulas(self) -> Mapping[str, str]:
        """The formulas between columns of which a release contains values; numbers of people and households have none."""
        numeric = tuple(
            v.name
            for v in self.data.schema.variables
            if v.kind == "numeric" and v.role not in NOT_IN_FORMULAS and not (v.role is None and self._is_id(v.name))
        )
        return self.data.view(_find_formulas, numeric)

    def _is_id(self, name: str) -> bool:
        """Return whether a numeric column numbers persons, households, strata or other units by its name or its values."""
        by_name = has_words(PSU, name) or has_words(STRATUM, name) or has_words(WAVE, name)
        return (by_name and self._is_code(name)) or self._has_identifier_role(name)

    def _candidate_roles(self, name: str) -> Iterator[Guess]:
        """Yield possible roles, most certain first."""
        data, label = self.data, self.data.schema[name].label
        kind, distinct = data.schema[name].kind, self._distinct(name)
        if distinct == 0:
            yield Guess("drop", "", "all values are missing", "", "certain")
        # Replicate weights before weights: their names contain the name of the weight.
        if re.fullmatch(REPLICATE, snake_case(name)) and name in self._numbered_sets:
            yield Guess("replicate", "", "name: one of a set of replicate weights", "", "likely")
        if kind == "numeric":
            yield from self._inclusion_probability(name)
            yield from self._weight(name)
        elif has_words(SURVEY_WEIGHT, name) and self._is_text_of_numbers(name):
            yield Guess(
                "drop", "", "a weight by its name, but its numbers are stored as text: convert them", "", "likely"
            )
        # Identifiers before keys: an unrecognized identifier would be released.
        mark = self._mark(name)
        if mark is not None and mark.role == "identifier":
            yield Guess("identifier", "", mark.why, mark.letter, "likely")
        # Numbers of persons and households may look like categories or amounts, so they come before keys.
        if name in self._recodes:
            why = f"computed: {self._recodes[name].words}; compute it again from the released file"
            yield Guess("drop", "", why, "", "certain")
        yield from self._identifier_roles(name, distinct)
        for role, pattern in (("psu", PSU), ("stratum", STRATUM)):
            if has_words(pattern, name) and distinct > 1 and self._is_code(name):
                yield Guess(role, "", "name", "", "likely")
        if has_words(WAVE, name) and 1 < distinct <= MAX_KEY_LEVELS:
            yield Guess("wave", "", "name", "", "likely")
        if name == self._wave_of_panel:
            yield Guess("wave", "", "the unit numbers repeat, but not within one of its values", "", "likely")
        letter = mark.letter if mark is not None else ""
        for pattern, category_kind in ((ORDERED, "ordinal"), (UNORDERED, "nominal")):
            if has_words(pattern, name, label) and distinct > 1:
                is_coded = kind == "numeric" and self._is_code(name) and distinct <= MAX_NAMED_CODE_VALUES
                source = "name" if has_words(pattern, name) else "label"
                yield Guess("key", category_kind if is_coded else "", source, letter, "likely")
        if mark is not None and letter:
            yield Guess(
                "key", "nominal" if kind == "numeric" and self._is_code(name) else "", mark.why, letter, "likely"
            )
        yield from self._by_kind(name)

    def _by_kind(self, name: str) -> Iterator[Guess]:
        """Yield the roles that only the type and the number of the values suggest."""
        data, kind, distinct, rows = self.data, self.data.schema[name].kind, self._distinct(name), len(self.data)
        levels = data.column(name).levels
        if levels is not None and levels.dtype.is_temporal():
            yield Guess("key", "", "a date", "C", "likely")
        # Such a column would be read as categories; with its codes stated it becomes numeric.
        if is_mostly_numbers(data, name) and distinct > MAX_KEY_LEVELS:
            yield Guess("drop", "", "numbers mixed with texts: state its codes for missing values", "", "likely")
        if kind != "numeric" and distinct > max(rows / 2, MAX_KEY_LEVELS):
            is_sure: Certainty = "likely" if distinct >= MIN_DISTINCT_SHARE * rows else "possible"
            yield Guess("identifier", "", "values: most records have a unique one", "R", is_sure)
        if distinct == 1:
            yield Guess("other", "", "all records have the same value", "", "certain")
        if kind != "numeric":
            if distinct <= MAX_KEY_LEVELS:
                yield Guess("key", "", self._set_of.get(name, "categories"), "", "likely")
            yield Guess("other", "", "texts with many values", "", "possible")
        # Few whole numbers are more likely codes or counts than amounts.
        if distinct <= MAX_CODE_VALUES and self._is_code(name) and rows > 2 * distinct:
            yield Guess("key", "ordinal", self._set_of.get(name, "whole numbers with few values"), "", "possible")
        if has_words(AMOUNT, name) or (not self._is_code(name) and distinct > MAX_CODE_VALUES):
            yield Guess("numeric", "", "an amount", "", "likely")
        yield Guess(
            "numeric", "", "numbers" if distinct > MAX_CODE_VALUES else "numbers with few values", "", "possible"
        )

    def _inclusion_probability(self, name: str) -> Iterator[Guess]:
        """Yield the role of inclusion probabilities, 1 over the weight: they would give back a masked weight."""
        values, weight = self.data.numbers(name), self._first_weight
        if has_words(FINITE_POPULATION, name) and self._distinct(name) > 1 and (values > 0).all():
            yield Guess("drop", "", "name: a finite population correction, which reveals the stratum", "", "likely")
        if self._distinct(name) < 2 or not ((values > 0) & (values <= 1)).all():
            return
        if weight not in ("", name) and _is_constant(values * self.data.numbers(weight)):
            yield Guess("drop", "", f"an inclusion probability: proportional to 1/{weight}", "", "certain")
        if has_words(INCLUSION, name):
            hint = "" if weight else ": 1 over it is a survey weight"
            yield Guess("drop", "", f"an inclusion probability by its name{hint}", "", "likely")

    def _weight(self, name: str) -> Iterator[Guess]:
        """Yield the role of a survey weight, as opposed to a body weight. A usable weight is above zero in all rows."""
        label, values = self.data.schema[name].label, self.data.numbers(name)
        is_survey = has_words(SURVEY_WEIGHT, name) or has_words(
            r"(survey|sampling|design|person|expansion)_\w*weight\w*", label
        )
        may_be = has_words(MAYBE_WEIGHT, name) or has_words(r"weight", label)
        by_values = not may_be and _is_scaled_weight(values)
        first = self._first_weight
        may_be_scaled = first not in ("", name) and self._distinct(name) > 1 and (values > 0).all()
        if may_be_scaled and _is_constant(values / self.data.numbers(first)):
            yield Guess("drop", "", f"proportional to the weight {first}", "", "certain")
        if not (is_survey or by_values or (may_be and not self._has_body_measures(name))):
            return
        invalid = int((~(values > 0)).sum())
        if invalid == len(values):
            return
        if self._distinct(name) < 2:
            yield Guess("other", "", "a weight by its name, but all records have the same value", "", "certain")
        if invalid:
            why = f"a weight by its name, but {invalid:,} rows are not above zero: repair these rows"
            yield Guess("drop", "", why, "", "likely")
        if name != first:
            yield Guess("drop", "", f"a further weight beside {first}: a file has one", "", "likely")
        by_sum = "values: above zero, and they sum to a population size or to the number of records"
        why = "name" if is_survey or may_be else by_sum
        yield Guess("weight", "", why, "", "likely" if is_survey else "possible")

    @cached_property
    def _first_weight(self) -> str:
        """The first usable weight, which varies and is above zero. A file has one weight; others are dropped."""
        if self.data.weight is not None:
            return self.data.weight
        numeric = [v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role is None]
        usable = [name for name in numeric if self._distinct(name) > 1 and (self.data.numbers(name) > 0).all()]
        usable = [n for n in usable if not (re.fullmatch(REPLICATE, snake_case(n)) and n in self._numbered_sets)]
        sure = [name for name in usable if has_words(SURVEY_WEIGHT, name)]
        likely = [name for name in usable if has_words(MAYBE_WEIGHT, name) and not self._has_body_measures(name)]
        return next(iter([*sure, *likely, *(n for n in usable if _is_scaled_weight(self.data.numbers(n)))]), "")

    def _has_body_measures(self, name: str) -> bool:
        """Return whether the file has body measures, such as a height or a label in kilograms."""
        others = [v for v in self.data.schema.variables if v.name != name]
        has_body_words = has_words(BODY + "|body", self.data.schema[name].label, name)
        has_body_words = has_body_words or any(has_words(BODY, v.name, v.label) for v in others)
        # The body mass index is weight / height**2.
        return has_body_words or any(name in formula and "**2" in formula for formula in self.formulas.values())

    @cached_property
    def _numbered_sets(self) -> set[str]:
        """The columns in sets of at least MIN_REPLICATES whose names differ only in a number."""
        stems: dict[str, list[str]] = {}
        for name in self.data.names:
            stems.setdefault(re.sub(r"\d+$", "", name), []).append(name)
        return {name for names in stems.values() if len(names) >= MIN_REPLICATES for name in names}

    def _identifier_roles(self, name: str, distinct: int) -> Iterator[Guess]:
        """Yield the roles of numbers of persons, households and other units."""
        rows = len(self.data)
        is_number = distinct > min(MIN_DISTINCT_NUMBERS, rows / 2)
        if self._is_household_number(name) and is_number:
            if distinct < rows and not self.data.household and name == self._first_household:
                yield Guess("household", "", "name", "", "likely")
            yield Guess("identifier", "", "name", "R", "likely")
        if name == self._household_by_values:
            yield Guess("household", "", "values: whole numbers, each in one run of rows", "", "possible")
        is_person = re.fullmatch(PERSON, snake_case(name)) is not None or has_words(PERSON_NUMBER, name)
        if is_number and (is_person or has_words(PERSON, name) or self._is_unit_number(name)):
            yield from self._repeated_number(name, distinct, is_person=is_person)
        if self._is_row_number(name, distinct):
            yield Guess("identifier", "", "values: they are record numbers", "R", "likely")

    def _repeated_number(self, name: str, distinct: int, *, is_person: bool) -> Iterator[Guess]:
        """Yield the role of a number of persons or units: it identifies them, unless several records share it."""
        rows = len(self.data)
        if distinct >= MIN_DISTINCT_SHARE * rows:
            yield Guess("identifier", "", "name", "R", "likely")
        elif self._wave_within(name):
            yield Guess("case", "", f"name; no value repeats within a value of {self._wave_within(name)}", "", "likely")
        elif not is_person:
            # the number of a school, a district or a firm: known to others, and no amount
            yield Guess(
                "key" if distinct <= rows / 2 else "identifier",
                "nominal",
                "name: a number, not an amount",
                "",
                "possible",
            )
        elif any(has_words(WAVE, other) for other in self.data.names):
            yield Guess("case", "", "name: a person number that repeats", "", "likely")
        elif not self.data.household and not self._first_household and self._differs_within(name):
            yield Guess(
                "household", "", "name: a number that repeats, and people who share it differ in sex", "", "possible"
            )
        elif distinct < rows / 2 or distinct < 0.9 * rows:
            yield Guess("case", "", "name: a person number that repeats", "", "possible")
        else:
            yield Guess("identifier", "", "name", "R", "possible")

    def _is_unit_number(self, name: str) -> bool:
        """Return whether a column numbers units of any kind by its name. Amounts and categories are no numbers of units."""
        snake = snake_case(name)
        if not re.fullmatch(NUMBERED, snake) or re.fullmatch(NOT_NUMBERED, snake) or has_words(AMOUNT, name):
            return False
        column = self.data.column(name)
        is_key = any(has_words(pattern, name) for pattern in (ORDERED, UNORDERED, PSU, STRATUM, SURVEY_WEIGHT))
        return column.levels is None and self._is_code(name) and not is_key

    def _wave_within(self, name: str) -> str:
        """Return a column of times such that a number occurs at most once at each of them; empty if there is none."""
        times = [other for other in self.data.names if has_words(rf"{WAVE}|{TIME}", other) and other != name]
        for time in times:
            if 1 < self._distinct(time) <= MAX_KEY_LEVELS:
                pairs = self.data.codes(name).astype(np.int64) * self.data.level_count(time) + self.data.codes(time)
                if len(np.unique(pairs)) == len(pairs):
                    return time
        return ""

    @cached_property
    def _wave_of_panel(self) -> str:
        """The column of times of a panel: the numbers of its persons or units repeat, but not at one time."""
        names = [name for name in self.data.names if self.data.schema[name].role in (None, "case")]
        numbers = [n for n in names if has_words(PERSON, n) or self._is_unit_number(n)]
        repeated = [
            n for n in numbers if MIN_DISTINCT_NUMBERS < self._distinct(n) < MIN_DISTINCT_SHARE * len(self.data)
        ]
        return next((wave for wave in map(self._wave_within, repeated) if wave), "")

    def _differs_within(self, name: str) -> bool:
        """Return whether people who share a number differ in sex, as the members of households do."""
        sex = next(
            (other for other in self.data.names if has_words(SEX, other) and 1 < self._distinct(other) <= 5), None
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
    def _household_by_values(self) -> str:
        """A column without a telling name that numbers groups of rows which stand together; empty if there is none."""
        if self.data.household or self._first_household:
            return ""
        numeric = [v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role is None]
        numeric = [name for name in numeric if not has_words(rf"{AMOUNT}|{ORDERED}|{UNORDERED}|{TIME}", name)]
        runs = (n for n in numeric if _numbers_runs(self.data.numbers(n)) and not re.fullmatch(PERSON, snake_case(n)))
        return next((name for name in runs if not has_words(PERSON_NUMBER, name) and not self._wave_within(name)), "")

    @cached_property
    def _recodes(self) -> Mapping[str, Computed]:
        """Columns that others determine: indicators, other codes of a category, and powers of a key."""
        data = self.data
        candidates = [v for v in data.schema.variables if v.role not in ("identifier", "drop")]
        coded = tuple(v.name for v in candidates if self._is_code(v.name) and not self._has_identifier_role(v.name))
        numeric = tuple(v.name for v in candidates if v.kind == "numeric" and not self._has_identifier_role(v.name))
        powers = data.view(_find_powers, numeric)
        # a power of an amount has a formula, and is computed again in every release
        of_keys = {name: c for name, c in powers.items() if has_words(rf"{ORDERED}|{UNORDERED}", c.source)}
        found = {**data.view(_find_recodes, coded), **of_keys}
        return {name: computed for name, computed in found.items() if data.schema[name].role is None}

    @cached_property
    def _marks(self) -> dict[str, Mark | None]:
        return {}

    def _mark(self, name: str) -> Mark | None:
        """Return what kind of identifier a column seems to be; detected once."""
        if name not in self._marks:
            self._marks[name] = detect_identifier(self.data, name)
        return self._marks[name]

    def _has_identifier_role(self, name: str) -> bool:
        mark = self._mark(name)
        roles = {guess.role for guess in self._identifier_roles(name, self._distinct(name))}
        return (mark is not None and mark.role == "identifier") or bool(roles - {"key"})

    @cached_property
    def _set_of(self) -> Mapping[str, str]:
        """The columns of indicators of which exactly one is 1, with the reason."""
        numeric = tuple(v.name for v in self.data.schema.variables if v.kind == "numeric")
        sets = self.data.view(_find_indicator_sets, numeric)
        words = "one of {0} indicators of which exactly one is 1 in each record: make one column of them"
        return {name: words.format(len(names)) for names in sets for name in names}

    def _is_household_number(self, name: str) -> bool:
        return re.fullmatch(rf"({HOUSEHOLD})_?\d*", snake_case(name)) is not None and self._is_code(name)

    def _is_row_number(self, name: str, distinct: int) -> bool:
        """Return whether a column holds distinct whole numbers that identify records rather than measure something."""
        if distinct != len(self.data) or distinct < 10 or self.data.column(name).levels is not None:
            return False
        values = self.data.numbers(name)
        return not has_words(AMOUNT, name) and bool((values == np.rint(values)).all()) and is_record_number(values)

    def _is_text_of_numbers(self, name: str) -> bool:
        """Return whether all texts of a column are numbers."""
        levels = self.data.column(name).levels
        if levels is None or levels.dtype != pl.String:
            return False
        return bool(levels.drop_nulls().str.contains(r"^\s*\d+([.,]\d+)?\s*$").all())

    def _distinct(self, name: str) -> int:
        """Return the number of values that occur, missing not counted."""
        return self.data.view(_count_distinct, name)

    def _is_code(self, name: str) -> bool:
        column = self.data.column(name)
        if column.levels is not None:
            return True
        known = column.values[np.isfinite(column.values)]
        return bool((known == np.rint(known)).all())


def _find_formulas(data: Microdata, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the formulas of columns that others determine within rounding."""
    columns = {name: _blank_codes(data.numbers(name)) for name in names}
    return {name: text for name, text in find_formulas(columns).items() if _is_tested(text, name, columns)}


def _is_tested(formula: str, name: str, columns: Mapping[str, Array]) -> bool:
    """Return whether the computed column varies where the formula has a value: 0 = age / gain tests nothing."""
    known = np.isfinite(parse_arithmetic(formula).values(columns)) & np.isfinite(columns[name])
    return bool(known.any() and np.ptp(columns[name][known]) > 0)


def _blank_codes(values: Array) -> Array:
    """Return numbers with values that look like codes for missing values set to NaN."""
    codes = number_codes(values)
    return np.where(np.isin(values, codes), np.nan, values) if codes else values


def _find_recodes(data: Microdata, names: tuple[str, ...]) -> Mapping[str, Computed]:
    """Return the columns that repeat what another column says."""
    columns = {}
    for name in names:
        missing, column = data.missing(name), data.column(name)
        distinct, codes = np.unique(data.codes(name)[~missing], return_inverse=True)
        every = np.full(len(data), -1, dtype=np.int64)
        every[~missing] = codes
        is_text = column.levels is not None and not column.levels.dtype.is_numeric()
        columns[name] = CodedColumn(every, len(distinct), is_ordered=not is_text, is_text=is_text)
    return find_recodes(columns)


def _find_powers(data: Microdata, names: tuple[str, ...]) -> Mapping[str, Computed]:
    return find_powers({name: _blank_codes(data.numbers(name)) for name in names})


def _find_indicator_sets(data: Microdata, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(found) for found in find_indicator_sets({name: data.numbers(name) for name in names}))


def _is_constant(values: Array) -> bool:
    """Return whether known numbers vary by at most MAX_WEIGHT_SPREAD of their mean."""
    known = values[np.isfinite(values)]
    return len(known) == len(values) > 2 and bool(known.std() <= MAX_WEIGHT_SPREAD * abs(known.mean()))


def _numbers_runs(values: Array) -> bool:
    """Return whether whole numbers without gaps of note number groups of several rows that stand together."""
    if not len(values) or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return False
    distinct, count = np.unique(values, return_counts=True)
    runs = 1 + int((np.diff(values) != 0).sum())
    is_grouped = runs == len(distinct) >= 30 and 1.2 <= len(values) / len(distinct) <= 10
    return bool(
        is_grouped and count.max() <= MAX_HOUSEHOLD_SIZE and np.ptp(distinct) <= MAX_GRID_PER_HOUSEHOLD * len(distinct)
    )


def format_total(total: float) -> str:
    """Return a total in words.

    >>> format_total(1_234_567), format_total(4580), format_total(2.5e9)
    ('1.2 million', '4,580', '2.5 billion')
    """
    for unit, words in ((1e9, "billion"), (1e6, "million")):
        if abs(total) >= unit:
            return f"{total / unit:.3g} {words}" if total >= 100 * unit else f"{total / unit:.2g} {words}"
    return f"{total:,.0f}"


def _count_distinct(data: Microdata, name: str) -> int:
    occurs = np.bincount(data.codes(name), minlength=1) > 0
    column = data.column(name)
    if column.levels is None:
        return int(occurs.sum()) - int(np.isnan(column.values).any())
    return int((occurs[: len(column.levels)] & ~column.levels.is_null().to_numpy()[: len(occurs)]).sum())


def _is_scaled_weight(values: Array) -> bool:
    """Return whether numbers look like scaled weights: positive, not whole, with mean 1 or a sum in whole thousands."""
    if len(values) < 30 or not (values > 0).all() or (values == np.rint(values)).all():
        return False
    total, slack = float(values.sum()), max(0.01, rounding(values) * float(np.sqrt(len(values))))
    sums_to_population = total > 2 * len(values) and abs(total - 1000 * round(total / 1000)) <= slack
    return sums_to_population or abs(total - len(values)) < 1e-4 * len(values)


ROLE_INDEPENDENT_VIEWS = (
    _count_distinct,
    _find_formulas,
    _find_recodes,
    _find_powers,
    _find_indicator_sets,
)  # their results do not depend on roles, so they can be reused
