"""The service, part two: studies and their plans."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.core.limits import read_table
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.files.dialect import stated_fields
from sdcmap.web import models
from sdcmap.web.answers import Table
from sdcmap.web.api_files import Codes, Roles, Stated
from sdcmap.web.models import told
from sdcmap.web.room import Busy
from sdcmap.web.shelf import version_of
from sdcmap.web.workbench import Bench

router = APIRouter(prefix="/api", tags=["plans"])
Toml = Annotated[str, StringConstraints(max_length=500_000)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=100)]


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


@router.get("/forms", response_model=models.Forms)
def forms() -> Response:
    """The fields of every method, measure and rule, and of their parts: type, range, default and words."""
    from sdcmap.explore.forms import forms as all_forms

    groups = {group: [asdict(form) for form in members] for group, members in all_forms().items()}
    own = {group: groups.pop(group) for group in ("methods", "measures", "rules")}
    return told(models.Forms.model_validate(own | {"parts": groups}))


@router.post("/studies", status_code=201, response_model=models.NewPlan)
def begin(bench: Bench, new: NewStudy) -> Response:
    """Write a starting plan for a file; nothing is swept yet."""
    room, views = bench.room, bench.views
    path = room.free_name(new.name)
    source = new.source
    seen = views.look(source)
    plan = replace(seen, source=source.sensed(room.folder)).plan(source.path, new.profile)
    plan.write(path)
    return told(models.NewPlan(name=new.name, toml=plan.toml()), 201)


@router.get("/studies/{name}", response_model=models.Study)
def study(bench: Bench, name: str) -> Response:
    """What a study is about: its plan, and how far it is."""
    room = bench.room
    text = room.plan(name).read_text(encoding="utf-8")
    return told(models.Study(
        name=name, toml=text, version=version_of(text), table=_table(text), begun=room.is_begun(name),
        releases=room.releases(name),
        sweep=models.Sweep.model_validate(bench.sweeps.status(name)),
    ))  # fmt: skip


@router.put("/studies/{name}/plan", response_model=models.KeptPlan)
def write_plan(bench: Bench, name: str, text: Text) -> Response:
    """Keep a plan that has no problem; a study that was begun may grow by it."""
    views, sweeps, shelf = bench.views, bench.sweeps, bench.shelf
    plan = views.plan(text.toml)
    if sweeps.status(name)["state"].startswith("running"):
        raise Busy("a sweep of this study is running: pause it, then change the plan.")
    text_kept = plan.toml()
    shelf.save_plan(name, text_kept, text.version)
    return told(models.KeptPlan(name=name, toml=text_kept, version=version_of(text_kept), candidates=plan.count))


@router.get("/studies/{name}/plans", response_model=models.EarlierPlans)
def earlier_plans(bench: Bench, name: str) -> Response:
    """What was saved before the plan that counts, the newest first, and what was changed in it then."""
    texts = [bench.room.plan(name).read_text(encoding="utf-8")]
    plans = []
    for plan in bench.shelf.earlier_plans(name):
        plans.append(
            models.EarlierPlan(saved=plan.saved, toml=plan.toml, changed=_changed(bench, plan.toml, texts[-1]))
        )
        texts.append(plan.toml)
    return told(models.EarlierPlans(plans=plans))


def _changed(bench: Bench, before: str, after: str) -> list[str]:
    """What the later of two plans states differently; nothing where one of them can no longer be read."""
    from sdcmap.explore.plan_differences import plan_differences

    try:
        plans = [bench.views.plan(text) for text in (before, after)]
    except SdcmapError:
        return []
    return [difference.what for difference in plan_differences(*plans)]


@router.put("/studies/{name}/roles", response_model=models.KeptRoles)
def state_roles(bench: Bench, name: str, stated: StatedRoles) -> Response:
    """Keep other roles in the plan of a study that was not begun; scores belong to the roles that they were made with."""
    from sdcmap.explore.looking import source_of

    room, views = bench.room, bench.views
    plan = views.plan(room.plan(name).read_text(encoding="utf-8"))
    if room.is_begun(name):
        raise Busy("the study was begun with the roles that its plan states: begin another one with these.")
    if plan.data is None:
        raise PlanError("the plan names no data: add a [data] part with path and roles.")
    codes = plan.data.missing if stated.missing is None else stated.missing
    now = source_of(plan.data.path, stated.roles, stated.kinds, codes)
    kept = {name: getattr(plan.data, name) for name in ("census", "known_by", *stated_fields(plan.data.dialect))}
    plan = replace(plan, data=replace(now, **kept))
    problems = plan.problems_with(views.data_of(plan))
    text = plan.toml()
    bench.shelf.save_plan(name, text)
    return told(models.KeptRoles(name=name, toml=text, version=version_of(text), problems=problems))


@router.post("/plans", response_model=models.CheckedPlan)
def check(bench: Bench, draft: Draft) -> Response:
    """Every problem of a plan at once, its number of candidates, and the plan both as text and as a table."""
    return told(models.CheckedPlan.model_validate(checked(bench, draft)))


def checked(bench: Bench, draft: Draft) -> dict[str, Any]:
    import tomli_w

    from sdcmap.study.remarks import remarks

    answer: dict[str, Any] = {"problems": [], "candidates": None, "seconds": None, "draw": None, "measures": []}
    answer |= {"axes": None, "remarks": [], "columns": []}
    try:
        text = draft.toml if draft.toml is not None else tomli_w.dumps(draft.table or {})
    except (TypeError, ValueError, AttributeError):
        raise PlanError("the table holds something that TOML cannot hold, such as null.") from None
    answer |= {"toml": text, "table": _table(text)}
    try:
        written = bench.views.plan(text)
        answer |= {"candidates": written.count, "measures": [m.text for m in written.measures]}
        answer["axes"] = {"risk": list(written.risk), "utility": written.utility}
        data = bench.views.data_of(written, draft.study)
        answer["columns"] = [
            {"name": v.name, "kind": v.kind, "role": v.role}
            for v in data.schema.variables
            if v.name not in data.unreleased
        ]
        plan = written.with_risk(data)
        answer["problems"] = plan.problems_with(data)
        answer["remarks"] = list(remarks(data, plan, written))
        if draft.cost and not answer["problems"]:
            cost = bench.views.cost(text, draft.study)[2]
            answer |= {"seconds": cost.seconds, "draw": cost.of_a_draw}
    except SdcmapError as error:
        answer["problems"] = list(getattr(error, "problems", None) or [str(error)])
    return answer


def _table(text: str) -> dict[str, Any] | None:
    """The table that a TOML text stands for, dates and endless numbers as words, parts that are texts as tables; None where
    it is no TOML."""
    from sdcmap.explore.forms import formed

    try:
        table: dict[str, Any] = _worded(read_table(text))
    except PlanError:
        return None
    for group in ("methods", "measures"):
        if isinstance(table.get(group), list):
            table[group] = [formed(entry) for entry in table[group]]
    return table


def _worded(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _worded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_worded(value) for value in part]
    return part if isinstance(part, bool | int | float | str) else str(part)
