"""Limits: the largest tolerable value of a measure, where it comes from, and the comparison of an estimate with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sdcmap.core.estimate import Estimate
from sdcmap.core.measure import Measure
from sdcmap.core.readable_units import describe_error, precision_of_error
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Array

Status = Literal["met", "exceeded", "not tested", "no value"]


@dataclass(frozen=True, kw_only=True)
class Absent:
    """Why a measure has no estimate for a file.

    applies : False where the measure cannot apply to such a file at all (it compares records, and the file is fully
        synthetic): its limit is then "not tested". True where it should have a value: its limit then has "no value".
    """

    applies: bool
    reason: str


class ErrorLimit(float):
    """A limit of a precision 1/MSE that was stated as a typical error, in the unit of the variable.

    It is the number 1/error^2, and a plan writes it as it was stated.

    >>> ErrorLimit(5000), ErrorLimit(5000).error
    (4e-08, 5000.0)
    """

    error: float

    def __new__(cls, error: float) -> ErrorLimit:
        limit = super().__new__(cls, precision_of_error(float(error)))
        limit.error = float(error)
        return limit

    def __getnewargs__(self) -> tuple[float]:
        return (self.error,)


class EfficiencyLimit(float):
    """A limit of a user's precision 1/MSE that was stated as a share of the precision of the unmasked file.

    It is the number efficiency * unmasked, and a plan writes it as it was stated. Until the precision of the unmasked file
    is known it is NaN, which no file meets. Two limits are equal if they were stated alike.

    >>> EfficiencyLimit(0.9), EfficiencyLimit(0.9).relative_to(2e-6)
    (nan, 1.8e-06)
    """

    efficiency: float

    def __new__(cls, efficiency: float, unmasked: float = math.nan) -> EfficiencyLimit:
        limit = super().__new__(cls, float(efficiency) * unmasked if 0 < unmasked < math.inf else math.nan)
        limit.efficiency = float(efficiency)
        return limit

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return (self.efficiency, float(self) / self.efficiency)

    def __eq__(self, other: object) -> bool:
        return self.efficiency == other.efficiency if isinstance(other, EfficiencyLimit) else float(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("efficiency", self.efficiency))

    def relative_to(self, unmasked: float | None) -> EfficiencyLimit:
        """Return the limit as a number, given the precision of the unmasked file; None: it is not known."""
        return EfficiencyLimit(self.efficiency, math.nan if unmasked is None else unmasked)


def read_limit(name: str, stated: object, measure: Measure | None) -> float:
    """Return a limit: a number, {"error": typical error} or {"efficiency": share}; raise PlanError for anything else.

    The attacker's error must be at least as large, a user's error at most as large. A user's precision must be at least
    this share of the precision of the unmasked file.
    """
    if not isinstance(stated, Mapping):
        return stated if isinstance(stated, ErrorLimit | EfficiencyLimit) else float(stated)  # type: ignore[arg-type]
    (unit, number), *others = stated.items() or [("", None)]
    if others or unit not in ("error", "efficiency") or isinstance(number, bool) or not isinstance(number, int | float):
        forms = "{error = 5000} or {efficiency = 0.9}"
        raise PlanError(f"the limit of {name!r} must be a number, or a table such as {forms}.")
    if measure is not None and not measure.error_variable:
        what = f"an {unit}: its value is not 1 over a squared error"
        raise PlanError(f"the limit of {name!r} cannot be stated as {what}.")
    if unit == "error":
        if not 0 < number < math.inf:
            raise PlanError(f"the error in the limit of {name!r} must be a number above 0.")
        return ErrorLimit(number)
    if measure is not None and measure.axis != "utility":
        advice = "State the error that the attacker must at least make, such as {error = 5000}."
        raise PlanError(f"the limit of {name!r} cannot be stated as an efficiency: it is no user's precision. {advice}")
    if not 0 < number <= 1:
        raise PlanError(f"the efficiency in the limit of {name!r} must be above 0 and at most 1, such as 0.9.")
    return EfficiencyLimit(number)


def state_limits(limits: Mapping[str, float]) -> dict[str, float | dict[str, float]]:
    """Return limits as a person stated them: the reverse of `read_limit`, for plans and records of plans."""
    return {name: _stated_table(limit) or limit for name, limit in limits.items()}


def _stated_table(limit: float) -> dict[str, float]:
    """Return the table in which a limit was stated; empty for a plain number."""
    if isinstance(limit, EfficiencyLimit):
        return {"efficiency": limit.efficiency}
    return {"error": limit.error} if isinstance(limit, ErrorLimit) else {}


def format_limit(limit: float, measure: Measure | None = None) -> str:
    """Return a limit for readers: its number, and in parentheses its readable unit.

    A number that is not known yet is left out. `measure` : the limited measure, to show its typical error.

    >>> format_limit(0.05), format_limit(EfficiencyLimit(0.9))
    ('0.05', '90 % of the precision of the unmasked file')
    >>> format_limit(EfficiencyLimit(0.9, 2e-6))
    '1.8e-06 (90 % of the precision of the unmasked file)'
    """
    readable = explain_limit(limit, measure)
    if math.isnan(limit) and readable:
        return readable
    return f"{limit:.3g} ({readable})" if readable else f"{limit:g}"


def explain_limit(limit: float, measure: Measure | None = None) -> str:
    """Return a limit in readable units: the efficiency or the typical error; "" for a measure that is no precision."""
    if isinstance(limit, EfficiencyLimit):
        return f"{100 * limit.efficiency:g} % of the precision of the unmasked file"
    return "" if measure is None else describe_error(measure, limit)


@dataclass(frozen=True)
class Limit:
    """The largest tolerable value of a measure (the smallest, where higher is better), and where it was stated.

    The confidence limit of an estimate is compared: the upper one, or the lower one where higher values are better. In a
    study it is the eligibility limit, which has a margin for the release. The estimate of a measure that is a function of
    an expectation is pooled over the draws of a method.
    """

    measure: Measure
    value: float
    source: str = "the plan"

    @property
    def is_upper(self) -> bool:
        """Whether values must not exceed the limit; False: they must not be below it."""
        return self.measure.direction == "lower"

    def confidence_limit(self, estimate: Estimate, level: float) -> float:
        """Return the end of the estimate's confidence interval that the limit is compared with."""
        return estimate.upper(level) if self.is_upper else estimate.lower(level)

    def eligibility_limit(self, estimate: Estimate, policy: ReleasePolicy) -> float:
        """Return what is compared with the limit in a study; see `Estimate.eligibility_limit`."""
        return estimate.eligibility_limit(self.measure.release_error(estimate), policy, is_upper=self.is_upper)

    def admits(self, end: Array | float) -> Array:
        """Return whether each confidence limit is within this limit; NaN is not. All comparisons are made here."""
        return np.asarray(end <= self.value if self.is_upper else end >= self.value)

    def share(self, end: Array | float) -> Array:
        """Return each confidence limit as a share of this limit; more than 1 exceeds it."""
        return share_of_limit(end, self.value, is_upper=self.is_upper)

    def judge(self, outcome: Estimate | Absent, level: float) -> Verdict:
        """Return whether an estimate of a release meets the limit at this confidence level."""
        return self._judge(outcome, lambda estimate: self.confidence_limit(estimate, level))

    def judge_candidate(self, outcome: Estimate | Absent, policy: ReleasePolicy) -> Verdict:
        """Return whether an estimate of a study meets the limit with the margin that a release needs."""
        return self._judge(outcome, lambda estimate: self.eligibility_limit(estimate, policy))

    def _judge(self, outcome: Estimate | Absent, find_end: Callable[[Estimate], float]) -> Verdict:
        if isinstance(outcome, Absent):
            return Verdict(self, "no value" if outcome.applies else "not tested", reason=outcome.reason)
        end = find_end(outcome)
        return Verdict(self, "met" if self.admits(end) else "exceeded", estimate=outcome, end=end)


@dataclass(frozen=True)
class Verdict:
    """The result of comparing one file with one limit."""

    limit: Limit
    status: Status
    estimate: Estimate | None = None
    end: float | None = None  # the confidence limit that was compared
    reason: str = ""  # why it was not tested, or has no value

    @property
    def facts(self) -> dict[str, str | float | None]:
        """All fields as plain values, for JSON."""
        value, limit = None if self.estimate is None else self.estimate.value, self.limit
        return {
            "measure": limit.measure.text, "limit": limit.value, "source": limit.source, "status": self.status,
            "value": value, "compared": self.end, "reason": self.reason,
        }  # fmt: skip

    @property
    def share(self) -> float:
        """The share of the limit that is used up; NaN where it was not tested."""
        return float("nan") if self.end is None else float(self.limit.share(self.end))


def strictest(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return one limit for each measure, the strictest; of equal ones the first stated."""
    by_measure: dict[Measure, Limit] = {}
    for limit in limits:
        other = by_measure.get(limit.measure)
        if other is None or (limit.value < other.value if limit.is_upper else limit.value > other.value):
            by_measure[limit.measure] = limit
    return tuple(by_measure.values())


def share_of_limit(value: Array | float, limit: float, *, is_upper: bool) -> Array:
    """Return values as shares of a limit; more than 1 exceeds it.

    A negative limit belongs to a measure that is never above 0. There -0.4 exceeds an upper limit of -0.5: its share is
    1.25. A value of 0 is infinitely far above such a limit. An upper limit of 0 is met by 0 alone, with a share of 0.

    >>> float(share_of_limit(-0.4, -0.5, is_upper=True)), float(share_of_limit(0.4, 0.5, is_upper=True))
    (1.25, 0.8)
    """
    numbers = np.asarray(value, dtype=float) + 0.0  # turns -0.0 into 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        if limit == 0 and is_upper:
            return np.asarray(np.where(numbers == 0, 0.0, numbers / limit))
        if limit >= 0 or not is_upper:
            return np.asarray(numbers / limit if is_upper == (limit >= 0) else limit / numbers)
        return np.asarray(np.where(numbers < 0, limit / numbers, np.where(np.isnan(numbers), np.nan, np.inf)))


def as_share(values: Array | float, limit: float) -> Array:
    """Return values of a risk measure on an axis as shares of its limit, which may be negative."""
    return np.asarray(values) / limit if limit > 0 else share_of_limit(values, limit, is_upper=True)


def limit_problem(bounds: tuple[float | None, float | None], value: float) -> str:
    """Return what is wrong with a limit of a measure with these bounds, as the second part of a sentence; "" if nothing is.

    A measure that is never above 0, such as knowledge in Trottini's criterion, has a negative limit.
    """
    low, high = bounds
    if high is not None and high <= 0:
        return "" if value < 0 else f"must be below 0, because the measure is never above 0. Got {value:g}."
    if value >= 0 or (value < 0 and (low is None or low < 0)):
        return ""
    return f"must be at least 0. Got {value:g}."


def axis_scales(risk: Sequence[str], limits: Mapping[str, float]) -> tuple[float, ...]:
    """Return what each measure on the risk axis is divided by.

    That is its limit where there are several measures and each has one, so that their shares can be compared. Otherwise
    the result is empty.
    """
    several = len(risk) > 1 and all(name in limits for name in risk)
    return tuple(limits[name] for name in risk) if several else ()


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return a phrase that says how many limits are met, exceeded and not tested.

    >>> count_verdicts([])
    'there is no limit'
    """
    if not verdicts:
        return "there is no limit"
    counts = Counter(verdict.status for verdict in verdicts)
    met, tested = counts["met"], counts["met"] + counts["exceeded"]
    everything = {1: "the one", 2: "both"}.get(tested, f"all {tested}")
    every = everything if met == tested > 0 else f"{met} of {tested}"
    words = f"meets {every} tested limit{'' if tested == 1 else 's'}"
    others = ((counts["not tested"], "not tested"), (counts["no value"], "without a value"))
    rest = [f"{count} {phrase}" for count, phrase in others if count]
    return f"{words} ({', '.join(rest)})" if rest else words
