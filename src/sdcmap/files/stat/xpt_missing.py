"""Special missings in the bytes of a SAS .xpt file (SAS paper TS-140): .A is the letter A and seven zero bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sdcmap.kernels.arrays import Array


def numeric_bytes(path: Path, facts: Any, rows: int, mode: Literal["r", "r+"]) -> dict[str, Array]:
    """The bytes of each numeric column of an .xpt file, one row per record; none where the layout is not the plain one.

    The records, of fixed width, follow the OBS header; blanks fill the last 80 bytes.
    """
    widths = np.array([facts.variable_storage_width[name] for name in facts.column_names])
    content = np.memmap(path, np.uint8, mode)
    start = content[: 2_000 + 800 * len(widths)].tobytes().find(b"HEADER RECORD*******OBS") + 80
    size = rows * int(widths.sum())
    if not 0 <= len(content) - start - size < 80:
        return {}
    records = content[start : start + size].reshape(rows, -1)
    places = zip(facts.column_names, np.cumsum(widths) - widths, widths, strict=True)
    texts = facts.readstat_variable_types
    return {name: records[:, at : at + width] for name, at, width in places if texts[name] != "string"}


def letters_of(path: Path, frame: pl.DataFrame, facts: Any) -> dict[str, Array]:
    """The letters of special missings in an .xpt file (0: none), of the columns that have some."""
    special = np.isin(np.arange(256), [*range(ord("A"), ord("Z") + 1), ord("_")])
    letters = {}
    for name, cells in numeric_bytes(path, facts, frame.height, "r").items():
        is_letter = special[cells[:, 0]] & ~cells[:, 1:].any(axis=1)
        if is_letter.any():
            letters[name] = np.where(is_letter, cells[:, 0], 0)
    return letters
