"""The working copy that workers map into memory: codes and numbers as they are, identifiers left out.

`data.bin` holds the columns one after the other, uncompressed; `schema.arrow` the levels, and where each column lies.
(Arrow alone would do, but polars 2 no longer maps its files into memory.)
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.errors import StudyDamaged
from sdcmap.microdata import Array, Column, Microdata
from sdcmap.schema import Schema, Variable

ALIGN = 64  # bytes: where a column may begin


def write_copy(data: Microdata, folder: Path) -> Path:
    """Write the working copy into `folder`, readable by its owner alone."""
    names = [name for name in data.names if name not in data.identifiers]
    columns = {name: data.column(name) for name in names}
    places: list[dict[str, Any]] = []
    path = folder / "data.bin.part"
    path.touch(mode=0o600)
    with path.open("wb") as file:
        for name, column in columns.items():
            for part in ("values", "reasons"):
                array: Array | None = getattr(column, part)
                if array is not None:
                    file.write(bytes(-file.tell() % ALIGN))
                    places.append({"name": name, "part": part, "dtype": str(array.dtype), "offset": file.tell()})
                    file.write(np.ascontiguousarray(array).data)
    path.replace(folder / "data.bin")
    facts = {
        "rows": len(data), "format": data.schema.format, "columns": places,
        "variables": [asdict(data.schema[name]) for name in names],
    }  # fmt: skip
    levels = {name: pl.Series([column.levels]) for name, column in columns.items() if column.levels is not None}
    path = folder / "schema.arrow.part"
    path.touch(mode=0o600)
    pl.DataFrame({"": [json.dumps(facts)], **levels}).write_ipc(path)
    path.replace(folder / "schema.arrow")
    return folder


def open_copy(folder: Path, digest: str) -> Microdata:
    """The microdata of a working copy, mapped; StudyDamaged when it is not the one with this digest."""
    try:
        table = pl.read_ipc(folder / "schema.arrow")
        facts = json.loads(table[""][0])
        arrays = {(p["name"], p["part"]): _mapped(folder / "data.bin", p, facts["rows"]) for p in facts["columns"]}
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError):
        raise StudyDamaged(f"the working copy in {folder.name} is missing or damaged: run the sweep again.") from None
    variables = tuple(_variable(fact) for fact in facts["variables"])
    columns = {
        v.name: Column(arrays[v.name, "values"], _levels(table, v.name), arrays.get((v.name, "reasons")))
        for v in variables
    }
    data = Microdata(Schema(variables, facts["format"]), columns)
    if data.digest != digest:
        raise StudyDamaged(f"the working copy in {folder.name} is not of these data: run the sweep again.")
    return data


def _mapped(path: Path, place: dict[str, Any], rows: int) -> Array:
    return np.asarray(np.memmap(path, place["dtype"], "r", place["offset"], (rows,)))


def _levels(table: pl.DataFrame, name: str) -> pl.Series | None:
    return table[name][0].alias(name) if name in table.columns else None


def _variable(fact: dict[str, Any]) -> Variable:
    missing = tuple(tuple(code) if isinstance(code, list) else code for code in fact.pop("missing"))
    values = tuple((code, words) for code, words in fact.pop("values"))
    return Variable(**{**fact, "reasons": tuple(fact["reasons"])}, missing=missing, values=values)
