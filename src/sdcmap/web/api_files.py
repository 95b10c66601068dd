"""The service, part one: files, their roles, and a first look."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.web import models
from sdcmap.web.models import told

router = APIRouter(prefix="/api", tags=["files"])
PREVIEW = 12
Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Roles = dict[Name, Name]


class Stated(BaseModel):
    """A file, and what a person states of its columns: roles (or `numeric`), and kinds where the inferred is wrong."""

    file: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    roles: Roles = Field(default_factory=dict, max_length=5000)
    kinds: Roles = Field(default_factory=dict, max_length=5000)


@router.get("/files", response_model=models.Files)
def files(request: Request) -> Response:
    """Data files below the served folder, and how large one that is sent may be."""
    room = request.app.state.room
    return told(models.Files.model_validate({"files": room.files(), "upload_limit": room.upload_limit}))


@router.post("/files", status_code=201, response_model=models.File)
def upload(request: Request, file: UploadFile) -> Response:
    """Send a data file, in any format that is read."""
    path = request.app.state.room.take(file.filename or "", file.file)
    return told(models.File(name=path.name, bytes=path.stat().st_size), 201)


@router.post("/looks", response_model=models.Look)
def look(request: Request, stated: Stated) -> Response:
    """Kinds, roles (stated, else proposed), uniques, missing values, class sizes, telling sets of columns, a preview."""
    return told(glance(request, stated))


def glance(request: Request, stated: Stated) -> models.Look:
    from sdcmap.explore.looking import class_sizes, source_of

    views = request.app.state.views
    source = source_of(stated.file, stated.roles, stated.kinds)
    data, seen = views.data(source), views.look(source)
    proposed = {v.name: v.role for v in seen.variables if v.role != "numeric" and v.name not in stated.roles}
    keyed = data.with_roles(**proposed)  # facts of the proposed keys too
    frame = data.take(range(min(PREVIEW, len(data)))).frame()
    preview = {
        "columns": frame.columns,
        "rows": [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()],
    }
    facts = {name: fact for name, fact in seen.facts.items() if name != "source"}
    return models.Look.model_validate(facts | {
        "file": stated.file,
        "class_sizes": class_sizes(keyed),
        "telling": [{"keys": list(names), "alone": count} for names, count in seen.telling.sets],
        "telling_words": seen.telling.words,
        "preview": preview,
    })  # fmt: skip
