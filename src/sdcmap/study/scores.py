"""Scores: what a sweep has found, as three tables of numbers."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Measure, Method, PlanError, did_you_mean, listed
from sdcmap.core.estimate import NO_DETAILS, Estimate
from sdcmap.core.limit import Absent
from sdcmap.data import html
from sdcmap.study.names import drawn_name
from sdcmap.study.plan import Plan

BAND_REPLICATES = 40  # a quantile q needs 1/(1 - q) replicates, and the band of single releases ends at 97.5 %


@dataclass(frozen=True)
class Scores:
    """Three tables of numbers, and what they are numbers of.

    Parameters
    ----------
    candidate : id, kind ("candidate", "identity" for the file as it is, "file" for one made elsewhere, "fresh" for a
        redraw), method, replicate, status, reason, seconds, seal. A table made elsewhere may lack kind and seal.
    score : candidate, measure, value, se, details (see `Estimate.to_details`), status, reason. A table made elsewhere may
        lack details.
    measure : name, direction, low, high, unit, axis, at_nothing.
    values : measure text -> the measure, for pooling replicates.
    methods : method text -> the method.
    plan : the plan that was swept, bound to the seed of its study; None for a table made elsewhere.
    names : method text -> its name for people.
    """

    candidate: pl.DataFrame
    score: pl.DataFrame
    measure: pl.DataFrame
    values: Mapping[str, Measure] = field(default_factory=dict, repr=False)
    methods: Mapping[str, Method] = field(default_factory=dict, repr=False)
    plan: Plan | None = field(default=None, repr=False, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    _estimates: dict[str, Mapping[str, Estimate]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _pooled: dict[str, Mapping[str, Estimate]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _column: dict[str, pl.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def of_plan(plan: Plan, candidate: pl.DataFrame, score: pl.DataFrame, measure: pl.DataFrame) -> Scores:
        """The scores of a plan, with its measures, methods and names."""
        methods = {method.text: method for method in plan.expanded}
        return Scores(candidate, score, measure, {m.text: m for m in plan.measures}, methods, plan, plan.method_names)

    def __post_init__(self) -> None:
        for table, lacking in (("candidate", {"kind": "candidate", "seal": ""}), ("score", {"details": NO_DETAILS})):
            frame: pl.DataFrame = getattr(self, table)
            columns = [pl.lit(given).alias(name) for name, given in lacking.items() if name not in frame.columns]
            if columns:
                object.__setattr__(self, table, frame.with_columns(columns))

    def __repr__(self) -> str:
        names = listed([self.brief_of(name) for name in self.measure["name"]])
        return f"Scores({len(self.candidate):,} candidates, {len(self._made):,} made; {names})"

    def _repr_html_(self) -> str:
        """For a notebook: each method with its draws and its pooled measures."""
        pooled = {name: dict(self.pooled(name).select("method", "value").iter_rows()) for name in self.measure["name"]}
        draws = self._made.group_by("method", maintain_order=True).len().iter_rows()
        rows = [(self.name_of(method), count, *(of.get(method) for of in pooled.values())) for method, count in draws]
        columns = ["method", "draws", *map(self.brief_of, pooled)]
        return html.paragraph(repr(self)) + html.table(columns, rows, "methods")

    def column(self, measure: str) -> pl.DataFrame:
        """One measure of every candidate that was made: id, kind, method, replicate, value (may be inf), se, details."""
        if measure not in self._column:
            self.place_of(measure)
            value = pl.when(pl.col("status") == "infinite").then(math.inf).otherwise(pl.col("value")).alias("value")
            rows = self._rows_of(measure).select("candidate", value, "se", "details").drop_nulls("value")
            self._column[measure] = self._made.join(rows, left_on="id", right_on="candidate", maintain_order="left")
        return self._column[measure]

    def place_of(self, measure: str) -> int:
        """The place of a measure in the table; PlanError where it is not there."""
        names = self.measure["name"].to_list()
        if measure not in names:
            raise PlanError(f"no measure {measure!r} in these scores.{did_you_mean(measure, names)}")
        return names.index(measure)

    def _rows_of(self, measure: str) -> pl.DataFrame:
        """The rows of a measure in the table of scores."""
        return self._by_measure.get((measure,), self.score.clear())

    def unpaired(self, measure: str) -> pl.DataFrame:
        """The candidates to which a measure does not apply, because it compares records and theirs are fully synthetic."""
        rows = self._rows_of(measure).filter(pl.col("status") == "unpaired")
        return self._made.filter(pl.col("id").is_in(rows["candidate"].implode())).select("id", "method")

    def measure_named(self, name: str) -> Measure:
        """The measure of this name; of a table made elsewhere, a value that knows its direction only."""
        if name in self.values:
            return self.values[name]
        lower = self.measure["direction"][self.place_of(name)] == "lower"
        return LowerIsBetter(name) if lower else HigherIsBetter(name)

    def outcome(self, candidate: str, measure: str) -> Estimate | Absent:
        """What a measure says of one candidate, or why it says nothing."""
        if candidate in self.estimates(measure):
            return self.estimates(measure)[candidate]
        rows = self._rows_of(measure).filter(pl.col("candidate") == candidate)
        if not len(rows):
            return Absent(applies=True, reason="it was not measured.")
        row = rows.row(0, named=True)
        return Absent(applies=row["status"] != "unpaired", reason=row["reason"])

    def estimates(self, measure: str) -> Mapping[str, Estimate]:
        """One measure of every candidate that has a value, by the candidate's id."""
        if measure not in self._estimates:
            table = self.column(measure)
            details = json.loads(f"[{','.join(table['details'])}]")  # one document is read much faster than many
            rows = zip(*(table[name].to_list() for name in ("id", "value", "se")), details, strict=True)
            self._estimates[measure] = {key: Estimate.from_details(*rest) for key, *rest in rows}
        return self._estimates[measure]

    def pooled_estimates(self, measure: str) -> Mapping[str, Estimate]:
        """One measure of every method, pooled over its draws, by the method's text."""
        if measure not in self._pooled:
            pool = self.values.get(measure, _PLAIN).pool
            self._pooled[measure] = {method: pool(own) for method, own in self._draws(measure).items()}
        return self._pooled[measure]

    def _draws(self, measure: str) -> dict[str, list[Estimate]]:
        draws: defaultdict[str, list[Estimate]] = defaultdict(list)
        for method, estimate in zip(self.column(measure)["method"], self.estimates(measure).values(), strict=True):
            draws[method].append(estimate)
        return draws

    @cached_property
    def _made(self) -> pl.DataFrame:
        return self.candidate.filter(pl.col("status") == "ok").select("id", "kind", "method", "replicate")

    @cached_property
    def _by_measure(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.score.partition_by("measure", as_dict=True)

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Method text -> the kind of its rows."""
        return dict(self.candidate.select("method", "kind").iter_rows())

    @cached_property
    def _drawn_often(self) -> frozenset[str]:
        """The methods that have several draws, made or not yet."""
        if self.plan is not None:
            return frozenset(m.text for m in self.plan.expanded if self.plan.draws_of(m) > 1)
        return frozenset(self.candidate.group_by("method").len().filter(pl.col("len") > 1)["method"])

    def name_of(self, method: str, draw: int | None = None) -> str:
        """What to call a method, or one draw of it where there are several; its text where it has no name."""
        return drawn_name(self.names.get(method, method), draw if method in self._drawn_often else None)

    def seal_of(self, candidate: str) -> str:
        """The seal of a candidate's random stream; empty where the table has none."""
        seals = self.candidate.filter(pl.col("id") == candidate)["seal"]
        return str(seals[0]) if len(seals) else ""

    def words_of(self, measure: str) -> str:
        """A measure in a few words; its text in short where the measure itself is not known here."""
        return self.values[measure].words if measure in self.values else measure

    def brief_of(self, measure: str) -> str:
        """A measure as code, where it stands in a sentence; its name where the measure itself is not known here."""
        return self.values[measure].brief if measure in self.values else measure

    def pooled(self, measure: str) -> pl.DataFrame:
        """One measure of each method: pooled value, standard error, 2.5 and 97.5 % of single releases, count."""
        pairs = zip(self.pooled_estimates(measure).values(), self._draws(measure).items(), strict=True)
        rows = [(method, pooled.value, pooled.se, *_band(own), len(own)) for pooled, (method, own) in pairs]
        schema = {"method": pl.String, **dict.fromkeys(("value", "se", "low", "high"), pl.Float64), "count": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _band(estimates: Sequence[Estimate]) -> tuple[float | None, float | None]:
    if len(estimates) < BAND_REPLICATES:
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


_PLAIN = Measure()  # pools by the mean: what a table made elsewhere gets
