"""Relative error of the cells of all small tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import Table, tables, up_to
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.utility._numeric import sound_weights
from sdcmap.utility._tables import TableMeasure


def relative_errors(before: Array, after: Array, least: float) -> Array:
    """|after - before|/before of the cells that have at least `least` records before."""
    judged = before >= least
    errors: Array = np.abs(after[judged] - before[judged]) / before[judged]
    return errors


@dataclass(frozen=True)
class TableError(TableMeasure):
    """The relative error of a cell that a user looks up in any table of up to three variables.

    Parameters
    ----------
    weighted : weighted counts; needs a weight. Without it, counts are scaled to the original number of records, as a user
        of a sample or of synthetic data would.
    order : every table of 1 to so many variables, at least 1.
    least : cells with fewer records (when `weighted`: a smaller weighted count) in the original are not judged; above 0.
    summary : the value is the "mean" or the "worst" over the tables; both are in the parts.

    Formula: of a table, the mean of |g - f|/f over its cells with f > 0 in the original; then over the tables.
    `parts`: "emptied", the share of judged cells that have no record left, and "new", the share of released records in
    cells that the original does not have; both are means over the tables.
    Missing is a category of its own: a suppressed value leaves its cell. A recoded category empties the old cells
    (error 1) and fills new ones. Weights: used when `weighted`. Households are not used. Works for synthetic files.
    Reference: Hundepool et al. (2012), section 3.5.2; Shlomo, Tudor, Groom (2010).

    Examples
    --------
    >>> TableError(on=["sex", "age"], order=2).text
    "TableError(on=['sex', 'age'], order=2)"
    """

    unit: ClassVar[str] = "relative error of a cell"
    at_nothing: ClassVar[float | None] = 1.0

    order: Annotated[int, Range(1)] = 3
    least: Annotated[float, Range(0, None, "(]")] = 1.0
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        if self.weighted:
            sound_weights(masked)
        compared = tables(original, masked, up_to(self.checked(original), self.order), weighted=self.weighted)
        scale = 1.0 if self.weighted else len(original) / len(masked)
        judged = [each for table in compared if (each := _errors(table, scale, self.least)) is not None]
        if not judged:
            raise Undefined("no cell of the original has as many records as are asked for.")
        errors, emptied, new = (np.array(part) for part in zip(*judged, strict=True))
        parts = {"mean": errors.mean(), "worst": errors.max(), "emptied": emptied.mean(), "new": new.mean()}
        return Estimate(float(parts[self.summary]), None, {name: float(part) for name, part in parts.items()})


def _errors(table: Table, scale: float, least: float) -> tuple[float, float, float] | None:
    judged = table.before >= least
    if not judged.any():
        return None
    errors = relative_errors(table.before, table.after * scale, least)
    new = table.after[table.before == 0].sum() / table.after.sum()
    return float(errors.mean()), float((table.after[judged] == 0).mean()), float(new)
