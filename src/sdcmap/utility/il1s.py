"""Information loss of single values, scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.data.microdata import Array, Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.statistics.losses import il1s_losses
from sdcmap.utility._information_loss import InformationLoss


@dataclass(frozen=True)
class IL1s(InformationLoss):
    """The mean change of a value, in units of sqrt(2) standard deviations of its variable.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    weighted : use the survey weights; needs a weight.
    by : variables that divide the records into subpopulations; the loss is then the mean over the subpopulations, each
        measured as a file of its own, and the worst one is in the parts.
    least : records a subpopulation needs in the original to be measured, at least 2.

    Formula: IL1s = mean over records i and variables j of |x_ij - z_ij| / (sqrt(2) S_j), S_j of the original.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. Weights: used when `weighted`, else every record counts once. Households are not used.
    A constant variable that masking left alone adds 0; one that it changed leaves the measure undefined. Releasing nothing
    has no value here. sdcMicro's IL1s is the sum, not the mean.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL1s(on=["income", "tax"]).text
    "IL1s(on=['income', 'tax'])"
    """

    unit: ClassVar[str] = "standard deviations / sqrt(2)"
    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        found = self.mean_losses(original, masked, il1s_losses)
        if np.isinf(found).any():
            raise Undefined("a variable that is constant in the original was changed, so its loss has no scale.")
        return [{"IL1s": mean} for mean in found]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        return self.record_losses(original, masked, il1s_losses)
