"""Re-identification by look-up: of exact values, with the risk of each record, and in an external file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Floats, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import common_codes, moves, recode_to_released_categories
from sdcmap.data.label_matching import numbers_as_labels, possible_matches, spell_out_true_labels
from sdcmap.kernels.tables.coding import compress, count_cells, count_units
from sdcmap.risk._archive import read_archive

# Look-up of known values: the released records that have them, or whose labels cover them.


class LookUp(NamedTuple):
    """For the person of each released record: how many records match, and whether their own is one of them."""

    matches: Array
    has_own: Array


def look_up(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[LookUp, LookUp | None, Array]:
    """Look up the known values of everyone in the release, in the released categories where values were recoded.

    Returns the matches on equal values; the matches on labels that cover the values (None unless labels have several
    depths); and the number of released records that equal each released record. Equal records of one person count as one.
    """
    known = recode_to_released_categories(original, masked, names)
    origin = np.arange(len(masked)) if masked.origin is None else masked.origin
    fit = possible_matches(known, spell_out_true_labels(known, masked, names), names)
    covering = None
    if fit is not None:
        covering = LookUp(fit.records_of_people()[origin], fit.can_match(origin, np.arange(len(masked))))
        known = numbers_as_labels(known, masked, names)
    cell = compress([common_codes(known, masked, name) for name in names])[0]
    ours, theirs = cell[: len(known)][origin], cell[len(known) :]
    people = np.arange(len(masked)) if original.case is None else original.units[origin]
    count = count_units(theirs, people, int(cell.max(initial=0)) + 1)
    return LookUp(count[ours], ours == theirs), covering, count[theirs]


@dataclass(frozen=True)
class ExactMatch(RiskMeasure):
    """Share of released records that an attacker re-identifies by looking up known values.

    The attacker knows some variables of a person exactly and filters the released file on all of them. They succeed if
    fewer than k records remain and the person's own is one of them. This is the simplest attack: a file that fails here
    needs no other test.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default every released column that other people could know.
    k : the attack succeeds with fewer than k matching records, at least 2; with 2, only if the person's record is
        unique.

    Formula: #{released records i : 1 <= f(x_i) < k and y_i = x_i} / #{released records}, x_i the known values, y_i the
        released values, f(x) the released records with values x. Recoded values are looked up in the released
        categories. Where labels have several depths ("37", "(35, 40]", "*"), a person is also re-identified if fewer
        than k labels cover their values.
    `parts`: "unique", the share of released records that no other record equals on these variables.
    Missing is a category: a blanked value equals only missing values (linkage attacks let it match any value).
    Weights and households are not used. Where the file has several records of a person, those with equal values count as
    one: k people must match. Releasing nothing re-identifies nobody: 0.
    Reference: the uniques of Bethlehem, Keller, Pannekoek (1990), looked up in the released file.

    Examples
    --------
    >>> ExactMatch(on=["age", "sex"], k=3).text
    "ExactMatch(on=['age', 'sex'], k=3)"
    """

    label: ClassVar[str] = "Exact matches re-identified"
    description: ClassVar[str] = (
        "Share of released records that an attacker re-identifies by looking up values that they know exactly."
    )

    columns_by_default: ClassVar = "knowable"
    revision: ClassVar[int] = 3  # 2: labels of several depths; 3: equal records of one person count as one

    on: tuple[str, ...] = ()
    k: Annotated[int, Range(2)] = 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        reidentified, count = self._find_matches(original, masked)
        if len(masked) == 0:
            return Estimate(value=0.0, parts={"unique": 0.0})
        return Estimate(value=float(reidentified.mean()), parts={"unique": float((count == 1).mean())})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each re-identified record and 0 for the others."""
        return self._find_matches(original, masked)[0].astype(np.float64)

    def _find_matches(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Return whether each released record is re-identified, and how many released records equal it."""
        *look_ups, count = look_up(original, masked, self.check_variables(original))
        hits = [one.has_own & (one.matches < self.k) for one in look_ups if one is not None]
        return np.logical_or.reduce(hits), count


# The highest risk of a single record.


MIN_PEOPLE_PER_SIZE = 20  # needed to estimate the success rate at one number of matches; else sizes are pooled


class MatchCounts(NamedTuple):
    """For each number of matching records, in rising order: how many people have it, and how often theirs matches."""

    size: Array
    people: Array
    right: Floats


def learn_match_rates(matches: Array, has_own: Array) -> MatchCounts:
    """Return, by the number of matching records, how often the person's own record is one of them.

    Numbers with few people are pooled with the next larger ones, the last ones with those before.

    matches : how many records match each person
    has_own : whether the person's own record is one of them
    """
    size, index, people = np.unique(matches[matches > 0], return_inverse=True, return_counts=True)
    own = np.bincount(index, has_own[matches > 0], len(size))
    # a pool starts where both the current pool and the rest have enough people
    starts = [0]
    for end in range(1, len(size)):
        if people[starts[-1] : end].sum() >= MIN_PEOPLE_PER_SIZE <= people[end:].sum():
            starts.append(end)
    if not len(size):
        return MatchCounts(size, people, np.empty(0))
    right = np.add.reduceat(own, starts) / np.add.reduceat(people, starts)
    return MatchCounts(size, people, right[np.searchsorted(starts, np.arange(len(size)), side="right") - 1])


@dataclass(frozen=True)
class RecordRisk(RiskMeasure):
    """Highest probability with which an attacker picks the correct record after looking up a person.

    The attacker knows the keys of a person, filters the released file on them, and picks one of the matching records.
    In an unperturbed file they are right with probability one over the number of matches, so the smallest group decides
    (1/k). If values were perturbed, the correct record may not match; the attacker knows how often that happens.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    inclusion : the probability that the person is in the file, in (0, 1]; the risk is multiplied by it. `parts`
        contains the risk without it as "prosecutor".

    Formula: max over s of P(own record matches | s records match)/s, estimated by the share of the people with s
        matches; group sizes with fewer than 20 people are pooled with the next.
    `parts`: "smallest group", the smallest number of matches; "people in it", how many people have that number; and
    "expected re-identifications", the sum of 1/s over the people whose own record is among their s matches. Recoded
    values are looked up in the released categories. With labels of several depths, the records with equal values match,
    or if there are none, those whose labels cover the values.
    Missing is a category: a blanked value equals only missing values. Weights and households are not used. Where the file
    has several records of a person, those with equal values count as one match. Releasing nothing re-identifies nobody: 0.
    Reference: "maximum risk" of El Emam (2013), Guide to the De-identification of Personal Health Information, for
    unperturbed files; the extension to perturbed files is ours.

    Examples
    --------
    >>> RecordRisk(on=["age", "sex"]).text
    "RecordRisk(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Highest risk of a single record"
    description: ClassVar[str] = (
        "Highest probability with which an attacker correctly picks out one person's record from values they know."
    )

    unit: ClassVar[str] = "probability"
    # 2: labels of several depths; 3: expected re-identifications without pooling; 4: equal records of one person are one
    revision: ClassVar[int] = 4

    on: tuple[str, ...] = ()
    inclusion: Annotated[float, Range(0, 1, "(]")] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        matches, has_own = self._find_matches(original, masked)
        rates = learn_match_rates(matches, has_own)
        parts = dict.fromkeys(("prosecutor", "smallest group", "people in it", "expected re-identifications"), 0.0)
        if len(rates.size):
            risk = rates.right / rates.size
            # each person whose own record matches is picked with 1 over the number of matches; nothing is pooled
            expected = self.inclusion * float((1 / matches[has_own & (matches > 0)]).sum())
            values = float(risk.max()), float(rates.size[0]), float(rates.people[0]), expected
            parts = dict(zip(parts, values, strict=True))
        return Estimate(value=self.inclusion * parts["prosecutor"], parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the probability for the person of each released record; 0 without a match."""
        matches, has_own = self._find_matches(original, masked)
        rates = learn_match_rates(matches, has_own)
        index = np.searchsorted(rates.size, matches)
        each = np.append(rates.right / rates.size, 0.0)[np.where(matches > 0, index, len(rates.size))]
        return np.asarray(self.inclusion * each)

    def _find_matches(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Return, for the person of each released record, the number of matches and whether their own record is one."""
        equal, covering, _ = look_up(original, masked, self.check_variables(original))
        if covering is None:
            return equal.matches, equal.has_own
        any_equal = equal.matches > 0
        matches = np.where(any_equal, equal.matches, covering.matches)
        return matches, np.where(any_equal, equal.has_own, covering.has_own)


# Records that link to an external file.


class ArchiveMatches(NamedTuple):
    """For each record of the data: the combination of its values, and how many records of the archive have the same."""

    cell: Array
    matches: Array
    archive_size: int


def archive_matches(data: Microdata, archive: Microdata, names: tuple[str, ...]) -> ArchiveMatches:
    """Count the records of the archive that have the same values of `names` as each record of the data."""
    code, count = compress([common_codes(data, archive, name) for name in names])
    ours, theirs = np.split(code, [len(data)])
    return ArchiveMatches(ours, np.asarray(count_cells(theirs, len(count))[ours]), len(archive))


@dataclass(frozen=True)
class ExternalLink(RiskMeasure):
    """Share of unchanged records that link uniquely, or nearly so, to an external file.

    The attacker has a file with names, an archive, and looks up the key values of each released record in it. They
    succeed if few records of the archive match, and masking did not change the released record.

    Parameters
    ----------
    archive : path of the attacker's file (CSV, Parquet, SPSS, Stata, SAS), with columns of the same names and
        categories.
    on : the variables the attacker knows; by default the keys of the file.
    near : a record links if 1 to `near` records of the archive match it; 1 means a unique match; at least 1.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; a file with another digest is
        rejected.

    Formula: #{unchanged records with 1..near matches in the archive} / #{unchanged records}; a record is unchanged if
        masking left its values of these variables as they were. Values match if they are equal. A small archive makes
        the value small even if all its people are found: `parts` has the share of its records that such a record
        links to ("share of the archive").
    Missing is a category: it matches missing values of the archive. Weights and households are not used. If every
    record changed, the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1, last paragraph.

    Examples
    --------
    >>> ExternalLink("register.csv", near=2, sha256="9f86d081884c7d65").text
    "ExternalLink(archive='register.csv', near=2, sha256='9f86d081884c7d65')"
    """

    label: ClassVar[str] = "Unique links to an external file"
    description: ClassVar[str] = (
        "Share of the records that masking left unchanged that match one record (or few) of a file with names."
    )

    archive: str
    on: tuple[str, ...] = ()
    near: Annotated[int, Range(1)] = 1
    sha256: str = ""

    def check_files(self, data: Microdata) -> None:
        self._matches(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = moves(original, masked, self.check_variables(original)).rows
        counted = len(masked) - len(rows)
        if counted == 0:
            raise Undefined("every record has changed on the measured variables, so none is left to count.")
        archive = self._matches(original)
        exposed = self._linked(original, masked)
        exposed[rows] = False
        records = np.flatnonzero(exposed) if masked.origin is None else masked.origin[exposed]
        cells = np.unique(archive.cell[records], return_index=True)[1]
        named = int(archive.matches[records[cells]].sum())
        parts = {"share of the archive": named / max(archive.archive_size, 1)}
        return Estimate(value=len(records) / counted, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each record that links and 0 for the others; NaN for changed records."""
        rows = moves(original, masked, self.check_variables(original)).rows
        exposed = self._linked(original, masked).astype(float)
        exposed[rows] = np.nan
        return exposed

    def _linked(self, original: Microdata, masked: Microdata) -> Array:
        """Return which released records link to the archive by their original values."""
        matches = self._matches(original).matches
        links = (matches >= 1) & (matches <= self.near)
        return links if masked.origin is None else links[masked.origin]

    def _matches(self, original: Microdata) -> ArchiveMatches:
        """Return the matches of the original in the archive; read once per file."""
        key = "archive matches", self.archive, self.sha256, self.variables(original)
        return original.remember(key, lambda: self._read_matches(original))

    def _read_matches(self, original: Microdata) -> ArchiveMatches:
        names = self.variables(original)
        return archive_matches(original, read_archive(self.archive, self.sha256, original, names), names)
