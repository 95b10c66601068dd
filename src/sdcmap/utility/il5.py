"""Information loss of correlations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.statistics.losses import il5_losses
from sdcmap.utility._information_loss import MomentsMeasure, mean_of


@dataclass(frozen=True)
class IL5(MomentsMeasure):
    """The mean change of the correlations.

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

    Formula: IL5 = mean over pairs j > k of |Cor(X)_jk - Cor(Z)_jk|.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A correlation with a constant variable counts as 0.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL5(by="sex").text
    "IL5(by='sex')"
    """

    unit: ClassVar[str] = "correlation"
    fewest: ClassVar[int] = 2

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        pairs = self.compared(original, masked)
        return [{"IL5": mean_of(il5_losses(before, after), "correlation")} for before, after in pairs]
