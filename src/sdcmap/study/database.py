"""The database of a study: its tables, a checksum for each row, a count of rows, and how it is opened.

Every row carries a checksum of itself, and the table `tally` a checksummed count of each table's rows: reading verifies
both, so that a flipped bit or a lost page never passes for a number.
"""

from __future__ import annotations

import errno
import marshal
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sdcmap.errors import SdcmapError, StudyDamaged, StudyMismatch

TABLES = {
    "candidate": "id text primary key, kind text, method text, replicate integer, status text, reason text, "
    "seconds real, stream_id text, checksum integer",
    "score": "candidate text, measure_id text, measure text, value real, se real, details text, status text, "
    "reason text, checksum integer, primary key (candidate, measure_id)",
    "measure": "id text primary key, name text, direction text, low real, high real, unit text, axis text, "
    "baseline_value real, checksum integer",
    "proposal": "search text, candidate text, generation integer, rank integer, method text, parents text, "
    "point text, checksum integer, primary key (search, candidate)",
    "tally": "name text primary key, rows integer, checksum integer",
}
READ_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError, TypeError, ValueError)  # what a bad page gives
Row = tuple[Any, ...]


@cache
def column_types(table: str) -> dict[str, str]:
    """Column -> type of one of TABLES."""
    return {part.split()[0]: part.split()[1] for part in TABLES[table].split(", primary")[0].split(", ")}


def checksum(table: str, row: Sequence[Any]) -> int:
    """Tells a whole row of a table from a damaged one, or another table's; the row as SQLite gives it back."""
    return zlib.crc32(repr((table, *row)).encode())


def to_stored_types(table: str, row: Sequence[Any]) -> list[Any]:
    """A row as SQLite gives it back: a number of a real column as a float, and -0 as 0."""
    cells = list(row)
    for place in _real_columns(table):
        if cells[place] is not None:
            cells[place] = float(cells[place]) + 0.0
    return cells


@cache
def _real_columns(table: str) -> tuple[int, ...]:
    return tuple(place for place, kind in enumerate(column_types(table).values()) if kind == "real")


def is_intact(table: str, row: Row) -> bool:
    """Whether a stored row, its checksum last, is as it was written."""
    return _is_intact(table, marshal.dumps(row, 2))


@lru_cache(1 << 14)  # a study that grows is read again and again; packed, since 1 and 1.0 are equal and not the same
def _is_intact(table: str, packed: bytes) -> bool:
    row = marshal.loads(packed)
    return bool(row[-1] == checksum(table, row[:-1]))


@dataclass(frozen=True)
class Database:
    """The tables of one study; `path` None: in memory, where rows need no checksum."""

    path: Path | None
    connection: sqlite3.Connection = field(repr=False)

    # ---- reading ----------------------------------------------------------------------------------------------
    @property
    def version(self) -> tuple[int, int]:
        """Another one after this connection, or another, has changed something; asked for inside a snapshot."""
        try:
            return self.connection.total_changes, int(self.connection.execute("pragma data_version").fetchone()[0])
        except READ_ERRORS:
            raise damage_error(self.path) from None

    def rows(self, table: str) -> list[Row]:
        """Every row of a table in the order of its key, without checksums; StudyDamaged where one is not as written."""
        with self.snapshot():
            return self.read_in_snapshot(table)

    def read_in_snapshot(self, table: str) -> list[Row]:
        """The same inside a snapshot."""
        if self._lacks(table):
            return []
        try:
            stored = self.connection.execute(f"select * from {table} order by 1, 2").fetchall()
            if self.path is not None:
                width = len(column_types(table))
                whole = all(len(row) == width and is_intact(table, row) for row in stored)
                if not whole or len(stored) != self._count_written(table):
                    raise damage_error(self.path)
        except READ_ERRORS:
            raise damage_error(self.path) from None
        return [row[:-1] for row in stored]

    def _lacks(self, table: str) -> bool:
        """Whether a study from before there was this table may only be read, so that none was made on opening."""
        try:
            named = "select 1 from sqlite_master where type = 'table' and name = ?"
            return self.connection.execute(named, (table,)).fetchone() is None and self._count_written(table) == 0
        except READ_ERRORS:
            return False

    def _count_written(self, table: str) -> int:
        """How many rows were written to a table."""
        row = self.connection.execute("select * from tally where name = ?", (table,)).fetchone()
        if row is None:
            return 0
        return int(row[1]) if is_intact("tally", row) else -1

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one state of the study, whatever a sweep writes meanwhile."""
        try:
            self.connection.execute("begin")
        except READ_ERRORS:
            raise damage_error(self.path) from None
        try:
            yield
        finally:
            self.connection.rollback()

    # ---- writing ----------------------------------------------------------------------------------------------
    def insert(self, tables: dict[str, Sequence[Sequence[Any]]], *, replace: bool = False) -> None:
        """Rows into tables in one transaction; what is there already stays, or is replaced by rows of the same key."""
        try:
            with self.connection:
                for table, rows in tables.items():
                    self._insert(table, rows, replace=replace)
        except sqlite3.OperationalError as error:
            raise SdcmapError(f"the study cannot be written ({error}); what was stored before is kept.") from None
        except READ_ERRORS:
            raise damage_error(self.path) from None

    def _insert(self, table: str, rows: Sequence[Sequence[Any]], *, replace: bool) -> None:
        marks = ",".join("?" * len(column_types(table)))
        checked = self.path is not None
        stored = [(*row, checksum(table, to_stored_types(table, row)) if checked else 0) for row in rows]
        if replace:
            self.connection.executemany(f"insert or replace into {table} values ({marks})", stored)
            count = self.connection.execute(f"select count(*) from {table}").fetchone()[0]
        else:
            added = self.connection.executemany(f"insert or ignore into {table} values ({marks})", stored).rowcount
            count = max(self._count_written(table), 0) + added
        if checked:
            tally = (table, count)
            self.connection.execute("insert or replace into tally values (?,?,?)", (*tally, checksum("tally", tally)))


def connect(path: Path | None) -> Database:
    """The database at `path`, made where there is none; None: one in memory."""
    try:
        if path is not None:
            path.touch(mode=0o600)
        connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
        _check_usable(connection, path)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        for name, columns in TABLES.items():
            connection.execute(f"create table if not exists {name} ({columns}) without rowid")
        return Database(path, connection)
    except sqlite3.OperationalError as error:
        raise SdcmapError(f"{path} cannot be written ({error}).") from None
    except READ_ERRORS:
        raise damage_error(path) from None
    except OSError as error:
        if path is not None and error.errno in (errno.EROFS, errno.EACCES) and path.is_file():
            return _connect_read_only(path)
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None


def _connect_read_only(path: Path) -> Database:
    """A study that may only be read, such as one on a read-only disk."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise SdcmapError(f"{path.parent} was not closed and may only be read: open it once where it may be written.")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True, check_same_thread=False)
        _check_usable(connection, path)
        return Database(path, connection)
    except READ_ERRORS:
        raise damage_error(path) from None


def _check_usable(connection: sqlite3.Connection, path: Path | None) -> None:
    """DatabaseError for a damaged one; StudyMismatch for one of an earlier version, whose scores lack what made them or
    their details."""
    if connection.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError
    columns = [row[1] for row in connection.execute("pragma table_info(score)")]
    if columns and not {"measure_id", "details"} <= {*columns}:
        connection.close()
        what_to_do = "`sdcmap sweep` sets them aside and computes all of them again."
        earlier = "an earlier version of sdcmap, whose scores this version cannot read"
        raise StudyMismatch(f"{path} was made by {earlier}: {what_to_do}")


def damage_error(path: Path | None) -> StudyDamaged:
    folder = path.parent.name if path else ""
    return StudyDamaged(f"{path} is damaged: `sdcmap study repair {folder}` keeps every whole row.")
