"""Columns that tell who somebody is: by their names, labels and values, with their class of the HIPAA Safe Harbor.

The 18 classes are those of 45 CFR 164.514(b)(2)(i), A to R. What is found is a proposal: a person decides.
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
LOOKED_AT = 1000  # distinct values of a column
LONGEST_NUMBER = 1e18  # numbers of more digits are no telephone or case numbers
FEWEST = 20  # distinct values below which a checksum says nothing
MOSTLY = 0.9  # share of the values that must look alike
MOSTLY_DISTINCT = 0.95
FINE = 5e5  # places of a grid that no amount fills evenly
COORDINATE_DECIMALS = range(5, 9)  # a metre or less; wages have four
SURELY_REPEATED = 10  # repetitions that chance must promise before having none is a sign
LONG = 40  # characters of a text that may tell anything


@dataclass(frozen=True)
class Mark:
    """What a column looks like: its class, the role to propose, and by what it is told."""

    letter: str
    role: str  # "identifier", or "key" for places and dates
    why: str

    @property
    def words(self) -> str:
        return SAFE_HARBOR[self.letter]


NAMES = (  # class, role, pattern of a name or label in words joined by _
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
     r"|commune|municipio|comune|county|kreis|landkreis|district|distrito|puma\d*|tract|block_?group|neighbou?rhood|village"),
    ("C", "key", r"dob|(date_of_birth|birth_?(date|day))|geburts(datum|tag)|fecha_nacimiento|date_naissance"
     r"|(admission|discharge|death|entry|exit)_?date|sterbedatum"),
)  # fmt: skip
VALUES = (  # class, what it is called, pattern of a value
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
def tokens(text: str) -> str:
    """A name in lower case with _ between its words.

    >>> tokens("firstName"), tokens("E-Mail Adresse"), tokens("PWGTP")
    ('first_name', 'e_mail_adresse', 'pwgtp')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"[^0-9a-z\u00df-\u024f]+", "_", spaced.lower()).strip("_")


def says(pattern: str, *texts: str) -> bool:
    """Whether a name or label has the words of the pattern, whole."""
    whole = _whole(pattern)
    return any(whole.search(tokens(text)) is not None for text in texts if text)


@cache
def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(^|_)({pattern})(_|\d*$|\d*_)")


def scan(data: Microdata, name: str) -> Mark | None:
    """What one column looks like, by its values first, then by its name and label; None: nothing that identifies."""
    if (mark := _by_values(data, name)) is not None:
        return mark
    label = data.schema[name].label
    few = min(10, len(data) / 2)  # `name` of a column with two categories names no person
    for letter, role, pattern in NAMES:
        if says(pattern, name, label) and (role == "key" or data.level_count(name) > few):
            return Mark(letter, role, "name" if says(pattern, name) else "label")
    return None


def _by_values(data: Microdata, name: str) -> Mark | None:
    texts = _distinct_texts(data, name)
    if len(texts) < 2:
        return None
    for letter, words, pattern in VALUES if texts.dtype == pl.String else ():
        if float(texts.str.contains(rf"^\s*(?:{pattern})\s*$").mean() or 0) >= MOSTLY:  # type: ignore[arg-type]
            return Mark(letter, "identifier", f"values look like {words}")
    numbers = [re.sub(r"[ ./-]", "", text) for text in texts.cast(pl.String).to_list()]
    for words, check in CHECKSUMS.items():
        if len(numbers) >= FEWEST and np.mean([check(text) for text in numbers]) >= 0.95:
            return Mark("G", "identifier", f"values pass the checksum of {words}")
    if texts.dtype == pl.String and _is_prose(texts, len(data)):
        return Mark("R", "identifier", "long free text, which may tell anything")
    return None


def _distinct_texts(data: Microdata, name: str) -> pl.Series:
    """Some distinct values: texts of categories, and numbers of at least eight digits."""
    column = data.column(name)
    if column.levels is not None:
        levels = column.levels.drop_nulls()
        texts = levels.dtype in (pl.String, pl.Categorical, pl.Enum)
        return levels.cast(pl.String).head(LOOKED_AT) if texts else pl.Series([], dtype=pl.String)
    known = column.values[np.abs(column.values) < LONGEST_NUMBER][: 10 * LOOKED_AT]
    long = len(known) > 0 and bool((known[:LOOKED_AT] >= 1e7).mean() > MOSTLY) and bool((known == np.rint(known)).all())
    return pl.Series(np.unique(known)[:LOOKED_AT].astype(np.int64) if long else [], dtype=pl.Int64)


def _is_prose(texts: pl.Series, rows: int) -> bool:
    many = len(texts) > min(rows, LOOKED_AT) / 4
    return many and float(texts.str.len_chars().mean() or 0) >= LONG  # type: ignore[arg-type]


# ---- numbers that number ------------------------------------------------------------------------------------------
def numbers_records(values: Array) -> bool:
    """Whether known numbers tell records apart rather than measure anything.

    So do numbers, each of another value, that fill half a grid, or evenly a tenth of it, where as many drawn with
    repetition would repeat (n values on a grid of m places: about n^2 / 2m times): 1 .. n in any order, every second one,
    case numbers. And numbers of which nearly all differ, where all have the same seven or more digits (telephone numbers,
    time stamps), or where they lie evenly over half a million places or more, or on no grid at all (random numbers,
    hashes): amounts are skewed.

    >>> numbers_records(np.array([3.0, 1, 2, 5, 4])), numbers_records(np.array([1.0, 2, 2, 4, 5]))
    (True, False)
    """
    known = np.unique(values)
    if len(known) < max(3, MOSTLY_DISTINCT * len(values)) or not np.isfinite(known).all():
        return False
    places = np.ptp(known) / (common_step(known) or np.inf) or np.inf
    most = max(len(known), min(10 * len(known), len(known) ** 2 / (2 * SURELY_REPEATED)))
    if places < most:
        return len(known) == len(values) and bool(places < 2 * len(known) or _spread_evenly(known))
    if len(known) < FEWEST:
        return False
    low, high = float(np.abs(known).min()), float(np.abs(known).max())
    alike = low >= 1e6 and int(np.log10(low)) == int(np.log10(high))
    return alike or (places >= FINE and _spread_evenly(known))


def coordinates(columns: Mapping[str, Array]) -> list[str]:
    """Names of the columns of known numbers, in file order, that may be geographical coordinates: two or more within 180
    degrees with five to eight decimals each, as many in both, that mostly differ (one household, one place)."""
    decimals = {name: _decimals(values) for name, values in columns.items()}
    fine = {name: k for name, k in decimals.items() if k in COORDINATE_DECIMALS}
    return [name for name, k in fine.items() if list(fine.values()).count(k) > 1]


def _decimals(values: Array) -> int | None:
    """How many decimals numbers within 180 degrees have; None where they are others, or few."""
    distinct = np.unique(values)
    if len(distinct) < max(FEWEST, len(values) / 4) or not np.abs(distinct).max() <= 180:
        return None
    power = granularity(distinct)
    return None if power is None else -power


def _spread_evenly(ordered: Array) -> bool:
    """Whether the distribution function leaves a straight line by less than a tenth: amounts are skewed."""
    straight = (ordered - ordered[0]) / np.ptp(ordered)
    return bool(np.abs(straight - np.linspace(0, 1, len(ordered))).max() < 0.1)


# ---- checksums of national numbers ------------------------------------------------------------------------------
def luhn(text: str) -> bool:
    """The digits doubled in turn sum to a multiple of 10: personnummer (10 digits), Canadian SIN (9).

    >>> luhn("8112189876"), luhn("8112189875")
    (True, False)
    """
    if not text.isdecimal() or len(text) not in (9, 10, 15, 16):
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(text))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def eleven_test(text: str) -> bool:
    """The Dutch BSN: 9 d1 + 8 d2 + ... + 2 d8 - d9 is a multiple of 11.

    >>> eleven_test("111222333"), eleven_test("111222334")
    (True, False)
    """
    return _weighted(text, 9, (9, 8, 7, 6, 5, 4, 3, 2, -1), 11)


def norwegian(text: str) -> bool:
    """The Norwegian fodselsnummer: both check sums are multiples of 11."""
    first, second = (3, 7, 6, 1, 8, 9, 4, 5, 2, 1, 0), (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)
    return _weighted(text, 11, first, 11) and _weighted(text, 11, second, 11)


def pesel(text: str) -> bool:
    """The Polish PESEL: weights 1, 3, 7, 9, ... and the check digit, a multiple of 10."""
    return _weighted(text, 11, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


def iso_7064(text: str) -> bool:
    """The German tax number: ISO 7064, MOD 11,10.

    >>> iso_7064("86095742719"), iso_7064("86095742718")
    (True, False)
    """
    if not text.isdecimal() or len(text) != 11:
        return False
    product = 10
    for digit in text[:-1]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    return (11 - product) % 10 == int(text[-1])


def nir(text: str) -> bool:
    """The French NIR: 97 minus the number modulo 97 is its key."""
    return text.isdecimal() and len(text) == 15 and 97 - int(text[:13]) % 97 == int(text[13:])


def dni(text: str) -> bool:
    """The Spanish DNI: its letter is given by the number modulo 23."""
    known = len(text) == 9 and text[:8].isdecimal() and text[8].isalpha()
    return known and "TRWAGMYFPDXBNJZSQVHLCKE"[int(text[:8]) % 23] == text[8].upper()


def swiss(text: str) -> bool:
    """The Swiss AHV number: 756 and the check digit of EAN-13."""
    return text.startswith("756") and _weighted(text, 13, (1, 3) * 6 + (1,), 10)


def _weighted(text: str, length: int, weights: Sequence[int], modulus: int) -> bool:
    known = text.isdecimal() and len(text) == length and len(set(text)) > 1
    return known and sum(w * int(d) for w, d in zip(weights, text, strict=True)) % modulus == 0


CHECKSUMS: dict[str, Callable[[str], bool]] = {
    "Dutch citizen numbers": eleven_test, "Norwegian birth numbers": norwegian, "Polish PESEL numbers": pesel,
    "German tax numbers": iso_7064, "French NIR numbers": nir, "Spanish DNI numbers": dni, "Swiss AHV numbers": swiss,
    "personal numbers by Luhn": luhn,
}  # fmt: skip
