"""Sensitive values within groups of equal keys: groups that disclose one, by the rules alpha-k, beta and delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Positive, Range, Share
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.diversity import largest_within, shares_within
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure
from sdcmap.risk.l_diversity import SLACK, SensitiveGroups, secret_misfits, secret_of, sensitive_groups


class Judged(NamedTuple):
    """Which groups are exposed, and numbers of the whole file for `parts`."""

    exposed: Array
    parts: Mapping[str, float]


@dataclass(frozen=True)
class SensitiveMeasure(KeyMeasure):
    """The share of records in groups of equal keys whose sensitive values break a rule; a subclass states the rule.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    """

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; missing sensitive values are left out"

    secret: str = ""

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        yield from secret_misfits(self, data, self.variables(data), secret_of(data, self.secret))

    def judged(self, groups: SensitiveGroups) -> Judged:
        """The rule itself."""
        raise TypeError(f"{type(self).__name__} has no rule.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        groups, (exposed, parts) = self._judged(original, masked)
        return Estimate(value=float(groups.met.count[exposed].sum() / len(masked)), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record's group is exposed, 0 elsewhere."""
        groups, (exposed, _) = self._judged(original, masked)
        return exposed.astype(float)[groups.met.code]

    def _judged(self, original: Microdata, masked: Microdata) -> tuple[SensitiveGroups, Judged]:
        self.checked(original)
        groups = sensitive_groups(self, masked, secret_of(original, self.secret))
        if len(groups.value) == 0:
            raise Undefined(f"{type(self).__name__}: every sensitive value is missing.")
        return groups, self.judged(groups)


# Groups that are too small, or in which one sensitive value is too common.


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


# Groups that make a sensitive value much likelier than the file does.


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


# Groups in which sensitive values are much likelier, or much less likely, than in the file.


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
