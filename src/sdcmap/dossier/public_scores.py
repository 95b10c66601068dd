"""Scores that may leave the room: pooled, rounded, and without a count of few records."""

from __future__ import annotations

import math

import polars as pl

from sdcmap.core.audience import coarse
from sdcmap.study.scores import Scores

PUBLIC = ("id", "kind", "method", "replicate", "status", "reason")  # columns of candidates that leave


def public_scores(scores: Scores, rows: int) -> Scores:
    """The scores that may leave: one row a method, pooled, to two significant digits; ids and parts are left out.

    Shares of records are rounded so that no two of them differ by 1 to 9 records (`coarse`). What is made of these
    scores can tell no more than they do.
    """
    units = dict(scores.measure.select("name", "unit").iter_rows())
    pooled = {name: scores.pooled(name) for name in units}
    methods = list(dict.fromkeys(method for table in pooled.values() for method in table["method"]))
    ids = {method: f"method {number}" for number, method in enumerate(methods, 1)}
    candidates = [
        {
            "id": ids[method],
            "kind": scores.kinds[method],
            "method": method,
            "replicate": 0,
            "status": "ok",
            "reason": "",
        }
        for method in methods
    ]
    told_scores = []
    for name, table in pooled.items():
        for method, value in table.select("method", "value").iter_rows():
            told = _told(value, units[name], rows)
            status = "infinite" if math.isinf(told) else "ok"
            told_scores.append((ids[method], name, None if math.isinf(told) else told, None, "{}", status, ""))
        nobodys = [method for method in scores.unpaired(name)["method"].unique() if method in ids]
        told_scores += [(ids[method], name, None, None, "{}", "unpaired", "") for method in nobodys]
    nothing = [
        None if v is None else _told(v, units[n], rows) for n, v in scores.measure["name", "at_nothing"].iter_rows()
    ]
    return Scores(
        pl.DataFrame(candidates, schema={name: scores.candidate.schema[name] for name in PUBLIC}),
        pl.DataFrame(told_scores, schema=scores.score.schema, orient="row"),
        scores.measure.with_columns(pl.Series("at_nothing", nothing, dtype=pl.Float64)),
        methods=scores.methods,
        names=scores.names,
    )


def _told(value: float, unit: str, rows: int) -> float:
    return float(f"{coarse(value, unit, rows):.2g}")
