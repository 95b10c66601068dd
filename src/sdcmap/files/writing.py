"""Files out: microdata as they stand, in the format that the file name's ending names."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sdcmap.core import Microdata, SchemaError, SdcmapError
from sdcmap.data.private_folder import aside
from sdcmap.files.formats import format_of


def write(data: Microdata, path: str | Path) -> Path:
    """Write microdata as they stand, in the format that the file name's ending names."""
    path = Path(path)
    form = format_of(path)
    if form.write is None:
        other = f"a .{form.released} file, which {form.words} reads too"
        raise SchemaError(f"{path.name}: a .{form.name} file can only be read; write {other}.")
    if not path.parent.is_dir():
        raise SchemaError(f"there is no folder {path.parent} to write in.")
    private = ".study." in path.name  # it is made for the room
    try:
        with aside(path, private=private) as part:
            form.write(data, part)
    except pl.exceptions.PolarsError as error:  # its text may hold a value
        raise SdcmapError(f"{path} cannot be written ({type(error).__name__}).") from None
    except OSError as error:  # polars gives no strerror, and its text repeats the path
        reason = error.strerror or str(error).partition("(")[0].rpartition(":")[2].strip() or "an error of the disk"
        raise SdcmapError(f"{path} cannot be written ({reason}).") from None
    return path
