"""What can be read: microdata, a path, or any frame that speaks Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sdcmap.data.microdata import Microdata


class ArrowFrame(Protocol):
    """A polars, pyarrow or pandas frame, or any other that hands its columns over through Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Readable = str | Path | Microdata | ArrowFrame
