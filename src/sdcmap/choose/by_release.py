"""What all our rules share: which rows they compare, and how one becomes a candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, PlanError, Range, Share
from sdcmap.core.limit import Limit, Verdict, count_verdicts
from sdcmap.core.rule import Choice, RiskUtilityMap, Rule, RunnerUp

RUNNERS_UP = 3
ONLY_UNMASKED = """Release nothing: only the original file itself passes, and no rule chooses it. Plan weaker methods; or \
name it for a release of its own, with a written reason."""
NEXT = """Next: drop or recode the columns that tell most (sdcmap look), release a sample or pool more records, state what \
only respondents know (known_by), or choose a profile with a contract."""
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

    levers: ClassVar[tuple[str, ...]] = ()  # fields that can be moved: choose/levers.py

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
            which = f"the {self.quantile:g} quantile of risk"
            raise PlanError(f"{which} needs at least {needed} replicates of each method.")
        upper = ru.points.group_by("method").agg(pl.col("risk").quantile(self.quantile, "higher").alias("risk"))
        return means.drop("risk").join(upper, on="method", how="left"), f"{self.quantile:g} quantile of risk"

    def _compared(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """The rows to compare."""
        return self._rows(ru)[0]

    @property
    def _limit_quantile(self) -> float | None:
        """The quantile at which methods are compared with limits; None: their pooled values."""
        return self.quantile if self.by == "quantile" else None

    def _order(self, ru: RiskUtilityMap, rows: pl.DataFrame, cost: Array) -> Array:
        """The rows by their cost, the least first; of equals the one with less risk, then by the method's name."""
        return np.lexsort((rows["method"].to_numpy(), ru.signs[0] * rows["risk"].to_numpy(), cost))

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        """What the rule makes small, of candidates or methods."""
        raise NotImplementedError

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        """Whether each row may be chosen, as far as the rule itself is concerned."""
        return np.isfinite(self._cost(ru, rows))

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        """Return the value of a lever, times the sign that comes with it, from which on each row passes; NaN: never."""
        raise NotImplementedError

    def _pick(
        self, ru: RiskUtilityMap, rows: pl.DataFrame, why: Callable[[dict[str, Any], int, int], str],
        miss: Callable[[], str],
    ) -> Choice:  # fmt: skip
        """The passing row of least cost that is within every limit, brought down to one concrete candidate; never the
        original: to release it as it is is a person's own decision."""
        is_expectation = self._is_expectation(ru)
        order, passing = self._order(ru, rows, self._cost(ru, rows)), self._passes(ru, rows)
        masked = ~rows["anchor"].to_numpy()
        within = passing & ru.eligible(rows, self._limit_quantile)
        order = order[(within & masked)[order]]
        if len(order) == 0:
            asked = rows.filter(pl.Series(passing & masked))
            reason = ONLY_UNMASKED if within.any() else self._over_a_limit(ru, asked) if len(asked) else miss()
            return Choice(None, "", None, None, None, self, reason)
        row = rows.row(int(order[0]), named=True)
        draws = ru.points.filter(pl.col("compared"), pl.col("method") == row["method"])
        if "id" in row:
            chosen = row
        elif is_expectation:
            chosen = draws.filter(pl.col("replicate") == draws["replicate"].min()).row(0, named=True)
        else:
            own = np.where(self._passes(ru, draws) & ru.eligible(draws), self._cost(ru, draws), np.inf)
            chosen = draws.row(int(np.argmin(own)), named=True)
        runners = tuple(self._runner_up(ru, other) for other in rows[order[1 : RUNNERS_UP + 1]].iter_rows(named=True))
        searched, name = 1 if is_expectation else len(draws), name_of(ru, chosen)
        by_method = is_expectation or "id" not in row
        verdicts = ru.method_verdicts(row["method"]) if by_method else ru.verdicts(chosen["id"])
        because = why(row, int((passing & masked).sum()), len(order))
        reason = f"Release {name}: {because}{_stand_to_limits(ru, verdicts)}"
        if searched > 1:
            reason += f" {searched} draws of this method were searched."
        elif is_expectation and len(draws) > 1:
            reason += f" The draw was fixed beforehand as number {chosen['replicate'] + 1}."
        risk, utility = chosen["risk"], chosen["utility"]
        facts = (chosen["id"], chosen["method"], chosen["replicate"], risk, utility, self, reason)
        return Choice(*facts, runners, verdicts, searched, name=name)

    def _runner_up(self, ru: RiskUtilityMap, row: dict[str, Any]) -> RunnerUp:
        return RunnerUp(row.get("id"), row["method"], row.get("replicate"), name_of(ru, row), self._describe(ru, row))

    def _over_a_limit(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> str:
        """Why nothing is left of the rows that pass the rule."""
        shares = ru.worst_shares(rows, self._limit_quantile)
        named = ", ".join(limit_in_words(ru, limit) for limit in ru.limits)
        said = f": {named}" if len(ru.limits) <= FEW_LIMITS else " with its error"
        reason = f"Release nothing: of {len(rows):,} that pass the rule none is within every limit{said}"
        if np.isnan(shares).all():
            return f"{reason}. Each lacks a value that is limited. {NEXT}"
        place = int(np.nanargmin(shares))
        miss = f"The nearest miss is {name_of(ru, rows.row(place, named=True))} with {shares[place]:.4g} times a limit"
        return f"{reason}. {miss}{self._over(ru, rows[[place]])}. {NEXT}"

    def _over(self, ru: RiskUtilityMap, row: pl.DataFrame) -> str:
        """Which limit the nearest miss exceeds most, where there are many."""
        columns = [c for c in ru.compare_limits(row, self._limit_quantile) if c.applies[0]]
        if len(ru.limits) <= FEW_LIMITS or not columns:
            return ""
        worst = max(columns, key=lambda column: float(np.nan_to_num(column.share[0], nan=np.inf)))
        return f" ({against_limit(ru, worst.limit, float(worst.end[0]))})"


def _stand_to_limits(ru: RiskUtilityMap, verdicts: Sequence[Verdict]) -> str:
    """How the chosen row stands to its limits: how many were tested and met, and which of many is nearest."""
    if not verdicts:
        return ""
    tested = [verdict for verdict in verdicts if verdict.end is not None]
    if len(verdicts) <= FEW_LIMITS:
        nearest = f": {', '.join(limit_in_words(ru, verdict.limit) for verdict in tested)}"
    else:
        worst = max(tested, key=lambda verdict: verdict.share)
        nearest = f"; nearest to its limit is {against_limit(ru, worst.limit, worst.end)}"
    return f" It {count_verdicts(verdicts)}{nearest}."


def limit_in_words(ru: RiskUtilityMap, limit: Limit) -> str:
    """A limit as a sentence states it."""
    return f"{measure_words(ru, limit.measure.text)} at {'most' if limit.is_upper else 'least'} {limit.value:g}"


def against_limit(ru: RiskUtilityMap, limit: Limit, end: float | None) -> str:
    """A confidence limit beside the limit it is compared with."""
    side = "most" if limit.is_upper else "least"
    return f"{measure_words(ru, limit.measure.text)}, {end:.3g} with its error, at {side} {limit.value:g}"


def measure_words(ru: RiskUtilityMap, name: str) -> str:
    """A measure as a sentence calls it."""
    return ru.scores.values[name].title if name in ru.scores.values else name


def name_of(ru: RiskUtilityMap, row: dict[str, Any]) -> str:
    """What to call a row of a map: a candidate, or a method."""
    return ru.scores.name_of(row["method"], row.get("replicate"))
