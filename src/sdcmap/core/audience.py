"""Who reads the report, and how precisely it speaks to them.

An external reader gets scores and counts to two significant digits, pooled over the releases of a method, and no count
of 1 to 9 records, neither written as such nor hidden in a share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sdcmap.errors import PlanError

SMALL = 10  # a cell or subpopulation below this is not shown outside
RECORD_SHARE = "share of records"  # the unit of measures whose value times the rows is a count


@dataclass(frozen=True)
class Audience:
    """`name` is "internal" or "external"; `rows` is the number of records that shares refer to."""

    name: str
    rows: int = 0

    def __post_init__(self) -> None:
        if self.name not in ("internal", "external"):
            raise PlanError(f"audience must be 'internal' or 'external'. Got {self.name!r}.")

    @property
    def external(self) -> bool:
        return self.name == "external"

    @property
    def digits(self) -> int:
        return 2 if self.external else 4

    def number(self, value: float | None) -> str:
        """A score in words; a dash where there is none."""
        return "–" if value is None else significant(value, self.digits)

    def score(self, value: float | None, unit: str) -> str:
        """A score in its unit; outside, a share that stands for 1 to 9 records is not told."""
        if value is not None and unit == RECORD_SHARE and self.hides(value * self.rows):
            return self._veiled(value * self.rows)
        return self.number(value)

    def hides(self, records: float) -> bool:
        """Whether so many records, or all the others, are too few to be told."""
        return self.external and (0 < records < SMALL or 0 < self.rows - records < SMALL)

    def count(self, records: int) -> str:
        """A number of records."""
        if self.hides(records):
            return self._veiled(records)
        return significant(records, 2) if self.external else f"{records:,}"

    def percent(self, records: int) -> str:
        """A number of records as a percentage of all."""
        if self.hides(records):
            return self._veiled(records)
        return f"{significant(100 * records / max(self.rows, 1), 2 if self.external else 3)} %"

    def _veiled(self, records: float) -> str:
        return f"under {SMALL} records" if records < SMALL else f"all but under {SMALL} records"


def significant(value: float, digits: int) -> str:
    """A number to so many significant digits, with thousands marked.

    >>> significant(48842, 2), significant(0.0149461, 2), significant(2.18e-9, 2), significant(0, 2)
    ('49,000', '0.015', '2.2e-09', '0')
    """
    if math.isinf(value):
        return "infinite"
    rounded = float(f"{value:.{digits}g}")
    if rounded == value and rounded == round(rounded) and abs(rounded) < 1e9:
        return f"{round(rounded):,}"
    place = math.floor(math.log10(abs(rounded)))
    if -5 <= place < 9:
        return f"{rounded:,.{max(0, digits - 1 - place)}f}"
    return f"{rounded:.{digits - 1}e}"
