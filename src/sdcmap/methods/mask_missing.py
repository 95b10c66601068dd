"""Patterns of missing values that enough people share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Column, Generator, Infeasible, Method, Microdata, Range, Roles, Trials, join_names
from sdcmap.core.method import Origin
from sdcmap.data.microdata import without_reasons
from sdcmap.data.missing_patterns import find_patterns, missing_states
from sdcmap.data.schema import KINDS
from sdcmap.kernels.tables.coding import count_units
from sdcmap.methods.microaggregate import divide_by_range
from sdcmap.methods.suppress import without_values

MAX_SHARED_PATTERNS = 1000  # patterns that a rare one is compared with, the most frequent ones
MAX_DONORS = 100  # records that are compared with a record that needs a value
RECORDS_PER_BLOCK = 50  # records that are compared with the same donors


def find_rare_patterns(data: Microdata, names: Sequence[str], k: int) -> Array:
    """Return True for the records whose pattern of missing values fewer than k units share."""
    if not names:
        return np.zeros(len(data), dtype=bool)
    _, code, count = find_patterns(missing_states(data, names), data.units)
    return np.asarray(count[code] < k)


def share_patterns(missing: Array, units: Array, k: int) -> Array:
    """Return which values of each record are missing in the release, so that at least k units share each pattern.

    A record keeps its pattern if at least k units have it. Otherwise it takes the one of these patterns that differs
    in the fewest values, or the complete pattern, if that differs in fewer and at least k units then have it.
    """
    # A column with few known or few missing values would make every pattern rare, so it gets the other state first.
    lacking, known = np.transpose([count_units(1 - column, units, 2) for column in missing.T.astype(np.int64)])
    released = (missing | (known < k)) & (lacking >= k)
    patterns, code, count = find_patterns(released, units)
    shared = np.flatnonzero(count >= k)
    shared = shared[np.argsort(-count[shared], kind="stable")][:MAX_SHARED_PATTERNS]
    rare = np.flatnonzero(count < k)
    candidates = np.vstack([patterns[shared], np.zeros((1, missing.shape[1]), dtype=bool)])
    nearest = _nearest_patterns(patterns[rare], candidates)
    completed = np.isin(code, rare[nearest == len(shared)])
    if len(shared) and len(np.unique(units[completed])) < k:
        nearest = _nearest_patterns(patterns[rare], candidates[:-1])
    after = patterns.copy()
    after[rare] = candidates[nearest]
    return np.asarray(after[code])


def _nearest_patterns(patterns: Array, candidates: Array) -> Array:
    """Return for each pattern the candidate that differs in the fewest columns; the first of equally near ones."""
    a, b = patterns.astype(np.float32), candidates.astype(np.float32)
    nearest = np.zeros(len(a), dtype=np.int64)
    for start in range(0, len(a), 10_000):
        block = a[start : start + 10_000]
        gap = block.sum(axis=1)[:, np.newaxis] + b.sum(axis=1) - 2 * block @ b.T
        nearest[start : start + 10_000] = gap.argmin(axis=1)
    return nearest


def find_donors(compared: Array, nominal: Array, guests: Array, pool: Array) -> Array:
    """Return for each guest the nearest record of the pool, of at most MAX_DONORS that are spread over it.

    The distance is the sum of |x_ij - x_lj|, 1 where categories differ, and 1 where one of the two values is missing.
    """
    count = min(MAX_DONORS, len(pool))
    spread = np.arange(count) * len(pool) // count
    donors = np.empty(len(guests), dtype=np.int64)
    for block, start in enumerate(range(0, len(guests), RECORDS_PER_BLOCK)):
        rows = guests[start : start + RECORDS_PER_BLOCK]
        # each block has other donors, so that no donor gives its value to very many records
        offered = pool[(spread + block) % len(pool)]
        gap = np.abs(compared[rows][:, np.newaxis] - compared[offered])
        gap = np.where(np.isnan(gap) | (nominal & (gap > 0)), 1.0, gap)
        donors[start : start + RECORDS_PER_BLOCK] = offered[gap.sum(axis=2).argmin(axis=1)]
    return donors


@dataclass(frozen=True)
class MaskMissing(Method):
    """Change which values are missing until at least k people share each pattern of missing values.

    Someone who knows which questions a person did not answer finds the record with that pattern, whatever other steps did
    to the values. Use it as the first step of a chain, so that later steps mask the new values too.

    Parameters
    ----------
    on : the variables whose missing values make up the pattern, of any kind: all that an attacker could know.
    k : the minimum number of units that share a pattern, at least 2. A unit is a person with all records, where the file
        has several of a person, else a household, or a record.

    Formula: a record with a rare pattern gets the pattern of at least k units that differs from its own in the fewest
    values (of equally near ones, the most frequent), or the complete pattern if that is nearer. At most the 1,000 most
    frequent patterns are compared. Before that, a variable that fewer than k units have becomes missing for all, and one
    that fewer than k units lack complete. Values that the new pattern lacks become missing. Values that it needs
    are taken from the most similar of 100 records that have them, by the sum of differences over ranges and of
    differing categories. Infeasible for fewer than k units.
    If any pattern is rare, the reasons for missing values are dropped. Weights are not used. It draws no random numbers, so
    an attacker with the original records can repeat it; k units still share each pattern.
    Reference: Andridge and Little (2010) for donors, International Statistical Review 78.

    Examples
    --------
    >>> MaskMissing(on=["wage", "rent"], k=5).title
    'wage, rent: missing values shared by 5 units'
    """

    label: ClassVar[str] = "Shared patterns of missing values"
    description: ClassVar[str] = (
        "Values are imputed or removed where few people have the same combination of missing values."
    )

    revision: ClassVar[int] = 2  # 2: counts people with several records, and households, once
    households: ClassVar[str] = "a household counts once among those that share a pattern"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "category"
    random: ClassVar[bool] = False
    mixes_records: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "unmasked"
    kept: ClassVar[str] = "every value of the records whose pattern of missing values enough others share"
    distorted: ClassVar[str] = "records with a rare pattern: some of their values are imputed, others removed"

    on: tuple[str, ...]
    k: Annotated[int, Range(2)] = 3

    @property
    def title(self) -> str:
        strata = f" within {', '.join(self.within)}" if self.within else ""
        return f"{join_names(self.on)}: {self.action}{strata}"

    @property
    def action(self) -> str:
        return f"missing values shared by {self.k} units"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it changes which values are missing, and masks no other value."}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if len(set(self.on)) < len(self.on):
            yield ".on must name each variable once."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        units = data.units
        if (count := len(np.unique(units))) < self.k:
            what = "units" if data.unit_columns else "records"
            raise Infeasible(f"no {self.k} {what} can share a pattern of missing values: there are only {count}.")
        if not find_rare_patterns(data, self.on, self.k).any():
            return data.change(None, {})
        plain = without_reasons(data, self.on)
        before = np.column_stack([plain.missing(name) for name in self.on])
        after, has_values = before.copy(), ~before.all(axis=0)
        after[:, has_values] = share_patterns(before[:, has_values], units, self.k)
        values = self._impute(plain, before, after)
        for j, name in enumerate(self.on):
            removed = np.flatnonzero(after[:, j])
            if len(removed):
                values[name] = without_values(Column(values[name], plain.column(name).levels), removed)[0]
        return plain.change(None, values)

    def _impute(self, data: Microdata, before: Array, after: Array) -> dict[str, Array]:
        """Return the values of each variable; those that a new pattern needs come from donors."""
        values = {name: data.column(name).values.copy() for name in self.on}
        needed = before & ~after
        patterns, code, _ = find_patterns(needed, data.units)
        nominal = np.array([data.schema[name].kind == "nominal" for name in self.on])
        compared = _comparable(data, self.on, before, nominal)
        for number in np.flatnonzero(patterns.any(axis=1)):
            guests = np.flatnonzero(code == number)
            columns = np.flatnonzero(patterns[number])
            # One donor gives all values, so that they fit together; if no record has them all, each has its own donor.
            have_all = np.flatnonzero(~before[:, columns].any(axis=1))
            for group in [columns] if len(have_all) else columns[:, np.newaxis]:
                pool = np.flatnonzero(~before[:, group].any(axis=1))
                donors = find_donors(compared, nominal, guests, pool)
                for j in group:
                    values[self.on[j]][guests] = data.column(self.on[j]).values[donors]
        return values


def _comparable(data: Microdata, names: Sequence[str], missing: Array, nominal: Array) -> Array:
    """Return the variables as numbers to compare: codes of nominal ones, others divided by their range; NaN: missing."""
    x = np.column_stack([data.column(name).values.astype(np.float64) for name in names])
    x[missing] = np.nan
    return np.where(nominal, x, divide_by_range(x))
