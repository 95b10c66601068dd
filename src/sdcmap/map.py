"""The R-U map: scores on a risk and a utility axis, with anchors, bands and the frontier."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar, Unpack

import numpy as np
import polars as pl

from sdcmap.core import Measure, Microdata, PlanError, Undefined
from sdcmap.core.audience import RECORD_SHARES, TARGET_SHARE
from sdcmap.core.catalog import draw_chart
from sdcmap.core.chart import Chart
from sdcmap.core.formatting import MAX_NAMES_IN_PHRASE, name_axis
from sdcmap.core.limit import Limit, Verdict, as_share, axis_scales
from sdcmap.core.map_options import MapOptions
from sdcmap.core.readable_units import SHOWN_LEVEL, describe_interval, describe_pooled
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.core.rule import AxisValue, Choice, LimitColumn, Rule
from sdcmap.data import notebook_html
from sdcmap.data.readable import Readable
from sdcmap.kernels.decision.pareto import is_undominated, linear_optima
from sdcmap.kernels.statistics.precision import wilson_interval
from sdcmap.study.curve_table import trace_curves
from sdcmap.study.limits_on_scores import limits_on_scores
from sdcmap.study.pair_table import read_pairs
from sdcmap.study.parameter_families import MIN_MEMBERS, Family, check_families, find_families
from sdcmap.study.plan import Plan
from sdcmap.study.scores import MIN_BAND_REPLICATES, Scores
from sdcmap.study.subsamples import discarded_shares, make_curve, subsamples

SCORE_NAMES = {"S0": "A-score", "S1": "D-score", "S2": "S-score"}  # Yancey, Winkler, Creecy (2002), section 3.5
Number = TypeVar("Number", float, pl.Expr)


@dataclass(frozen=True, init=False)
class RUMap:
    """Scores on a risk and a utility axis.

    Parameters
    ----------
    scores : the scores of a sweep, or a table made elsewhere.
    risk : one risk measure, or several, of which the worst counts; by value or by name.
    utility : one utility measure; a loss (better when lower) or a gain.
    limits : {measure: limit} for any measures, risk or utility, or a list with one limit for each risk measure on the axis.
        Rules choose only candidates that meet every tested limit. Several risk measures with a limit each are shown as the
        worst value/limit; without limits they must have the same unit. The limit of a measure that compares records is not
        tested on a fully synthetic file: there the other limits decide.
    policy : the margins with which a candidate must meet a limit.
    compares_unmasked : leave candidates that are worse than the unmasked file off the frontier; no rule chooses them.

    Axes are absolute: adding a candidate never moves another. The anchors, releasing everything (`Identity`) and
    releasing nothing, are drawn but are not part of the frontier. A candidate with more risk and less utility than the
    unmasked file, beyond the error of the estimates, is `worse`: worse than not masking.
    """

    scores: Scores
    risk: tuple[str, ...]
    utility: str
    limits: tuple[Limit, ...]
    policy: ReleasePolicy
    compares_unmasked: bool

    def __init__(
        self, scores: Scores, risk: str | Measure | Iterable[str | Measure], utility: str | Measure,
        limits: Iterable[float | Limit] | Mapping[Any, float] = (), policy: ReleasePolicy = DEFAULT_POLICY,
        *, compares_unmasked: bool = True,
    ) -> None:  # fmt: skip
        names = tuple(map(str, [risk] if isinstance(risk, str | Measure) else risk))
        vars(self).update(
            scores=scores, risk=names, utility=str(utility), policy=policy, compares_unmasked=compares_unmasked
        )
        # Shares of the attacker's targets and of all records can be compared: both are shares of people.
        units = {self._fact(name, "unit") for name in self.risk}
        units = {RECORD_SHARES[0] if unit == TARGET_SHARE else unit for unit in units}
        self._fact(self.utility, "unit")
        if not self.risk:
            raise PlanError("a map needs at least one risk measure.")
        vars(self).update(limits=limits_on_scores(scores, names, limits))
        if len(units) > 1 and not self.scales:
            raise PlanError("risk measures of different units can share an axis only if each has a limit.")

    @classmethod
    def of_plan(
        cls, scores: Scores, plan: Plan, risk: Sequence[str] = (), utility: str = "",
        limits: Mapping[str, Any] | None = None,
    ) -> RUMap:  # fmt: skip
        """Return the map of a plan's scores on these axes and with these limits by measure, by default the plan's."""
        axes = tuple(risk) or plan.risk, utility or plan.utility
        if not all(axes):
            raise PlanError("a map needs a risk measure and a utility measure in the plan.")
        return cls(scores, *axes, plan.limits if limits is None else limits, plan.policy)

    @classmethod
    def of_pairs(
        cls, table: Readable, *, name: str = "name", risk: str | Sequence[str] = (), utility: str = "", loss: bool = False,
        original: str = "original",
    ) -> RUMap:  # fmt: skip
        """Return the map of a table of risks and utilities made elsewhere, one row for each release.

        Parameters
        ----------
        table : a file, or a frame with a column of names, of risks and of utilities. Rows with the same name are draws of
            the same method.
        name, risk, utility : the columns; of several risks the worst counts, and curves show each. By default `name`,
            `risk`, and `utility`, or else `loss` or `distortion`.
        loss : whether the utility column is a loss, so that lower is better; `loss` and `distortion` always are.
        original : the name of the row that is the unmasked file, if there is one.

        Further columns, such as the rate of a swap, can be shown by `draw(color="rate")`, `facet` and `curve`.

        >>> pairs = {"name": ["A", "B", "C"], "risk": [0.1, 0.3, 0.3], "utility": [0.5, 0.9, 0.6]}
        >>> RUMap.of_pairs(pairs)
        RUMap(risk against utility: 3 points, 2 on the frontier)
        """
        risks = (risk,) if isinstance(risk, str) else risk
        scores, columns = read_pairs(table, name, risks, utility, loss, original)
        return cls(scores, columns.risk, columns.utility)

    def __repr__(self) -> str:
        points, undominated_points = len(self.points), len(self.frontier)
        brief = self.scores.brief_of
        axes = f"{name_axis([*map(brief, self.risk)])} against {brief(self.utility)}"
        return f"RUMap({axes}: {points:,} points, {undominated_points:,} on the frontier)"

    def _repr_html_(self) -> str:
        """Return the map as a picture, with its frontier by method, for a notebook."""
        picture = base64.b64encode(self.draw().png(scale=1.5)).decode()
        rows = self.means.filter("frontier").sort("risk").select("method", "count", "risk", "utility", "membership")
        cells = [(self.scores.name_of(method), *rest) for method, *rest in rows.iter_rows()]
        header = ["on the frontier", "draws", "risk", "utility", "share of draws on it"]
        return f'<img alt="R-U map" src="data:image/png;base64,{picture}">' + notebook_html.table(
            header, cells, "methods"
        )

    # ---- axes -------------------------------------------------------------------------------------------------
    @cached_property
    def scales(self) -> tuple[float, ...]:
        """What each risk measure on the axis is divided by; empty where the axis is in its own unit."""
        return axis_scales(self.risk, self.limits_by_name)

    @property
    def limits_by_name(self) -> dict[str, float]:
        """The limit of each limited measure, by the measure's name."""
        return {limit.measure.text: limit.value for limit in self.limits}

    def _fact(self, measure: str, column: str) -> Any:
        return self.scores.measure[column][self.scores.index_of(measure)]

    def axis_of(self, measure: str) -> str:
        """Return "risk" or "utility": what a measure measures, whichever axis shows it."""
        return str(self._fact(measure, "axis"))

    def end(self, measure: str, name: str) -> float | None:
        """Return a number that a measure declares: "low" or "high" of its bounds, or "baseline_value"."""
        value: float | None = self._fact(measure, name)
        return value

    @cached_property
    def signs(self) -> tuple[float, float]:
        """+1 where lower is better, -1 where higher is, for (risk, utility)."""
        directions = {self._fact(name, "direction") for name in self.risk}
        if len(directions) > 1:
            raise PlanError("risk measures on one axis must all be better in the same direction.")
        risk, utility = directions.pop(), self._fact(self.utility, "direction")
        return (1.0 if risk == "lower" else -1.0), (1.0 if utility == "lower" else -1.0)

    @property
    def risk_unit(self) -> str:
        """The unit of the risk axis."""
        return "share of its limit" if self.scales else str(self._fact(self.risk[0], "unit"))

    @property
    def risk_name(self) -> str:
        """The name of the risk axis, without its unit."""
        titles = [*map(self.scores.short_title_of, self.risk)]
        several = f"worst of {', '.join(titles) if len(titles) <= MAX_NAMES_IN_PHRASE else f'{len(titles)} measures'}"
        return titles[0] if len(titles) == 1 else several

    @cached_property
    def labels(self) -> tuple[str, str]:
        """The labels of the risk and the utility axis, with units."""
        across = self.scores.short_title_of(self.utility), str(self._fact(self.utility, "unit"))
        named = (
            f"{self.risk_name} ({self.risk_unit})" if self.risk_unit else self.risk_name
        )  # a table made elsewhere states no units
        return named, f"{across[0]} ({across[1]})" if across[1] else across[0]

    @cached_property
    def is_expectation(self) -> bool:
        """Whether an axis is a function of an expectation, so that methods, not single releases, are compared."""
        known, names = self.scores.values, (*self.risk, self.utility, *self.limits_by_name)
        return any(known[name].expectation for name in names if name in known)

    @cached_property
    def nothing(self) -> tuple[float, float] | None:
        """Risk and utility of releasing nothing; None where a measure has no value for it."""
        values = [self._fact(name, "baseline_value") for name in (*self.risk, self.utility)]
        if any(value is None for value in values):
            return None
        return self._worst(values[:-1]), float(values[-1])

    def _worst(self, values: Sequence[Any]) -> Any:
        scaled = self._shares(values) if self.scales else list(values)
        return np.maximum.reduce(scaled) if self.signs[0] > 0 else np.minimum.reduce(scaled)

    def _shares(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of the risk measures on the axis as shares of their limits, which may be negative."""
        return [as_share(v, limit) for v, limit in zip(values, self.scales, strict=True)]

    # ---- points -----------------------------------------------------------------------------------------------
    @cached_property
    def points(self) -> pl.DataFrame:
        """One row for each candidate: id, kind, method, replicate, risk, utility, and the columns that follow.

        `risk_end` is the risk with the margins that a release needs: a threshold is compared with it. `anchor`, `worse` and
        `frontier` are flags.
        Every method takes part with the same number of draws, since the best of more draws is better by luck. Later draws
        are not `compared`.
        """
        table = self.scores.column(self.utility).select("id", "kind", "method", "replicate", utility="value")
        for i, name in enumerate(self.risk):
            part = self._on_axis(name, self.scores.column(name), "id").select("id", pl.col("value").alias(f"risk {i}"))
            table = table.join(part, on="id", how="inner", maintain_order="left")
        # Rules and charts read one risk: the worst of the measures on the axis.
        worst = self._worst([table[f"risk {i}"].to_numpy() for i in range(len(self.risk))])
        table = table.select("id", "kind", "method", "replicate", pl.Series("risk", worst, dtype=pl.Float64), "utility")
        table = table.with_columns(self._risk_ends(table["id"], "id"))
        return self._with_frontier(table.with_columns(compared=pl.col("replicate") < self._common_replicates), "id")

    @cached_property
    def means(self) -> pl.DataFrame:
        """One row for each method: pooled risk and utility, count of replicates, anchor, worse, frontier and membership.

        Risk and utility have a standard error (se) and, from 40 replicates on, the 2.5 and 97.5 % quantiles of single
        releases (low, high). `risk_end` is the risk with the margins that a release needs: a threshold is compared with
        it. The frontier membership has a confidence interval.
        """
        many, band = pl.len() >= MIN_BAND_REPLICATES, product(("risk", "utility"), ((0.025, "low"), (0.975, "high")))
        bands = [pl.when(many).then(pl.col(a).quantile(q, "linear")).alias(f"{a}_{end}") for a, (q, end) in band]
        table = self.points.group_by("method", maintain_order=True).agg(pl.len().alias("count"), *bands)
        for i, name in enumerate(self.risk):
            part = self._on_axis(name, self.scores.pooled(name), "method")
            part = part.select("method", pl.col("value").alias(f"v{i}"), pl.col("se").alias(f"s{i}"))
            table = table.join(part, on="method", how="left", maintain_order="left")
        part = self.scores.pooled(self.utility).select("method", utility="value", utility_se="se")
        table = table.join(part, on="method", how="left", maintain_order="left")
        values = [table[f"v{i}"].to_numpy() for i in range(len(self.risk))]
        shown = np.array(self._shares(values) if self.scales else values)
        # The standard error of the worst risk is that of the measure that is worst; a share v/limit or limit/v has the
        # same relative error as v.
        which = np.argmax(shown, axis=0)
        errors = np.array([table[f"s{i}"].cast(pl.Float64).to_numpy() for i in range(len(self.risk))])
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.abs(shown / np.array(values))
        scales = np.array(self.scales or [1.0] * len(values))[:, np.newaxis]
        factors = np.where(np.array(values) == 0, 1 / np.abs(scales), factors)
        error = (errors * factors)[which, np.arange(len(which))]
        risk = pl.Series("risk", self._worst(values), dtype=pl.Float64)
        table = table.with_columns(risk, pl.Series("risk_se", error, nan_to_null=True))
        table = table.with_columns(self._risk_ends(table["method"], "method"))
        table = self._with_frontier(table, "method").join(
            self.membership, on="method", how="left", maintain_order="left"
        )
        ends = [f"{axis}_{end}" for axis in ("risk", "utility") for end in ("se", "low", "high")]
        membership = ["membership", "membership_low", "membership_high"]
        flags = "anchor", "worse", "frontier"
        return table.select("method", "count", "risk", "utility", *ends, "risk_end", *flags, *membership)

    def families(self, parameters: str | Sequence[str] = (), least: int = MIN_MEMBERS) -> tuple[Family, ...]:
        """Return the families of methods on this map that differ in one number only.

        parameters : the numbers that may differ, by default any. least : methods that a family must have.
        """
        names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
        known = self.scores.parameters
        masked = self.points.filter(~pl.col("anchor"))["method"].unique(maintain_order=True)
        methods = [known[method] for method in masked if method in known]
        families = find_families(methods, names, least)
        check_families(families, methods, names)
        return families

    def curves(self, parameters: str | Sequence[str] = ()) -> pl.DataFrame:
        """Return the curve of (risk, utility) of each family of methods as its parameter grows, one for each risk measure.

        A curve is a family and a measure of the risk axis. Its rows are pooled values in the order of the parameter, with
        standard errors (se). The risk is a share of its limit where the axis shows such shares. Duncan et al. (2001),
        section 2: an R-U map is this curve, for each state of the attacker's knowledge.
        """
        scales = dict(zip(self.risk, self.scales or [1.0] * len(self.risk), strict=True))
        return trace_curves(self.scores, self.families(parameters), scales, self.utility)

    def _on_axis(self, measure: str, table: pl.DataFrame, key: str) -> pl.DataFrame:
        """Return one measure of candidates or methods, with a value for fully synthetic files where that is possible.

        Where the axis shows shares of limits, a measure that compares records uses up no share for a fully synthetic file,
        provided that another measure on the axis applies to the file. A spared measure uses up the most that it can.
        """
        if not self.scales:
            return table
        measured = pl.concat([self.scores.column(name).select(key) for name in self.risk])[key].unique()
        synthetic = self.scores.synthetic_candidates(measure).unique(key).filter(pl.col(key).is_in(measured.implode()))
        limit = dict(zip(self.risk, self.scales, strict=True))[measure]
        unused = np.inf if self.signs[0] < 0 else 0.0 if limit > 0 else -np.inf  # each is 0 as a share of its limit
        rows = synthetic.select(key, value=pl.lit(unused), se=pl.lit(None, dtype=pl.Float64))
        # a spared measure counts with its upper bound, which is not above the share that another measure uses up
        spared = self.scores.spared_candidates(measure).unique(key).join(table, on=key, how="anti")
        bound = spared.select(key, value=pl.lit(self.end(measure, "high")), se=pl.lit(None, dtype=pl.Float64))
        return pl.concat([table.select(key, "value", "se"), rows, bound])

    @cached_property
    def _common_replicates(self) -> int:
        """How many replicates every random method has, feasible or not."""
        counts = self.scores.candidate.group_by("method").len()["len"].to_list()
        return min((count for count in counts if count > 1), default=1)

    def _with_frontier(self, table: pl.DataFrame, key: str) -> pl.DataFrame:
        kinds = self.scores.kinds
        anchor = np.array([kinds[method] == "identity" for method in table["method"]], dtype=bool)
        worse = self._is_worse_than_unmasked(table[key], anchor, key)
        if key == "method":
            worse |= table["method"].is_in(self._hopeless_methods.implode()).to_numpy()
        competes = ~anchor & ~worse & (table["compared"].to_numpy() if "compared" in table.columns else True)
        risk, loss = self.losses(table)
        frontier = np.zeros(len(table), dtype=bool)
        frontier[competes] = is_undominated(risk[competes], loss[competes])
        flags = {"anchor": anchor, "worse": worse, "frontier": frontier}
        return table.with_columns(pl.Series(name, values) for name, values in flags.items())

    # ---- the unmasked file ------------------------------------------------------------------------------------
    def _is_worse_than_unmasked(self, rows: pl.Series, anchor: np.ndarray[Any, Any], key: str) -> np.ndarray[Any, Any]:
        """Return which rows have more risk and less utility than the unmasked file.

        The difference must exceed the error of both estimates: the confidence intervals of the two must not overlap.
        """
        worse = np.zeros(len(rows), dtype=bool)
        if not self.compares_unmasked or not anchor.any():
            return worse
        (risk_low, risk_high), (loss_low, loss_high) = (
            self._interval_ends(names, rows, key, sign, self.policy.comparison_level)
            for names, sign in zip((self.risk, (self.utility,)), self.signs, strict=True)
        )
        worse |= (risk_low > risk_high[anchor][0]) & (loss_low > loss_high[anchor][0]) & ~anchor
        return worse

    @cached_property
    def _hopeless_methods(self) -> pl.Series:
        """The methods of which every draw is worse than not masking."""
        return self.points.group_by("method").agg(pl.col("worse").all()).filter("worse")["method"]

    def _interval_ends(
        self, names: Sequence[str], rows: pl.Series, key: str, sign: float, level: float
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return both ends of the confidence interval of each row on an axis, with a sign such that less is better.

        Of several measures the worst counts; one without a value for a fully synthetic file does not count.
        """
        scales = self.scales if len(names) > 1 and self.scales else (1.0,) * len(names)
        ends = []
        for name, scale in zip(names, scales, strict=True):
            intervals = self.scores.intervals(name, key, level)
            pairs = np.array([intervals.get(row, (np.nan, np.nan)) for row in rows], dtype=float).reshape(-1, 2)
            ends.append(np.sort(sign * as_share(pairs, scale), axis=1))
        low, high = np.fmax.reduce(ends).T
        return low, high

    def _risk_ends(self, rows: pl.Series, key: str) -> pl.Series:
        """Return the risk of each candidate ("id") or method that a threshold is compared with: with its margins."""
        sign = self.signs[0]
        columns = []
        for name, scale in zip(self.risk, self.scales or (1.0,) * len(self.risk), strict=True):
            limit, estimates = Limit(self.scores.measure_named(name), np.inf), self.scores.decisive_estimates(name, key)
            ends = {row: limit.eligibility_limit(estimate, self.policy) for row, estimate in estimates.items()}
            values = np.array([ends.get(row, np.nan) for row in rows], dtype=float)
            columns.append(sign * as_share(values, scale))
        return pl.Series("risk_end", sign * np.fmax.reduce(columns), dtype=pl.Float64)

    def losses(self, table: pl.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return risk and loss of each row, with signs such that less is better."""
        return self.signs[0] * table["risk"].to_numpy(), self.signs[1] * table["utility"].to_numpy()

    def compare_limits(self, rows: pl.DataFrame, quantile: float | None = None) -> tuple[LimitColumn, ...]:
        """Compare rows with every limit: candidates, or methods by pooled values or an upper quantile of their values."""
        return tuple(self.compare_limit(limit, rows, quantile) for limit in self.limits)

    def compare_limit(self, limit: Limit, rows: pl.DataFrame, quantile: float | None = None) -> LimitColumn:
        """Compare rows with one limit."""
        name = limit.measure.text
        key = "id" if "id" in rows.columns else "method"
        # A quantile over replicates needs no margin; other values, and expectations, are compared with theirs.
        if key == "method" and quantile is not None and not limit.measure.expectation:
            at = quantile if limit.is_upper else 1 - quantile
            how: Any = "higher" if limit.is_upper else "lower"
            table = self.scores.column(name).group_by("method").agg(pl.col("value").quantile(at, how))
            ends = dict(table.iter_rows())
        else:
            estimates = self.scores.decisive_estimates(name, key)
            ends = {row: limit.eligibility_limit(estimate, self.policy) for row, estimate in estimates.items()}
        bound = dict.fromkeys(self.scores.spared_candidates(name)[key], self.end(name, "high"))
        end = np.array([ends.get(row, bound.get(row, np.nan)) for row in rows[key]], dtype=float)
        applies = ~rows[key].is_in(self.scores.synthetic_candidates(name)[key].implode()).to_numpy() | ~np.isnan(end)
        return LimitColumn(limit, end, applies)

    def eligible(self, rows: pl.DataFrame, quantile: float | None = None) -> np.ndarray[Any, Any]:
        """Return whether each row meets every tested limit, and at least one limit was tested."""
        columns = self.compare_limits(rows, quantile)
        if not columns:
            return np.ones(len(rows), dtype=bool)
        is_met = np.logical_and.reduce([column.is_met | ~column.applies for column in columns])
        tested = np.logical_or.reduce([column.applies for column in columns])
        eligible: np.ndarray[Any, Any] = is_met & tested
        return eligible

    def worst_shares(self, rows: pl.DataFrame, quantile: float | None = None) -> np.ndarray[Any, Any]:
        """Return the largest share of a limit that each row uses up; NaN where a value is missing or nothing was tested."""
        columns = self.compare_limits(rows, quantile)
        if not columns:
            return np.zeros(len(rows))
        # A limit that does not apply uses up nothing, and never is the worst.
        used = np.stack([np.where(column.applies, np.maximum(column.share, 0), -np.inf) for column in columns])
        worst = np.max(used, axis=0)
        return np.where(np.isneginf(worst), np.nan, worst)

    @cached_property
    def unmasked_verdicts(self) -> tuple[Verdict, ...]:
        """The comparison of the unmasked file with every limit; empty where it was not scored."""
        unmasked = self.scores.unmasked_methods
        return self.method_verdicts(unmasked[0]) if unmasked else ()

    def values_of(self, candidate: str) -> tuple[AxisValue, AxisValue]:
        """Return risk and utility of a candidate; on an axis that is an expectation, those of its method, pooled."""
        row = self.points.row(by_predicate=pl.col("id") == candidate, named=True)
        known, values = self.scores.values, []
        for axis, names, sign in (("risk", self.risk, self.signs[0]), ("utility", (self.utility,), self.signs[1])):
            if not any(known[name].expectation for name in names if name in known):
                values.append(AxisValue(row[axis]))
                continue
            mean = self.means.row(by_predicate=pl.col("method") == row["method"], named=True)
            side = (1 + SHOWN_LEVEL) / 2
            pair = self._interval_ends(names, pl.Series([row["method"]]), "method", sign, side)
            low, high = sorted(sign * float(end[0]) for end in pair)
            values.append(AxisValue(mean[axis], (low, high) if low < high else None, mean["count"]))
        return values[0], values[1]

    def describe_axes(self, candidate: str) -> str:
        """Return the pooled risk and utility of a candidate's method in words, readably; "" where none is pooled."""
        axes = zip(("risk", "utility"), (self.risk, (self.utility,)), self.values_of(candidate), strict=True)
        return " ".join(
            f"Its {what} is {value.value:.3g}{self._limit_words(names)} "
            f"({self._describe_pooling(candidate, names, value)})."
            for what, names, value in axes
            if value.draws
        )

    def _limit_words(self, names: Sequence[str]) -> str:
        """Return what an axis of several measures is in: shares of their limits."""
        return " times its limit" if len(names) > 1 and self.scales else ""

    def _describe_pooling(self, candidate: str, names: Sequence[str], value: AxisValue) -> str:
        if len(names) > 1:
            pooling = f"the worst of {len(names)} measures; pooled over {value.draws} draws"
            return f"{pooling}; {describe_interval(value.interval)}".rstrip("; ")
        (name,), unmasked = names, self.points.filter("anchor")["utility"].to_list()
        pooled, own = self.scores.decisive_estimates(name, "id")[candidate], self.scores.estimates(name)[candidate]
        options = {"unmasked": unmasked[0] if unmasked else None, "release_value": own.value}
        return describe_pooled(self.scores.measure_named(name), pooled, value.draws, **options)

    def verdicts(self, candidate: str) -> tuple[Verdict, ...]:
        """Compare one candidate with every limit; where methods are compared, by the pooled values of its method."""
        if not self.is_expectation:
            outcomes = ((limit, self.scores.outcome(candidate, limit.measure.text)) for limit in self.limits)
            return tuple(limit.judge_candidate(outcome, self.policy) for limit, outcome in outcomes)
        (method,) = self.scores.candidate.filter(pl.col("id") == candidate)["method"]
        return self.method_verdicts(method)

    def method_verdicts(self, method: str) -> tuple[Verdict, ...]:
        """Compare a method with every limit, by its pooled values."""
        first = self.scores.candidate.filter(pl.col("method") == method)["id"][0]
        names = [limit.measure.text for limit in self.limits]
        pooled = [self.scores.pooled_estimates(name).get(method) or self.scores.outcome(first, name) for name in names]
        return tuple(
            limit.judge_candidate(outcome, self.policy) for limit, outcome in zip(self.limits, pooled, strict=True)
        )

    def among(self, *, points: pl.DataFrame | None = None, means: pl.DataFrame | None = None) -> RUMap:
        """Return the map with only these rows of `points`, or of `means`, so that a rule can choose among the rest."""
        options = {"compares_unmasked": self.compares_unmasked}
        left = RUMap(self.scores, self.risk, self.utility, self.limits, self.policy, **options)
        rows = {"points": self.points if points is None else points, "means": self.means if means is None else means}
        left.__dict__.update(rows)  # cached properties store their values here
        return left

    @cached_property
    def frontier(self) -> pl.DataFrame:
        """The undominated candidates, including ties, in order of risk."""
        return self.points.filter("frontier").sort("risk", "utility")

    @cached_property
    def membership(self) -> pl.DataFrame:
        """For each method, the share of its replicates that are undominated, with a 95 % Wilson interval.

        Replicate r of a method is compared with replicate r of all other methods. A method without randomness takes part in
        every replicate.
        """
        masked = self.points.filter(~pl.col("anchor"))
        once = self.scores.candidate.group_by("method").len().filter(pl.col("len") == 1)["method"].implode()
        constant = masked.filter(pl.col("method").is_in(once))
        varying = masked.filter(~pl.col("method").is_in(once))
        # Count for each replicate number which methods are on its frontier.
        replicates = sorted(varying["replicate"].unique()) or [0]
        hits = dict.fromkeys(masked["method"].unique(), 0)
        for replicate in replicates:
            table = pl.concat([varying.filter(pl.col("replicate") == replicate), constant])
            competing = table.filter(~pl.col("worse"))
            for method in competing["method"].filter(pl.Series(is_undominated(*self.losses(competing)))):
                hits[method] += 1
        shares = {method: hit / len(replicates) for method, hit in hits.items()}
        rows = [(method, share, *wilson_interval(share, len(replicates))) for method, share in shares.items()]
        names = ("membership", "membership_low", "membership_high")
        return pl.DataFrame(rows, schema={"method": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")

    # ---- summary scores ---------------------------------------------------------------------------------------
    def overall(self, *, by: str = "mean") -> pl.DataFrame:
        """Return the overall score 50 (loss + risk) of each method, best first; with `by="release"`, of each candidate.

        With a re-identified share as risk, it is the A-score where the utility is S0, the D-score for S1 and the S-score
        for S2, and the column has that name. Risk must be a share, and utility a loss.
        """
        low, high = (self._fact(self.risk[0], end) for end in ("low", "high"))
        if self.signs != (1.0, 1.0) or self.scales or (low, high) != (0.0, 1.0):
            raise PlanError("an overall score adds a loss (better when lower) to a risk that is a share from 0 to 1.")
        table = self.means if by == "mean" else self.points
        measure = self.scores.values.get(self.utility)
        name = SCORE_NAMES.get(self.utility if measure is None else type(measure).__name__, "score")
        columns = ["method", *(["count"] if by == "mean" else ["id", "replicate"]), "risk", "utility"]
        score = overall_score(pl.col("utility"), pl.col("risk")).alias(name)
        return table.select(*columns, score).sort(name, "method")

    def subsamples(self, data: Microdata, *, draws: int = 10, seed: int = 0, workers: int | None = 1) -> pl.DataFrame:
        """Return risk and utility of random subsamples of the original, by the share `thrown` away.

        They are a yardstick for `draw(subsamples=...)`: a release should cost less utility than throwing records away.
        Values are pooled over `draws` of each share. Raises Undefined where the utility measure does not change in one
        direction as records are left out.
        """
        measures = [self.scores.values[name] for name in (*self.risk, self.utility)]
        scores = subsamples(data, measures, draws=draws, seed=seed, workers=workers)
        if withheld := make_curve(scores, measures[-1], len(data)).withheld:
            raise Undefined(f"{self.utility} cannot be expressed as a share of records: {withheld}")
        means = RUMap(scores, self.risk, self.utility, self.limits, self.policy).means.filter(~pl.col("anchor"))
        thrown = means["method"].replace_strict(discarded_shares(scores), return_dtype=pl.Float64)
        return means.select(thrown.alias("thrown"), "risk", "utility").sort("thrown")

    # ---- choosing and drawing ---------------------------------------------------------------------------------
    def linear_path(self, *, by: str = "mean") -> pl.DataFrame:
        """Return the optima of risk + slope * loss for slopes from 0 to infinity: from, to, method, risk, utility.

        by : "mean" compares methods by pooled values, "release" single candidates. Anchors, and what is worse than not
        masking, are left out. The loss is the negative of a utility that is better when higher.
        """
        table = self.means if by == "mean" else self.points.filter("compared")
        table = table.filter(~pl.col("anchor"), ~pl.col("worse"))
        path = linear_optima(*self.losses(table))
        names = [*(["id", "replicate"] if by == "release" else []), "method", "risk", "utility"]
        rows = table[[index for _, _, index in path]].select(names)
        return pl.DataFrame({"from": [p[0] for p in path], "to": [p[1] for p in path]}).hstack(rows)

    def choose(self, rule: Rule) -> Choice:
        """Return the choice of a rule on this map."""
        choice = rule.choose(self)
        if choice.candidate is None:
            return choice
        return replace(choice, stream_id=self.scores.stream_id_of(choice.candidate))

    def draw(self, **options: Unpack[MapOptions]) -> Chart:
        """Return the map as a chart with `.save("map.html" | ".svg" | ".png")`; options as in `sdcmap.charts.draw_map`."""
        return draw_chart("draw_map", self, **options)

    def draw_all(self, *, mark: Choice | None = None) -> Chart:
        """Return a page of small maps, one for every risk measure and every utility measure of the scores.

        mark : a choice, which is marked in every map. `sdcmap.charts.draw_measure_pairs` has more options.
        """
        return draw_chart("draw_measure_pairs", self, mark=mark)


def overall_score(loss: Number, reidentified: Number) -> Number:
    """Return 50 (loss + share re-identified): 0 is best, 100 is worst.  YWC (2002), section 3.5

    >>> round(overall_score(0.036, 0.8861), 2)
    46.11
    """
    return (loss + reidentified) * 50
