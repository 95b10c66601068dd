"""Readable units: a precision 1/MSE as a typical error in the unit of its variable, and relative to the unmasked file."""

from __future__ import annotations

import math

from sdcmap.core.audience import format_significant
from sdcmap.core.estimate import Estimate
from sdcmap.core.measure import Measure

SHOWN_LEVEL = 0.95  # of the intervals that are shown beside pooled values


def typical_error(precision: float) -> float:
    """Return 1/sqrt(precision), the root of the mean squared error, in the unit of the variable.

    >>> typical_error(4e-8), typical_error(float("inf")), typical_error(0.0)
    (5000.0, 0.0, inf)
    """
    if precision <= 0:
        return math.inf
    return float(f"{1 / math.sqrt(precision):.15g}")


def precision_of_error(error: float) -> float:
    """Return 1/error^2, the precision whose typical error this is.

    >>> precision_of_error(5000)
    4e-08
    """
    return 1 / error**2


def describe_error(measure: Measure, precision: float | None, digits: int = 3) -> str:
    """Return the typical error behind a precision in words; "" for a measure that is no precision.

    >>> import sdcmap as sm
    >>> describe_error(sm.risk.Position(on="income"), 3.57e-8), describe_error(sm.SmallCells(), 0.1)
    ('typical error 5,290 in income', '')
    """
    if not measure.error_variable or precision is None:
        return ""
    return f"typical error {format_significant(typical_error(precision), digits)} in {measure.error_variable}"


def describe_efficiency(measure: Measure, precision: float | None, unmasked: float | None, digits: int = 3) -> str:
    """Return a user's precision relative to that of the unmasked file in words; "" where that says nothing.

    >>> import sdcmap as sm
    >>> describe_efficiency(sm.utility.MeanPrecision(on="income"), 0.89e-6, 1e-6)
    '89 % of the precision of the unmasked file'
    """
    share = efficiency(measure, precision, unmasked)
    return "" if share is None else f"{format_significant(100 * share, digits)} % of the precision of the unmasked file"


def efficiency(measure: Measure, precision: float | None, unmasked: float | None) -> float | None:
    """Return a user's precision relative to that of the unmasked file; None for other measures."""
    if not measure.error_variable or measure.axis != "utility" or precision is None or unmasked is None:
        return None
    return precision / unmasked if 0 < unmasked < math.inf else None


def describe_readably(measure: Measure, precision: float | None, unmasked: float | None = None, digits: int = 3) -> str:
    """Return the typical error and the relative efficiency of a precision in words; "" for other measures."""
    parts = describe_error(measure, precision, digits), describe_efficiency(measure, precision, unmasked, digits)
    return ", ".join(part for part in parts if part)


def describe_pooled(
    measure: Measure, pooled: Estimate, draws: int, *, unmasked: float | None = None, release_value: float | None = None
) -> str:
    """Return how to read a value that is pooled over draws: draws, interval, readable units, and which value decides.

    release_value : the value of the chosen release alone, where the measure has one.
    """
    parts = [f"pooled over {draws} draws" if draws > 1 else "one draw", describe_interval(pooled.interval(SHOWN_LEVEL))]
    parts.append(describe_readably(measure, pooled.value, unmasked))
    if measure.has_release_value and release_value is not None and draws > 1:
        parts.append(f"this release alone: {format_significant(release_value, 3)}; the pooled value decides")
    return "; ".join(part for part in parts if part)


def describe_interval(interval: tuple[float, float] | None) -> str:
    """Return a confidence interval in words; "" where there is none, and the reason where it has no ends.

    >>> describe_interval((1.5e-8, 2.5e-8)), describe_interval(None)
    ('95 % interval 1.50e-08 to 2.50e-08', '')
    """
    if interval is None:
        return ""
    if math.isinf(interval[1]) and not 0 < interval[0] < math.inf:
        return "too few draws to know its error"
    low, high = (format_significant(end, 3) for end in interval)
    return f"95 % interval {low} to {high}"
