"""The service, part one: files, their roles, and a first look."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import numpy as np
from fastapi import APIRouter, UploadFile
from fastapi.responses import Response
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.web import models
from sdcmap.web.models import told
from sdcmap.web.workbench import Bench

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.files.reading import Source

router = APIRouter(prefix="/api", tags=["files"])
PREVIEW = 12
Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Roles = dict[Name, Name]
Codes = list[Annotated[str, StringConstraints(min_length=1, max_length=300)]]


class Stated(BaseModel):
    """A file, and what a person states of its columns: roles (or `numeric`), kinds where the inferred is wrong, and codes
    for missing values as a plan writes them, such as "income=-8 (not applicable)"."""

    file: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    roles: Roles = Field(default_factory=dict, max_length=5000)
    kinds: Roles = Field(default_factory=dict, max_length=5000)
    missing: Codes = Field(default_factory=list, max_length=5000)

    @property
    def source(self) -> Source:
        from sdcmap.explore.looking import source_of

        return source_of(self.file, self.roles, self.kinds, self.missing)


@router.get("/files", response_model=models.Files)
def files(bench: Bench) -> Response:
    """Data files below the served folder, and how large one that is sent may be."""
    room = bench.room
    return told(models.Files.model_validate({"files": room.files(), "upload_limit": room.upload_limit}))


@router.post("/files", status_code=201, response_model=models.File)
def upload(bench: Bench, file: UploadFile) -> Response:
    """Send a data file, in any format that is read."""
    path = bench.room.take(file.filename or "", file.file)
    return told(models.File(name=path.name, bytes=path.stat().st_size), 201)


@router.post("/looks", response_model=models.Look)
def look(bench: Bench, stated: Stated) -> Response:
    """Kinds, roles (stated, else proposed), uniques, missing values and codes for them, how the values of each column are
    spread, class sizes, a preview."""
    return told(glance(bench, stated))


@router.post("/looks/telling", response_model=models.Telling)
def telling(bench: Bench, stated: Stated) -> Response:
    """Which columns tell the most: the sets of up to three, and the pairs, that leave the most records alone."""
    sets, pairs = bench.views.telling(stated.source)
    return told(models.Telling(
        sets=[models.TellingSet(keys=list(names), alone=count) for names, count in sets.sets], words=sets.words,
        names=list(pairs.names), pairs=pairs.alone.tolist(), pairs_words=pairs.words,
    ))  # fmt: skip


def glance(bench: Bench, stated: Stated) -> models.Look:
    views, source = bench.views, stated.source
    data, seen, bars = views.data(source), views.look(source), views.bars(source)
    frame = data.take(np.arange(min(PREVIEW, len(data)))).frame()
    preview = {
        "columns": frame.columns,
        "rows": [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()],
    }
    facts = {name: fact for name, fact in seen.facts.items() if name not in ("source", "telling", "variables")}
    return models.Look.model_validate(facts | {
        "file": stated.file,
        "variables": [
            asdict(v) | {"spread": asdict(bars[v.name]), "missing_codes": _codes(data, v.name)} for v in seen.variables
        ],
        "preview": preview,
    })  # fmt: skip


def _codes(data: Microdata, name: str) -> list[str]:
    """The codes for missing values that hold for a column, stated or the file's own, each with its words."""
    variable = data.schema[name]
    words = dict(variable.values)
    ends = (code if isinstance(code, tuple) else (code,) for code in variable.missing)
    return [
        " to ".join(f"{end:g}" if isinstance(end, float) else str(end) for end in code)
        + (f" ({words[code[0]]})" if len(code) == 1 and words.get(code[0]) else "")
        for code in ends
    ]
