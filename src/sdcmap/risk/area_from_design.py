"""Masked geography that an attacker recovers from the columns of the survey design."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from sdcmap.core import Array, Estimate, Generator, Microdata, RiskMeasure, Undefined
from sdcmap.kernels.tables.coding import compress

DISTANCE_TIE_TOLERANCE = 1e-9  # distances that differ by less, relative and absolute, are tied
RATE_PARTS = {"others": "rate from other records", "design": "rate from the design"}  # by `AreaFromDesign.knows`
REPLICATE_RATIO_DIGITS = 4  # decimals of replicate weight / weight; the ratio is the same within a sampling unit


class Areas(NamedTuple):
    """How often each area occurs in each cell, and how common the most common one is."""

    cell: Array  # of each record
    pair: Array  # of each record: number of its (cell, area) pair
    pair_cell: Array  # of each pair: its cell ...
    pair_area: Array  # ... its area ...
    times: Array  # ... and its number of records
    top: Array  # of each cell: the records of its most common area ...
    top_areas: Array  # ... and how many areas are equally common
    size: Array  # of each cell: its number of records

    @staticmethod
    def of(cell: Array, area: Array) -> Areas:
        """Count the areas of each cell."""
        pair, count = compress([cell, area])
        first = np.unique(pair, return_index=True)[1]
        pair_cell = cell[first]
        top = _largest(pair_cell, count)
        top_areas = np.bincount(pair_cell, count == top[pair_cell])
        return Areas(cell, pair, pair_cell, area[first], count, top, top_areas, np.bincount(cell))

    def chance_by_all_records(self) -> Array:
        """Return the probability that the most common area of a record's cell is its own; of t tied areas each has 1/t."""
        return np.asarray(((self.times == self.top[self.pair_cell]) / self.top_areas[self.pair_cell])[self.pair])

    def chance_by_other_records(self) -> Array:
        """Return the same probability from the other records of the cell only; NaN if there are none."""
        leads = (self.times == self.top[self.pair_cell]) & (self.top_areas[self.pair_cell] == 1)
        # without the record itself its own area has one record fewer, so it must still lead or tie with the second
        rest, left = np.where(leads, 0, self.times), self.times - 1
        second = _largest(self.pair_cell, rest)[self.pair_cell]
        rivals = np.bincount(self.pair_cell, (rest == second) & ~leads)[self.pair_cell]
        chance = np.select([leads & (second < left), leads & (second == left)], [np.ones(len(rest)), 1 / (1 + rivals)])
        return np.where(self.size[self.cell] > 1, chance[self.pair], np.nan)

    def chance_in_cells(self, cell: Array, area: Array) -> Array:
        """Return the probability that the most common area of each of these cells is the given area."""
        span = int(max(self.pair_area.max(), area.max())) + 1
        key = self.pair_cell * span + self.pair_area  # sorted, because pairs are numbered by cell and area
        index = np.minimum(np.searchsorted(key, cell * span + area), len(key) - 1)
        right = (key[index] == cell * span + area) & (self.times[index] == self.top[cell])
        return np.asarray(right / self.top_areas[cell])


def _largest(group: Array, values: Array) -> Array:
    """Return the largest value of each group 0, 1, ..."""
    largest = np.zeros(int(group.max()) + 1, dtype=values.dtype)
    np.maximum.at(largest, group, values)
    return largest


@dataclass(frozen=True)
class AreaFromDesign(RiskMeasure):
    """Share of records whose true area can be recovered from the released design columns.

    The agency masks the geography but releases the weights, strata or sampling units that analysts need. These reveal
    the area: sampling rates differ by area, and a stratum or sampling unit lies in one area. The attacker knows from
    the sampling plan, or from respondents with a known address, in which areas each design value occurs. For each
    released record they guess the area that is most common among records with the same design values and the same
    masked area.

    Parameters
    ----------
    area : the variable with the true areas, of any kind; in the release it may be coarser, swapped, blank or absent.
    by : the released design columns; by default those with the roles weight and stratum. Numbers are compared by value.
    replicates : replicate weights; the attack uses their ratio to the weight, which is the same within a sampling unit.
    knows : "others": the areas of the other records but not of the target, so that a value of a single record reveals
        nothing by itself; "design": the areas in which each value occurs, as a published plan states them.

    Formula: max(0, rate - baseline). The rate is the expected share of correct guesses, ties being drawn at random; the
        baseline is the same rate from the masked area alone. With "others", a record whose design values nobody shares
        is guessed from the nearest design numbers (standardized) with the same masked area and categories, or else from
        the masked area.
    `parts`: "baseline"; "rate from other records" and "rate from the design", for both values of `knows`; and
    "certain", the share of records in design cells of at least two records that all lie in one area, while their masked
    area has several.
    Missing: records with a missing true area are left out; a missing design value is a category. Weights are used as a
    column, not to count. Households are not used. Releasing nothing recovers nothing: 0.
    Reference: de Waal and Willenborg (1997), Statistical disclosure control and sampling weights, JOS 13, 417-434.

    Examples
    --------
    >>> AreaFromDesign("county", by=["weight", "psu"]).text
    "AreaFromDesign(area='county', by=['weight', 'psu'])"
    """

    label: ClassVar[str] = "Area inferred from the survey design"
    description: ClassVar[str] = (
        "Share of records whose masked area an attacker can recover from the released weights, strata or "
        "sampling units, beyond what the masked area itself reveals."
    )

    missing: ClassVar[str] = "a record whose true area is missing is left out; a missing design value is a category"
    weights: ClassVar[str] = "used as a column that reveals the area; every record counts once"

    area: str
    by: tuple[str, ...] = ()
    replicates: tuple[str, ...] = ()
    knows: Literal["others", "design"] = "others"

    def problems(self) -> Iterator[str]:
        if self.area in (*self.by, *self.replicates):
            yield ".area may not be a design column."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return (*(self.by or data.schema.of_role("weight", "stratum")), *self.replicates)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        if not self.variables(data):
            yield "AreaFromDesign needs design columns: give a column the role weight or stratum, or name some in `by`."
            return
        yield from super().incompatibilities(data)
        yield from self.unknown_columns(data, [self.area])
        if self.replicates and data.weight is None:
            yield "AreaFromDesign compares replicate weights with the weight: give a column the role weight."
        for name in self.replicates:
            if name in data.schema and data.schema[name].kind != "numeric":
                yield f"AreaFromDesign: replicate weights are numeric; {name!r} is {data.schema[name].kind}."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        attack = self._prepare_attack(original, masked)
        parts = {"certain": attack.certain_share()}
        for knows, part in RATE_PARTS.items():
            rate, baseline = (math.fsum(each) / len(each) for each in attack.chances(knows))
            parts |= {part: rate, "baseline": baseline}
        return Estimate(value=max(0.0, parts[RATE_PARTS[self.knows]] - baseline), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the probability that each record's area is guessed correctly; NaN if its true area is missing."""
        attack = self._prepare_attack(original, masked)
        each = np.full(len(masked), np.nan)
        each[attack.rows] = attack.chances(self.knows)[0]
        return each

    def _prepare_attack(self, original: Microdata, masked: Microdata) -> AreaAttack:
        """Collect what the attacker sees of each released record, and its true area."""
        names = self.check_variables(original)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        rows = np.flatnonzero(~original.missing(self.area)[origin])
        if len(rows) == 0:
            raise Undefined(f"{self.area!r} has no value that is not missing.")
        masked_area = masked.codes(self.area) if self.area in masked.names else np.zeros(len(masked), dtype=np.int64)
        numbers = {n: masked.numbers(n) for n in names if masked.column(n).levels is None}
        for name in self.replicates:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = numbers[name] / masked.weights
            numbers[name] = np.where(np.isfinite(ratio), np.round(ratio, REPLICATE_RATIO_DIGITS), np.nan)
        categories = [masked.codes(n) for n in names if n not in numbers]
        is_missing = [np.isnan(values).astype(np.int64) for values in numbers.values()]
        # a block agrees on masked area, design categories and missing numbers; a cell also on the design numbers
        block = compress([masked_area[rows], *(codes[rows] for codes in (*categories, *is_missing))])[0]
        design = np.column_stack([np.zeros(len(rows)), *(np.nan_to_num(v[rows]) for v in numbers.values())])
        ranks = [np.unique(column, return_inverse=True)[1] for column in design.T]
        areas = original.codes(self.area)[origin[rows]].astype(np.int64)
        return AreaAttack(rows, areas, compress([masked_area[rows]])[0], block, compress([block, *ranks])[0], design)


class AreaAttack(NamedTuple):
    """The records with a true area, with their masked area and the values of their design columns."""

    rows: Array
    area: Array
    masked_area: Array
    block: Array  # masked area and design categories
    cell: Array  # block and design numbers
    numbers: Array  # the design numbers, after a column of zeros

    def chances(self, knows: str) -> tuple[Array, Array]:
        """Return the probability of a correct guess of each record's area: with the design columns, and without them."""
        exact = Areas.of(self.cell, self.area)
        baseline = Areas.of(self.masked_area, self.area).chance_by_all_records()  # area sizes are public
        if knows == "design":
            return exact.chance_by_all_records(), baseline
        ways = (
            exact.chance_by_other_records(),
            self._by_nearest(exact),
            Areas.of(self.block, self.area).chance_by_other_records(),
            baseline,
        )
        return reduce(lambda chance, other: np.where(np.isnan(chance), other, chance), ways), baseline

    def certain_share(self) -> float:
        """Return the share of records in cells of two or more, all in one area, whose masked area contains several."""
        cells, masked_area = Areas.of(self.cell, self.area), Areas.of(self.masked_area, self.area)
        one_area = (cells.top == cells.size) & (cells.size > 1)
        return float((one_area[cells.cell] & (masked_area.top < masked_area.size)[masked_area.cell]).mean())

    def _by_nearest(self, exact: Areas) -> Array:
        """Return the probability for records unique in their cell, from the cells with the nearest numbers."""
        chance = np.full(len(self.area), np.nan)
        unique = np.flatnonzero(exact.size[self.cell] == 1)
        spread = self.numbers.std(axis=0)
        first = np.unique(self.cell, return_index=True)[1]
        if len(unique) == 0 or not (spread > 0).any() or len(first) < 2:
            return chance
        points = (self.numbers - self.numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        # the first coordinate puts blocks so far apart that neighbors of one block are found first
        points[:, 0] = self.block * 4.0 * (1 + np.abs(points).max()) * np.sqrt(points.shape[1])
        tree = cKDTree(points[first])
        reach = tree.query(points[unique], k=2)[0][:, 1]  # the nearest is the record's own cell
        near = tree.query_ball_point(points[unique], reach * (1 + DISTANCE_TIE_TOLERANCE) + DISTANCE_TIE_TOLERANCE)
        # one entry per unique record and near cell; a guess is drawn from the cells that are equally near
        target = np.repeat(np.arange(len(unique)), [len(cells) for cells in near])
        cell, record = np.concatenate(near).astype(np.int64), unique[target]
        others = (cell != self.cell[record]) & (self.block[first][cell] == self.block[record])
        hits = np.bincount(target, others * exact.chance_in_cells(cell, self.area[record]), len(unique))
        count = np.bincount(target, others, len(unique))
        chance[unique] = np.where(count > 0, hits / np.maximum(count, 1), np.nan)
        return chance
