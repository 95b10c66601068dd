"""Read Parquet files larger than memory, block by block, into a working copy that is memory-mapped.

The result equals that of `read`, with the same values and digest; identifiers are left out, as in every working copy.
Counting measures and swaps then load only the columns they need. Arrays with a number per record are stored in files, too
(kernels/scratch_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.core import Array, PlanError, SchemaError, SdcmapError
from sdcmap.data.known_by import parse_known_by, with_known_by
from sdcmap.data.microdata import Microdata, smallest_unsigned
from sdcmap.data.schema import NEVER_RELEASED, Schema, Variable
from sdcmap.files import formats
from sdcmap.files.formats import format_of
from sdcmap.files.reader import MAX_ORDINAL_KEY_LEVELS, Source, encode, plan_columns
from sdcmap.files.working_copy import Part, open_copy, write_parts

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
INTERPRETER_BYTES = 200 << 20  # memory of the interpreter, its libraries and compiled kernels
MIN_BYTES_PER_ROW = 12  # for pairs and cells of swapped records, and flags per row


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as 500MB or 2GB.

    >>> parse_bytes("2GB")
    2147483648
    """
    number, unit = text.strip()[:-2], text.strip()[-2:].upper()
    try:
        return int(float(number) * UNITS[unit])
    except (ValueError, KeyError):
        raise PlanError(f"{text!r} is not a memory size: write it as 500MB or 2GB.") from None


def check_memory(memory: int, rows: int, workers: int) -> None:
    """Raise SdcmapError if the memory is too small for this number of rows and workers."""
    needed = workers * (INTERPRETER_BYTES + MIN_BYTES_PER_ROW * rows)
    if memory and memory < needed:
        least = f"at least {-(-needed >> 20):,} MB for {workers} worker(s)"
        raise SdcmapError(f"{rows:,} rows need {least}: increase --memory, or use fewer --workers.")


def read_in_blocks(source: Source, folder: str | Path, *, below: Path = Path(), memory: int = 1 << 30) -> Microdata:
    """Return a Parquet file as memory-mapped microdata, through a working copy in `folder`.

    Parameters
    ----------
    source : path and roles, as in the [data] part of a plan; a relative path is relative to `below`.
    folder : for the working copy, which must exist as long as the data are used. It can be a study folder.
    memory : bytes to use at most.
    """
    path, folder = below / source.path, Path(folder)
    form = format_of(path)
    if form.scan is None:
        able = " or ".join(other.words for other in formats.FORMATS if other.scan is not None)
        raise SchemaError(f"{path.name}: only a {able} file can be read in blocks. Convert it first.")
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if source.missing or source.ddi:
        refusal = "codes for missing values and codebooks cannot be used when a file is read in blocks"
        raise SchemaError(f"{path.name}: {refusal}. Replace the codes by null in the file first.")
    try:
        scan = form.scan(path)
        types = dict(scan.collect_schema())
        rows = int(scan.select(pl.len()).collect().item())
        check_memory(memory, rows, 1)
        statements = plan_columns(source, list(types), rows)
        # A block takes a small part of the memory, because encoding needs several copies of it.
        file = _File(scan, rows, max(1 << 16, (memory - INTERPRETER_BYTES) // 512))
        if any(fact.role == "case" for fact, _ in statements):
            raise SchemaError(f"{path.name}: the number of a case cannot be used when a file is read in blocks.")
        released = [(fact, kind) for fact, kind in statements if fact.role not in NEVER_RELEASED]
        columns = [file.column(fact, types[fact.name], kind) for fact, kind in released]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        variables = with_known_by([variable for variable, _ in columns], parse_known_by(source.known_by))
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
        """Return the values of a column, in blocks."""
        dtype = np.dtype(np.float64) if levels is None else np.dtype(smallest_unsigned(len(levels)))
        return Part("values", dtype, self._encode_blocks(variable, levels))

    def _encode_blocks(self, variable: Variable, levels: pl.Series | None) -> Iterator[Array]:
        """Yield the blocks of a column in the codes of the whole column (second pass)."""
        code_of = {} if levels is None else {level: code for code, level in enumerate(levels.to_list())}
        for raw in self.blocks(variable.name):
            block = encode(raw, variable, variable.kind)[1]
            if variable.role == "weight" and not (block.values > 0).all():
                raise SchemaError(f"weight {variable.name!r} must be above zero in every row; in some rows it is not.")
            # Each block is encoded on its own; its codes are then translated to those of the column.
            codes = [] if block.levels is None else [code_of[level] for level in block.levels.to_list()]
            yield block.values if block.levels is None else np.array(codes, np.int64)[block.values]

    def blocks(self, name: str) -> Iterator[pl.Series]:
        for start in range(0, self.rows, self.step):
            yield self.scan.select(name).slice(start, self.step).collect()[name]

    def column(self, fact: Variable, dtype: pl.DataType, kind: str | None) -> tuple[Variable, pl.Series | None]:
        """Return the variable and its categories in the whole file, as `read` would (first pass)."""
        # Decide the kind as `read` does, but without loading the whole column.
        countable = fact.role in ("household", "stratum") or kind in ("nominal", "ordinal")
        if dtype.is_numeric() and not countable and (fact.role != "key" or not dtype.is_integer()):
            kind = "numeric"
        limit = MAX_ORDINAL_KEY_LEVELS if dtype.is_numeric() and not countable else None
        distinct = None if kind == "numeric" else self._distinct(fact.name, limit)
        if distinct is None:
            return encode(next(self.blocks(fact.name)), fact, "numeric")[0], None
        variable, column = encode(distinct, fact, kind)
        return variable, column.levels

    def _distinct(self, name: str, limit: int | None) -> pl.Series | None:
        """Return the distinct values of a column, missing included; None if there are more than `limit`."""
        distinct: pl.Series | None = None
        for raw in self.blocks(name):
            distinct = raw.unique() if distinct is None else distinct.append(raw).unique()
            if limit is not None and len(distinct.drop_nulls()) > limit:
                return None
        return distinct
