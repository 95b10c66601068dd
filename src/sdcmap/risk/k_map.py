"""Records compared with the population they come from: k-map, and presence in the release."""

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
from sdcmap.risk._frequencies import KeyMeasure, count_frequencies, find_weight_problems

# The population as a file: how many of its people match each released record.


class Matches(NamedTuple):
    """Key combinations of the release and the population.

    `code` is the combination of each released record. The others count, for each combination: the persons of the
    population who have it, and the released records and the persons that match it.
    """

    code: Array
    persons: Array
    released: Array
    population: Array


@dataclass(frozen=True)
class PopulationMeasure(KeyMeasure):
    """Base of the measures that may look up keys in a file of the population.

    Parameters
    ----------
    sha256 : the first 16 digits of the population file's SHA-256, filled in when left out; a file with another digest
        is rejected.
    population : path of a file of the population with columns of the same names and categories (CSV, Parquet, SPSS,
        Stata, SAS); without one the number of persons is estimated.
    """

    _: KW_ONLY
    population: str = ""
    sha256: str = ""

    def check_files(self, data: Microdata) -> None:
        if self.population:
            self.read_population(data)

    def read_population(self, data: Microdata) -> Microdata:
        """Return the keys of the population, read once."""
        names = self.variables(data)
        read = lambda: read_archive(self.population, self.sha256, data, names)
        return data.remember(("population", self.population, self.sha256, names), read)

    def matches(self, original: Microdata, masked: Microdata) -> Matches:
        """Count matching records and persons, in the categories of the release."""
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        names = self.variables(original)
        known = recode_to_released_categories(original, masked, names)
        masked = spell_out_true_labels(known, masked, names)
        mixed = mixed_depth_names(known, masked, names)
        people = _recode_like_release(original, masked, self.read_population(original), names)
        columns = [column for name in names for column in self._codes(masked, people, name, name in mixed)]
        cell, _ = compress([column + 1 for column in columns])
        first = np.unique(cell, return_index=True)[1]
        code, theirs = np.split(cell, [len(masked)])
        sums = count = np.column_stack([np.bincount(side, minlength=len(first)) * 1.0 for side in (code, theirs)])
        cells = np.column_stack(columns)[first]
        # with missing values, a combination also matches others than itself
        if (cells < 0).any():
            sums = wildcard_sums(cells, count)
        return Matches(code, count[:, 1], sums[:, 0], sums[:, 1])

    def _codes(self, masked: Microdata, people: Microdata, name: str, mixed: bool) -> list[Array]:
        """Return one column of both files as common codes, or one for each layer of labels of several depths.

        The code is MISSING where any value matches. Raises `Undefined` if one file has numbers and the other
        categories.
        """
        is_missing = np.concatenate([masked.missing(name), people.missing(name)])
        layers = layers_of(people, masked, name) if mixed else None
        if layers is not None:
            columns = list(np.vstack([layers.released, layers.known]).T)
        elif (masked.column(name).levels is None) != (people.column(name).levels is None):
            raise Undefined(f"{name!r} was recoded, and the released category of each value is not known.")
        else:
            codes = common_codes(masked, people, name).astype(np.int64)
            columns = [np.where(is_missing, codes.max(initial=0) + 1, codes)]
        return [np.where(is_missing, MISSING, code) for code in columns] if self.missing_is == "any value" else columns


def _recode_like_release(
    original: Microdata, masked: Microdata, people: Microdata, names: tuple[str, ...]
) -> Microdata:
    """Return the people in the released categories, as learned from the records of the original.

    People with a value that no record of the original has are left out, because its category is not known.
    """
    recoded = [name for name in names if masked.column(name).levels is not original.column(name).levels]
    if not recoded:
        return people
    columns = {name: stack_columns([file.column(name) for file in (original, people)]) for name in recoded}
    all_records = Microdata(original.schema.only(recoded), columns)
    # the stacked file has more rows than the original, so `origin` must be explicit
    origin = np.arange(len(masked)) if masked.origin is None else masked.origin
    recoded_all = recode_to_released_categories(all_records, replace(masked, origin=origin), recoded)
    no_category = [recoded_all.missing(name) & ~all_records.missing(name) for name in recoded]
    has_no_category = np.logical_or.reduce(no_category)[len(original) :]
    theirs = recoded_all.take(np.arange(len(original), len(all_records)))
    schema = people.schema.with_categories(
        {name: "String" for name in recoded if theirs.column(name).levels is not None}
    )
    both = {name: theirs.column(name) if name in recoded else people.column(name) for name in names}
    return Microdata(schema, both).take(np.flatnonzero(~has_no_category))


# How many records of a sample must share a combination for enough persons of the population to share it too.


def records_needed(k: int, fraction: float, level: float, *, truncated: bool) -> int:
    """Return the smallest k' <= k such that a combination of k persons rarely (`level`) shows k' records or more.

    k'-anonymity of the sample then implies k-map in the population. The number of records is X ~ Poisson(k fraction).
    D4 (truncated): the least c with P(X >= c | X > 0) <= level; D3: one more than the least c > 0 with P(X >= c) <=
    level. El Emam and Dankar (2008), as implemented in ARX
    """
    from scipy.special import pdtrc

    mean = k * fraction
    count = np.arange(1, k + 1)
    rare = np.flatnonzero(pdtrc(count - 1, mean) / (-np.expm1(-mean) if truncated else 1.0) <= level)
    least = int(count[rare[0]]) if len(rare) else k
    return min(k, least if truncated else least + 1)


WEIGHT_SUM_TOLERANCE = 1e-9  # rounding error of a sum of weights that is compared with k


@dataclass(frozen=True)
class KMap(PopulationMeasure):
    """Share of records whose combination of keys fewer than k persons of the population have.

    The attacker has a register of the population with names and keys, and does not know who is in the sample. They look
    up the keys of a released record and succeed if fewer than k persons match. A record that is unique in the sample
    does not help if the population has many like it. Masked values count as if they were true.

    Parameters
    ----------
    k : a record is exposed if fewer than k persons match it, at least 2.
    estimate : how persons are counted without a population file. "weights": the sum of the weights of the matching
        records; "poisson" (D3) and "zero-truncated" (D4): a test that k persons match, given the number of matching
        records.
    level : of the test: the share of combinations with too few persons that pass it, in (0, 1).
    fraction : the sampling fraction of the test, in (0, 1]; by default records over the sum of the weights, or 1
        without weights.

    Formula: #{i: F_i < k} / n, F_i the persons of the population that agree with i. With a test f_i < k' instead, f_i
        the records that agree with i, k' <= k the least number that a combination of k persons rarely shows: P(X >= k'
        | X > 0) <= level, X ~ Poisson(k fraction), zero-truncated; 1 + min{c > 0: P(X >= c) <= level}, poisson.
    `parts`: the "smallest" F, or f with a test; "unmatched", the share of records that match nobody in the population
    file (they are exposed); and "records required", k', with a test.
    Missing values match according to `missing_is`. Weights: used without a population file; they must be positive.
    Without either, the file is the population, unless a fraction is given. Households are not used. Recoded variables
    are compared in the released categories; persons with a value that no original record has are left out then. With a
    population file, labels of several depths ("37", "(35, 40]") match the persons they cover; otherwise only equal
    labels match, so F may be too small.
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

    weights: ClassVar[str] = "used without a population file: a record represents as many persons"

    revision: ClassVar[int] = 3  # 2: estimates by a test; 3: labels of several depths are read

    k: Annotated[int, Range(2)] = 3
    estimate: Literal["weights", "poisson", "zero-truncated"] = "weights"
    level: Annotated[float, Range(0, 1, "()")] = 0.01
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.population and self.estimate != "weights":
            yield f".estimate = {self.estimate!r} cannot be combined with .population, which counts the persons."
        if self.fraction is not None and self.estimate == "weights":
            yield '.fraction is used only with the estimates "poisson" and "zero-truncated".'

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return iter(()) if self.population else find_weight_problems(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        matches, needed = self._count_matches(original, masked)
        parts = {"smallest": float(matches.min())}
        if self.population:
            parts["unmatched"] = float((matches == 0).mean())
        if self.estimate != "weights":
            parts["records required"] = float(needed)
        return Estimate(value=float((matches < needed - WEIGHT_SUM_TOLERANCE).mean()), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each record that too few persons match, else 0."""
        matches, needed = self._count_matches(original, masked)
        return (matches < needed - WEIGHT_SUM_TOLERANCE).astype(float)

    def _count_matches(self, original: Microdata, masked: Microdata) -> tuple[Array, int]:
        """Return the number of matching persons (with a test: records) of each record, and the number required."""
        names = self.check_variables(original)
        if self.population:
            matches = self.matches(original, masked)
            return matches.population[matches.code], self.k
        frequency = count_frequencies(masked, names, self.missing_is, 1.0)
        if self.estimate == "weights":
            return frequency.weights[frequency.cells.code], self.k
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        needed = records_needed(self.k, share, self.level, truncated=self.estimate == "zero-truncated")
        return frequency.records[frequency.cells.code], needed


# People of the population for whom a release reveals whether they are in it.


SHARE_TOLERANCE = 1e-9  # rounding error of a share that is compared with a limit


@dataclass(frozen=True)
class DeltaPresence(PopulationMeasure):
    """Share of persons of the population for whom the release reveals too clearly whether they are in the file.

    The attacker has a register of the population with everyone's keys and wants to know who is in the file: membership
    may itself be the secret. Among the persons who share a combination of keys, as many are in the file as released
    records have it. The attacker succeeds if that is nearly all of them, or none. Masked values count as if they were
    true.

    Parameters
    ----------
    low, high : the range of acceptable probabilities of being in the file, in [0, 1]; low at most high.
    population : path of a file of the population, including the people of the original, with columns of the same names
        and categories (CSV, Parquet, SPSS, Stata, SAS); required.

    Formula: #{persons j: delta_j < low or delta_j > high} / persons, delta_j = f/F, at most 1: f released records and F
        persons of the population agree with j.
    `parts`: the "smallest" and the "largest" delta, and the share of persons "above" high.
    Missing values match according to `missing_is`. Weights and households are not used. Recoded variables are compared
    in the released categories; persons with a value that no original record has are left out then. Undefined for labels
    of several depths ("37" and "(35, 40]"), because a person then belongs to several groups.
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
    revision: ClassVar[int] = 2  # 2: undefined for labels of several depths

    low: Share = 0.0
    high: Share = 0.8
    population: str = field(kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.low > self.high:
            yield ".low must be at most .high."
        if not self.population:
            yield ".population is required: the path of a file of the population."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        matches, delta = self._presence(original, masked)
        occurs = matches.persons > 0
        if not occurs.any():
            raise Undefined("no person of the population file has values whose released category is known.")
        share = matches.persons / matches.persons.sum()
        above = float(share @ (delta > self.high + SHARE_TOLERANCE))
        parts = {"smallest": float(delta[occurs].min()), "largest": float(delta[occurs].max()), "above": above}
        return Estimate(value=min(1.0, above + float(share @ (delta < self.low - SHARE_TOLERANCE))), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return, for each record, the probability that a person with its keys is in the file; 1 if nobody has them."""
        matches, delta = self._presence(original, masked)
        return delta[matches.code]

    def _presence(self, original: Microdata, masked: Microdata) -> tuple[Matches, Array]:
        """Return the matches, and f/F, at most 1, of each combination."""
        names = self.check_variables(original)
        check_one_depth(recode_to_released_categories(original, masked, names), masked, names)
        matches = self.matches(original, masked)
        return matches, np.minimum(matches.released / np.maximum(matches.population, 1.0), 1.0)
