"""Frequencies of key combinations, minimal sample uniques, and the bases of the measures that use them."""

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
from sdcmap.kernels.tables.combinations import Margins, locate_in_margin, margins_of, members, set_count, sets_up_to
from sdcmap.kernels.tables.frequency_risks import individual_risks
from sdcmap.kernels.tables.wildcards import wildcard_sums

# Special uniques: the minimal sets of variables on which a record is unique in the sample.


def find_minimal_uniques(codes: Array, count: Array, sets: Array) -> tuple[Array, Array]:
    """Return the minimal sample uniques: the cell of each, and the set of variables as bits.

    A missing value (-1) matches every value. Elliot, Manning, Ford (2002); Manning, Haglin, Keane (2008)

    sets : the sets of variables to examine, the smaller ones first
    """
    if not (codes < 0).any():
        return _find_minimal(margins_of(codes), count.astype(np.int64), sets)
    # only a cell that is unique on all variables can be unique on some of them
    candidate, sets_of_cell, minimal = wildcard_sums(codes, count) == 1, defaultdict[int, list[int]](list), []
    for chosen in sets.tolist():
        unique = np.flatnonzero(candidate & (wildcard_sums(codes[:, members(chosen)], count) == 1))
        # smaller sets come first, so a set is minimal if it contains none of the cell's earlier sets
        new = [u for u in unique.tolist() if not any(smaller & chosen == smaller for smaller in sets_of_cell[u])]
        for u in new:
            sets_of_cell[u].append(chosen)
        minimal += [(u, chosen) for u in new]
    cells, uniques = np.array(minimal, dtype=np.int64).reshape(-1, 2).T
    return cells, uniques


@jit
def _find_minimal(m: Margins, count: Array, sets: Array) -> tuple[Array, Array]:
    """Find the minimal sample uniques of a table without missing values."""
    margin = np.empty(len(count), dtype=np.int64)
    # the minimal uniques of a cell form a linked list: `last` is its newest entry, `before` leads to older ones
    last = np.full(len(count), -1, dtype=np.int64)
    capacity, size = 1024, 0
    cells, uniques, before = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    for chosen in sets:
        records = np.zeros(locate_in_margin(m, chosen, margin), dtype=np.int64)
        for cell in range(len(margin)):
            records[margin[cell]] += count[cell]
        for cell in range(len(margin)):
            if records[margin[cell]] != 1:
                continue
            # not minimal if one of the cell's earlier, smaller sets is contained in this one
            entry = last[cell]
            while entry >= 0 and uniques[entry] & chosen != uniques[entry]:
                entry = before[entry]
            if entry >= 0:
                continue
            if size == capacity:
                cells, uniques, before = _double_capacity(cells), _double_capacity(uniques), _double_capacity(before)
                capacity *= 2
            cells[size], uniques[size], before[size] = cell, chosen, last[cell]
            last[cell] = size
            size += 1
    return cells[:size], uniques[:size]


@jit
def _double_capacity(values: Array) -> Array:
    """Return a copy with room for twice as many values."""
    more = np.empty(2 * len(values), dtype=values.dtype)
    more[: len(values)] = values
    return more


def size_scores(width: int, *, ihsn: bool = False) -> Array:
    """Return the score of a minimal unique on 1, 2, ..., `width` of `width` variables.

    With k variables the score is (width - k)! (Elliot, Manning, Ford 2002). IHSN's first program uses (2^(width-k) - 1)
    / C(width, k).
    """
    rest = range(width - 1, -1, -1)
    return np.array([(2.0**n - 1) / math.comb(width, n) if ihsn else float(math.factorial(n)) for n in rest])


def dis_suda(score: Array, count: Array, pairs: int, fraction: float, width: int) -> Array:
    """Return the probability that a match to each cell is correct: the file's DIS share, distributed by the SUDA scores.

    DIS = U d / (U d + P (1 - d)) with U unique records, P records in pairs and the sampling fraction d: Skinner, Elliot
    (2002). As in sdcMicro, the score s becomes 1 / (1 + U (1/DIS - 1) / (s^q sum s^-q)) with q = 1 + (8 - width) / 20,
    where U (1/DIS - 1) = P (1 - d) / d.
    """
    scores = np.zeros(len(score))
    special = score > 0
    power = score[special] ** (1 + (8 - width) / 20)
    weight = fraction * power * (count[special] / power).sum()
    others = pairs * (1 - fraction)
    scores[special] = weight / (weight + others) if others else 1.0  # a tiny fraction may leave no weight: avoid 0/0
    return scores


MAX_KEYS = 60  # a set of keys is stored as the bits of one 64-bit integer
MAX_KEY_SETS = 1 << 20  # sets of keys that one measure examines; more would take minutes


class Frequencies(NamedTuple):
    """For each key combination that occurs, the records that match it and the sum of their weights."""

    cells: DistinctCells
    records: Array
    weights: Array


def count_frequencies(data: Microdata, names: tuple[str, ...], missing_is: str, alpha: float) -> Frequencies:
    """Return f and F of each combination of `names`, computed once per file."""
    if len(data) == 0:
        raise Undefined("the file has no records.")
    wild = alpha if missing_is == "any value" else None
    # a release that changed neither the keys nor the weight shares the frequencies of its original
    unchanged = data.origin is None and data.changes.keys().isdisjoint((*names, data.weight))
    owner = data.base if data.base is not None and unchanged else data
    return owner.remember(("frequencies", names, wild), lambda: _frequencies(owner, names, wild))


def _frequencies(data: Microdata, names: tuple[str, ...], wild: float | None) -> Frequencies:
    cells = data.view(distinct_cells, names)
    count = cells.count.astype(np.float64)
    sums = count if data.weight is None else np.bincount(cells.code, data.weights)
    if wild is None or not (cells.codes < 0).any():
        return Frequencies(cells, count, sums)
    matching = wildcard_sums(cells.codes, np.column_stack([count, sums]), wild)
    return Frequencies(cells, matching[:, 0], matching[:, 1])


@dataclass(frozen=True)
class KeyMeasure(RiskMeasure):
    """Base of the risk measures of key combinations.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    missing_is : "any value": a missing value matches every value; "a category": it matches missing values only.
    """

    missing: ClassVar[str] = "a missing key matches every value or missing only, depending on `missing_is`"

    _: KW_ONLY
    on: tuple[str, ...] = ()
    missing_is: Literal["any value", "a category"] = "any value"

    def problems(self) -> Iterator[str]:
        if len(self.on) > MAX_KEYS:
            yield f".on must name at most {MAX_KEYS} variables."
        if len(set(self.on)) < len(self.on):
            yield ".on must name each variable once."

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """Return the key combinations of the release and the risk of a record of each. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no risk of a combination.")

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the risk of each record; for a rule, 1 if the record is exposed and 0 otherwise."""
        cells, risk = self.cell_risks(original, masked)
        return risk.astype(float)[cells.code]

    def cells(self, data: Microdata) -> tuple[DistinctCells, Array]:
        """Return the key combinations that occur, and their codes; MISSING only if it is to match every value."""
        cells = data.view(distinct_cells, self.variables(data))
        return cells, cells.codes + 1 if self.missing_is == "a category" and (cells.codes < 0).any() else cells.codes

    def find_minimal_uniques(self, data: Microdata, largest: int | None) -> tuple[DistinctCells, Array, Array]:
        """Return the combinations that occur and their minimal uniques of up to `largest` keys: combination and key set."""
        cells, codes = self.cells(data)
        width = codes.shape[1]
        return cells, *find_minimal_uniques(codes, cells.count, list_key_sets(width, largest or width, "largest"))


@dataclass(frozen=True)
class FrequencyMeasure(KeyMeasure):
    """Base of the measures that count matching records.

    Parameters
    ----------
    alpha : with "any value", how much a record counts, in [0, 1], that matches only because its value is missing.
    """

    _: KW_ONLY
    alpha: Share = 1.0

    def count_frequencies(self, data: Microdata) -> Frequencies:
        """Return how many records of the file, and of the population they represent, match each combination."""
        return count_frequencies(data, self.variables(data), self.missing_is, self.alpha)


@dataclass(frozen=True)
class LinkMeasure(FrequencyMeasure):
    """Base of the measures of individual risk.

    Parameters
    ----------
    form : of the individual risk: "approximate" (as in sdcMicro and mu-Argus), "exact", or "ratio" (mu-Argus,
        journalist scenario).
    """

    unit: ClassVar[str] = "probability"
    weights: ClassVar[str] = "used: a record represents as many persons; they must be positive"
    revision: ClassVar[int] = 2  # 2: exact between f = 1 and 2, and a number for large f

    _: KW_ONLY
    form: Literal["approximate", "exact", "ratio"] = "approximate"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        return find_weight_problems(self, data)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """Return the key combinations that occur, and the probability that the link of a record of each is correct."""
        self.check_variables(original)
        frequency = self.count_frequencies(masked)
        if self.form == "ratio":
            return frequency.cells, 1 / np.maximum(frequency.records, frequency.weights)
        return frequency.cells, individual_risks(frequency.records, frequency.weights, exact=self.form == "exact")


def list_key_sets(width: int, largest: int, field: str) -> Array:
    """Return all sets of up to `largest` of `width` keys as bits; `field` is the parameter that limits their number."""
    if set_count(width, largest) > MAX_KEY_SETS:
        raise Undefined(f"{width} variables have more than {MAX_KEY_SETS:,} sets: choose a smaller `{field}`.")
    return sets_up_to(width, largest)


def find_weight_problems(measure: Measure, data: Microdata) -> Iterator[str]:
    """Describe weights that are not positive, with which no population can be counted."""
    bad = int((~((data.weights > 0) & np.isfinite(data.weights))).sum())
    if bad:
        yield f"{type(measure).__name__} needs positive weights; {bad:,} records have none in {data.weight!r}."
