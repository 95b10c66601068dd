"""Records and the population they come from: k-map, and presence in the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Share, Undefined
from sdcmap.data.cells import common_codes, recode_to_released_categories, stack_columns
from sdcmap.data.label_matching import check_one_depth, layers_of, mixed_depth_names, spell_out_true_labels
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._archive import read_archive
from sdcmap.risk._frequencies import KeyMeasure, frequencies, positive_weights

# The population that a sample was drawn from, as a file: how many of its people match each released record.


class Matches(NamedTuple):
    """Combinations of keys that occur in the release or in the population: the one of each released record, how many
    persons of the population have each, and how many released records and persons match it."""

    code: Array
    persons: Array
    released: Array
    population: Array


@dataclass(frozen=True)
class PopulationMeasure(KeyMeasure):
    """A measure of keys that may look them up in a file of the population.

    population : path of the file. sha256 : of its content.

    Parameters
    ----------
    sha256 : the first 16 digits of the population file's SHA-256, filled in when left out; another content is
        refused.
    population : path of a file of the population with columns of the same names and categories (CSV, Parquet, SPSS,
        Stata, SAS); without one the number of persons is estimated.
    """

    _: KW_ONLY
    population: str = ""
    sha256: str = ""

    def check_files(self, data: Microdata) -> None:
        if self.population:
            self.people(data)

    def people(self, data: Microdata) -> Microdata:
        """The keys of the population, read once."""
        names = self.variables(data)
        read = lambda: read_archive(self.population, self.sha256, data, names)
        return data.remember(("population", self.population, self.sha256, names), read)

    def matches(self, original: Microdata, masked: Microdata) -> Matches:
        """Who matches whom, in the categories of the release."""
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        names = self.variables(original)
        known = recode_to_released_categories(original, masked, names)
        masked = spell_out_true_labels(known, masked, names)
        mixed = mixed_depth_names(known, masked, names)
        people = _in_categories_of(original, masked, self.people(original), names)
        columns = [column for name in names for column in self._codes(masked, people, name, name in mixed)]
        cell, _ = compress([column + 1 for column in columns])
        first = np.unique(cell, return_index=True)[1]
        code, theirs = np.split(cell, [len(masked)])
        sums = count = np.column_stack([np.bincount(side, minlength=len(first)) * 1.0 for side in (code, theirs)])
        cells = np.column_stack(columns)[first]
        if (cells < 0).any():
            sums = wildcard_sums(cells, count)
        return Matches(code, count[:, 1], sums[:, 0], sums[:, 1])

    def _codes(self, masked: Microdata, people: Microdata, name: str, mixed: bool) -> list[Array]:
        """One column of both files, coded alike, or one for each layer of labels of several depths: MISSING where any
        value matches; Undefined where one has numbers, the other categories."""
        gone = np.concatenate([masked.missing(name), people.missing(name)])
        layers = layers_of(people, masked, name) if mixed else None
        if layers is not None:
            columns = list(np.vstack([layers.released, layers.known]).T)
        elif (masked.column(name).levels is None) != (people.column(name).levels is None):
            raise Undefined(f"{name!r} was recoded, and nobody can say which released category each value went into.")
        else:
            codes = common_codes(masked, people, name).astype(np.int64)
            columns = [np.where(gone, codes.max(initial=0) + 1, codes)]
        return [np.where(gone, MISSING, code) for code in columns] if self.missing_is == "any value" else columns


def _in_categories_of(original: Microdata, masked: Microdata, people: Microdata, names: tuple[str, ...]) -> Microdata:
    """The people in the categories that masking made, as the original's records tell them; without those who have a value
    that no record of the original has, for nobody knows its category."""
    recoded = [name for name in names if masked.column(name).levels is not original.column(name).levels]
    if not recoded:
        return people
    columns = {name: stack_columns([file.column(name) for file in (original, people)]) for name in recoded}
    everybody = Microdata(original.schema.only(recoded), columns)
    came = np.arange(len(masked)) if masked.origin is None else masked.origin
    seen = recode_to_released_categories(everybody, replace(masked, origin=came), recoded)
    lost = np.logical_or.reduce([seen.missing(name) & ~everybody.missing(name) for name in recoded])[len(original) :]
    theirs = seen.take(np.arange(len(original), len(everybody)))
    schema = people.schema.with_categories(
        {name: "String" for name in recoded if theirs.column(name).levels is not None}
    )
    both = {name: theirs.column(name) if name in recoded else people.column(name) for name in names}
    return Microdata(schema, both).take(np.flatnonzero(~lost))


# How many records of a sample must share a combination, so that enough persons of the population share it too.


def records_needed(k: int, fraction: float, level: float, *, truncated: bool) -> int:
    """The least k' <= k such that a combination of k persons seldom (level) shows k' records or more: the k-anonymity of
    the sample that stands for k-map in its population.

    Records of a combination: X ~ Poisson(k fraction). D4, truncated: the least c with P(X >= c | X > 0) <= level; D3: one
    more than the least c > 0 with P(X >= c) <= level.  El Emam and Dankar (2008), as ARX reads them
    """
    from scipy.special import pdtrc

    mean = k * fraction
    count = np.arange(1, k + 1)
    rare = np.flatnonzero(pdtrc(count - 1, mean) / (-np.expm1(-mean) if truncated else 1.0) <= level)
    least = int(count[rare[0]]) if len(rare) else k
    return min(k, least if truncated else least + 1)


ROUNDING = 1e-9  # sums of weights


@dataclass(frozen=True)
class KMap(PopulationMeasure):
    """The share of records whose combination of keys fewer than k persons of the population have.

    The snooper has a register of the population with names and the keys, and does not know who is in the sample. He looks
    the keys of a released record up and succeeds when fewer than k persons can be meant: that a record is alone in the
    sample does not help him where the population has many like it. What masking changed counts as if it were true.

    Parameters
    ----------
    k : a record is exposed when fewer than k persons match it, at least 2.
    estimate : how persons are counted without a file of them. "weights": the sum of the weights of the records that match;
        "poisson" (D3) and "zero-truncated" (D4): a test that k persons match, by the number of records that do.
    level : of the test, the share of combinations of too few persons that pass it, in (0, 1).
    fraction : the sampling fraction of the test, in (0, 1]; by default records over the sum of the weights, and 1 without.

    Formula: #{i: F_i < k} / n, F_i the persons of the population that agree with i; `parts`: the "smallest" F, and
        "unmatched", the share of records that nobody in the population file agrees with: they are exposed. By a test
        f_i < k' in its place, f_i the records that agree with i, k' <= k the least number that a combination of k persons
        shows seldom: P(X >= k' | X > 0) <= level, X ~ Poisson(k fraction), zero-truncated; 1 + min{c > 0: P(X >= c) <=
        level}, poisson. `parts`: the "smallest" f and "needed", k'.
    Missing values as `missing_is` says. Weights: used where no population is named; they must be positive, and without both
    the file is the population, unless a fraction is stated. Households are not used. Recoded variables are looked up in
    the categories of the release, where each value became one of them; persons with a value that no record of the original
    has are left out then. In a population file labels of several depths ("37", "(35, 40]") are read: persons whose values
    they cover match. Without one equal labels are counted, so that F is at most too small.
    Reference: Sweeney (2002), section 4.2; Pannekoek (1999), D3; El Emam and Dankar (2008), D4.

    Examples
    --------
    >>> KMap(k=5).text
    'KMap(k=5)'
    """

    label: ClassVar[str] = "Records below k in the population"
    description: ClassVar[str] = (
        "Share of records whose combination of keys is shared by fewer than k people in the population."
    )

    weights: ClassVar[str] = "used where no population is named: a record stands for so many persons"

    revision: ClassVar[int] = 3  # 2: estimates by a test; 3: labels of several depths are read

    k: Annotated[int, Range(2)] = 3
    estimate: Literal["weights", "poisson", "zero-truncated"] = "weights"
    level: Annotated[float, Range(0, 1, "()")] = 0.01
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.population and self.estimate != "weights":
            yield f".estimate = {self.estimate!r} and .population: persons are estimated or counted, not both."
        if self.fraction is not None and self.estimate == "weights":
            yield '.fraction belongs to the estimates "poisson" and "zero-truncated".'

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return iter(()) if self.population else positive_weights(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        seen, needed = self._seen(original, masked)
        parts = {"smallest": float(seen.min())}
        if self.population:
            parts["unmatched"] = float((seen == 0).mean())
        if self.estimate != "weights":
            parts["needed"] = float(needed)
        return Estimate(value=float((seen < needed - ROUNDING).mean()), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where too few persons match, 0 elsewhere."""
        seen, needed = self._seen(original, masked)
        return (seen < needed - ROUNDING).astype(float)

    def _seen(self, original: Microdata, masked: Microdata) -> tuple[Array, int]:
        """How many persons of the population match each record, or records where a test decides; and how many must."""
        names = self.check_variables(original)
        if self.population:
            matches = self.matches(original, masked)
            return matches.population[matches.code], self.k
        frequency = frequencies(masked, names, self.missing_is, 1.0)
        if self.estimate == "weights":
            return frequency.weights[frequency.met.code], self.k
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        needed = records_needed(self.k, share, self.level, truncated=self.estimate == "zero-truncated")
        return frequency.records[frequency.met.code], needed


# People of the population of whom a release tells whether they are in it.


SLACK = 1e-9


@dataclass(frozen=True)
class DeltaPresence(PopulationMeasure):
    """The share of persons of the population of whom the release tells too well whether they are in the file.

    The snooper has a register of the population, the keys of everybody in it, and wants to know who is in the file: being
    in it may itself be the secret. Of the persons who share their keys as many are in the file as released records have
    them. He succeeds when that is nearly all of them, or none. What masking changed counts as if it were true.

    Parameters
    ----------
    low, high : the chances of being in the file, in [0, 1], between which nobody has learned too much; low at most high.
    population : path of a file of the population, those in the original included, with columns of the same names and
        categories (CSV, Parquet, SPSS, Stata, SAS); it must be given.

    Formula: #{persons j: delta_j < low or delta_j > high} / persons, delta_j = f/F, at most 1: f released records and F
        persons of the population agree with j. `parts`: the "smallest" and the "largest" delta, and the share of
        persons "above".
    Missing values as `missing_is` says. Weights and households are not used. Recoded variables are looked up in the
    categories of the release, where each value became one of them; persons with a value that no record of the original has
    are left out then. Undefined where labels are of several depths ("37" beside "(35, 40]"): a person has no one group.
    Reference: Nergiz, Atzori, Clifton (2007), definition 4; ARX's d-presence.

    Examples
    --------
    >>> DeltaPresence(high=0.5, population="register.csv", sha256="9f86d081884c7d65").text
    "DeltaPresence(population='register.csv', sha256='9f86d081884c7d65', high=0.5)"
    """

    label: ClassVar[str] = "Presence disclosure (delta-presence)"
    description: ClassVar[str] = (
        "Share of people for whom the release reveals too clearly whether they are in the file."
    )

    unit: ClassVar[str] = "share of persons"
    revision: ClassVar[int] = 2  # 2: undefined where labels are of several depths

    low: Share = 0.0
    high: Share = 0.8
    population: str = field(kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.low > self.high:
            yield ".low must be at most .high."
        if not self.population:
            yield ".population must be given: the path of a file of the population."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        matches, delta = self._presence(original, masked)
        there = matches.persons > 0
        if not there.any():
            raise Undefined("nobody is left in the file of the population.")
        share = matches.persons / matches.persons.sum()
        above = float(share @ (delta > self.high + SLACK))
        parts = {"smallest": float(delta[there].min()), "largest": float(delta[there].max()), "above": above}
        return Estimate(value=min(1.0, above + float(share @ (delta < self.low - SLACK))), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance of being in the file of the persons with each record's keys; 1 where the population has none."""
        matches, delta = self._presence(original, masked)
        return delta[matches.code]

    def _presence(self, original: Microdata, masked: Microdata) -> tuple[Matches, Array]:
        """Who matches whom, and f/F, at most 1, of each combination."""
        names = self.check_variables(original)
        check_one_depth(recode_to_released_categories(original, masked, names), masked, names)
        matches = self.matches(original, masked)
        return matches, np.minimum(matches.released / np.maximum(matches.population, 1.0), 1.0)
