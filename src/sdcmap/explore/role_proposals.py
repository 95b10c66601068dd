"""Propose roles and kinds from names, labels, values and formulas. Stated roles are never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.identifiers import detect_identifier, has_words, is_record_number, snake_case
from sdcmap.explore.column_formulas import MAX_COLUMNS, find_formulas, rounding
from sdcmap.explore.missing_code_detection import is_mostly_numbers, number_codes

MAX_KEY_LEVELS = 50  # a variable with at most so many categories is proposed as a key
MAX_CODE_VALUES = 20  # whole numbers with at most so many values are codes of categories ...
MAX_NAMED_CODE_VALUES = 5000  # ... or so many if the name is that of a categorical variable
MIN_REPLICATES = 4  # so many numbered columns of one name are a set of replicate weights

REPLICATE = r"(pwgtp|wgtp|rep_?w\w*|brr\w*?|jk\w*?|bsw\w*?|boot\w*?|wrep\w*?|wt_?rep\w*?)_?\d+"
SURVEY_WEIGHT = (
    r"pwgtp|wgtp|fnlwgt|perwt|hhwt|asecwt|wtfinl|earnwt|genwt|stwt|finalwt|llcpwt|wt(int|mec|ss|sup)\w*|(\w*_|[adfhps])?wgh?t\w*|"
    r"(psp?|[adp]n?)w(gh?t|eight)|w?pond\w*|fexp\w*|fac(tor)?_?exp\w*|coef_?(elev|pond)\w*|hochrechnung\w*|hrf|"
    r"[hp]hrf|(hh|pers|[dhp])?gew|(design|person(en)?|haushalts?|kalibrier(ungs)?)_?gewicht|"
    r"(survey|final|design|sampling|person|cal\w*|grossing|expansion)_?(weights?|wt|factor)|[adp]?weight_?(factor|final)"
)
MAYBE_WEIGHT = r"weights?|wt\w?|gewicht\w*|peso|poids\w*|pesi?|vikt|weging\w*|w"
BODY = (
    r"height|stature|groesse|gr\u00f6\u00dfe|koerpergr\w*|taille|talla|altura|estatura|lengte|statura|bmi|waist|hip|obes\w*|kg|"
    r"pounds?|lbs"
)
HOUSEHOLD = (  # matched against the whole name, so that household_income does not match
    r"hid|hh|serial(no)?|household|haushalt|hogar|menage|ménage|huishouden|famil(y|ia|le)|"
    r"(\w+_)?(hh|household|haushalts?|hogar|menage|ménage|huishoudens?|fam|family|familie|familien)_?"
    r"(id|ident|nr|no|num|nummer|number|numero|key|code|kennung)|"
    r"(id|nr|no|num|numero)_(hh|household|haushalt|hogar|menage|ménage|huishouden|family|familie)"
)
PERSON = (
    r"(pers(on|onen|onal)?_?|case_?|row_?|respondent_?)?(id|nr|no|number)|recid|pid|respondent|lfd_?nr|index|key|uuid|"
    r"xwaveid"
)
PSU = r"\w*psu|upm|cluster(_?id)?|primary_sampling_unit|klumpen"
STRATUM = r"strat(a|um)?(_?id)?|sdmvstra|estrato|schicht(nr)?|strate"
WAVE = r"wave|welle|vague|ola|panel_?year|survey_?year|syear|round"
ORDERED = (
    r"age\w{0,2}|alter|edad|eta|leeftijd|idade|edu\w*|schl|isced\w*|bildung\w*|school\w*|degree|diplom\w*|estudios|"
    r"birth_?(year|month)|yob|geburtsjahr|born|hh_?size|household_?size|haushaltsgr\w*|persons|n_?persons|children|kinder|enfants"
)
UNORDERED = (
    r"sex|gender|geschl\w*|sexe|sexo|genre|geslacht|sesso|region\w*|state|st|province|provincia|canton|kanton|bundesland|land|"
    r"nuts\d?|msa|metro\w*|country|nation\w*|citizen\w*|cit|staatsang\w*|birth_?(place|country)|pobp|urban|rural|occ\w{0,2}|"
    r"occupation\w*|isco\w*|beruf\w*|job(_?title|_?code)?|profession\w*|ocup\w*|nace|naics\w*|indp|industry|branche|soc\w?|"
    r"rac\w{0,4}|race\w*|ethni\w*|hisp\w*|relig\w*|konfession|language|sprache|langue|mar(_?stat\w*|ital\w*)?|familienstand|"
    r"famst\w*|civil(_?status)?|estado_civil|disab\w*|veteran|military|employer|department|position"
)


@dataclass(frozen=True)
class Proposal:
    """The proposed role and kind of one column, and the reason."""

    role: str  # a role, or "numeric" for an amount
    kind: str
    why: str = ""
    formula: str = ""
    safe_harbor: str = ""  # the letter of its class, A to R


def propose_roles(data: Microdata) -> dict[str, Proposal]:
    """Return a proposal for each column; a stated role is returned unchanged."""
    proposer = _Proposer(data)
    return {name: proposer.proposal(name) for name in data.names}


@dataclass(frozen=True)
class _Proposer:
    data: Microdata

    def proposal(self, name: str) -> Proposal:
        variable = self.data.schema[name]
        formula = self.formulas.get(name, "")
        if variable.role is not None:
            mark = detect_identifier(self.data, name)
            return Proposal(variable.role, variable.kind, "stated", formula, mark.letter if mark else "")
        role, kind, why, letter = next(self._candidate_roles(name))
        return Proposal(role, kind or variable.kind, why, formula, letter)

    @cached_property
    def formulas(self) -> Mapping[str, str]:
        known = [v for v in self.data.schema.variables if v.role not in ("identifier", "drop")]
        numeric = tuple(v.name for v in known if v.kind == "numeric")
        return self.data.view(_find_formulas, numeric) if len(numeric) <= MAX_COLUMNS else {}

    def _candidate_roles(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield possible roles, most certain first: role, kind ("" keeps the kind), reason, Safe Harbor class."""
        data, label = self.data, self.data.schema[name].label
        kind, distinct, rows = data.schema[name].kind, self._distinct(name), len(data)
        if distinct == 0:
            yield "drop", "", "all values are missing", ""
        # Replicate weights before weights: their names contain the name of the weight.
        if re.fullmatch(REPLICATE, snake_case(name)) and name in self._numbered_sets:
            yield "replicate", "", "name: one of a set of replicate weights", ""
        if kind == "numeric":
            yield from self._weight(name)
        # Identifiers before keys: an unrecognized identifier would be released.
        mark = detect_identifier(data, name)
        if mark is not None and mark.role == "identifier":
            yield "identifier", "", mark.why, mark.letter
        # Numbers of persons and households may look like categories or amounts, so they come before keys.
        yield from self._identifier_roles(name, distinct)
        for role, pattern in (("psu", PSU), ("stratum", STRATUM)):
            if has_words(pattern, name) and distinct > 1 and self._is_code(name):
                yield role, "", "name", ""
        if has_words(WAVE, name) and 1 < distinct <= MAX_KEY_LEVELS:
            yield "wave", "", "name", ""
        letter = mark.letter if mark is not None else ""
        for pattern, category_kind in ((ORDERED, "ordinal"), (UNORDERED, "nominal")):
            if has_words(pattern, name, label) and distinct > 1:
                is_coded = kind == "numeric" and self._is_code(name) and distinct <= MAX_NAMED_CODE_VALUES
                yield "key", category_kind if is_coded else "", "name" if has_words(pattern, name) else "label", letter
        if mark is not None and letter:
            yield "key", "nominal" if kind == "numeric" and self._is_code(name) else "", mark.why, letter
        levels = data.column(name).levels
        if levels is not None and levels.dtype.is_temporal():
            yield "key", "", "a date", "C"
        # Such a column would be read as categories; with its codes stated it becomes numeric.
        if is_mostly_numbers(data, name) and distinct > MAX_KEY_LEVELS:
            yield "drop", "", "numbers mixed with texts: state its codes for missing values", ""
        if kind != "numeric" and distinct > max(rows / 2, MAX_KEY_LEVELS):
            yield "identifier", "", "values: most records have a unique one", "R"
        if kind != "numeric":
            is_key = 1 < distinct <= MAX_KEY_LEVELS
            yield "key" if is_key else "other", "", "categories" if is_key else "", ""
        # Few whole numbers are more likely codes or counts than amounts.
        if 1 < distinct <= MAX_CODE_VALUES and self._is_code(name) and rows > 2 * distinct:
            yield "key", "ordinal", "whole numbers with few values", ""
        yield "numeric" if distinct > 1 else "other", "", "", ""

    def _weight(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield the role of a survey weight, as opposed to a body weight. A usable weight is above zero in all rows."""
        label, values = self.data.schema[name].label, self.data.numbers(name)
        is_survey = has_words(SURVEY_WEIGHT, name) or has_words(
            r"(survey|sampling|design|person|expansion)_\w*weight\w*", label
        )
        may_be = has_words(MAYBE_WEIGHT, name) or has_words(r"weight", label)
        by_values = not may_be and _is_scaled_weight(values)
        if not (is_survey or by_values or (may_be and not self._has_body_measures(name))):
            return
        invalid = int((~(values > 0)).sum())
        if invalid == len(values) or self._distinct(name) < 2:
            return
        if invalid:
            yield "drop", "", f"a weight by its name, but {invalid:,} rows are not above zero: repair these rows", ""
        by_sum = "values: above zero, and they sum to a population size or to the number of records"
        role = "weight" if name == self._first_weight else "other"
        yield role, "", "name" if is_survey or may_be else by_sum, ""

    @cached_property
    def _first_weight(self) -> str:
        """The first usable weight. A file has one weight; further weights get the role "other"."""
        numeric = [v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role is None]
        if self.data.weight is not None:
            return self.data.weight
        sure = [name for name in numeric if has_words(SURVEY_WEIGHT, name) and (self.data.numbers(name) > 0).all()]
        likely = [name for name in numeric if has_words(MAYBE_WEIGHT, name) and not self._has_body_measures(name)]
        positive = [name for name in likely if (self.data.numbers(name) > 0).all()]
        return next(iter([*sure, *positive, *(n for n in numeric if _is_scaled_weight(self.data.numbers(n)))]), "")

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

    def _identifier_roles(self, name: str, distinct: int) -> Iterator[tuple[str, str, str, str]]:
        rows = len(self.data)
        if self._is_household_number(name) and distinct > min(10, rows / 2):
            if distinct < rows and not self.data.household and name == self._first_household:
                yield "household", "", "name", ""
            yield "identifier", "", "name", "R"
        if has_words(PERSON, name) and distinct > min(10, rows / 2):
            # A person number that repeats identifies the cases of a panel, or of a file with several records of a person.
            repeats = distinct < rows and self.data.case is None
            yield ("case", "", "name; it repeats", "R") if repeats else ("identifier", "", "name", "R")
        if self._is_row_number(name, distinct):
            yield "identifier", "", "values: they are record numbers", "R"

    @cached_property
    def _first_household(self) -> str:
        return next((name for name in self.data.names if self._is_household_number(name)), "")

    def _is_household_number(self, name: str) -> bool:
        return re.fullmatch(rf"({HOUSEHOLD})_?\d*", snake_case(name)) is not None and self._is_code(name)

    def _is_row_number(self, name: str, distinct: int) -> bool:
        """Return whether a column holds distinct whole numbers that identify records rather than measure something."""
        if distinct != len(self.data) or distinct < 10 or self.data.column(name).levels is not None:
            return False
        values = self.data.numbers(name)
        return bool((values == np.rint(values)).all()) and is_record_number(values)

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
    return find_formulas({name: _blank_codes(data.numbers(name)) for name in names})


def _blank_codes(values: Array) -> Array:
    """Return numbers with values that look like codes for missing values set to NaN."""
    codes = number_codes(values)
    return np.where(np.isin(values, codes), np.nan, values) if codes else values


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
)  # their results do not depend on roles, so they can be reused
