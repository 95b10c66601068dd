"""A snooper who knows his target's position in the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.quantiles import place_of
from sdcmap.kernels.statistics.precision import inverse_of_mean


def sorted_numbers(data: Microdata, name: str) -> Array:
    """The values of a variable that are not missing, in rising order, as a view."""
    x = data.numbers(name)
    return np.sort(x[~np.isnan(x)])


@dataclass(frozen=True)
class Position(Measure):
    """How precisely a snooper who knows his target's rank learns its value: R = 1/MSE.

    The snooper knows that somebody has the largest, the smallest, or the p-th percentile value of the sample. He sorts
    the released file and takes the value at that rank for the true one, whoever's record it is.

    Parameters
    ----------
    on : the numeric variable he wants to know.
    target : "maximum", "minimum", or a share p in (0, 1): the value of rank ceil(n p).

    Formula: R = 1/E(Y_(k) - x_(k))^2 over replicates (eq. 12, k fixed by the original); one file alone gives 1/e^2, which
    says little. `parts`: "squared_error". Infinite where the value at that rank did not move in any replicate.
    Missing values are left out, in each file on its own. Weights and households are not used. Ties need no rule here:
    the value of rank k is the same whichever tied record holds it.
    Releasing nothing leaves the snooper the mean of the file: R = 1/(xbar - x_(k))^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, position knowledge.

    Examples
    --------
    >>> Position(on="income", target=0.99).text
    "Position(on='income', target=0.99)"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    paired: ClassVar[bool] = False
    unit: ClassVar[str] = "1/(variable's unit)^2"
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "left out, in each file on its own"

    on: str
    target: Literal["maximum", "minimum"] | Annotated[float, Range(0, 1, "()")] = "maximum"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        squared = self.squared_error(original, masked)
        return Estimate(1 / squared if squared else float("inf"), None, {"squared_error": squared})

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        if len(estimates) == 1:
            return estimates[0]
        return Estimate(*inverse_of_mean(np.array([e.parts["squared_error"] for e in estimates])))

    def nothing(self, original: Microdata) -> float | None:
        if np.isnan(original.numbers(self.on)).all():
            return None
        error = float(np.nanmean(original.numbers(self.on))) - self.value(original)
        return 1 / error**2 if error else None

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """(Y_(k) - x_(k))^2 of one masked file."""
        return (self._at_rank(masked) - self.value(original)) ** 2

    def value(self, original: Microdata) -> float:
        """The true value of the target."""
        return original.remember(("target", self.on, self.target), lambda: self._at_rank(original))

    def _at_rank(self, data: Microdata) -> float:
        values = data.view(sorted_numbers, self.on)
        if len(values) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        return float(values[place_of(self.target, len(values))])
