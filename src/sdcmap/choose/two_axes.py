"""Rules on the two axes of a map: a threshold on risk, a straight line, the distance to the ideal point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.choose.by_release import NEXT, ByRelease, measure_words, name_of
from sdcmap.core import Array, PlanError, Range, Share
from sdcmap.core.rule import Choice, RiskUtilityMap


@dataclass(frozen=True)
class Threshold(ByRelease):
    """The best utility among what has at most a tolerable risk.

    Parameters
    ----------
    risk : the largest tolerable value of the risk axis (the smallest, where a higher risk number is better).

    If nothing passes, the choice is to release nothing, and the nearest miss is named (Trottini 2001, par. 26). `Identity`,
    the original as it is, is never chosen.

    Examples
    --------
    >>> Threshold(risk=0.012).text
    'Threshold(risk=0.012)'
    """

    levers: ClassVar[tuple[str, ...]] = ("risk",)

    risk: float = 0.0

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return ru.losses(rows)[1]

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return ru.losses(rows)[0] <= ru.signs[0] * self.risk

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        return ru.losses(rows)[0], ru.signs[0]

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, speech = self._rows(ru)
        word = "at most" if ru.signs[0] > 0 else "at least"
        by_limits = self.risk == 1 and bool(ru.scales)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            what = "the least loss" if ru.signs[1] > 0 else "the most utility"
            kind = "candidates" if "id" in row else "methods"
            best = f"it has {what}, {measure_words(ru, ru.utility)} {row['utility']:.4g}, of the {eligible:,}"
            if by_limits:
                return f"{best} among {len(rows):,} {kind} that meet every tested limit."
            risky = f"whose {speech} ({ru.labels[0]}) is {word} {self.risk:g}"
            if not ru.limits:
                return f"{best} among {len(rows):,} {kind} {risky}."
            return f"{best} that also meet every tested limit, among the {passed:,} of {len(rows):,} {kind} {risky}."

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            place = int(np.argmin(np.where(rows["anchor"], np.inf, ru.losses(rows)[0])))
            near = rows.row(place, named=True)
            none = "holds every limit" if by_limits else f"has a {speech} ({ru.labels[0]}) of {word} {self.risk:g}"
            unit = " times a limit" if by_limits else ""
            miss = f"The nearest miss is {name_of(ru, near)} with {near['risk']:.4g}{unit}"
            return f"Release nothing: no candidate {none}. {miss}{self._over(ru, rows[[place]])}. {NEXT}"

        return self._pick(ru, rows, why, miss)


@dataclass(frozen=True)
class Weighing(ByRelease):
    """Rules that weigh two parts of each row: the order of rows is that of first + a * second, for some a >= 0."""

    def parts(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> tuple[Array, Array]:
        """Return both parts of each row."""
        raise NotImplementedError

    def weigh(self, first: Array, second: Array) -> Array:
        """Return the cost of rows with these parts."""
        raise NotImplementedError

    def lever_value(self, slope: float) -> float:
        """Return the value of the lever at which rows are ordered by first + slope * second."""
        return slope

    def reason(self, speech: str, eligible: int) -> str:
        """Return why a row is chosen among those that are eligible; `speech`: how to speak of its risk."""
        raise NotImplementedError

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, speech = self._rows(ru)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            return self.reason(speech, eligible)

        def miss() -> str:
            return "Release nothing: no masked candidate could be made and scored."

        return self._pick(ru, rows.filter(~pl.col("anchor")), why, miss)

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return self.weigh(*self.parts(ru, rows))


@dataclass(frozen=True)
class Linear(Weighing):
    """The least risk + slope * loss among masked candidates; the loss is minus the utility where higher is better.

    Parameters
    ----------
    slope : how much risk one unit of loss is worth, at least 0. `RUMap.linear_path` lists the optima of all slopes.

    Reference: Gomatam, Karr, Sanil (2003), section 5 (their utility, turned into distortion).

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

    def reason(self, speech: str, eligible: int) -> str:
        return f"its {speech} + {self.slope:g} * loss is the least of {eligible:,}."


@dataclass(frozen=True)
class IdealPoint(Weighing):
    """The masked candidate nearest to the ideal: the risk of releasing nothing with the utility of releasing everything.

    Parameters
    ----------
    weight : weight of the risk axis, in [0, 1]; utility has the rest.
    scale : "anchors" measures each axis between releasing nothing and releasing everything, "bounds" between the
        measure's declared bounds. Never by the candidates, so that no candidate moves another. An axis without finite
        ends is refused.

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

    def reason(self, speech: str, eligible: int) -> str:
        return f"with its {speech} it is the nearest of {eligible:,} to the ideal point, by {self.scale}."

    def _ends(self, ru: RiskUtilityMap) -> list[tuple[float, float]]:
        """(best, worst) of risk and of utility."""
        if self.scale == "anchors":
            whole = self._rows(ru)[0].filter("anchor")
            if ru.nothing is None or len(whole) == 0:
                raise PlanError("the ideal point needs both anchors; a measure has no value for releasing nothing.")
            ends = [(ru.nothing[0], whole["risk"][0]), (whole["utility"][0], ru.nothing[1])]
        else:
            axes = zip((ru.risk[0], ru.utility), ru.signs, strict=True)
            sides = [(name, ("low", "high") if sign > 0 else ("high", "low")) for name, sign in axes]
            ends = [(ru.end(name, best), ru.end(name, worst)) for name, (best, worst) in sides]
        if any(end is None or not math.isfinite(end) for pair in ends for end in pair) or any(a == b for a, b in ends):
            needs = f"axes with two finite, different ends by {self.scale}"
            raise PlanError(f"the ideal point needs {needs}; one has none.")
        return ends
