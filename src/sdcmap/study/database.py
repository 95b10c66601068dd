"""The SQLite database of a study: its tables, a checksum for each row, and a count of rows.

Every row has a checksum, and the table `tally` has a checksummed count of each table's rows. Reading verifies both, so
that a flipped bit or a lost page cannot pass for a number.
"""

from __future__ import annotations

import errno
import marshal
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sdcmap.errors import SdcmapError, StudyDamaged, StudyMismatch
from sdcmap.study.jobs import CandidateRow

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
# Columns that earlier versions named differently: (table, old name, new name). Checksums cover values only, so the rows
# of such a study are valid.
RENAMED_COLUMNS = (
    ("candidate", "seal", "stream_id"),
    ("measure", "at_nothing", "baseline_value"),
    ("proposal", "place", "rank"),
)
READ_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError, TypeError, ValueError)  # raised for a damaged page
# Columns with a type each, and a primary key. Anything that computes would need further parentheses.
PLAIN_TABLE = re.compile(
    r'create table "?\w+"? ?\([\w\s,"]*(primary key \([\w\s,"]*\))?\)( without rowid)?', re.IGNORECASE
)
MAX_ROWS_CACHED = 1 << 14  # rows whose checksums need not be computed again
Row = tuple[Any, ...]


@cache
def column_types(table: str) -> dict[str, str]:
    """Return column -> type of one of TABLES."""
    return {part.split()[0]: part.split()[1] for part in TABLES[table].split(", primary")[0].split(", ")}


def checksum(table: str, row: Sequence[Any]) -> int:
    """Return the checksum of a row. It detects damage, and rows of another table."""
    return zlib.crc32(repr((table, *row)).encode())


def to_stored_types(table: str, row: Sequence[Any]) -> list[Any]:
    """Return a row as SQLite returns it: numbers of real columns as floats, and -0 as 0."""
    cells = list(row)
    for index in _real_columns(table):
        if cells[index] is not None:
            cells[index] = float(cells[index]) + 0.0
    return cells


@cache
def _real_columns(table: str) -> tuple[int, ...]:
    return tuple(index for index, kind in enumerate(column_types(table).values()) if kind == "real")


def is_intact(table: str, row: Row) -> bool:
    """Return whether a stored row, with its checksum last, is as it was written."""
    return _is_intact(table, marshal.dumps(row, 2))


# A growing study is read again and again. Rows are packed for the cache, because 1 and 1.0 are equal but not the same.
@lru_cache(MAX_ROWS_CACHED)
def _is_intact(table: str, packed: bytes) -> bool:
    return _has_checksum(table, marshal.loads(packed))


def _has_checksum(table: str, row: Row) -> bool:
    return bool(row[-1] == checksum(table, row[:-1]))


def are_intact(table: str, rows: Sequence[Row]) -> bool:
    """Return whether stored rows have all columns and are as they were written."""
    check = is_intact if len(rows) <= MAX_ROWS_CACHED else _has_checksum  # a longer table would only replace the cache
    width = len(column_types(table))
    return all(len(row) == width and check(table, row) for row in rows)


@dataclass(frozen=True)
class Database:
    """The tables of a study in a folder."""

    path: Path
    connection: sqlite3.Connection = field(repr=False)

    # ---- reading ----------------------------------------------------------------------------------------------
    @property
    def version(self) -> tuple[int, int]:
        """A pair of numbers that changes with every write, of this or another connection. Read it inside a snapshot."""
        try:
            return self.connection.total_changes, int(self.connection.execute("pragma data_version").fetchone()[0])
        except READ_ERRORS:
            raise damage_error(self.path) from None

    def rows(self, table: str) -> list[Row]:
        """Return every row of a table in the order of its key, without checksums; raise StudyDamaged for a damaged row."""
        with self.snapshot():
            return self.read_in_snapshot(table)

    def read_in_snapshot(self, table: str) -> list[Row]:
        """Return the same as `rows`, inside a snapshot."""
        if self._lacks(table):
            return []
        try:
            stored = self.connection.execute(f"select * from {table} order by 1, 2").fetchall()
            if not are_intact(table, stored) or len(stored) != self._count_written(table):
                raise damage_error(self.path)
        except READ_ERRORS:
            raise damage_error(self.path) from None
        return [row[:-1] for row in stored]

    def columns(self, table: str) -> list[Row]:
        """Return the columns of a table, inside a snapshot; an empty list where it has no rows."""
        return [*zip(*self.read_in_snapshot(table), strict=True)]

    def _lacks(self, table: str) -> bool:
        """Return whether the study is older than this table. A study that may only be read does not get missing tables."""
        try:
            named = "select 1 from sqlite_master where type = 'table' and name = ?"
            return self.connection.execute(named, (table,)).fetchone() is None and self._count_written(table) == 0
        except READ_ERRORS:
            return False

    def _count_written(self, table: str) -> int:
        """Return how many rows were written to a table; -1: the count itself is damaged."""
        row = self.connection.execute("select * from tally where name = ?", (table,)).fetchone()
        if row is None:
            return 0
        return int(row[1]) if is_intact("tally", row) else -1

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the study in this block, whatever a sweep writes at the same time."""
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
        """Insert rows into tables in one transaction. Existing rows of the same key stay, or are replaced."""
        try:
            with self.connection:
                for table, rows in tables.items():
                    self._insert(table, rows, replace=replace)
        except sqlite3.OperationalError as error:
            raise SdcmapError(f"the study cannot be written ({error}). Scores stored before are kept.") from None
        except READ_ERRORS:
            raise damage_error(self.path) from None

    def add(self, rows: Sequence[CandidateRow]) -> None:
        """Insert candidates and their scores in one transaction. Existing rows stay."""
        scores = [(row.id, *score) for row in rows for score in row.scores]
        self.insert({"candidate": [row[:-1] for row in rows], "score": scores})  # all but the scores

    def delete_scores(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete the scores of these candidates and measures (ids), in one transaction."""
        try:
            with self.connection:
                self.connection.executemany("delete from score where candidate = ? and measure_id = ?", keys)
                self._insert("score", [], replace=True)  # counts the rows again
        except READ_ERRORS:
            raise damage_error(self.path) from None

    def _insert(self, table: str, rows: Sequence[Sequence[Any]], *, replace: bool) -> None:
        marks = ",".join("?" * len(column_types(table)))
        stored = [(*row, checksum(table, to_stored_types(table, row))) for row in rows]
        if replace:
            self.connection.executemany(f"insert or replace into {table} values ({marks})", stored)
            count = self.connection.execute(f"select count(*) from {table}").fetchone()[0]
        else:
            added = self.connection.executemany(f"insert or ignore into {table} values ({marks})", stored).rowcount
            count = max(self._count_written(table), 0) + added
        tally = (table, count)
        self.connection.execute("insert or replace into tally values (?,?,?)", (*tally, checksum("tally", tally)))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def connect(path: Path) -> Database:
    """Open the database at `path`, or create it."""
    try:
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, check_same_thread=False)
        _check_usable(connection, path)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        _rename_columns(connection)
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
    """Open a study that may only be read, such as one on a read-only disk."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise SdcmapError(f"{path.parent} was not closed and is read-only: open it once where it can be written.")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True, check_same_thread=False)
        _check_usable(connection, path)
        return Database(path, connection)
    except READ_ERRORS:
        raise damage_error(path) from None


def _rename_columns(connection: sqlite3.Connection) -> None:
    """Give columns that an earlier version wrote their present names."""
    for table, old, new in RENAMED_COLUMNS:
        if old in [row[1] for row in connection.execute(f"pragma table_info({table})")]:
            connection.execute(f"alter table {table} rename column {old} to {new}")


def check_plain_tables(connection: sqlite3.Connection) -> None:
    """Raise DatabaseError if the database contains anything but plain tables. Nothing of it is run.

    In a database of somebody else a view in place of a table can be an endless query, and a generated column, a constraint
    or a trigger can compute for hours.
    """
    # An index without a statement belongs to the primary key of a table.
    query = "select sql from sqlite_master where type != 'index' or sql is not null"
    statements = connection.execute(query).fetchall()
    if not all(sql is not None and PLAIN_TABLE.fullmatch(sql) for (sql,) in statements):
        raise sqlite3.DatabaseError("not only plain tables")


def _check_usable(connection: sqlite3.Connection, path: Path | None) -> None:
    """Raise DatabaseError for a damaged or foreign database, and StudyMismatch for scores that this version cannot read."""
    check_plain_tables(connection)
    if connection.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError
    columns = [row[1] for row in connection.execute("pragma table_info(score)")]
    if columns and not {"measure_id", "details"} <= {*columns}:
        connection.close()
        remedy = "`sdcmap sweep` sets them aside and computes all of them again."
        raise StudyMismatch(f"{path} was written by an earlier version whose scores cannot be read: {remedy}")


def damage_error(path: Path | None) -> StudyDamaged:
    """Return the error for a damaged database."""
    folder = path.parent.name if path else ""
    return StudyDamaged(f"{path} is damaged: `sdcmap study repair {folder}` keeps every intact row.")
