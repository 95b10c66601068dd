"""The service, part three: what the editor of a plan asks for: recodes, hierarchies and prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.core import Measure, Method, PlanError, SdcmapError
from sdcmap.core.catalogue import named_class
from sdcmap.core.named_files import content_of, digest_of, files_below
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.explore.bars import Recoded, levels_of, recoded
from sdcmap.explore.hierarchies import DraftHierarchy, by_first_characters, categories_of, drafted, written
from sdcmap.explore.parameter_forms import example_of, price_of, stated_price
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES
from sdcmap.web.answers import Table
from sdcmap.web.api_files import Name
from sdcmap.web.api_plans import Title, Toml
from sdcmap.web.room import Busy
from sdcmap.web.shelf import version_of
from sdcmap.web.workbench import Bench

router = APIRouter(prefix="/api", tags=["plans"])
Label = Annotated[str, StringConstraints(max_length=500)]
Rows = Annotated[list[Annotated[list[Label], Field(min_length=1, max_length=20)]], Field(max_length=1000)]
File = Annotated[str, StringConstraints(max_length=300)]


class RecodeDraft(BaseModel):
    """A recode as a plan's table has it; it need not be whole yet."""

    method: Table


class Choice(BaseModel):
    """A class of methods or measures that somebody thinks of adding to a plan; "": none yet."""

    toml: Toml
    group: Literal["methods", "measures"]
    type: Annotated[str, StringConstraints(max_length=200)] = ""
    study: Title | Literal[""] = ""


class HierarchyDraft(BaseModel):
    """Columns, and what is drawn up for their categories so far: the rows as given (none: to begin with), first characters,
    or what a file of the folder holds."""

    on: list[Name] = Field(max_length=5000)
    begin: Literal["rows", "prefixes", "file"] = "rows"
    rows: Rows = Field(default_factory=list)
    file: File = ""


class HierarchyToKeep(BaseModel):
    """A hierarchy to keep under a file's name; `version`: of the file that it replaces, empty where it is a new one."""

    file: File
    rows: Rows
    version: Annotated[str, StringConstraints(max_length=64)] = ""


@dataclass(frozen=True)
class Recodes:
    """What a recode makes of each column; `levels`: the coarsest of its hierarchy file, where it names one."""

    columns: list[Recoded]
    levels: int | None


@dataclass(frozen=True)
class Prices:
    """Seconds of one core, guessed: of the plan as it is, and what a choice would add to it.

    draw : what one more draw of each method adds. stated : what each dear measure would add, by its formula. example : the
    method or measure that was priced; empty: its fields must be filled in first.
    """

    candidates: int
    seconds: float
    draw: float
    stated: dict[str, float]
    type: str
    example: str
    price: float | None


@dataclass(frozen=True)
class OpenedHierarchy(DraftHierarchy):
    """A hierarchy that is drawn up; `version`: of the file that was opened, to replace it."""

    version: str


@dataclass(frozen=True)
class KeptHierarchy:
    """A hierarchy that was saved; `levels`: its coarsest."""

    name: str
    version: str
    levels: int


@router.post("/studies/{name}/recodes")
def recodes(bench: Bench, name: str, draft: RecodeDraft) -> Recodes:
    """What a recode makes of each column that it names: categories with their records, before and after."""
    data = bench.views.data_of(bench.views.plan_of(name), name)
    path = draft.method.get("hierarchy")
    with files_below(bench.room.folder):
        columns = recoded(data, draft.method)
        try:
            levels = levels_of(path) if isinstance(path, str) and path else None
        except SdcmapError:
            levels = None  # the problem of each column says why
    return Recodes(columns, levels)


@router.post("/studies/{name}/hierarchies/drafts")
def draft_hierarchy(bench: Bench, name: str, draft: HierarchyDraft) -> OpenedHierarchy:
    """Categories with their records, what each level makes of them, and why it cannot be saved yet."""
    records = categories_of(bench.views.data_of(bench.views.plan_of(name), name), draft.on)
    rows: Sequence[Sequence[str]] = draft.rows
    version = ""
    if draft.begin == "prefixes":
        rows = by_first_characters(list(records))
    elif draft.begin == "file":
        with files_below(bench.room.folder):
            version = digest_of(draft.file, "hierarchy")
            rows = Hierarchy.parse(content_of(draft.file, version), draft.file).rows
    return OpenedHierarchy(**vars(drafted(records, rows)), version=version)


@router.put("/studies/{name}/hierarchies")
def keep_hierarchy(bench: Bench, name: str, given: HierarchyToKeep) -> KeptHierarchy:
    """Keep a hierarchy as a private CSV file of the served folder; no file is replaced that was not opened as it is now."""
    plan, folder = bench.views.plan_of(name), bench.room.folder
    if plan.data is not None and folder / plan.data.path == folder / given.file:
        raise Busy("that is the data file of this study: take another name.")
    text = written(given.rows)
    bench.room.keep(given.file, text, given.version)
    return KeptHierarchy(given.file, version_of(text), len(given.rows[0]) - 1)


@router.post("/prices")
def prices(bench: Bench, choice: Choice) -> Prices:
    """What a plan costs, and what a method or measure would add to it, before it is chosen: guessed seconds of one core."""
    plan, data, now = bench.views.cost(choice.toml, choice.study)
    base: type[Method | Measure] = Method if choice.group == "methods" else Measure
    cls = named_class(choice.type) if choice.type else None
    if choice.type and not (isinstance(cls, type) and issubclass(cls, base)):
        raise PlanError(f"there is no {base.__name__.lower()} of that name.")
    example = example_of(cls, data) if cls is not None and issubclass(cls, base) else None
    measures = (*RISKS, *UTILITIES) if choice.group == "measures" else ()
    stated = {measure.__name__: stated_price(measure, data, plan) for measure in measures}
    return Prices(
        now.candidates, now.seconds, now.of_a_draw,
        {name: seconds for name, seconds in stated.items() if seconds is not None}, choice.type,
        "" if example is None else example.text, None if example is None else price_of(example, data, plan, now),
    )  # fmt: skip
