"""Repair a damaged study: keep every row that SQLite can still read and whose checksum is correct.

SQLite stores rows in pages, and pages in a tree. When the tree is broken the pages still exist. Each page in turn is
made the root of a table, and SQLite reads the rows below it, from both ends. Pages of the write-ahead log are first put
in their positions. Rows are only ever added to a study, so an old copy of a row is as good as the latest. Lost rows are
computed again by the next sweep, with the same numbers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdcmap.data.private_folder import private_folder
from sdcmap.errors import SdcmapError, StudyDamaged
from sdcmap.study.database import READ_ERRORS, TABLES, column_types, connect, is_intact, to_stored_types
from sdcmap.study.folder import Study, lock_folder, set_aside

RESCUED_TABLES = tuple(name for name in TABLES if name != "tally")  # the tally is counted again
DEFAULT_PAGE_BYTES = 4096  # SQLite's default, where the file header is damaged
MAX_COLUMNS = max(len(column_types(name)) for name in RESCUED_TABLES)


@dataclass(frozen=True)
class RepairResult:
    """The number of intact rows, and where the damaged database is."""

    candidates: int
    scores: int
    aside: Path | None  # where the damaged database was moved; None: nothing was damaged

    def __str__(self) -> str:
        what = f"{self.candidates:,} candidates and {self.scores:,} scores are intact"
        if self.aside is None:
            return f"{what}; nothing is damaged."
        return f"{what} and were kept. The damaged file is {self.aside.name}. Sweep again to compute what is missing."


def repair(path: str | Path) -> RepairResult:
    """Copy every intact row of a study's damaged database into a new one. An undamaged study is left unchanged.

    >>> from sdcmap import Noise, IL1s, Plan, demo, sweep
    >>> from tempfile import mkdtemp
    >>> folder = mkdtemp()
    >>> scores = sweep(demo.population(50, seed=1), Plan(Noise(on="wage"), IL1s(on="wage")), folder, workers=1)
    >>> print(repair(folder))
    2 candidates and 2 scores are intact; nothing is damaged.
    """
    path = Path(path)
    manifest = Study.manifest_of(path)  # raises where the folder is not a study
    file = path / "scores.sqlite"
    with lock_folder(path):
        # succeeds only if every row can be read, is intact, and none is lost
        with suppress(StudyDamaged), Study.open(path) as study:
            counts = [len(study.database.rows(name)) for name in RESCUED_TABLES]
            return RepairResult(counts[0], counts[1], None)
        rows = _rescue_rows(file)
        aside = set_aside(file, "damaged")
        with Study(path, connect(file), manifest) as study:
            study.database.insert({name: [record[:-1] for record in records] for name, records in rows.items()})
            with suppress(SdcmapError):  # plan or data are damaged too: the next sweep writes them and the measures
                study.add_measures(study.plan.measures, study.data)
            counts = [len(study.database.rows(name)) for name in rows]
    return RepairResult(counts[0], counts[1], aside)


# ---- rows off pages -------------------------------------------------------------------------------------------
def _rescue_rows(file: Path) -> dict[str, list[Sequence[Any]]]:
    """Return every intact row of each table that SQLite can read from a page."""
    rows: dict[str, list[Sequence[Any]]] = {name: [] for name in RESCUED_TABLES}
    with private_folder(file.parent) as scratch:
        for record in dict.fromkeys(_read_records(_merge_log(file, scratch), scratch)):
            # A page does not say which table it belongs to. The checksum includes the name of the table, so it is
            # correct for one of them only.
            for name, intact in rows.items():
                width = len(column_types(name))
                if any(record[width:]):
                    continue
                with suppress(TypeError, ValueError):  # a text in the position of a number
                    # SQLite stores a whole number of a real column as an integer
                    if is_intact(name, (*to_stored_types(name, record[: width - 1]), record[width - 1])):
                        intact.append(record[:width])
                        break
    return rows


def _merge_log(file: Path, scratch: Path) -> bytes:
    """Return the pages of a database and of its write-ahead log, after the first page of an empty database.

    The only table of the empty database has untyped columns. A log is a header of 32 bytes, and pages that each follow 24
    bytes beginning with the page number. SQLite ignores the log of a damaged file. Rows have their own checksums, so pages
    need not be trusted: one with an impossible number is put last.
    """
    content, log = (path.read_bytes() if path.exists() else b"" for path in (file, file.with_name(file.name + "-wal")))
    size = int.from_bytes(content[16:18], "big") if content[:16] == b"SQLite format 3\0" else DEFAULT_PAGE_BYTES
    size = size if size >= 512 and size & (size - 1) == 0 else DEFAULT_PAGE_BYTES
    starts = range(32 + 24, len(log) - size + 1, 24 + size)
    most = max(-(-len(content) // size) + len(starts), 2)
    pages = bytearray(content.ljust(most * size, b"\0"))
    for start in starts:
        number = int.from_bytes(log[start - 24 : start - 20], "big")
        offset = (number - 1) * size if 1 < number <= most else len(pages)
        pages[offset : offset + size] = log[start : start + size]
    empty = scratch / "empty.sqlite"
    with closing(sqlite3.connect(empty)) as connection:
        connection.execute(f"pragma page_size = {size}")
        columns = ", ".join(f"c{number}" for number in range(MAX_COLUMNS))
        connection.execute(f"create table rescued ({columns}, primary key (c0)) without rowid")
    # the header of the empty database replaces the first page, with the new number of pages at bytes 28 to 31
    pages[:size] = empty.read_bytes()[:size]
    pages[28:32] = (len(pages) // size).to_bytes(4, "big")
    return bytes(pages)


def _read_records(content: bytes, scratch: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the records of each page, with the page as the root of a table, as far as SQLite reads them from either end."""
    copy = scratch / "pages.sqlite"
    copy.write_bytes(content)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = off")
        connection.execute("pragma synchronous = off")
        for page in range(2, connection.execute("pragma page_count").fetchone()[0] + 1):
            # make this page the root of the table; "reset" lets SQLite read the changed schema
            connection.execute("pragma writable_schema = on")
            connection.execute("update sqlite_master set rootpage = ?", (page,))
            connection.execute("pragma writable_schema = reset")
            try:
                yield from connection.execute("select * from rescued")
            except READ_ERRORS:
                with suppress(*READ_ERRORS):
                    yield from connection.execute("select * from rescued order by c0 desc")
