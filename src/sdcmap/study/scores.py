"""Scores: the results of a sweep as three tables."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Measure, Method, PlanError, did_you_mean, join_names
from sdcmap.core.estimate import NO_DETAILS, DrawSpread, Estimate
from sdcmap.core.limit import Absent
from sdcmap.core.measure import degrees_of_freedom
from sdcmap.data import notebook_html
from sdcmap.study.candidate_names import name_draw
from sdcmap.study.parameter_families import MethodParameters
from sdcmap.study.plan import Plan

EMPTY: Mapping[tuple[str, str], Sequence[float]] = MappingProxyType({})
MIN_DRAWS_OF_SPREAD = 5  # draws of a method from which the spread of an exact value is known; a sweep makes as many
MIN_BAND_REPLICATES = 40  # a quantile q needs 1/(1 - q) replicates, and the band ends at the 97.5 % quantile


@dataclass(frozen=True)
class Scores:
    """Three tables of numbers, with the measures, methods and names behind them.

    Parameters
    ----------
    candidate : id, kind ("candidate", "identity" for the unmasked file, "file" for one made elsewhere, "fresh" for a
        redraw), method, replicate, status, reason, seconds, stream_id. A table made elsewhere may lack kind and stream_id.
    score : candidate, measure, value, se, details (see `Estimate.to_details`), status, reason. A table made elsewhere may
        lack details.
    measure : name, direction, low, high, unit, axis, baseline_value.
    values : measure text -> the measure, for pooling replicates.
    methods : method text -> the method.
    plan : the plan that was swept, with the seed of its study; None for a table made elsewhere.
    names : method text -> its name for people.
    columns : of a table made elsewhere, method text -> its further columns, such as the rate of a swap.
    further : texts of measure and method -> the values of further draws, which are no candidates (`further_draws`).
    """

    candidate: pl.DataFrame
    score: pl.DataFrame
    measure: pl.DataFrame
    values: Mapping[str, Measure] = field(default_factory=dict, repr=False)
    methods: Mapping[str, Method] = field(default_factory=dict, repr=False)
    plan: Plan | None = field(default=None, repr=False, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    further: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict, repr=False)
    _estimates: dict[str, Mapping[str, Estimate]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _pooled: dict[str, Mapping[str, Estimate]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _spread: dict[str, Mapping[str, DrawSpread]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _column: dict[str, pl.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_status: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def of_plan(
        plan: Plan, candidate: pl.DataFrame, score: pl.DataFrame, measure: pl.DataFrame,
        further: Mapping[tuple[str, str], Sequence[float]] = EMPTY,
    ) -> Scores:  # fmt: skip
        """Return the scores of a plan, with its measures, methods and names."""
        methods, values = {method.text: method for method in plan.all_methods}, {m.text: m for m in plan.measures}
        return Scores(candidate, score, measure, values, methods, plan, plan.method_names, further=further)

    def __post_init__(self) -> None:
        for table, lacking in (
            ("candidate", {"kind": "candidate", "stream_id": ""}),
            ("score", {"details": NO_DETAILS}),
        ):
            frame: pl.DataFrame = getattr(self, table)
            columns = [pl.lit(given).alias(name) for name, given in lacking.items() if name not in frame.columns]
            if columns:
                object.__setattr__(self, table, frame.with_columns(columns))

    def __repr__(self) -> str:
        names = join_names([self.brief_of(name) for name in self.measure["name"]])
        return f"Scores({len(self.candidate):,} candidates, {len(self._feasible):,} made; {names})"

    def _repr_html_(self) -> str:
        """Return each method with its draws and its pooled measures for a notebook."""
        pooled = {name: dict(self.pooled(name).select("method", "value").iter_rows()) for name in self.measure["name"]}
        draws = self._feasible.group_by("method", maintain_order=True).len().iter_rows()
        rows = [(self.name_of(method), count, *(of.get(method) for of in pooled.values())) for method, count in draws]
        columns = ["method", "draws", *map(self.brief_of, pooled)]
        return notebook_html.paragraph(repr(self)) + notebook_html.table(columns, rows, "methods")

    def column(self, measure: str) -> pl.DataFrame:
        """Return one measure of every feasible candidate: id, kind, method, replicate, value (may be inf), se, details."""
        if measure not in self._column:
            self.index_of(measure)
            # SQLite and JSON have no infinity, so it is stored as a status.
            value = pl.when(pl.col("status") == "infinite").then(math.inf).otherwise(pl.col("value")).alias("value")
            rows = self._rows_of(measure).select("candidate", value, "se", "details").drop_nulls("value")
            self._column[measure] = self._feasible.join(rows, left_on="id", right_on="candidate", maintain_order="left")
        return self._column[measure]

    def index_of(self, measure: str) -> int:
        """Return the position of a measure in the table, or raise PlanError."""
        names = self.measure["name"].to_list()
        if measure not in names:
            raise PlanError(f"no measure {measure!r} in these scores.{did_you_mean(measure, names)}")
        return names.index(measure)

    def _rows_of(self, measure: str) -> pl.DataFrame:
        """Return the rows of a measure in the score table."""
        return self._by_measure.get((measure,), self.score.clear())

    def synthetic_candidates(self, measure: str) -> pl.DataFrame:
        """Return the fully synthetic candidates, to which a measure that compares records does not apply."""
        return self._candidates_with(measure, "unpaired")

    def spared_candidates(self, measure: str) -> pl.DataFrame:
        """Return the candidates for which a measure was spared (see `Sparing`): its value is unknown."""
        return self._candidates_with(measure, "spared")

    def _candidates_with(self, measure: str, status: str) -> pl.DataFrame:
        """Return the candidates for which the row of a measure has this status."""
        if (measure, status) not in self._by_status:
            rows = self._rows_of(measure).filter(status=status)
            own = self._feasible.filter(pl.col("id").is_in(rows["candidate"].implode()))
            self._by_status[measure, status] = own.select("id", "method")
        return self._by_status[measure, status]

    def is_synthetic(self, method: str) -> bool:
        """Return whether the files of a method are fully synthetic, so that risks that compare records do not apply."""
        risks = self.measure.filter(axis="risk")["name"]
        return any(method in self.synthetic_candidates(name)["method"].to_list() for name in risks)

    def measure_named(self, name: str) -> Measure:
        """Return the measure of this name; for a table made elsewhere, a stand-in that has only its direction."""
        if name in self.values:
            return self.values[name]
        lower = self.measure["direction"][self.index_of(name)] == "lower"
        return LowerIsBetter(name) if lower else HigherIsBetter(name)

    def outcome(self, candidate: str, measure: str) -> Estimate | Absent:
        """Return the estimate of a measure for one candidate, or why there is none."""
        if candidate in self.estimates(measure):
            return self.estimates(measure)[candidate]
        rows = self._rows_of(measure).filter(pl.col("candidate") == candidate)
        if not len(rows):
            return Absent(applies=True, reason="it was not measured.")
        row = rows.row(0, named=True)
        return Absent(applies=row["status"] != "unpaired", reason=row["reason"])

    def estimates(self, measure: str) -> Mapping[str, Estimate]:
        """Return one measure of every candidate that has a value, by the candidate's id."""
        if measure not in self._estimates:
            table = self.column(measure)
            details = json.loads(f"[{','.join(table['details'])}]")  # one large document parses faster than many
            rows = zip(*(table[name].to_list() for name in ("id", "value", "se")), details, strict=True)
            self._estimates[measure] = {key: Estimate.from_details(*rest) for key, *rest in rows}
        return self._estimates[measure]

    def pooled_estimates(self, measure: str) -> Mapping[str, Estimate]:
        """Return one measure of every method, pooled over its draws, by the method's text."""
        if measure not in self._pooled:
            pool = self.values.get(measure, _MEAN_POOLING).pool_draws
            draws = self._draws(measure).items()
            self._pooled[measure] = {method: pool(own, is_random=self._is_random(method)) for method, own in draws}
        return self._pooled[measure]

    def decisive_estimates(self, measure: str, key: str) -> Mapping[str, Estimate]:
        """Return the estimate that decides about each candidate ("id") or method; of an expectation, that of the method."""
        pooled = self.pooled_estimates(measure)
        if measure not in self.values or not self.values[measure].expectation:
            spreads = self._spreads(measure)
            if key == "method":
                return {method: replace(one, spread=spreads.get(method)) for method, one in pooled.items()}
            rows = self.column(measure)["method"]
            return {
                row: replace(one, spread=spreads[method]) if method in spreads else one
                for (row, one), method in zip(self.estimates(measure).items(), rows, strict=True)
            }
        if key == "method":
            return pooled
        return {row: pooled[method] for row, method in self.column(measure).select("id", "method").iter_rows()}

    def _spreads(self, measure: str) -> Mapping[str, DrawSpread]:
        """Return how much a measure that is exact for one file differs between the draws of each random method."""
        if measure not in self._spread:
            spreads = {}
            for method, own in self._draws(measure).items():
                if self._is_random(method) and all(one.se is None and one.share is None for one in own):
                    values = [*(one.value for one in own), *self.further.get((measure, method), ())]
                    if len(values) >= MIN_DRAWS_OF_SPREAD and (spread := DrawSpread.of_values(values)):
                        spreads[method] = spread
            self._spread[measure] = spreads
        return self._spread[measure]

    def intervals(self, measure: str, key: str, level: float) -> dict[str, tuple[float, float]]:
        """Return the confidence interval of each candidate ("id") or method, of its decisive estimate."""
        estimates = self.decisive_estimates(measure, key)
        if key == "method":  # the standard error of a mean of few draws is itself uncertain
            counts = dict(self.pooled(measure).select("method", "count").iter_rows())
            estimates = {
                row: replace(e, df=degrees_of_freedom(counts[row])) if counts[row] > 1 else e
                for row, e in estimates.items()
            }
        return {
            row: (e.lower(level), e.upper(level)) if e.se or e.bounds or e.share else (e.value, e.value)
            for row, e in estimates.items()
        }

    def _is_random(self, method: str) -> bool:
        """Return whether draws of a method differ; a method that is not known here may be random."""
        return self.kinds[method] != "identity" and (method not in self.methods or self.methods[method].random)

    def _draws(self, measure: str) -> dict[str, list[Estimate]]:
        draws: defaultdict[str, list[Estimate]] = defaultdict(list)
        for method, estimate in zip(self.column(measure)["method"], self.estimates(measure).values(), strict=True):
            draws[method].append(estimate)
        return draws

    @cached_property
    def _feasible(self) -> pl.DataFrame:
        return self.candidate.filter(pl.col("status") == "ok").select("id", "kind", "method", "replicate")

    @cached_property
    def _by_measure(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.score.partition_by("measure", as_dict=True)

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Method text -> the kind of its rows."""
        return dict(self.candidate.select("method", "kind").iter_rows())

    def unmasked_value(self, measure: str) -> float | None:
        """Return a measure of the unmasked file; None where the file has no score."""
        rows = self.column(measure).drop_nulls("value").filter(pl.col("method").is_in(self.unmasked_methods))
        return next(iter(rows["value"]), None)

    @cached_property
    def unmasked_methods(self) -> list[str]:
        """The methods that release the unmasked file: one, or none where it was not scored."""
        return [method for method, kind in self.kinds.items() if kind == "identity"]

    @cached_property
    def parameters(self) -> Mapping[str, MethodParameters]:
        """Method text -> its parameters; of a table made elsewhere, its further columns."""
        stated = {text: MethodParameters.of_method(method) for text, method in self.methods.items()}
        return {text: MethodParameters(text, (), (own,)) for text, own in self.columns.items()} | stated

    @cached_property
    def _repeated_methods(self) -> frozenset[str]:
        """The methods with several draws, made or not yet made."""
        if self.plan is not None:
            return frozenset(m.text for m in self.plan.all_methods if self.plan.draws_of(m) > 1)
        return frozenset(self.candidate.group_by("method").len().filter(pl.col("len") > 1)["method"])

    def name_of(self, method: str, draw: int | None = None) -> str:
        """Return the name of a method, or of one draw where there are several; its text where it has no name."""
        return name_draw(self.names.get(method, method), draw if method in self._repeated_methods else None)

    def stream_id_of(self, candidate: str) -> str:
        """Return the id of a candidate's random stream, or "" where the table has none."""
        ids = self.candidate.filter(pl.col("id") == candidate)["stream_id"]
        return str(ids[0]) if len(ids) else ""

    def title_of(self, measure: str) -> str:
        """Return the title of a measure, or its text where the measure itself is unknown."""
        return self.values[measure].title if measure in self.values else measure

    def short_title_of(self, measure: str) -> str:
        """Return the label of a measure, or its title where another measure has the same label."""
        labels = {name: known.label for name, known in self.values.items()}
        is_unique = measure in labels and list(labels.values()).count(labels[measure]) == 1
        return labels[measure] if is_unique else self.title_of(measure)

    def brief_of(self, measure: str) -> str:
        """Return a measure as short code for a sentence, or its name where the measure itself is unknown."""
        return self.values[measure].brief if measure in self.values else measure

    def pooled(self, measure: str) -> pl.DataFrame:
        """Return one measure of each method: pooled value, standard error, 2.5 and 97.5 % of single releases, count."""
        pairs = zip(self.pooled_estimates(measure).values(), self._draws(measure).items(), strict=True)
        rows = [(method, pooled.value, pooled.se, *_band(own), len(own)) for pooled, (method, own) in pairs]
        schema = {"method": pl.String, **dict.fromkeys(("value", "se", "low", "high"), pl.Float64), "count": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _band(estimates: Sequence[Estimate]) -> tuple[float | None, float | None]:
    if len(estimates) < MIN_BAND_REPLICATES:
        return None, None
    values = np.sort([estimate.value for estimate in estimates])
    low, high = np.interp([0.025 * (len(values) - 1), 0.975 * (len(values) - 1)], np.arange(len(values)), values)
    return float(low), float(high)


@dataclass(frozen=True)
class LowerIsBetter(Measure):
    """A measure of a table made elsewhere, of which only the name and the direction are known."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    name: str

    @property
    def text(self) -> str:
        return self.name


@dataclass(frozen=True)
class HigherIsBetter(LowerIsBetter):
    """The same, where higher values are better."""

    direction: ClassVar[Literal["lower", "higher"]] = "higher"


_MEAN_POOLING = Measure()  # pools by the mean: what a table made elsewhere gets
