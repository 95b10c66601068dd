"""Information loss of single values, relative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdcmap.data.microdata import Array, Microdata
from sdcmap.kernels.statistics.losses import il1_losses
from sdcmap.utility._information_loss import InformationLoss


@dataclass(frozen=True)
class IL1(InformationLoss):
    """The mean change of a value, relative to the mean size of the value before and after.

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    weighted : use the survey weights; needs a weight.
    by : variables that divide the records into subpopulations; the loss is then the mean over the subpopulations, each
        measured as a file of its own, and the worst one is in the parts.
    least : records a subpopulation needs in the original to be measured, at least 2.

    Formula: IL1 = mean over records i and variables j of |x_ij - z_ij| / (0.5 (|x_ij| + |z_ij|)); 0/0 = 0.
    Missing: a value missing in the original is left out; one that masking made missing counts as if the user put the
    variable's mean in its place. Weights: used when `weighted`, else every record counts once. Households are not used.
    It reaches 2 wherever a zero is changed or a sign, so a file with many zeros is dominated by them.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL1(on=["income", "tax"]).text
    "IL1(on=['income', 'tax'])"
    """

    unit: ClassVar[str] = "relative change, 0 to 2"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 2.0)
    missing: ClassVar[str] = "left out where the original is missing; a suppressed value counts as replaced by the mean"

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        return [{"IL1": mean} for mean in self.mean_losses(original, masked, il1_losses)]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The mean loss of each record; NaN where all its values are missing in the original."""
        return self.record_losses(original, masked, il1_losses)
