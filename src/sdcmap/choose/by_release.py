"""The base of all our rules: which rows they compare, how a row becomes a candidate, and the reason in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, PlanError, Range, Share
from sdcmap.core.limit import Limit, Verdict, count_verdicts, format_limit
from sdcmap.core.rule import Choice, RiskUtilityMap, Rule, RunnerUp

MAX_CANDIDATES_TRIED = 10  # candidates that a choice lists for a release; a policy usually has three tries
RUNNERS_UP = 3  # rows that a choice names beside the chosen one
ONLY_UNMASKED = """Release nothing: only the unmasked original meets the rule, and no rule chooses it. Plan weaker \
methods, or release the original by name, with a written reason."""
NO_MASKING_NEEDED = """The unmasked file meets every limit: no masking is needed under these limits. Releasing it \
remains the decision of a person, with a written reason."""
NEXT_STEPS = """Next steps: drop or recode the most identifying columns (sdcmap look), release a sample, pool more \
records, state which columns only respondents know (known_by), or choose a profile with a contract."""
MAX_LIMITS_LISTED = 2  # a reason lists this many limits; of more it names the one nearest to being exceeded


@dataclass(frozen=True)
class ByRelease(Rule):
    """The base of our rules: it compares single releases, or methods.

    Parameters
    ----------
    by : "release" compares single candidates; "mean" compares methods by their pooled risk; "quantile" compares methods by
        an upper quantile of their releases' risk (needs at least 1/(1 - quantile) replicates).
    quantile : the quantile for `by="quantile"`.

    Where a measure is an expectation, methods are compared by pooled values, and replicate 0 is taken, fixed in advance:
    choosing a draw by its own error would reveal to readers of the rule where the true value is not. Where the map has
    limits by measure, only rows that meet all of them are compared. No rule chooses `Identity`, the unmasked original.
    """

    levers: ClassVar[tuple[str, ...]] = ()  # fields whose effect on the choice is explored: choose/levers.py
    has_limit: ClassVar[bool] = False  # whether the rule states a limit itself

    by: Literal["release", "mean", "quantile"] = "release"
    quantile: Annotated[Share, Range(0.5, 1, "[)")] = 0.95

    def _is_expectation(self, ru: RiskUtilityMap) -> bool:
        """Return whether a number that the rule reads is a function of an expectation."""
        return ru.is_expectation

    def compares_releases(self, ru: RiskUtilityMap) -> bool:
        """Return whether single candidates, and not methods, are compared on this map."""
        return self.by == "release" and not self._is_expectation(ru)

    def _describe(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        """Return the numbers of a runner-up in words; a utility that is better when lower is called a loss."""
        return f"risk {row['risk']:.4g}, {'loss' if ru.signs[1] > 0 else 'utility'} {row['utility']:.4g}"

    def _rows(self, ru: RiskUtilityMap) -> tuple[pl.DataFrame, str]:
        """Return the rows to compare (method, risk, utility, ...) and what their risk is called in a sentence."""
        if self.compares_releases(ru):
            return ru.points.filter("compared"), "risk"
        means = ru.means
        if self._is_expectation(ru):
            return means, "pooled risk"
        if self.by != "quantile":
            return means, "mean risk"
        needed = math.ceil(round(1 / (1 - self.quantile), 9))
        short = means.filter(~pl.col("anchor") & (pl.col("count") > 1) & (pl.col("count") < needed))
        if len(short) or means["count"].max() == 1:
            raise PlanError(
                f"the {self.quantile:g} quantile of risk needs at least {needed} replicates of each method."
            )
        # The quantile of the risk of single releases replaces the pooled risk; utility stays pooled.
        upper = ru.points.group_by("method").agg(pl.col("risk").quantile(self.quantile, "higher").alias("risk"))
        table = means.drop("risk", "risk_end").join(upper, on="method", how="left").with_columns(risk_end="risk")
        return table, f"{self.quantile:g} quantile of risk"

    def _rows_to_compare(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """Return the rows to compare."""
        return self._rows(ru)[0]

    @property
    def _limit_quantile(self) -> float | None:
        """The quantile at which methods are compared with limits; None: their pooled values."""
        return self.quantile if self.by == "quantile" else None

    def _order(self, ru: RiskUtilityMap, rows: pl.DataFrame, cost: Array) -> Array:
        """Return the order of the rows: by cost, then by risk, then by the name of the method."""
        return np.lexsort((rows["method"].to_numpy(), ru.signs[0] * rows["risk"].to_numpy(), cost))

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        """Return what the rule minimizes, for each candidate or method."""
        raise NotImplementedError

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        """Return whether the rule itself allows each row; limits of the map are checked separately."""
        return np.isfinite(self._cost(ru, rows))

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        """Return the value of a lever, times the returned sign, from which on each row passes; NaN: never."""
        raise NotImplementedError

    def _pick(
        self, ru: RiskUtilityMap, rows: pl.DataFrame, why: Callable[[dict[str, Any], int, int], str],
        miss: Callable[[], str],
    ) -> Choice:  # fmt: skip
        """Return the choice: the allowed row of least cost that meets every limit, as one concrete candidate.

        The original is never chosen: only a person can decide to release it unmasked. Nor is a row that is worse than not
        masking.

        why : the reason for a row, given it and the numbers of rows that the rule allows and that also meet the limits.
        miss : why no row passes the rule.
        """
        is_expectation = self._is_expectation(ru)
        order, passing = self._order(ru, rows, self._cost(ru, rows)), self._passes(ru, rows)
        anchor, worse = rows["anchor"].to_numpy(), rows["worse"].to_numpy()
        masked = ~anchor & ~worse
        within = passing & ru.eligible(rows, self._limit_quantile)
        order = order[(within & masked)[order]]
        no_masking_needed = self._needs_no_masking(ru)
        unmasked = f" {NO_MASKING_NEEDED}" if no_masking_needed else ""
        if len(order) == 0:
            allowed = rows.filter(pl.Series(passing & masked))
            if (within & worse).any():
                reason = _only_worse(rows.filter(pl.Series(within & worse)))
            else:
                reason = ONLY_UNMASKED if within.any() else self._over_a_limit(ru, allowed) if len(allowed) else miss()
            return Choice(None, "", None, None, None, self, reason + unmasked, no_masking_needed=no_masking_needed)
        row = rows.row(int(order[0]), named=True)
        draws = ru.points.filter(pl.col("compared"), pl.col("method") == row["method"])
        chosen = self._draw_of(ru, row, draws)
        listed = self._candidates_in_order(ru, rows, order)
        runners = tuple(self._runner_up(ru, other) for other in rows[order[1 : RUNNERS_UP + 1]].iter_rows(named=True))
        searched, name = 1 if is_expectation else len(draws), name_of(ru, chosen)
        by_method = is_expectation or "id" not in row
        verdicts = ru.method_verdicts(row["method"]) if by_method else ru.verdicts(chosen["id"])
        sentences = why(row, int((passing & masked).sum()), len(order)), ru.describe_axes(chosen["id"])
        because = " ".join(sentence for sentence in sentences if sentence)
        synthetic = ru.scores.is_synthetic(row["method"])
        what = f"a fully synthetic file with {name}" if synthetic else name
        reason = f"Recommended: {what}. {because}{_summarize_limits(ru, verdicts)}"
        if synthetic and any(verdict.status == "not tested" for verdict in verdicts):
            reason += " Limits that compare records with people were not tested, because no row belongs to a person."
        if searched > 1:
            reason += f" {searched} random draws of this method were compared."
        elif is_expectation and len(draws) > 1:
            reason += f" The draw was fixed in advance: number {chosen['replicate'] + 1}."
        if worse.any():
            reason += f" {_count_worse(rows.filter('worse'))} worse than not masking and cannot be chosen."
        risk, utility = ru.values_of(chosen["id"])
        return Choice(
            chosen["id"], chosen["method"], chosen["replicate"], risk.value, utility.value, self, reason + unmasked,
            runners, verdicts, searched, name=name, risk_interval=risk.interval, utility_interval=utility.interval,
            no_masking_needed=no_masking_needed, candidates=listed,
        )  # fmt: skip

    def _draw_of(self, ru: RiskUtilityMap, row: dict[str, Any], draws: pl.DataFrame) -> dict[str, Any]:
        """Return the candidate that stands for a row: itself, or one of the draws of a method."""
        if "id" in row:
            return row
        if self._is_expectation(ru):
            return draws.filter(pl.col("replicate") == draws["replicate"].min()).row(0, named=True)
        # A method was chosen: take its draw of least cost that meets the rule and the limits by itself.
        sound = self._passes(ru, draws) & ru.eligible(draws) & ~draws["worse"].to_numpy()
        return draws.row(int(np.argmin(np.where(sound, self._cost(ru, draws), np.inf))), named=True)

    def _candidates_in_order(self, ru: RiskUtilityMap, rows: pl.DataFrame, order: Array) -> tuple[str, ...]:
        """Return the ids of the first eligible candidates, one of each method, because a release makes a new draw.

        A file made elsewhere cannot be drawn again, so it is listed only if it is the chosen one.
        """
        ranked = list(dict.fromkeys(rows["method"].gather(order).to_list()))
        methods = [name for name in ranked if name == ranked[0] or ru.scores.kinds[name] != "file"][
            :MAX_CANDIDATES_TRIED
        ]
        ordered, listed = rows[order], []
        for method in methods:
            row = ordered.filter(pl.col("method") == method).row(0, named=True)
            draws = ru.points.filter(pl.col("compared"), pl.col("method") == method)
            listed.append(str(self._draw_of(ru, row, draws)["id"]))
        return tuple(listed)

    def _needs_no_masking(self, ru: RiskUtilityMap) -> bool:
        """Return whether a limit is stated and the unmasked file meets the rule and every limit."""
        whole = self._rows_to_compare(ru).filter("anchor")
        if not len(whole) or not (ru.limits or self.has_limit):
            return False
        return bool((self._passes(ru, whole) & ru.eligible(whole, self._limit_quantile)).all())

    def _runner_up(self, ru: RiskUtilityMap, row: dict[str, Any]) -> RunnerUp:
        return RunnerUp(row.get("id"), row["method"], row.get("replicate"), name_of(ru, row), self._describe(ru, row))

    def _over_a_limit(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> str:
        """Return why none of the rows that pass the rule can be chosen."""
        shares = ru.worst_shares(rows, self._limit_quantile)
        count = (
            f"of the {len(rows):,} {row_noun(rows)} that pass the rule"
            if len(rows) > 1
            else "the one that passes the rule"
        )
        listed = ", ".join(describe_limit(ru, limit) for limit in ru.limits)
        limits = f"every limit ({listed})" if len(ru.limits) <= MAX_LIMITS_LISTED else f"all {len(ru.limits)} limits"
        none = f"none {count} meets {limits}" if len(rows) > 1 else f"{count} does not meet {limits}"
        if np.isnan(shares).all():
            return f"Release nothing: {none}. Each lacks the value of a limited measure. {NEXT_STEPS}"
        nearest = int(np.nanargmin(shares))
        miss = (
            f"The nearest miss is {name_of(ru, rows.row(nearest, named=True))} with {shares[nearest]:.4g} times a limit"
        )
        prior = _prior_above_limits(ru)
        return f"Release nothing: {none}. {miss}{self._over(ru, rows[[nearest]])}.{prior} {NEXT_STEPS}"

    def _over(self, ru: RiskUtilityMap, row: pl.DataFrame) -> str:
        """Return which limit the nearest miss exceeds most, where there are more than a reason lists."""
        columns = [c for c in ru.compare_limits(row, self._limit_quantile) if c.applies[0]]
        if len(ru.limits) <= MAX_LIMITS_LISTED or not columns:
            return ""
        worst = max(columns, key=lambda column: float(np.nan_to_num(column.share[0], nan=np.inf)))
        return f" ({compare_to_limit(ru, worst.limit, float(worst.end[0]))})"


def _count_worse(rows: pl.DataFrame) -> str:
    """Return how many rows are worse than not masking, with the verb."""
    return f"1 {row_noun(rows)[:-1]} is" if len(rows) == 1 else f"{len(rows):,} {row_noun(rows)} are"


def _only_worse(rows: pl.DataFrame) -> str:
    """Return why none of the rows that meet the rule and every limit can be chosen."""
    which = (
        f"the one {row_noun(rows)[:-1]} that meets"
        if len(rows) == 1
        else f"the {len(rows):,} {row_noun(rows)} that meet"
    )
    is_are, has_have = ("is", "it has") if len(rows) == 1 else ("are", "each has")
    return (
        f"Release nothing: {which} the rule and every limit {is_are} worse than not masking: {has_have} more risk and less "
        "utility than the unmasked file."
    )


def describe_prior_above(over: Sequence[str]) -> str:
    """Return a sentence that says that limits are exceeded before any release; over : which, with value and limit."""
    return (
        f"Before any release, {' and '.join(over)}: the prior is already above the limit, so even releasing nothing breaks "
        "it. Review the limit, or the prior that the plan states."
    )


def _prior_above_limits(ru: RiskUtilityMap) -> str:
    """Return a sentence on the limits of the map that are exceeded before any release; "" where there are none."""
    ends = [
        (limit, ru.end(limit.measure.text, "baseline_value")) for limit in ru.limits if limit.measure.axis == "risk"
    ]
    over = [
        f"{measure_title(ru, limit.measure.text)} is {end:.4g} (limit {limit.value:g})"
        for limit, end in ends
        if end is not None and not limit.admits(end)
    ]
    return f" {describe_prior_above(over)}" if over else ""


def _summarize_limits(ru: RiskUtilityMap, verdicts: Sequence[Verdict]) -> str:
    """Return how many limits were tested and met, and which of many is nearest to being exceeded."""
    if not verdicts:
        return ""
    tested = [verdict for verdict in verdicts if verdict.end is not None]
    if len(verdicts) <= MAX_LIMITS_LISTED:
        limits = f": {', '.join(describe_limit(ru, verdict.limit) for verdict in tested)}"
    else:
        worst = max(tested, key=lambda verdict: verdict.share)
        limits = f"; nearest to its limit: {compare_to_limit(ru, worst.limit, worst.end)}"
    return f" It {count_verdicts(verdicts)}{limits}."


def row_noun(rows: pl.DataFrame) -> str:
    """Return what the rows of a map are: candidates, or methods."""
    return "candidates" if "id" in rows.columns else "methods"


def describe_limit(ru: RiskUtilityMap, limit: Limit) -> str:
    """Return a limit as a sentence states it."""
    value = format_limit(limit.value, limit.measure)
    return f"{measure_title(ru, limit.measure.text)} at {'most' if limit.is_upper else 'least'} {value}"


def compare_to_limit(ru: RiskUtilityMap, limit: Limit, end: float | None) -> str:
    """Return a measure with the margins of a release beside the limit that it is compared with."""
    allowed = "at most" if limit.is_upper else "at least"
    title = measure_title(ru, limit.measure.text)
    return f"{title}, {end:.3g} with its margin, allowed {allowed} {format_limit(limit.value)}"


def measure_title(ru: RiskUtilityMap, name: str) -> str:
    """Return what a sentence calls a measure."""
    return ru.scores.values[name].title if name in ru.scores.values else name


def name_of(ru: RiskUtilityMap, row: dict[str, Any]) -> str:
    """Return the name of a row of a map: of a candidate, or of a method."""
    return ru.scores.name_of(row["method"], row.get("replicate"))
