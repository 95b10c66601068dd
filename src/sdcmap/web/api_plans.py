"""The service, part two: studies and their plans, and what the editor of a plan asks for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import tomli_w
from fastapi import APIRouter
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.core import Measure, Method, PlanError, SdcmapError
from sdcmap.core.catalog import find_class
from sdcmap.core.named_files import digest_of, read_verified, restrict_files_to
from sdcmap.core.plan_text import read_table
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.explore import parameter_forms
from sdcmap.explore.column_bars import RecodePreview, preview_recode
from sdcmap.explore.first_look import source_of
from sdcmap.explore.hierarchy_drafts import (
    DraftHierarchy,
    check_draft,
    count_categories,
    format_hierarchy,
    prefix_levels,
)
from sdcmap.explore.parameter_forms import Form
from sdcmap.explore.plan_differences import plan_differences
from sdcmap.files.dialect import explicit_fields
from sdcmap.risk import RISKS
from sdcmap.study.plan import Plan
from sdcmap.study.plan_remarks import remarks
from sdcmap.utility import UTILITIES
from sdcmap.web.answers import Table
from sdcmap.web.api_files import Codes, Name, Roles, Stated
from sdcmap.web.models import Answer
from sdcmap.web.shelf import EarlierPlan, version_of
from sdcmap.web.sweeps import SweepStatus
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import Busy

router = APIRouter(prefix="/api", tags=["plans"])
Toml = Annotated[str, StringConstraints(max_length=500_000)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Label = Annotated[str, StringConstraints(max_length=500)]
Rows = Annotated[list[Annotated[list[Label], Field(min_length=1, max_length=20)]], Field(max_length=1000)]
File = Annotated[str, StringConstraints(max_length=300)]


class NewStudy(Stated):
    """A study to begin: a name, a file, the roles of its columns, and for whom the release is."""

    name: Title
    roles: Roles
    profile: Literal["public-use", "scientific-use", "teaching", "business"] = "public-use"


class StatedRoles(BaseModel):
    """The role of every column, kinds where the inferred is wrong, and codes for missing values (null: as they are)."""

    roles: Roles = Field(max_length=5000)
    kinds: Roles = Field(default_factory=dict, max_length=5000)
    missing: Codes | None = Field(default=None, max_length=5000)


class Draft(BaseModel):
    """A plan, as TOML text or as the table that the text stands for; `cost` asks for a guess, which takes seconds;
    `study` is the study that the plan is for."""

    toml: Toml | None = None
    table: Table | None = None
    cost: bool = False
    study: Annotated[str, StringConstraints(max_length=100)] = ""


class Text(BaseModel):
    """A plan to keep; `version`: of the plan it was made from. Where another was kept meanwhile, the answer is 412."""

    toml: Toml
    version: Annotated[str, StringConstraints(max_length=64)] = ""


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


class Forms(Answer):
    """The forms of every class; `parts`: of values that a field takes as a part, by the group it names."""

    methods: list[Form]
    measures: list[Form]
    rules: list[Form]
    parts: dict[str, list[Form]]


class SavedPlan(Answer):
    """A plan as it was saved, and what does not fit its roles; `version` as in StudyPlan."""

    name: str
    toml: str
    version: str
    candidates: int
    problems: list[str]


class StudyPlan(Answer):
    """What a study is about: its plan as text and as a table, and how far it is. `version`: of the text; sent back with a
    change, it guards against overwriting another's."""

    name: str
    toml: str
    version: str
    table: dict[str, Any] | None
    begun: bool
    releases: int
    sweep: SweepStatus


@dataclass(frozen=True)
class ReplacedPlan(EarlierPlan):
    """A plan that another one took the place of, and what the later one states differently."""

    changed: list[str]


class EarlierPlans(Answer):
    plans: list[ReplacedPlan]


class Axes(Answer):
    risk: tuple[str, ...]
    utility: str


class PlanColumn(Answer):
    name: str
    kind: str
    role: str | None


@dataclass
class CheckedPlan:
    """A plan as text and table, and every problem of it at once. `seconds` that one core would need, and `draw`, what one
    more draw of each method adds, are guessed where that was asked for."""

    toml: str
    table: dict[str, Any] | None
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    candidates: int | None = None
    seconds: float | None = None
    draw: float | None = None
    measures: list[str] = field(default_factory=list)
    axes: Axes | None = None
    columns: list[PlanColumn] = field(default_factory=list)


class Recodes(Answer):
    """What a recode makes of each column; `levels`: the coarsest of its hierarchy file, where it names one."""

    columns: list[RecodePreview]
    levels: int | None


class Prices(Answer):
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


class KeptHierarchy(Answer):
    """A hierarchy that was saved; `levels`: its coarsest."""

    name: str
    version: str
    levels: int


@router.get("/forms")
def forms() -> Forms:
    """The fields of every method, measure and rule, and of their parts: type, range, default and words."""
    groups = parameter_forms.forms()
    methods, measures, rules = (groups.pop(group) for group in ("methods", "measures", "rules"))
    return Forms(methods, measures, rules, groups)


@router.post("/studies", status_code=201)
def begin(bench: Bench, new: NewStudy) -> SavedPlan:
    """Write a starting plan for a file; nothing is swept yet."""
    path = bench.room.free_name(new.name)
    source = new.source
    plan = replace(bench.views.look(source), source=source.with_dialect(bench.room.folder)).plan(
        source.path, new.profile
    )
    plan.write(path)
    return _saved(new.name, plan)


@router.get("/studies/{name}")
def study(bench: Bench, name: str) -> StudyPlan:
    """What a study is about: its plan, and how far it is."""
    text = bench.room.plan(name).read_text(encoding="utf-8")
    return StudyPlan(
        name, text, version_of(text), _table(text), bench.room.is_begun(name), bench.room.releases(name),
        bench.sweeps.status(name),
    )  # fmt: skip


@router.put("/studies/{name}/plan")
def write_plan(bench: Bench, name: str, text: Text) -> SavedPlan:
    """Keep a plan that has no problem; a study that was begun may grow by it."""
    plan = bench.views.plan(text.toml)
    if bench.sweeps.status(name).is_running:
        raise Busy("a sweep of this study is running: pause it, then change the plan.")
    bench.shelf.save_plan(name, plan.toml(), text.version)
    return _saved(name, plan)


def _saved(name: str, plan: Plan, problems: Sequence[str] = ()) -> SavedPlan:
    text = plan.toml()
    return SavedPlan(name, text, version_of(text), plan.count, list(problems))


@router.get("/studies/{name}/plans")
def earlier_plans(bench: Bench, name: str) -> EarlierPlans:
    """What was saved before the plan that counts, the newest first, and what was changed in it then."""
    later = bench.room.plan(name).read_text(encoding="utf-8")
    plans = []
    for plan in bench.shelf.earlier_plans(name):
        plans.append(ReplacedPlan(plan.saved, plan.toml, _changed(bench, plan.toml, later)))
        later = plan.toml
    return EarlierPlans(plans)


def _changed(bench: Workbench, before: str, after: str) -> list[str]:
    """What the later of two plans states differently; nothing where one of them can no longer be read."""
    try:
        differences = plan_differences(bench.views.plan(before), bench.views.plan(after))
    except SdcmapError:
        return []
    return [difference.what for difference in differences]


@router.put("/studies/{name}/roles")
def state_roles(bench: Bench, name: str, stated: StatedRoles) -> SavedPlan:
    """Keep other roles in the plan of a study that was not begun; scores belong to the roles that they were made with."""
    plan = bench.views.plan_of(name)
    if bench.room.is_begun(name):
        raise Busy("the study was begun with the roles that its plan states: begin another one with these.")
    if plan.data is None:
        raise PlanError("the plan names no data: add a [data] part with path and roles.")
    codes = plan.data.missing if stated.missing is None else stated.missing
    now = source_of(plan.data.path, stated.roles, stated.kinds, codes)
    kept = {name: getattr(plan.data, name) for name in ("census", "known_by", *explicit_fields(plan.data.dialect))}
    plan = replace(plan, data=replace(now, **kept))
    problems = plan.problems_with(bench.views.data_of(plan))
    bench.shelf.save_plan(name, plan.toml())
    return _saved(name, plan, problems)


@router.post("/plans")
def check(bench: Bench, draft: Draft) -> CheckedPlan:
    """Every problem of a plan at once, its number of candidates, and the plan both as text and as a table."""
    try:
        text = draft.toml if draft.toml is not None else tomli_w.dumps(draft.table or {})
    except (TypeError, ValueError, AttributeError):
        raise PlanError("the table holds something that TOML cannot hold, such as null.") from None
    checked = CheckedPlan(text, _table(text))
    try:
        written = bench.views.plan(text)
        checked.candidates, checked.measures = written.count, [m.text for m in written.measures]
        checked.axes = Axes(written.risk, written.utility)
        data = bench.views.data_of(written, draft.study)
        released = [v for v in data.schema.variables if v.name not in data.unreleased_columns]
        checked.columns = [PlanColumn(v.name, v.kind, v.role) for v in released]
        plan = written.with_risk(data)
        checked.problems, checked.remarks = plan.problems_with(data), list(remarks(data, plan, written))
        if draft.cost and not checked.problems:
            cost = bench.views.cost(text, draft.study)[2]
            checked.seconds, checked.draw = cost.seconds, cost.of_a_draw
    except PlanError as error:
        checked.problems = list(error.problems)
    except SdcmapError as error:
        checked.problems = [str(error)]
    return checked


def _table(text: str) -> dict[str, Any] | None:
    """The table that a TOML text stands for, dates and endless numbers as words, parts that are texts as tables; None where
    it is no TOML."""
    try:
        table: dict[str, Any] = _worded(read_table(text))
    except PlanError:
        return None
    for group in ("methods", "measures"):
        if isinstance(table.get(group), list):
            table[group] = [parameter_forms.normalize_spec(entry) for entry in table[group]]
    return table


def _worded(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _worded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_worded(value) for value in part]
    return part if isinstance(part, bool | int | float | str) else str(part)


# ---- what the editor asks for: recodes, hierarchies and prices ---------------------------------------------------
@router.post("/studies/{name}/recodes")
def recodes(bench: Bench, name: str, draft: RecodeDraft) -> Recodes:
    """What a recode makes of each column that it names: categories with their records, before and after."""
    data = bench.views.data_of(bench.views.plan_of(name), name)
    path, levels = draft.method.get("hierarchy"), None
    with restrict_files_to(bench.room.folder):
        columns = preview_recode(data, draft.method)
        if isinstance(path, str) and path:
            with suppress(SdcmapError):  # the problem of each column says why
                levels = Hierarchy.parse(read_verified(path, digest_of(path, "Recode.hierarchy")), path).levels
    return Recodes(columns, levels)


@router.post("/studies/{name}/hierarchies/drafts")
def draft_hierarchy(bench: Bench, name: str, draft: HierarchyDraft) -> OpenedHierarchy:
    """Categories with their records, what each level makes of them, and why it cannot be saved yet."""
    records = count_categories(bench.views.data_of(bench.views.plan_of(name), name), draft.on)
    version, rows = "", prefix_levels(list(records)) if draft.begin == "prefixes" else draft.rows
    if draft.begin == "file":
        with restrict_files_to(bench.room.folder):
            version = digest_of(draft.file, "hierarchy")
            rows = Hierarchy.parse(read_verified(draft.file, version), draft.file).rows
    return OpenedHierarchy(**vars(check_draft(records, rows)), version=version)


@router.put("/studies/{name}/hierarchies")
def keep_hierarchy(bench: Bench, name: str, given: HierarchyToKeep) -> KeptHierarchy:
    """Keep a hierarchy as a private CSV file of the served folder; no file is replaced that was not opened as it is now."""
    plan, folder = bench.views.plan_of(name), bench.room.folder
    if plan.data is not None and folder / plan.data.path == folder / given.file:
        raise Busy("that is the data file of this study: take another name.")
    text = format_hierarchy(given.rows)
    bench.room.keep(given.file, text, given.version)
    return KeptHierarchy(given.file, version_of(text), len(given.rows[0]) - 1)


@router.post("/prices")
def prices(bench: Bench, choice: Choice) -> Prices:
    """What a plan costs, and what a method or measure would add to it, before it is chosen: guessed seconds of one core."""
    plan, data, now = bench.views.cost(choice.toml, choice.study)
    base: type[Method | Measure] = Method if choice.group == "methods" else Measure
    cls = find_class(choice.type) if choice.type else base
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PlanError(f"there is no {base.__name__.lower()} of that name.")
    example = parameter_forms.example_of(cls, data) if choice.type else None
    measures = (*RISKS, *UTILITIES) if choice.group == "measures" else ()
    stated = {
        m.__name__: price for m in measures if (price := parameter_forms.price_from_formula(m, data, plan)) is not None
    }
    words, price = ("", None) if example is None else (example.text, parameter_forms.price_of(example, data, plan, now))
    return Prices(now.candidates, now.seconds, now.of_a_draw, stated, choice.type, words, price)
