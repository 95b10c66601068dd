"""Change of the Shannon entropy of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import tables, up_to
from sdcmap.kernels.tables.contingency import entropy
from sdcmap.utility._tables import TableMeasure, loss_over


@dataclass(frozen=True)
class EntropyChange(TableMeasure):
    """By how much masking changed the disorder of the table: swapping spreads records over more cells.

    Parameters
    ----------
    on : the variables that make the table; by default the keys of the file.
    weighted : compare weighted counts; needs a weight. Swapping keeps unweighted margins only.
    order : None compares the table of all variables; k compares every table of 1 to k of them, at least 1.
    summary : with an order: the value is the "mean" or the "worst" over the tables; both are in the parts.

    Formula: |E(g) - E(f)| with E(f) = -sum f log f in nats, f and g the relative frequencies of the cells before and after.
    A change of 0 does not say that the tables are the same.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> EntropyChange(on=["sex", "age"]).text
    "EntropyChange(on=['sex', 'age'])"
    """

    unit: ClassVar[str] = "nats"

    order: Annotated[int | None, Range(1)] = None
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = tables(original, masked, up_to(self.checked(original), self.order), weighted=self.weighted)
        return loss_over(compared, lambda table: table.change(entropy), self.summary)
