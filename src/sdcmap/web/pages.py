"""The pages. Each is a frame; what it shows comes from the service, by the scripts in static/."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

import sdcmap
from sdcmap.files.formats import endings, words
from sdcmap.web.room import Absent

HOME = Path(__file__).parent
STEPS = (
    ("data", "Data"), ("plan", "Plan"), ("sweep", "Sweep"), ("map", "Map"), ("candidate", "Candidate"),
    ("choose", "Choose and release"), ("decision", "Decision"),
)  # fmt: skip
MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
DAY = {"cache-control": "private, max-age=86400"}

router = APIRouter(include_in_schema=False)


@cache
def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(HOME / "templates")
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **facts: Any) -> str:
    """A page as text."""
    return _templates().get_template(template).render(steps=STEPS, version=sdcmap.__version__, **facts)


@router.get("/", response_class=HTMLResponse)
def home(request: Request) -> str:
    room = request.app.state.room
    return render("home.html", studies=room.studies(), files=room.files(), limit=room.upload_limit,
                  endings=endings(), formats=words())  # fmt: skip


@router.get("/data", response_class=HTMLResponse)
def data(request: Request, file: str) -> str:
    request.app.state.room.file(file)
    return render("data.html", file=file, study="", step="data")


@router.get("/studies/{name}", response_class=HTMLResponse)
@router.get("/studies/{name}/{step}", response_class=HTMLResponse)
def page(request: Request, name: str, step: str = "plan") -> str:
    request.app.state.room.plan(name)
    if step not in dict(STEPS):
        raise Absent("there is no such page.")
    return render(f"{step}.html", study=name, step=step, file="")


@router.get("/static/vega.js")
def vega(request: Request) -> Response:
    """The charts' JavaScript."""
    return Response(request.app.state.drawing.vega(), media_type="text/javascript; charset=utf-8", headers=DAY)


@cache
def _static() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (HOME / "static").iterdir() if path.suffix in MEDIA}


@router.get("/static/{file}")
def static(file: str) -> Response:
    if file not in _static():
        raise Absent("there is no such file.")
    return Response(_static()[file], media_type=f"{MEDIA[Path(file).suffix]}; charset=utf-8")


@router.get("/favicon.ico")
def icon() -> Response:
    return static("icon.svg")
