"""Groups with equal keys that disclose a sensitive value: l-diversity and the rules of alpha, beta and delta."""

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

MAX_DENSE_CELLS = 1 << 23  # key combinations times sensitive values that are counted in one dense table (64 MiB)
ROUNDING_TOLERANCE = 1e-9  # exp(entropy) of two equally frequent values is 2 except for rounding


@dataclass(frozen=True)
class SensitiveGroups:
    """The sensitive values among the records that match each key combination, in the layout of kernels.diversity."""

    cells: DistinctCells
    codes: Array  # of the combinations, MISSING only if it is to match every value
    start: Array  # of each group in `value` and `count`
    value: Array
    count: Array
    file_share: Array  # of each value


def group_sensitive_values(measure: KeyMeasure, data: Microdata, secret: str) -> SensitiveGroups:
    """Return the values of `secret` in each group of records with matching keys; missing values are left out."""
    combinations, codes = measure.cells(data)
    known = ~data.missing(secret)
    cell, value = combinations.code[known], data.codes(secret)[known].astype(np.int64)
    cells, size = len(codes), data.level_count(secret)
    wild = bool((codes < 0).any())
    # a dense table if it fits or missing keys match every value, in blocks of values; else a sort of the pairs
    if wild or cells * size <= MAX_DENSE_CELLS:
        step = max(1, MAX_DENSE_CELLS // cells)
        parts = [
            _count_values(codes, cell, value, range(low, min(low + step, size)), wild) for low in range(0, size, step)
        ]
        group, present, count = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((present, group))
        group, present, count = group[order], present[order], count[order]
    else:
        pairs, count = np.unique(cell * size + value, return_counts=True)
        group, present = np.divmod(pairs, size)
    start = np.searchsorted(group, np.arange(cells + 1))
    file_share = np.bincount(value, minlength=size) / max(len(value), 1)
    return SensitiveGroups(combinations, codes, start, present, count.astype(np.float64), file_share)


def _count_values(codes: Array, cell: Array, value: Array, values: range, wild: bool) -> tuple[Array, Array, Array]:
    """Return which of these values occur in which group, and how often."""
    inside = (value >= values.start) & (value < values.stop)
    index = cell[inside] * len(values) + (value[inside] - values.start)
    table = np.bincount(index, minlength=len(codes) * len(values)).reshape(len(codes), len(values))
    table = wildcard_sums(codes, table) if wild else table
    group, present = np.nonzero(table)
    return group, present + values.start, table[group, present]


# Which groups are exposed, and numbers for `parts`.
RuleResult: TypeAlias = tuple[Array, dict[str, float]]


@dataclass(frozen=True)
class SensitiveMeasure(SecretMeasure, KeyMeasure):
    """Base of the measures of groups with equal keys whose sensitive values break a rule.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    """

    missing: ClassVar[str] = "missing keys match according to `missing_is`; missing sensitive values are left out"

    secret: str = ""

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def apply_rule(self, groups: SensitiveGroups) -> RuleResult:
        """Return which groups break the rule, and numbers for `parts`. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no rule.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        groups = self.groups(original, masked)
        exposed, parts = self.apply_rule(groups)
        return Estimate(value=float(groups.cells.count[exposed].sum() / len(masked)), parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        groups = self.groups(original, masked)
        return groups.cells, self.apply_rule(groups)[0]

    def groups(self, original: Microdata, masked: Microdata) -> SensitiveGroups:
        """Return the sensitive values of the release in groups with equal keys."""
        self.check_variables(original)
        groups = group_sensitive_values(self, masked, self.secret_in(original))
        if len(groups.value) == 0:
            raise Undefined(f"{type(self).__name__}: every sensitive value is missing.")
        return groups


@dataclass(frozen=True)
class LDiversity(SensitiveMeasure):
    """Share of records in groups with fewer than l well-represented sensitive values.

    The attacker knows the keys of a person in the file and finds the group of records that have them. They need not
    know which record is the person's: if the group has few different sensitive values, they learn the value, or nearly
    so. Masked values count as if they were true.

    Parameters
    ----------
    l : a group is exposed if it has fewer than l values, at least 1; a whole number except for "entropy".
    form : "distinct" values; "entropy": exp(H); "recursive": the largest l with r_1 < c (r_l + ... + r_m).
    c : for "recursive", above 0: how much more frequent the most frequent value may be than the tail.

    Formula: #{i: diversity of i's group < l} / n; `parts`: the "smallest" and the "mean" diversity over records.
    Missing keys match according to `missing_is`; a missing sensitive value adds no diversity, and a group without any
    value discloses nothing. Weights and households are not used.
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

    missing: ClassVar[str] = "missing keys match according to `missing_is`; a missing secret adds no diversity"

    l: Annotated[float, Range(1)] = 2.0  # noqa: E741 - the name in the literature
    form: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Positive = 2.0

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.form != "entropy" and self.l != int(self.l):
            yield f'.l must be a whole number for "{self.form}". Got {self.l:g}.'

    def apply_rule(self, groups: SensitiveGroups) -> RuleResult:
        diversity, records = self._diversity(groups), groups.cells.count
        known = ~np.isnan(diversity)
        mean = float(records[known] @ diversity[known] / records[known].sum())
        return diversity < self.l * (1 - ROUNDING_TOLERANCE), {"smallest": float(diversity[known].min()), "mean": mean}

    def diversity(self, data: Microdata) -> Array:
        """Return the diversity of each record's group; NaN if no record of the group has a sensitive value."""
        groups = group_sensitive_values(self, data, self.secret_in(data))
        return self._diversity(groups)[groups.cells.code]

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
    """Share of records in groups of fewer than k records, or with one sensitive value above a share alpha.

    The attacker knows the keys of a person in the file and finds the records that have them. They succeed if these are
    few, which singles out the record, or if most of them have the same sensitive value. Masked values count as if they
    were true.

    Parameters
    ----------
    k : a group is exposed if fewer than k records match it, at least 1.
    share : alpha, in [0, 1]: a group is exposed if more than this share of its known sensitive values are the same.

    Formula: #{i: f_i < k or max over values s of p(s) in i's group > alpha} / n.
    `parts`: the "smallest group", a number of records, and the "largest share" of a value in a group: the k and the
    alpha of the whole file.
    Missing keys match according to `missing_is`; missing sensitive values are left out of p, and a group without any
    value counts by its size only. Weights and households are not used.
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

    def apply_rule(self, groups: SensitiveGroups) -> RuleResult:
        group, share = shares_within(groups.start, groups.count)
        largest = largest_within(group, share, len(groups.cells.count))
        records = wildcard_sums(groups.codes, groups.cells.count) if (groups.codes < 0).any() else groups.cells.count
        exposed = (records < self.k) | (largest > self.share + ROUNDING_TOLERANCE)
        return exposed, {"smallest group": float(records.min()), "largest share": float(largest.max())}


# Groups in which a sensitive value is much more frequent than in the file.


@dataclass(frozen=True)
class BetaLikeness(SensitiveMeasure):
    """Share of records in groups where a sensitive value is much more frequent than in the file, in relative terms.

    The attacker knows how frequent each sensitive value is in the file, and the keys of a person in it. They succeed if
    the records with these keys raise the share of a value by more than beta times its share in the file. From 1 % to 10
    % is a gain of 9, from 41 % to 50 % a gain of 0.2; t-closeness treats both alike. Masked values count as if they
    were true.

    Parameters
    ----------
    beta : a group is exposed above this gain, a number above 0.
    enhanced : also limit the gain of each value to -ln q, which protects frequent values as well.

    Formula: #{i: (p - q)/q > beta for a value of i's group} / n, p its share in the group and q in the file; with
        `enhanced` the limit is min(beta, -ln q) for each value. `parts`: the "largest" gain.
    Missing keys match according to `missing_is`; missing sensitive values are left out of p and q. Weights and
    households are not used.
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

    def apply_rule(self, groups: SensitiveGroups) -> RuleResult:
        group, share = shares_within(groups.start, groups.count)
        file_share = groups.file_share[groups.value]
        gain = share / file_share - 1
        allowed = np.minimum(self.beta, -np.log(file_share)) if self.enhanced else self.beta
        over = np.bincount(group, gain > allowed + ROUNDING_TOLERANCE, minlength=len(groups.cells.count)) > 0
        return over, {"largest": float(largest_within(group, gain, len(over)).max())}


# Groups in which a sensitive value is much more, or much less, frequent than in the file.


@dataclass(frozen=True)
class DeltaDisclosure(SensitiveMeasure):
    """Share of records in groups where the share of a sensitive value differs by more than a factor exp(delta).

    The attacker knows how frequent each sensitive value is in the file, and the keys of a person in it. They succeed if
    the records with these keys make a value more or less likely by more than this factor. Masked values count as if
    they were true.

    Parameters
    ----------
    delta : the natural logarithm of the factor, above 0; a group is exposed above it.
    absent : also expose groups in which a value of the file does not occur, because the person certainly does not have
        it. This is the strict definition, and it exposes nearly every small group. By default only values that occur in
        the group count.

    Formula: #{i: |ln(p/q)| > delta for a value of i's group} / n, p its share in the group and q in the file; `parts`:
        the "largest" |ln(p/q)| over values that occur.
    Missing keys match according to `missing_is`; missing sensitive values are left out of p and q. Weights and
    households are not used.
    Reference: Brickell and Shmatikov (2008), definition 2; pycanon and ARX use values that occur.

    Examples
    --------
    >>> DeltaDisclosure("disease", delta=1.5).text
    "DeltaDisclosure(secret='disease', delta=1.5)"
    """

    label: ClassVar[str] = "Shift in a sensitive value's share"
    description: ClassVar[str] = (
        "Share of records in groups where a sensitive value is much more or much less frequent than in the whole file "
        "(delta-disclosure)."
    )

    delta: Positive = 1.0
    absent: bool = False

    def apply_rule(self, groups: SensitiveGroups) -> RuleResult:
        group, share = shares_within(groups.start, groups.count)
        largest = largest_within(
            group, np.abs(np.log(share / groups.file_share[groups.value])), len(groups.cells.count)
        )
        exposed = largest > self.delta + ROUNDING_TOLERANCE
        if self.absent:
            values = np.diff(groups.start)
            exposed |= (values > 0) & (values < np.count_nonzero(groups.file_share))
        return exposed, {"largest": float(largest.max())}
