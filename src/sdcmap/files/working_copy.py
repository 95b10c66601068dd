"""The working copy of the data, which workers map into memory; without identifiers and dropped columns.

The number of a case (a person with several records) is replaced by another number.

`data.bin` contains the columns one after the other, uncompressed; `schema.arrow` their levels and offsets. It ends with its
SHA-256, which is checked first, because a damaged Arrow file can crash the process that reads it. (One Arrow file would
suffice, but polars 2 no longer maps Arrow files into memory.)
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Column, Microdata
from sdcmap.data.microdata import number_by_appearance
from sdcmap.data.private_folder import private_folder
from sdcmap.data.schema import NEVER_COPIED, Schema, Variable
from sdcmap.errors import SdcmapError, StudyDamaged

ALIGNMENT_BYTES = 64  # a column begins at a multiple of this, for fast array operations
OPEN_FILES = Path("/proc/self/fd")  # the open files of a process on Linux


class Part(NamedTuple):
    """The values of a column, or its reasons for missing values, as blocks of rows."""

    name: str
    dtype: np.dtype[Any]
    blocks: Iterable[Array]


def write_copy(data: Microdata, folder: Path) -> Path:
    """Write the working copy into `folder`; only the owner can read it."""
    copied = [variable for variable in data.schema.variables if variable.role not in NEVER_COPIED]
    columns = {variable.name: data.column(variable.name) for variable in copied}
    schema = replace(data.schema, variables=tuple(map(_without_number, copied)))
    if data.case is not None:
        columns[data.case] = Column(number_by_appearance(data, data.case))
    levels = {name: column.levels for name, column in columns.items()}
    return write_parts(folder, schema, len(data), levels, (_parts(column) for column in columns.values()))


def _without_number(variable: Variable) -> Variable:
    """Return the variable; that of a case without anything that describes its own numbers."""
    return Variable(variable.name, "numeric", "case") if variable.role == "case" else variable


@contextmanager
def temporary_copy(data: Microdata) -> Iterator[Path]:
    """Yield the folder of a working copy that exists during the block.

    On Linux the files are unlinked after writing, and the folder has links to the open files of this process. So they
    disappear with the process, even if it is killed.
    """
    with private_folder() as folder, ExitStack() as stack:
        write_copy(data, folder)
        for path in folder.iterdir() if OPEN_FILES.is_dir() else ():
            file = stack.enter_context(path.open("rb"))
            path.unlink()
            path.symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        yield folder


def _parts(column: Column) -> list[Part]:
    named = {"values": column.values, "reasons": column.reasons}
    return [Part(name, array.dtype, [array]) for name, array in named.items() if array is not None]


def write_parts(
    folder: Path, schema: Schema, rows: int, levels: Mapping[str, pl.Series | None], parts: Iterable[Iterable[Part]]
) -> Path:
    """Write columns as parts, and each part as blocks, so that no column has to fit into memory."""
    offsets: list[dict[str, Any]] = []
    try:
        with _staging_file(folder / "data.bin") as path, path.open("wb") as file:
            for name, column in zip(schema.names, parts, strict=True):
                for part in column:
                    # Pad with zero bytes up to the next aligned offset.
                    file.write(bytes(-file.tell() % ALIGNMENT_BYTES))
                    offsets.append({"name": name, "part": part.name, "dtype": str(part.dtype), "offset": file.tell()})
                    for block in part.blocks:
                        file.write(np.ascontiguousarray(block, part.dtype).data)
        study = {name: getattr(schema, name) for name in ("format", "census", "title", "universe")}
        facts = {"rows": rows, **study, "columns": offsets, "variables": [asdict(v) for v in schema.variables]}
        stored_levels = {name: pl.Series([categories]) for name, categories in levels.items() if categories is not None}
        content = BytesIO()
        pl.DataFrame({"": [json.dumps(facts)], **stored_levels}).write_ipc(content)
        with _staging_file(folder / "schema.arrow") as path:
            path.write_bytes(content.getvalue() + hashlib.sha256(content.getvalue()).digest())
    except (OSError, pl.exceptions.PolarsError):
        raise SdcmapError(f"the working copy of the data cannot be written in {folder}: is the disk full?") from None
    return folder


@contextmanager
def _staging_file(path: Path) -> Iterator[Path]:
    """Yield a path for a private file, which is renamed to `path` when it is complete."""
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    yield part
    part.replace(path)


def open_copy(folder: Path, digest: str | None) -> Microdata:
    """Return the microdata of a working copy, memory-mapped; StudyDamaged if its digest differs (None: any digest)."""
    try:
        table = pl.read_ipc(BytesIO(_check_digest((folder / "schema.arrow").read_bytes())))
        facts = json.loads(table[""][0])
        bare = partial(np.memmap, folder / "data.bin", mode="r", shape=(facts["rows"],))
        mapped = {(p["name"], p["part"]): bare(dtype=p["dtype"], offset=p["offset"]) for p in facts["columns"]}
        arrays = {key: np.asarray(array) for key, array in mapped.items()}
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError):
        raise StudyDamaged(f"the working copy in {folder.name} is missing or damaged: run the sweep again.") from None
    variables = tuple(_variable(fact) for fact in facts["variables"])
    names = [variable.name for variable in variables]
    levels = {name: table[name][0].alias(name) for name in names if name in table.columns}
    columns = {n: Column(arrays[n, "values"], levels.get(n), arrays.get((n, "reasons"))) for n in names}
    study = {name: facts[name] for name in ("census", "title", "universe") if name in facts}
    data = Microdata(Schema(variables, facts["format"], **study), columns)
    if digest is not None and data.digest != digest:
        raise StudyDamaged(f"the working copy in {folder.name} belongs to other data: run the sweep again.")
    return data


def _check_digest(content: bytes) -> bytes:
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise ValueError
    return content[:-32]


def _variable(fact: dict[str, Any]) -> Variable:
    missing = tuple(tuple(code) if isinstance(code, list) else code for code in fact.pop("missing"))
    values = tuple((code, words) for code, words in fact.pop("values"))
    return Variable(**{**fact, "reasons": tuple(fact["reasons"])}, missing=missing, values=values)
