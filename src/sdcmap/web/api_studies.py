"""The service, part three: studies that are listed, swept, copied, renamed, archived, deleted, noted, compared."""

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
from sdcmap.web.api_releases import WrittenRelease, written_releases
from sdcmap.web.models import Answer
from sdcmap.web.shelf import version_of
from sdcmap.web.sweeps import SweepState, SweepStatus, Wish
from sdcmap.web.views import measures_on
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import Absent
from sdcmap.workflow import own_choice

router = APIRouter(prefix="/api", tags=["studies"])
LINE = 120  # characters of the first line of notes


class NewName(BaseModel):
    """Another name for a study."""

    name: Title


class Copy(NewName):
    """A copy of a study: its plan alone, which begins anew with a seed of its own, or with its scores and its seed."""

    scores: bool = False


class Archived(BaseModel):
    """Whether a study is out of the list."""

    archived: bool


class NewNotes(BaseModel):
    """Notes to keep; `version`: of those they were made from. Where others were kept meanwhile, the answer is 412."""

    text: Annotated[str, StringConstraints(max_length=100_000)]
    version: Annotated[str, StringConstraints(max_length=64)] = ""


class Wanted(BaseModel):
    """`running` starts a sweep or goes on with it, `searching` a search that begins with the plan's own candidates;
    `paused` and `cancelled` stop it and keep what is scored. What was paused or cancelled is not taken up by the next
    server; what was running is."""

    state: Wish


class StudyEntry(Answer):
    """A study in the list of all.

    changed : when, in UTC (ISO 8601). candidates : of its plan; null where the plan cannot be read. released : the name of
    what was released last. choice : what the study chooses, where that was asked for; empty: it has no rule. note : the
    first line of its notes.
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


class Studies(Answer):
    studies: list[StudyEntry]


class Notes(Answer):
    """What a person wrote about a study; `version`, sent back with a change, guards against overwriting another's."""

    text: str
    version: str


class Deleted(Answer):
    """A study that is gone; `releases` of it stay in the folder."""

    name: str
    releases: int


class ComparedStudy(Answer):
    """One of the studies that are compared: its choice (empty: it has no rule), and where that lies on the axes of
    `labels`: the common ones, or the study's own where there are none."""

    name: str
    candidates: int
    frontier: int
    labels: tuple[str, str]
    choice: str
    risk: float | None
    utility: float | None
    reason: str
    releases: list[WrittenRelease]


class Comparison(Answer):
    """Two studies: their frontiers on one map (Vega-Lite), their choices and releases, and what differs in their plans.

    A chart of null has a reason, such as that they have no measure in common. `same_data`: whether both were made from the
    same file with the same roles. `risks`, `utilities`: measures that both have.
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


# ---- the list ---------------------------------------------------------------------------------------------------


@router.get("/studies")
def studies(
    bench: Bench,
    choices: Annotated[bool, Query(description="Say what each rule chooses too, which takes longer.")] = False,
) -> Studies:
    """Every study below the served folder: its file, how far it is, and what was released of it."""
    entries = []
    for name in bench.room.studies():
        with suppress(Absent, FileNotFoundError):  # deleted or renamed since the names were listed
            entries.append(entry_of(bench, name, choices=choices))
    return Studies(entries)


def entry_of(bench: Workbench, name: str, *, choices: bool = False) -> StudyEntry:
    """A study in the list of all; one whose plan or scores cannot be read is listed too."""
    room, shelf = bench.room, bench.shelf
    path, begun = room.plan(name), room.is_begun(name)
    scores = room.place_of(name) / "scores.sqlite"
    changed = max(file.stat().st_mtime for file in (path, scores) if file is path or file.is_file())
    file, released, status = "", "", None
    with suppress(SdcmapError):
        data = read_table(path.read_text(encoding="utf-8")).get("data")
        file = str(data.get("path", "")) if isinstance(data, dict) else ""
        status = bench.sweeps.status(name)
        made = Study.manifest_of(room.study(name)).get("releases", []) if begun else []
        released = str(made[-1].get("name", "")) if made else ""
    state: SweepState = "stopped" if status is None else status.state
    total, done = (None, 0) if status is None else (status.total, status.done)
    return StudyEntry(
        name, begun, datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds"), room.releases(name),
        shelf.is_archived(name), shelf.notes(name).strip().partition("\n")[0][:LINE],
        bench.views.choice_words(name) if choices else None, file, total, done, state, released,
    )  # fmt: skip


# ---- its sweep --------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/sweep", tags=["sweeps"])
def status(bench: Bench, name: str) -> SweepStatus:
    """State, candidates done and in all, candidates a second, seconds left, and why some could not be made."""
    return bench.sweeps.status(name)


@router.put("/studies/{name}/sweep", tags=["sweeps"])
def want(bench: Bench, name: str, wanted: Wanted) -> SweepStatus:
    """Start, pause, go on with or cancel the sweep of a study; a second writer gets a clear answer (409)."""
    bench.views.plan_of(name)
    bench.sweeps.want(name, wanted.state)
    return bench.sweeps.status(name)


# ---- what is done with one --------------------------------------------------------------------------------------


@router.post("/studies/{name}/copies", status_code=201)
def copy_study(bench: Bench, name: str, copy: Copy) -> StudyEntry:
    """Another study with the same plan; with `scores`, with all that was made and scored, and the same seed."""
    bench.shelf.copy(name, copy.name, scores=copy.scores)
    return entry_of(bench, copy.name)


@router.put("/studies/{name}/name")
def rename_study(bench: Bench, name: str, new: NewName) -> StudyEntry:
    """Rename a study with all that belongs to it; 409 while a sweep of it runs."""
    with bench.releasing:
        bench.shelf.rename(name, new.name)
    bench.views.forget(name)
    return entry_of(bench, new.name)


@router.put("/studies/{name}/archived")
def archive_study(bench: Bench, name: str, wanted: Archived) -> StudyEntry:
    """Put a study out of the list, or back; nothing of it changes."""
    bench.shelf.archive(name, wanted.archived)
    return entry_of(bench, name)


@router.delete("/studies/{name}")
def delete_study(
    bench: Bench, name: str, typed: Annotated[str, Query(description="The study's name, typed.", max_length=100)]
) -> Deleted:
    """Remove a study for good, with its plan, scores, seed and notes; 409 while a sweep of it runs.

    Releases stay in the folder. Without their study they cannot be made again: a ledger counts them as if they had told
    every value.
    """
    with bench.releasing:
        bench.shelf.delete(name, typed)
    bench.views.forget(name)
    return Deleted(name, bench.room.releases(name))


@router.get("/studies/{name}/notes")
def notes(bench: Bench, name: str) -> Notes:
    """What a person wrote about a study."""
    text = bench.shelf.notes(name)
    return Notes(text, version_of(text))


@router.put("/studies/{name}/notes")
def write_notes(bench: Bench, name: str, new: NewNotes) -> Notes:
    """Keep notes about a study, beside it; they are in no release and in no report."""
    bench.shelf.write_notes(name, new.text, new.version)
    return Notes(new.text, version_of(new.text))


# ---- two of them ------------------------------------------------------------------------------------------------


@router.get("/comparisons")
def compare_studies(
    bench: Bench, first: str, second: str,
    risk: Annotated[str, Query(description="A risk measure of both; by default one that is on an axis.")] = "",
    utility: Annotated[str, Query(description="A utility measure of both.")] = "",
) -> Comparison:  # fmt: skip
    """Two studies side by side: frontiers on common axes, choices, releases, and what their plans state differently."""
    names = (first, second)
    names = (first, second)
    own, plans = zip(*(bench.views.map(name) for name in names), strict=True)
    risks, utilities = (
        [name for name in measures_on(own[0], axis) if name in measures_on(own[1], axis)]
        for axis in ("risk", "utility")
    )
    axes = (
        _picked(risk, risks, [m for plan in plans for m in plan.risk]),
        _picked(utility, utilities, [plan.utility for plan in plans]),
    )
    maps = [bench.views.map(name, axes[:1], axes[1])[0] for name in names] if all(axes) else list(own)
    choices = [own_choice(bench.room.study(name), ru) for name, ru in zip(names, own, strict=True)]
    reason = "" if all(axes) else "the studies have no risk measure and utility measure in common: no map shows both."
    return Comparison(
        [_compared(bench, *facts) for facts in zip(names, maps, choices, strict=True)],
        len({str(Study.manifest_of(bench.room.study(name))["data"]) for name in names}) == 1,
        risks, utilities, *axes, _fronts(names, maps, choices) if all(axes) else None, reason, plan_differences(*plans),
    )  # fmt: skip


def _picked(asked: str, common: list[str], shown: list[str]) -> str:
    """The measure that is asked for, else one that an axis shows; empty where there is none in common."""
    if asked and asked not in common:
        raise PlanError("that measure is not one of both studies.")
    return asked or next((name for name in shown if name in common), common[0] if common else "")


def _compared(bench: Workbench, name: str, ru: RUMap, choice: Choice | None) -> ComparedStudy:
    row = _at(ru, choice)
    words = "" if choice is None else choice.name if choice.candidate else "release nothing"
    return ComparedStudy(
        name, int((~ru.points["anchor"]).sum()), len(ru.frontier), ru.labels, words, row.get("risk"), row.get("utility"),
        "" if choice is None else choice.reason, written_releases(bench, name),
    )  # fmt: skip


def _at(ru: RUMap, choice: Choice | None) -> dict[str, Any]:
    """The point of a choice on this map; empty where there is none."""
    rows = ru.points.filter(ru.points["id"] == choice.candidate) if choice and choice.candidate else ru.points[:0]
    return rows.row(0, named=True) if len(rows) else {}


def _fronts(names: tuple[str, str], maps: list[RUMap], choices: list[Choice | None]) -> dict[str, Any]:
    """The chart, with each choice where it lies on the common axes."""
    marks = {
        name: replace(choice, risk=row["risk"], utility=row["utility"])
        for name, ru, choice in zip(names, maps, choices, strict=True)
        if choice is not None and (row := _at(ru, choice))
    }
    return draw_fronts(dict(zip(names, maps, strict=True)), marks).to_dict()
