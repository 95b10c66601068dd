"""The service, part seven: what masking did to the relations and the records of a candidate, and what parameters matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from sdcmap.errors import PlanError
from sdcmap.web import models
from sdcmap.web.answers import plain
from sdcmap.web.api_maps import made_again
from sdcmap.web.models import told
from sdcmap.web.room import Absent
from sdcmap.web.workbench import Bench

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata

router = APIRouter(prefix="/api/studies/{name}", tags=["candidates"])
MOST_CORRELATED = 10  # columns of the picture of correlations
MOST_CATEGORIES = 60  # of a column that a table is offered of


@router.get("/candidates/{candidate}/relations", response_model=models.Relations)
def relations(
    bench: Bench, name: str, candidate: str,
    down: Annotated[str, Query(description="A categorical column of the table.")] = "",
    across: Annotated[str, Query(description="The other one.")] = "",
) -> Response:  # fmt: skip
    """Correlations of the numbers and the table of two categorical columns, before and after masking, as heat maps."""
    from sdcmap.charts import draw_table_change
    from sdcmap.charts.correlations import draw_correlations

    _, data, masked, names = made_again(bench, name, candidate)
    columns = _categorical(data, masked, names)
    pair = _pair(columns, down, across)
    numbers = _numbers(data, masked, names)
    correlations = draw_correlations(data, masked, numbers).to_dict() if len(numbers) > 1 else None
    words = "" if numbers or columns else "This file has neither two numbers nor two categorical columns."
    return told(models.Relations.model_validate({
        "correlations": plain(correlations), "columns": columns, "pair": pair, "words": words,
        "table": plain(draw_table_change(data, masked, *pair).to_dict()) if pair else None,
    }))  # fmt: skip


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


@router.get("/candidates/{candidate}/records/{row}", response_model=models.RecordValues)
def record_values(bench: Bench, name: str, candidate: str, row: int) -> Response:
    """One record of the masked file (`row` from 0) beside the one it was made from, column by column."""
    _, data, masked, _ = made_again(bench, name, candidate)
    if not 0 <= row < len(masked):
        raise Absent("the masked file has no such row.")
    place = None if not masked.paired else row if masked.origin is None else int(masked.origin[row])
    after = _values(masked, row)
    before = {} if place is None else _values(data, place)
    roles = {variable.name: variable.role or "" for variable in data.schema.variables}
    values = [
        {"name": column, "role": roles.get(column, ""), "original": before.get(column), "masked": value,
         "changed": place is not None and before.get(column) != value}
        for column, value in after.items()
    ]  # fmt: skip
    reason = "" if place is not None else "This file is made up: none of its records is anybody's."
    return told(models.RecordValues.model_validate(
        {"row": row, "original_row": place, "reason": reason, "values": values}
    ))  # fmt: skip


def _values(data: Microdata, row: int) -> dict[str, str]:
    import numpy as np

    frame = data.take(np.array([row])).frame()
    return {name: "missing" if cell is None else str(cell) for name, cell in frame.row(0, named=True).items()}


@router.get("/parameters", response_model=models.ParameterCharts)
def parameters(bench: Bench, name: str) -> Response:
    """What the parameters of all methods have to do with risk and loss: which matter, and parallel coordinates."""
    from sdcmap.frontier.parameters import Parameters

    ru, plan = bench.views.map(name)
    try:
        found = Parameters.of(ru, plan.expanded)
        charts: dict[str, Any] = {
            "importance": found.draw_importance().to_dict(), "coordinates": found.draw_choices().to_dict(), "reason": ""
        }  # fmt: skip
    except PlanError as error:
        charts = {"importance": None, "coordinates": None, "reason": str(error)}
    return told(models.ParameterCharts.model_validate(plain(charts)))
