"""The service, part six: studies as things that are listed, copied, renamed, archived, deleted, noted and compared."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, StringConstraints

from sdcmap.core.limits import read_table
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.web import models
from sdcmap.web.answers import plain
from sdcmap.web.api_releases import released
from sdcmap.web.models import told
from sdcmap.web.shelf import version_of
from sdcmap.web.workbench import Bench

if TYPE_CHECKING:
    from sdcmap.core.rule import Choice
    from sdcmap.map import RUMap
    from sdcmap.study.plan import Plan
    from sdcmap.web.room import Room

router = APIRouter(prefix="/api", tags=["studies"])
Title = Annotated[str, StringConstraints(min_length=1, max_length=100)]
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


# ---- the list ---------------------------------------------------------------------------------------------------


@router.get("/studies", response_model=models.Studies)
def studies(
    bench: Bench,
    choices: Annotated[bool, Query(description="Say what each rule chooses too, which takes longer.")] = False,
) -> Response:
    """Every study below the served folder: its file, how far it is, and what was released of it."""
    names = [str(study["name"]) for study in bench.room.studies()]
    return told(models.Studies(studies=[entry_of(bench, name, choices=choices) for name in names]))


def entry_of(bench: Bench, name: str, *, choices: bool = False) -> models.StudyEntry:
    """A study in the list of all; one whose plan or scores cannot be read is listed too."""
    room, shelf = bench.room, bench.shelf
    path = room.plan(name)
    scores = room.place_of(name) / "scores.sqlite"
    changed = max(file.stat().st_mtime for file in (path, scores) if file.is_file())
    facts: dict[str, Any] = {"file": "", "candidates": None, "done": 0, "state": "stopped", "released": ""}
    with suppress(SdcmapError):
        data = read_table(path.read_text(encoding="utf-8")).get("data")
        facts["file"] = str(data.get("path", "")) if isinstance(data, dict) else ""
        status = bench.sweeps.status(name)
        facts |= {"candidates": status["total"], "done": status["done"], "state": status["state"]}
        facts["released"] = _released_last(room, name)
    note = shelf.notes(name).strip().partition("\n")[0]
    return models.StudyEntry(
        name=name, begun=room.is_begun(name), changed=datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds"),
        releases=room.releases(name), archived=shelf.is_archived(name), note=note[:LINE],
        choice=bench.views.choice_words(name) if choices else None, **facts,
    )  # fmt: skip


def _released_last(room: Room, name: str) -> str:
    """The name of what was released last of a study, as its manifest tells."""
    from sdcmap.study.folder import Study

    made = Study.manifest_of(room.study(name)).get("releases", []) if room.is_begun(name) else []
    return str(made[-1].get("name", "")) if made else ""


# ---- what is done with one --------------------------------------------------------------------------------------


@router.post("/studies/{name}/copies", status_code=201, response_model=models.StudyEntry)
def copy_study(bench: Bench, name: str, copy: Copy) -> Response:
    """Another study with the same plan; with `scores`, with all that was made and scored, and the same seed."""
    bench.shelf.copy(name, copy.name, scores=copy.scores)
    return told(entry_of(bench, copy.name), 201)


@router.put("/studies/{name}/name", response_model=models.StudyEntry)
def rename_study(bench: Bench, name: str, new: NewName) -> Response:
    """Rename a study with all that belongs to it; 409 while a sweep of it runs."""
    with bench.releasing:
        bench.shelf.rename(name, new.name)
    bench.views.forget(name)
    return told(entry_of(bench, new.name))


@router.put("/studies/{name}/archived", response_model=models.StudyEntry)
def archive_study(bench: Bench, name: str, wanted: Archived) -> Response:
    """Put a study out of the list, or back; nothing of it changes."""
    bench.shelf.archive(name, wanted.archived)
    return told(entry_of(bench, name))


@router.delete("/studies/{name}", response_model=models.Deleted)
def delete_study(
    bench: Bench, name: str, typed: Annotated[str, Query(description="The study's name, typed.", max_length=100)]
) -> Response:
    """Remove a study for good, with its plan, scores, seed and notes; 409 while a sweep of it runs.

    Releases stay in the folder. Without their study they cannot be made again: a ledger counts them as if they had told
    every value.
    """
    with bench.releasing:
        bench.shelf.delete(name, typed)
    bench.views.forget(name)
    return told(models.Deleted(name=name, releases=bench.room.releases(name)))


@router.get("/studies/{name}/notes", response_model=models.Notes)
def notes(bench: Bench, name: str) -> Response:
    """What a person wrote about a study."""
    text = bench.shelf.notes(name)
    return told(models.Notes(text=text, version=version_of(text)))


@router.put("/studies/{name}/notes", response_model=models.Notes)
def write_notes(bench: Bench, name: str, new: NewNotes) -> Response:
    """Keep notes about a study, beside it; they are in no release and in no report."""
    bench.shelf.write_notes(name, new.text, new.version)
    return told(models.Notes(text=new.text, version=version_of(new.text)))


# ---- two of them ------------------------------------------------------------------------------------------------


@router.get("/comparisons", response_model=models.Comparison)
def compare_studies(
    bench: Bench, first: str, second: str,
    risk: Annotated[str, Query(description="A risk measure of both; by default one that is on an axis.")] = "",
    utility: Annotated[str, Query(description="A utility measure of both.")] = "",
) -> Response:  # fmt: skip
    """Two studies side by side: frontiers on common axes, choices, releases, and what their plans state differently."""
    from sdcmap.explore.plan_differences import plan_differences
    from sdcmap.workflow import own_choice

    views, names = bench.views, (first, second)
    own = [views.map(name) for name in names]
    plans = [plan for _, plan in own]
    risks, utilities = (_common(own, axis) for axis in ("risk", "utility"))
    axes = (
        _picked(risk, risks, [m for plan in plans for m in plan.risk]),
        _picked(utility, utilities, [plan.utility for plan in plans]),
    )
    maps = [views.map(name, (axes[0],), axes[1])[0] for name in names] if all(axes) else [ru for ru, _ in own]
    choices = [own_choice(bench.room.study(name), ru) for name, (ru, _) in zip(names, own, strict=True)]
    return told(models.Comparison.model_validate({
        "studies": [
            _compared(bench, *facts) for facts in zip(names, maps, choices, strict=True)
        ],
        "same_data": len({_digest(bench, name) for name in names}) == 1,
        "risks": risks, "utilities": utilities, "risk": axes[0], "utility": axes[1],
        "chart": plain(_fronts(names, maps, choices)) if all(axes) else None,
        "reason": "" if all(axes) else "the studies have no risk measure and utility measure in common: no map shows both.",
        "differences": [difference._asdict() for difference in plan_differences(*plans)],
    }))  # fmt: skip


def _common(own: list[tuple[RUMap, Plan]], axis: str) -> list[str]:
    """The measures of an axis that both studies have."""
    measures = [ru.scores.measure for ru, _ in own]
    have = [table.filter(table["axis"] == axis)["name"].to_list() for table in measures]
    return [name for name in have[0] if name in have[1]]


def _picked(asked: str, common: list[str], shown: list[str]) -> str:
    """The measure that is asked for, else one that an axis shows; empty where there is none in common."""
    if asked and asked not in common:
        raise PlanError("that measure is not one of both studies.")
    return asked or next((name for name in shown if name in common), common[0] if common else "")


def _digest(bench: Bench, name: str) -> str:
    from sdcmap.study.folder import Study

    return str(Study.manifest_of(bench.room.study(name))["data"])


def _compared(bench: Bench, name: str, ru: RUMap, choice: Choice | None) -> dict[str, Any]:
    row = _at(ru, choice)
    words = "" if choice is None else choice.name if choice.candidate else "release nothing"
    return {
        "name": name, "candidates": int((~ru.points["anchor"]).sum()), "frontier": len(ru.frontier),
        "choice": words, "risk": row.get("risk"), "utility": row.get("utility"),
        "reason": "" if choice is None else choice.reason, "releases": released(bench, name),
    }  # fmt: skip


def _at(ru: RUMap, choice: Choice | None) -> dict[str, Any]:
    """The point of a choice on this map; empty where there is none."""
    rows = ru.points.filter(ru.points["id"] == choice.candidate) if choice and choice.candidate else ru.points[:0]
    return rows.row(0, named=True) if len(rows) else {}


def _fronts(names: tuple[str, str], maps: list[RUMap], choices: list[Choice | None]) -> dict[str, Any]:
    """The chart, with each choice where it lies on the common axes."""
    from dataclasses import replace

    from sdcmap.charts import draw_fronts

    marks = {
        name: replace(choice, risk=row["risk"], utility=row["utility"])
        for name, ru, choice in zip(names, maps, choices, strict=True)
        if choice is not None and (row := _at(ru, choice))
    }
    return draw_fronts(dict(zip(names, maps, strict=True)), marks).to_dict()
