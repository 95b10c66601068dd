"""Groups in which sensitive values are much likelier, or much less likely, than in the file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdcmap.core.value import Positive
from sdcmap.kernels.tables.diversity import largest_within, shares_within
from sdcmap.risk._sensitive import Judged, SensitiveMeasure
from sdcmap.risk.l_diversity import SLACK, SensitiveGroups


@dataclass(frozen=True)
class DeltaDisclosure(SensitiveMeasure):
    """The share of records in groups where the odds of a sensitive value moved by more than a factor exp(delta).

    The snooper knows how frequent each sensitive value is in the file, and the keys of somebody who is in it. He succeeds
    when the records with these keys make a value likelier or less likely by more than a factor. What masking changed counts
    as if it were true.

    Parameters
    ----------
    delta : the natural logarithm of the factor, above 0; a group is exposed above it.
    absent : a value of the file that a group does not have exposes it too, for that the person does not have this value
        is then certain: the strict reading, by which nearly every small group is exposed. Otherwise values that occur in
        the group are looked at.

    Formula: #{i: |ln(p/q)| > delta for a value of i's group} / n, p its share in the group and q in the file; `parts`: the
        "largest" over values that occur.
    Missing keys as `missing_is` says; missing sensitive values are left out of p and q. Weights and households are not
    used.
    Reference: Brickell and Shmatikov (2008), definition 2; pycanon and ARX look at values that occur.

    Examples
    --------
    >>> DeltaDisclosure("disease", delta=1.5).text
    "DeltaDisclosure(secret='disease', delta=1.5)"
    """

    delta: Positive = 1.0
    absent: bool = False

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        moved = np.abs(np.log(share / groups.whole[groups.value]))
        largest = largest_within(group, moved, len(groups.met.count))
        exposed = largest > self.delta + SLACK
        if self.absent:
            values = np.diff(groups.start)
            exposed |= (values > 0) & (values < np.count_nonzero(groups.whole))
        return Judged(exposed, {"largest": float(largest.max())})
