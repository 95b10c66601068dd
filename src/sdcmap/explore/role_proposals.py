"""Propose roles and kinds from names, labels, values and formulas. Stated roles are never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata, PlanError
from sdcmap.data.column_formulas import find_formulas, rounding
from sdcmap.data.identifiers import has_words, snake_case
from sdcmap.data.schema import NOT_IN_FORMULAS
from sdcmap.explore.computed_columns import (
    MAX_GROUPS,
    CodedColumn,
    Computed,
    find_indicator_sets,
    find_interactions,
    find_recodes,
)
from sdcmap.explore.missing_code_detection import is_mostly_numbers
from sdcmap.explore.name_patterns import (
    AMOUNT,
    BODY,
    FINITE_POPULATION,
    INCLUSION,
    MAYBE_WEIGHT,
    MAYBE_WHOLE_NAME,
    ORDERED,
    PSU,
    REPLICATE,
    STRATUM,
    SURVEY_WEIGHT,
    UNORDERED,
    WAVE,
)
from sdcmap.explore.unit_numbers import (
    MAX_CODE_VALUES,
    MAX_KEY_LEVELS,
    MIN_DISTINCT_SHARE,
    Certainty,
    Guess,
    UnitNumbers,
    blank_codes,
    count_distinct,
    find_functions_of_columns,
)
from sdcmap.methods.derive import parse_arithmetic

MAX_NAMED_CODE_VALUES = 5000  # whole numbers of so many values are codes if the name is that of a categorical variable
MIN_REPLICATES = 4  # so many numbered columns of one name are a set of replicate weights
MAX_WEIGHT_SPREAD = 0.01  # relative standard deviation of a product or ratio that counts as constant
COMPUTED = "computed: {}; compute it again from the released file"


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
    return {name: _with_usable_formula(name, proposal, proposals) for name, proposal in proposals.items()}


def _with_usable_formula(name: str, proposal: Proposal, proposals: Mapping[str, Proposal]) -> Proposal:
    """Return the proposal without its formula, if that uses a column of which a release has no values, or if no plan
    could contain it. What is computed from keys alone is left out: many methods make broad groups of them.
    """
    if not proposal.formula:
        return proposal
    try:
        names = (name, *parse_arithmetic(proposal.formula).names)
    except PlanError:  # it is too long, or a name has a backtick
        return replace(proposal, formula="", rounding=0.0)
    if any(proposals[other].role in NOT_IN_FORMULAS for other in names):
        return replace(proposal, formula="", rounding=0.0)
    if proposal.certainty != "stated" and all(proposals[other].role == "key" for other in names[1:]):
        why = COMPUTED.format(proposal.formula)
        return replace(proposal, role="drop", why=why, formula="", rounding=0.0, certainty="certain")
    return proposal


@dataclass(frozen=True)
class _Proposer:
    data: Microdata

    @cached_property
    def units(self) -> UnitNumbers:
        return UnitNumbers(self.data)

    def proposal(self, name: str) -> Proposal:
        variable = self.data.schema[name]
        formula = self.formulas.get(name, "")
        within = rounding(blank_codes(self.data.numbers(name))) if formula else 0.0
        if variable.role is not None:
            mark = self.units.mark(name)
            letter = mark.letter if mark else ""
            return Proposal(variable.role, variable.kind, "stated", formula, within, letter, "stated")
        role, kind, why, letter, certainty = next(self._candidate_roles(name))
        evidence = self._evidence(name, role)
        if role == "drop":  # a column that is left out is not computed again
            formula, within = "", 0.0
        return Proposal(role, kind or variable.kind, why, formula, within, letter, certainty, evidence)

    def _evidence(self, name: str, role: str) -> str:
        """Return what the values show, without a value: how many are distinct, missing and shared, and sums of weights."""
        distinct, rows = self.units.distinct(name), len(self.data)
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
        numeric = [
            v.name
            for v in self.data.schema.variables
            if v.kind == "numeric" and v.role not in NOT_IN_FORMULAS and not (v.role is None and self._is_id(v.name))
            if v.name not in self._without_formula
        ]
        # of columns that determine each other the last one is computed, and no key is
        names = tuple(sorted(numeric, key=lambda name: not has_words(rf"{ORDERED}|{UNORDERED}", name)))
        return self.data.view(_find_formulas, names)

    def _is_id(self, name: str) -> bool:
        """Return whether a numeric column numbers persons, households, strata or other units by its name or its values."""
        by_name = has_words(PSU, name) or has_words(STRATUM, name) or has_words(WAVE, name)
        return (by_name and self.units.is_code(name)) or self.units.is_number(name)

    def _candidate_roles(self, name: str) -> Iterator[Guess]:
        """Yield possible roles, most certain first."""
        data, label = self.data, self.data.schema[name].label
        kind, distinct = data.schema[name].kind, self.units.distinct(name)
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
        mark = self.units.mark(name)
        if mark is not None and mark.role == "identifier" and not self.units.is_repeated_person(name):
            yield Guess("identifier", "", mark.why, mark.letter, "likely")
        # Numbers of persons and households may look like categories or amounts, so they come before keys.
        if name in self._recodes:
            yield Guess("drop", "", COMPUTED.format(self._recodes[name].words), "", "certain")
        for guess in self.units.roles(name):
            if guess.role == "case" and name != self.units.case:
                why = f"a further number of persons beside {self.units.case}"
                yield Guess("identifier", "", why, guess.letter or "R", guess.certainty)
            yield guess
        for role, pattern in (("psu", PSU), ("stratum", STRATUM)):
            if has_words(pattern, name) and distinct > 1 and self.units.is_code(name):
                yield Guess(role, "", "name", "", "likely")
        if name == self.units.wave_of_panel or (has_words(WAVE, name) and 1 < distinct <= MAX_KEY_LEVELS):
            yield self._wave(name)
        letter = mark.letter if mark is not None else ""
        for pattern, category_kind in ((ORDERED, "ordinal"), (UNORDERED, "nominal")):
            if has_words(pattern, name, label) and distinct > 1:
                is_coded = kind == "numeric" and self.units.is_code(name) and distinct <= MAX_NAMED_CODE_VALUES
                source = "name" if has_words(pattern, name) else "label"
                yield Guess("key", category_kind if is_coded else "", source, letter, "likely")
        if mark is not None and letter:
            yield Guess(
                "key", "nominal" if kind == "numeric" and self.units.is_code(name) else "", mark.why, letter, "likely"
            )
        yield from self._by_kind(name)

    def _by_kind(self, name: str) -> Iterator[Guess]:
        """Yield the roles that only the type and the number of the values suggest."""
        data, kind, distinct, rows = self.data, self.data.schema[name].kind, self.units.distinct(name), len(self.data)
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
        if distinct <= MAX_CODE_VALUES and self.units.is_code(name) and rows > 2 * distinct:
            yield Guess("key", "ordinal", self._set_of.get(name, "whole numbers with few values"), "", "possible")
        if has_words(AMOUNT, name) or (not self.units.is_code(name) and distinct > MAX_CODE_VALUES):
            yield Guess("numeric", "", "an amount", "", "likely")
        yield Guess(
            "numeric", "", "numbers" if distinct > MAX_CODE_VALUES else "numbers with few values", "", "possible"
        )

    def _wave(self, name: str) -> Guess:
        """Return the role of the column of times of a panel: a key where a case says which records are of one person."""
        is_coded = self.data.schema[name].kind == "numeric" and self.units.is_code(name)
        if self.units.case:
            why = f"the time of a record: a key, because {self.units.case} tells which records belong together"
            return Guess("key", "ordinal" if is_coded else "", why, "", "likely")
        return Guess("wave", "", "name; no column tells which records belong together", "", "likely")

    def _inclusion_probability(self, name: str) -> Iterator[Guess]:
        """Yield the role of inclusion probabilities, 1 over the weight: they would give back a masked weight."""
        values, weight = self.data.numbers(name), self._first_weight
        if has_words(FINITE_POPULATION, name) and self.units.distinct(name) > 1 and (values > 0).all():
            yield Guess("drop", "", "name: a finite population correction, which reveals the stratum", "", "likely")
        if self.units.distinct(name) < 2 or not (values > 0).all():
            return
        if weight not in ("", name) and _is_constant(values * self.data.numbers(weight)):
            yield Guess("drop", "", f"an inclusion probability: proportional to 1/{weight}", "", "certain")
        if (values <= 1).all() and has_words(INCLUSION, name):
            hint = "" if weight else ": 1 over it is a survey weight"
            yield Guess("drop", "", f"an inclusion probability by its name{hint}", "", "likely")

    def _weight(self, name: str) -> Iterator[Guess]:
        """Yield the role of a survey weight, as opposed to a body weight. A usable weight is above zero in all rows."""
        label, values = self.data.schema[name].label, self.data.numbers(name)
        is_survey = self._is_survey_weight_name(name) or has_words(
            r"(survey|sampling|design|person|expansion)_\w*weight\w*", label
        )
        may_be = self._may_be_weight(name) or has_words(r"weight", label)
        by_values = not may_be and _is_scaled_weight(values)
        first = self._first_weight
        may_be_scaled = first not in ("", name) and self.units.distinct(name) > 1 and (values > 0).all()
        if may_be_scaled and _is_constant(values / self.data.numbers(first)):
            yield Guess("drop", "", f"proportional to the weight {first}", "", "certain")
        if not (is_survey or by_values or (may_be and not self._has_body_measures(name))):
            return
        invalid = int((~(values > 0)).sum())
        if invalid == len(values):
            return
        if self.units.distinct(name) < 2:
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
        usable = [name for name in numeric if self.units.distinct(name) > 1 and (self.data.numbers(name) > 0).all()]
        usable = [n for n in usable if not (re.fullmatch(REPLICATE, snake_case(n)) and n in self._numbered_sets)]
        sure = [name for name in usable if self._is_survey_weight_name(name)]
        likely = [name for name in usable if self._may_be_weight(name) and not self._has_body_measures(name)]
        return next(iter([*sure, *likely, *(n for n in usable if _is_scaled_weight(self.data.numbers(n)))]), "")

    def _is_survey_weight_name(self, name: str) -> bool:
        """Return whether a name is that of a survey weight, and not of a body weight, which may have the same words."""
        is_body = has_words(BODY, name, self.data.schema[name].label)
        return has_words(SURVEY_WEIGHT, name) and not is_body and not re.fullmatch(MAYBE_WHOLE_NAME, snake_case(name))

    def _may_be_weight(self, name: str) -> bool:
        """Return whether a name is that of a survey weight or of something else."""
        is_whole = re.fullmatch(MAYBE_WHOLE_NAME, snake_case(name)) is not None
        return has_words(MAYBE_WEIGHT, name) or (is_whole and self.units.distinct(name) > MAX_CODE_VALUES)

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

    @cached_property
    def _interactions(self) -> dict[str, Computed]:
        """Columns that equal another one for some categories of a third column, and are 0 for the others."""
        return self.data.view(_find_interactions, self._columns_with_values)

    @cached_property
    def _columns_with_values(self) -> tuple[str, ...]:
        """The columns that are neither dropped nor numbers of people, households or other units."""
        candidates = (v.name for v in self.data.schema.variables if v.role not in ("identifier", "drop"))
        return tuple(name for name in candidates if not self.units.is_number(name))

    @cached_property
    def _without_formula(self) -> set[str]:
        """Computed columns of which no formula is proposed: interactions, functions of keys, and standardized columns."""
        keys = rf"{ORDERED}|{UNORDERED}"
        functions = {n for n, one in self.units.functions.items() if one.has_constant or has_words(keys, one.source)}
        return functions | self._interactions.keys()

    @cached_property
    def _recodes(self) -> Mapping[str, Computed]:
        """Columns that others determine: indicators, other codes of a category, interactions, and functions of a column.

        A function of an amount that a formula states is computed again in every release, so it is none of these.
        """
        names = self._columns_with_values
        computed = {name: one for name, one in (self._interactions | self.units.functions).items() if name in names}
        # a column is no code of what is computed from it
        original = (name for name in names if name not in computed and name not in self.formulas)
        found = self.data.view(_find_recodes, tuple(filter(self.units.is_code, original))) | computed
        return {
            name: one
            for name, one in found.items()
            if name not in self.formulas and self.data.schema[name].role is None
        }

    @cached_property
    def _set_of(self) -> Mapping[str, str]:
        """The columns of indicators of which exactly one is 1, with the reason."""
        numeric = tuple(v.name for v in self.data.schema.variables if v.kind == "numeric")
        sets = self.data.view(_find_indicator_sets, numeric)
        words = "one of {0} indicators of which exactly one is 1 in each record: make one column of them"
        return {name: words.format(len(names)) for names in sets for name in names}

    def _is_text_of_numbers(self, name: str) -> bool:
        """Return whether all texts of a column are numbers."""
        levels = self.data.column(name).levels
        if levels is None or levels.dtype != pl.String:
            return False
        return bool(levels.drop_nulls().str.contains(r"^\s*\d+([.,]\d+)?\s*$").all())


def _find_formulas(data: Microdata, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the formulas of columns that others determine within rounding."""
    columns = {name: blank_codes(data.numbers(name)) for name in names}
    return {name: text for name, text in find_formulas(columns).items() if _is_tested(text, name, columns)}


def _is_tested(formula: str, name: str, columns: Mapping[str, Array]) -> bool:
    """Return whether the computed column varies where the formula has a value: 0 = age / gain tests nothing."""
    known = np.isfinite(parse_arithmetic(formula).values(columns)) & np.isfinite(columns[name])
    return bool(known.any() and np.ptp(columns[name][known]) > 0)


def _find_recodes(data: Microdata, names: tuple[str, ...]) -> dict[str, Computed]:
    """Return the columns that repeat what another column says."""
    return find_recodes(_code_columns(data, names))


def _code_columns(data: Microdata, names: tuple[str, ...]) -> dict[str, CodedColumn]:
    columns = {}
    for name in names:
        missing, column = data.missing(name), data.column(name)
        distinct, codes = np.unique(data.codes(name)[~missing], return_inverse=True)
        every = np.full(len(data), -1, dtype=np.int64)
        every[~missing] = codes
        is_text = column.levels is not None and not column.levels.dtype.is_numeric()
        columns[name] = CodedColumn(every, len(distinct), is_ordered=not is_text, is_text=is_text)
    return columns


def _find_interactions(data: Microdata, names: tuple[str, ...]) -> dict[str, Computed]:
    numbers = {name: data.numbers(name) for name in names if data.column(name).levels is None}
    few = tuple(name for name in names if data.view(count_distinct, name) <= MAX_GROUPS)
    return find_interactions(numbers, _code_columns(data, few))


def _find_indicator_sets(data: Microdata, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(found) for found in find_indicator_sets({name: data.numbers(name) for name in names}))


def _is_constant(values: Array) -> bool:
    """Return whether known numbers vary by at most MAX_WEIGHT_SPREAD of their mean."""
    known = values[np.isfinite(values)]
    return len(known) == len(values) > 2 and bool(known.std() <= MAX_WEIGHT_SPREAD * abs(known.mean()))


def format_total(total: float) -> str:
    """Return a total in words.

    >>> format_total(1_234_567), format_total(4580), format_total(2.5e9)
    ('1.2 million', '4,580', '2.5 billion')
    """
    for unit, words in ((1e9, "billion"), (1e6, "million")):
        if abs(total) >= unit:
            return f"{total / unit:.3g} {words}" if total >= 100 * unit else f"{total / unit:.2g} {words}"
    return f"{total:,.0f}"


def _is_scaled_weight(values: Array) -> bool:
    """Return whether numbers look like scaled weights: positive, not whole, with mean 1 or a sum in whole thousands."""
    if len(values) < 30 or not (values > 0).all() or (values == np.rint(values)).all():
        return False
    total, slack = float(values.sum()), max(0.01, rounding(values) * float(np.sqrt(len(values))))
    sums_to_population = total > 2 * len(values) and abs(total - 1000 * round(total / 1000)) <= slack
    return sums_to_population or abs(total - len(values)) < 1e-4 * len(values)


ROLE_INDEPENDENT_VIEWS = (
    count_distinct,
    _find_formulas,
    _find_recodes,
    find_functions_of_columns,
    _find_interactions,
    _find_indicator_sets,
)  # their results do not depend on roles, so they can be reused
