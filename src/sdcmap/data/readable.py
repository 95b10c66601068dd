"""The types that `read` accepts as a file of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import polars as pl

from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import Variable


class Frame(Protocol):
    """A table with the Arrow interface: of polars, pyarrow, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(frozen=True)
class LabeledFrame:
    """A frame with metadata of its variables: labels, value labels, codes for missing values."""

    frame: pl.DataFrame
    facts: Mapping[str, Variable]


Readable: TypeAlias = str | Path | Microdata | LabeledFrame | Frame
