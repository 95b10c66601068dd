"""The largest distance between distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.utility._margins import MarginMeasure
from sdcmap.utility._numeric import over_variables


@dataclass(frozen=True)
class KolmogorovSmirnov(MarginMeasure):
    """The largest difference between the distribution functions of a variable before and after masking.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.
    weighted : distribution functions of the survey population; needs a weight.
    summary : the value is the "mean" or the "worst" over the variables; both, and each variable's own, are in `parts`.

    Formula: KS = sup over t of |F(t) - G(t)|, F and G the distribution functions before and after.
    Missing values are left out, in each file on its own; a variable all of whose values were suppressed has distance 1.
    Weights: used when `weighted`. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories. A shuffle or rank swap of whole columns leaves it 0: relations need other measures.
    Reference: Kolmogorov (1933); Smirnov (1948).

    Examples
    --------
    >>> KolmogorovSmirnov(on="income", weighted=True).text
    "KolmogorovSmirnov(on='income', weighted=True)"
    """

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0

    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        found = {name: self.distances(original, masked, name) for name in self.checked(original)}
        return over_variables({n: 1.0 if both is None else both[0] for n, both in found.items()}, self.summary)
