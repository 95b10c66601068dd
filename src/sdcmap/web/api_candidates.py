"""The service, part five: one candidate: its scores, what masking did to columns, relations and records."""

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
from sdcmap.core.audience import Audience
from sdcmap.core.formatting import join_names
from sdcmap.core.rule import Rule
from sdcmap.reports.masked_columns import Table
from sdcmap.reports.masked_columns import changes as changes_of
from sdcmap.reports.study_rows import MeasureRow, score_table
from sdcmap.web.models import Answer, Columns
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import Absent

router = APIRouter(prefix="/api/studies/{name}", tags=["candidates"])
Made: TypeAlias = tuple[sm.Plan, sm.Microdata, sm.Microdata, tuple[str, ...]]
MOST_CORRELATED = 10  # columns of the picture of correlations
MOST_CATEGORIES = 60  # of a column that a table is offered of
MOST_COUNTED = 50_000  # records whose neighbors are all counted; of more, COUNT_TO each
COUNT_TO = 100
MOST_CHARTS = 8
MOST_LISTED = 500  # unsafe records


class CandidateMeasures(Answer):
    risk: list[MeasureRow]
    utility: list[MeasureRow]


class CandidateFacts(Answer):
    """A candidate: its method and parameters, and every measure with its band."""

    id: str
    name: str
    method: str
    spec: dict[str, Any]
    replicate: int
    masked: tuple[str, ...]
    status: str
    reason: str
    measures: CandidateMeasures


class Changes(Answer):
    """Each masked variable before and after; charts are Vega-Lite."""

    tables: list[Table]
    charts: dict[str, dict[str, Any]]


class Records(Answer):
    """The confidentiality plot (Vega-Lite), its counts and the unsafe records, in columns; a chart of null has a reason."""

    chart: dict[str, Any] | None
    reason: str
    counts: dict[str, float | None] = field(default_factory=dict)
    rule: str = ""
    words: str = ""
    unsafe: int = 0
    rows: Columns | None = None


class RecordValue(Answer):
    """One column of one record; an original of null is not known: the record is nobody's."""

    name: str
    role: str
    original: str | None
    masked: str
    changed: bool


class RecordValues(Answer):
    """A record of the masked file (`row`, from 0) beside the one it was made from. It never leaves the room.

    reason : why there is no original, where there is none.
    """

    row: int
    original_row: int | None
    reason: str
    values: list[RecordValue]


class Relations(Answer):
    """Correlations and the table of two columns, before and after (Vega-Lite); null where there is none.

    columns : categorical columns that a table can be of.
    """

    correlations: dict[str, Any] | None
    table: dict[str, Any] | None
    columns: list[str]
    pair: list[str]
    words: str


@router.get("/candidates/{candidate}")
def candidate_facts(bench: Bench, name: str, candidate: str) -> CandidateFacts:
    """A candidate: its method and parameters, and every measure with its band."""
    with bench.views.study(name) as opened:
        plan = opened.plan
        scores = opened.scores(plan)
    made = plan.find(candidate)
    method = made.method
    row = sm.Choice(made.id, method.text, made.replicate, None, None, Rule(), "")
    states = scores.candidate.filter(pl.col("id") == made.id).select("status", "reason").rows()
    status, reason = states[0] if states else ("not made yet", "")
    tables = [score_table(scores, row, axis, Audience("internal"), plan.limits) for axis in ("risk", "utility")]
    return CandidateFacts(
        made.id, plan.name_of(made), method.text, method.spec(), made.replicate, method.masked_names, status, reason,
        CandidateMeasures(*tables),
    )  # fmt: skip


@router.get("/candidates/{candidate}/changes")
def changes(bench: Bench, name: str, candidate: str) -> Changes:
    """Each masked variable before and after, as tables and charts, and the relations that changed most.

    A number is drawn as two densities on one axis, categories as bars."""
    _, data, masked, names = made_again(bench, name, candidate)
    charts = {}
    for variable in names[:MOST_CHARTS]:
        draw = draw_density_change if has_density(data, masked, variable) else draw_change
        charts[variable] = draw(data, masked, variable).to_dict()
    return Changes(changes_of(data, masked, names, Audience("internal", len(data))), charts)


def made_again(bench: Workbench, name: str, candidate: str) -> Made:
    """A candidate of a study made again, or as it was made a moment ago: its plan, the data, the masked file, and what it
    masks (the keys, where its method names nothing)."""
    plan, data, masked = bench.views.masked(name, candidate)
    return plan, data, masked, masked_names(data, plan.find(candidate).method, masked)


@router.get("/candidates/{candidate}/records")
def records(bench: Bench, name: str, candidate: str) -> Records:
    """The confidentiality plot, its counts and the unsafe records; a reason where a candidate has none.

    Neighbors are counted in the masked numeric variables, else in the keys, with the k of the plan's KAnonymity.
    """
    plan, data, masked, names = made_again(bench, name, candidate)
    numbers = tuple(variable for variable in names if variable in data.numeric)
    rule = sm.recordwise.Unsafe(on=numbers or data.keys or names, leave_out=True)
    held = next((m for m in plan.measures if isinstance(m, sm.KAnonymity) and not numbers), None)
    rule = rule if held is None else replace(rule, k=held.k)
    try:
        table = sm.records(data, masked, rule=rule, count_to=COUNT_TO if len(data) > MOST_COUNTED else None)
    except sm.errors.SdcmapError as error:
        return Records(None, str(error))
    unsafe = table.frame().filter(~pl.col("safe")).select("row", "neighbors", "perturbation").sort("neighbors", "row")
    return Records(
        table.draw().to_dict(), "", table.summary(), table.rule.text, _line_words(table.rule, held), len(unsafe),
        unsafe.head(MOST_LISTED).to_dict(as_series=False),
    )  # fmt: skip


def _line_words(rule: sm.recordwise.Unsafe, held: sm.KAnonymity | None) -> str:
    """What "unsafe" means in this plot, and whose line it is."""
    on = join_names(rule.on)
    if rule.neighborhood == "frequency":
        own = f"this plot's own line, k = {rule.k}, not a measure's"
        whose = f"the line of {held.text} in the plan" if held else own
        return (
            f"A record is called unsafe here where fewer than {rule.k} records share its combination of {on}; a missing "
            f"value agrees with every value. That is {whose}."
        )
    return (
        f"A record is called unsafe here where few others are like it in {on} and masking moved it little: fewer than "
        f"{rule.k} neighbors, moved by less than {rule.r:g} of its size, and not enough of both together. That is this "
        f"plot's own line (Seri 2005), not a measure's."
    )


@router.get("/candidates/{candidate}/relations")
def relations(
    bench: Bench, name: str, candidate: str,
    down: Annotated[str, Query(description="A categorical column of the table.")] = "",
    across: Annotated[str, Query(description="The other one.")] = "",
) -> Relations:  # fmt: skip
    """Correlations of the numbers and the table of two categorical columns, before and after masking, as heat maps."""
    _, data, masked, names = made_again(bench, name, candidate)
    shared = [name for name in data.content_columns if name in masked.names]  # those that were masked first
    shared.sort(key=lambda name: (name not in names, data.names.index(name)))
    numbers = [n for n in shared if n in data.numeric and masked.column(n).levels is None][:MOST_CORRELATED]
    named = [n for n in shared if data.column(n).levels is not None and masked.column(n).levels is not None]
    columns = [name for name in named if data.level_count(name) <= MOST_CATEGORIES]
    pair = _pair(columns, down, across)
    return Relations(
        draw_correlations(data, masked, numbers).to_dict() if len(numbers) > 1 else None,
        draw_table_change(data, masked, *pair).to_dict() if pair else None, columns, pair,
        "" if numbers or columns else "This file has neither two numbers nor two categorical columns.",
    )  # fmt: skip


def _pair(columns: list[str], down: str, across: str) -> list[str]:
    if len(columns) < 2:
        return []
    if not {down, across} <= {"", *columns}:
        raise sm.errors.PlanError("a table is of two categorical columns that are released.")
    first = down or next(name for name in columns if name != across)
    second = across or next(name for name in columns if name != first)
    if first == second:
        raise sm.errors.PlanError("a table is of two different columns.")
    return [first, second]


@router.get("/candidates/{candidate}/records/{row}")
def record_values(bench: Bench, name: str, candidate: str, row: int) -> RecordValues:
    """One record of the masked file (`row` from 0) beside the one it was made from, column by column."""
    _, data, masked, _ = made_again(bench, name, candidate)
    if not 0 <= row < len(masked):
        raise Absent("the masked file has no such row.")
    place = None if not masked.paired else row if masked.origin is None else int(masked.origin[row])
    values = _values(masked, row)
    before = {} if place is None else _values(data, place)
    roles = {variable.name: variable.role or "" for variable in data.schema.variables}
    rows = [
        RecordValue(name, roles.get(name, ""), before.get(name), value, place is not None and before.get(name) != value)
        for name, value in values.items()
    ]
    reason = "" if place is not None else "This file is made up: none of its records is anybody's."
    return RecordValues(row, place, reason, rows)


def _values(data: sm.Microdata, row: int) -> dict[str, str]:
    frame = data.take(np.array([row])).frame()
    return {name: "missing" if cell is None else str(cell) for name, cell in frame.row(0, named=True).items()}
