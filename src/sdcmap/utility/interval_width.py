"""Width of confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.utility._intervals import IntervalMeasure, over_quantities


@dataclass(frozen=True)
class IntervalWidth(IntervalMeasure):
    """How far the width of a user's 95 % intervals is from the original's: wider is less power, narrower false precision.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1 - min(w, w')/max(w, w'), w and w' the widths before and after; the mean over all means, proportions and
    coefficients. A sample of a tenth of the records gives 1 - sqrt(.1). An estimate that had no width in the original is
    not judged. `parts`: the mean of each variable and model; "ratio", the mean of w'/w; and "lost", the share that the
    released file no longer tells, which count as 1.
    Missing values, weights and households as in IntervalOverlap. Works for sampled, recoded and synthetic files; intervals
    are those that a user computes who takes the released file for the original. Releasing nothing gives 1.
    Reference: Hundepool et al. (2012), section 3.5.1; Karr et al. (2006), section 3.2.

    Examples
    --------
    >>> IntervalWidth(on=["wage", "sex"]).text
    "IntervalWidth(on=['wage', 'sex'])"
    """

    unit: ClassVar[str] = "share of the width"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        judged = [
            (name, before.width, after) for name, before, after in self.compared(original, masked) if before.width > 0
        ]
        if not judged:
            raise Undefined("no estimate from the original has an interval of any width.")
        losses, ratios = [], []
        for name, before, after in judged:
            width = 0.0 if after is None else after.width
            losses.append((name, 1 - min(before, width) / max(before, width)))
            ratios += [] if after is None else [width / before]
        summary = over_quantities(losses, len(judged) - len(ratios))
        ratio = {"ratio": float(np.mean(ratios))} if ratios else {}
        return Estimate(summary.value, None, {**summary.parts, **ratio})
