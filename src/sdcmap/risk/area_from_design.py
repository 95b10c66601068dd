"""Masked geography that the columns of the survey design give back."""

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

TIE = 1e-9  # distances so near, relative and absolute, are equal
DIGITS = 4  # of a replicate weight over the weight


class Areas(NamedTuple):
    """How often each area occurs in each cell, and what a guess of the commonest is worth."""

    cell: Array  # of each record
    pair: Array  # cell and area of each record, as a number
    pair_cell: Array  # of each pair: its cell, its area, how many records it has
    pair_area: Array
    times: Array
    top: Array  # of each cell: the records of the commonest area, and how many areas are as common
    top_areas: Array
    size: Array  # of each cell: its records

    @staticmethod
    def of(cell: Array, area: Array) -> Areas:
        pair, count = compress([cell, area])
        first = np.unique(pair, return_index=True)[1]
        pair_cell = cell[first]
        top = _largest(pair_cell, count)
        most = np.bincount(pair_cell, count == top[pair_cell])
        return Areas(cell, pair, pair_cell, area[first], count, top, most, np.bincount(cell))

    def published(self) -> Array:
        """The chance that the commonest area of a record's cell is its own; of t as common each is taken alike."""
        return np.asarray(((self.times == self.top[self.pair_cell]) / self.top_areas[self.pair_cell])[self.pair])

    def of_others(self) -> Array:
        """The same by the other records of the cell alone; NaN where there is none."""
        leads = (self.times == self.top[self.pair_cell]) & (self.top_areas[self.pair_cell] == 1)
        rest, left = np.where(leads, 0, self.times), self.times - 1
        second = _largest(self.pair_cell, rest)[self.pair_cell]
        rivals = np.bincount(self.pair_cell, (rest == second) & ~leads)[self.pair_cell]
        chance = np.select([leads & (second < left), leads & (second == left)], [np.ones(len(rest)), 1 / (1 + rivals)])
        return np.where(self.size[self.cell] > 1, chance[self.pair], np.nan)

    def in_cells(self, cell: Array, area: Array) -> Array:
        """The chance that the commonest area of these cells is this one."""
        span = int(max(self.pair_area.max(), area.max())) + 1
        key = self.pair_cell * span + self.pair_area  # rising
        place = np.minimum(np.searchsorted(key, cell * span + area), len(key) - 1)
        right = (key[place] == cell * span + area) & (self.times[place] == self.top[cell])
        return np.asarray(right / self.top_areas[cell])


def _largest(group: Array, values: Array) -> Array:
    """The largest value of each group 0, 1, ..."""
    largest = np.zeros(int(group.max()) + 1, dtype=values.dtype)
    np.maximum.at(largest, group, values)
    return largest


@dataclass(frozen=True)
class AreaFromDesign(RiskMeasure):
    """The share of records whose true area the released design columns give back, beyond what the masked area tells.

    The agency has masked the geography and released the weights, strata or sampling units that analysts need. Weights
    differ by area because sampling rates do; a stratum or a sampling unit lies in one area. The snooper knows from the
    sampling plan, or from respondents whose address he knows, in which areas each value of these columns occurs. Of each
    released record he guesses the area that is commonest among records with its design values and its masked area.

    Parameters
    ----------
    area : the variable with the true areas, of any kind; in the release it may be coarser, swapped, blank or not there.
    by : the design columns that are released; by default those of the roles weight and stratum. Numbers count by value.
    replicates : replicate weights; each is read as its ratio to the weight, which is the same for a whole sampling unit.
    knows : "others": the areas of the other records, never that of the target itself, so that a value which only one
        record has tells nothing by itself; "design": the areas where each value occurs, as a published plan tells it.

    Formula: rate - baseline, and 0 where that is negative. Rate: the expected share of records whose guess is right, ties
    being drawn; baseline: the same by the masked area alone (how many live where is public). With "others", where nobody
    else has a record's design values he takes those with the nearest numbers (standardized) among records that agree on
    masked area and categories; where there are none, the masked area alone. In `parts`: the "baseline"; "rate, knowing
    others" and "rate, knowing design", whatever `knows` says; and "certain", the share of records whose design values two
    or more records have, all of one area, while their masked area is that of several. An area that was not masked has
    nothing to be given back: 0.
    Missing: records whose true area is missing are left out; a missing design value is a category of its own. Weights are
    looked at, not used: every record counts once. Households are not used. Releasing nothing gives nothing back: 0.
    Reference: de Waal and Willenborg (1997), Statistical disclosure control and sampling weights, JOS 13, 417-434.

    Examples
    --------
    >>> AreaFromDesign("county", by=["weight", "psu"]).text
    "AreaFromDesign(area='county', by=['weight', 'psu'])"
    """

    label: ClassVar[str] = "Area inferred from the survey design"
    description: ClassVar[str] = (
        "Share of records whose masked area an attacker can recover from the released weights, strata or "
        "sampling units."
    )

    missing: ClassVar[str] = "a record whose true area is missing is left out; a missing design value is a category"
    weights: ClassVar[str] = "looked at as a column that tells the area; every record counts once"

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
            yield "AreaFromDesign needs design columns: state the role of the weight or of strata, or name them in `by`."
            return
        yield from super().incompatibilities(data)
        yield from self.unknown_columns(data, [self.area])
        if self.replicates and data.weight is None:
            yield "AreaFromDesign reads replicate weights as ratios to the weight: state the role of the weight."
        for name in self.replicates:
            if name in data.schema and data.schema[name].kind != "numeric":
                yield f"AreaFromDesign: replicate weights are numeric; {name!r} is {data.schema[name].kind}."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        puzzle = self._puzzle(original, masked)
        parts = {"certain": puzzle.certain()}
        for knows in ("others", "design"):
            rate, baseline = (math.fsum(each) / len(each) for each in puzzle.chances(knows))
            parts |= {f"rate, knowing {knows}": rate, "baseline": baseline}
        return Estimate(value=max(0.0, parts[f"rate, knowing {self.knows}"] - baseline), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance that each record's area is guessed from design and masked area; NaN: its true area is missing."""
        puzzle = self._puzzle(original, masked)
        each = np.full(len(masked), np.nan)
        each[puzzle.rows] = puzzle.chances(self.knows)[0]
        return each

    def _puzzle(self, original: Microdata, masked: Microdata) -> Puzzle:
        """What the snooper sees of each released record, and its true area."""
        names = self.check_variables(original)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        rows = np.flatnonzero(~original.missing(self.area)[origin])
        if len(rows) == 0:
            raise Undefined(f"{self.area!r} has no value that is not missing.")
        shown = masked.codes(self.area) if self.area in masked.names else np.zeros(len(masked), dtype=np.int64)
        numbers = {n: masked.numbers(n) for n in names if masked.column(n).levels is None}
        for name in self.replicates:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = numbers[name] / masked.weights
            numbers[name] = np.where(np.isfinite(ratio), np.round(ratio, DIGITS), np.nan)
        categories = [masked.codes(n) for n in names if n not in numbers]
        gone = [np.isnan(values).astype(np.int64) for values in numbers.values()]
        like = compress([shown[rows], *(codes[rows] for codes in (*categories, *gone))])[0]
        design = np.column_stack([np.zeros(len(rows)), *(np.nan_to_num(v[rows]) for v in numbers.values())])
        ranks = [np.unique(column, return_inverse=True)[1] for column in design.T]
        areas = original.codes(self.area)[origin[rows]].astype(np.int64)
        return Puzzle(rows, areas, compress([shown[rows]])[0], like, compress([like, *ranks])[0], design)


class Puzzle(NamedTuple):
    """The records with a true area: what is shown of it, and what the design columns show beside that."""

    rows: Array
    area: Array
    shown: Array  # the masked area
    like: Array  # masked area and design categories
    cell: Array  # these and the design numbers
    numbers: Array  # the design numbers, after a column of zeros

    def chances(self, knows: str) -> tuple[Array, Array]:
        """The chance that the area of each record is guessed: by design and masked area, and by the latter alone."""
        exact = Areas.of(self.cell, self.area)
        baseline = Areas.of(self.shown, self.area).published()  # how many live where is public
        if knows == "design":
            return exact.published(), baseline
        ways = exact.of_others(), self._by_nearest(exact), Areas.of(self.like, self.area).of_others(), baseline
        return reduce(lambda chance, other: np.where(np.isnan(chance), other, chance), ways), baseline

    def certain(self) -> float:
        """The share of records in cells of two or more, all of one area, whose masked area has several."""
        cells, shown = Areas.of(self.cell, self.area), Areas.of(self.shown, self.area)
        told = (cells.top == cells.size) & (cells.size > 1)
        return float((told[cells.cell] & (shown.top < shown.size)[shown.cell]).mean())

    def _by_nearest(self, exact: Areas) -> Array:
        """The same for records that are alone in their cell, by the cells with the nearest numbers; NaN for others."""
        chance = np.full(len(self.area), np.nan)
        alone = np.flatnonzero(exact.size[self.cell] == 1)
        spread = self.numbers.std(axis=0)
        first = np.unique(self.cell, return_index=True)[1]
        if len(alone) == 0 or not (spread > 0).any() or len(first) < 2:
            return chance
        places = (self.numbers - self.numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        places[:, 0] = self.like * 4.0 * (1 + np.abs(places).max()) * np.sqrt(places.shape[1])  # far from all others
        tree = cKDTree(places[first])
        reach = tree.query(places[alone], k=2)[0][:, 1]  # the first is its own cell
        near = tree.query_ball_point(places[alone], reach * (1 + TIE) + TIE)
        who = np.repeat(np.arange(len(alone)), [len(cells) for cells in near])
        cell, record = np.concatenate(near).astype(np.int64), alone[who]
        others = (cell != self.cell[record]) & (self.like[first][cell] == self.like[record])
        hits = np.bincount(who, others * exact.in_cells(cell, self.area[record]), len(alone))
        count = np.bincount(who, others, len(alone))
        chance[alone] = np.where(count > 0, hits / np.maximum(count, 1), np.nan)
        return chance
