"""What all our rules share: which rows they compare, and how one becomes a candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from sdcmap.core.rule import Choice, RiskUtilityMap, Rule, named_limits
from sdcmap.core.value import Range, Share
from sdcmap.core.words import brief
from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Array

RUNNERS_UP = 3
ONLY_UNMASKED = (
    "Release nothing: only the original file itself passes, and no rule chooses it. Plan weaker methods; or name it for a "
    "release of its own, with a written reason."
)


NEXT = (
    "Next: drop or recode the columns that tell most (sdcmap look), release a sample or pool more records, state what only "
    "respondents know (known_by), or choose a profile with a contract."
)
FEW_LIMITS = 2  # that a reason lists


@dataclass(frozen=True)
class ByRelease(Rule):
    """What all our rules share: whether single releases or methods are compared.

    by : "release" compares single candidates; "mean" methods by their pooled risk; "quantile" methods by an upper
        quantile of their releases' risk (needs at least 1/(1 - quantile) replicates). Where a measure is an expectation,
        methods are compared by pooled values and the replicate is number 0, fixed beforehand: picking a draw by its own
        error would tell a reader of the rule where the truth is not.
    Where the map has limits by measure, only what is within every one of them is compared, by the same values. No rule
    chooses `Identity`, the original as it is.
    """

    by: Literal["release", "mean", "quantile"] = "release"
    quantile: Annotated[Share, Range(0.5, 1, "[)")] = 0.95

    def _is_expectation(self, ru: RiskUtilityMap) -> bool:
        """Whether a number that the rule reads is a function of an expectation."""
        return ru.is_expectation

    def compares_releases(self, ru: RiskUtilityMap) -> bool:
        """Whether single candidates are compared on this map, and not methods."""
        return self.by == "release" and not self._is_expectation(ru)

    def _describe(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        """The numbers of a runner-up; a utility that is better when lower is called a loss."""
        return f"risk {row['risk']:.4g}, {'loss' if ru.signs[1] > 0 else 'utility'} {row['utility']:.4g}"

    def _rows(self, ru: RiskUtilityMap) -> tuple[pl.DataFrame, str]:
        """The rows to compare (method, risk, utility, ...) and how to speak of their risk."""
        if self.compares_releases(ru):
            return ru.points.filter("compared"), "risk"
        means = ru.means
        if self.by != "quantile":
            return means, "mean risk" if not self._is_expectation(ru) else "risk (pooled over replicates)"
        needed = math.ceil(round(1 / (1 - self.quantile), 9))
        short = means.filter(~pl.col("anchor") & (pl.col("count") > 1) & (pl.col("count") < needed))
        if len(short) or means["count"].max() == 1:
            raise PlanError(
                f"the {self.quantile:g} quantile of risk needs at least {needed} replicates of each method."
            )
        upper = ru.points.group_by("method").agg(pl.col("risk").quantile(self.quantile, "higher").alias("risk"))
        return means.drop("risk").join(upper, on="method", how="left"), f"{self.quantile:g} quantile of risk"

    def _shares(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        """How much of its limits each row uses up, at its worst; NaN where it lacks a value."""
        return ru.limit_shares(rows, self.quantile if self.by == "quantile" else None)

    def _order(self, ru: RiskUtilityMap, rows: pl.DataFrame, cost: Array) -> Array:
        """The rows by their cost, the least first; of equals the one with less risk, then by the method's name."""
        return np.lexsort((rows["method"].to_numpy(), ru.signs[0] * rows["risk"].to_numpy(), cost))

    def _pick(
        self, ru: RiskUtilityMap, rows: pl.DataFrame, cost: Array, passing: Array,
        why: Callable[[dict[str, Any], int], str], miss: Callable[[], str], fits: Callable[[pl.DataFrame], Array],
        own_cost: Callable[[pl.DataFrame], Array],
    ) -> Choice:  # fmt: skip
        """The passing row of least cost that is within every limit, brought down to one concrete candidate; never the
        original: to release it as it is is a person's own decision."""
        is_expectation = self._is_expectation(ru)
        order = self._order(ru, rows, cost)
        masked = ~rows["anchor"].to_numpy()
        within = passing & (self._shares(ru, rows) <= 1)
        order = order[(within & masked)[order]]
        if len(order) == 0:
            if within.any():
                reason = ONLY_UNMASKED
            else:
                asked = pl.Series(passing & masked)
                reason = self._over_a_limit(ru, rows.filter(asked)) if asked.any() else miss()
            return Choice(None, "", None, None, None, self, reason)
        row = rows.row(int(order[0]), named=True)
        draws = ru.points.filter(pl.col("compared"), pl.col("method") == row["method"])
        if "id" in row:
            chosen = row
        elif is_expectation:
            chosen = draws.filter(pl.col("replicate") == draws["replicate"].min()).row(0, named=True)
        else:
            own = np.where(fits(draws) & (ru.limit_shares(draws) <= 1), own_cost(draws), np.inf)
            chosen = draws.row(int(np.argmin(own)), named=True)
        named = rows[order[1 : RUNNERS_UP + 1]].iter_rows(named=True)
        runners = tuple(f"{name_of(ru, r)}: {self._describe(ru, r)}" for r in named)
        searched = 1 if is_expectation else len(draws)
        name = name_of(ru, chosen)
        reason = f"Release {name}: {why(row, len(order))}"
        if named_limits(ru.limits):
            reason += self._within_limits(ru, rows[[int(order[0])]])
        if searched > 1:
            reason += f" {searched} draws of this method were searched."
        elif is_expectation and len(draws) > 1:
            reason += f" The draw was fixed beforehand as number {chosen['replicate'] + 1}."
        return Choice(
            chosen["id"], chosen["method"], chosen["replicate"], chosen["risk"], chosen["utility"], self, reason,
            runners, searched, name=name,
        )  # fmt: skip

    def _over_a_limit(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> str:
        """Why nothing is left of the rows that pass the rule."""
        shares = self._shares(ru, rows)
        limits = named_limits(ru.limits)
        named = ", ".join(_limit_in_words(ru, name) for name in limits)
        said = f": {named}" if len(limits) <= FEW_LIMITS else " with its error"
        reason = f"Release nothing: of {len(rows):,} that pass the rule none is within every limit{said}"
        if np.isnan(shares).all():
            return f"{reason}. Each lacks a value that is limited. {NEXT}"
        place = int(np.nanargmin(shares))
        miss = f"The nearest miss is {name_of(ru, rows.row(place, named=True))} with {shares[place]:.4g} times a limit"
        return f"{reason}. {miss}{self._over(ru, rows[[place]])}. {NEXT}"

    def _within_limits(self, ru: RiskUtilityMap, row: pl.DataFrame) -> str:
        """That every limit holds, few of them by name; of many the one that is nearest."""
        limits = named_limits(ru.limits)
        if len(limits) <= FEW_LIMITS:
            return f" All of these are within every limit: {', '.join(_limit_in_words(ru, name) for name in limits)}."
        return f" Nearest to its limit is {self._worst(ru, row)}."

    def _over(self, ru: RiskUtilityMap, row: pl.DataFrame) -> str:
        """Which limit the nearest miss is over, where there are many."""
        worst = self._worst(ru, row)
        return f" ({worst})" if worst else ""

    def _worst(self, ru: RiskUtilityMap, row: pl.DataFrame) -> str:
        """Which limit one row uses up most, where there are many."""
        uses = {name: float(use[0]) for name, use in self._uses(ru, row).items()}
        if len(uses) <= FEW_LIMITS:
            return ""
        worst = max(uses, key=lambda name: np.nan_to_num(uses[name], nan=np.inf))
        limit = named_limits(ru.limits)[worst]
        return f"{measure_words(ru, worst)}, {uses[worst] * limit:.3g} with its error, at most {limit:g}"

    def _uses(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Mapping[str, Array]:
        return ru.limit_uses(rows, self.quantile if self.by == "quantile" else None)


def _limit_in_words(ru: RiskUtilityMap, name: str) -> str:
    higher = name in ru.scores.values and ru.scores.values[name].direction == "higher"
    return f"{measure_words(ru, name)} at {'least' if higher else 'most'} {named_limits(ru.limits)[name]:g}"


def measure_words(ru: RiskUtilityMap, name: str) -> str:
    """A measure as a sentence calls it."""
    return ru.scores.values[name].words if name in ru.scores.values else brief(name)


def name_of(ru: RiskUtilityMap, row: dict[str, Any]) -> str:
    """What to call a row of a map: a candidate, or a method."""
    return ru.scores.name_of(row["method"], row.get("replicate"))
