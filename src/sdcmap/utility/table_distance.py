"""Distances between the tables before and after masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import tables, up_to
from sdcmap.kernels.arrays import Array
from sdcmap.utility._tables import TableMeasure, hellinger, loss_over, total_variation


@dataclass(frozen=True)
class _TableDistance(TableMeasure):
    """A distance between two tables: 0 the same, 1 no cell in common.

    Parameters
    ----------
    order : None compares the table of all variables; k compares every table of 1 to k of them, at least 1.
    summary : with an order: the value is the "mean" or the "worst" over the tables; both are in the parts.
    """

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0

    order: Annotated[int | None, Range(1)] = None
    summary: Literal["mean", "worst"] = "mean"

    def distance(self, before: Array, after: Array) -> float:
        """Of the counts before and after."""
        raise TypeError(f"{type(self).__name__} has no distance.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = tables(original, masked, up_to(self.checked(original), self.order), weighted=self.weighted)
        return loss_over(compared, lambda table: self.distance(table.before, table.after), self.summary)


@dataclass(frozen=True)
class Hellinger(_TableDistance):
    """How far the table of the released file is from the original's: 0 the same, 1 no cell in common.

    Formula: H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies of the cells before and after.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2.

    Examples
    --------
    >>> Hellinger(on=["sex", "age"]).text
    "Hellinger(on=['sex', 'age'])"
    """

    def distance(self, before: Array, after: Array) -> float:
        return hellinger(before, after)


@dataclass(frozen=True)
class TotalVariation(_TableDistance):
    """The share of the file's records in other cells than before: 0 the same table, 1 no cell in common.

    Formula: TV = 1/2 sum |f - g|, f and g the relative frequencies of the cells before and after; the largest difference
    in the share of any set of cells.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> TotalVariation(on=["sex", "age"]).text
    "TotalVariation(on=['sex', 'age'])"
    """

    def distance(self, before: Array, after: Array) -> float:
        return total_variation(before, after)
