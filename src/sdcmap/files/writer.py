"""Write microdata to a file; the ending of its name determines the format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from sdcmap.core import Microdata, PlanError, SchemaError, SdcmapError
from sdcmap.data.private_folder import staging_path
from sdcmap.files.formats import format_of


def write(data: Microdata, path: str | Path, *, excel_safe: bool = False) -> Path:
    """Write microdata to a file; the ending of its name determines the format.

    excel_safe : write an apostrophe before each text that a spreadsheet program would run as a formula; CSV only.
    """
    path = Path(path)
    form = format_of(path)
    if excel_safe:
        data = as_excel_safe(replace(data, schema=replace(data.schema, format=form.name)))
    if form.write is None:
        other = f"a .{form.released} file, which {form.words} reads too"
        raise SchemaError(f"{path.name}: a .{form.name} file can be read but not written. Write {other}.")
    if not path.parent.is_dir():
        raise SchemaError(f"there is no folder {path.parent} to write in.")
    private = ".study." in path.name  # not for publication
    try:
        with staging_path(path, private=private) as part:
            form.write(data, part)
    except pl.exceptions.PolarsError as error:  # its message may quote a value
        raise SdcmapError(f"{path} cannot be written ({type(error).__name__}).") from None
    except OSError as error:  # errors of polars have no strerror, and their message repeats the path
        reason = error.strerror or str(error).partition("(")[0].rpartition(":")[2].strip() or "disk error"
        raise SdcmapError(f"{path} cannot be written ({reason}).") from None
    return path


def as_excel_safe(data: Microdata) -> Microdata:
    """Return the data with formulas that will be written as texts; PlanError if their format is not CSV."""
    if data.schema.format != "csv":
        raise PlanError("only CSV files can be written excel-safe: other formats say which columns are texts.")
    return replace(data, schema=replace(data.schema, excel_safe=True))
