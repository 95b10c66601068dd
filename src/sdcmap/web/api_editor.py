"""The service, part two and a half: what the editor of a plan asks for: what a recode makes of a column, and prices."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, StringConstraints

from sdcmap.core.named_files import files_below
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.web import models
from sdcmap.web.answers import Table
from sdcmap.web.api_plans import Title, Toml
from sdcmap.web.models import told
from sdcmap.web.workbench import Bench

router = APIRouter(prefix="/api", tags=["plans"])


class RecodeDraft(BaseModel):
    """A recode as a plan's table has it; it need not be whole yet."""

    method: Table


class Choice(BaseModel):
    """A class of methods or measures that somebody thinks of adding to a plan; "": none yet."""

    toml: Toml
    group: Literal["methods", "measures"]
    type: Annotated[str, StringConstraints(max_length=200)] = ""
    study: Title | Literal[""] = ""


@router.post("/studies/{name}/recodes", response_model=models.Recodes)
def recodes(bench: Bench, name: str, draft: RecodeDraft) -> Response:
    """What a recode makes of each column that it names: categories with their records, before and after."""
    from sdcmap.explore.recoding import levels_of, recoded

    room, views = bench.room, bench.views
    data = views.data_of(views.plan(room.plan(name).read_text(encoding="utf-8")), name)
    path = draft.method.get("hierarchy")
    with files_below(room.folder):
        columns = [models.RecodedColumn.model_validate(asdict(one)) for one in recoded(data, draft.method)]
        try:
            levels = levels_of(path) if isinstance(path, str) and path else None
        except SdcmapError:
            levels = None  # the problem of each column says why
    return told(models.Recodes(columns=columns, levels=levels))


@router.post("/prices", response_model=models.Prices)
def prices(bench: Bench, choice: Choice) -> Response:
    """What a plan costs, and what a method or measure would add to it, before it is chosen: guessed seconds of one core."""
    from sdcmap.core.catalogue import named_class
    from sdcmap.core.measure import Measure
    from sdcmap.core.method import Method
    from sdcmap.explore.pricing import example_of, price_of, stated_price
    from sdcmap.risk import RISKS
    from sdcmap.utility import UTILITIES

    plan, data, now = bench.views.cost(choice.toml, choice.study)
    base: type[Method | Measure] = Method if choice.group == "methods" else Measure
    cls = named_class(choice.type) if choice.type else None
    if choice.type and not (isinstance(cls, type) and issubclass(cls, base)):
        raise PlanError(f"there is no {base.__name__.lower()} of that name.")
    example = example_of(cls, data) if cls is not None and issubclass(cls, base) else None
    measures = (*RISKS, *UTILITIES) if choice.group == "measures" else ()
    stated = {measure.__name__: stated_price(measure, data, plan) for measure in measures}
    return told(models.Prices(
        candidates=now.candidates, seconds=now.seconds, draw=now.of_a_draw,
        stated={name: seconds for name, seconds in stated.items() if seconds is not None},
        type=choice.type, example="" if example is None else example.text,
        price=None if example is None else price_of(example, data, plan, now),
    ))  # fmt: skip
