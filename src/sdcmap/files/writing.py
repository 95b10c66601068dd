"""Files out: microdata as they stand, in the format that the file name's ending names."""

from __future__ import annotations

from pathlib import Path

from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, SdcmapError
from sdcmap.files.formats import STAT_FORMATS, format_of
from sdcmap.files.stat import write_statfile


def write(data: Microdata, path: str | Path) -> Path:
    """Write microdata as they stand, in the format that the file name's ending names."""
    path = Path(path)
    form = format_of(path)
    if not path.parent.is_dir():
        raise SchemaError(f"there is no folder {path.parent} to write in.")
    try:
        if form in STAT_FORMATS:
            return write_statfile(data, path)
        frame = data.frame()
        if form == "csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
    except OSError as error:  # polars gives no strerror, and its text repeats the path
        reason = error.strerror or str(error).partition("(")[0].rpartition(":")[2].strip() or "an error of the disk"
        raise SdcmapError(f"{path} cannot be written ({reason}).") from None
    return path
