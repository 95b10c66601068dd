"""Groups of equal keys that disclose a sensitive value: l-diversity, and the rules alpha-k, beta and delta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Positive, Range, Share, Undefined
from sdcmap.data.cells import DistinctCells
from sdcmap.kernels.tables.diversity import entropy_diversity, largest_within, recursive_diversity, shares_within
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure
from sdcmap.risk._secrets import SecretMeasure

DENSE_COUNTS = 1 << 23  # combinations of keys times sensitive values that are counted in one table
SLACK = 1e-9  # exp(entropy) of two equally frequent values is 2 but for rounding


@dataclass(frozen=True)
class SensitiveGroups:
    """The sensitive values among the records that match each combination of keys; laid out as kernels.diversity says."""

    met: DistinctCells
    codes: Array  # of the combinations, MISSING only where it is to match every value
    start: Array
    value: Array
    count: Array
    whole: Array  # the share of each value in the file


def sensitive_groups(measure: KeyMeasure, data: Microdata, secret: str) -> SensitiveGroups:
    """The values of `secret` in each group of records that match on the keys; missing ones are left out."""
    met, codes = measure.cells(data)
    known = ~data.missing(secret)
    cell, value = met.code[known], data.codes(secret)[known].astype(np.int64)
    cells, size = len(codes), data.level_count(secret)
    wild = bool((codes < 0).any())
    if wild or cells * size <= DENSE_COUNTS:
        step = max(1, DENSE_COUNTS // cells)
        parts = [_counted(codes, cell, value, range(low, min(low + step, size)), wild) for low in range(0, size, step)]
        group, held, count = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((held, group))
        group, held, count = group[order], held[order], count[order]
    else:
        pairs, count = np.unique(cell * size + value, return_counts=True)
        group, held = np.divmod(pairs, size)
    start = np.searchsorted(group, np.arange(cells + 1))
    whole = np.bincount(value, minlength=size) / max(len(value), 1)
    return SensitiveGroups(met, codes, start, held, count.astype(np.float64), whole)


def _counted(codes: Array, cell: Array, value: Array, values: range, wild: bool) -> tuple[Array, Array, Array]:
    """Which of these values occur in which group, and how often."""
    inside = (value >= values.start) & (value < values.stop)
    place = cell[inside] * len(values) + (value[inside] - values.start)
    table = np.bincount(place, minlength=len(codes) * len(values)).reshape(len(codes), len(values))
    table = wildcard_sums(codes, table) if wild else table
    group, held = np.nonzero(table)
    return group, held + values.start, table[group, held]


# Which groups are exposed, and numbers of the whole file for `parts`.
Judged: TypeAlias = tuple[Array, dict[str, float]]


@dataclass(frozen=True)
class SensitiveMeasure(SecretMeasure, KeyMeasure):
    """The share of records in groups of equal keys whose sensitive values break a rule; a subclass states the rule.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    """

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; missing sensitive values are left out"

    secret: str = ""

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def judged(self, groups: SensitiveGroups) -> Judged:
        """The rule itself."""
        raise TypeError(f"{type(self).__name__} has no rule.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        groups = self.groups(original, masked)
        exposed, parts = self.judged(groups)
        return Estimate(value=float(groups.met.count[exposed].sum() / len(masked)), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        groups = self.groups(original, masked)
        return groups.met, self.judged(groups)[0]

    def groups(self, original: Microdata, masked: Microdata) -> SensitiveGroups:
        """The sensitive values of the release in groups of equal keys."""
        self.check_variables(original)
        groups = sensitive_groups(self, masked, self.secret_in(original))
        if len(groups.value) == 0:
            raise Undefined(f"{type(self).__name__}: every sensitive value is missing.")
        return groups


@dataclass(frozen=True)
class LDiversity(SensitiveMeasure):
    """The share of records in groups with fewer than l well-represented sensitive values.

    The snooper knows the keys of somebody who is in the file and finds the group of records that have them. He does not
    need to know which record it is: he succeeds when the group has few different sensitive values, so that he learns, or
    nearly learns, the person's. What masking changed counts as if it were true.

    Parameters
    ----------
    l : a group is exposed below l values; at least 1, a whole number except for "entropy".
    form : "distinct" values; "entropy": exp(H); "recursive": the largest l with r_1 < c (r_l + ... + r_m).
    c : for "recursive", above 0: how much more frequent the most frequent value may be than the tail.

    Formula: #{i: diversity of i's group < l} / n; `parts`: the "smallest" and the "mean" diversity over records.
    Missing keys as `missing_is` says; a missing sensitive value adds none to its group, and a group without any discloses
    nothing. Weights and households are not used.
    Reference: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007), definitions 4.1 and 4.2.

    Examples
    --------
    >>> LDiversity("Income", form="entropy", l=1.5).text
    "LDiversity(secret='Income', l=1.5, form='entropy')"
    """

    label: ClassVar[str] = "Groups with few sensitive values"
    description: ClassVar[str] = (
        "Share of records in groups whose sensitive values are so alike that group membership reveals them "
        "(l-diversity)."
    )

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; a missing sensitive value adds no diversity"

    l: Annotated[float, Range(1)] = 2.0  # noqa: E741 - the field's own word
    form: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Positive = 2.0

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.form != "entropy" and self.l != int(self.l):
            yield f'.l must be a whole number for "{self.form}". Got {self.l:g}.'

    def judged(self, groups: SensitiveGroups) -> Judged:
        diversity, records = self._diversity(groups), groups.met.count
        known = ~np.isnan(diversity)
        mean = float(records[known] @ diversity[known] / records[known].sum())
        return diversity < self.l * (1 - SLACK), {"smallest": float(diversity[known].min()), "mean": mean}

    def diversity(self, data: Microdata) -> Array:
        """The diversity of each record's group; NaN where no record of the group has a sensitive value."""
        groups = sensitive_groups(self, data, self.secret_in(data))
        return self._diversity(groups)[groups.met.code]

    def _diversity(self, groups: SensitiveGroups) -> Array:
        if self.form == "distinct":
            diversity = np.diff(groups.start).astype(np.float64)
        elif self.form == "entropy":
            diversity = entropy_diversity(groups.start, groups.count)
        else:
            diversity = recursive_diversity(groups.start, groups.count, self.c)
        return np.where(np.diff(groups.start) == 0, np.nan, diversity)


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

    label: ClassVar[str] = "Small or one-sided groups"
    description: ClassVar[str] = (
        "Share of records in groups that are too small, or in which one sensitive value dominates ((alpha, "
        "k)-anonymity)."
    )

    k: Annotated[int, Range(1)] = 3
    share: Share = 0.5

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        largest = largest_within(group, share, len(groups.met.count))
        records = wildcard_sums(groups.codes, groups.met.count) if (groups.codes < 0).any() else groups.met.count
        exposed = (records < self.k) | (largest > self.share + SLACK)
        return exposed, {"smallest group": float(records.min()), "largest share": float(largest.max())}


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

    label: ClassVar[str] = "Gain about a sensitive value"
    description: ClassVar[str] = (
        "Share of records in groups where a sensitive value is much more frequent than in the whole file "
        "(beta-likeness)."
    )

    beta: Positive = 1.0
    enhanced: bool = False

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        before = groups.whole[groups.value]
        gain = share / before - 1
        allowed = np.minimum(self.beta, -np.log(before)) if self.enhanced else self.beta
        over = np.bincount(group, gain > allowed + SLACK, minlength=len(groups.met.count)) > 0
        return over, {"largest": float(largest_within(group, gain, len(over)).max())}


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

    label: ClassVar[str] = "Shift in odds of a sensitive value"
    description: ClassVar[str] = (
        "Share of records in groups where the odds of a sensitive value differ strongly from the whole file "
        "(delta-disclosure)."
    )

    delta: Positive = 1.0
    absent: bool = False

    def judged(self, groups: SensitiveGroups) -> Judged:
        group, share = shares_within(groups.start, groups.count)
        largest = largest_within(group, np.abs(np.log(share / groups.whole[groups.value])), len(groups.met.count))
        exposed = largest > self.delta + SLACK
        if self.absent:
            values = np.diff(groups.start)
            exposed |= (values > 0) & (values < np.count_nonzero(groups.whole))
        return exposed, {"largest": float(largest.max())}
