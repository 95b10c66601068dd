"""Scores: what a sweep has found, as three tables of numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core.measure import Estimate, Measure
from sdcmap.errors import PlanError, did_you_mean

BAND_REPLICATES = 40  # a quantile q needs 1/(1 - q) replicates, and the band of single releases ends at 97.5 %
ELSEWHERE = "file: "  # the method of a file made elsewhere begins so


@dataclass(frozen=True)
class Scores:
    """Three tables of numbers: candidate, score and measure; `values` are the measures, for pooling replicates."""

    candidate: pl.DataFrame
    score: pl.DataFrame
    measure: pl.DataFrame
    values: Mapping[str, Measure] = field(default_factory=dict, repr=False)

    def column(self, measure: str) -> pl.DataFrame:
        """One measure of every candidate that was made: id, method, replicate, value (infinite is inf), se, parts."""
        names = self.measure["name"].to_list()
        if measure not in names:
            raise PlanError(f"no measure {measure!r} in these scores.{did_you_mean(measure, names)}")
        value = pl.when(pl.col("status") == "infinite").then(math.inf).otherwise(pl.col("value")).alias("value")
        rows = self._by_measure.get((measure,), self.score.clear()).select("candidate", value, "se", "parts")
        return self._made.join(rows, left_on="id", right_on="candidate", how="inner", maintain_order="left").drop_nulls(
            "value"
        )

    @cached_property
    def _made(self) -> pl.DataFrame:
        return self.candidate.filter(pl.col("status") == "ok").select("id", "method", "replicate")

    @cached_property
    def _by_measure(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.score.partition_by("measure", as_dict=True)

    def pooled(self, measure: str) -> pl.DataFrame:
        """One measure of each method: pooled value, standard error, 2.5 and 97.5 % of single releases, count."""
        pool = self.values.get(measure, _PLAIN).pool
        table = self.column(measure)
        parts = json.loads(f"[{','.join(table['parts'].to_list())}]")  # one document is read much faster than many
        draws: dict[str, list[Estimate]] = {}
        single = map(Estimate, table["value"].to_list(), table["se"].to_list(), parts)
        for method, estimate in zip(table["method"].to_list(), single, strict=True):
            draws.setdefault(method, []).append(estimate)
        rows = []
        for method, estimates in draws.items():
            found = pool(estimates)
            rows.append((method, found.value, found.se, *_band(estimates), len(estimates)))
        schema = {"method": pl.String, "value": pl.Float64, "se": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(rows, schema={**schema, "count": pl.Int64}, orient="row")

    def with_file(self, name: str, estimates: Mapping[str, Estimate]) -> Scores:
        """The same scores with a file made elsewhere beside our candidates."""
        key = f"{ELSEWHERE}{name}"
        row = pl.DataFrame([(key, key, 0, "ok", "", 0.0)], schema=self.candidate.schema, orient="row")
        scores = [(key, m, e.value, e.se, json.dumps(dict(e.parts)), "ok", "") for m, e in estimates.items()]
        more = pl.DataFrame(scores, schema=self.score.schema, orient="row")
        return Scores(self.candidate.vstack(row), self.score.vstack(more), self.measure, self.values)


def _band(estimates: Sequence[Estimate]) -> tuple[float | None, float | None]:
    if len(estimates) < BAND_REPLICATES:
        return None, None
    values = np.sort([estimate.value for estimate in estimates])
    low, high = np.interp([0.025 * (len(values) - 1), 0.975 * (len(values) - 1)], np.arange(len(values)), values)
    return float(low), float(high)


_PLAIN = Measure()  # pools by the mean: what a table made elsewhere gets
