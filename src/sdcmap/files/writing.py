"""Files out: microdata as they stand, in the format that the file name's ending names."""

from __future__ import annotations

from pathlib import Path

from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, SdcmapError
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
    try:
        form.write(data, path)
    except OSError as error:  # polars gives no strerror, and its text repeats the path
        reason = error.strerror or str(error).partition("(")[0].rpartition(":")[2].strip() or "an error of the disk"
        raise SdcmapError(f"{path} cannot be written ({reason}).") from None
    return path
