"""Files with more rows than memory: a Parquet file read block by block into a working copy that is mapped, not loaded.

The result is the same as that of `read`, value for value and digest for digest; identifiers are left out, as in every
working copy. Counting measures and swaps then touch only the columns they need; arrays with a number for each record lie
in files too (kernels/scratch_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.core import Array, PlanError, SchemaError, SdcmapError
from sdcmap.data.known_by import known_by_of, with_known_by
from sdcmap.data.microdata import Microdata, smallest_unsigned
from sdcmap.data.schema import NEVER_RELEASED, Schema, Variable
from sdcmap.files import formats
from sdcmap.files.formats import format_of
from sdcmap.files.reading import ORDINAL_LEVELS, Source, encode, plan_columns
from sdcmap.files.working_copy import Part, open_copy, write_parts

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
BASE = 200 << 20  # bytes of the interpreter, its libraries and compiled kernels
PER_ROW = 12  # bytes of memory a row needs at the least: pairs and cells of swapped records, marks of rows


def bytes_of(text: str) -> int:
    """A size such as 500MB or 2GB in bytes.

    >>> bytes_of("2GB")
    2147483648
    """
    number, unit = text.strip()[:-2], text.strip()[-2:].upper()
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError):
        raise PlanError(f"{text!r} is no size of memory: write it as 500MB or 2GB.") from None


def check_room(memory: int, rows: int, workers: int) -> None:
    """SdcmapError when so many rows cannot be worked on by so many workers in so much memory."""
    needed = workers * (BASE + PER_ROW * rows)
    if memory and memory < needed:
        least = f"at least {-(-needed >> 20):,} MB for {workers} worker(s)"
        raise SdcmapError(f"{rows:,} rows need {least}: raise --memory, or lower --workers.")


def read_in_blocks(source: Source, folder: str | Path, *, below: Path = Path(), memory: int = 1 << 30) -> Microdata:
    """A Parquet file as mapped microdata, by way of a working copy in `folder`, with `memory` bytes at the most.

    Parameters
    ----------
    source : path and roles, as in a plan's [data] part; a relative path is looked up below `below`.
    folder : where the working copy lies; it must stay as long as the data are used. A study folder can be given.
    """
    path, folder = below / source.path, Path(folder)
    form = format_of(path)
    if form.scan is None:
        able = " or ".join(other.words for other in formats.FORMATS if other.scan is not None)
        raise SchemaError(f"{path.name}: only a {able} file is read in blocks; convert it first.")
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if source.missing or source.ddi:
        refusal = "codes for missing values are not read in blocks, nor is a codebook"
        raise SchemaError(f"{path.name}: {refusal}; make them null in the file first.")
    try:
        scan = form.scan(path)
        types = dict(scan.collect_schema())
        rows = int(scan.select(pl.len()).collect().item())
        check_room(memory, rows, 1)
        wanted = plan_columns(source, list(types), rows)
        file = _File(scan, rows, max(1 << 16, (memory - BASE) // 512))
        released = [(fact, kind) for fact, kind in wanted if fact.role not in NEVER_RELEASED]
        columns = [file.column(fact, types[fact.name], kind) for fact, kind in released]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        variables = with_known_by([variable for variable, _ in columns], known_by_of(source.known_by))
        schema = Schema(variables, form.released, source.census)
        levels = {variable.name: categories for variable, categories in columns}
        write_parts(folder, schema, rows, levels, ([file.part(*column)] for column in columns))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SchemaError(f"{path.name} cannot be read as {form.name} ({type(error).__name__}).") from None
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror or type(error).__name__}).") from None
    return open_copy(folder, None)


@dataclass(frozen=True)
class _File:
    scan: pl.LazyFrame
    rows: int
    step: int  # rows of a block

    def part(self, variable: Variable, levels: pl.Series | None) -> Part:
        """The values of a column, in blocks."""
        dtype = np.dtype(np.float64) if levels is None else np.dtype(smallest_unsigned(len(levels)))
        return Part("values", dtype, self._coded(variable, levels))

    def _coded(self, variable: Variable, levels: pl.Series | None) -> Iterator[Array]:
        """The second pass: each block coded on its own, then its codes carried over to those of the whole column."""
        place = {} if levels is None else {level: code for code, level in enumerate(levels.to_list())}
        for raw in self.blocks(variable.name):
            block = encode(raw, variable, variable.kind)[1]
            if variable.role == "weight" and not (block.values > 0).all():
                raise SchemaError(f"weight {variable.name!r} must be above zero and not missing; some rows are not.")
            codes = [] if block.levels is None else [place[level] for level in block.levels.to_list()]
            yield block.values if block.levels is None else np.array(codes, np.int64)[block.values]

    def blocks(self, name: str) -> Iterator[pl.Series]:
        for start in range(0, self.rows, self.step):
            yield self.scan.select(name).slice(start, self.step).collect()[name]

    def column(self, fact: Variable, dtype: pl.DataType, kind: str | None) -> tuple[Variable, pl.Series | None]:
        """The variable and its categories: those of the file as a whole, so that they are what `read` finds."""
        countable = fact.role in ("household", "stratum") or kind in ("nominal", "ordinal")
        if dtype.is_numeric() and not countable and (fact.role != "key" or not dtype.is_integer()):
            kind = "numeric"
        limit = ORDINAL_LEVELS if dtype.is_numeric() and not countable else None
        distinct = None if kind == "numeric" else self._distinct(fact.name, limit)
        if distinct is None:
            return encode(next(self.blocks(fact.name)), fact, "numeric")[0], None
        variable, column = encode(distinct, fact, kind)
        return variable, column.levels

    def _distinct(self, name: str, limit: int | None) -> pl.Series | None:
        """The distinct values of a column, missing included; None when there are more than `limit` besides missing."""
        met: pl.Series | None = None
        for raw in self.blocks(name):
            met = raw.unique() if met is None else met.append(raw).unique()
            if limit is not None and len(met.drop_nulls()) > limit:
                return None
        return met
