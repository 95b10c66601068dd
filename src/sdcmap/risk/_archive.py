"""The attacker's own file: stated by path and digest, and read with the column types of the data."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sdcmap.core import Column, Microdata, SchemaError
from sdcmap.core.named_files import verify_file
from sdcmap.files.reader import read


def open_archive(path: str, sha256: str) -> Microdata:
    """Read the archive as it is; raise `SchemaError` if its content does not match the digest."""
    return read(verify_file(path, sha256))


def read_archive(path: str, sha256: str, data: Microdata, names: Sequence[str]) -> Microdata:
    """Read the columns `names` of the archive, with the kinds and category types that they have in the data."""
    archive = open_archive(path, sha256)
    lacking = [name for name in names if name not in archive.names]
    if lacking:
        raise SchemaError(f"{path} has no column {', '.join(map(repr, lacking))}.")
    archive = read(archive.only(names), kinds={name: data.schema[name].kind for name in names})
    return Microdata(archive.schema, {name: _in_type_of(data, archive, name) for name in names})


def _in_type_of(data: Microdata, archive: Microdata, name: str) -> Column:
    """Return one column of the archive with its categories cast to the type of the data, so that 1 and "1" match."""
    ours, theirs = data.column(name).levels, archive.column(name).levels
    if ours is None or theirs is None or ours.dtype == theirs.dtype:
        return archive.column(name)
    try:
        return Column(archive.column(name).values, theirs.cast(ours.dtype))
    except pl.exceptions.PolarsError:
        kinds = f"{theirs.dtype.base_type()} in the archive and {ours.dtype.base_type()} in the data"
        raise SchemaError(f"column {name!r} is {kinds}, so its values cannot match. Store it in one type.") from None
