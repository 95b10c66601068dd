"""Special uniques that masking leaves to be found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.combinations import members
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure


class Lookups(NamedTuple):
    """Who was looked up on what made him special, one after the other."""

    row: Array  # of the released file
    alone: Array  # whether one released record has the values
    found: Array  # and whether it is his


def matching_records(known: Array, released: Array) -> Array:
    """How many released rows have the values of each known row; MISSING matches every value."""
    codes = np.concatenate([known, released])
    code = compress(list((codes - MISSING).T))[0]
    count = np.bincount(code[len(known) :], minlength=int(code.max(initial=0)) + 1)
    if (codes != MISSING).all():
        return count[code[: len(known)]]
    first = np.unique(code, return_index=True)[1]
    return wildcard_sums(codes[first], count)[code[: len(known)]]


@dataclass(frozen=True)
class SpecialUniques(KeyMeasure):
    """The share of special uniques that are still alone, and found, on the few values that make them special.

    The snooper knows a few things of somebody that nobody else has together: a widow of sixteen, the only dentist of a
    village. He needs no register to know that such people are rare. He looks these values up in the released file, and
    succeeds when exactly one record has them and it is that person's. A record that has them all comes before those with a
    blank among them.

    Parameters
    ----------
    on : the variables he may know, of any kind; by default the keys of the file.
    missing_is : "any value": a missing value matches every value, where no record has the values; "a category": it matches
        missing alone.
    largest : the most variables that he knows of one person, at least 1.

    Formula: a record is a special unique where it alone has its values of a set of up to `largest` variables in the
    original, and of no smaller part of it (a minimal sample unique; SUDA counts these). Of the released records that are,
    the share that at least one of their sets finds; 0 in a file without any. Where values became new categories, he looks
    these up.
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

    unit: ClassVar[str] = "share of special uniques"
    revision: ClassVar[int] = 3  # 2, 3: a record that has the values comes before those with a blank, in both files

    largest: Annotated[int, Range(1)] = 3

    @property
    def told(self) -> str:
        return "special uniques found"

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
        return Estimate(_share(hits > 0), None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where one of his sets finds a special unique, 0 where none does; NaN: the record is none."""
        row, _, found = self._look_up(original, masked)
        each = np.full(len(masked), np.nan)
        each[row] = 0.0
        each[row[found]] = 1.0
        return each

    def _look_up(self, original: Microdata, masked: Microdata) -> Lookups:
        """Every released record that is special, once for each of its sets."""
        names = self.checked(original)
        person, sets = original.remember(("special uniques", self), lambda: self._special(original))
        known, released = self._codes(original, masked, names)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        parts = [Lookups(*(np.empty(0, dtype=kind) for kind in (np.int64, np.bool_, np.bool_)))]
        for chosen in np.unique(sets).tolist():
            some = members(chosen)
            row = np.flatnonzero(np.isin(origin, person[sets == chosen]))
            parts.append(_looked_up(known[origin[row]][:, some], released[:, some], row))
        return Lookups(*(np.concatenate(column) for column in zip(*parts, strict=True)))

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

    def _codes(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
        """The known and the released values in codes that are equal where these are."""
        known = in_released_categories(original, masked, names)
        columns = []
        for name in names:
            gone = np.concatenate([known.missing(name), masked.missing(name)])
            codes = common_codes(known, masked, name).astype(np.int64)
            columns.append(
                np.where(gone, MISSING if self.missing_is == "any value" else codes.max(initial=0) + 1, codes)
            )
        both = np.column_stack(columns)
        return both[: len(known)], both[len(known) :]


def _looked_up(known: Array, released: Array, row: Array) -> Lookups:
    """Known values looked up among all released ones: records that have them all first, then those with blanks."""
    filled = np.where(released == MISSING, released.max(initial=0) + 1, released)  # a blank is no value of anybody's
    have, may = matching_records(known, filled), matching_records(known, released)
    alone = np.where(have > 0, have, may) == 1
    own = np.where(have > 0, _agree(known, filled[row]), _agree(known, released[row]))
    return Lookups(row, alone, alone & own)


def _agree(known: Array, theirs: Array) -> Array:
    agree: Array = ((known == theirs) | (known == MISSING) | (theirs == MISSING)).all(axis=1)
    return agree


def _share(hits: Array) -> float:
    """The mean; 0 of nobody."""
    return float(hits.mean()) if len(hits) else 0.0
