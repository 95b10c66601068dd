"""Who reads the report, and how precisely it speaks to them.

An external reader gets scores and counts to two significant digits, pooled over the releases of a method, and no count
of 1 to 9 records: neither written as such, nor hidden in a share, nor as the difference of two shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sdcmap.errors import PlanError

MIN_SHOWN_RECORDS = 10  # a cell or subpopulation below this is not shown outside
RECORD_SHARES = ("share of records", "share of values")  # units of measures whose value times the rows is a count
RECORDS = "records"  # the unit of measures whose value is a count


@dataclass(frozen=True)
class Audience:
    """`name` is "internal" or "external"; `rows` is the number of records that shares refer to."""

    name: str
    rows: int = 0

    def __post_init__(self) -> None:
        if self.name not in ("internal", "external"):
            raise PlanError(f"audience must be 'internal' or 'external'. Got {self.name!r}.")

    @property
    def is_external(self) -> bool:
        return self.name == "external"

    @property
    def digits(self) -> int:
        return 2 if self.is_external else 4

    def number(self, value: float | None) -> str:
        """A score in words; a dash where there is none."""
        return "–" if value is None else format_significant(value, self.digits)

    def score(self, value: float | None, unit: str) -> str:
        """A score in its unit; outside, a share that stands for 1 to 9 records is not told, nor such a difference."""
        if value is None or not self.is_external:
            return self.number(value)
        records = value * self.rows if unit in RECORD_SHARES else value if unit == RECORDS else 0
        if self.hides(records):
            return self._hide_count(records)
        return self.number(round_score(value, unit, self.rows))

    def hides(self, records: float) -> bool:
        """Whether so many records, or all the others, are too few to be told."""
        return self.is_external and (0 < records < MIN_SHOWN_RECORDS or 0 < self.rows - records < MIN_SHOWN_RECORDS)

    def count(self, records: int) -> str:
        """A number of records."""
        return self.score(records, RECORDS) if self.is_external else f"{records:,}"

    def percent(self, records: int) -> str:
        """A number of records as a percentage of all."""
        if self.hides(records):
            return self._hide_count(records)
        if self.is_external:
            return f"{format_significant(100 * round_share(records / max(self.rows, 1), self.rows), 2)} %"
        return f"{format_significant(100 * records / max(self.rows, 1), 3)} %"

    def _hide_count(self, records: float) -> str:
        return (
            f"under {MIN_SHOWN_RECORDS} records"
            if records < MIN_SHOWN_RECORDS
            else f"all but under {MIN_SHOWN_RECORDS} records"
        )


def round_score(value: float, unit: str, rows: int) -> float:
    """A score to be told outside: shares and counts of records in steps of 10 records or more, others as they are."""
    if unit in RECORD_SHARES:
        return round_share(value, rows)
    return rows * round_share(value / rows, rows) if unit == RECORDS and value <= rows else value


def round_share(share: float, rows: int) -> float:
    """The nearest of the shares that may be told of so many records: all multiples of one step.

    The step is the smallest 1, 2 or 5 times a power of ten that is 10 records or more, so that two shares differ by
    nothing or by 10 records at least; large shares keep two digits. Only nobody is 0, and only everybody is 1.

    >>> coarse_share(14 / 600, 600), coarse_share(16 / 600, 600), round_share(1 / 600, 600), round_share(0.4567, 48842)
    (0.02, 0.02, 0.02, 0.46)
    """
    if not 0 < share < 1:
        return share
    least = min(1.0, MIN_SHOWN_RECORDS / rows)
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(times * decade for times in (1, 2, 5, 10) if times * decade >= least * (1 - 1e-9))
    step = max(step, 10.0 ** (math.floor(math.log10(share)) - 1))
    told = min(max(round(share / step), 1), max(round(1 / step) - 1, 1)) * step
    return float(f"{told:.9g}")


def format_significant(value: float, digits: int) -> str:
    """A number to so many significant digits, with thousands marked.

    >>> significant(48842, 2), significant(0.0149461, 2), format_significant(2.18e-9, 2), format_significant(0, 2)
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
