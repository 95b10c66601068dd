"""The share of records that the confidentiality plot calls unsafe, as a risk measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, RiskMeasure
from sdcmap.recordwise.archive import Archive, read_archive_units
from sdcmap.recordwise.neighborhood import Assessment, SafetyRule, assess
from sdcmap.risk._archive import open_archive


@dataclass(frozen=True)
class UnsafeRecords(SafetyRule, RiskMeasure):
    """Share of records with too few similar units and too little perturbation to make up for it.

    The attacker compares a released record with the units of their archive, by default the original file. All units
    that are similar enough are possible links. A record is unsafe if these are few, and masking moved the record little.
    It is the share of points in the unsafe zone of the confidentiality plot (`sm.records`).

    Parameters
    ----------
    archive : path of the attacker's own file of units, such as a business register; by default they hold the original
        records. With frequency="population", the file of the population.
    row : the archive's column with the row number in the data, from 0, of each unit (missing: a unit that is not in the
        data); without it nobody knows which unit is which record, and `parts` have no links.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; a file with another content is
        refused.

    Formula: #{i: N_i < k and p_i < r and (N_i/k)^q + (p_i/r)^q < 1} / judged records, N_i = #{units x: ||y_i - x|| /
        ||y_i|| < delta}, p_i = ||y_i - x_i|| / ||x_i||; with frequencies #{i: F_i < k} / records.
    `parts`: "judged", the share of records with values on the scale; of these "in reach", the share whose own original is
    in the neighborhood, and "nearest", the share with no unit closer than it.
    Missing values: a record with one is not judged; where frequencies are counted, and in `within`, a missing value is
    a suppressed one and agrees with all. Weights count only in the population frequency. Households are not used.
    Reference: Seri (2005), sections 2 and 3.

    Examples
    --------
    >>> UnsafeRecords(on=["turnover", "employees"], within="nace", k=10).text
    "UnsafeRecords(on=['turnover', 'employees'], k=10, within='nace')"
    """

    label: ClassVar[str] = "Unsafe records (confidentiality plot)"
    description: ClassVar[str] = "Share of records that have few similar units and that masking changed little."
    missing: ClassVar[str] = "a record with a missing amount is not judged; a missing category agrees with all"
    weights: ClassVar[str] = "used only for population frequencies"
    growth: ClassVar[float] = 1.5

    archive: str = field(default="", kw_only=True)
    row: str = field(default="", kw_only=True)
    sha256: str = field(default="", kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.row and not self.archive:
            yield ".row needs an archive; name its file in .archive."
        if self.row and self.neighborhood == "frequency":
            yield ".row has no effect with frequencies, which need no links. Leave it out."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return *self.compared(data), *self.within

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        names = self.variables(data)
        if names and all(name in data.names for name in names):
            yield from self.rule_problems(data)

    def check_files(self, data: Microdata) -> None:
        self._read_units(data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        result = self._assess(original, masked)
        parts = {
            "judged": len(result.rows) / len(masked),
            "in reach": float(result.link_in.mean()),
            "nearest": float(result.nearest.mean()),
        }
        return Estimate(value=float((~result.safe).mean()), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return 1 for each unsafe record and 0 for each safe one; NaN for records that are not judged."""
        result = self._assess(original, masked)
        values = np.full(len(masked), np.nan)
        values[result.rows] = ~result.safe
        return values

    def _assess(self, original: Microdata, masked: Microdata) -> Assessment:
        self.check_variables(original)
        counts_to_k = self.resolve(original).neighborhood == "distance"
        archive = self._read_units(original)
        return assess(original, masked, self, count_to=self.k if counts_to_k else None, archive=archive)

    def _read_units(self, original: Microdata) -> Archive | None:
        if not self.archive:
            return None
        names = self.variables(original)
        key = "units of the archive", self.archive, self.sha256, self.row, names

        def read_units() -> Archive:
            return read_archive_units(open_archive(self.archive, self.sha256), original, names, row=self.row)

        return original.remember(key, read_units)
