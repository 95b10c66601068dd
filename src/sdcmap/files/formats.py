"""File formats by the ending of a name."""

from __future__ import annotations

from pathlib import Path

from sdcmap.errors import SchemaError

STAT_FORMATS = ("sav", "dta", "sas7bdat", "xpt")
FORMATS = ("csv", "parquet", *STAT_FORMATS)


def format_of(path: Path) -> str:
    form = path.suffix.lower().lstrip(".")
    form = {"pq": "parquet", "zsav": "sav", "xport": "xpt"}.get(form, form)
    if form not in FORMATS:
        raise SchemaError(f"{path.name}: the file's ending must be one of {', '.join('.' + name for name in FORMATS)}.")
    return form
