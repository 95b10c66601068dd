"""The information-loss summary s1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.statistics.losses import il1_losses, il2_losses, il3_losses, il4_losses, il5_losses
from sdcmap.utility._information_loss import MomentsMeasure, mean_of


@dataclass(frozen=True)
class S1(MomentsMeasure):
    """The mean of IL1, IL2, IL3, IL4 and IL5, the utility of the D-score 50 (s1 + re-identified share).

    Parameters
    ----------
    on : numeric variables; by default all numeric variables of the file.
    weighted : use the survey weights; needs a weight.
    by : variables that divide the records into subpopulations; the loss is then the mean over the subpopulations, each
        measured as a file of its own, and the worst one is in the parts.
    least : records a subpopulation needs in the original to be measured, at least 2.
    corrected : take the noise off first, as a data user can who has read the method note (Kim 1990): subpopulation means
        are undone of any rescaling, and d Cov X, told by the whole released file, is taken off subpopulation
        covariances. For additive noise alone; other methods have no corrected value.
    made_by : the method, where neither a sweep nor a release tells it.

    Formula: s1 = (IL1 + IL2 + IL3 + IL4 + IL5)/5; each is in the parts, unrounded.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    It is undefined where one of its parts is. IL1 speaks of single values and is never corrected.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> S1().text
    'S1'
    """

    unit: ClassVar[str] = "mean of losses"
    fewest: ClassVar[int] = 2

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        values = self.mean_losses(original, masked, il1_losses)
        pairs = zip(values, self.compared(original, masked), strict=True)
        return [
            {
                "IL1": value,
                "IL2": mean_of(il2_losses(before, after), "mean"),
                "IL3": mean_of(il3_losses(before, after), "covariance"),
                "IL4": mean_of(il4_losses(before, after), "variance"),
                "IL5": mean_of(il5_losses(before, after), "correlation"),
            }
            for value, (before, after) in pairs
        ]
