"""The service, part one: files, their roles, and a first look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, UploadFile
from pydantic import BaseModel, Field, StringConstraints

from sdcmap.data.microdata import Microdata
from sdcmap.explore.column_bars import Bars
from sdcmap.explore.first_look import ColumnSummary, source_of
from sdcmap.files.reader import Source
from sdcmap.web.models import Answer
from sdcmap.web.workbench import Bench
from sdcmap.web.workspace import DataFile

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
        return source_of(self.file, self.roles, self.kinds, self.missing)


class Files(Answer):
    """The data files, and how many bytes a file that is sent may have."""

    files: list[DataFile]
    upload_limit: int


@dataclass(frozen=True, kw_only=True)
class SeenColumn(ColumnSummary):
    """What is seen of one column, how its values are spread, and the codes that count as missing, with their words."""

    spread: Bars
    missing_codes: list[str]


class Preview(Answer):
    """The first records, as text."""

    columns: list[str]
    rows: list[list[str]]


class SeenFile(Answer):
    """A first look at a file.

    cells : combinations of the keys that occur. sizes : records in combinations of fewer than 2, 3, 5, 10 records. alone :
    by what is known, the columns and the records alone on them. codes : values that look like codes for missing ones.
    """

    file: str
    rows: int
    variables: list[SeenColumn]
    cells: int
    sizes: dict[str, int]
    alone: dict[str, tuple[int, int]]
    class_sizes: tuple[tuple[str, int], ...]
    codes: tuple[str, ...]
    mixed: dict[str, int]
    census: bool
    preview: Preview


class TellingSet(Answer):
    """A set of columns, and how many records are alone on it."""

    keys: tuple[str, ...]
    alone: int


class TellingColumns(Answer):
    """Which columns tell the most: sets of up to three, and pairs of `names` (on the diagonal, one column)."""

    sets: list[TellingSet]
    words: str
    names: tuple[str, ...]
    pairs: list[list[int]]
    pairs_words: str


@router.get("/files")
def files(bench: Bench) -> Files:
    """Data files below the served folder, and how large one that is sent may be."""
    return Files(bench.room.files(), bench.room.upload_limit)


@router.post("/files", status_code=201)
def upload(bench: Bench, file: UploadFile) -> DataFile:
    """Send a data file, in any format that is read."""
    path = bench.room.take(file.filename or "", file.file)
    return DataFile(path.name, path.stat().st_size)


@router.post("/looks")
def look(bench: Bench, stated: Stated) -> SeenFile:
    """Kinds, roles (stated, else proposed), uniques, missing values and codes for them, how the values of each column are
    spread, class sizes, a preview."""
    views, source = bench.views, stated.source
    data, seen, bars = views.data(source), views.look(source), views.bars(source)
    frame = data.take(np.arange(min(PREVIEW, len(data)))).frame()
    rows = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
    columns = [SeenColumn(**vars(v), spread=bars[v.name], missing_codes=_codes(data, v.name)) for v in seen.variables]
    return SeenFile(
        stated.file, seen.rows, columns, seen.cells, seen.sizes, seen.unique, seen.class_sizes, seen.codes, seen.mixed,
        seen.census, Preview(frame.columns, rows),
    )  # fmt: skip


@router.post("/looks/telling")
def telling(bench: Bench, stated: Stated) -> TellingColumns:
    """Which columns tell the most: the sets of up to three, and the pairs, that leave the most records alone."""
    _, sets, pairs = bench.views.telling(stated.source)
    named = [TellingSet(names, count) for names, count in sets.sets]
    return TellingColumns(named, sets.words, pairs.names, pairs.unique.tolist(), pairs.words)


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
