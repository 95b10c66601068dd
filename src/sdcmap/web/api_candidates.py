"""The service, part six: one candidate: its scores, what masking did to columns, relations and records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from fastapi import APIRouter, Query

import sdcmap as sm
from sdcmap.bundle.prepared_file import masked_names
from sdcmap.charts import draw_table_change
from sdcmap.charts.change_charts import draw_change, draw_correlations, draw_density_change, has_density
from sdcmap.core import Microdata, PlanError
from sdcmap.core.audience import Audience
from sdcmap.core.rule import Choice, Rule
from sdcmap.core.words import listed
from sdcmap.dossier.masked_columns import Table
from sdcmap.dossier.masked_columns import changes as changes_of
from sdcmap.dossier.study_rows import MeasureRow, score_table
from sdcmap.recordwise import Unsafe
from sdcmap.study.plan import Plan
from sdcmap.web.models import Columns
from sdcmap.web.room import Absent
from sdcmap.web.workbench import Bench, Workbench

router = APIRouter(prefix="/api/studies/{name}", tags=["candidates"])
MOST_CORRELATED = 10  # columns of the picture of correlations
MOST_CATEGORIES = 60  # of a column that a table is offered of
MOST_COUNTED = 50_000  # records whose neighbours are all counted; of more, COUNT_TO each
COUNT_TO = 100
MOST_CHARTS = 8
MOST_LISTED = 500  # unsafe records


class Made(NamedTuple):
    """A candidate made again: its plan, the data, the masked file, and what it masks (the keys, where its method names
    nothing)."""

    plan: Plan
    data: Microdata
    masked: Microdata
    names: tuple[str, ...]


@dataclass(frozen=True)
class CandidateMeasures:
    risk: list[MeasureRow]
    utility: list[MeasureRow]


@dataclass(frozen=True)
class CandidateFacts:
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


@dataclass(frozen=True)
class Changes:
    """Each masked variable before and after; charts are Vega-Lite."""

    tables: list[Table]
    charts: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Records:
    """The confidentiality plot (Vega-Lite), its counts and the unsafe records, in columns; a chart of null has a reason."""

    chart: dict[str, Any] | None
    reason: str
    counts: dict[str, float | None] = field(default_factory=dict)
    rule: str = ""
    words: str = ""
    unsafe: int = 0
    rows: Columns | None = None


@dataclass(frozen=True)
class RecordValue:
    """One column of one record; an original of null is not known: the record is nobody's."""

    name: str
    role: str
    original: str | None
    masked: str
    changed: bool


@dataclass(frozen=True)
class RecordValues:
    """A record of the masked file (`row`, from 0) beside the one it was made from. It never leaves the room.

    reason : why there is no original, where there is none.
    """

    row: int
    original_row: int | None
    reason: str
    values: list[RecordValue]


@dataclass(frozen=True)
class Relations:
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
    row = Choice(made.id, made.method.text, made.replicate, None, None, Rule(), "")
    state = scores.candidate.filter(pl.col("id") == made.id)
    to, limits = Audience("internal"), plan.limits
    return CandidateFacts(
        made.id, plan.name_of(made), made.method.text, made.method.spec(), made.replicate, made.method.masked_names,
        state["status"][0] if len(state) else "not made yet", state["reason"][0] if len(state) else "",
        CandidateMeasures(score_table(scores, row, "risk", to, limits), score_table(scores, row, "utility", to, limits)),
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
    """A candidate of a study made again, or as it was made a moment ago."""
    plan = bench.views.study_data(name)[0]
    data, masked = bench.views.masked(name, candidate)
    return Made(plan, data, masked, masked_names(data, plan.find(candidate).method, masked))


@router.get("/candidates/{candidate}/records")
def records(bench: Bench, name: str, candidate: str) -> Records:
    """The confidentiality plot, its counts and the unsafe records; a reason where a candidate has none.

    Neighbours are counted in the masked numeric variables, else in the keys, with the k of the plan's KAnonymity.
    """
    plan, data, masked, names = made_again(bench, name, candidate)
    numbers = [variable for variable in names if variable in data.numeric]
    on = numbers or list(data.keys) or list(names)
    held = next((m for m in plan.measures if isinstance(m, sm.risk.KAnonymity)), None) if not numbers else None
    rule = sm.recordwise.Unsafe(on=tuple(on), leave_out=True)
    rule = rule if held is None else replace(rule, k=held.k)
    try:
        table = sm.records(data, masked, rule=rule, count_to=COUNT_TO if len(data) > MOST_COUNTED else None)
    except sm.errors.SdcmapError as error:
        return Records(None, str(error))
    unsafe = table.frame().filter(~pl.col("safe")).select("row", "neighbours", "perturbation").sort("neighbours", "row")
    return Records(
        table.draw().to_dict(), "", table.summary(), table.rule.text,
        _line_words(table.rule, None if held is None else held.text), len(unsafe),
        unsafe.head(MOST_LISTED).to_dict(as_series=False),
    )  # fmt: skip


def _line_words(rule: Unsafe, measure: str | None) -> str:
    """What "unsafe" means in this plot, and whose line it is."""
    on = listed(rule.on)
    if rule.neighbourhood == "frequency":
        whose = (
            f"the line of {measure} in the plan" if measure else f"this plot's own line, k = {rule.k}, not a measure's"
        )
        return (
            f"A record is called unsafe here where fewer than {rule.k} records share its combination of {on}; a missing "
            f"value agrees with every value. That is {whose}."
        )
    return (
        f"A record is called unsafe here where few others are like it in {on} and masking moved it little: fewer than "
        f"{rule.k} neighbours, moved by less than {rule.r:g} of its size, and not enough of both together. That is this "
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
    columns = _categorical(data, masked, names)
    pair = _pair(columns, down, across)
    numbers = _numbers(data, masked, names)
    return Relations(
        draw_correlations(data, masked, numbers).to_dict() if len(numbers) > 1 else None,
        draw_table_change(data, masked, *pair).to_dict() if pair else None, columns, pair,
        "" if numbers or columns else "This file has neither two numbers nor two categorical columns.",
    )  # fmt: skip


def _categorical(data: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[str]:
    """Columns of categories in both files, those that were masked first."""
    released = [name for name in data.describing if name in masked.names]
    fit = [
        name for name in released
        if data.column(name).levels is not None and masked.column(name).levels is not None
        and data.level_count(name) <= MOST_CATEGORIES
    ]  # fmt: skip
    return sorted(fit, key=lambda name: (name not in names, data.names.index(name)))


def _pair(columns: list[str], down: str, across: str) -> list[str]:
    if len(columns) < 2:
        return []
    for asked in (down, across):
        if asked and asked not in columns:
            raise PlanError("a table is of two categorical columns that are released.")
    first = down or next(name for name in columns if name != across)
    second = across or next(name for name in columns if name != first)
    if first == second:
        raise PlanError("a table is of two different columns.")
    return [first, second]


def _numbers(data: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[str]:
    """Numeric columns of both files, those that were masked first."""
    both = [name for name in data.numeric if name in masked.names and masked.column(name).levels is None]
    return sorted(both, key=lambda name: (name not in names, data.names.index(name)))[:MOST_CORRELATED]


@router.get("/candidates/{candidate}/records/{row}")
def record_values(bench: Bench, name: str, candidate: str, row: int) -> RecordValues:
    """One record of the masked file (`row` from 0) beside the one it was made from, column by column."""
    _, data, masked, _ = made_again(bench, name, candidate)
    if not 0 <= row < len(masked):
        raise Absent("the masked file has no such row.")
    place = None if not masked.paired else row if masked.origin is None else int(masked.origin[row])
    before = {} if place is None else _values(data, place)
    roles = {variable.name: variable.role or "" for variable in data.schema.variables}
    values = [
        RecordValue(
            column, roles.get(column, ""), before.get(column), value, place is not None and before.get(column) != value
        )
        for column, value in _values(masked, row).items()
    ]
    reason = "" if place is not None else "This file is made up: none of its records is anybody's."
    return RecordValues(row, place, reason, values)


def _values(data: Microdata, row: int) -> dict[str, str]:
    frame = data.take(np.array([row])).frame()
    return {name: "missing" if cell is None else str(cell) for name, cell in frame.row(0, named=True).items()}
