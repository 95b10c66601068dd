"""What can be read as a file of records."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeAlias

from sdcmap.data.microdata import Microdata


class Frame(Protocol):
    """A table that hands out its columns as Arrow: of polars, pyarrow, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Readable: TypeAlias = str | Path | Microdata | Frame
