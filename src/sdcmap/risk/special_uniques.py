"""Special uniques: SUDA's scores, and the special uniques that masking leaves to be re-identified."""

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
from sdcmap.risk._frequencies import KeyMeasure, dis_suda, frequencies, size_scores

# Who was looked up on what made him special, one after the other: the row of the released file, whether one released record
# has the values, and whether that is his.
LookUps: TypeAlias = tuple[Array, Array, Array]


class Search(NamedTuple):
    """One way to look values up: codes of known and released records, MISSING where every value matches, and the variable
    of each column."""

    known: Array
    released: Array
    variable: Array

    def on(self, some: list[int]) -> Search:
        """The same by these variables alone."""
        kept = np.isin(self.variable, some)
        return Search(*(part[..., kept] for part in self))


def matching_records(known: Array, released: Array) -> Array:
    """How many released rows have the values of each known row; MISSING matches every value."""
    codes = np.concatenate([known, released])
    code = compress(list((codes - MISSING).T))[0]
    count = np.bincount(code[len(known) :], minlength=int(code.max(initial=0)) + 1)
    if (codes != MISSING).all():
        return count[code[: len(known)]]
    return wildcard_sums(codes[np.unique(code, return_index=True)[1]], count)[code[: len(known)]]


@dataclass(frozen=True)
class SpecialUniques(KeyMeasure):
    """The share of special uniques that are still alone, and found, on the few values that make them special.

    The snooper knows a few things of somebody that nobody else has together: a widow of sixteen, the only dentist of a
    village. He needs no register to know that such people are rare. He looks these values up in the released file, and
    succeeds when exactly one record has them and it is that person's. A record that has them all comes before those with a
    blank among them.

    Parameters
    ----------
    missing_is : "any value": a missing value matches every value, where no record has the values; "a category": it matches
        missing alone.
    largest : the most variables that he knows of one person, at least 1.

    Formula: a record is a special unique where it alone has its values of a set of up to `largest` variables in the
    original, and of no smaller part of it (a minimal sample unique; SUDA counts these). Of the released records that are,
    the share that at least one of their sets finds; 0 in a file without any. Where values became new categories, he looks
    these up; of labels of several depths ("37", "(35, 40]") records that have the values come first, then those whose
    labels cover them.
    `parts`: "special uniques", how many; "of all records", the found ones; "by a set at random", the share found by who
    knows one of the person's sets, whichever; "right when alone", of the look-ups that show one record, the right ones.
    Missing values are looked up as `missing_is` says; that somebody's value is missing makes him no special unique ("any
    value"), and nobody else's takes it from him: he who has the values comes first here too. Weights and
    households are not used. Releasing nothing leaves nobody: 0.
    Reference: Elliot, Manning, Ford (2002) for special uniques; the look-up in the masked file is ours.

    Examples
    --------
    >>> SpecialUniques(largest=2).text
    'SpecialUniques(largest=2)'
    """

    label: ClassVar[str] = "Special uniques re-identified"
    description: ClassVar[str] = (
        "Share of people with a rare combination of a few values who are still unique and correctly re- identified."
    )

    unit: ClassVar[str] = "share of special uniques"
    revision: ClassVar[int] = 4  # 2, 3: who has the values comes before a blank, in both files; 4: labels are read

    largest: Annotated[int, Range(1)] = 3

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        row, alone, found = self._look_up(original, masked)
        special, place, sets = np.unique(row, return_inverse=True, return_counts=True)
        hits = np.bincount(place, found, len(special))
        parts = {
            "special uniques": float(len(special)),
            "of all records": float((hits > 0).sum()) / len(masked) if len(masked) else 0.0,
            "by a set at random": _share(hits / sets),
            "right when alone": _share(found[alone]),
        }
        return Estimate(value=_share(hits > 0), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where one of his sets finds a special unique, 0 where none does; NaN: the record is none."""
        row, _, found = self._look_up(original, masked)
        each = np.full(len(masked), np.nan)
        each[row] = 0.0
        each[row[found]] = 1.0
        return each

    def _look_up(self, original: Microdata, masked: Microdata) -> LookUps:
        """Every released record that is special, once for each of its sets."""
        names = self.check_variables(original)
        person, sets = original.remember(("special uniques", self), lambda: self._special(original))
        searches = self._searches(original, masked, names)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=bool), np.empty(0, dtype=bool))]
        for chosen in np.unique(sets).tolist():
            row = np.flatnonzero(np.isin(origin, person[sets == chosen]))
            parts.append(_looked_up([search.on(members(chosen)) for search in searches], origin[row], row))
        row, alone, found = (np.concatenate(column) for column in zip(*parts, strict=True))
        return row, alone, found

    def _special(self, original: Microdata) -> tuple[Array, Array]:
        """The special uniques of the original: which record, on which set of variables (bits)."""
        met, cell, sets = replace(self, missing_is="a category").minimal_uniques(original, self.largest)
        if self.missing_is == "any value":  # a blank is a value of nobody's
            blank = (met.codes < 0) @ (1 << np.arange(met.codes.shape[1]))
            whole = (blank[cell] & sets) == 0
            cell, sets = cell[whole], sets[whole]
        record = np.empty(len(met.count), dtype=np.int64)
        record[met.code] = np.arange(len(original))  # a unique cell has one record
        return record[cell], sets

    def _searches(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[Search]:
        """The ways to look values up, one after the other: among records that have them, whose labels cover them, and with
        blanks that may be anything."""
        known = recode_to_released_categories(original, masked, names)
        masked = spell_out_true_labels(known, masked, names)
        mixed = mixed_depth_names(known, masked, names)
        wild = self.missing_is == "any value"
        ways = [list(_columns(numbers_as_labels(known, masked, mixed), masked, names, ()))]
        if mixed:
            ways.append(list(_columns(known, masked, names, mixed)))
        searches = [_search(columns, len(known), wild, False) for columns in ways]
        return [*searches, _search(ways[-1], len(known), True, True)] if wild else searches


# A variable of both files, one below the other: codes, a column for each layer of its labels, and where it misses.
_Column: TypeAlias = tuple[Array, Array]


def _columns(known: Microdata, masked: Microdata, names: tuple[str, ...], mixed: tuple[str, ...]) -> Iterator[_Column]:
    """Codes that are equal where values are, or where labels of several depths cover them; missing is one of its own."""
    for name in names:
        gone = np.concatenate([known.missing(name), masked.missing(name)])
        layers = layers_of(known, masked, name) if name in mixed else None
        if layers is not None:
            yield np.vstack(layers), gone
        else:
            codes = common_codes(known, masked, name).astype(np.int64)
            yield np.where(gone, codes.max(initial=0) + 1, codes)[:, np.newaxis], gone


def _search(columns: list[_Column], people: int, known_wild: bool, released_wild: bool) -> Search:
    """known_wild, released_wild : whether what is missing there matches every value."""
    wild = np.repeat([known_wild, released_wild], [people, len(columns[0][1]) - people])
    both = np.hstack([np.where((gone & wild)[:, np.newaxis], MISSING, codes) for codes, gone in columns])
    variable = np.repeat(np.arange(len(columns)), [codes.shape[1] for codes, _ in columns])
    return Search(both[:people], both[people:], variable)


def _looked_up(searches: list[Search], person: Array, row: Array) -> LookUps:
    """People looked up among all released records, by the first search that leaves any."""
    left, own = np.zeros(len(row)), np.zeros(len(row), dtype=np.bool_)
    for known, released, _ in searches:
        values, theirs, nobody = known[person], released[row], left == 0
        left = np.where(nobody, matching_records(values, released), left)
        own = np.where(nobody, ((values == theirs) | (values == MISSING) | (theirs == MISSING)).all(axis=1), own)
    return row, left == 1, (left == 1) & own


def _share(hits: Array) -> float:
    """The mean; 0 of nobody."""
    return float(hits.mean()) if len(hits) else 0.0


# Special uniques.


@dataclass(frozen=True)
class SUDA(KeyMeasure):
    """The mean chance that a match to a special unique is right: DIS-SUDA scores.

    The snooper knows only some of the keys of somebody, and does not know whether the person is in the sample. He looks
    for a record that is alone on what he knows. The fewer variables make a record unique, and the more such sets it has,
    the likelier it is unique in the population too; he succeeds when the record he finds alone is the person's.

    Parameters
    ----------
    on : the variables he may know, of any kind; by default the keys of the file; at least 2.
    largest : the most variables a set may have, at least 1; by default all.
    fraction : the sampling fraction, in (0, 1).
    scores : the score of a minimal unique on k of m variables: "Elliot" (m - k)!; "IHSN" as its first program.

    Formula: a set is a minimal sample unique of a record that is alone on it and on no smaller part of it; the SUDA score
    is the sum over its sets. With P records in pairs, d the fraction, s the scores of m variables, w = s^q sum s^-q:
        DIS-SUDA = d w / (d w + P (1 - d)), q = 1 + (8 - m) / 20; 1 in a file without pairs, which cannot tell.
    `parts`: "uniques" (records with a score), "score" (the sum of SUDA scores), and the "contribution of" each variable:
    the share of all scores from sets that hold it (they overlap, so they add up to more than 1).
    Missing values as `missing_is` says. Weights and households are not used.
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
        met, cell, variables, each = self._minimal(masked)
        total = float(each.sum())
        parts = {"uniques": float(len(np.unique(cell))), "score": total}
        for j, name in enumerate(names):
            parts[f"contribution of {name}"] = float(each[variables >> j & 1 > 0].sum()) / total if total else 0.0
        return Estimate(value=float(met.count @ self._dis(masked, met, cell, each) / len(masked)), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur, and the DIS-SUDA score of each."""
        self.check_variables(original)
        met, cell, _, each = self._minimal(masked)
        return met, self._dis(masked, met, cell, each)

    def suda(self, data: Microdata) -> Array:
        """The SUDA score of each record of a file."""
        self.check_variables(data)
        met, cell, _, each = self._minimal(data)
        return np.bincount(cell, each, minlength=len(met.count))[met.code]

    def _minimal(self, data: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        """The combinations that occur, and the minimal uniques: which combination, on which variables, and their score."""
        met, cell, variables = self.minimal_uniques(data, self.largest)
        by_size = size_scores(met.codes.shape[1], ihsn=self.scores == "IHSN")
        return met, cell, variables, by_size[np.bitwise_count(variables).astype(np.int64) - 1]

    def _dis(self, data: Microdata, met: DistinctCells, cell: Array, each: Array) -> Array:
        frequency = frequencies(data, self.variables(data), self.missing_is, 1.0)
        pairs = int(frequency.met.count[frequency.records == 2].sum())
        suda = np.bincount(cell, each, minlength=len(met.count))
        return dis_suda(suda, frequency.met.count, pairs, self.fraction, frequency.met.codes.shape[1])
