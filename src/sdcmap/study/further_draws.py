"""Further draws of the candidates that could be released: how much an exact value differs between draws of a method.

A measure may be exact for one file, such as the share of its records that an attack re-identifies. The release is another
draw of a random method, and its value differs. A candidate that only just meets such a limit would fail it in half of all
releases. So a sweep ends with a few more draws of the methods that meet every limit, scored by these measures alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from sdcmap.core import Measure, Method
from sdcmap.core.estimate import Estimate
from sdcmap.core.limit import Limit
from sdcmap.study.plan import Candidate, Plan, limits_of_plan
from sdcmap.study.scores import MIN_DRAWS_OF_SPREAD, Scores

FIRST_FURTHER_DRAW = 900_000_000  # replicate numbers from here on: no sweep, search or release reaches them
MAX_METHODS_DRAWN_AGAIN = (
    40  # those with the least loss, so that a plan of thousands of methods does not double its time
)


def find_further_draws(plan: Plan, scores: Scores) -> Iterator[tuple[Candidate, tuple[Measure, ...]]]:
    """Yield the further draws that a sweep makes, each with the measures that are exact for one file and have a limit."""
    limits = limits_of_plan(plan)
    if not limits:
        return
    drawn = 0
    for method, ids in _order_by_loss(plan, scores):
        own = plan.draws_of(method)
        if not method.random or own >= MIN_DRAWS_OF_SPREAD:
            continue
        measures = _find_exact_measures(plan, scores, limits, ids)
        if not measures:
            continue
        yield from ((Candidate(method, FIRST_FURTHER_DRAW + k), measures) for k in range(MIN_DRAWS_OF_SPREAD - own))
        drawn += 1
        if drawn == MAX_METHODS_DRAWN_AGAIN:
            return


def _order_by_loss(plan: Plan, scores: Scores) -> Iterator[tuple[Method, Sequence[str]]]:
    """Yield the methods of the sweep with the ids of their draws, those with the least loss first."""
    rows = scores.candidate.filter(status="ok", kind="candidate").select("id", "method")
    if plan.utility:
        sign = 1.0 if scores.measure_named(plan.utility).direction == "lower" else -1.0
        loss = scores.column(plan.utility).select("id", loss=sign * pl.col("value"))
        rows = rows.join(loss, on="id", how="left").sort("loss", nulls_last=True, maintain_order=True)
    for (text,), own in rows.group_by("method", maintain_order=True):
        if (method := scores.methods.get(str(text))) is not None:
            yield method, own["id"].to_list()


def _find_exact_measures(
    plan: Plan, scores: Scores, limits: Sequence[Limit], ids: Sequence[str]
) -> tuple[Measure, ...]:  # fmt: skip
    """Return the measures whose values are exact for one file, if one of these draws meets every limit that was tested."""
    for candidate in ids:
        known = {limit: scores.estimates(limit.measure.text).get(candidate) for limit in limits}
        tested = {limit: estimate for limit, estimate in known.items() if estimate is not None}
        if all(limit.judge_candidate(one, plan.policy).status == "met" for limit, one in tested.items()):
            return tuple(limit.measure for limit, one in tested.items() if is_exact(limit.measure, one))
    return ()


def is_exact(measure: Measure, estimate: Estimate) -> bool:
    """Return whether the value of a measure is exact for one file and differs between the draws of a random method."""
    return estimate.se is None and estimate.share is None and not measure.expectation


def read_further_draws(
    candidate: pl.DataFrame, score: pl.DataFrame, plan: Plan
) -> dict[tuple[str, str], tuple[float, ...]]:  # fmt: skip
    """Return the values of the further draws in the tables of a study, by the texts of measure and method."""
    rows = candidate.filter(
        pl.col("kind") == "fresh", pl.col("status") == "ok", pl.col("replicate") >= FIRST_FURTHER_DRAW
    )
    if not len(rows):
        return {}
    methods = {method.text: method for method in plan.all_methods}
    # A draw of a method whose code has changed has another id.
    current = [
        (row_id, text)
        for row_id, text, number in rows.select("id", "method", "replicate").iter_rows()
        if text in methods and Candidate(methods[text], number).id == row_id
    ]
    ids = pl.DataFrame(current, schema={"candidate": pl.String, "method": pl.String}, orient="row")
    measures = [measure.id for measure in plan.measures]
    values = score.filter(pl.col("measure_id").is_in(measures)).drop_nulls("value").join(ids, on="candidate")
    return {
        (str(measure), str(method)): tuple(own["value"])
        for (measure, method), own in values.group_by("measure", "method", maintain_order=True)
    }
