"""How far values must move to turn one distribution into the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.utility._margins import MarginMeasure
from sdcmap.utility._numeric import over_variables


@dataclass(frozen=True)
class Wasserstein(MarginMeasure):
    """The least mean distance that values must move to turn the original distribution into the released one.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers; by default all numeric ones.
    weighted : distributions of the survey population; needs a weight.
    summary : the value is the "mean" or the "worst" over the variables; both, and each variable's own, are in `parts`.

    Formula: W = 1/S times the integral of |F(t) - G(t)| dt, S the standard deviation of the original.
    Missing values are left out, in each file on its own; undefined where all of a variable were suppressed. Weights: used
    when `weighted`, in S too. Households are not used. Works for sampled and synthetic files; undefined where numbers
    were recoded into categories, and where a constant variable was changed. Releasing nothing has no value.
    Reference: Vallender (1974).

    Examples
    --------
    >>> Wasserstein(on="income").text
    "Wasserstein(on='income')"
    """

    unit: ClassVar[str] = "standard deviations"

    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        found = {name: self._distance(original, masked, name) for name in self.checked(original)}
        return over_variables(found, self.summary)

    def _distance(self, original: Microdata, masked: Microdata, name: str) -> float:
        both = self.distances(original, masked, name)
        if both is None:
            raise Undefined(f"every value of {name!r} was suppressed, so that it has no distance from the original.")
        distance, spread = both[1], self.spread(original, name)
        if distance == 0:
            return 0.0
        if spread == 0:
            raise Undefined(f"{name!r} is constant in the original and was changed, so its distance has no scale.")
        return distance / spread
