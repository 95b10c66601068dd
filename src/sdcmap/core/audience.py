"""The readers of a report, and how precise the numbers for them are.

An external reader gets scores and counts to two significant digits, pooled over the releases of a method. Counts of 1
to 9 records are suppressed: as a count, in a share, and as the difference of two shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sdcmap.errors import PlanError

MIN_SHOWN_RECORDS = 10  # smaller cells and subgroups are not shown to external readers
RECORD_SHARES = ("share of records", "share of values")  # units of measures whose value times the rows is a count
TARGET_SHARE = "share of the attacker's targets"  # of an attacker with their own file: of its people in the release
RECORDS = "records"  # the unit of measures whose value is a count


@dataclass(frozen=True)
class Audience:
    """The readers of a report.

    Parameters
    ----------
    name : "internal" or "external".
    rows : the number of records that shares refer to.
    """

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
        """Return a score as text, or a dash where there is none."""
        return "–" if value is None else format_significant(value, self.digits)

    def score(self, value: float | None, unit: str) -> str:
        """Return a score in its unit. For external readers, shares and differences of 1 to 9 records are suppressed."""
        if value is None or not self.is_external:
            return self.number(value)
        records = value * self.rows if unit in (*RECORD_SHARES, TARGET_SHARE) else value if unit == RECORDS else 0
        if self.hides(records):
            return self._hide_target_share(records) if unit == TARGET_SHARE else self._hide_count(records)
        return self.number(round_score(value, unit, self.rows))

    def hides(self, records: float) -> bool:
        """Return whether this number of records, or of all the others, is too small to be shown."""
        return self.is_external and (0 < records < MIN_SHOWN_RECORDS or 0 < self.rows - records < MIN_SHOWN_RECORDS)

    def count(self, records: int) -> str:
        """Return a number of records as text."""
        return self.score(records, RECORDS) if self.is_external else f"{records:,}"

    def percent(self, records: int) -> str:
        """Return a number of records as a percentage of all records."""
        if self.hides(records):
            return self._hide_count(records)
        if self.is_external:
            return f"{format_significant(100 * round_share(records / max(self.rows, 1), self.rows), 2)} %"
        return f"{format_significant(100 * records / max(self.rows, 1), 3)} %"

    def _hide_target_share(self, records: float) -> str:
        """Return a share of targets that is too near to none or all of them; their number is not the file's."""
        least = f"under {format_significant(100 * MIN_SHOWN_RECORDS / self.rows, 2)} % of the attacker's targets"
        return least if records < MIN_SHOWN_RECORDS else f"all but {least}"

    def _hide_count(self, records: float) -> str:
        return (
            f"under {MIN_SHOWN_RECORDS} records"
            if records < MIN_SHOWN_RECORDS
            else f"all but under {MIN_SHOWN_RECORDS} records"
        )


def round_score(value: float, unit: str, rows: int) -> float:
    """Return a score for external readers: shares and counts in steps of 10 records or more, others unchanged."""
    if unit in (*RECORD_SHARES, TARGET_SHARE):
        return round_share(value, rows)
    return rows * round_share(value / rows, rows) if unit == RECORDS and value <= rows else value


def round_share(share: float, rows: int) -> float:
    """Return the nearest share that may be shown for a file of this size.

    All of them are multiples of one step: the smallest 1, 2 or 5 times a power of ten that is at least 10 records. Two
    rounded shares therefore are equal or differ by at least 10 records. Large shares keep two digits. Only an exact 0
    becomes 0, and only an exact 1 becomes 1.

    >>> round_share(14 / 600, 600), round_share(16 / 600, 600), round_share(1 / 600, 600), round_share(0.4567, 48842)
    (0.02, 0.02, 0.02, 0.46)
    """
    if not 0 < share < 1:
        return share
    least = min(1.0, MIN_SHOWN_RECORDS / rows)
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(times * decade for times in (1, 2, 5, 10) if times * decade >= least * (1 - 1e-9))
    step = max(step, 10.0 ** (math.floor(math.log10(share)) - 1))
    # a share strictly between 0 and 1 never becomes 0 or 1
    rounded = min(max(round(share / step), 1), max(round(1 / step) - 1, 1)) * step
    return float(f"{rounded:.9g}")


def format_significant(value: float, digits: int) -> str:
    """Return a number with this many significant digits and thousands separators.

    >>> format_significant(48842, 2), format_significant(0.0149461, 2), format_significant(2.18e-9, 2)
    ('49,000', '0.015', '2.2e-09')
    """
    if math.isinf(value):
        return "infinite"
    rounded = float(f"{value:.{digits}g}")
    if rounded == value and rounded == round(rounded) and abs(rounded) < 1e9:
        return f"{round(rounded):,}"
    exponent = math.floor(math.log10(abs(rounded)))
    if -5 <= exponent < 9:
        return f"{rounded:,.{max(0, digits - 1 - exponent)}f}"
    return f"{rounded:.{digits - 1}e}"
