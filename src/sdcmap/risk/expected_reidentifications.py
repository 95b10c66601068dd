"""How many records a snooper links rightly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.risk._frequencies import LinkMeasure


@dataclass(frozen=True)
class ExpectedReidentifications(LinkMeasure):
    """The number of records that a snooper links rightly, on average.

    The snooper links every released record to one of the persons of a population register who have its keys, at random,
    as for IndividualRisk. He succeeds with each link that is right; counted are those of the whole file.

    Formula: sum of the individual risks over the records; `parts`: "share", the same per record.
    It grows with the file: files of different size are compared by IndividualRisk.
    Missing values as `missing_is` says. Weights must be positive; without any the file is the population. Households are
    not used.
    Reference: Templ, Kowarik, Meindl (2015); SDC Practice Guide, global risk.

    Examples
    --------
    >>> ExpectedReidentifications().text
    'ExpectedReidentifications'
    """

    unit: ClassVar[str] = "records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        met, risk = self.risks(masked)
        expected = float(met.count @ risk)
        return Estimate(expected, None, {"share": expected / len(masked)})
