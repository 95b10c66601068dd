"""Overlap of confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.utility._intervals import Interval, IntervalMeasure, over_quantities

ROUNDING = 1e-9


def overlap(first: Interval, second: Interval) -> float:
    """The mean of what share of each interval lies in the other; 0 where they do not meet.  Karr et al. (2006), eq. 1"""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if high < low - ROUNDING * max(map(abs, (*first, *second))):  # points that are equal but for rounding meet
        return 0.0
    common = max(high - low, 0.0)
    shares = [common / interval.width if interval.width > 0 else 1.0 for interval in (first, second)]
    return sum(shares) / 2


@dataclass(frozen=True)
class IntervalOverlap(IntervalMeasure):
    """How much the 95 % intervals of a user's estimates from the released file overlap those from the original.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1/2 [(u - l)/(U - L) + (u - l)/(U' - L')], (l, u) the intersection of (L, U) and (L', U'); 0 where they do not
    meet; then the mean over all means, proportions and coefficients. `parts`: the mean of each variable and model, and
    "lost", the share that the released file no longer tells (a recoded category, a constant variable), which count as 0.
    Missing values are left out, in each file on its own; from a regression, records with any. Weights: used when
    `weighted`; the variance is s^2/n with n = (sum w)^2/sum w^2, of a regression White's. Households are not used: the
    variance of clusters is not estimated. Works for sampled, recoded and synthetic files. Releasing nothing gives 0.
    Reference: Karr, Kohnen, Oganian, Reiter, Sanil (2006), section 3.2.

    Examples
    --------
    >>> IntervalOverlap(models="wage ~ age + sex").text
    "IntervalOverlap(models='wage ~ age + sex')"
    """

    unit: ClassVar[str] = "share of the intervals"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compared(original, masked)
        overlaps = [(name, 0.0 if after is None else overlap(before, after)) for name, before, after in compared]
        return over_quantities(overlaps, sum(after is None for *_, after in compared))
