"""Sample uniques that a model expects to be population uniques."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import DistinctCells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure, positive_weights

# Poisson log-linear models of a table, and what they say of its uniques.


ROUNDS = 500  # of iterative proportional fitting
CLOSE = 1e-9  # of a margin to its target, as a share of all records


def main_effect_means(codes: Array, count: Array) -> Array:
    """The fitted mean of each met cell under independence: n prod_j n_j / n.

    codes : MISSING (-1) where a value is missing; shares are of known values, and the mean of a cell with a missing value
    is that of all cells it may be.
    """
    expected = np.full(len(codes), float(count.sum()))
    for column in codes.T:
        known = column >= 0
        inside = np.bincount(column[known], count[known])
        expected[known] *= (inside / inside.sum())[column[known]]
    return expected


def two_way_means(codes: Array, count: Array, shape: tuple[int, ...]) -> Array:
    """The same of at least two variables with all two-way interactions, by iterative proportional fitting.

    The model is fitted to the cells without missing values, and scaled to all records. With two variables it is
    saturated and the means are the counts. Bishop, Fienberg, Holland (1975)
    """
    whole = (codes >= 0).all(axis=1)
    means = _fitted(tuple(codes[whole].T), count[whole], shape) * (count.sum() / max(count[whole].sum(), 1))
    fitted = np.empty(len(codes))
    gone, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    for place, missing in enumerate(gone):
        rows = pattern.ravel() == place
        margin = means.sum(axis=tuple(np.flatnonzero(missing)), keepdims=True)
        fitted[rows] = margin[tuple(np.maximum(codes[rows], 0).T)]
    return fitted


def _fitted(place: tuple[Array, ...], count: Array, shape: tuple[int, ...]) -> Array:
    table = np.zeros(shape)
    table[place] = count
    pairs = list(combinations(range(len(shape)), 2))
    others = [tuple(axis for axis in range(len(shape)) if axis not in pair) for pair in pairs]
    targets = [table.sum(axis=rest, keepdims=True) for rest in others]
    means = np.ones(shape)
    for _ in range(ROUNDS):
        gap = 0.0
        for rest, target in zip(others, targets, strict=True):
            margin = means.sum(axis=rest, keepdims=True)
            gap = max(gap, float(np.abs(margin - target).max()))
            means *= np.divide(target, margin, out=np.zeros_like(target), where=margin > 0)
        if gap <= CLOSE * count.sum():
            break
    return means


def unique_risks(mean: Array, share: Array) -> tuple[Array, Array]:
    """P(F = 1 | f = 1) and E(1/F | f = 1) of sample uniques with fitted means and sampling fractions.

    F - 1 is Poisson with mean h = mean (1 - share) / share.  Skinner, Holmes (1998); Elamir, Skinner (2006)
    """
    with np.errstate(over="ignore"):
        h = np.maximum(mean * (1 - share) / share, 0.0)
    return np.exp(-h), np.divide(-np.expm1(-h), h, out=np.ones_like(h), where=h > 0)


MOST_CELLS = 1 << 22  # of the table that a two-way model is fitted to


@dataclass(frozen=True)
class LogLinearRisk(KeyMeasure):
    """The share of records that are unique in the file and, by a log-linear model, in the population too.

    The snooper has a register of the population and looks for records of the file that are alone on their keys. He cannot
    tell which of them are alone in the population as well; a model of the table can. He succeeds when the one person he
    links is the only one (tau1), or when he picks the right one of the few who match (tau2).

    Parameters
    ----------
    model : "main effects", or "two-way" with all interactions of two variables.
    tau : "tau1" population uniques, or "tau2" right links.
    fraction : the sampling fraction, in (0, 1]; by default 1 / weight of each record.
    missing_is : "any value": a missing value matches every value, and the model is of known values; "a category": it
        matches missing alone.

    Formula: with m the mean the model fits to the record's cell, p its sampling fraction and h = m (1 - p) / p,
        tau1 = sum over sample uniques of exp(-h), tau2 of (1 - exp(-h)) / h; the value is tau / n.
    `parts`: "tau1" and "tau2" (numbers of records) and "uniques".
    Missing values as `missing_is` says. Weights: used when no fraction is given; they must be positive. Without both, the
    file is the population and every unique counts. Households are not used.
    Reference: Skinner and Holmes (1998); Elamir and Skinner (2006). sdcMicro's modRisk leaves out the division by p in h
    and divides by the number of cells that occur, not by n.

    Examples
    --------
    >>> LogLinearRisk(model="two-way", tau="tau2").text
    "LogLinearRisk(model='two-way', tau='tau2')"
    """

    weights: ClassVar[str] = "used unless a fraction is given; they must be positive"

    model: Literal["main effects", "two-way"] = "main effects"
    tau: Literal["tau1", "tau2"] = "tau1"
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.fraction is None:
            yield from positive_weights(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        _, alone, tau1, tau2 = self._risks(masked)
        parts = {"tau1": float(tau1.sum()), "tau2": float(tau2.sum()), "uniques": float(len(alone))}
        return Estimate(value=parts[self.tau] / len(masked), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance of each record: P(F = 1 | f = 1) or E(1/F | f = 1) of a sample unique, 0 of the others."""
        self.checked(original)
        met, alone, tau1, tau2 = self._risks(masked)
        risk = np.zeros(len(met.count))
        risk[alone] = tau1 if self.tau == "tau1" else tau2
        return risk[met.code]

    def _risks(self, data: Microdata) -> tuple[DistinctCells, Array, Array, Array]:
        """The combinations that occur, which of them have one record, and the two chances of these."""
        met, codes = self.cells(data)
        matching = wildcard_sums(codes, met.count) if (codes < 0).any() else met.count
        alone = np.flatnonzero(matching == 1)
        mean = self._means(codes, met.count)[alone]
        if self.fraction is not None:
            share = np.full(len(alone), self.fraction)
        else:
            share = 1 / np.bincount(met.code, data.weights)[alone]
        return met, alone, *unique_risks(mean, share)

    def _means(self, codes: Array, count: Array) -> Array:
        occurring = [np.unique(column[column >= 0]) for column in codes.T]
        pairs = zip(occurring, codes.T, strict=True)
        places = [np.where(c < 0, MISSING, np.searchsorted(values, c)) for values, c in pairs]
        codes = np.column_stack(places)
        if self.model == "main effects" or len(occurring) < 2 or not (codes >= 0).all(axis=1).any():
            return main_effect_means(codes, count)
        shape = tuple(max(len(values), 1) for values in occurring)
        if math.prod(shape) > MOST_CELLS:
            raise Undefined(f"the table has more than {MOST_CELLS:,} cells: name fewer variables, or fit main effects.")
        return two_way_means(codes, count, shape)
