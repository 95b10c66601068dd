"""Rules and choices: a plan states a rule before the first score is computed, and the rule chooses from a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy.typing as npt
import polars as pl

from sdcmap.core.limit import Limit, Verdict
from sdcmap.core.measure import Measure
from sdcmap.core.value import Value
from sdcmap.data import notebook_html


class LimitColumn(NamedTuple):
    """Rows of a map compared with one limit."""

    limit: Limit
    end: npt.NDArray[Any]  # what is compared with the limit: the value with its margin; NaN: no value
    applies: npt.NDArray[Any]  # False: the measure does not apply to this file, so the limit is not tested

    @property
    def is_met(self) -> npt.NDArray[Any]:
        """Whether each row was tested and is within the limit."""
        within: npt.NDArray[Any] = self.limit.admits(self.end) & self.applies
        return within

    @property
    def share(self) -> npt.NDArray[Any]:
        """The share of the limit that each row uses up; NaN where it has no value."""
        return self.limit.share(self.end)


class AxisValue(NamedTuple):
    """The value of a candidate on one axis.

    Where the axis is an expectation, that of its method, pooled over the draws, with a 95 % confidence interval.
    """

    value: float
    interval: tuple[float, float] | None = None
    draws: int = 0  # that were pooled; 0: the value is that of the candidate itself


class ScoreTable(Protocol):
    """What a rule reads from the scores behind a map: any measure, of candidates or pooled over methods."""

    @property
    def values(self) -> Mapping[str, Measure]: ...
    @property
    def kinds(self) -> Mapping[str, str]: ...
    def column(self, measure: str) -> pl.DataFrame: ...
    def pooled(self, measure: str) -> pl.DataFrame: ...
    def name_of(self, method: str, draw: int | None = None) -> str: ...
    def is_synthetic(self, method: str) -> bool: ...


class RiskUtilityMap(Protocol):
    """What a rule reads from a map. `RUMap` implements it."""

    @property
    def scores(self) -> ScoreTable: ...
    @property
    def risk(self) -> tuple[str, ...]: ...
    @property
    def utility(self) -> str: ...
    @property
    def signs(self) -> tuple[float, float]: ...
    @property
    def labels(self) -> tuple[str, str]: ...
    @property
    def is_expectation(self) -> bool: ...
    @property
    def nothing(self) -> tuple[float, float] | None: ...
    @property
    def points(self) -> pl.DataFrame: ...
    @property
    def means(self) -> pl.DataFrame: ...
    @property
    def limits(self) -> tuple[Limit, ...]: ...
    @property
    def scales(self) -> tuple[float, ...]: ...
    def compare_limit(self, limit: Limit, rows: pl.DataFrame, quantile: float | None = None) -> LimitColumn: ...
    def compare_limits(self, rows: pl.DataFrame, quantile: float | None = None) -> Sequence[LimitColumn]: ...
    def eligible(self, rows: pl.DataFrame, quantile: float | None = None) -> npt.NDArray[Any]: ...
    def worst_shares(self, rows: pl.DataFrame, quantile: float | None = None) -> npt.NDArray[Any]: ...
    @property
    def unmasked_verdicts(self) -> tuple[Verdict, ...]: ...
    def verdicts(self, candidate: str) -> tuple[Verdict, ...]: ...
    def method_verdicts(self, method: str) -> tuple[Verdict, ...]: ...
    def values_of(self, candidate: str) -> tuple[AxisValue, AxisValue]: ...
    def describe_axes(self, candidate: str) -> str: ...
    def losses(self, table: pl.DataFrame) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]: ...
    def end(self, measure: str, name: str) -> float | None: ...


@dataclass(frozen=True)
class Rule(Value):
    """The base of every rule that chooses a release from a map; `sdcmap.choose` contains the rules.

    Parameters
    ----------
    by : compare single releases, methods by their mean risk, or methods by an upper quantile of their releases' risk
    quantile : the quantile, where methods are compared by one
    """

    example: ClassVar[str] = "Threshold"

    @property
    def limits(self) -> Mapping[str, float]:
        """Measure -> its largest tolerable value, for measures that the rule names itself."""
        return {}

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the rule reads beside the axes of the map."""
        return ()

    def resolve(self, measures: Sequence[Measure]) -> Rule:
        """Return the rule with the measures of a plan in place of class names that stand for them; by default itself."""
        return self

    def choose(self, ru: RiskUtilityMap) -> Choice:
        """Return the choice on the map `ru`."""
        raise TypeError(f"{type(self).__name__} cannot choose.")


@dataclass(frozen=True)
class RunnerUp:
    """The row that a rule would choose next: a candidate, or a method where methods are compared."""

    candidate: str | None
    method: str
    replicate: int | None
    name: str
    reason: str  # its numbers, in words

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True)
class Choice:
    """The chosen row, the rule and the reason. `candidate` None means: release nothing.

    risk, utility : of the chosen release; on an axis that is an expectation, pooled over the draws of its method.
    risk_interval, utility_interval : the 95 % confidence interval of a pooled value, else None.
    no_masking_needed : the unmasked file meets every limit. No rule chooses it: releasing it is a person's decision.
    """

    candidate: str | None
    method: str
    replicate: int | None
    risk: float | None
    utility: float | None
    rule: Rule
    reason: str
    runners_up: tuple[RunnerUp, ...] = ()
    verdicts: tuple[Verdict, ...] = field(default=(), repr=False)  # one for each limit
    searched: int = 0  # random draws of the chosen method that were compared before one was chosen
    stream_id: str = field(default="", repr=False, compare=False)  # identifies the candidate's stream, hence the seed
    name: str = ""  # for people: the title of the method, and the draw
    risk_interval: tuple[float, float] | None = None
    utility_interval: tuple[float, float] | None = None
    no_masking_needed: bool = False
    # ids of the candidates that a release tries, in the order of the rule: the chosen one first, one of each method
    candidates: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_picked(self) -> bool:
        """Whether a person picked it. No rule chose it then, and `reason` is what the person stated."""
        return type(self.rule) is Rule

    def __str__(self) -> str:
        return self.reason

    def __repr__(self) -> str:
        numbers = "" if self.risk is None else f": risk {self.risk:.4g}, utility {self.utility:.4g}"
        return f"Choice({self.name or self.method or 'release nothing'}{numbers})"

    def _repr_html_(self) -> str:
        """Return the reason and the runners-up for a notebook."""
        others = (
            notebook_html.table(["runners-up"], [(str(runner),) for runner in self.runners_up])
            if self.runners_up
            else ""
        )
        return notebook_html.paragraph(self.reason) + others
