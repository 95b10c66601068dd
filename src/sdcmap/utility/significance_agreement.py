"""Conclusions of regressions that a release still gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.utility._intervals import Interval, IntervalMeasure, over_quantities


def conclusion(interval: Interval) -> int:
    """1 where the interval lies above 0, -1 where below, 0 where it holds 0."""
    return (interval.low > 0) - (interval.high < 0)


@dataclass(frozen=True)
class SignificanceAgreement(IntervalMeasure):
    """The share of regression coefficients on which the released file and the original lead to the same conclusion.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) count too; by default none.

    Formula: mean over coefficients of [conclusion is the same]; the conclusion is that of a test at 5 %: above 0, below
        0, or not told from 0. `parts`: each model's, "lost", the share that the released file no longer tells, which
        count as different, "false findings", the share that only the release tells from 0 or with another sign, and
        "missed", the share that only the original does.
    Missing values are left out, in each file on its own; from a regression, records with any. Weights: used when
    `weighted`, with White's variance. Households are not used: the variance of clusters is not estimated. Works for
    sampled, recoded and synthetic files. Releasing nothing gives 0. A sample of the records misses what needs them all:
    that is counted.
    Reference: Barrientos, Bolton, Balmat, Reiter, de Figueiredo, Machanavajjhala, Chen, Kneifel, DeLong (2018), section 5.

    Examples
    --------
    >>> SignificanceAgreement(models="wage ~ age + sex").text
    "SignificanceAgreement(models='wage ~ age + sex')"
    """

    unit: ClassVar[str] = "share of coefficients"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if not self.models:
            yield '.models must name at least one regression, such as "wage ~ age + sex".'

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compared(original, masked)
        told = [(conclusion(before), None if after is None else conclusion(after)) for _, before, after in compared]
        same = [(name, float(before == after)) for (name, *_), (before, after) in zip(compared, told, strict=True)]
        value, se, parts = over_quantities(same, sum(after is None for _, after in told))
        false = sum(after not in (None, 0, before) for before, after in told) / len(told)
        missed = sum(before != 0 and after == 0 for before, after in told) / len(told)
        return Estimate(value, se, {**parts, "false findings": false, "missed": missed})
