"""Groups that make a sensitive value much likelier than the file does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdcmap.core.value import Positive
from sdcmap.kernels.tables.diversity import largest_within, shares_within
from sdcmap.risk._sensitive import Judged, SensitiveMeasure
from sdcmap.risk.l_diversity import SLACK, SensitiveGroups


@dataclass(frozen=True)
class BetaLikeness(SensitiveMeasure):
    """The share of records in groups where a sensitive value is much more frequent than in the file, relative to the file.

    The snooper knows how frequent each sensitive value is in the file, and the keys of somebody who is in it. He succeeds
    when the records with these keys make one value likelier by more than beta times its frequency: from 1 % to 10 % is a
    gain of 9, from 41 % to 50 % one of .2, which t-closeness takes for the same. What masking changed counts as if it were
    true.

    Parameters
    ----------
    beta : a group is exposed above this gain, a number above 0.
    enhanced : the gain of a value may be at most -ln q too, so that frequent values are guarded as well.

    Formula: #{i: (p - q)/q > beta for a value of i's group} / n, p its share in the group and q in the file; with
        `enhanced` beta is min(beta, -ln q), value by value. `parts`: the "largest" gain.
    Missing keys as `missing_is` says; missing sensitive values are left out of p and q. Weights and households are not
    used.
    Reference: Cao and Karras (2012), definitions 2 and 3.

    Examples
    --------
    >>> BetaLikeness("disease", beta=2).text
    "BetaLikeness(secret='disease', beta=2.0)"
    """

    beta: Positive = 1.0
    enhanced: bool = False

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        before = groups.whole[groups.value]
        gain = share / before - 1
        allowed = np.minimum(self.beta, -np.log(before)) if self.enhanced else self.beta
        over = np.bincount(group, gain > allowed + SLACK, minlength=len(groups.met.count)) > 0
        return Judged(over, {"largest": float(largest_within(group, gain, len(over)).max())})
