"""Detect columns that identify people by their names, labels and values, with their class of the HIPAA Safe Harbor.

The 18 classes, A to R, are those of 45 CFR 164.514(b)(2)(i). The results are proposals: a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import polars as pl

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import common_step, granularity

SAFE_HARBOR = {
    "A": "names", "B": "places smaller than a state", "C": "dates other than years", "D": "telephone numbers",
    "E": "fax numbers", "F": "e-mail addresses", "G": "social security numbers", "H": "medical record numbers",
    "I": "health plan numbers", "J": "account numbers", "K": "certificate and license numbers",
    "L": "vehicle identifiers and plates", "M": "device identifiers", "N": "web addresses", "O": "IP addresses",
    "P": "biometric identifiers", "Q": "photographs", "R": "any other unique number, mark or code",
}  # fmt: skip
MAX_DISTINCT_VALUES = 1000  # of a column that are checked: enough to recognize a pattern
MAX_ID_NUMBER = 1e18  # larger numbers are neither telephone nor case numbers
MIN_DISTINCT_VALUES = 20  # with fewer values, a checksum may hold by chance
MIN_MATCHING_SHARE = 0.9  # share of the values that must match a pattern
MIN_DISTINCT_SHARE = 0.95  # share of the records with a value of their own, for a column of record numbers
MIN_FINE_GRID_POINTS = 5e5  # amounts are skewed; they do not fill a grid of so many points evenly
COORDINATE_DECIMALS = range(5, 9)  # of degrees: a meter or less; hourly wages have up to four decimals
MIN_EXPECTED_REPEATS = 10  # only if chance would give so many repeated values, having none is a sign
MIN_NUMBERED_SHARE = 0.05  # of the records: fewer distinct values of the form of a telephone number are codes of places
MIN_PLACES = 3  # a column `city` with yes and no says whether somebody lives in one
MAX_RECORDS_PER_NAME = 5  # on average; a column `name` whose values repeat more often names places, firms or products
MIN_PROSE_CHARACTERS = 40  # mean length of free text, which may contain any information


@dataclass(frozen=True)
class Mark:
    """The result of a detection: the Safe Harbor class, the role to propose, and the reason."""

    letter: str
    role: str  # "identifier", or "key" for places and dates
    why: str

    @property
    def words(self) -> str:
        return SAFE_HARBOR[self.letter]


NAMES = (  # class, role, pattern of a column name or label in snake case
    ("E", "identifier", r"fax(nummer|number)?"),
    ("D", "identifier", r"(tele)?(phone|fon)(_?(number|nummer|no|nr))?|mobile|handy(nr)?|tel|cell_?phone|telefono"),
    ("F", "identifier", r"e?_?mail(_?adress?e?|_?address)?"),
    ("G", "identifier", r"ssn|social_security(_number|_no)?|national_(id|number)|nino?|sozialversicherung\w*|svnr|ahv(nr)?"
     r"|nir|insee|bsn|personnummer|fodselsnummer|cpr|dni|nif|codice_fiscale|cpf|pesel|steuer_?id"),
    ("H", "identifier", r"mrn|medical_record\w*|patient_?(id|no|nr|number)|krankenakte"),
    ("I", "identifier", r"health_plan\w*|insurance_(id|no|number)|versicherten\w*|beneficiary_id"),
    ("J", "identifier", r"iban|account(_?(no|nr|number))|konto(nr|nummer)?|credit_?card\w*"),
    ("K", "identifier", r"(driver\w*_)?licen[cs]e(_?(no|nr|number))?|certificate_(no|nr|number)|passport\w*|ausweis\w*"),
    ("L", "identifier", r"vin|licen[cs]e_plate|number_plate|kennzeichen|matricula"),
    ("M", "identifier", r"device_?id|serial_?(no|nr|number)|imei|mac_address"),
    ("N", "identifier", r"url|web_?site|homepage"),
    ("O", "identifier", r"ip(_?address)?|ipv[46]"),
    ("P", "identifier", r"finger_?print|voice_?print|biometric\w*|dna"),
    ("Q", "identifier", r"photo\w*|portrait|picture|foto"),
    ("A", "identifier", r"(first|last|full|sur|fore|given|family|middle|maiden|user|nach|vor)_?names?|name|nachname|vorname"
     r"|nom|prenom|nombre|apellidos?|cognome"),
    ("B", "identifier", r"((street|home|postal|mailing)_)?(address|adresse|anschrift|direccion)|street|strasse|rue"
     r"|(geo_?)?(lat(itude)?|lon(gitude)?|lng|coord(inate)?s?)|hausnummer"),
    ("B", "key", r"zip(_?code)?|plz|post_?(al_?)?code|postleitzahl|city|town|ort|stadt|wohnort|municipality|gemeinde"
     r"|(gemeinde|orts|stadt|kreis|bezirks)name|commune|municipio|comune|county|kreis|landkreis|district|distrito|puma\d*|tract"
     r"|block_?group|neighbou?rhood|village"),
    ("C", "key", r"dob|(date_of_birth|birth_?(date|day))|geburts(datum|tag)|fecha_nacimiento|date_naissance"
     r"|(admission|discharge|death|entry|exit)_?date|sterbedatum"),
)  # fmt: skip
TEXT_CLASSES = ("A", "F", "L", "N", "P", "Q")  # names, plates, addresses: numbers with such a name measure something
LONG_NUMBER_CLASSES = ("D", "E", "O")  # telephone, fax and IP numbers: short numbers with such a name are counts
MIN_LONG_NUMBER = 1e4  # most telephone numbers without their area code, and all addresses, are larger
QUANTITY = (  # what is measured about something: a column of numbers with such a word in its name is no number of it
    r"counts?|freq(uency)?|total|sum|mean|avg|average|amount|rate|ratio|share|percent|pct|score|level|usage|duration|"
    r"seconds?|minutes?|mins?|hours?|hrs|days?|weeks?|months?|years?|yrs|age|calls?|visits|fees?|costs?|prices?|bills?|"
    r"income|wages?|salary|earnings|spending|expenditures?|balance|debts?|limit|taxe?s?|"
    r"anzahl|dauer|sekunden|minuten|stunden|tage|wochen|monate|jahre|kosten|gebuehr(en)?|einkommen|lohn|"
    r"nb|nbre|taux|duree|secondes|heures|jours|semaines|mois|ans|annees|revenus?|"
    r"cantidad|tasa|duracion|segundos|minutos|horas|dias|semanas|meses|anos|ingresos?|gastos?|"
    r"tasso|durata|minuti|ore|giorni|mesi|anni|reddito|aantal|duur|uren|dagen|weken|maanden|jaren|inkomen|antal|timmar|dagar"
)
PLAIN_NAME = r"names?|nom|nombre"  # of anything, not only of people
SMALL_PLACE = (
    r"city|town|village|municipality|county|district|parish|ward|suburb|neighbou?rhood|place|station|gemeinde|ort|stadt|kreis|"
    r"bezirk|commune|ville|departement|canton|municipio|ciudad|distrito|comune|citta|provincia|gemeente|plaats|kommun|"
    r"wijk|buurt|gemeindename|ortsname|stadtname|kreisname"
)
LARGE_UNIT = (  # places as large as a state, and units that are no persons
    r"country|nation|state|region|province|land|bundesland|pays|pais|paese|estado|regione|landname|regionname|school|schule|"
    r"ecole|escuela|hospital|clinic|company|firm|firma|employer|bank|brand|product|item|drug|medicine|species|industry|"
    r"occupation|department|team|club|course|subject|variable|file|group|category|event|project|organi[sz]ation"
)
VALUES = (  # class, what the values are, pattern of a value
    ("F", "e-mail addresses", r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    ("N", "web addresses", r"(https?://|www\.)\S+"),
    ("O", "IP addresses", r"\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){3,7}"),
    ("G", "social security numbers", r"\d{3}-\d{2}-\d{4}"),
    ("G", "national insurance numbers", r"[A-CEGHJ-PR-TW-Z]{2}\s?\d{2}\s?\d{2}\s?\d{2}\s?[A-D]"),
    ("G", "codici fiscali", r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"),
    ("J", "bank account numbers", r"[A-Z]{2}\d{2}\s?[A-Z0-9]{4}(\s?[A-Z0-9]{2,4}){2,7}"),
    ("M", "device addresses", r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}"),
    ("R", "unique codes", r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32}|[0-9a-fA-F]{40}"),
    ("D", "telephone numbers", r"(\+|00)\d[\d ()/-]{6,}\d|\(?0?\d{2,5}\)?[ /-]\d{3,4}[ -]?\d{2,4}([ -]?\d{2,4})?"),
    ("B", "coordinates", r"-?\d{1,2}\.\d{3,}[,; ]\s*-?\d{1,3}\.\d{3,}"),
)


@lru_cache(maxsize=100_000)
def snake_case(text: str) -> str:
    """Return a name in lower case with _ between its words.

    >>> snake_case("firstName"), snake_case("E-Mail Adresse"), snake_case("PWGTP")
    ('first_name', 'e_mail_adresse', 'pwgtp')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^0-9a-z\u00df-\u024f]+", "_", spaced.lower()).strip("_")


def has_words(pattern: str, *texts: str) -> bool:
    """Return whether a name or label contains the pattern as whole words."""
    whole = _whole(pattern)
    return any(whole.search(snake_case(text)) is not None for text in texts if text)


@cache
def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(^|_)({pattern})(_|\d*$|\d*_)")


def detect_identifier(data: Microdata, name: str) -> Mark | None:
    """Return what kind of identifier a column seems to be, by its values, then its name and label; None if it is none."""
    if (mark := _by_values(data, name)) is not None:
        return mark
    label = data.schema[name].label
    few = min(10, len(data) / 2)  # a column `name` with two categories does not hold names of people
    for letter, role, pattern in NAMES:
        if not has_words(pattern, name, label):
            continue
        words = "name" if has_words(pattern, name) else "label"
        if letter in TEXT_CLASSES and not _is_text(data, name):
            continue
        if role == "identifier" and _measures_something(data, name, name if words == "name" else label, letter):
            continue
        if letter == "A" and has_words(rf"{SMALL_PLACE}", name, label):
            return Mark("B", "key", f"{words}: of a place")
        if letter == "A" and _names_no_person(data, name, label):
            continue
        if (
            data.level_count(name) - bool(data.missing(name).any()) >= MIN_PLACES
            if role == "key"
            else data.level_count(name) > few
        ):
            return Mark(letter, role, words)
    return None


def _is_text(data: Microdata, name: str) -> bool:
    """Return whether a column has texts that are mostly no numbers."""
    levels = data.column(name).levels
    if levels is None or levels.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return False
    share = levels.drop_nulls().cast(pl.String).str.contains(r"^\s*[<>+-]?\s*\d[\d.,]*\s*$").mean()
    return float(share or 0) < 0.5  # type: ignore[arg-type]


def _measures_something(data: Microdata, name: str, words: str, letter: str) -> bool:
    """Return whether numbers are counts or amounts, although their name or label, `words`, is that of an identifier.

    The numbers have decimals, or the words of a quantity, or are too short for the numbers of this class.
    """
    if data.column(name).levels is not None:
        return False
    known = data.numbers(name)[~data.missing(name)]
    if not len(known):
        return False
    is_short = letter in LONG_NUMBER_CLASSES and float(np.median(np.abs(known))) < MIN_LONG_NUMBER
    return is_short or has_words(QUANTITY, words) or bool((known != np.rint(known)).any())


def _names_no_person(data: Microdata, name: str, label: str) -> bool:
    """Return whether a column of names is about units other than persons, by its name, its label or its repeated values."""
    is_plain = re.fullmatch(PLAIN_NAME, snake_case(name)) is not None
    repeats = len(data) > MAX_RECORDS_PER_NAME * data.level_count(name)
    return has_words(LARGE_UNIT, name, label) or (is_plain and repeats)


def _by_values(data: Microdata, name: str) -> Mark | None:
    texts = _distinct_texts(data, name)
    if len(texts) < 2:
        return None
    for letter, words, pattern in VALUES if texts.dtype == pl.String else ():
        if letter == "D" and data.level_count(name) < MIN_NUMBERED_SHARE * len(data):
            continue
        if float(texts.str.contains(rf"^\s*(?:{pattern})\s*$").mean() or 0) >= MIN_MATCHING_SHARE:  # type: ignore[arg-type]
            return Mark(letter, "identifier", f"values look like {words}")
    numbers = [re.sub(r"[ ./-]", "", text) for text in texts.cast(pl.String).to_list()]
    for words, check in CHECKSUMS.items():
        if len(numbers) >= MIN_DISTINCT_VALUES and np.mean([check(text) for text in numbers]) >= 0.95:
            return Mark("G", "identifier", f"values pass the checksum of {words}")
    if texts.dtype == pl.String and _is_prose(texts, len(data)):
        return Mark("R", "identifier", "long free text, which may contain anything")
    return None


def _distinct_texts(data: Microdata, name: str) -> pl.Series:
    """Return some distinct values: texts, or numbers if most have at least eight digits."""
    column = data.column(name)
    if column.levels is not None:
        levels = column.levels.drop_nulls()
        texts = levels.dtype in (pl.String, pl.Categorical, pl.Enum)
        return levels.cast(pl.String).head(MAX_DISTINCT_VALUES) if texts else pl.Series([], dtype=pl.String)
    known = column.values[np.abs(column.values) < MAX_ID_NUMBER][: 10 * MAX_DISTINCT_VALUES]
    long = (
        len(known) > 0
        and bool((known[:MAX_DISTINCT_VALUES] >= 1e7).mean() > MIN_MATCHING_SHARE)
        and bool((known == np.rint(known)).all())
    )
    return pl.Series(np.unique(known)[:MAX_DISTINCT_VALUES].astype(np.int64) if long else [], dtype=pl.Int64)


def _is_prose(texts: pl.Series, rows: int) -> bool:
    many = len(texts) > min(rows, MAX_DISTINCT_VALUES) / 4
    return many and float(texts.str.len_chars().mean() or 0) >= MIN_PROSE_CHARACTERS  # type: ignore[arg-type]


# ---- record numbers and coordinates -------------------------------------------------------------------------------
def is_record_number(values: Array) -> bool:
    """Return whether known numbers identify records rather than measure something.

    Three kinds of columns do:

    - Consecutive or sampled numbers (1 to n, case numbers): no value repeats, and they fill half of a grid, or a tenth of
      it evenly. Chance would repeat some: n values on a grid of m points repeat about n^2 / 2m times.
    - Numbers that nearly all differ and have the same seven or more digits (telephone numbers, time stamps).
    - Numbers that nearly all differ and spread evenly over half a million points or more (random numbers, hashes).
      Amounts are skewed.

    >>> is_record_number(np.array([3.0, 1, 2, 5, 4])), is_record_number(np.array([1.0, 2, 2, 4, 5]))
    (True, False)
    """
    known = np.unique(values)
    if len(known) < max(3, MIN_DISTINCT_SHARE * len(values)) or not np.isfinite(known).all():
        return False
    grid_points = np.ptp(known) / (common_step(known) or np.inf) or np.inf
    # On a grid so coarse, n amounts would repeat: the birthday bound n^2 / 2m is above MIN_EXPECTED_REPEATS.
    coarse = max(len(known), min(10 * len(known), len(known) ** 2 / (2 * MIN_EXPECTED_REPEATS)))
    if grid_points < coarse:
        return len(known) == len(values) and bool(grid_points < 2 * len(known) or _is_evenly_spread(known))
    if len(known) < MIN_DISTINCT_VALUES:
        return False
    low, high = float(np.abs(known).min()), float(np.abs(known).max())
    same_digits = low >= 1e6 and int(np.log10(low)) == int(np.log10(high))
    return same_digits or (grid_points >= MIN_FINE_GRID_POINTS and _is_evenly_spread(known))


def find_coordinates(columns: Mapping[str, Array]) -> list[str]:
    """Return the columns that may be geographical coordinates, in file order.

    These are two or more columns of known numbers within 180 degrees, with the same five to eight decimals, that mostly
    differ: the members of a household share one location.
    """
    decimals = {name: _decimals(values) for name, values in columns.items()}
    fine = {name: k for name, k in decimals.items() if k in COORDINATE_DECIMALS}
    return [name for name, k in fine.items() if list(fine.values()).count(k) > 1]


def _decimals(values: Array) -> int | None:
    """Return the number of decimals of values within 180 degrees; None for other values, or too few."""
    distinct = np.unique(values)
    if len(distinct) < max(MIN_DISTINCT_VALUES, len(values) / 4) or not np.abs(distinct).max() <= 180:
        return None
    power = granularity(distinct)
    return None if power is None else -power


def _is_evenly_spread(ordered: Array) -> bool:
    """Return whether the distribution function stays within 0.1 of a straight line, as that of amounts does not."""
    straight = (ordered - ordered[0]) / np.ptp(ordered)
    return bool(np.abs(straight - np.linspace(0, 1, len(ordered))).max() < 0.1)


# ---- checksums of national numbers ------------------------------------------------------------------------------
def is_luhn_number(text: str) -> bool:
    """Return whether the Luhn sum is a multiple of 10: Swedish personnummer (10 digits), Canadian SIN (9).

    >>> is_luhn_number("8112189876"), is_luhn_number("8112189875")
    (True, False)
    """
    if not text.isdecimal() or len(text) not in (9, 10, 15, 16):
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(text))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_dutch_bsn(text: str) -> bool:
    """Return whether 9 d1 + 8 d2 + ... + 2 d8 - d9 is a multiple of 11, as for a Dutch BSN.

    >>> is_dutch_bsn("111222333"), is_dutch_bsn("111222334")
    (True, False)
    """
    return _has_check_digit(text, 9, (9, 8, 7, 6, 5, 4, 3, 2, -1), 11)


def is_norwegian_id(text: str) -> bool:
    """Return whether both checksums of a Norwegian fodselsnummer are multiples of 11."""
    first, second = (3, 7, 6, 1, 8, 9, 4, 5, 2, 1, 0), (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)
    return _has_check_digit(text, 11, first, 11) and _has_check_digit(text, 11, second, 11)


def is_polish_pesel(text: str) -> bool:
    """Return whether the sum with weights 1, 3, 7, 9, ... is a multiple of 10, as for a Polish PESEL."""
    return _has_check_digit(text, 11, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


def is_german_tax_id(text: str) -> bool:
    """Return whether a number passes ISO 7064, MOD 11,10, as a German tax number does.

    >>> is_german_tax_id("86095742719"), is_german_tax_id("86095742718")
    (True, False)
    """
    if not text.isdecimal() or len(text) != 11:
        return False
    product = 10
    for digit in text[:-1]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    return (11 - product) % 10 == int(text[-1])


def is_french_nir(text: str) -> bool:
    """Return whether the key of a French NIR is 97 minus the number modulo 97."""
    return text.isdecimal() and len(text) == 15 and 97 - int(text[:13]) % 97 == int(text[13:])


def is_spanish_dni(text: str) -> bool:
    """Return whether the letter of a Spanish DNI is that of the number modulo 23."""
    known = len(text) == 9 and text[:8].isdecimal() and text[8].isalpha()
    return known and "TRWAGMYFPDXBNJZSQVHLCKE"[int(text[:8]) % 23] == text[8].upper()


def is_swiss_ahv(text: str) -> bool:
    """Return whether a number begins with 756 and has the check digit of EAN-13, as a Swiss AHV number does."""
    return text.startswith("756") and _has_check_digit(text, 13, (1, 3) * 6 + (1,), 10)


def _has_check_digit(text: str, length: int, weights: Sequence[int], modulus: int) -> bool:
    known = text.isdecimal() and len(text) == length and len(set(text)) > 1
    return known and sum(w * int(d) for w, d in zip(weights, text, strict=True)) % modulus == 0


CHECKSUMS: dict[str, Callable[[str], bool]] = {
    "Dutch citizen numbers": is_dutch_bsn,
    "Norwegian birth numbers": is_norwegian_id,
    "Polish PESEL numbers": is_polish_pesel,
    "German tax numbers": is_german_tax_id,
    "French NIR numbers": is_french_nir,
    "Spanish DNI numbers": is_spanish_dni,
    "Swiss AHV numbers": is_swiss_ahv,
    "personal numbers by Luhn": is_luhn_number,
}
