"""Routes for plans: write, check and save a plan, and what its editor needs (recodes, hierarchies, costs)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

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
from sdcmap.study.plan_layout import expand, format_plan
from sdcmap.study.plan_remarks import remarks
from sdcmap.utility import UTILITIES
from sdcmap.web.api_files import Codes, FileDescription, Name, Roles
from sdcmap.web.response_models import ResponseModel
from sdcmap.web.responses import Table
from sdcmap.web.study_store import EarlierPlan, version_of
from sdcmap.web.sweeps import SweepStatus
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import Busy

router = APIRouter(prefix="/api", tags=["plans"])
Toml = Annotated[str, StringConstraints(max_length=500_000)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Label = Annotated[str, StringConstraints(max_length=500)]
Rows = Annotated[list[Annotated[list[Label], Field(min_length=1, max_length=20)]], Field(max_length=1000)]
File = Annotated[str, StringConstraints(max_length=300)]


class NewStudy(FileDescription):
    """A new study: a name, a file, the roles of its columns, and for whom the release is."""

    name: Title
    roles: Roles
    profile: Literal["public-use", "scientific-use", "teaching", "business"] = "public-use"


class StatedRoles(BaseModel):
    """The role of every column, kinds if the inferred ones are wrong, and codes for missing values (null: unchanged)."""

    roles: Roles = Field(max_length=5000)
    kinds: Roles = Field(default_factory=dict, max_length=5000)
    missing: Codes | None = Field(default=None, max_length=5000)


class PlanDraft(BaseModel):
    """A plan to check, as TOML text or as a table; `cost` requests an estimate of the run time, which takes seconds."""

    toml: Toml | None = None
    table: Table | None = None
    cost: bool = False
    study: Annotated[str, StringConstraints(max_length=100)] = ""


class PlanText(BaseModel):
    """A plan to save; `version` is that of the plan it was edited from. If another was saved since, the status is 412."""

    toml: Toml
    version: Annotated[str, StringConstraints(max_length=64)] = ""


class RecodeDraft(BaseModel):
    """A recode as in a plan's table; it may be incomplete."""

    method: Table


class ClassChoice(BaseModel):
    """A class of methods or measures that the user may add to a plan; "" if none is selected."""

    toml: Toml
    group: Literal["methods", "measures"]
    type: Annotated[str, StringConstraints(max_length=200)] = ""
    study: Title | Literal[""] = ""


class HierarchyDraft(BaseModel):
    """Columns, and where their draft hierarchy starts: from given rows, from first characters, or from a file."""

    on: list[Name] = Field(max_length=5000)
    begin: Literal["rows", "prefixes", "file"] = "rows"
    rows: Rows = Field(default_factory=list)
    file: File = ""


class HierarchyFile(BaseModel):
    """A hierarchy to save as a file; `version` is that of the file it replaces, empty for a new file."""

    file: File
    rows: Rows
    version: Annotated[str, StringConstraints(max_length=64)] = ""


class Forms(ResponseModel):
    """The forms of every class; `parts` holds the forms of nested values, by group."""

    methods: list[Form]
    measures: list[Form]
    rules: list[Form]
    parts: dict[str, list[Form]]


class SavedPlan(ResponseModel):
    """A saved plan, and its problems with the stated roles; `version` as in StudyPlan."""

    name: str
    toml: str
    version: str
    candidates: int
    problems: list[str]


class StudyPlan(ResponseModel):
    """The plan of a study as text and as a table, and the study's progress.

    version : of the text. Sent back with a change, it prevents overwriting somebody else's.
    """

    name: str
    toml: str
    version: str
    table: dict[str, Any] | None
    begun: bool
    releases: int
    sweep: SweepStatus


@dataclass(frozen=True)
class ReplacedPlan(EarlierPlan):
    """A plan that was replaced, and what the later plan states differently."""

    changed: list[str]


class EarlierPlans(ResponseModel):
    plans: list[ReplacedPlan]


class Axes(ResponseModel):
    risk: tuple[str, ...]
    utility: str


class PlanColumn(ResponseModel):
    name: str
    kind: str
    role: str | None


@dataclass
class CheckedPlan:
    """A plan as text and table, with all of its problems.

    seconds : of one core, estimated on request. draw : what one more draw of each method adds, in seconds.
    """

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


class Recodes(ResponseModel):
    """The result of a recode for each column; `levels`: the coarsest level of its hierarchy file, if it has one."""

    columns: list[RecodePreview]
    levels: int | None


class Prices(ResponseModel):
    """Estimated seconds of one core: for the plan as it is, and what an added class would cost.

    draw : what one more draw of each method adds. stated : what each expensive measure would add, by its formula. example :
    the method or measure that was priced; empty: its fields must be filled in first.
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
    """A draft hierarchy; `version` is that of the file that was opened."""

    version: str


class SavedHierarchy(ResponseModel):
    """A saved hierarchy; `levels`: its coarsest level."""

    name: str
    version: str
    levels: int


@router.get("/forms")
def forms() -> Forms:
    """Return the fields of every method, measure and rule, and of nested values: type, range, default and help."""
    groups = parameter_forms.forms()
    methods, measures, rules = (groups.pop(group) for group in ("methods", "measures", "rules"))
    return Forms(methods, measures, rules, groups)


@router.post("/studies", status_code=201)
def begin(bench: Bench, new: NewStudy) -> SavedPlan:
    """Write a starting plan for a file; no sweep starts."""
    path = bench.workspace.new_plan_path(new.name)
    source = new.source
    plan = replace(bench.views.look(source), source=source.with_dialect(bench.workspace.folder)).plan(
        source.path, new.profile
    )
    plan.write(path)
    return _plan_response(new.name, plan)


@router.get("/studies/{name}")
def study(bench: Bench, name: str) -> StudyPlan:
    """Return the plan of a study and its progress."""
    text = bench.workspace.plan(name).read_text(encoding="utf-8")
    return StudyPlan(
        name,
        text,
        version_of(text),
        _parse_table(text),
        bench.workspace.is_begun(name),
        bench.workspace.releases(name),
        bench.sweeps.status(name),
    )


@router.put("/studies/{name}/plan")
def write_plan(bench: Bench, name: str, text: PlanText) -> SavedPlan:
    """Save a valid plan; a study that was started may be extended by it."""
    plan = bench.views.plan(text.toml)
    if bench.sweeps.status(name).is_running:
        raise Busy("a sweep of this study is running. Pause it, then change the plan.")
    bench.store.save_plan(name, plan.toml(), text.version)
    return _plan_response(name, plan)


def _plan_response(name: str, plan: Plan, problems: Sequence[str] = ()) -> SavedPlan:
    text = plan.toml()
    return SavedPlan(name, text, version_of(text), plan.count, list(problems))


@router.get("/studies/{name}/plans")
def earlier_plans(bench: Bench, name: str) -> EarlierPlans:
    """Return the plans before the current one, the newest first, each with what the next one changed."""
    later = bench.workspace.plan(name).read_text(encoding="utf-8")
    plans = []
    for plan in bench.store.earlier_plans(name):
        plans.append(ReplacedPlan(plan.saved, plan.toml, _describe_changes(bench, plan.toml, later)))
        later = plan.toml
    return EarlierPlans(plans)


def _describe_changes(bench: Workbench, before: str, after: str) -> list[str]:
    """Return what the later of two plans states differently; nothing if one of them can no longer be read."""
    try:
        differences = plan_differences(bench.views.plan(before), bench.views.plan(after))
    except SdcmapError:
        return []
    return [difference.what for difference in differences]


@router.put("/studies/{name}/roles")
def state_roles(bench: Bench, name: str, stated: StatedRoles) -> SavedPlan:
    """Save other roles in the plan of a study that was not started; scores depend on the roles, so later it is too late."""
    plan = bench.views.plan_of(name)
    if bench.workspace.is_begun(name):
        raise Busy("the study already has scores for the roles in its plan. Start another study with the new roles.")
    if plan.data is None:
        raise PlanError("the plan names no data. Add a [data] part with path and roles.")
    codes = plan.data.missing if stated.missing is None else stated.missing
    now = source_of(plan.data.path, stated.roles, stated.kinds, codes)
    unchanged = {name: getattr(plan.data, name) for name in ("census", "known_by", *explicit_fields(plan.data.dialect))}
    plan = replace(plan, data=replace(now, **unchanged))
    problems = plan.problems_with(bench.views.data_of(plan))
    bench.store.save_plan(name, plan.toml())
    return _plan_response(name, plan, problems)


@router.post("/plans")
def check(bench: Bench, draft: PlanDraft) -> CheckedPlan:
    """Return all problems of a plan, its number of candidates, and the plan as text and as a table."""
    text = draft.toml if draft.toml is not None else format_plan(draft.table or {})
    # Fill in as much as is valid: the editor shows columns and counts even if the plan has problems.
    checked = CheckedPlan(text, _parse_table(text))
    try:
        written = bench.views.plan(text)
        if draft.toml is None:  # the text follows the forms, as short as a person would write it
            checked.toml = text = written.toml()
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


def _parse_table(text: str) -> dict[str, Any] | None:
    """Return the table of a TOML text in full, or None if the text is not TOML.

    Dates and infinite numbers become text, which JSON supports; nested values written as text become tables.
    """
    try:
        table: dict[str, Any] = _to_json_value(expand(read_table(text), []))
    except PlanError:
        return None
    # The editor shows nested values as forms, so values written as text are parsed.
    for group in ("methods", "measures"):
        if isinstance(table.get(group), list):
            table[group] = [parameter_forms.normalize_spec(entry) for entry in table[group]]
    return table


def _to_json_value(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _to_json_value(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_to_json_value(value) for value in part]
    return part if isinstance(part, bool | int | float | str) else str(part)


# ---- the editor: recodes, hierarchies and costs -----------------------------------------------------------------
@router.post("/studies/{name}/recodes")
def recodes(bench: Bench, name: str, draft: RecodeDraft) -> Recodes:
    """Return the result of a recode for each of its columns: categories with their records, before and after."""
    data = bench.views.data_of(bench.views.plan_of(name), name)
    path, levels = draft.method.get("hierarchy"), None
    with restrict_files_to(bench.workspace.folder):
        columns = preview_recode(data, draft.method)
        if isinstance(path, str) and path:
            # The problems of the columns report the same error with more detail.
            with suppress(SdcmapError):
                levels = Hierarchy.parse(read_verified(path, digest_of(path, "Recode.hierarchy")), path).levels
    return Recodes(columns, levels)


@router.post("/studies/{name}/hierarchies/drafts")
def draft_hierarchy(bench: Bench, name: str, draft: HierarchyDraft) -> OpenedHierarchy:
    """Return the categories with their records, the groups at each level, and why the draft cannot be saved yet."""
    records = count_categories(bench.views.data_of(bench.views.plan_of(name), name), draft.on)
    version, rows = "", prefix_levels(list(records)) if draft.begin == "prefixes" else draft.rows
    if draft.begin == "file":
        with restrict_files_to(bench.workspace.folder):
            version = digest_of(draft.file, "hierarchy")
            rows = Hierarchy.parse(read_verified(draft.file, version), draft.file).rows
    return OpenedHierarchy(**vars(check_draft(records, rows)), version=version)


@router.put("/studies/{name}/hierarchies")
def keep_hierarchy(bench: Bench, name: str, file: HierarchyFile) -> SavedHierarchy:
    """Save a hierarchy as a private CSV file; a file that changed since it was opened is not replaced."""
    plan, folder = bench.views.plan_of(name), bench.workspace.folder
    if plan.data is not None and folder / plan.data.path == folder / file.file:
        raise Busy("that is the data file of this study. Choose another name.")
    text = format_hierarchy(file.rows)
    bench.workspace.save_csv(file.file, text, file.version)
    return SavedHierarchy(file.file, version_of(text), len(file.rows[0]) - 1)


@router.post("/prices")
def prices(bench: Bench, choice: ClassChoice) -> Prices:
    """Return the estimated seconds of one core for a plan, and for a method or measure that might be added."""
    plan, data, now = bench.views.cost(choice.toml, choice.study)
    base: type[Method | Measure] = Method if choice.group == "methods" else Measure
    cls = find_class(choice.type) if choice.type else base
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise PlanError(f"there is no {base.__name__.lower()} with that name.")
    example = parameter_forms.example_of(cls, data) if choice.type else None
    measures = (*RISKS, *UTILITIES) if choice.group == "measures" else ()
    stated = {
        m.__name__: price for m in measures if (price := parameter_forms.price_from_formula(m, data, plan)) is not None
    }
    words, price = ("", None) if example is None else (example.text, parameter_forms.price_of(example, data, plan, now))
    return Prices(now.candidates, now.seconds, now.of_a_draw, stated, choice.type, words, price)
