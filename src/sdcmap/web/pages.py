"""The pages. Each is a frame; what it shows comes from the service, by the scripts in static/.

A new page of a study is a row in PAGES, a template and a script of the row's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

import sdcmap
from sdcmap.files.formats import endings, words
from sdcmap.web.workbench import Bench
from sdcmap.web.workspace import Absent

HOME = Path(__file__).parent
MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PROFILES = ("public-use", "scientific-use", "teaching", "business")  # by name: the first page needs no numpy
IMPORTED = re.compile(r'^import [^;]*?"\./(\w+\.js)";', re.MULTILINE)
DAY = {"cache-control": "private, max-age=86400"}


@dataclass(frozen=True)
class Page:
    """One page: /studies/STUDY/NAME shows templates/NAME.html, filled by static/NAME.js."""

    name: str
    title: str  # in the navigation and at the window's top
    about: str = ""  # what one does there, for the first page
    home: Path = HOME  # the folder of its templates/ and static/

    @property
    def template(self) -> str:
        return f"{self.name}.html"

    @property
    def script(self) -> str:
        return f"{self.name}.js"


START = Page("home", "sdcmap: choose what to release")
COMPARE = Page("compare", "Compare two studies")
PAGES = (
    Page("data", "Data", "state what each column is."),
    Page("plan", "Plan", "what to make, what to measure, how to choose."),
    Page("sweep", "Sweep", "every candidate is made and scored."),
    Page("map", "Map", "risk against utility, and the frontier."),
    Page("candidate", "Candidate", "what masking did to the data."),
    Page("choose", "Choose and release", "the reason in words, the checks, the files."),
    Page("decision", "Decision", "which limits leave what to release."),
)
FIRST = "plan"  # the page of a study that is shown unasked

router = APIRouter(include_in_schema=False)


def page_named(name: str) -> Page:
    """The page of this name."""
    for page in PAGES:
        if page.name == name:
            return page
    raise Absent("there is no such page.")


def _homes() -> tuple[Path, ...]:
    return tuple(dict.fromkeys((HOME, *(page.home for page in PAGES))))


@cache
def _templates(homes: tuple[Path, ...]) -> jinja2.Environment:
    loader = jinja2.FileSystemLoader([home / "templates" for home in homes])
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def render(template: str, page: Page | None = None, **facts: Any) -> str:
    """A page as text."""
    made = _templates(_homes()).get_template(template)
    modules = _modules(_homes(), page.script) if page else ()
    return made.render(pages=PAGES, page=page, modules=modules, version=sdcmap.__version__, **facts)


def _page(request: Request, page: Page, **facts: Any) -> str:
    """A page for this browser: `root` stands before every path of it."""
    return render(page.template, page, root=str(request.scope["root_path"]), **facts)


@router.get("/", response_class=HTMLResponse)
def home(request: Request, bench: Bench) -> str:
    room, archived = bench.room, bench.shelf.is_archived
    studies = [{"name": n, "begun": room.is_begun(n), "archived": archived(n)} for n in room.studies()]
    forms = {"limit": room.upload_limit, "endings": endings(), "formats": words()}
    return _page(request, START, studies=studies, files=room.files(), **forms)


@router.get("/compare", response_class=HTMLResponse)
def compare(request: Request, bench: Bench, first: str, second: str) -> str:
    for name in (first, second):
        bench.room.study(name)
    return _page(request, COMPARE, first=first, second=second)


@router.get("/data", response_class=HTMLResponse)
def data(request: Request, bench: Bench, file: str) -> str:
    bench.room.file(file)
    return _page(request, page_named("data"), file=file, study="", profiles=PROFILES)


@router.get("/studies/{name}", response_class=HTMLResponse)
@router.get("/studies/{name}/{step}", response_class=HTMLResponse)
def study_page(request: Request, bench: Bench, name: str, step: str = FIRST) -> str:
    bench.room.plan(name)
    return _page(request, page_named(step), study=name, file="", profiles=PROFILES)


@router.get("/static/vega.js")
def vega(bench: Bench) -> Response:
    """The charts' JavaScript."""
    return Response(bench.drawing.vega(), media_type="text/javascript; charset=utf-8", headers=DAY)


@cache
def _modules(homes: tuple[Path, ...], script: str) -> tuple[str, ...]:
    """The scripts that a script imports, directly or not: a browser that is told of them loads all at once."""
    files, found, left = _static(homes), dict[str, None](), [script]
    while left:
        for name in IMPORTED.findall(files.get(left.pop(), b"").decode()):
            if name not in found and name != script:
                found[name] = None
                left.append(name)
    return tuple(found)


@cache
def _static(homes: tuple[Path, ...]) -> dict[str, bytes]:
    files = (path for home in reversed(homes) for path in (home / "static").iterdir())  # our own files come first
    return {path.name: path.read_bytes() for path in files if path.suffix in MEDIA}


@router.get("/static/{file}")
def static(file: str) -> Response:
    files = _static(_homes())
    if file not in files:
        raise Absent("there is no such file.")
    return Response(files[file], media_type=f"{MEDIA[Path(file).suffix]}; charset=utf-8")


@router.get("/favicon.ico")
def icon() -> Response:
    return static("icon.svg")
