"""People whose record can be looked up: by exact values, by risk of each record, or in an external file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Floats, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import common_codes, moves, recode_to_released_categories
from sdcmap.data.label_matching import numbers_as_labels, possible_matches, spell_out_true_labels
from sdcmap.kernels.tables.coding import compress, count_cells
from sdcmap.risk._archive import read_archive

# People looked up in a release by what is known of them: records that have their values, or whose labels cover them.


class LookUp(NamedTuple):
    """For each released record's person: how many records are left, and whether his own is among them."""

    left: Array
    own: Array


def looked_up(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[LookUp, LookUp | None, Array]:
    """Everybody's known values looked up; where values became new categories, these.

    By equal values; by labels that cover them, None where these are not of several depths; and how many released records
    are equal to each.
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
    count = np.bincount(theirs, minlength=int(cell.max(initial=0)) + 1)
    return LookUp(count[ours], ours == theirs), covering, count[theirs]


@dataclass(frozen=True)
class ExactMatch(RiskMeasure):
    """The share of released records that a snooper finds by looking up what he knows, value for value.

    The snooper knows some variables of a person as they are, and filters the released file on all of them. He succeeds
    when fewer than k records are left and the person's own is among them. It is the plainest attack there is: a file in
    which it works needs no other.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default every released column that somebody beside the respondent knows.
    k : so few records or more are a crowd, at least 2; with 2 he is left with one record, the person's.

    Formula: #{released records i : 1 <= f(x_i) < k and y_i = x_i} / #{released records}, x_i what is known of the person,
    y_i the released values, f(x) the released records with values x. Where values became new categories, he looks these
    up. Labels of several depths ("37", "(35, 40]", "*") he reads, and is found too who is among fewer than k records whose
    labels cover his values. `parts`: "alone", the share of released records that no other record equals on these variables,
    found or not.
    Missing is a category of its own: a blanked value equals missing alone (linkage attacks take it for any value).
    Weights and households are not used. Releasing nothing leaves nobody: 0.
    Reference: the uniques of Bethlehem, Keller, Pannekoek (1990), looked up in what was released.

    Examples
    --------
    >>> ExactMatch(on=["age", "sex"], k=3).text
    "ExactMatch(on=['age', 'sex'], k=3)"
    """

    label: ClassVar[str] = "Exact matches re-identified"
    description: ClassVar[str] = (
        "Share of released records that an attacker re-identifies by looking up values they know exactly."
    )

    columns_by_default: ClassVar = "knowable"
    revision: ClassVar[int] = 2  # 2: labels of several depths are read

    on: tuple[str, ...] = ()
    k: Annotated[int, Range(2)] = 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        found, count = self._look_up(original, masked)
        if len(masked) == 0:
            return Estimate(value=0.0, parts={"alone": 0.0})
        return Estimate(value=float(found.mean()), parts={"alone": float((count == 1).mean())})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record is found, 0 where it is not."""
        return self._look_up(original, masked)[0].astype(np.float64)

    def _look_up(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Whether each released record is found, and how many released records equal it."""
        *ways, alike = looked_up(original, masked, self.check_variables(original))
        return np.logical_or.reduce([way.own & (way.left < self.k) for way in ways if way is not None]), alike


# The risk of the record that is easiest to look up.


FEWEST = 20  # people from whom it is learned how often a look-up that leaves so many records is right


class Crowds(NamedTuple):
    """By the number of records that a look-up leaves, from few to many: people, and how often theirs is among them."""

    size: Array
    people: Array
    right: Floats


def crowds(left: Array, own: Array) -> Crowds:
    """left : records that the look-up of each person leaves, 0: none; own : whether his is among them. Sizes with few
    people are judged together with the next, the last ones with those before."""
    size, place, people = np.unique(left[left > 0], return_inverse=True, return_counts=True)
    met = np.bincount(place, own[left > 0], len(size))
    starts = [0]
    for end in range(1, len(size)):
        if people[starts[-1] : end].sum() >= FEWEST <= people[end:].sum():
            starts.append(end)
    if not len(size):
        return Crowds(size, people, np.empty(0))
    right = np.add.reduceat(met, starts) / np.add.reduceat(people, starts)
    return Crowds(size, people, right[np.searchsorted(starts, np.arange(len(size)), side="right") - 1])


@dataclass(frozen=True)
class RecordRisk(RiskMeasure):
    """The largest probability with which a snooper is right who looks somebody up by what everybody may know.

    The snooper knows the keys of a person, filters the released file on them, and takes one of the records that are left.
    How sure may he be? In a file that nothing perturbed, one over their number: the smallest crowd decides (1/k). Where
    values were changed the right record may not be among them, and he learns how often it is.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys of the file.
    inclusion : the probability that the person is in the file, in (0, 1]; the risk is multiplied by it, and stands
        without it in `parts` as "prosecutor".

    Formula: max over s of P(his record is among the s that are left | s are left)/s; the probability is the share of the
    people of whom s records are left, sizes with fewer than 20 people being taken together with the next.
    `parts`: "smallest crowd", "people" of whom so many records are left, and the number of people "expected" to be found.
    Where values became new categories, he looks these up; of labels of several depths he takes the records that have his
    values, and where there are none those whose labels cover them.
    Missing is a category of its own: a blanked value equals missing alone. Weights and households are not used. Releasing
    nothing leaves nobody: 0.
    Reference: "maximum risk" of El Emam (2013), Guide to the De-identification of Personal Health Information, for files
    that are not perturbed; how often a look-up is right, ours.

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
    revision: ClassVar[int] = 2  # 2: labels of several depths are read

    on: tuple[str, ...] = ()
    inclusion: Annotated[float, Range(0, 1, "(]")] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        met = crowds(*self._look_up(original, masked))
        if not len(met.size):
            return Estimate(value=0.0, parts={"prosecutor": 0.0, "smallest crowd": 0.0, "people": 0.0, "expected": 0.0})
        risk = met.right / met.size
        parts = {
            "prosecutor": float(risk.max()),
            "smallest crowd": float(met.size[0]),
            "people": float(met.people[0]),
            "expected": self.inclusion * float(met.people @ risk),
        }
        return Estimate(value=self.inclusion * parts["prosecutor"], parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The probability for each released record's person; 0 where no record is left."""
        left, own = self._look_up(original, masked)
        met = crowds(left, own)
        place = np.searchsorted(met.size, left)
        each = np.append(met.right / met.size, 0.0)[np.where(left > 0, place, len(met.size))]
        return np.asarray(self.inclusion * each)

    def _look_up(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """For each released record's person: how many records his known values leave, and whether his is among them."""
        equal, covering, _ = looked_up(original, masked, self.check_variables(original))
        if covering is None:
            return equal.left, equal.own
        some = equal.left > 0
        return np.where(some, equal.left, covering.left), np.where(some, equal.own, covering.own)


# Records that link to an external file.


def archive_matches(data: Microdata, archive: Microdata, names: tuple[str, ...]) -> Array:
    """How many records of the archive have the same values of `names` as each record of the data."""
    code, met = compress([common_codes(data, archive, name) for name in names])
    ours, theirs = np.split(code, [len(data)])
    return np.asarray(count_cells(theirs, len(met))[ours])


@dataclass(frozen=True)
class ExternalLink(RiskMeasure):
    """The share of unchanged records that link uniquely, or nearly so, to an external file.

    The snooper holds a file with names, an archive, and looks up the key values of each released record in it. He succeeds
    when few records of the archive have them, and the released record is one that the masking left alone.

    Parameters
    ----------
    archive : path of the snooper's file (CSV, Parquet, SPSS, Stata, SAS), with columns of the same names and categories.
    on : the variables he knows; by default the keys of the file.
    near : a record links when 1 to `near` records of the archive match it; 1 is unique, at least 1.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; another content is refused.

    Formula: #{unchanged records with 1..near matches in the archive} / #{unchanged records}; unchanged is as it was on
    these variables. Values match when they are equal.
    Missing is a category of its own: it matches what is missing in the archive. Weights and households are not used.
    Where every record has changed the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1, last paragraph.

    Examples
    --------
    >>> ExternalLink("register.csv", near=2, sha256="9f86d081884c7d65").text
    "ExternalLink(archive='register.csv', near=2, sha256='9f86d081884c7d65')"
    """

    label: ClassVar[str] = "Unique links to an external file"
    description: ClassVar[str] = "Share of records that link uniquely to an external file with names."

    archive: str
    on: tuple[str, ...] = ()
    near: Annotated[int, Range(1)] = 1
    sha256: str = ""

    def check_files(self, data: Microdata) -> None:
        self._links(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = moves(original, masked, self.check_variables(original)).rows
        links, linked = self._links(original)
        if masked.origin is not None:
            links = links[masked.origin]
            linked = int(links.sum())
        counted = len(masked) - len(rows)
        if counted == 0:
            raise Undefined("every record has changed on the measured variables, so none is left to count.")
        return Estimate(value=(linked - int(links[rows].sum())) / counted)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record links, 0 elsewhere; NaN where it has changed."""
        rows = moves(original, masked, self.check_variables(original)).rows
        links, _ = self._links(original)
        exposed = (links if masked.origin is None else links[masked.origin]).astype(float)
        exposed[rows] = np.nan
        return exposed

    def _links(self, original: Microdata) -> tuple[Array, int]:
        """Which records of the original link to the archive, and how many: read once per file."""
        return original.remember(("archive links", self), lambda: self._read_links(original))

    def _read_links(self, original: Microdata) -> tuple[Array, int]:
        names = self.variables(original)
        matches = archive_matches(original, read_archive(self.archive, self.sha256, original, names), names)
        links = (matches >= 1) & (matches <= self.near)
        return links, int(links.sum())
