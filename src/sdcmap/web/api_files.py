"""Routes for data files: list, upload, and a first look at columns and roles."""

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
from sdcmap.web.response_models import ResponseModel
from sdcmap.web.workbench import Bench
from sdcmap.web.workspace import DataFile

router = APIRouter(prefix="/api", tags=["files"])
PREVIEW_ROWS = 12  # first records of a file that are shown
Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Roles = dict[Name, Name]
Codes = list[Annotated[str, StringConstraints(min_length=1, max_length=300)]]


class FileDescription(BaseModel):
    """A file, and what the user states about its columns.

    roles : column -> role (or `numeric`). kinds : column -> kind, if the inferred one is wrong. missing : codes for missing
    values as in a plan, such as "income=-8 (not applicable)".
    """

    file: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    roles: Roles = Field(default_factory=dict, max_length=5000)
    kinds: Roles = Field(default_factory=dict, max_length=5000)
    missing: Codes = Field(default_factory=list, max_length=5000)

    @property
    def source(self) -> Source:
        return source_of(self.file, self.roles, self.kinds, self.missing)


class Files(ResponseModel):
    """The data files, and the largest upload in bytes."""

    files: list[DataFile]
    upload_limit: int


@dataclass(frozen=True, kw_only=True)
class ColumnDetails(ColumnSummary):
    """The summary of one column, the distribution of its values, and the codes that count as missing, with labels."""

    spread: Bars
    missing_codes: list[str]


class Preview(ResponseModel):
    """The first records, as text."""

    columns: list[str]
    rows: list[list[str]]


class FileSummary(ResponseModel):
    """A first look at a file.

    cells : combinations of the keys that occur. sizes : records in combinations of fewer than 2, 3, 5, 10 records. unique :
    for each kind of attacker, the number of columns they know and of records that are unique on them. codes : values that
    look like codes for missing values.
    """

    file: str
    rows: int
    variables: list[ColumnDetails]
    cells: int
    sizes: dict[str, int]
    unique: dict[str, tuple[int, int]]
    class_sizes: tuple[tuple[str, int], ...]
    codes: tuple[str, ...]
    mixed: dict[str, int]
    census: bool
    preview: Preview


class IdentifyingSet(ResponseModel):
    """A set of columns, and how many records are unique on it."""

    keys: tuple[str, ...]
    unique: int


class IdentifyingColumns(ResponseModel):
    """The most identifying columns: sets of up to three, and pairs of `names` (on the diagonal, one column)."""

    sets: list[IdentifyingSet]
    words: str
    names: tuple[str, ...]
    pairs: list[list[int]]
    pairs_words: str


@router.get("/files")
def files(bench: Bench) -> Files:
    """Return the data files below the served folder, and the largest upload in bytes."""
    return Files(bench.workspace.files(), bench.workspace.upload_limit)


@router.post("/files", status_code=201)
def upload(bench: Bench, file: UploadFile) -> DataFile:
    """Upload a data file, in any supported format."""
    path = bench.workspace.store_upload(file.filename or "", file.file)
    return DataFile(path.name, path.stat().st_size)


@router.post("/looks")
def look(bench: Bench, description: FileDescription) -> FileSummary:
    """Return kinds, roles (stated or proposed), unique records, missing values and their codes, the distribution of each
    column, the sizes of key combinations, and a preview."""
    views, source = bench.views, description.source
    data, overview, bars = views.data(source), views.look(source), views.bars(source)
    frame = data.take(np.arange(min(PREVIEW_ROWS, len(data)))).frame()
    rows = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
    columns = [
        ColumnDetails(**vars(v), spread=bars[v.name], missing_codes=_codes(data, v.name)) for v in overview.variables
    ]
    return FileSummary(
        description.file,
        overview.rows,
        columns,
        overview.cells,
        overview.sizes,
        overview.unique,
        overview.class_sizes,
        overview.codes,
        overview.mixed,
        overview.census,
        Preview(frame.columns, rows),
    )


@router.post("/looks/identifying")
def identifying_columns(bench: Bench, description: FileDescription) -> IdentifyingColumns:
    """Return the most identifying columns: the sets of up to three and the pairs on which the most records are unique."""
    _, sets, pairs = bench.views.identifying_columns(description.source)
    named = [IdentifyingSet(names, count) for names, count in sets.sets]
    return IdentifyingColumns(named, sets.words, pairs.names, pairs.unique.tolist(), pairs.words)


def _codes(data: Microdata, name: str) -> list[str]:
    """Return the codes for missing values of a column, stated or the file's own, each with its label."""
    variable = data.schema[name]
    words = dict(variable.values)
    ends = (code if isinstance(code, tuple) else (code,) for code in variable.missing)
    return [
        " to ".join(f"{end:g}" if isinstance(end, float) else str(end) for end in code)
        + (f" ({words[code[0]]})" if len(code) == 1 and words.get(code[0]) else "")
        for code in ends
    ]
