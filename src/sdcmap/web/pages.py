"""The pages. Each page is a frame; the scripts in static/ fill it with data from the service.

To add a page of a study, add a row to PAGES, and a template and a script with the row's name.
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
from sdcmap.web.workspace import NotFound

WEB_FOLDER = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PROFILES = ("public-use", "scientific-use", "teaching", "business")  # repeated here: the home page must not load numpy
IMPORT_PATTERN = re.compile(r'^import [^;]*?"\./(\w+\.js)";', re.MULTILINE)
CACHE_ONE_DAY = {"cache-control": "private, max-age=86400"}


@dataclass(frozen=True)
class Page:
    """One page: /studies/STUDY/NAME shows templates/NAME.html, filled by static/NAME.js."""

    name: str
    title: str  # in the navigation and in the window title
    about: str = ""  # what the page is for, shown on the home page
    home: Path = WEB_FOLDER  # the folder of its templates/ and static/

    @property
    def template(self) -> str:
        return f"{self.name}.html"

    @property
    def script(self) -> str:
        return f"{self.name}.js"


HOME_PAGE = Page("home", "sdcmap: choose what to release")
COMPARE_PAGE = Page("compare", "Compare two studies")
PAGES = (
    Page("data", "Data", "state the role of each column."),
    Page("plan", "Plan", "select masking methods, measures and a rule."),
    Page("sweep", "Sweep", "create and score every candidate release."),
    Page("map", "Map", "compare candidates by risk and utility."),
    Page("candidate", "Candidate", "see what masking did to the data."),
    Page("choose", "Choose and release", "apply the rule, run the release checks, write the files."),
    Page("decision", "Decision", "see what each limit would allow."),
)
DEFAULT_PAGE = "plan"  # of a study, if the address names none

router = APIRouter(include_in_schema=False)


def page_named(name: str) -> Page:
    """Return the page with this name."""
    for page in PAGES:
        if page.name == name:
            return page
    raise NotFound("there is no such page.")


def _page_folders() -> tuple[Path, ...]:
    return tuple(dict.fromkeys((WEB_FOLDER, *(page.home for page in PAGES))))


@cache
def _templates(folders: tuple[Path, ...]) -> jinja2.Environment:
    loader = jinja2.FileSystemLoader([folder / "templates" for folder in folders])
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def render(template: str, page: Page | None = None, **facts: Any) -> str:
    """Return a page as HTML."""
    source = _templates(_page_folders()).get_template(template)
    modules = _modules(_page_folders(), page.script) if page else ()
    return source.render(pages=PAGES, page=page, modules=modules, version=sdcmap.__version__, **facts)


def _page(request: Request, page: Page, **facts: Any) -> str:
    """Return a page for this browser; all its paths start with `root`."""
    return render(page.template, page, root=str(request.scope["root_path"]), **facts)


@router.get("/", response_class=HTMLResponse)
def home(request: Request, bench: Bench) -> str:
    workspace, archived = bench.workspace, bench.store.is_archived
    studies = [{"name": n, "begun": workspace.is_begun(n), "archived": archived(n)} for n in workspace.studies()]
    forms = {"limit": workspace.upload_limit, "endings": endings(), "formats": words()}
    return _page(request, HOME_PAGE, studies=studies, files=workspace.files(), **forms)


@router.get("/compare", response_class=HTMLResponse)
def compare(request: Request, bench: Bench, first: str, second: str) -> str:
    for name in (first, second):
        bench.workspace.study(name)
    return _page(request, COMPARE_PAGE, first=first, second=second)


@router.get("/data", response_class=HTMLResponse)
def data(request: Request, bench: Bench, file: str) -> str:
    bench.workspace.file(file)
    return _page(request, page_named("data"), file=file, study="", profiles=PROFILES)


@router.get("/studies/{name}", response_class=HTMLResponse)
@router.get("/studies/{name}/{step}", response_class=HTMLResponse)
def study_page(request: Request, bench: Bench, name: str, step: str = DEFAULT_PAGE) -> str:
    bench.workspace.plan(name)
    return _page(request, page_named(step), study=name, file="", profiles=PROFILES)


@router.get("/static/vega.js")
def vega(bench: Bench) -> Response:
    """Return the charts' JavaScript."""
    return Response(bench.renderer.vega(), media_type="text/javascript; charset=utf-8", headers=CACHE_ONE_DAY)


@cache
def _modules(folders: tuple[Path, ...], script: str) -> tuple[str, ...]:
    """Return the scripts that a script imports, directly or indirectly, so that a browser can load all of them at once."""
    files, imported, queue = _static(folders), dict[str, None](), [script]
    while queue:
        for name in IMPORT_PATTERN.findall(files.get(queue.pop(), b"").decode()):
            if name not in imported and name != script:
                imported[name] = None
                queue.append(name)
    return tuple(imported)


@cache
def _static(folders: tuple[Path, ...]) -> dict[str, bytes]:
    # Later entries win: a page from a plug-in cannot replace our own files.
    files = (path for folder in reversed(folders) for path in (folder / "static").iterdir())
    return {path.name: path.read_bytes() for path in files if path.suffix in MEDIA_TYPES}


@router.get("/static/{file}")
def static(file: str) -> Response:
    files = _static(_page_folders())
    if file not in files:
        raise NotFound("there is no such file.")
    return Response(files[file], media_type=f"{MEDIA_TYPES[Path(file).suffix]}; charset=utf-8")


@router.get("/favicon.ico")
def icon() -> Response:
    return static("icon.svg")
