"""The first information loss of single values, with the value itself as its scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdcmap.core.value import Positive
from sdcmap.data.microdata import Array, Microdata
from sdcmap.kernels.statistics.losses import relative_losses
from sdcmap.utility._information_loss import InformationLoss


@dataclass(frozen=True)
class RelativeLoss(InformationLoss):
    """The mean change of a value, relative to the value itself: the loss that IL1 and IL1s replace.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    weighted : use the survey weights; needs a weight.
    by : variables that divide the records into subpopulations; the loss is then the mean over the subpopulations, each
        measured as a file of its own, and the worst one is in the parts.
    least : records a subpopulation needs in the original to be measured, at least 2.
    constant : stands in place of |x| where x = 0, in the variable's unit, above 0; the loss then depends on it. By
        default a zero that masking changed makes the loss infinite.

    Formula: loss = mean over records i and variables j of |x_ij - z_ij| / |x_ij|; 0/0 = 0.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. Weights: used when `weighted`, else every record counts once. Households are not used.
    Values near 0 dominate it: it is orders of magnitude above the other losses on most files.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> RelativeLoss(on="income").text
    "RelativeLoss(on='income')"
    """

    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    constant: Positive | None = None

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        return [{"RelativeLoss": mean} for mean in self.mean_losses(original, masked, self._of_values)]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        return self.record_losses(original, masked, self._of_values)

    def _of_values(self, x: Array, z: Array) -> Array:
        return relative_losses(x, z, self.constant)
