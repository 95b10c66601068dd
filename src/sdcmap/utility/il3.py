"""Information loss of covariances."""

from __future__ import annotations

from dataclasses import dataclass

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.statistics.losses import il3_losses
from sdcmap.utility._information_loss import MomentsMeasure, mean_of


@dataclass(frozen=True)
class IL3(MomentsMeasure):
    """The mean relative change of the variances and covariances.

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

    Formula: IL3 = mean over pairs j >= k of |Cov(X)_jk - Cov(Z)_jk| / |Cov(X)_jk|; 0/0 = 0.
    Missing: means over the values present, covariances and correlations over complete pairs, in each file on its own.
    Weights: used when `weighted`, else every record counts once. Households are not used.
    A covariance of 0 that masking changed leaves the measure undefined; variables that are almost uncorrelated make it
    large and unstable: two correlations of .004 give it a spread of 30 to 50 % between seeds on the paper's file.
    Reference: Yancey, Winkler, Creecy (2002), section 3.5.

    Examples
    --------
    >>> IL3(by="sex").text
    "IL3(by='sex')"
    """

    def losses(self, original: Microdata, masked: Microdata) -> list[dict[str, float]]:
        pairs = self.compared(original, masked)
        return [{"IL3": mean_of(il3_losses(before, after), "covariance")} for before, after in pairs]
