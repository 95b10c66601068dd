"""Rules on the two axes of a map: a risk threshold, a linear trade-off, the distance to the ideal point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.choose.by_release import NEXT_STEPS, ByRelease, describe_prior_above, measure_title, name_of, row_noun
from sdcmap.core import Array, PlanError, Range, Share
from sdcmap.core.readable_units import describe_error
from sdcmap.core.rule import Choice, RiskUtilityMap


@dataclass(frozen=True)
class Threshold(ByRelease):
    """Choose the best utility among the candidates whose risk is within a limit.

    Parameters
    ----------
    risk : the largest acceptable value on the risk axis (the smallest, where a higher risk number is better).

    The risk is compared with the margins of a release (see `ReleasePolicy`). If no candidate passes, the choice is to
    release nothing, and the nearest miss is named (Trottini 2001, par. 26). `Identity`, the unmasked original, is never
    chosen.

    Examples
    --------
    >>> Threshold(risk=0.012).text
    'Threshold(risk=0.012)'
    """

    levers: ClassVar[tuple[str, ...]] = ("risk",)
    has_limit: ClassVar[bool] = True

    risk: float = 0.0

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return ru.losses(rows)[1]

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return _compared_risk(ru, rows) <= ru.signs[0] * self.risk

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        return _compared_risk(ru, rows), ru.signs[0]

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, risk_name = self._rows(ru)
        noun = row_noun(rows)
        risk = measure_title(ru, ru.risk[0]) if len(ru.risk) == 1 else ru.labels[0]
        most = "at most" if ru.signs[0] > 0 else "at least"
        within = f"a {risk_name} ({risk}) of {most} {self.risk:g}{self._explain(ru)}"
        # On an axis that shows shares of limits, a threshold of 1 says no more than the limits themselves.
        by_limits = self.risk == 1 and bool(ru.scales)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            if by_limits:
                passing = f"{eligible:,} meet{'s' if eligible == 1 else ''} every tested limit"
            elif not ru.limits:
                passing = f"{passed:,} {'has' if passed == 1 else 'have'} {within}"
            else:
                also = f"{eligible:,} of these also meet{'s' if eligible == 1 else ''} every tested limit"
                passing = f"{passed:,} {'has' if passed == 1 else 'have'} {within}, and {also}"
            what = "smallest utility loss" if ru.signs[1] > 0 else "largest utility"
            value = f"{measure_title(ru, ru.utility)}: {row['utility']:.4g}"
            return f"Of {len(rows):,} {noun}, {passing}; this one has the {what} ({value})."

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            compared = _compared_risk(ru, rows)
            nearest = int(np.argmin(np.where(rows["anchor"], np.inf, compared)))
            row = rows.row(nearest, named=True)
            value = ru.signs[0] * compared[nearest]
            none = f"none of the {len(rows):,} {noun} {'meets every limit' if by_limits else f'has {within}'}"
            unit = " times a limit" if by_limits else ""
            miss = f"The nearest miss is {name_of(ru, row)} with {value:.4g}{unit}"
            prior = self._prior_above(ru)
            return f"Release nothing: {none}. {miss}{self._over(ru, rows[[nearest]])}.{prior} {NEXT_STEPS}"

        return self._pick(ru, rows, why, miss)

    def _prior_above(self, ru: RiskUtilityMap) -> str:
        """Return a sentence that says that even releasing nothing exceeds the threshold; "" where it does not."""
        prior = ru.end(ru.risk[0], "baseline_value") if len(ru.risk) == 1 else None
        if prior is None or ru.signs[0] * prior <= ru.signs[0] * self.risk:
            return ""
        return f" {describe_prior_above([f'{measure_title(ru, ru.risk[0])} is {prior:.4g} (limit {self.risk:g})'])}"

    def _explain(self, ru: RiskUtilityMap) -> str:
        """Return that the risk is compared with a margin, where it is an estimate, and the limit as a typical error."""
        measure = ru.scores.values.get(ru.risk[0])
        if measure is None or len(ru.risk) > 1:
            return ""
        rows = self._rows(ru)[0]
        has_margin = bool((rows["risk_end"] != rows["risk"]).any())  # such as for the spread between draws
        if not (measure.expectation or measure.sampled or has_margin):
            return ""
        readable = describe_error(measure, self.risk)
        return f" with the margin of a release{f' ({readable})' if readable else ''}"


def _compared_risk(ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
    """Return the risk that a threshold is compared with, with a sign such that less is better."""
    return np.asarray(ru.signs[0] * rows["risk_end"].to_numpy())


@dataclass(frozen=True)
class Weighing(ByRelease):
    """The base of rules that weigh two parts of each row: rows are ordered by first + a * second, for some a >= 0."""

    def parts(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> tuple[Array, Array]:
        """Return both parts of each row."""
        raise NotImplementedError

    def weigh(self, first: Array, second: Array) -> Array:
        """Return the cost of rows with these parts."""
        raise NotImplementedError

    def lever_value(self, slope: float) -> float:
        """Return the value of the lever at which rows are ordered by first + slope * second."""
        return slope

    def reason(self, risk_name: str, eligible: int) -> str:
        """Return why a row is chosen among the eligible ones; `risk_name`: what their risk is called."""
        raise NotImplementedError

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, risk_name = self._rows(ru)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            return self.reason(risk_name, eligible)

        def miss() -> str:
            return "Release nothing: no masked candidate could be made and scored."

        return self._pick(ru, rows.filter(~pl.col("anchor")), why, miss)

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return self.weigh(*self.parts(ru, rows))


@dataclass(frozen=True)
class Linear(Weighing):
    """Choose the smallest risk + slope * loss; the loss is minus the utility where higher is better.

    Parameters
    ----------
    slope : how much risk one unit of loss is worth, at least 0. `RUMap.linear_path` lists the optima of all slopes.

    Reference: Gomatam, Karr, Sanil (2003), section 2 (with their utility as distortion).

    Examples
    --------
    >>> Linear(slope=0.05).text
    'Linear(slope=0.05)'
    """

    levers: ClassVar[tuple[str, ...]] = ("slope",)

    slope: Annotated[float, Range(0)] = 1.0

    def parts(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> tuple[Array, Array]:
        return ru.losses(rows)

    def weigh(self, first: Array, second: Array) -> Array:
        return first + self.slope * second

    def reason(self, risk_name: str, eligible: int) -> str:
        return f"Of {eligible:,} eligible, it has the smallest {risk_name} + {self.slope:g} * utility loss."


@dataclass(frozen=True)
class IdealPoint(Weighing):
    """Choose the candidate nearest to the ideal: the risk of releasing nothing with the utility of releasing everything.

    Parameters
    ----------
    weight : weight of the risk axis, in [0, 1]; utility has the rest.
    scale : "anchors" measures each axis between releasing nothing and releasing everything, "bounds" between the
        measure's declared bounds. It never depends on the candidates, so that no candidate affects another. An axis
        without finite ends is an error.

    Examples
    --------
    >>> IdealPoint(weight=0.5).text
    'IdealPoint'
    """

    levers: ClassVar[tuple[str, ...]] = ("weight",)

    weight: Share = 0.5
    scale: Literal["anchors", "bounds"] = "anchors"

    def parts(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> tuple[Array, Array]:
        axes = zip(("utility", "risk"), reversed(self._ends(ru)), strict=True)
        loss, risk = (((rows[axis].to_numpy() - best) / (worst - best)) ** 2 for axis, (best, worst) in axes)
        return loss, risk

    def weigh(self, first: Array, second: Array) -> Array:
        return np.asarray(np.sqrt(self.weight * second + (1 - self.weight) * first))

    def lever_value(self, slope: float) -> float:
        return 1.0 if math.isinf(slope) else slope / (1 + slope)

    def reason(self, risk_name: str, eligible: int) -> str:
        return f"Of {eligible:,} eligible, it is nearest to the ideal point in {risk_name} and utility ({self.scale})."

    def _ends(self, ru: RiskUtilityMap) -> list[tuple[float, float]]:
        """Return (best, worst) of risk and of utility."""
        # Neither scale depends on the candidates: adding one must not change the choice among the others.
        if self.scale == "anchors":
            whole = self._rows(ru)[0].filter("anchor")
            if ru.nothing is None or len(whole) == 0:
                raise PlanError("the ideal point needs both anchors, but a measure has no value for releasing nothing.")
            ends = [(ru.nothing[0], whole["risk"][0]), (whole["utility"][0], ru.nothing[1])]
        else:
            axes = zip((ru.risk[0], ru.utility), ru.signs, strict=True)
            sides = [(name, ("low", "high") if sign > 0 else ("high", "low")) for name, sign in axes]
            ends = [(ru.end(name, best), ru.end(name, worst)) for name, (best, worst) in sides]
        if any(end is None or not math.isfinite(end) for pair in ends for end in pair) or any(a == b for a, b in ends):
            raise PlanError(f"the ideal point needs two different finite ends of each axis (scale: {self.scale}).")
        return ends
