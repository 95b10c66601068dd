"""What can be read as a file of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import polars as pl

from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import Variable


class Frame(Protocol):
    """A table that hands out its columns as Arrow: of polars, pyarrow, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True)
class Labeled:
    """A frame with what is said of its variables: labels, value labels, codes for missing values."""

    frame: pl.DataFrame
    facts: Mapping[str, Variable]


Readable: TypeAlias = str | Path | Microdata | Labeled | Frame
