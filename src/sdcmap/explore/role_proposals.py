"""Roles and kinds to propose, from names, labels, values and relations; what a person stated is never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.identifiers import numbers_records, says, scan, tokens
from sdcmap.explore.column_formulas import MOST_COLUMNS, formulas, rounding
from sdcmap.explore.missing_looks import mostly_numbers, number_codes

KEY_LEVELS = 50  # a variable with at most so many categories is proposed as a key
CODE_LEVELS = 20  # whole numbers with at most so many values are codes of categories
MOST_CODES = 5000  # and so many where the name says that they are
REPLICATES = 4  # numbered columns from which on they are a set of replicate weights

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
HOUSEHOLD = (  # the whole name, so that an income of the household is none
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
NAMED = (
    r"sex|gender|geschl\w*|sexe|sexo|genre|geslacht|sesso|region\w*|state|st|province|provincia|canton|kanton|bundesland|land|"
    r"nuts\d?|msa|metro\w*|country|nation\w*|citizen\w*|cit|staatsang\w*|birth_?(place|country)|pobp|urban|rural|occ\w{0,2}|"
    r"occupation\w*|isco\w*|beruf\w*|job(_?title|_?code)?|profession\w*|ocup\w*|nace|naics\w*|indp|industry|branche|soc\w?|"
    r"rac\w{0,4}|race\w*|ethni\w*|hisp\w*|relig\w*|konfession|language|sprache|langue|mar(_?stat\w*|ital\w*)?|familienstand|"
    r"famst\w*|civil(_?status)?|estado_civil|disab\w*|veteran|military|employer|department|position"
)


@dataclass(frozen=True)
class Proposal:
    """What is proposed for one column, and by what it was told."""

    role: str  # or "numeric": an amount
    kind: str
    why: str = ""
    formula: str = ""
    safe_harbor: str = ""  # the letter of its class, A to R


def proposals(data: Microdata) -> dict[str, Proposal]:
    """A proposal for each column; of one whose role is stated, that role."""
    looking = _Looking(data)
    return {name: looking.proposal(name) for name in data.names}


@dataclass(frozen=True)
class _Looking:
    data: Microdata

    def proposal(self, name: str) -> Proposal:
        variable = self.data.schema[name]
        formula = self.formulas.get(name, "")
        if variable.role is not None:
            mark = scan(self.data, name)
            return Proposal(variable.role, variable.kind, "stated", formula, mark.letter if mark else "")
        role, kind, why, letter = next(self._tells(name))
        return Proposal(role, kind or variable.kind, why, formula, letter)

    @cached_property
    def formulas(self) -> Mapping[str, str]:
        known = [v for v in self.data.schema.variables if v.role not in ("identifier", "drop")]
        numeric = tuple(v.name for v in known if v.kind == "numeric")
        return self.data.view(_formulas, numeric) if len(numeric) <= MOST_COLUMNS else {}

    def _tells(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        """Role, kind ("": as it is), by what, and Safe Harbor class; the first that comes is proposed."""
        data, label = self.data, self.data.schema[name].label
        kind, distinct, rows = data.schema[name].kind, self._distinct(name), len(data)
        if distinct == 0:
            yield "drop", "", "it has no value", ""
        if re.fullmatch(REPLICATE, tokens(name)) and name in self._numbered:
            yield "replicate", "", "name: one of a set of replicate weights", ""
        if kind == "numeric":
            yield from self._weight(name)
        mark = scan(data, name)
        if mark is not None and mark.role == "identifier":
            yield "identifier", "", mark.why, mark.letter
        yield from self._ids(name, distinct)
        for role, pattern in (("psu", PSU), ("stratum", STRATUM)):
            if says(pattern, name) and distinct > 1 and self._is_code(name):
                yield role, "", "name", ""
        if says(WAVE, name) and 1 < distinct <= KEY_LEVELS:
            yield "wave", "", "name", ""
        letter = mark.letter if mark is not None else ""
        for pattern, wanted in ((ORDERED, "ordinal"), (NAMED, "nominal")):
            if says(pattern, name, label) and distinct > 1:
                coded = kind == "numeric" and self._is_code(name) and distinct <= MOST_CODES
                yield "key", wanted if coded else "", "name" if says(pattern, name) else "label", letter
        if mark is not None and letter:
            yield "key", "nominal" if kind == "numeric" and self._is_code(name) else "", mark.why, letter
        levels = data.column(name).levels
        if levels is not None and levels.dtype.is_temporal():
            yield "key", "", "a date", "C"
        if mostly_numbers(data, name) and distinct > KEY_LEVELS:
            yield "drop", "", "numbers with texts among them: state its codes for missing values", ""
        if kind != "numeric" and distinct > max(rows / 2, KEY_LEVELS):
            yield "identifier", "", "values: most records have one of their own", "R"
        if kind != "numeric":
            few = 1 < distinct <= KEY_LEVELS
            yield "key" if few else "other", "", "categories" if few else "", ""
        if 1 < distinct <= CODE_LEVELS and self._is_code(name) and rows > 2 * distinct:
            yield "key", "ordinal", "whole numbers with few values", ""
        yield "numeric" if distinct > 1 else "other", "", "", ""

    def _weight(self, name: str) -> Iterator[tuple[str, str, str, str]]:
        """A survey weight, told from a body weight; one that is not above zero everywhere cannot serve."""
        label, values = self.data.schema[name].label, self.data.numbers(name)
        surely = says(SURVEY_WEIGHT, name) or says(r"(survey|sampling|design|person|expansion)_\w*weight\w*", label)
        maybe = says(MAYBE_WEIGHT, name) or says(r"weight", label)
        by_values = not maybe and _sums_to_a_total(values)
        if not (surely or by_values or (maybe and not self._has_body(name))):
            return
        bad = int((~(values > 0)).sum())
        if bad == len(values) or self._distinct(name) < 2:
            return
        if bad:
            yield "drop", "", f"a weight by its name, but {bad:,} rows are not above zero: repair these rows", ""
        by_sum = "values: above zero, and their sum is a population's or the number of records"
        role = "weight" if name == self._weights_first else "other"
        yield role, "", "name" if surely or maybe else by_sum, ""

    @cached_property
    def _weights_first(self) -> str:
        """The first weight that serves: a file has one; other weights are looked at and have no role."""
        numeric = [v.name for v in self.data.schema.variables if v.kind == "numeric" and v.role is None]
        if self.data.weight is not None:
            return self.data.weight
        sure = [name for name in numeric if says(SURVEY_WEIGHT, name) and (self.data.numbers(name) > 0).all()]
        likely = [name for name in numeric if says(MAYBE_WEIGHT, name) and not self._has_body(name)]
        positive = [name for name in likely if (self.data.numbers(name) > 0).all()]
        return next(iter([*sure, *positive, *(n for n in numeric if _sums_to_a_total(self.data.numbers(n)))]), "")

    def _has_body(self, name: str) -> bool:
        """Whether the file speaks of bodies: heights, or a label in kilograms."""
        others = [v for v in self.data.schema.variables if v.name != name]
        told = says(BODY + "|body", self.data.schema[name].label, name)
        told = told or any(says(BODY, v.name, v.label) for v in others)
        return told or any(name in formula and "**2" in formula for formula in self.formulas.values())

    @cached_property
    def _numbered(self) -> set[str]:
        """Columns that are one of at least REPLICATES with the same name but for a number."""
        stems: dict[str, list[str]] = {}
        for name in self.data.names:
            stems.setdefault(re.sub(r"\d+$", "", name), []).append(name)
        return {name for names in stems.values() if len(names) >= REPLICATES for name in names}

    def _ids(self, name: str, distinct: int) -> Iterator[tuple[str, str, str, str]]:
        rows = len(self.data)
        if self._numbers_households(name) and distinct > min(10, rows / 2):
            if distinct < rows and not self.data.household and name == self._household_first:
                yield "household", "", "name", ""
            yield "identifier", "", "name", "R"
        if says(PERSON, name) and distinct > min(10, rows / 2):
            panel = distinct < rows and any(says(WAVE, other) for other in self.data.names)
            yield ("case" if panel else "identifier"), "", "name", "R"
        if self._counts_rows(name, distinct):
            yield "identifier", "", "values: they number the records", "R"

    @cached_property
    def _household_first(self) -> str:
        return next((name for name in self.data.names if self._numbers_households(name)), "")

    def _numbers_households(self, name: str) -> bool:
        return re.fullmatch(rf"({HOUSEHOLD})_?\d*", tokens(name)) is not None and self._is_code(name)

    def _counts_rows(self, name: str, distinct: int) -> bool:
        """Whole numbers, no two equal, that tell records apart rather than measure anything."""
        if distinct != len(self.data) or distinct < 10 or self.data.column(name).levels is not None:
            return False
        values = self.data.numbers(name)
        return bool((values == np.rint(values)).all()) and numbers_records(values)

    def _distinct(self, name: str) -> int:
        """Number of values that occur, missing not counted."""
        return self.data.view(_met, name)

    def _is_code(self, name: str) -> bool:
        column = self.data.column(name)
        if column.levels is not None:
            return True
        known = column.values[np.isfinite(column.values)]
        return bool((known == np.rint(known)).all())


def _formulas(data: Microdata, names: tuple[str, ...]) -> Mapping[str, str]:
    """Columns that others give, within rounding."""
    return formulas({name: _without_codes(data.numbers(name)) for name in names})


def _without_codes(values: Array) -> Array:
    """Numbers without what looks like a code for missing values."""
    codes = number_codes(values)
    return np.where(np.isin(values, codes), np.nan, values) if codes else values


def _met(data: Microdata, name: str) -> int:
    met = np.bincount(data.codes(name), minlength=1) > 0
    column = data.column(name)
    if column.levels is None:
        return int(met.sum()) - int(np.isnan(column.values).any())
    return int((met[: len(column.levels)] & ~column.levels.is_null().to_numpy()[: len(met)]).sum())


def _sums_to_a_total(values: Array) -> bool:
    """Weights as they are scaled or calibrated: above zero, not whole, 1 in the mean or a sum of whole thousands."""
    if len(values) < 30 or not (values > 0).all() or (values == np.rint(values)).all():
        return False
    total, slack = float(values.sum()), max(0.01, rounding(values) * float(np.sqrt(len(values))))
    population = total > 2 * len(values) and abs(total - 1000 * round(total / 1000)) <= slack
    return population or abs(total - len(values)) < 1e-4 * len(values)


OF_COLUMNS = (_met, _formulas)  # views of columns alone, whatever their roles
