"""Choosing: a rule turns a map into one concrete candidate, or into releasing nothing, and says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sdcmap.errors import PlanError
from sdcmap.map import IDENTITY, RUMap
from sdcmap.rule import Rule
from sdcmap.value import Range, Share

Array = npt.NDArray[Any]
RUNNERS_UP = 3


@dataclass(frozen=True)
class Choice:
    """The chosen row, the rule and the reason in words. `candidate` None means: release nothing."""

    candidate: str | None
    method: str
    replicate: int | None
    risk: float | None
    utility: float | None
    rule: Rule
    reason: str
    runners_up: tuple[str, ...] = ()
    searched: int = 0  # random draws of the chosen method that were looked at before one was taken

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class _ByRelease(Rule):
    """What all our rules share: whether single releases or methods are compared.

    by : "release" compares single candidates; "mean" methods by their pooled risk; "quantile" methods by an upper
        quantile of their releases' risk (needs at least 1/(1 - quantile) replicates). Where a measure is an expectation,
        methods are compared by pooled values and the replicate is number 0, fixed beforehand: picking a draw by its own
        error would tell a reader of the rule where the truth is not.
    """

    by: Literal["release", "mean", "quantile"] = "release"
    quantile: Annotated[Share, Range(0.5, 1, "[)")] = 0.95

    def _rows(self, ru: RUMap) -> tuple[pl.DataFrame, str]:
        """The rows to compare (method, risk, utility, ...) and how to speak of their risk."""
        if self.by == "release" and not ru.is_expectation:
            return ru.points.filter("fair"), "risk"
        means = ru.means
        if self.by != "quantile":
            return means, "mean risk" if not ru.is_expectation else "risk (pooled over replicates)"
        needed = math.ceil(round(1 / (1 - self.quantile), 9))
        short = means.filter(~pl.col("anchor") & (pl.col("count") > 1) & (pl.col("count") < needed))
        if len(short) or means["count"].max() == 1:
            raise PlanError(
                f"the {self.quantile:g} quantile of risk needs at least {needed} replicates of each method."
            )
        upper = ru.points.group_by("method").agg(pl.col("risk").quantile(self.quantile, "higher").alias("risk"))
        return means.drop("risk").join(upper, on="method", how="left"), f"{self.quantile:g} quantile of risk"

    def _pick(
        self, ru: RUMap, rows: pl.DataFrame, cost: Array, passing: Array, why: Callable[[dict[str, Any]], str],
        miss: Callable[[], str], fits: Callable[[pl.DataFrame], Array], own_cost: Callable[[pl.DataFrame], Array],
    ) -> Choice:  # fmt: skip
        """The passing row of least cost, brought down to one concrete candidate."""
        order = np.lexsort((rows["method"].to_numpy(), ru.signs[0] * rows["risk"].to_numpy(), cost))
        order = order[passing[order]]
        if len(order) == 0:
            return Choice(None, "", None, None, None, self, miss())
        row = rows.row(int(order[0]), named=True)
        draws = ru.points.filter(pl.col("fair"), pl.col("method") == row["method"])
        if "id" in row:
            chosen = row
        elif ru.is_expectation:
            chosen = draws.filter(pl.col("replicate") == draws["replicate"].min()).row(0, named=True)
        else:
            own = np.where(fits(draws), own_cost(draws), np.inf)
            chosen = draws.row(int(np.argmin(own)), named=True)
        named = rows[order[1 : RUNNERS_UP + 1]].iter_rows(named=True)
        runners = tuple(f"{_name(r)}: risk {r['risk']:.4g}, utility {r['utility']:.4g}" for r in named)
        searched = 1 if ru.is_expectation else len(draws)
        reason = f"Release {_name(chosen)}: {why(row)}"
        if searched > 1:
            reason += f" {searched} draws of this method were searched."
        elif ru.is_expectation and len(draws) > 1:
            reason += f" The draw was fixed beforehand as number {chosen['replicate']}."
        return Choice(
            chosen["id"], chosen["method"], chosen["replicate"], chosen["risk"], chosen["utility"], self, reason,
            runners, searched,
        )  # fmt: skip


@dataclass(frozen=True)
class Threshold(_ByRelease):
    """The best utility among what has at most a tolerable risk.

    Parameters
    ----------
    risk : the largest tolerable value of the risk axis (the smallest, where a higher risk number is better).

    `Identity` takes part: a file under the limit as it is needs no masking. If nothing passes, the choice is to release
    nothing, and the nearest miss is named (Trottini 2001, par. 26).

    Examples
    --------
    >>> Threshold(risk=0.012).text
    'Threshold(risk=0.012)'
    """

    risk: float = 0.0

    def choose(self, ru: RUMap) -> Choice:
        rows, speech = self._rows(ru)
        turned, loss = ru._losses(rows)
        limit = ru.signs[0] * self.risk
        passing = turned <= limit
        word = "at most" if ru.signs[0] > 0 else "at least"

        def why(row: dict[str, Any]) -> str:
            what = "the least loss" if ru.signs[1] > 0 else "the most utility"
            return (
                f"it has {what} ({ru.utility} {row['utility']:.4g}) of the {int(passing.sum()):,} among {len(rows):,} "
                f"{'candidates' if 'id' in row else 'methods'} whose {speech} ({ru.labels[0]}) is {word} {self.risk:g}."
            )

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            near = rows.row(int(np.argmin(turned)), named=True)
            return (
                f"Release nothing: no candidate has a {speech} ({ru.labels[0]}) of {word} {self.risk:g}. "
                f"The nearest miss is {_name(near)} with {near['risk']:.4g}."
            )

        own = lambda draws: ru._losses(draws)[1]
        return self._pick(ru, rows, loss, passing, why, miss, lambda draws: ru._losses(draws)[0] <= limit, own)


@dataclass(frozen=True)
class Linear(_ByRelease):
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

    slope: Annotated[float, Range(0)] = 1.0

    def choose(self, ru: RUMap) -> Choice:
        rows, speech = self._rows(ru)
        rows = rows.filter(pl.col("method") != IDENTITY)

        def cost(table: pl.DataFrame) -> Array:
            risk, loss = ru._losses(table)
            return risk + self.slope * loss

        def why(row: dict[str, Any]) -> str:
            return f"its {speech} + {self.slope:g} * loss is the least of {len(rows):,}."

        values = cost(rows)
        everything = lambda draws: np.ones(len(draws), dtype=bool)
        return self._pick(ru, rows, values, np.isfinite(values), why, _nothing_made, everything, cost)


@dataclass(frozen=True)
class IdealPoint(_ByRelease):
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

    weight: Share = 0.5
    scale: Literal["anchors", "bounds"] = "anchors"

    def choose(self, ru: RUMap) -> Choice:
        rows, speech = self._rows(ru)
        ends = self._ends(ru, rows)
        rows = rows.filter(pl.col("method") != IDENTITY)

        def distance(table: pl.DataFrame) -> Array:
            axes = zip(("risk", "utility"), ends, (self.weight, 1 - self.weight), strict=True)
            parts = [w * ((table[axis].to_numpy() - best) / (worst - best)) ** 2 for axis, (best, worst), w in axes]
            total: Array = np.sqrt(parts[0] + parts[1])
            return total

        def why(row: dict[str, Any]) -> str:
            return f"with its {speech} it is the nearest of {len(rows):,} to the ideal point, by {self.scale}."

        values = distance(rows)
        everything = lambda draws: np.ones(len(draws), dtype=bool)
        return self._pick(ru, rows, values, np.isfinite(values), why, _nothing_made, everything, distance)

    def _ends(self, ru: RUMap, rows: pl.DataFrame) -> list[tuple[float, float]]:
        """(best, worst) of each axis."""
        if self.scale == "anchors":
            whole = rows.filter(pl.col("method") == IDENTITY)
            if ru.nothing is None or len(whole) == 0:
                raise PlanError("the ideal point needs both anchors; a measure has no value for releasing nothing.")
            ends = [(ru.nothing[0], whole["risk"][0]), (whole["utility"][0], ru.nothing[1])]
        else:
            ends = []
            for name, sign in ((ru.risk[0], ru.signs[0]), (ru.utility, ru.signs[1])):
                low, high = ru._fact(name, "low"), ru._fact(name, "high")
                ends.append((low, high) if sign > 0 else (high, low))
        if any(end is None or not math.isfinite(end) for pair in ends for end in pair) or any(a == b for a, b in ends):
            raise PlanError(
                f"the ideal point needs axes with two finite, different ends by {self.scale}; one has none."
            )
        return ends


def _nothing_made() -> str:
    return "Release nothing: no masked candidate could be made and scored."


def _name(row: dict[str, Any]) -> str:
    return f"{row['method']}, draw {row['replicate']} ({row['id']})" if "id" in row else str(row["method"])
