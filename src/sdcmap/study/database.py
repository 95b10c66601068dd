"""The database of a study: its tables, a checksum for each row, and how it is opened."""

from __future__ import annotations

import errno
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sdcmap.errors import SdcmapError, StudyDamaged, StudyMismatch

TABLES = {
    "candidate": "id text primary key, method text, replicate integer, status text, reason text, seconds real, "
    "checksum integer",
    "score": "candidate text, measure text, value real, se real, parts text, status text, reason text, "
    "checksum integer, primary key (candidate, measure)",
    "measure": "name text primary key, direction text, low real, high real, unit text, axis text, at_nothing real, "
    "checksum integer",
}
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError, TypeError, pl.exceptions.PolarsError)  # what a bad page gives


def columns_of(table: str) -> dict[str, str]:
    """Column -> type of one of TABLES."""
    return {part.split()[0]: part.split()[1] for part in TABLES[table].split(", primary")[0].split(", ")}


def checksum(table: str, row: Sequence[Any]) -> int:
    """Tells a whole row of a table from a damaged one, or another table's; the row as `typed` gives it."""
    return zlib.crc32(repr((table, *row)).encode())


def typed(table: str, row: Sequence[Any]) -> list[Any]:
    """A row as it was before it was stored: SQLite keeps a whole number of a real column as an integer, and -0 as 0."""
    kinds = columns_of(table).values()
    return [float(c) + 0.0 if kind == "real" and c is not None else c for c, kind in zip(row, kinds, strict=False)]


def connect(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None:
            path.touch(mode=0o600)
        connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
        _check(connection)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        for name, columns in TABLES.items():
            connection.execute(f"create table if not exists {name} ({columns}) without rowid")
        if "checksum" not in [row[1] for row in connection.execute("pragma table_info(measure)")]:
            raise StudyMismatch(f"{path} was made by an earlier version of sdcmap: sweep its plan into a new folder.")
        return connection
    except sqlite3.OperationalError as error:
        raise SdcmapError(f"{path} cannot be written ({error}).") from None
    except DAMAGED:
        raise damaged(path) from None
    except OSError as error:
        if path is not None and error.errno in (errno.EROFS, errno.EACCES) and path.is_file():
            return _connect_to_read(path)
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """A study that may only be read, such as one on a read-only disk."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise SdcmapError(f"{path.parent} was not closed and may only be read: open it once where it may be written.")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True, check_same_thread=False)
        _check(connection)
        return connection
    except DAMAGED:
        raise damaged(path) from None


def _check(connection: sqlite3.Connection) -> None:
    if connection.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError


def damaged(path: Path | None) -> StudyDamaged:
    folder = path.parent.name if path else ""
    return StudyDamaged(f"{path} is damaged: `sdcmap study repair {folder}` keeps every whole row.")
