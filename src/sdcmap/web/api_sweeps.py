"""The service, part three: sweeps."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel

from sdcmap.web import models
from sdcmap.web.models import told
from sdcmap.web.workbench import Bench

router = APIRouter(prefix="/api/studies/{name}", tags=["sweeps"])


class Wanted(BaseModel):
    """`running` starts a sweep or goes on with it, `searching` a search that begins with the plan's own candidates;
    `paused` and `cancelled` stop it and keep what is scored. What was paused or cancelled is not taken up by the next
    server; what was running is."""

    state: Literal["running", "searching", "paused", "cancelled"]


@router.get("/sweep", response_model=models.Sweep)
def status(bench: Bench, name: str) -> Response:
    """State, candidates done and in all, candidates a second, seconds left, and why some could not be made."""
    return told(models.Sweep.model_validate(bench.sweeps.status(name)))


@router.put("/sweep", response_model=models.Sweep)
def want(bench: Bench, name: str, wanted: Wanted) -> Response:
    """Start, pause, go on with or cancel the sweep of a study; a second writer gets a clear answer (409)."""
    bench.views.plan(bench.room.plan(name).read_text(encoding="utf-8"))
    bench.sweeps.want(name, wanted.state)
    return told(models.Sweep.model_validate(bench.sweeps.status(name)))
