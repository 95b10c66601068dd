"""Groups of records that give away a sensitive value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Positive, Range
from sdcmap.data.cells import DistinctCells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined, did_you_mean
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.diversity import entropy_diversity, recursive_diversity
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.risk._frequencies import KeyMeasure

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


@dataclass(frozen=True)
class LDiversity(KeyMeasure):
    """The share of records in groups with fewer than l well-represented sensitive values.

    The snooper knows the keys of somebody who is in the file and finds the group of records that have them. He does not
    need to know which record it is: he succeeds when the group has few different sensitive values, so that he learns, or
    nearly learns, the person's. What masking changed counts as if it were true.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
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

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; a missing sensitive value adds no diversity"

    secret: str = ""
    l: Annotated[float, Range(1)] = 2.0  # noqa: E741 - the field's own word
    form: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Positive = 2.0

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.form != "entropy" and self.l != int(self.l):
            yield f'.l must be a whole number for "{self.form}". Got {self.l:g}.'

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        yield from secret_misfits(self, data, self.variables(data), secret_of(data, self.secret))

    def diversity(self, data: Microdata) -> Array:
        """The diversity of each record's group; NaN where no record of the group has a sensitive value."""
        met, diversity = self._diversity(data)
        return diversity[met.code]

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        met, diversity = self._diversity(masked, secret_of(original, self.secret))
        known = ~np.isnan(diversity)
        if not known.any():
            raise Undefined(f"{type(self).__name__}: every sensitive value is missing.")
        exposed = met.count[diversity < self.l * (1 - SLACK)].sum() / len(masked)
        mean = float(met.count[known] @ diversity[known] / met.count[known].sum())
        return Estimate(value=float(exposed), parts={"smallest": float(diversity[known].min()), "mean": mean})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record's group has fewer than l values, 0 elsewhere."""
        self.checked(original)
        met, diversity = self._diversity(masked, secret_of(original, self.secret))
        return (diversity < self.l * (1 - SLACK)).astype(float)[met.code]

    def _diversity(self, data: Microdata, secret: str = "") -> tuple[DistinctCells, Array]:
        secret = secret or secret_of(data, self.secret)
        groups = sensitive_groups(self, data, secret)
        if self.form == "distinct":
            diversity = np.diff(groups.start).astype(np.float64)
        elif self.form == "entropy":
            diversity = entropy_diversity(groups.start, groups.count)
        else:
            diversity = recursive_diversity(groups.start, groups.count, self.c)
        diversity[np.diff(groups.start) == 0] = np.nan
        return groups.met, diversity


def secret_of(data: Microdata, secret: str) -> str:
    """The sensitive variable that a measure is about: the one it names, or the first of the file."""
    return secret or next(iter(data.sensitive), "")


def secret_misfits(measure: Measure, data: Microdata, names: tuple[str, ...], secret: str) -> Iterator[str]:
    """The sentences for a sensitive variable that does not fit."""
    kind = type(measure).__name__
    if not secret:
        yield f"{kind} has no sensitive variable: state one, or name it in `secret`."
    elif secret not in data.schema:
        yield f"{kind}: no column {secret!r}.{did_you_mean(secret, data.names)}"
    elif secret in names:
        yield f"{kind}.secret must not be one of the variables the snooper knows; {secret!r} is."


def check_comparable(people: Microdata, released: Microdata, secret: str) -> None:
    """Undefined where released values of the secret cannot be any person's, because they were recoded."""
    ours, theirs = people.column(secret).levels, released.column(secret).levels
    if ours is not None and theirs is not None:
        mine, told = (set(levels.drop_nulls().cast(pl.String)) for levels in (ours, theirs))
        recoded = bool(mine and told) and mine.isdisjoint(told)
    else:
        recoded = ours is not theirs
    if recoded:
        raise Undefined(f"{secret!r} was recoded, and nobody can say which released category each value went into.")
