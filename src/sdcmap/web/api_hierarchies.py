"""The service, part two and three quarters: hierarchies that are drawn up in the page, and kept as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.core.named_files import content_of, digest_of, files_below
from sdcmap.web import models
from sdcmap.web.api_files import Name
from sdcmap.web.models import told
from sdcmap.web.room import Busy
from sdcmap.web.shelf import version_of
from sdcmap.web.workbench import Bench

router = APIRouter(prefix="/api", tags=["plans"])
Label = Annotated[str, StringConstraints(max_length=500)]
Rows = Annotated[list[Annotated[list[Label], Field(min_length=1, max_length=20)]], Field(max_length=1000)]
File = Annotated[str, StringConstraints(max_length=300)]


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


@router.post("/studies/{name}/hierarchies/drafts", response_model=models.DraftHierarchy)
def draft_hierarchy(bench: Bench, name: str, draft: HierarchyDraft) -> Response:
    """Categories with their records, what each level makes of them, and why it cannot be saved yet."""
    from sdcmap.data.hierarchy import Hierarchy
    from sdcmap.explore.hierarchies import by_first_characters, categories_of, drafted

    room, views = bench.room, bench.views
    data = views.data_of(views.plan(room.plan(name).read_text(encoding="utf-8")), name)
    records = categories_of(data, draft.on)
    rows: Sequence[Sequence[str]] = draft.rows
    version = ""
    if draft.begin == "prefixes":
        rows = by_first_characters(list(records))
    elif draft.begin == "file":
        with files_below(room.folder):
            version = digest_of(draft.file, "hierarchy")
            rows = Hierarchy.parse(content_of(draft.file, version), draft.file).rows
    return told(models.DraftHierarchy.model_validate(asdict(drafted(records, rows)) | {"version": version}))


@router.put("/studies/{name}/hierarchies", response_model=models.KeptHierarchy)
def keep_hierarchy(bench: Bench, name: str, given: HierarchyToKeep) -> Response:
    """Keep a hierarchy as a private CSV file of the served folder; no file is replaced that was not opened as it is now."""
    from sdcmap.explore.hierarchies import written

    room, views = bench.room, bench.views
    plan = views.plan(room.plan(name).read_text(encoding="utf-8"))
    if plan.data is not None and room.folder / plan.data.path == room.folder / given.file:
        raise Busy("that is the data file of this study: take another name.")
    text = written(given.rows)
    room.keep(given.file, text, given.version)
    return told(models.KeptHierarchy(name=given.file, version=version_of(text), levels=len(given.rows[0]) - 1))
