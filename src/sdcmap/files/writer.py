"""Write microdata to a file; the ending of its name determines the format."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sdcmap.core import Microdata, SchemaError, SdcmapError
from sdcmap.data.private_folder import staging_path
from sdcmap.files.formats import format_of


def write(data: Microdata, path: str | Path) -> Path:
    """Write microdata to a file; the ending of its name determines the format."""
    path = Path(path)
    form = format_of(path)
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
