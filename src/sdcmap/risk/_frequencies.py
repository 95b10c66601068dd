"""Frequencies of key combinations, minimal sets of keys that make a record unique, and what measures of them share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Measure, Microdata, RiskMeasure, Share, Undefined
from sdcmap.data.cells import DistinctCells, distinct_cells
from sdcmap.kernels.jit import jit
from sdcmap.kernels.tables.combinations import Margins, margin_places, margins_of, members, set_count, sets_up_to
from sdcmap.kernels.tables.frequency_risks import individual_risks
from sdcmap.kernels.tables.wildcards import wildcard_sums

# Special uniques: the minimal sets of variables on which a record is alone in the sample.


def minimal_uniques(codes: Array, count: Array, sets: Array) -> tuple[Array, Array]:
    """The minimal sample uniques: which cell, and on which set of variables (bits).

    sets : the sets to look at, the smaller first. A missing value (-1) matches every value.
    Elliot, Manning, Ford (2002); Manning, Haglin, Keane (2008)
    """
    if not (codes < 0).any():
        return _minimal(margins_of(codes), count.astype(np.int64), sets)
    special, own, found = wildcard_sums(codes, count) == 1, defaultdict[int, list[int]](list), []
    for chosen in sets.tolist():
        alone = np.flatnonzero(special & (wildcard_sums(codes[:, members(chosen)], count) == 1))
        new = [u for u in alone.tolist() if not any(smaller & chosen == smaller for smaller in own[u])]
        for u in new:
            own[u].append(chosen)
        found += [(u, chosen) for u in new]
    cells, uniques = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return cells, uniques


@jit
def _minimal(m: Margins, count: Array, sets: Array) -> tuple[Array, Array]:
    place = np.empty(len(count), dtype=np.int64)
    last = np.full(len(count), -1, dtype=np.int64)  # the latest one found of each cell; `before` leads to earlier ones
    room, made = 1024, 0
    cells, uniques, before = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for chosen in sets:
        records = np.zeros(margin_places(m, chosen, place), dtype=np.int64)
        for cell in range(len(place)):
            records[place[cell]] += count[cell]
        for cell in range(len(place)):
            if records[place[cell]] != 1:
                continue
            entry = last[cell]
            while entry >= 0 and uniques[entry] & chosen != uniques[entry]:
                entry = before[entry]
            if entry >= 0:
                continue
            if made == room:
                cells, uniques, before = _longer(cells), _longer(uniques), _longer(before)
                room *= 2
            cells[made], uniques[made], before[made] = cell, chosen, last[cell]
            last[cell] = made
            made += 1
    return cells[:made], uniques[:made]


@jit
def _longer(values: Array) -> Array:
    more = np.empty(2 * len(values), dtype=values.dtype)
    more[: len(values)] = values
    return more


def size_scores(width: int, *, ihsn: bool = False) -> Array:
    """The score of a minimal unique on 1, 2, ..., `width` of `width` variables.

    Of k variables (width - k)!: Elliot, Manning, Ford (2002); by IHSN's first program (2^(width-k) - 1) / C(width, k).
    """
    rest = range(width - 1, -1, -1)
    return np.array([(2.0**n - 1) / math.comb(width, n) if ihsn else float(math.factorial(n)) for n in rest])


def dis_suda(score: Array, count: Array, pairs: int, fraction: float, width: int) -> Array:
    """The chance that a match to each cell is right: the file's DIS share, spread over the cells by their scores.

    DIS = U d / (U d + P (1 - d)), U unique records, P records in pairs, d the sampling fraction: Skinner, Elliot (2002).
    1 / (1 + U (1/DIS - 1) / (s^q sum s^-q)), q = 1 + (8 - width) / 20, after sdcMicro; U (1/DIS - 1) = P (1 - d) / d.
    """
    scores = np.zeros(len(score))
    special = score > 0
    power = score[special] ** (1 + (8 - width) / 20)
    weight = fraction * power * (count[special] / power).sum()
    others = pairs * (1 - fraction)
    scores[special] = weight / (weight + others) if others else 1.0  # not 0/0 where a tiny fraction leaves no weight
    return scores


MOST_KEYS = 60  # bits of a number
MOST_SETS = 1 << 20  # of keys that a measure looks at


class Frequencies(NamedTuple):
    """For each combination of keys that occurs: the records that match it, and the sum of their weights."""

    met: DistinctCells
    records: Array
    weights: Array


def frequencies(data: Microdata, names: tuple[str, ...], missing_is: str, alpha: float) -> Frequencies:
    """f and F of each combination of `names`, computed once and kept."""
    if len(data) == 0:
        raise Undefined("the file has no records.")
    wild = alpha if missing_is == "any value" else None
    unchanged = data.origin is None and data.changes.keys().isdisjoint((*names, data.weight))
    home = data.base if data.base is not None and unchanged else data
    return home.remember(("frequencies", names, wild), lambda: _frequencies(home, names, wild))


def _frequencies(data: Microdata, names: tuple[str, ...], wild: float | None) -> Frequencies:
    met = data.view(distinct_cells, names)
    count = met.count.astype(np.float64)
    sums = count if data.weight is None else np.bincount(met.code, data.weights)
    if wild is None or not (met.codes < 0).any():
        return Frequencies(met, count, sums)
    matching = wildcard_sums(met.codes, np.column_stack([count, sums]), wild)
    return Frequencies(met, matching[:, 0], matching[:, 1])


@dataclass(frozen=True)
class KeyMeasure(RiskMeasure):
    """What the risk measures of key combinations share: `on`, the keys, and how a missing key value matches.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    missing_is : "any value": a missing value matches every value; "a category": it matches missing alone.
    """

    missing: ClassVar[str] = "a missing key matches every value, or missing alone, as `missing_is` says"

    _: KW_ONLY
    on: tuple[str, ...] = ()
    missing_is: Literal["any value", "a category"] = "any value"

    def problems(self) -> Iterator[str]:
        if len(self.on) > MOST_KEYS:
            yield f".on must name at most {MOST_KEYS} variables."
        if len(set(self.on)) < len(self.on):
            yield ".on must name each variable once."

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur in the release, and the risk of a record of each; a subclass says it."""
        raise TypeError(f"{type(self).__name__} has no risk of a combination.")

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The risk of each record; of a rule, 1 where the record is exposed and 0 elsewhere."""
        met, risk = self.cell_risks(original, masked)
        return risk.astype(float)[met.code]

    def cells(self, data: Microdata) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur, and their codes, MISSING only where it is to match every value."""
        met = data.view(distinct_cells, self.variables(data))
        return met, met.codes + 1 if self.missing_is == "a category" and (met.codes < 0).any() else met.codes

    def minimal_uniques(self, data: Microdata, largest: int | None) -> tuple[DistinctCells, Array, Array]:
        """The combinations that occur, and the minimal uniques of up to so many keys: which combination, on which keys."""
        met, codes = self.cells(data)
        width = codes.shape[1]
        return met, *minimal_uniques(codes, met.count, key_sets(width, largest or width, "largest"))


@dataclass(frozen=True)
class FrequencyMeasure(KeyMeasure):
    """The same for measures of how many records match, where `alpha` says what a match by a missing value counts.

    Parameters
    ----------
    alpha : with "any value": how much a record counts, in [0, 1], that is missing where the looking record has a
        value.
    """

    _: KW_ONLY
    alpha: Share = 1.0

    def frequencies(self, data: Microdata) -> Frequencies:
        """How many records of this file, and of the population they stand for, match each combination."""
        return frequencies(data, self.variables(data), self.missing_is, self.alpha)


@dataclass(frozen=True)
class LinkMeasure(FrequencyMeasure):
    """What the measures of the individual risk share: its form, and weights that must be positive.

    Parameters
    ----------
    form : of the individual risk: "approximate" (as sdcMicro and mu-Argus), "exact", or "ratio" (mu-Argus'
        journalist).
    """

    unit: ClassVar[str] = "probability"
    weights: ClassVar[str] = "used: a record stands for so many persons; they must be positive"
    revision: ClassVar[int] = 2  # 2: exact between f = 1 and 2, and a number for large f

    _: KW_ONLY
    form: Literal["approximate", "exact", "ratio"] = "approximate"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return positive_weights(self, data)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur, and the chance that the link of a record of each is right."""
        self.check_variables(original)
        frequency = self.frequencies(masked)
        if self.form == "ratio":
            return frequency.met, 1 / np.maximum(frequency.records, frequency.weights)
        return frequency.met, individual_risks(frequency.records, frequency.weights, exact=self.form == "exact")


def key_sets(width: int, largest: int, field: str) -> Array:
    """All sets of up to `largest` of so many keys as bits; `field` says where a user states less."""
    if set_count(width, largest) > MOST_SETS:
        raise Undefined(f"{width} variables have more than {MOST_SETS:,} sets: state a smaller `{field}`.")
    return sets_up_to(width, largest)


def positive_weights(measure: Measure, data: Microdata) -> Iterator[str]:
    """The sentence for weights that no population can be counted with."""
    bad = int((~((data.weights > 0) & np.isfinite(data.weights))).sum())
    if bad:
        yield f"{type(measure).__name__} needs positive weights; {bad} records have none in {data.weight!r}."
