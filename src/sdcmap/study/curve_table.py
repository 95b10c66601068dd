"""Curves of risk and utility as the parameter of a method grows. Duncan et al. (2001), section 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from sdcmap.core.limit import as_share
from sdcmap.study.parameter_families import Family
from sdcmap.study.scores import Scores

MEMBER_SCHEMA = {"family": pl.String, "parameter": pl.String, "value": pl.Float64, "method": pl.String}
COLUMNS = (*MEMBER_SCHEMA, "measure", "count", "risk", "utility", "risk_se", "utility_se")


def trace_curves(scores: Scores, families: Iterable[Family], scales: Mapping[str, float], utility: str) -> pl.DataFrame:
    """Return one row for each risk measure and member of a family: pooled risk and utility with standard errors (se).

    scales : risk measure -> what its values are divided by.
    """
    rows = [(f.name, f.parameter, value, method) for f in families for value, method in f.members]
    members = pl.DataFrame(rows, schema=MEMBER_SCHEMA, orient="row")
    utilities = scores.pooled(utility).select("method", "count", utility="value", utility_se="se")
    curves = []
    for measure, scale in scales.items():
        risks = _scale(scores.pooled(measure), scale)
        curve = members.with_columns(measure=pl.lit(measure)).join(risks, on="method", maintain_order="left")
        curves.append(curve.join(utilities, on="method", maintain_order="left"))
    return pl.concat(curves).select(COLUMNS)


def _scale(pooled: pl.DataFrame, scale: float) -> pl.DataFrame:
    """Return pooled risks as shares of a limit; a share v/limit or limit/v has the same relative error as v."""
    shares = pl.Series("risk", as_share(pooled["value"].to_numpy(), scale))
    error = pl.col("se") * (pl.col("risk") / pl.col("value")).abs() if scale < 0 else pl.col("se") / scale
    return pooled.with_columns(shares).select("method", "risk", risk_se=error)
