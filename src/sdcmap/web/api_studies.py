"""Routes for studies: list, sweep, copy, rename, archive, delete, annotate and compare them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, StringConstraints

from sdcmap.charts import draw_fronts
from sdcmap.core import Choice, PlanError, SdcmapError
from sdcmap.core.plan_text import read_table
from sdcmap.explore.plan_differences import Difference, plan_differences
from sdcmap.map import RUMap
from sdcmap.study.folder import Study
from sdcmap.web.api_plans import Title
from sdcmap.web.api_releases import ReleaseEntry, list_releases
from sdcmap.web.response_models import ResponseModel
from sdcmap.web.study_store import version_of
from sdcmap.web.sweeps import SweepCommand, SweepState, SweepStatus
from sdcmap.web.views import measures_on
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import NotFound
from sdcmap.workflow import own_choice

router = APIRouter(prefix="/api", tags=["studies"])
NOTE_PREVIEW_CHARACTERS = 120  # of the first line of a study's notes, shown in the list


class NewName(BaseModel):
    """A new name for a study."""

    name: Title


class CopyRequest(NewName):
    """A copy of a study: its plan only, which starts with a new seed, or the whole study with scores and seed."""

    scores: bool = False


class ArchiveRequest(BaseModel):
    """Whether a study is hidden from the list."""

    archived: bool


class NewNotes(BaseModel):
    """Notes to save; `version`: of those they were edited from. If others were saved since, the status is 412."""

    text: Annotated[str, StringConstraints(max_length=100_000)]
    version: Annotated[str, StringConstraints(max_length=64)] = ""


class SweepRequest(BaseModel):
    """A command for the sweep of a study.

    `running` starts or resumes a sweep, `searching` a search that begins with the plan's own candidates. `paused` and
    `cancelled` stop it and keep the scores. The next server resumes what was running, not what was paused or cancelled.
    """

    state: SweepCommand


class StudyEntry(ResponseModel):
    """A study in the list of studies.

    changed : time of the last change, in UTC (ISO 8601). candidates : of its plan; null if the plan cannot be read.
    released : the name of the latest release. choice : what the rule chooses, if requested; empty: there is no rule. note :
    the first line of the notes.
    """

    name: str
    begun: bool
    changed: str
    releases: int
    archived: bool
    note: str
    choice: str | None
    file: str
    candidates: int | None
    done: int
    state: SweepState
    released: str


class Studies(ResponseModel):
    studies: list[StudyEntry]


class Notes(ResponseModel):
    """The user's notes about a study; `version`, sent back with a change, prevents overwriting somebody else's."""

    text: str
    version: str


class DeletedStudy(ResponseModel):
    """A deleted study; so many `releases` of it stay in the folder."""

    name: str
    releases: int


class ComparedStudy(ResponseModel):
    """One of the compared studies.

    choice : what its rule chooses; empty: there is no rule. risk, utility : of the choice, on the axes `labels`, which are
    common to both studies, or the study's own if the studies have no common measures.
    """

    name: str
    candidates: int
    frontier: int
    labels: tuple[str, str]
    choice: str
    risk: float | None
    utility: float | None
    reason: str
    releases: list[ReleaseEntry]


class Comparison(ResponseModel):
    """Two studies: their frontiers on one map (Vega-Lite), their choices and releases, and the differences of their plans.

    same_data : whether both use the same file with the same roles. risks, utilities : measures that both have. reason : why
    `chart` is null, such as that there is no common measure.
    """

    studies: list[ComparedStudy]
    same_data: bool
    risks: list[str]
    utilities: list[str]
    risk: str
    utility: str
    chart: dict[str, Any] | None
    reason: str
    differences: list[Difference]


# ---- list -------------------------------------------------------------------------------------------------------


@router.get("/studies")
def studies(
    bench: Bench,
    choices: Annotated[bool, Query(description="Include what each rule chooses, which takes longer.")] = False,
) -> Studies:
    """Return every study in the served folder: its file, its progress, and its latest release."""
    entries = []
    for name in bench.workspace.studies():
        with suppress(NotFound, FileNotFoundError):  # deleted or renamed since the names were listed
            entries.append(study_entry(bench, name, choices=choices))
    return Studies(entries)


def study_entry(bench: Workbench, name: str, *, choices: bool = False) -> StudyEntry:
    """Return the list entry of a study, even if its plan or scores cannot be read."""
    workspace, store = bench.workspace, bench.store
    path, begun = workspace.plan(name), workspace.is_begun(name)
    scores = workspace.path_of(name) / "scores.sqlite"
    changed = max(file.stat().st_mtime for file in (path, scores) if file is path or file.is_file())
    # A study with a damaged plan must still be listed, so that it can be repaired or deleted.
    file, released, status = "", "", None
    with suppress(SdcmapError):
        data = read_table(path.read_text(encoding="utf-8")).get("data")
        file = str(data.get("path", "")) if isinstance(data, dict) else ""
        status = bench.sweeps.status(name)
        entries = Study.manifest_of(workspace.study(name)).get("releases", []) if begun else []
        released = str(entries[-1].get("name", "")) if entries else ""
    state: SweepState = "stopped" if status is None else status.state
    total, done = (None, 0) if status is None else (status.total, status.done)
    return StudyEntry(
        name,
        begun,
        datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds"),
        workspace.releases(name),
        store.is_archived(name),
        store.notes(name).strip().partition("\n")[0][:NOTE_PREVIEW_CHARACTERS],
        bench.views.choice_name(name) if choices else None,
        file,
        total,
        done,
        state,
        released,
    )


# ---- sweep ------------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/sweep", tags=["sweeps"])
def status(bench: Bench, name: str) -> SweepStatus:
    """Return the state of a sweep, candidates done and in total, the pace, and why some candidates could not be made."""
    return bench.sweeps.status(name)


@router.put("/studies/{name}/sweep", tags=["sweeps"])
def want(bench: Bench, name: str, request: SweepRequest) -> SweepStatus:
    """Start, pause, resume or cancel the sweep of a study; 409 if another process is writing the study."""
    bench.views.plan_of(name)
    bench.sweeps.set_goal(name, request.state)
    return bench.sweeps.status(name)


# ---- one study --------------------------------------------------------------------------------------------------


@router.post("/studies/{name}/copies", status_code=201)
def copy_study(bench: Bench, name: str, copy: CopyRequest) -> StudyEntry:
    """Create another study with the same plan; with `scores`, including all scores and the seed."""
    bench.store.copy(name, copy.name, scores=copy.scores)
    return study_entry(bench, copy.name)


@router.put("/studies/{name}/name")
def rename_study(bench: Bench, name: str, new: NewName) -> StudyEntry:
    """Rename a study and everything that belongs to it; 409 while its sweep is running."""
    with bench.release_lock:
        bench.store.rename(name, new.name)
    bench.views.forget(name)
    return study_entry(bench, new.name)


@router.put("/studies/{name}/archived")
def archive_study(bench: Bench, name: str, request: ArchiveRequest) -> StudyEntry:
    """Hide a study from the list, or show it again; the study itself does not change."""
    bench.store.archive(name, request.archived)
    return study_entry(bench, name)


@router.delete("/studies/{name}")
def delete_study(
    bench: Bench, name: str, typed: Annotated[str, Query(description="The study's name, typed.", max_length=100)]
) -> DeletedStudy:
    """Delete a study permanently, with its plan, scores, seed and notes; 409 while its sweep is running.

    Releases stay in the folder. Without their study they cannot be reproduced, so the ledger assumes the worst: that they
    disclosed every value.
    """
    with bench.release_lock:
        bench.store.delete(name, typed)
    bench.views.forget(name)
    return DeletedStudy(name, bench.workspace.releases(name))


@router.get("/studies/{name}/notes")
def notes(bench: Bench, name: str) -> Notes:
    """Return the user's notes about a study."""
    text = bench.store.notes(name)
    return Notes(text, version_of(text))


@router.put("/studies/{name}/notes")
def write_notes(bench: Bench, name: str, new: NewNotes) -> Notes:
    """Save notes beside a study; no release and no report contains them."""
    bench.store.write_notes(name, new.text, new.version)
    return Notes(new.text, version_of(new.text))


# ---- two studies ------------------------------------------------------------------------------------------------


@router.get("/comparisons")
def compare_studies(
    bench: Bench,
    first: str,
    second: str,
    risk: Annotated[str, Query(description="A risk measure of both studies; default: one that is on an axis.")] = "",
    utility: Annotated[str, Query(description="A utility measure of both studies.")] = "",
) -> Comparison:
    """Compare two studies: frontiers on common axes, choices, releases, and the differences of their plans."""
    names = (first, second)
    own, plans = zip(*(bench.views.map(name) for name in names), strict=True)
    risks, utilities = (
        [name for name in measures_on(own[0], axis) if name in measures_on(own[1], axis)]
        for axis in ("risk", "utility")
    )
    # Without common measures each study is shown on its own axes, and there is no common chart.
    axes = (
        _select_measure(risk, risks, [m for plan in plans for m in plan.risk]),
        _select_measure(utility, utilities, [plan.utility for plan in plans]),
    )
    maps = [bench.views.map(name, axes[:1], axes[1])[0] for name in names] if all(axes) else list(own)
    choices = [own_choice(bench.workspace.study(name), ru) for name, ru in zip(names, own, strict=True)]
    reason = (
        ""
        if all(axes)
        else "the studies have no risk measure or no utility measure in common, so they cannot be drawn on one map."
    )
    return Comparison(
        [_comparison_entry(bench, *facts) for facts in zip(names, maps, choices, strict=True)],
        len({str(Study.manifest_of(bench.workspace.study(name))["data"]) for name in names}) == 1,
        risks,
        utilities,
        *axes,
        _draw_frontiers(names, maps, choices) if all(axes) else None,
        reason,
        plan_differences(*plans),
    )


def _select_measure(requested: str, common: list[str], shown: list[str]) -> str:
    """Return the requested measure, or one that is on an axis; empty if there is no common measure."""
    if requested and requested not in common:
        raise PlanError("both studies must have the requested measure.")
    return requested or next((name for name in shown if name in common), common[0] if common else "")


def _comparison_entry(bench: Workbench, name: str, ru: RUMap, choice: Choice | None) -> ComparedStudy:
    row = _point_of(ru, choice)
    words = "" if choice is None else choice.name if choice.candidate else "release nothing"
    return ComparedStudy(
        name,
        int((~ru.points["anchor"]).sum()),
        len(ru.frontier),
        ru.labels,
        words,
        row.get("risk"),
        row.get("utility"),
        "" if choice is None else choice.reason,
        list_releases(bench, name),
    )


def _point_of(ru: RUMap, choice: Choice | None) -> dict[str, Any]:
    """Return the point of a choice on this map; empty if there is none."""
    rows = ru.points.filter(ru.points["id"] == choice.candidate) if choice and choice.candidate else ru.points[:0]
    return rows.row(0, named=True) if len(rows) else {}


def _draw_frontiers(names: tuple[str, str], maps: list[RUMap], choices: list[Choice | None]) -> dict[str, Any]:
    """Return the chart of both frontiers, with each choice at its position on the common axes."""
    marks = {
        name: replace(choice, risk=row["risk"], utility=row["utility"])
        for name, ru, choice in zip(names, maps, choices, strict=True)
        if choice is not None and (row := _point_of(ru, choice))
    }
    return draw_fronts(dict(zip(names, maps, strict=True)), marks).to_dict()
