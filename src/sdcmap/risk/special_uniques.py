"""Special uniques: SUDA scores, and the special uniques that can still be re-identified after masking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range
from sdcmap.data.cells import DistinctCells, common_codes, recode_to_released_categories
from sdcmap.data.label_matching import layers_of, mixed_depth_names, numbers_as_labels, spell_out_true_labels
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.combinations import members
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure, count_frequencies, dis_suda, size_scores

# One entry for each special unique and each of its sets: the row of the released file, whether exactly one released record
# matches, and whether that is the person's own.
LookUps: TypeAlias = tuple[Array, Array, Array]


class Search(NamedTuple):
    """One way to look up values: codes of known and released records, and the variable of each column.

    A code is MISSING where every value matches.
    """

    known: Array
    released: Array
    variable: Array

    def on(self, some: list[int]) -> Search:
        """Return the search restricted to these variables."""
        selected = np.isin(self.variable, some)
        return Search(*(part[..., selected] for part in self))


def count_matching_records(known: Array, released: Array) -> Array:
    """Return how many released rows match each known row; MISSING matches every value."""
    codes = np.concatenate([known, released])
    code = compress(list((codes - MISSING).T))[0]
    count = np.bincount(code[len(known) :], minlength=int(code.max(initial=0)) + 1)
    if (codes != MISSING).all():
        return count[code[: len(known)]]
    return wildcard_sums(codes[np.unique(code, return_index=True)[1]], count)[code[: len(known)]]


@dataclass(frozen=True)
class SpecialUniques(KeyMeasure):
    """Share of special uniques that are still re-identified by the few values that make them special.

    The attacker knows a few values of a person that nobody else has together: a widow of sixteen, the only dentist of a
    village. They need no register to know that such people are rare. They look up these values in the released file,
    and succeed if exactly one record has them and it is that person's. Records with all values take precedence over
    records with blanks.

    Parameters
    ----------
    missing_is : "any value": a missing value matches every value, if no record has the values; "a category": it matches
        missing values only.
    largest : the largest number of variables that the attacker knows of one person, at least 1.

    Formula: a record is a special unique if its values of a set of up to `largest` variables are unique in the
        original, and those of no smaller subset are (a minimal sample unique, as in SUDA). The value is the share of
        the released special uniques that at least one of their sets re-identifies; 0 without any. Recoded values are
        looked up in the released categories. With labels of several depths ("37", "(35, 40]"), records with equal
        values take precedence over labels that cover them.
    `parts`: "special uniques", their number; "share of all records", the re-identified ones; "by one random set", the
    success rate of an attacker who knows one of the person's sets; "correct when unique", the share of look-ups with
    exactly one match that are correct.
    Missing values are looked up according to `missing_is`. With "any value", a missing value makes nobody a special
    unique, and the missing values of others do not prevent it: complete records take precedence here too. Weights and
    households are not used. Releasing nothing re-identifies nobody: 0.
    Reference: Elliot, Manning, Ford (2002) for special uniques; the look-up in the masked file is ours.

    Examples
    --------
    >>> SpecialUniques(largest=2).text
    'SpecialUniques(largest=2)'
    """

    label: ClassVar[str] = "Special uniques re-identified"
    description: ClassVar[str] = (
        "Share of people with a unique combination of a few values who can still be re-identified by them."
    )

    unit: ClassVar[str] = "share of special uniques"
    revision: ClassVar[int] = 4  # 2, 3: complete records before blanks, in both files; 4: labels of several depths

    largest: Annotated[int, Range(1)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        row, unique, correct = self._look_up(original, masked)
        special, index, sets = np.unique(row, return_inverse=True, return_counts=True)
        hits = np.bincount(index, correct, len(special))
        parts = {
            "special uniques": float(len(special)),
            "share of all records": float((hits > 0).sum()) / len(masked) if len(masked) else 0.0,
            "by one random set": _share(hits / sets),
            "correct when unique": _share(correct[unique]),
        }
        return Estimate(value=_share(hits > 0), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each special unique that one of its sets re-identifies, else 0; NaN for other records."""
        row, _, correct = self._look_up(original, masked)
        each = np.full(len(masked), np.nan)
        each[row] = 0.0
        each[row[correct]] = 1.0
        return each

    def _look_up(self, original: Microdata, masked: Microdata) -> LookUps:
        """Look up every released special unique, once for each of its sets."""
        names = self.check_variables(original)
        person, sets = original.remember(("special uniques", self), lambda: self._find_special_uniques(original))
        searches = self._searches(original, masked, names)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=bool), np.empty(0, dtype=bool))]
        for chosen in np.unique(sets).tolist():
            row = np.flatnonzero(np.isin(origin, person[sets == chosen]))
            parts.append(_look_up_set([search.on(members(chosen)) for search in searches], origin[row], row))
        row, unique, correct = (np.concatenate(column) for column in zip(*parts, strict=True))
        return row, unique, correct

    def _find_special_uniques(self, original: Microdata) -> tuple[Array, Array]:
        """Return the special uniques of the original: the record, and the set of variables as bits."""
        cells, cell, sets = replace(self, missing_is="a category").find_minimal_uniques(original, self.largest)
        if self.missing_is == "any value":  # a missing value makes nobody special: drop sets that contain one
            blank = (cells.codes < 0) @ (1 << np.arange(cells.codes.shape[1]))
            complete = (blank[cell] & sets) == 0
            cell, sets = cell[complete], sets[complete]
        record = np.empty(len(cells.count), dtype=np.int64)
        record[cells.code] = np.arange(len(original))  # a unique cell has one record
        return record[cell], sets

    def _searches(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[Search]:
        """Return the ways to look up values, in order of precedence.

        First the records with equal values, then those whose labels cover them, then those with blanks that match any
        value.
        """
        known = recode_to_released_categories(original, masked, names)
        masked = spell_out_true_labels(known, masked, names)
        mixed = mixed_depth_names(known, masked, names)
        wild = self.missing_is == "any value"
        ways = [list(_columns(numbers_as_labels(known, masked, mixed), masked, names, ()))]
        if mixed:
            ways.append(list(_columns(known, masked, names, mixed)))
        searches = [_search(columns, len(known), wild, False) for columns in ways]
        return [*searches, _search(ways[-1], len(known), True, True)] if wild else searches


# A variable of both stacked files: codes, with a column for each layer of its labels, and where it is missing.
_Column: TypeAlias = tuple[Array, Array]


def _columns(known: Microdata, masked: Microdata, names: tuple[str, ...], mixed: tuple[str, ...]) -> Iterator[_Column]:
    """Yield codes that are equal if values are equal or labels of several depths cover them; missing has its own code."""
    for name in names:
        is_missing = np.concatenate([known.missing(name), masked.missing(name)])
        layers = layers_of(known, masked, name) if name in mixed else None
        if layers is not None:
            yield np.vstack(layers), is_missing
        else:
            codes = common_codes(known, masked, name).astype(np.int64)
            yield np.where(is_missing, codes.max(initial=0) + 1, codes)[:, np.newaxis], is_missing


def _search(columns: list[_Column], people: int, known_wild: bool, released_wild: bool) -> Search:
    """Return one search; `known_wild` and `released_wild`: whether missing values of that file match every value."""
    wild = np.repeat([known_wild, released_wild], [people, len(columns[0][1]) - people])
    both = np.hstack([np.where((absent & wild)[:, np.newaxis], MISSING, codes) for codes, absent in columns])
    variable = np.repeat(np.arange(len(columns)), [codes.shape[1] for codes, _ in columns])
    return Search(both[:people], both[people:], variable)


def _look_up_set(searches: list[Search], person: Array, row: Array) -> LookUps:
    """Look up people among all released records, by the first search that has a match."""
    matches, has_own = np.zeros(len(row)), np.zeros(len(row), dtype=np.bool_)
    for known, released, _ in searches:
        # a later search applies only to people without a match so far
        values, own, unmatched = known[person], released[row], matches == 0
        matches = np.where(unmatched, count_matching_records(values, released), matches)
        agrees = ((values == own) | (values == MISSING) | (own == MISSING)).all(axis=1)
        has_own = np.where(unmatched, agrees, has_own)
    return row, matches == 1, (matches == 1) & has_own


def _share(hits: Array) -> float:
    """Return the mean, or 0 for an empty array."""
    return float(hits.mean()) if len(hits) else 0.0


# SUDA scores of special uniques.


@dataclass(frozen=True)
class SUDA(KeyMeasure):
    """Mean probability that a match to a special unique is correct: DIS-SUDA scores.

    The attacker knows only some of the keys of a person, and not whether the person is in the sample. They look for a
    record that is unique on what they know. The fewer variables make a record unique, and the more such sets it has,
    the more likely it is unique in the population too.

    Parameters
    ----------
    on : the variables the attacker may know, of any kind; by default the keys of the file; at least 2.
    largest : the largest number of variables in a set, at least 1; by default all.
    fraction : the sampling fraction, in (0, 1).
    scores : the score of a minimal unique on k of m variables: "Elliot" (m - k)!; "IHSN" as in its first program.

    Formula: a minimal sample unique is a set of variables on which a record is unique, while it is unique on no proper
        subset; the SUDA score is the sum over its sets. With P records in pairs, d the fraction, s the scores of m
        variables, w = s^q sum s^-q: DIS-SUDA = d w / (d w + P (1 - d)), q = 1 + (8 - m) / 20; 1 in a file without
        pairs, where it cannot be estimated.
    `parts`: "uniques" (records with a score), "score" (the sum of SUDA scores), and the "contribution of" each
    variable: the share of all scores from sets that contain it (sets overlap, so these add up to more than 1).
    Missing values match according to `missing_is`. Weights and households are not used.
    Reference: Elliot, Manning, Ford (2002); Manning, Haglin, Keane (2008); Elliot and Manning (2003) for DIS-SUDA.

    Examples
    --------
    >>> SUDA(largest=3).text
    'SUDA(largest=3)'
    """

    label: ClassVar[str] = "Special-unique risk (DIS-SUDA)"
    description: ClassVar[str] = (
        "Average probability that a match to a record with a rare combination of few values is correct."
    )

    revision: ClassVar[int] = 2  # 2: files without pairs have a score at any fraction
    unit: ClassVar[str] = "probability"

    largest: Annotated[int | None, Range(1)] = None
    fraction: Annotated[float, Range(0, 1, "()")] = 0.01
    scores: Literal["Elliot", "IHSN"] = "Elliot"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if len(self.variables(data)) == 1:
            yield "SUDA needs at least 2 variables."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        cells, cell, variables, each = self._score_minimal_uniques(masked)
        total = float(each.sum())
        parts = {"uniques": float(len(np.unique(cell))), "score": total}
        for j, name in enumerate(names):
            parts[f"contribution of {name}"] = float(each[variables >> j & 1 > 0].sum()) / total if total else 0.0
        return Estimate(value=float(cells.count @ self._dis_suda(masked, cells, cell, each) / len(masked)), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """Return the key combinations that occur, and the DIS-SUDA score of each."""
        self.check_variables(original)
        cells, cell, _, each = self._score_minimal_uniques(masked)
        return cells, self._dis_suda(masked, cells, cell, each)

    def suda(self, data: Microdata) -> Array:
        """Return the SUDA score of each record of a file."""
        self.check_variables(data)
        cells, cell, _, each = self._score_minimal_uniques(data)
        return np.bincount(cell, each, minlength=len(cells.count))[cells.code]

    def _score_minimal_uniques(self, data: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        """Return the combinations that occur, and for each minimal unique its combination, its variables and its score."""
        cells, cell, variables = self.find_minimal_uniques(data, self.largest)
        by_size = size_scores(cells.codes.shape[1], ihsn=self.scores == "IHSN")
        return cells, cell, variables, by_size[np.bitwise_count(variables).astype(np.int64) - 1]

    def _dis_suda(self, data: Microdata, cells: DistinctCells, cell: Array, each: Array) -> Array:
        """Return the DIS-SUDA score of each combination."""
        frequency = count_frequencies(data, self.variables(data), self.missing_is, 1.0)
        pairs = int(frequency.cells.count[frequency.records == 2].sum())
        suda = np.bincount(cell, each, minlength=len(cells.count))
        return dis_suda(suda, frequency.cells.count, pairs, self.fraction, frequency.cells.codes.shape[1])
