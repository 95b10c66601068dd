"""Change of Cramér's V between variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import two_way_tables
from sdcmap.kernels.tables.contingency import cramers_v
from sdcmap.utility._tables import TableMeasure, loss_over


@dataclass(frozen=True)
class CramersVChange(TableMeasure):
    """By how much masking changed the association of two variables, over all pairs, in Cramér's V.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.
    weighted : compare weighted tables; needs a weight.
    summary : the value is the "mean" or the "worst" (largest) change over all pairs of variables; both are in the parts.

    Formula: mean or largest |V(g) - V(f)| over pairs of variables, V = sqrt(chi^2 / (n (k - 1))) of their two-way table, k
    the smaller number of categories that occur; f before and g after masking. 0 independent, 1 one tells the other; where
    a variable is constant V is 0.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> CramersVChange(on=["sex", "age"]).text
    "CramersVChange(on=['sex', 'age'])"
    """

    unit: ClassVar[str] = "change of a coefficient, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    fewest: ClassVar[int] = 2

    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pairs = two_way_tables(original, masked, self.checked(original), weighted=self.weighted)
        return loss_over(pairs, lambda pair: pair.matrix_change(cramers_v), self.summary)
