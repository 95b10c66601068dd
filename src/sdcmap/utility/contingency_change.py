"""Change of the contingency coefficients between variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import two_way_tables
from sdcmap.kernels.tables.contingency import contingency_coefficient
from sdcmap.utility._tables import TableMeasure, loss_over


@dataclass(frozen=True)
class ContingencyChange(TableMeasure):
    """By how much masking changed the association of two variables, over all pairs, in Pearson's contingency coefficient.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.
    weighted : compare weighted tables; needs a weight.
    summary : the value is the "mean" or the "worst" (largest) change over all pairs of variables; both are in the parts.

    Formula: mean or largest |C(g) - C(f)| over pairs of variables, C = sqrt(chi^2 / (chi^2 + n)) of their two-way table, f
    before and g after masking. C is 0 where they are independent, and always below 1.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> ContingencyChange(on=["sex", "age"]).text
    "ContingencyChange(on=['sex', 'age'])"
    """

    unit: ClassVar[str] = "change of a coefficient, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    fewest: ClassVar[int] = 2

    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pairs = two_way_tables(original, masked, self.checked(original), weighted=self.weighted)
        return loss_over(pairs, lambda pair: pair.matrix_change(contingency_coefficient), self.summary)
