"""Groups that are too small, or in which one sensitive value is too common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sdcmap.core.value import Range, Share
from sdcmap.kernels.tables.diversity import largest_within, shares_within
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.risk._sensitive import Judged, SensitiveMeasure
from sdcmap.risk.l_diversity import SLACK, SensitiveGroups


@dataclass(frozen=True)
class AlphaKAnonymity(SensitiveMeasure):
    """The share of records in groups of fewer than k records, or in which one sensitive value has more than a share alpha.

    The snooper knows the keys of somebody who is in the file and finds the records that have them. He succeeds when these
    are few, so that he may point at the record, or when most of them have one sensitive value, so that he need not. What
    masking changed counts as if it were true.

    Parameters
    ----------
    k : a group is exposed when fewer than k records match it, at least 1.
    share : alpha, in [0, 1]: a group is exposed where more than this share of its known sensitive values are the same.

    Formula: #{i: f_i < k or max over values s of p(s) in i's group > alpha} / n; `parts`: the "smallest group", a number of
        records, and the "largest share" of a value in a group: the k and the alpha that hold for the whole file.
    Missing keys as `missing_is` says; missing sensitive values are left out of p, and a group without any counts by its
    size alone. Weights and households are not used.
    Reference: Wong, Li, Fu, Wang (2006), definition 3.

    Examples
    --------
    >>> AlphaKAnonymity("disease", k=3, share=0.5).text
    "AlphaKAnonymity(secret='disease')"
    """

    k: Annotated[int, Range(1)] = 3
    share: Share = 0.5

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        largest = largest_within(group, share, len(groups.met.count))
        records = groups.met.count
        if (groups.codes < 0).any():
            records = wildcard_sums(groups.codes, records)
        exposed = (records < self.k) | (largest > self.share + SLACK)
        return Judged(exposed, {"smallest group": float(records.min()), "largest share": float(largest.max())})
