"""Routes for one candidate: its scores, and what masking did to columns, relations and records."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from fastapi import APIRouter, Query

import sdcmap as sm
from sdcmap.bundle.prepared_file import masked_names
from sdcmap.charts import draw_table_change
from sdcmap.charts.change_charts import draw_change, draw_correlations, draw_density_change, has_density
from sdcmap.charts.estimate_pairs import draw_estimate_pairs
from sdcmap.core.audience import Audience
from sdcmap.core.formatting import join_names
from sdcmap.core.rule import Rule
from sdcmap.reports.changed_analyses import CONCLUSION_RULES, TABLE_HEAD, describe_analyses
from sdcmap.reports.masked_columns import Table, change_tables
from sdcmap.reports.report_tables import MeasureRow, MethodStep, method_steps, score_table
from sdcmap.web.response_models import Columns, ResponseModel
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import NotFound

router = APIRouter(prefix="/api/studies/{name}", tags=["candidates"])
RemadeCandidate: TypeAlias = tuple[sm.Plan, sm.Microdata, sm.Microdata, tuple[str, ...]]
MAX_CORRELATED_COLUMNS = 10  # in the chart of correlations
MAX_TABLE_CATEGORIES = 60  # of a column that is offered for a two-way table
FULL_COUNT_RECORDS = 50_000  # in larger files neighbors are counted only up to ...
NEIGHBOR_COUNT_CAP = 100  # ... this number per record, which keeps the request fast
MAX_CHARTS = 8  # of variables before and after
MAX_UNSAFE_LISTED = 500  # records in the list of unsafe ones


class CandidateMeasures(ResponseModel):
    risk: list[MeasureRow]
    utility: list[MeasureRow]


class CandidateFacts(ResponseModel):
    """A candidate: the steps of its method, its parameters, and every measure with its interval."""

    id: str
    name: str
    method: str
    steps: list[MethodStep]
    spec: dict[str, Any]
    replicate: int
    masked: tuple[str, ...]
    status: str
    reason: str
    measures: CandidateMeasures


class Changes(ResponseModel):
    """Each masked variable before and after; charts are Vega-Lite specifications."""

    tables: list[Table]
    charts: dict[str, dict[str, Any]]


class Analyses(ResponseModel):
    """How many analyses of users lead to another conclusion, and the estimates that changed most, as a table and a chart.

    sentence : why there is nothing, if `table` is null. rules : when a finding is clear, lost or new.
    """

    sentence: str
    rules: str = ""
    table: Table | None = None
    chart: dict[str, Any] | None = None


class Records(ResponseModel):
    """The confidentiality plot (Vega-Lite), its counts and the unsafe records, in columns.

    reason : why there is no plot, if `chart` is null.
    """

    chart: dict[str, Any] | None
    reason: str
    counts: dict[str, float | None] = field(default_factory=dict)
    rule: str = ""
    words: str = ""
    unsafe: int = 0
    rows: Columns | None = None


class RecordValue(ResponseModel):
    """One column of one record; `original` is null if the record has no original."""

    name: str
    role: str
    original: str | None
    masked: str
    changed: bool


class RecordValues(ResponseModel):
    """A record of the masked file (`row`, from 0) beside its original. For internal use only.

    reason : why there is no original, if `original_row` is null.
    """

    row: int
    original_row: int | None
    reason: str
    values: list[RecordValue]


class Relations(ResponseModel):
    """Correlations and a two-way table, before and after (Vega-Lite); null if there are none.

    columns : the categorical columns that a table can show.
    """

    correlations: dict[str, Any] | None
    table: dict[str, Any] | None
    columns: list[str]
    pair: list[str]
    words: str


@router.get("/candidates/{candidate}")
def candidate_facts(bench: Bench, name: str, candidate: str) -> CandidateFacts:
    """Return a candidate: its method and parameters, and every measure with its interval."""
    with bench.views.study(name) as opened:
        plan = opened.plan
        scores = opened.scores(plan)
    match = plan.find(candidate)
    method = match.method
    row = sm.Choice(match.id, method.text, match.replicate, None, None, Rule(), "")
    states = scores.candidate.filter(pl.col("id") == match.id).select("status", "reason").rows()
    status, reason = states[0] if states else ("not created yet", "")
    tables = [score_table(scores, row, axis, Audience("internal"), plan.limits) for axis in ("risk", "utility")]
    return CandidateFacts(
        match.id,
        plan.name_of(match),
        method.text,
        method_steps(method),
        method.spec(),
        match.replicate,
        method.masked_names,
        status,
        reason,
        CandidateMeasures(*tables),
    )


@router.get("/candidates/{candidate}/changes")
def changes(bench: Bench, name: str, candidate: str) -> Changes:
    """Return each masked variable before and after, as tables and charts, and the relations that changed most.

    Numbers are drawn as two densities on one axis, categories as bars.
    """
    _, data, masked, names = remake_candidate(bench, name, candidate)
    charts = {}
    for variable in names[:MAX_CHARTS]:
        draw = draw_density_change if has_density(data, masked, variable) else draw_change
        charts[variable] = draw(data, masked, variable).to_dict()
    return Changes(change_tables(data, masked, names, Audience("internal", len(data))), charts)


@router.get("/candidates/{candidate}/analyses")
def analyses(bench: Bench, name: str, candidate: str) -> Analyses:
    """Return what users of the file will find: the regressions, tables and means that masking changed most."""
    plan, data, masked, _ = remake_candidate(bench, name, candidate)
    found = describe_analyses(plan, data, masked)
    if found is None:
        return Analyses(
            "This file has no column with two values or more, each in at least 30 records: nothing to analyze."
        )
    rows = tuple(tuple(row) for row in found.rows)
    chart = draw_estimate_pairs(found.pairs).to_dict() if found.pairs else None
    return Analyses(found.sentence, CONCLUSION_RULES, Table("Estimates that changed most", TABLE_HEAD, rows), chart)


def remake_candidate(bench: Workbench, name: str, candidate: str) -> RemadeCandidate:
    """Return the plan, the data, a candidate created again (or from the cache), and the names of the masked columns.

    The masked columns are the keys if the method names none.
    """
    plan, data, masked = bench.views.remake(name, candidate)
    return plan, data, masked, masked_names(data, plan.find(candidate).method, masked)


@router.get("/candidates/{candidate}/records")
def records(bench: Bench, name: str, candidate: str) -> Records:
    """Return the confidentiality plot, its counts and the unsafe records, or the reason why there is no plot.

    Neighbors are counted on the masked numeric variables; without any, on the keys with the k of the plan's KAnonymity.
    """
    plan, data, masked, names = remake_candidate(bench, name, candidate)
    numbers = tuple(variable for variable in names if variable in data.numeric)
    # The plan states that these are amounts, also where they look like codes.
    amounts = tuple(variable for variable in numbers if sm.recordwise.looks_like_code(data, variable))
    rule = sm.recordwise.Unsafe(on=numbers or data.keys or names, leave_out=bool(numbers), amounts=amounts)
    measure = next((m for m in plan.measures if isinstance(m, sm.KAnonymity) and not numbers), None)
    rule = rule if measure is None else replace(rule, k=measure.k)
    try:
        table = sm.records(
            data, masked, rule=rule, count_to=NEIGHBOR_COUNT_CAP if numbers and len(data) > FULL_COUNT_RECORDS else None
        )
    except sm.errors.SdcmapError as error:
        return Records(None, str(error))
    unsafe = table.frame().filter(~pl.col("safe")).select("row", "neighbors", "perturbation").sort("neighbors", "row")
    return Records(
        table.draw().to_dict(),
        "",
        table.summary(),
        table.rule.text,
        _describe_unsafe_rule(table.rule, measure),
        len(unsafe),
        unsafe.head(MAX_UNSAFE_LISTED).to_dict(as_series=False),
    )


def _describe_unsafe_rule(rule: sm.recordwise.Unsafe, measure: sm.KAnonymity | None) -> str:
    """Return what "unsafe" means in this plot, and where the threshold comes from."""
    on = join_names(rule.on)
    if rule.neighborhood == "frequency":
        default = f"the default of this plot (k = {rule.k}), not a limit of the plan"
        source = f"the k of {measure.text} in the plan" if measure else default
        return (
            f"A record is unsafe in this plot if fewer than {rule.k} records share its combination of {on}; a missing "
            f"value matches every value. The threshold is {source}."
        )
    return (
        f"A record is unsafe in this plot if few records are similar to it in {on} and masking changed it little: fewer "
        f"than {rule.k} neighbors, changed by less than {rule.r:g} of its size, and not enough of both combined. These "
        f"thresholds are defaults of this plot (Seri 2005), not limits of the plan."
    )


@router.get("/candidates/{candidate}/relations")
def relations(
    bench: Bench,
    name: str,
    candidate: str,
    down: Annotated[str, Query(description="A categorical column of the table.")] = "",
    across: Annotated[str, Query(description="The other one.")] = "",
) -> Relations:
    """Return the correlations of the numeric columns and a two-way table, before and after masking, as heat maps."""
    _, data, masked, names = remake_candidate(bench, name, candidate)
    # Masked columns come first: they are what the user wants to see.
    shared = [name for name in data.content_columns if name in masked.names]
    shared.sort(key=lambda name: (name not in names, data.names.index(name)))
    numbers = [n for n in shared if n in data.numeric and masked.column(n).levels is None][:MAX_CORRELATED_COLUMNS]
    named = [n for n in shared if data.column(n).levels is not None and masked.column(n).levels is not None]
    columns = [name for name in named if data.level_count(name) <= MAX_TABLE_CATEGORIES]
    pair = _table_columns(columns, down, across)
    return Relations(
        draw_correlations(data, masked, numbers).to_dict() if len(numbers) > 1 else None,
        draw_table_change(data, masked, *pair).to_dict() if pair else None,
        columns,
        pair,
        "" if numbers or columns else "This file has neither two numeric nor two categorical columns.",
    )


def _table_columns(columns: list[str], down: str, across: str) -> list[str]:
    if len(columns) < 2:
        return []
    if not {down, across} <= {"", *columns}:
        raise sm.errors.PlanError("a table needs two categorical columns that are released.")
    first = down or next(name for name in columns if name != across)
    second = across or next(name for name in columns if name != first)
    if first == second:
        raise sm.errors.PlanError("a table needs two different columns.")
    return [first, second]


@router.get("/candidates/{candidate}/records/{row}")
def record_values(bench: Bench, name: str, candidate: str, row: int) -> RecordValues:
    """Return one record of the masked file (`row` from 0) beside its original, column by column."""
    _, data, masked, _ = remake_candidate(bench, name, candidate)
    if not 0 <= row < len(masked):
        raise NotFound("the masked file has no such row.")
    original_row = None if not masked.paired else row if masked.origin is None else int(masked.origin[row])
    values = _values(masked, row)
    before = {} if original_row is None else _values(data, original_row)
    roles = {variable.name: variable.role or "" for variable in data.schema.variables}
    is_known = original_row is not None
    rows = [
        RecordValue(name, roles.get(name, ""), before.get(name), value, is_known and before.get(name) != value)
        for name, value in values.items()
    ]
    reason = "" if is_known else "The file is fully synthetic: its rows do not correspond to people."
    return RecordValues(row, original_row, reason, rows)


def _values(data: sm.Microdata, row: int) -> dict[str, str]:
    frame = data.take(np.array([row])).frame()
    return {name: "missing" if cell is None else str(cell) for name, cell in frame.row(0, named=True).items()}
